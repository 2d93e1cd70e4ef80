//! `search_text`: searches the files of a tree in process, on ripgrep's libraries.
//!
//! The walk runs on several threads, yet the result is always the same: of all matches the first ones by path are
//! kept, and a file that comes after the last one kept is not opened once there are enough.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use alisio_host::workspace::{Access, Kind, Located, Reason, Workspace};
use alisio_protocol::{Effect, ToolCall, ToolResult, ToolSpec};
use alisio_sdk::{InputError, Prepared, Tool};
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::WalkState;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::call::{OUTPUT_LIMIT, file_refusal, parse, plan, resolve, spec};
use crate::example::{Example, Expected};
use crate::walk::{self, Deadline};

/// Searches files.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// What to look for within a line: a regular expression in Rust's syntax (no look-around, no back-references), or
    /// plain text with literal.
    pattern: String,
    /// The directory or file: relative to the workspace, or absolute. The workspace itself when left out.
    path: Option<String>,
    /// Only files that match, relative to path: `*.rs`, `src/**/*.ts`; `!*.md` leaves files out.
    glob: Option<String>,
    /// Whether upper and lower case are the same; false when left out.
    ignore_case: Option<bool>,
    /// Whether the pattern is plain text; false when left out.
    literal: Option<bool>,
    /// Lines to show before and after each match: none when left out, at most 20.
    #[schemars(range(max = 20))]
    context: Option<u32>,
    /// The most matches to show: 200 when left out, at most 1000.
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<u32>,
}

const DEFAULT_RESULTS: u32 = 200;
const MOST_RESULTS: u32 = 1000;
const MOST_CONTEXT: u32 = 20;

/// Bytes shown of a line.
const LINE_LIMIT: usize = 400;

/// A line longer than this is not searched, so that a file without line ends can't take all memory.
const HEAP_LIMIT: usize = 64 * 1024 * 1024;

pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        tool: "search_text",
        title: "search the workspace",
        files: &[
            ("a.rs", "fn one() {}\nfn two() {}\n"),
            ("b/c.rs", "one();\n"),
            (".ignore", "d.rs\n"),
            ("d.rs", "one"),
        ],
        input: r#"{"pattern": "\\bone\\b"}"#,
        expected: Expected::Text("a.rs:1: fn one() {}\nb/c.rs:1: one();\n[2 matches in 2 files]"),
    },
    Example {
        tool: "search_text",
        title: "plain text with the lines around it",
        files: &[("a.txt", "one\ntwo (2)\nthree\n")],
        input: r#"{"pattern": "(2)", "literal": true, "context": 1}"#,
        expected: Expected::Text("a.txt-1- one\na.txt:2: two (2)\na.txt-3- three\n[1 match in 1 file]"),
    },
    Example {
        tool: "search_text",
        title: "nothing found",
        files: &[("a.txt", "one\n")],
        input: r#"{"pattern": "two", "glob": "*.txt"}"#,
        expected: Expected::Text("[no matches]"),
    },
    Example {
        tool: "search_text",
        title: "a place that is not there",
        files: &[],
        input: r#"{"pattern": "a", "path": "nowhere"}"#,
        expected: Expected::Refused(Reason::NotFound),
    },
];

pub(crate) struct SearchText {
    workspace: Arc<Workspace>,
    spec: ToolSpec,
}

impl SearchText {
    pub(crate) fn new(workspace: Arc<Workspace>) -> Self {
        let spec = spec::<Input>(
            "search_text",
            Effect::Read,
            "Searches text files line by line with a regular expression; results are sorted by path. Hidden files, \
             binary files and files that .gitignore or .ignore name are left out, as ripgrep does; links are not \
             followed.",
        );
        Self { workspace, spec }
    }
}

impl Tool for SearchText {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let input: Input = parse(&self.spec, call)?;
        let results = input.max_results.unwrap_or(DEFAULT_RESULTS);
        let context = input.context.unwrap_or(0);
        if !(1..=MOST_RESULTS).contains(&results) || context > MOST_CONTEXT {
            return Err(InputError(format!(
                "`maxResults` is 1 to {MOST_RESULTS}, and `context` is 0 to {MOST_CONTEXT}"
            )));
        }
        let matcher = matcher(&input)?;
        let target = resolve(&self.workspace, input.path.as_deref().unwrap_or("."), Access::Read)?;
        let (paths, outside) = (vec![target.absolute().to_owned()], target.outside());
        let wanted = Wanted { matcher, context: context as usize, results: results as usize };
        Ok(plan(&self.spec, call, paths, outside, move |_, context| {
            target
                .locate()
                .map_err(|error| file_refusal(&error))
                .and_then(|located| search(&located, &wanted, input.glob.as_deref(), context.cancel))
                .map_or_else(ToolResult::error, ToolResult::text)
        }))
    }
}

fn matcher(input: &Input) -> Result<RegexMatcher, InputError> {
    if input.pattern.is_empty() {
        return Err(InputError("`pattern` is empty".to_owned()));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .fixed_strings(input.literal.unwrap_or(false))
        .case_insensitive(input.ignore_case.unwrap_or(false));
    // `$` must also stand before CRLF; the mode costs time, so only where it can matter.
    if input.pattern.contains('$') {
        builder.crlf(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| {
        // The matcher's own message shows the pattern as it wrapped it, not as it was written.
        let said = match regex_syntax::parse(&input.pattern) {
            Err(said) if !input.literal.unwrap_or(false) => said.to_string(),
            _ => error.to_string(),
        };
        InputError(format!(
            "`pattern` is not a valid regular expression: {said}\nhint: matches lie within a line; pass literal: true \
             for plain text"
        ))
    })
}

/// What is looked for.
struct Wanted {
    matcher: RegexMatcher,
    context: usize,
    results: usize,
}

/// A line of the result.
struct Line {
    is_match: bool,
    text: String,
}

/// Lines of one file, in order.
struct FileLines {
    lines: Vec<Line>,
    matches: usize,
}

/// The first matches by path that were met so far: one more than wanted, so that it shows whether there are more.
#[derive(Default)]
struct Best {
    files: BTreeMap<PathBuf, FileLines>,
    matches: usize,
}

impl Best {
    /// Adds a file and drops what is no longer among the first `most` matches.
    fn add(&mut self, path: PathBuf, file: FileLines, most: usize) {
        self.matches += file.matches;
        self.files.insert(path, file);
        while let Some(last) = self.files.last_entry() {
            if self.matches - last.get().matches < most {
                break;
            }
            self.matches -= last.remove().matches;
        }
    }

    /// Whether nothing at or below `path` can be among the first `most` matches.
    fn rules_out(&self, path: &Path, most: usize) -> bool {
        self.matches >= most && self.files.last_key_value().is_some_and(|(last, _)| path > last.as_path())
    }
}

/// What the threads of one search share.
struct Shared<'a> {
    located: &'a Located,
    wanted: &'a Wanted,
    deadline: Deadline,
    best: Mutex<Best>,
    /// Whether there are enough matches for `best` to rule files out; saves the lock before that.
    enough: AtomicBool,
    over: AtomicBool,
    binary: AtomicUsize,
    unreadable: AtomicUsize,
}

fn search(
    located: &Located,
    wanted: &Wanted,
    glob: Option<&str>,
    cancel: CancellationToken,
) -> Result<String, String> {
    let kind = located.kind().map_err(|error| file_refusal(&error))?;
    let shared = Shared {
        located,
        wanted,
        deadline: Deadline::new(cancel),
        best: Mutex::default(),
        enough: AtomicBool::new(false),
        over: AtomicBool::new(false),
        binary: AtomicUsize::new(0),
        unreadable: AtomicUsize::new(0),
    };
    match kind {
        // A file that is named is searched, whatever the ignore rules say of it.
        Kind::File => {
            shared.search_file(&mut shared.searcher(), located.absolute());
        }
        Kind::Directory => shared.search_tree(glob)?,
    }
    if shared.deadline.is_cancelled() {
        return Err("the search was cancelled".to_owned());
    }
    Ok(shared.said())
}

impl Shared<'_> {
    fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        if let Some(end) = self.wanted.matcher.line_terminator() {
            builder.line_terminator(end);
        }
        builder
            .line_number(true)
            .before_context(self.wanted.context)
            .after_context(self.wanted.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_LIMIT))
            .build()
    }

    fn search_tree(&self, glob: Option<&str>) -> Result<(), String> {
        let threads = std::thread::available_parallelism().map_or(2, |threads| threads.get().clamp(2, 12));
        let (mut builder, left_out) = walk::builder(self.located, glob)?;
        let walk = builder.threads(threads).build_parallel();
        walk.run(|| {
            let mut searcher = self.searcher();
            Box::new(move |entry| {
                if self.over.load(Ordering::Relaxed) || self.deadline.is_over() {
                    self.over.store(true, Ordering::Relaxed);
                    return WalkState::Quit;
                }
                let Ok(entry) = entry else {
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                    return WalkState::Continue;
                };
                if self.rules_out(entry.path()) {
                    return WalkState::Skip;
                }
                if entry.file_type().is_some_and(|kind| kind.is_file()) {
                    self.search_file(&mut searcher, entry.path());
                }
                WalkState::Continue
            })
        });
        self.unreadable.fetch_add(left_out.count(), Ordering::Relaxed);
        Ok(())
    }

    fn most(&self) -> usize {
        self.wanted.results + 1
    }

    fn rules_out(&self, path: &Path) -> bool {
        self.enough.load(Ordering::Relaxed)
            && self.best.lock().unwrap_or_else(PoisonError::into_inner).rules_out(path, self.most())
    }

    fn search_file(&self, searcher: &mut Searcher, path: &Path) {
        let Some(file) = self.located.open_below(path) else {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mut sink = FileSink { shared: self, path, lines: Vec::new(), matches: 0, is_binary: false };
        let file = Guarded { file, deadline: &self.deadline };
        match searcher.search_reader(&self.wanted.matcher, file, &mut sink) {
            Ok(()) if sink.is_binary => {
                self.binary.fetch_add(1, Ordering::Relaxed);
            }
            Ok(()) if sink.matches > 0 => {
                let FileSink { lines, matches, .. } = sink;
                let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
                best.add(path.to_owned(), FileLines { lines, matches }, self.most());
                if best.matches >= self.most() {
                    self.enough.store(true, Ordering::Relaxed);
                }
            }
            Ok(()) => {}
            Err(_) if self.deadline.is_over() => self.over.store(true, Ordering::Relaxed),
            Err(_) => {
                self.unreadable.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Puts the result together.
    fn said(self) -> String {
        let best = self.best.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut text, mut matches, mut files) = (String::new(), 0, 0);
        let mut truncated = false;
        'files: for file in best.files.values() {
            if self.wanted.context > 0 && !text.is_empty() {
                text.push_str("--\n");
            }
            files += 1;
            for line in &file.lines {
                let too_many = line.is_match && matches == self.wanted.results;
                if too_many || text.len() + line.text.len() > OUTPUT_LIMIT {
                    truncated = true;
                    break 'files;
                }
                matches += usize::from(line.is_match);
                text.push_str(&line.text);
            }
        }
        let plural = |count: usize, one: &str, many: &str| {
            if count == 1 { format!("{count} {one}") } else { format!("{count} {many}") }
        };
        if truncated {
            write!(
                text,
                "[truncated: only the first {} are shown; narrow it with path, glob or pattern]",
                plural(matches, "match", "matches")
            )
        } else if matches == 0 {
            write!(text, "[no matches]")
        } else {
            write!(text, "[{} in {}]", plural(matches, "match", "matches"), plural(files, "file", "files"))
        }
        .expect("a string takes all");
        // How many were met depends on the order of the walk once files are ruled out, so it is not said then.
        let (binary, unreadable) = (self.binary.into_inner(), self.unreadable.into_inner());
        if !truncated && binary > 0 {
            write!(text, "\n[{} skipped]", plural(binary, "binary file", "binary files"))
                .expect("a string takes all");
        }
        if !truncated && unreadable > 0 {
            write!(text, "\n[{} could not be read]", plural(unreadable, "entry", "entries"))
                .expect("a string takes all");
        }
        if self.over.into_inner() {
            write!(text, "\n{}", walk::out_of_time()).expect("a string takes all");
        }
        text
    }
}

/// Takes the lines of one file.
struct FileSink<'a> {
    shared: &'a Shared<'a>,
    path: &'a Path,
    lines: Vec<Line>,
    matches: usize,
    is_binary: bool,
}

impl FileSink<'_> {
    /// Adds a line, cut so that what matched stays in sight.
    fn push(&mut self, is_match: bool, number: Option<u64>, bytes: &[u8]) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let path = walk::shown(self.shared.located, self.path);
        let number = number.unwrap_or(0);
        let mark = if is_match { ':' } else { '-' };
        let mut text = format!("{path}{mark}{number}{mark} ");
        if bytes.len() <= LINE_LIMIT {
            text.push_str(&String::from_utf8_lossy(bytes));
        } else {
            let found = if is_match { self.shared.wanted.matcher.find(bytes).ok().flatten() } else { None };
            let start = found.map_or(0, |found| found.start().saturating_sub(LINE_LIMIT / 4));
            let window = &bytes[start..bytes.len().min(start + LINE_LIMIT)];
            if start > 0 {
                text.push('…');
            }
            text.push_str(&String::from_utf8_lossy(window));
            write!(text, "… [of {} bytes]", bytes.len()).expect("a string takes all");
        }
        text.push('\n');
        self.lines.push(Line { is_match, text });
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        self.push(true, found.line_number(), found.bytes());
        Ok(self.matches < self.shared.most())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if !matches!(context.kind(), SinkContextKind::Other) {
            self.push(false, context.line_number(), context.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.lines.push(Line { is_match: false, text: "--\n".to_owned() });
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

/// Reads a file until the search is over, so that one huge file can't outlast the time limit.
struct Guarded<'a> {
    file: File,
    deadline: &'a Deadline,
}

impl Read for Guarded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.is_over() {
            return Err(io::Error::other("the search is over"));
        }
        self.file.read(buffer)
    }
}
