//! `list_files`: lists the files of a tree, sorted.

use std::sync::Arc;

use alisio_host::workspace::{Access, Kind, Located, Reason, Workspace};
use alisio_protocol::{Effect, ToolCall, ToolResult, ToolSpec};
use alisio_sdk::{InputError, Prepared, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::call::{OUTPUT_LIMIT, file_refusal, parse, plan, resolve, spec};
use crate::example::{Example, Expected};
use crate::walk::{self, Deadline};

/// Lists files.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The directory: relative to the workspace, or absolute. The workspace itself when left out.
    path: Option<String>,
    /// Only files that match, relative to path: `*.rs`, `src/**/*.ts`; `!*.md` leaves files out.
    glob: Option<String>,
    /// How many levels to go down; directories at the last one are listed with a `/`. All levels when left out.
    #[schemars(range(min = 1))]
    depth: Option<u32>,
    /// The most entries to list: 1000 when left out, at most 5000.
    #[schemars(range(min = 1, max = 5000))]
    limit: Option<u32>,
}

const DEFAULT_LIMIT: u32 = 1000;
const MOST: u32 = 5000;

pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        tool: "list_files",
        title: "list the workspace",
        files: &[("b.txt", ""), ("a/c.rs", ""), (".hidden", ""), (".ignore", "b.txt\n")],
        input: "{}",
        expected: Expected::Text("a/c.rs\n[1 entry]"),
    },
    Example {
        tool: "list_files",
        title: "list one level",
        files: &[("b.txt", ""), ("a/c.rs", ""), ("a/d/e.rs", "")],
        input: r#"{"depth": 1}"#,
        expected: Expected::Text("a/\nb.txt\n[2 entries]"),
    },
    Example {
        tool: "list_files",
        title: "list by pattern",
        files: &[("b.txt", ""), ("a/c.rs", ""), ("a/d.txt", "")],
        input: r#"{"path": "a", "glob": "*.rs"}"#,
        expected: Expected::Text("a/c.rs\n[1 entry]"),
    },
    Example {
        tool: "list_files",
        title: "a directory that is not there",
        files: &[],
        input: r#"{"path": "nowhere"}"#,
        expected: Expected::Refused(Reason::NotFound),
    },
];

pub(crate) struct ListFiles {
    workspace: Arc<Workspace>,
    spec: ToolSpec,
}

impl ListFiles {
    pub(crate) fn new(workspace: Arc<Workspace>) -> Self {
        let spec = spec::<Input>(
            "list_files",
            Effect::Read,
            "Lists files, sorted, one a line. Hidden files and files that .gitignore or .ignore name are left out, as \
             ripgrep does; links are not followed.",
        );
        Self { workspace, spec }
    }
}

impl Tool for ListFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let Input { path, glob, depth, limit } = parse(&self.spec, call)?;
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if depth == Some(0) || !(1..=MOST).contains(&limit) {
            return Err(InputError(format!("`depth` counts from 1, and `limit` is 1 to {MOST}")));
        }
        let target = resolve(&self.workspace, path.as_deref().unwrap_or("."), Access::Read)?;
        let (paths, outside) = (vec![target.absolute().to_owned()], target.outside());
        Ok(plan(&self.spec, call, paths, outside, move |_, context| {
            target
                .locate()
                .map_err(|error| file_refusal(&error))
                .and_then(|located| list(&located, glob.as_deref(), depth, limit as usize, context.cancel))
                .map_or_else(ToolResult::error, ToolResult::text)
        }))
    }
}

fn list(
    located: &Located,
    glob: Option<&str>,
    depth: Option<u32>,
    limit: usize,
    cancel: CancellationToken,
) -> Result<String, String> {
    located.kind().map_err(|error| file_refusal(&error))?;
    let depth = depth.map(|depth| depth as usize);
    let (mut builder, left_out) = walk::builder(located, glob)?;
    builder.max_depth(depth).sort_by_file_name(std::ffi::OsStr::cmp);
    let deadline = Deadline::new(cancel);
    let (mut text, mut count, mut unreadable, mut note) = (String::new(), 0_usize, 0_usize, None);
    for entry in builder.build() {
        if deadline.is_over() {
            if deadline.is_cancelled() {
                return Err("listing was cancelled".to_owned());
            }
            note = Some(walk::out_of_time());
            break;
        }
        let Ok(entry) = entry else {
            unreadable += 1;
            continue;
        };
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        if is_directory && depth != Some(entry.depth()) {
            continue;
        }
        let mut shown = walk::shown(located, entry.path());
        match located.kind_below(entry.path()) {
            Some(Kind::File) => {}
            Some(Kind::Directory) if is_directory => shown.push('/'),
            _ => continue,
        }
        if count == limit || text.len() + shown.len() > OUTPUT_LIMIT {
            note = Some(format!(
                "[truncated: only the first {count} are listed; narrow it with path, glob or depth]"
            ));
            break;
        }
        count += 1;
        text.push_str(&shown);
        text.push('\n');
    }
    match note {
        Some(note) => text.push_str(&note),
        None if count == 0 => text.push_str("[no files; hidden and ignored ones are not listed]"),
        None if count == 1 => text.push_str("[1 entry]"),
        None => text.push_str(&format!("[{count} entries]")),
    }
    unreadable += left_out.count();
    if unreadable > 0 {
        text.push_str(&format!("\n[{unreadable} could not be read]"));
    }
    Ok(text)
}
