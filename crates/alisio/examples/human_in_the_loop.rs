//! A program that embeds the engine and answers for a person: no installs, everything else once.
//!
//! ```sh
//! cargo run --example human_in_the_loop
//! ```
//!
//! The model is scripted, so that nothing but this file is needed; put `alisio_providers::OpenAiCompatible` in its place
//! for a real one.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;

use alisio_conformance::{Scenario, ScriptedProvider};
use alisio_engine::{Approvals, Cancel, Clock, Engine, Limits, OpenSession, Operator, Prompt, Registry};
use alisio_host::instructions::InstructionFiles;
use alisio_host::process::{Options, Processes, environment};
use alisio_host::supervisor;
use alisio_host::workspace::Workspace;
use alisio_policy::{Answering, Authority, Issuer};
use alisio_protocol::{Answer, Approval, EventKind, RunId, SessionId, UserMessage};
use alisio_sdk::Provider;
use alisio_store::{Loaded, NewSession, Store};
use serde_json::json;

/// Says what a person would: no package installs in this run.
fn on_permission(request: &Approval) -> Result<Answer, Infallible> {
    println(&format!("{}: {}", request.tool, request.target));
    let installs = ["pip install", "npm install", "apt install"];
    if installs.iter().any(|install| request.target.contains(install)) {
        return Ok(Answer::Reject { feedback: Some("No installs in this run.".into()) });
    }
    Ok(Answer::Once)
}

fn main() -> ExitCode {
    // Every process that a tool starts is started, and ended, by a copy of this program.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == supervisor::ARGUMENT) {
        return supervisor::main();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().canonicalize()?;
    let store = Store::open(&workspace.join("state/sessions.sqlite"))?;
    let scenario: Scenario = json!({"turns": [
        {"calls": [{"name": "shell", "arguments": {"command": "pip install requests"}}]},
        {"expect": {"toolContains": "No installs in this run."},
         "calls": [{"name": "shell", "arguments": {"command": "echo 'print(42)' > answer.py && cat answer.py"}}]},
        {"expect": {"toolContains": "print(42)"}, "text": "Done with the standard library."}
    ]})
    .to_string()
    .parse()?;
    let provider = Arc::new(ScriptedProvider::new(scenario));
    let instructions = Arc::new(InstructionFiles::new(&workspace, &workspace, 32_768, false));
    let processes = Processes::new(Options {
        supervisor: vec![std::env::current_exe()?.into(), supervisor::ARGUMENT.into()],
        environment: environment(std::env::vars_os(), None),
        adopt_strays: true,
    });
    let tools = alisio_tools::builtin(alisio_tools::ToolHost {
        workspace: Arc::new(Workspace::open(&workspace)?),
        processes,
        instructions: instructions.clone(),
    });
    let engine = Engine {
        provider: provider.clone(),
        registry: Registry::new(tools),
        instructions,
        issuer: Issuer::new(),
        approvals: Some(Approvals::listen(&store, None)?),
        clock: Clock::System,
    };
    let session = NewSession {
        id: SessionId::new("human-in-the-loop"),
        workspace: workspace.clone(),
        provider: provider.id().to_owned(),
        model: "scripted".to_owned(),
        agent: None,
        created_at: Clock::System.stamp(),
    };
    store.create_session(&session)?;
    let opened = OpenSession {
        writer: store.lock(&session.id)?,
        loaded: Loaded::default(),
        provider: session.provider.clone(),
        model: session.model.clone(),
    };
    let prompt = Prompt {
        run_id: RunId::new("run-1"),
        request_id: None,
        correlation_id: None,
        message: UserMessage { text: "Do the task".into(), ..UserMessage::default() },
        workspace,
        spill_folder: store.spill_folder(&session.id)?,
        model: session.model,
        authority: Authority { answering: Answering::Person, ..Authority::headless() },
        limits: Limits::default(),
        cancel: Cancel::new(),
    };
    let operator = Operator::new(store, Clock::System);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(engine.run_with(
        opened,
        prompt,
        &operator,
        |event| {
            if let EventKind::TextDelta { delta } = &event.kind {
                print(delta);
            }
        },
        on_permission,
    ))?;
    anyhow::ensure!(
        outcome.error.is_none() && provider.failures().is_empty(),
        "the run did not go as it should"
    );
    Ok(())
}

fn println(text: &str) {
    print(&format!("{text}\n"));
}

fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}
