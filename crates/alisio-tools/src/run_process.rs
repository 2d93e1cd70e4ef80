//! `run_process`: runs a program with an argument array, without a shell in between.

use std::sync::Arc;

use alisio_host::process::{Processes, Program};
use alisio_host::workspace::Workspace;
use alisio_protocol::{Effect, ToolCall, ToolSpec};
use alisio_sdk::{InputError, Prepared, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::{parse, spec};
use crate::command;

/// Runs a program.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The program: a name that is searched in PATH, or a path (relative ones count from `cwd`).
    command: String,
    /// Its arguments, passed as they are: nothing is expanded.
    #[serde(default)]
    args: Vec<String>,
    /// The working directory; the workspace when left out.
    cwd: Option<String>,
    /// Wall time in milliseconds after which the program is ended; 120000 when left out, at most 3600000.
    timeout_ms: Option<u64>,
}

pub(crate) struct RunProcess {
    workspace: Arc<Workspace>,
    processes: Processes,
    spec: ToolSpec,
}

impl RunProcess {
    pub(crate) fn new(workspace: Arc<Workspace>, processes: Processes) -> Self {
        let spec = spec::<Input>(
            "run_process",
            Effect::Process,
            "Runs a program with an argument array, without a shell. There is no input and no terminal. The call is \
             over when the program exits; whatever it left running is ended then. The result is the exit code, \
             standard output, then standard error; long output is cut in its middle and kept in a file that read_file \
             pages.",
        );
        Self { workspace, processes, spec }
    }
}

impl Tool for RunProcess {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let input: Input = parse(&self.spec, call)?;
        if input.command.is_empty() {
            return Err(InputError("`command` is empty".into()));
        }
        let program = Program::Argv([input.command].into_iter().chain(input.args).map(Into::into).collect());
        let cwd = input.cwd.as_deref();
        command::prepare(&self.spec, call, &self.workspace, &self.processes, program, cwd, input.timeout_ms)
    }
}
