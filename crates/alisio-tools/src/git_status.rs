//! `git_status`: what changed in the working tree, by `git status --porcelain=v1`.

use std::sync::Arc;

use alisio_host::process::Processes;
use alisio_host::workspace::Workspace;
use alisio_protocol::{Effect, ToolCall, ToolSpec};
use alisio_sdk::{InputError, Prepared, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::{parse, spec};
use crate::git::GitCall;

/// Says what changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {}

pub(crate) struct GitStatus {
    workspace: Arc<Workspace>,
    processes: Processes,
    spec: ToolSpec,
}

impl GitStatus {
    pub(crate) fn new(workspace: Arc<Workspace>, processes: Processes) -> Self {
        let spec = spec::<Input>(
            "git_status",
            Effect::Read,
            "Lists what changed in the workspace: git status --porcelain=v1, paths from the top of the repository. \
             Nothing that the repository configures is run, so filters (LFS) don't apply and changes inside \
             submodules don't show.",
        );
        Self { workspace, processes, spec }
    }
}

impl Tool for GitStatus {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let Input {} = parse(&self.spec, call)?;
        let arguments =
            ["status", "--porcelain=v1", "--ignore-submodules=dirty", "--", "."].map(Into::into).into();
        let when_empty = "nothing changed: the working tree is clean";
        let (workspace, processes) = (&self.workspace, &self.processes);
        Ok(Box::new(GitCall::new(&self.spec, call, workspace, processes, arguments, when_empty)))
    }
}
