//! Output of processes as a model and a live display get it: valid text, bounded, and honest about what is missing.

use std::fmt::Write as _;

use alisio_host::process::{Captured, Stream};
use alisio_protocol::{CallId, Sha256};
use alisio_sdk::Progress;
use serde_json::json;

/// Bytes of a call that are shown while it runs.
const LIVE_LIMIT: usize = 256 * 1024;

/// Says an output in at most about `limit` bytes: all of it, or its head and tail around a mark that says how to get
/// the rest.
pub(crate) fn bounded(captured: &Captured, limit: usize) -> String {
    let (head, missing, tail) = captured.kept();
    let mut notes = String::new();
    let is_whole = captured.total() <= limit as u64;
    let mut text = if is_whole {
        decode(&[head, &tail].concat(), &mut notes)
    } else {
        let kept = if missing == 0 { [head, &tail].concat() } else { tail };
        let head = &head[..head.len().min(limit / 4)];
        let head = &head[..whole_characters(head)];
        let tail = &kept[kept.len() - kept.len().min(limit - limit / 4)..];
        let is_inside = |byte: &u8| byte & 0xC0 == 0x80;
        let tail = &tail[tail.iter().take(3).take_while(|byte| is_inside(byte)).count()..];
        let left_out = captured.total() - (head.len() + tail.len()) as u64;
        let mut text = decode(head, &mut notes);
        let _ = write!(text, "\n[truncated: {left_out} bytes left out here; ");
        match captured.spill() {
            Some(spill) => {
                let part = if spill.n_bytes < captured.total() { "the beginning of the" } else { "the full" };
                let _ =
                    writeln!(text, "{part} output is in `{}`, which read_file pages]", spill.path.display());
            }
            None => text.push_str("the full output could not be stored]\n"),
        }
        text.push_str(&decode(tail, &mut notes));
        text
    };
    text.push_str(&notes);
    text
}

/// A name for the files of a call that is safe whatever the service calls it.
pub(crate) fn spill_name(call: &CallId) -> String {
    let mut name = Sha256::of(call.as_str().as_bytes()).to_string();
    name.truncate(24);
    name
}

fn decode(bytes: &[u8], notes: &mut String) -> String {
    let text = String::from_utf8_lossy(bytes);
    if notes.is_empty() && (matches!(text, std::borrow::Cow::Owned(_)) || text.contains('\0')) {
        notes.push_str("\n[bytes that are not UTF-8 are shown as \u{FFFD}, NUL as \u{2400}]");
    }
    text.replace('\0', "\u{2400}")
}

/// How many bytes there are without a character that is cut at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let begin = bytes.len().saturating_sub(3);
    for index in (begin..bytes.len()).rev() {
        let n_bytes = match bytes[index] {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => return bytes.len(),
        };
        return if index + n_bytes > bytes.len() { index } else { bytes.len() };
    }
    bytes.len()
}

/// Shows output while a process runs, character by character whatever the borders of the reads, and bounded.
pub(crate) struct Live {
    progress: Progress,
    shown: usize,
    rest: [Vec<u8>; 2],
}

impl Live {
    pub(crate) fn new(progress: Progress) -> Self {
        Self { progress, shown: 0, rest: [Vec::new(), Vec::new()] }
    }

    pub(crate) fn show(&mut self, stream: Stream, bytes: &[u8]) {
        if self.shown >= LIVE_LIMIT {
            return;
        }
        let rest = &mut self.rest[usize::from(stream == Stream::Stderr)];
        rest.extend(bytes);
        let whole = whole_characters(rest);
        let text = String::from_utf8_lossy(&rest[..whole]).replace('\0', "\u{2400}");
        rest.drain(..whole);
        self.send(stream, &text);
    }

    /// Shows what was held back.
    pub(crate) fn finish(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let rest = std::mem::take(&mut self.rest[usize::from(stream == Stream::Stderr)]);
            if self.shown < LIVE_LIMIT {
                self.send(stream, &String::from_utf8_lossy(&rest));
            }
        }
    }

    fn send(&mut self, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let room = LIVE_LIMIT - self.shown;
        let part = crate::text::cut(text, room);
        self.shown = if part.len() < text.len() { LIVE_LIMIT } else { self.shown + part.len() };
        self.progress.show(json!({ "stream": stream.as_str(), "text": part }));
        if self.shown >= LIVE_LIMIT {
            let text = "\n[more output is not shown while the command runs]\n";
            self.progress.show(json!({ "stream": stream.as_str(), "text": text }));
        }
    }
}
