//! `git_diff`: the changes themselves, by `git diff --no-ext-diff --no-textconv`.

use std::ffi::OsString;
use std::path::{Component, Path};
use std::sync::Arc;

use alisio_host::process::Processes;
use alisio_host::workspace::Workspace;
use alisio_protocol::{Effect, ToolCall, ToolSpec};
use alisio_sdk::{InputError, Prepared, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::{parse, spec};
use crate::git::GitCall;

/// Shows changes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Whether to show what is staged instead of what is not.
    staged: Option<bool>,
    /// A file or directory of the workspace to limit the diff to; it need not exist any more.
    path: Option<String>,
}

pub(crate) struct GitDiff {
    workspace: Arc<Workspace>,
    processes: Processes,
    spec: ToolSpec,
}

impl GitDiff {
    pub(crate) fn new(workspace: Arc<Workspace>, processes: Processes) -> Self {
        let spec = spec::<Input>(
            "git_diff",
            Effect::Read,
            "Shows the changes of tracked files in the workspace as a unified diff: those that are not staged, or the \
             staged ones. Nothing that the repository configures is run, so filters (LFS) don't apply and changes \
             inside submodules don't show. Untracked files: see git_status.",
        );
        Self { workspace, processes, spec }
    }
}

impl Tool for GitDiff {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let input: Input = parse(&self.spec, call)?;
        let mut arguments: Vec<OsString> = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--submodule=short",
            "--ignore-submodules=dirty",
        ]
        .map(Into::into)
        .into();
        if input.staged == Some(true) {
            arguments.push("--cached".into());
        }
        arguments.push("--".into());
        arguments.push(match &input.path {
            None => ".".into(),
            Some(path) => pathspec(self.workspace.root(), path)?,
        });
        let when_empty = if input.staged == Some(true) {
            "nothing is staged"
        } else {
            "no tracked file has changes that are not staged"
        };
        let (workspace, processes) = (&self.workspace, &self.processes);
        Ok(Box::new(GitCall::new(&self.spec, call, workspace, processes, arguments, when_empty)))
    }
}

/// Returns a path below the workspace; git takes it literally.
fn pathspec(root: &Path, input: &str) -> Result<OsString, InputError> {
    let relative = Path::new(input).strip_prefix(root).unwrap_or(Path::new(input));
    let is_below = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_below || input.is_empty() || input.contains('\0') {
        return Err(InputError(format!("`path`: `{input}` must be a path in the workspace, without `..`")));
    }
    Ok(if relative.as_os_str().is_empty() { ".".into() } else { relative.into() })
}
