//! `read_file`: reads a text file, a page at a time.
//!
//! A file up to 1 MiB is read whole, so its fingerprint can be told. A larger one (a stored output, a log) is read by
//! page from the disk; it has no fingerprint, since it can't be edited.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use alisio_host::workspace::{Access, EDIT_LIMIT, FileError, Located, OpenFile, Reason, Workspace};
use alisio_protocol::{Effect, Sha256, ToolCall, ToolResult, ToolSpec};
use alisio_sdk::{InputError, Prepared, Tool};
use memchr::memchr;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::{OUTPUT_LIMIT, file_refusal, parse, plan, refusal, resolve, spec};
use crate::example::{Example, Expected};
use crate::text::{Encoding, LineEnds, cut, with_lf};
use crate::walk::{Deadline, TIME_LIMIT};

/// Reads a file.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The file: relative to the workspace, or absolute.
    path: String,
    /// The first line to show, from 1.
    offset: Option<u64>,
    /// The most lines to show.
    limit: Option<u64>,
}

pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        tool: "read_file",
        title: "read a file",
        files: &[("src/a.rs", "fn main() {}\n")],
        input: r#"{"path": "src/a.rs"}"#,
        expected: Expected::Text("`src/a.rs`: lines 1-1 of 1, UTF-8, LF, sha256 "),
    },
    Example {
        tool: "read_file",
        title: "read some lines of it",
        files: &[("a.txt", "one\ntwo\nthree\nfour\n")],
        input: r#"{"path": "a.txt", "offset": 2, "limit": 2}"#,
        expected: Expected::Holds("\n\ntwo\nthree\n[truncated: go on with offset 4]"),
    },
    Example {
        tool: "read_file",
        title: "a directory is not a file",
        files: &[("src/a.rs", "")],
        input: r#"{"path": "src"}"#,
        expected: Expected::Refused(Reason::WrongKind),
    },
];

pub(crate) struct ReadFile {
    workspace: Arc<Workspace>,
    spec: ToolSpec,
}

impl ReadFile {
    pub(crate) fn new(workspace: Arc<Workspace>) -> Self {
        let spec = spec::<Input>(
            "read_file",
            Effect::Read,
            "Reads a text file. The first line of the result tells lines, encoding, line ends and the sha256 that \
             edit_file and write_file need; the text follows after an empty line, with LF line ends. Long files come \
             in pages: go on with offset.",
        );
        Self { workspace, spec }
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let Input { path, offset, limit } = parse(&self.spec, call)?;
        let page = Page { offset: offset.unwrap_or(1), limit: limit.unwrap_or(u64::MAX) };
        if page.offset == 0 || page.limit == 0 {
            return Err(InputError("`offset` and `limit` count from 1".to_owned()));
        }
        let target = resolve(&self.workspace, &path, Access::Read)?;
        let (paths, outside) = (vec![target.absolute().to_owned()], target.outside());
        Ok(plan(&self.spec, call, paths, outside, move |_, context| {
            target
                .locate()
                .map_err(|error| file_refusal(&error))
                .and_then(|located| read(&located, page, &Deadline::new(context.cancel)))
                .map_or_else(ToolResult::error, ToolResult::text)
        }))
    }
}

/// Which lines are wanted.
#[derive(Clone, Copy)]
struct Page {
    offset: u64,
    limit: u64,
}

impl Page {
    fn lines(self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}

fn read(located: &Located, page: Page, deadline: &Deadline) -> Result<String, String> {
    let opened = located.open_file().map_err(|error| file_refusal(&error))?;
    if opened.size() > EDIT_LIMIT {
        return read_large(located, opened, page, deadline);
    }
    let mut bytes = Vec::new();
    opened
        .take(EDIT_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| file_refusal(&located.fail_io(error)))?;
    if bytes.len() as u64 > EDIT_LIMIT {
        let opened = located.open_file().map_err(|error| file_refusal(&error))?;
        return read_large(located, opened, page, deadline);
    }
    let path = located.display();
    let encoding = match Encoding::detect(&bytes) {
        Some(encoding) => encoding,
        // A stored output is shown whatever a process printed.
        None if located.is_read_only() => Encoding::Utf8,
        None => return Err(binary(path)),
    };
    let text = encoding.decode(&bytes);
    let ends = LineEnds::of(&text);
    let text = with_lf(&text);
    let total = text.lines().count() as u64;
    let fingerprint = Sha256::of(&bytes);
    if total == 0 {
        return Ok(format!("`{path}`: empty, {}, sha256 {fingerprint}", encoding.name()));
    }
    if page.offset > total {
        let lines = if total == 1 { "line" } else { "lines" };
        return Err(format!("`offset` {} is past the end: `{path}` has {total} {lines}", page.offset));
    }
    let skipped = usize::try_from(page.offset - 1).unwrap_or(usize::MAX);
    let start: usize = text.split_inclusive('\n').take(skipped).map(str::len).sum();
    let shown = Shown::of(&text[start..], page);
    let last = page.offset + shown.lines - 1;
    let mut said = format!(
        "`{path}`: lines {}-{last} of {total}, {}, {}{}, sha256 {fingerprint}\n\n",
        page.offset,
        encoding.name(),
        ends.name(),
        if text.ends_with('\n') { "" } else { ", no line end at the end" },
    );
    shown.write(&mut said, last, (last < total).then_some(last + 1));
    Ok(said)
}

/// Reads a page of a file that is too large to be read whole.
fn read_large(
    located: &Located,
    opened: OpenFile,
    page: Page,
    deadline: &Deadline,
) -> Result<String, String> {
    let path = located.display();
    let size = opened.size();
    let fail = |error| file_refusal(&located.fail_io(error));
    let mut file = BufReader::with_capacity(64 * 1024, opened);
    let head = file.fill_buf().map_err(fail)?;
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(file_refusal(&FileError::TooLarge { path: path.to_owned(), size, limit: EDIT_LIMIT }));
    }
    if memchr(0, head).is_some() && !located.is_read_only() {
        return Err(binary(path));
    }
    if head.starts_with(b"\xef\xbb\xbf") {
        file.consume(3);
    }
    let mut line = 1;
    while line < page.offset {
        if deadline.is_cancelled() {
            return Err("reading was cancelled".to_owned());
        }
        if deadline.is_over() {
            return Err(format!(
                "`{path}` has {size} bytes, and line {} was not reached within {} s; only line {line} was\nhint: \
                 search_text finds lines by what they hold",
                page.offset,
                TIME_LIMIT.as_secs()
            ));
        }
        let buffer = file.fill_buf().map_err(fail)?;
        if buffer.is_empty() {
            return Err(format!("`offset` {} is past the end of `{path}`", page.offset));
        }
        let mut used = 0;
        while line < page.offset && used < buffer.len() {
            match memchr(b'\n', &buffer[used..]) {
                Some(end) => {
                    used += end + 1;
                    line += 1;
                }
                None => used = buffer.len(),
            }
        }
        file.consume(used);
    }
    let mut bytes = Vec::new();
    // Twice the page, since CRLF shrinks; plus a look at whether anything follows.
    file.take(2 * OUTPUT_LIMIT as u64).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.is_empty() {
        return Err(format!("`offset` {} is past the end of `{path}`", page.offset));
    }
    let at_end = bytes.len() < 2 * OUTPUT_LIMIT;
    let (text, encoding) = match std::str::from_utf8(&bytes) {
        Ok(text) => (text.to_owned(), "UTF-8"),
        // A character cut by the page is none of the file's.
        Err(error) if error.error_len().is_none() => {
            (String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned(), "UTF-8")
        }
        Err(_) => (String::from_utf8_lossy(&bytes).into_owned(), "not all UTF-8"),
    };
    let text = with_lf(&text);
    let shown = Shown::of(&text, page);
    let last = page.offset + shown.lines - 1;
    let more = !at_end || shown.taken < text.len();
    let mut said = format!(
        "`{path}`: lines {}-{last}, {size} bytes, {encoding}, larger than 1 MiB: read it by page; it can't be \
         edited\n\n",
        page.offset
    );
    shown.write(&mut said, last, more.then_some(last + 1));
    Ok(said)
}

/// What fits of a text.
struct Shown<'a> {
    text: &'a str,
    lines: u64,
    /// Bytes of the text that the lines shown take up, cut ends included.
    taken: usize,
    /// Whether the only line is shown without its end.
    cut: bool,
}

impl<'a> Shown<'a> {
    fn of(text: &'a str, page: Page) -> Self {
        let (mut taken, mut lines) = (0, 0);
        for line in text.split_inclusive('\n').take(page.lines()) {
            if taken + line.len() > OUTPUT_LIMIT {
                break;
            }
            taken += line.len();
            lines += 1;
        }
        if lines > 0 {
            return Self { text: &text[..taken], lines, taken, cut: false };
        }
        let first = text.split_inclusive('\n').next().unwrap_or("");
        Self { text: cut(first, OUTPUT_LIMIT), lines: 1, taken: first.len(), cut: true }
    }

    fn write(&self, said: &mut String, line: u64, next: Option<u64>) {
        said.push_str(self.text);
        if !said.ends_with('\n') {
            said.push('\n');
        }
        if self.cut {
            let shown = self.text.len();
            writeln!(said, "[truncated: line {line} is longer; only its first {shown} bytes are shown]")
                .expect("a string takes all");
        }
        if let Some(next) = next {
            writeln!(said, "[truncated: go on with offset {next}]").expect("a string takes all");
        }
        // The result ends with text, not with an empty line of ours.
        said.truncate(said.trim_end_matches('\n').len());
    }
}

fn binary(path: &str) -> String {
    refusal(Reason::Binary, &format!("`{path}` is not a text file"), "")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use alisio_host::workspace::Resolved;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test lays out a file")]
    fn a_page_that_is_too_far_away_is_given_up() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("log"), "text\n".repeat(300_000)).expect("written");
        let workspace = Workspace::open(folder.path()).expect("it is there");
        let Ok(Resolved::Inside(located)) = workspace.resolve("log", Access::Read) else { panic!("inside") };
        let page = |offset| Page { offset, limit: 1 };
        let with =
            |limit, offset| read(&located, page(offset), &Deadline::lasting(limit, CancellationToken::new()));
        assert!(
            with(Duration::from_secs(60), 299_999)
                .expect("found")
                .ends_with("\n\ntext\n[truncated: go on with offset 300000]")
        );
        let error = with(Duration::ZERO, 299_999).expect_err("there is no time");
        assert!(error.starts_with("`log` has 1500000 bytes, and line 299999 was not reached"), "{error}");
        // The first page needs no search.
        assert!(with(Duration::ZERO, 1).is_ok());
    }
}
