//! Walking a tree by the rules that ripgrep has: hidden files and what `.gitignore`, `.ignore` and `.rgignore` name
//! are skipped, links are not followed.
//!
//! The walk itself goes by names. So whatever it finds is opened, or looked at, below the root's handle before it is
//! believed: a directory that is swapped for a link in between yields nothing.
//!
//! The files with the ignore rules are read by the library, which would wait for a pipe in such a file's place and
//! read a device to its end, which never comes. So they are looked at before a directory is entered.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use alisio_host::workspace::{Located, Reason};
use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use tokio_util::sync::CancellationToken;

use crate::call::refusal;

/// Time for one walk, and for finding a page of a file.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Files in each directory that say what is ignored.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".rgignore"];
/// Bytes of such a file.
const LONGEST_IGNORE_FILE: u64 = 256 * 1024;
/// Bytes of a file that names a git directory.
const LONGEST_NAME: u64 = 4096;

/// Directories that a walk left out since their ignore rules can't be read.
#[derive(Clone, Default)]
pub(crate) struct LeftOut(Arc<AtomicUsize>);

impl LeftOut {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes the walk over what lies at `located`, and the count of directories that it leaves out.
///
/// # Errors
/// When `glob` is no valid pattern, or the ignore rules can't be read, in words for the model.
pub(crate) fn builder(located: &Located, glob: Option<&str>) -> Result<(WalkBuilder, LeftOut), String> {
    let mut builder = WalkBuilder::new(located.absolute());
    builder.follow_links(false).add_custom_ignore_filename(".rgignore");
    if let Err(file) = check_rules(located.absolute()) {
        let message = format!("`{}` is no ordinary file of ignore rules", shown(located, &file));
        return Err(refusal(Reason::Special, &message, "files named one by one can be read"));
    }
    // Above it somebody else may be the master; then rules from there don't count.
    builder.parents(located.absolute().ancestors().skip(1).all(|above| check_rules(above).is_ok()));
    let left_out = LeftOut::default();
    let count = left_out.clone();
    builder.filter_entry(move |entry| {
        let is_in = !entry.file_type().is_some_and(|kind| kind.is_dir()) || check_rules(entry.path()).is_ok();
        if !is_in {
            count.0.fetch_add(1, Ordering::Relaxed);
        }
        is_in
    });
    if let Some(glob) = glob {
        let mut overrides = OverrideBuilder::new(located.absolute());
        overrides.add(glob).map_err(|error| format!("`glob` is not a valid pattern: {error}"))?;
        let overrides =
            overrides.build().map_err(|error| format!("`glob` is not a valid pattern: {error}"))?;
        builder.overrides(overrides);
    }
    Ok((builder, left_out))
}

/// Looks at the files with the rules of one directory; gives back the one that must not be opened.
fn check_rules(directory: &Path) -> Result<(), PathBuf> {
    for name in IGNORE_FILES {
        check_file(&directory.join(name))?;
    }
    let git = directory.join(".git");
    match git.metadata() {
        Ok(metadata) if metadata.is_dir() => check_file(&git.join("info/exclude")),
        Ok(metadata) if metadata.is_file() => check_linked_rules(&git),
        _ => Ok(()),
    }
}

/// The same for a working tree whose `.git` is a file that names another directory.
fn check_linked_rules(git: &Path) -> Result<(), PathBuf> {
    check_file(git)?;
    let Some(git_dir) = first_line(git).and_then(|line| Some(PathBuf::from(line.strip_prefix("gitdir: ")?)))
    else {
        return Ok(());
    };
    let common = git_dir.join("commondir");
    check_file(&common)?;
    match first_line(&common) {
        Some(line) => check_file(&git_dir.join(line).join("info/exclude")),
        None => Ok(()),
    }
}

/// Passes what is absent, an ordinary file, and a link to one; a directory in its place is no danger.
fn check_file(path: &Path) -> Result<(), PathBuf> {
    let is_short = |metadata: &Metadata| metadata.is_dir() || metadata.len() <= LONGEST_IGNORE_FILE;
    let is_ordinary = |metadata: &Metadata| metadata.is_file() || metadata.is_dir();
    let passes = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => path.metadata().map_or(true, |target| {
            // What the kernel makes up while it is read (`/proc`) has no length.
            is_ordinary(&target) && is_short(&target) && target.len() > 0
        }),
        Ok(metadata) => is_ordinary(&metadata) && is_short(&metadata),
        Err(_) => true,
    };
    if passes { Ok(()) } else { Err(path.to_owned()) }
}

fn first_line(path: &Path) -> Option<String> {
    const NONBLOCK: i32 = 0o4000;
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path).ok()?;
    let mut text = String::new();
    file.take(LONGEST_NAME).read_to_string(&mut text).ok()?;
    text.lines().next().map(str::to_owned)
}

/// When a walk, or a search for a page, must end.
#[derive(Clone)]
pub(crate) struct Deadline {
    end: Instant,
    cancel: CancellationToken,
}

impl Deadline {
    pub(crate) fn new(cancel: CancellationToken) -> Self {
        Self::lasting(TIME_LIMIT, cancel)
    }

    pub(crate) fn lasting(limit: Duration, cancel: CancellationToken) -> Self {
        Self { end: Instant::now() + limit, cancel }
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
