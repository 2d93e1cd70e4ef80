//! The tools that start processes, with a real supervisor, real programs and real repositories.
#![expect(clippy::disallowed_methods, reason = "the tests make repositories with git and files of their own")]
#![cfg(target_os = "linux")]

mod benign;
mod hostile;
mod programs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use alisio_host::process::{Options, Processes, environment};
use alisio_host::supervisor;
use alisio_host::workspace::Workspace;
use alisio_policy::{Basis, Issuer, LedgerSink, RecordError, Request, Verdict};
use alisio_protocol::{CallId, Sha256, ToolCall, ToolResult, VerdictSource};
use alisio_sdk::{InputError, Progress, ToolContext};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(supervisor::ARGUMENT) {
        return supervisor::main();
    }
    let arguments = libtest_mimic::Arguments::from_args();
    let tests: [(&str, fn()); _] = [
        ("programs::results_tell_what_happened", programs::results_tell_what_happened),
        ("programs::inputs_are_strict", programs::inputs_are_strict),
        ("programs::long_output_is_cut_and_kept", programs::long_output_is_cut_and_kept),
        ("programs::output_is_shown_while_it_comes", programs::output_is_shown_while_it_comes),
        ("programs::the_request_names_what_runs", programs::the_request_names_what_runs),
        ("programs::what_was_not_shown_does_not_run", programs::what_was_not_shown_does_not_run),
        ("hostile::no_code_of_a_repository_runs", hostile::no_code_of_a_repository_runs),
        ("hostile::nothing_of_another_repository_shows", hostile::nothing_of_another_repository_shows),
        ("hostile::a_pipe_holds_nobody_up", hostile::a_pipe_holds_nobody_up),
        ("hostile::a_device_takes_no_memory", hostile::a_device_takes_no_memory),
        ("hostile::git_is_never_taken_from_the_workspace", hostile::git_is_never_taken_from_the_workspace),
        ("benign::answers_equal_those_of_plain_git", benign::answers_equal_those_of_plain_git),
        ("benign::what_is_no_working_tree_is_named", benign::what_is_no_working_tree_is_named),
        ("benign::paths_limit_a_diff", benign::paths_limit_a_diff),
    ];
    let trials = tests.map(|(name, test)| {
        libtest_mimic::Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

struct NoLedger;

impl LedgerSink for NoLedger {
    fn record(&self, _: &Verdict) -> Result<(), RecordError> {
        Ok(())
    }
}

/// A workspace with the tools on it.
struct Bench {
    folder: tempfile::TempDir,
    workspace: PathBuf,
    processes: Processes,
    shown: Arc<Mutex<Vec<Value>>>,
}

impl Bench {
    fn new() -> Self {
        Self::with_path(&std::env::var("PATH").unwrap_or_default())
    }

    /// With another `PATH` for what the tools start.
    fn with_path(path: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = folder.path().canonicalize().expect("it exists").join("workspace");
        std::fs::create_dir(&workspace).expect("a new folder");
        let executable = std::env::current_exe().expect("this executable");
        let mut environment = environment(std::env::vars_os(), None);
        environment.retain(|(name, _)| name != "PATH");
        environment.push(("PATH".into(), path.replace("$WORKSPACE", &workspace.to_string_lossy()).into()));
        let supervisor = vec![executable.into(), supervisor::ARGUMENT.into()];
        let processes = Processes::new(Options { supervisor, environment, adopt_strays: false });
        Self { folder, workspace, processes, shown: Arc::default() }
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("it exists")
    }

    fn at(&self, directory: &Path) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            workspace: directory.to_owned(),
            processes: self.processes.clone(),
            shown: Arc::default(),
        }
    }

    /// Calls a tool; `change` may tamper with what was decided on.
    fn try_call(&self, name: &str, input: &str, change: fn(&mut Request)) -> Result<ToolResult, InputError> {
        let workspace = Arc::new(Workspace::open(&self.workspace).expect("the workspace"));
        let tools = alisio_tools::commands(&workspace, &self.processes);
        let tool = tools.iter().find(|tool| tool.spec().name == name).expect("a tool of this name");
        let call = ToolCall { id: CallId::new("../call"), name: name.into(), arguments: input.into() };
        let prepared = tool.prepare(&call)?;
        let mut request = prepared.request();
        change(&mut request);
        let basis = Basis { source: VerdictSource::Flag, reason: "a test".into() };
        let permit = Issuer::new().record(request, Ok(basis), &NoLedger).expect("recorded").expect("allowed");
        let shown = Arc::clone(&self.shown);
        let context = ToolContext {
            call: call.id,
            cancel: CancellationToken::new(),
            progress: Progress::new(move |value| shown.lock().expect("no panic").push(value)),
            spill_folder: self.folder.path().join("outputs"),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Ok(runtime.block_on(prepared.run(permit, context)))
    }

    fn call(&self, name: &str, input: &str) -> ToolResult {
        self.try_call(name, input, |_| ()).unwrap_or_else(|error| ToolResult::error(error.to_string()))
    }

    fn text(&self, name: &str, input: &str) -> String {
        self.call(name, input).text_projection()
    }

    /// Runs a script in the workspace as the person who made it would.
    fn make(&self, script: &str, variables: &[(&str, &str)]) -> std::process::Output {
        let mut command = std::process::Command::new("bash");
        command.args(["-euc", script]).current_dir(&self.workspace).envs(variables.iter().copied());
        for (name, value) in [("NAME", "a"), ("EMAIL", "a@b")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        command.env("GIT_CONFIG_NOSYSTEM", "1").output().expect("bash starts")
    }
}

/// The folders of the gits of this machine, at most two different ones.
fn gits() -> Vec<String> {
    let mut found: Vec<(Sha256, String)> = Vec::new();
    let path = std::env::var("PATH").unwrap_or_default();
    for folder in path.split(':').chain(["/usr/local/bin", "/usr/bin"]) {
        if let Ok(bytes) = std::fs::read(Path::new(folder).join("git")) {
            let digest = Sha256::of(&bytes);
            if found.iter().all(|(other, _)| *other != digest) {
                found.push((digest, folder.to_owned()));
            }
        }
    }
    assert!(!found.is_empty(), "these tests need git");
    found.into_iter().map(|(_, folder)| folder).collect()
}
