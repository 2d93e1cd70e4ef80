//! Output of any length in bounded memory: the head, the tail, the count of what lies between, and a file with all.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// Bytes kept from the beginning.
const HEAD: usize = 64 * 1024;
/// Bytes above which everything goes to a file; no more than the head, so that nothing is lost before.
const SPILL_ABOVE: usize = 32 * 1024;
/// Bytes kept from the end.
const TAIL: usize = 256 * 1024;
/// Bytes that a spill file holds at most.
const SPILL: u64 = 64 * 1024 * 1024;

/// Where output goes that is longer than 32 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spill {
    /// The folder, made where it is missing, for its owner alone.
    pub folder: PathBuf,
    /// The beginning of the file's name; the stream's word and `.txt` follow.
    pub name: String,
}

/// A file that holds an output from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillFile {
    /// The file.
    pub path: PathBuf,
    /// How many bytes it holds; fewer than were printed when its bound was reached or the disk was full.
    pub n_bytes: u64,
}

/// What a process printed on one stream.
#[derive(Debug, Default)]
pub struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    spill: Option<SpillFile>,
}

impl Captured {
    /// How many bytes were printed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The file with the full output, where it was longer than its bound.
    pub fn spill(&self) -> Option<&SpillFile> {
        self.spill.as_ref()
    }

    /// The output as far as it was kept, and how many bytes are missing in its middle. At least the first 64 KiB and
    /// the last 256 KiB are kept.
    pub fn kept(&self) -> (&[u8], u64, Vec<u8>) {
        let missing = self.total - self.head.len() as u64 - self.tail.len() as u64;
        (&self.head, missing, self.tail.iter().copied().collect())
    }

    /// The last `n_bytes` bytes; at most 256 KiB and what adjoins them.
    pub fn last(&self, n_bytes: usize) -> Vec<u8> {
        let (head, missing, tail) = self.kept();
        let mut all = if missing == 0 { head.to_vec() } else { Vec::new() };
        all.extend(tail);
        all.split_off(all.len().saturating_sub(n_bytes))
    }
}

/// Takes output as it comes.
pub(super) struct Capture {
    captured: Captured,
    target: Option<(Spill, &'static str)>,
    file: Option<File>,
}

impl Capture {
    pub(super) fn new(spill: Option<Spill>, stream: &'static str) -> Self {
        Self { captured: Captured::default(), target: spill.map(|spill| (spill, stream)), file: None }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        let captured = &mut self.captured;
        if captured.total + bytes.len() as u64 > SPILL_ABOVE as u64
            && let Some((spill, stream)) = self.target.take()
        {
            // What came so far is all in the head. A disk that is full costs the file, not the call.
            let path = spill.folder.join(format!("{}.{stream}.txt", spill.name));
            if let Ok(mut file) = create(&spill, &path)
                && file.write_all(&captured.head).is_ok()
            {
                captured.spill = Some(SpillFile { path, n_bytes: captured.head.len() as u64 });
                self.file = Some(file);
            }
        }
        if let (Some(file), Some(spill)) = (&mut self.file, &mut captured.spill) {
            let room = usize::try_from(SPILL.saturating_sub(spill.n_bytes)).unwrap_or(usize::MAX);
            let part = &bytes[..bytes.len().min(room)];
            match file.write_all(part) {
                Ok(()) if room > 0 => spill.n_bytes += part.len() as u64,
                Ok(()) | Err(_) => self.file = None,
            }
        }
        captured.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - captured.head.len()));
        captured.head.extend(head);
        captured.tail.extend(rest);
        let excess = captured.tail.len().saturating_sub(TAIL);
        captured.tail.drain(..excess);
    }

    pub(super) fn finish(self) -> Captured {
        self.captured
    }
}

fn create(spill: &Spill, path: &PathBuf) -> io::Result<File> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&spill.folder)?;
    File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_tail_and_count_add_up_at_every_border() {
        for total in [
            0,
            1,
            SPILL_ABOVE,
            SPILL_ABOVE + 1,
            HEAD - 1,
            HEAD,
            HEAD + 1,
            HEAD + TAIL - 1,
            HEAD + TAIL,
            HEAD + TAIL + 1,
            900_000,
        ] {
            for chunk in [1021, 32 * 1024, 1 << 20] {
                let folder = tempfile::tempdir().expect("a folder");
                let all: Vec<u8> = (0..total).map(|index| (index % 251) as u8).collect();
                let spill = Spill { folder: folder.path().join("spill"), name: "call".into() };
                let mut capture = Capture::new(Some(spill), "stdout");
                all.chunks(chunk).for_each(|bytes| capture.take(bytes));
                let captured = capture.finish();
                let (head, missing, tail) = captured.kept();
                assert_eq!(captured.total(), total as u64);
                assert_eq!(head, &all[..total.min(HEAD)]);
                assert_eq!(tail, &all[total - tail.len()..]);
                assert_eq!(missing as usize, total.saturating_sub(HEAD + TAIL), "{total} in {chunk}");
                assert_eq!(captured.last(100), &all[total.saturating_sub(100)..]);
                assert_eq!(captured.spill().is_some(), total > SPILL_ABOVE);
                if let Some(spill) = captured.spill() {
                    assert!(
                        std::fs::read(&spill.path).expect("readable") == all,
                        "the file holds everything"
                    );
                    assert_eq!(spill.n_bytes, total as u64);
                }
            }
        }
    }
}
