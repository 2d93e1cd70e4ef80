//! The display block of a change, for clients that draw one.

use std::path::Path;
use std::time::{Duration, Instant};

use alisio_protocol::UiBlock;
use similar::{Algorithm, TextDiff};

/// A longer patch is cut at the end of a line.
const PATCH_LIMIT: usize = 200 * 1024;

/// Time for finding a small patch; after it the patch may be larger than it need be, but stays right.
const PATIENCE: Duration = Duration::from_millis(300);

/// Makes the block; `old` is `None` for a new file. `None` when nothing changed.
pub(crate) fn block(path: &str, old: Option<&str>, new: &str) -> Option<UiBlock> {
    if old == Some(new) {
        return None;
    }
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .deadline(Instant::now() + PATIENCE)
        .diff_lines(old.unwrap_or(""), new);
    let from = if old.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    let mut patch = diff.unified_diff().header(&from, &format!("b/{path}")).to_string();
    let caption = (patch.len() > PATCH_LIMIT).then(|| {
        let whole = patch.len();
        let end =
            patch.as_bytes()[..PATCH_LIMIT].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        patch.truncate(end);
        format!("cut: the first {} KB of {} KB are shown", end / 1024, whole / 1024)
    });
    let lang = Path::new(path).extension().and_then(|extension| extension.to_str()).map(str::to_owned);
    Some(UiBlock::Diff { patch, path: path.to_owned(), lang, caption })
}
