//! `shell`: runs a script in a shell.

use std::sync::Arc;

use alisio_host::process::{Processes, Program};
use alisio_host::workspace::Workspace;
use alisio_protocol::{Effect, ToolCall, ToolSpec};
use alisio_sdk::{InputError, Prepared, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::{parse, spec};
use crate::command;

/// Runs a script.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The command line or script.
    command: String,
    /// The working directory; the workspace when left out.
    cwd: Option<String>,
    /// Wall time in milliseconds after which the command is ended; 120000 when left out, at most 3600000.
    timeout_ms: Option<u64>,
}

pub(crate) struct Shell {
    workspace: Arc<Workspace>,
    processes: Processes,
    spec: ToolSpec,
}

impl Shell {
    pub(crate) fn new(workspace: Arc<Workspace>, processes: Processes) -> Self {
        let spec = spec::<Input>(
            "shell",
            Effect::Process,
            "Runs a shell command (bash where there is one). There is no input and no terminal. The call is over when \
             the command exits; whatever it left running in the background is ended then. The result is the exit \
             code, standard output, then standard error; long output is cut in its middle and kept in a file that \
             read_file pages.",
        );
        Self { workspace, processes, spec }
    }
}

impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let input: Input = parse(&self.spec, call)?;
        if input.command.trim().is_empty() {
            return Err(InputError("`command` is empty".into()));
        }
        let program = Program::Shell(input.command);
        let cwd = input.cwd.as_deref();
        command::prepare(&self.spec, call, &self.workspace, &self.processes, program, cwd, input.timeout_ms)
    }
}
