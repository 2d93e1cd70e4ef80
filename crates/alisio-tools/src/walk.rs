//! Walking a tree by the rules that ripgrep has: hidden files and what `.gitignore`, `.ignore` and `.rgignore` name
//! are skipped, links are not followed.
//!
//! The walk itself goes by names. So whatever it finds is opened, or looked at, below the root's handle before it is
//! believed: a directory that is swapped for a link in between yields nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use alisio_host::workspace::Located;
use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use tokio_util::sync::CancellationToken;

/// Time for one walk.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Makes the walk over what lies at `located`.
///
/// # Errors
/// When `glob` is no valid pattern, in words for the model.
pub(crate) fn builder(located: &Located, glob: Option<&str>) -> Result<WalkBuilder, String> {
    let mut builder = WalkBuilder::new(located.absolute());
    builder.follow_links(false).add_custom_ignore_filename(".rgignore");
    if let Some(glob) = glob {
        let mut overrides = OverrideBuilder::new(located.absolute());
        overrides.add(glob).map_err(|error| format!("`glob` is not a valid pattern: {error}"))?;
        let overrides =
            overrides.build().map_err(|error| format!("`glob` is not a valid pattern: {error}"))?;
        builder.overrides(overrides);
    }
    Ok(builder)
}

/// When a walk must end.
#[derive(Clone)]
pub(crate) struct Deadline {
    end: Instant,
    cancel: CancellationToken,
}

impl Deadline {
    pub(crate) fn new(cancel: CancellationToken) -> Self {
        Self { end: Instant::now() + TIME_LIMIT, cancel }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || Instant::now() >= self.end
    }
}

/// Says that a walk ran out of time.
pub(crate) fn out_of_time() -> String {
    format!(
        "[truncated: stopped after {} s, so this is not all; narrow it with path or glob]",
        TIME_LIMIT.as_secs()
    )
}

/// Says a path below the root of `located` as people read it; `display` is how `located` itself reads.
pub(crate) fn shown(located: &Located, path: &Path) -> String {
    match path.strip_prefix(located.absolute()) {
        Ok(below) if below.as_os_str().is_empty() => located.display().to_owned(),
        Ok(below) if located.display() == "." => below.display().to_string(),
        Ok(below) => Path::new(located.display()).join(below).display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
