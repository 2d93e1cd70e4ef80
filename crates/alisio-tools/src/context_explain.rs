//! `context_explain`: which instruction files apply to a path.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use alisio_host::workspace::{Access, Workspace};
use alisio_protocol::{Effect, ToolCall, ToolResult, ToolSpec};
use alisio_sdk::{InputError, InstructionFile, InstructionKind, InstructionSource, Prepared, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::{parse, plan, resolve, spec};
use crate::example::{Example, Expected};

/// Explains instructions.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The file or directory: relative to the workspace, or absolute.
    path: String,
}

pub(crate) const EXAMPLES: &[Example] = &[Example {
    tool: "context_explain",
    title: "a path without instructions",
    files: &[("src/a.rs", "")],
    input: r#"{"path": "src/a.rs"}"#,
    expected: Expected::Text("no instruction file applies to `src/a.rs`"),
}];

pub(crate) struct ContextExplain {
    workspace: Arc<Workspace>,
    instructions: Arc<dyn InstructionSource>,
    spec: ToolSpec,
}

impl ContextExplain {
    pub(crate) fn new(workspace: Arc<Workspace>, instructions: Arc<dyn InstructionSource>) -> Self {
        let spec = spec::<Input>(
            "context_explain",
            Effect::Read,
            "Lists the instruction files (AGENTS.md and its kin) that apply to a path, the closest and strongest last.",
        );
        Self { workspace, instructions, spec }
    }
}

impl Tool for ContextExplain {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let Input { path } = parse(&self.spec, call)?;
        let target = resolve(&self.workspace, &path, Access::Read)?;
        let (absolute, outside) = (target.absolute().to_owned(), target.outside());
        let (workspace, instructions) = (Arc::clone(&self.workspace), Arc::clone(&self.instructions));
        let paths = vec![absolute.clone()];
        Ok(plan(&self.spec, call, paths, outside, move |_, _| {
            ToolResult::text(explain(&workspace, instructions.as_ref(), &absolute))
        }))
    }
}

fn explain(workspace: &Workspace, instructions: &dyn InstructionSource, path: &Path) -> String {
    let eager = instructions.eager();
    let applies =
        |file: &InstructionFile| file.scope.as_ref().is_none_or(|directory| path.starts_with(directory));
    let files: Vec<_> = eager.into_iter().filter(applies).chain(instructions.nested(path)).collect();
    let shown = workspace.display(path);
    if files.is_empty() {
        return format!("no instruction file applies to `{shown}`");
    }
    let mut text = format!("instruction files for `{shown}`, closest last:");
    for (index, file) in files.iter().enumerate() {
        let kind = match file.kind {
            InstructionKind::Override => "override",
            InstructionKind::Agents => "agents",
            InstructionKind::Legacy => "legacy",
            InstructionKind::Claude => "claude",
        };
        let scope = match &file.scope {
            Some(directory) => format!("for `{}`", workspace.display(directory)),
            None => "global".to_owned(),
        };
        let cut = if file.truncated { ", cut at the budget" } else { "" };
        let path = workspace.display(&file.path);
        write!(text, "\n{}. `{path}` ({kind}, {scope}{cut})", index + 1).expect("a string takes all");
    }
    text
}
