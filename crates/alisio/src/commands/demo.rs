//! `alisio demo`: the whole loop on a scratch repository, with a scripted model.
//!
//! Only the model is scripted. The run loop, the tools, the gate, the ledger and the processes are the ones that every
//! other run uses; even `git init` passes the gate.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alisio_conformance::{Scenario, ScriptedProvider};
use alisio_engine::{Cancel, Clock, Limits, OpenSession, Prompt};
use alisio_policy::Authority;
use alisio_protocol::{Effect, Event, EventKind, RunId, SessionId, UserMessage};
use alisio_sdk::Provider;
use alisio_store::config::Config;
use alisio_store::{Loaded, NewSession, RunStatus};

use crate::app::{App, EngineParts};
use crate::args::DemoArgs;
use crate::commands::doctor::find_program;
use crate::commands::run::surface;
use crate::drive::drive;
use crate::error::{CommandError, Exit};
use crate::output::{Surface, harmless};
use crate::services;

const SCENARIO: &str = include_str!("../demo/scenario.json");
const FILES: [(&str, &str); 2] =
    [("total.sh", include_str!("../demo/total.sh")), ("test.sh", include_str!("../demo/test.sh"))];
const PROMPT: &str = "The test of this little program fails. Find out why, mend it, and show me the change.";

/// Runs the command.
pub fn run(mut app: App, args: DemoArgs) -> Result<Exit, CommandError> {
    if find_program(&app, "git").is_none() {
        return Err(CommandError::usage("the demo works on a git repository, and git was not found in PATH")
            .hint("install git (Debian, Ubuntu: apt install git; macOS: xcode-select --install) and run it again"));
    }
    app.workspace = scratch(args.keep)?;
    let scenario: Scenario = SCENARIO
        .parse()
        .map_err(|error| CommandError::failed(format!("the demo's own script can't be read: {error}")))?;
    let provider = Arc::new(ScriptedProvider::new(scenario));
    if !app.global.json && !app.global.quiet {
        introduce(&app.workspace)?;
    }
    let mut authority = Authority::headless();
    authority.flags = [Effect::Write, Effect::Process].into_iter().collect();
    let store = app.store()?;
    let session = NewSession {
        id: SessionId::new(uuid::Uuid::now_v7().to_string()),
        workspace: app.workspace.clone(),
        provider: Provider::id(provider.as_ref()).to_owned(),
        model: "scripted".to_owned(),
        agent: None,
        created_at: Clock::System.stamp(),
    };
    store.create_session(&session)?;
    let writer = store.lock(&session.id)?;
    let spill_folder = store.spill_folder(&session.id)?;
    let config = Config::default();
    let engine = app.engine(EngineParts {
        config: &config,
        provider: provider.clone(),
        authority: &authority,
        spill_folder: &spill_folder,
    })?;
    let opened = OpenSession {
        writer,
        loaded: Loaded::default(),
        provider: session.provider,
        model: session.model.clone(),
    };
    let prompt = Prompt {
        run_id: RunId::new(uuid::Uuid::now_v7().to_string()),
        request_id: None,
        correlation_id: None,
        message: UserMessage { text: PROMPT.to_owned(), ..UserMessage::default() },
        workspace: app.workspace.clone(),
        spill_folder,
        model: session.model,
        authority,
        limits: Limits::default(),
        cancel: Cancel::new(),
    };
    let json = app.global.json;
    let mut surface = WithOutput { inner: surface(&app), shows: !json && !app.global.quiet };
    let (outcome, exit) = drive(&engine, opened, prompt, &store, &mut surface)?;
    let failures = provider.failures();
    if outcome.status != RunStatus::Completed || !failures.is_empty() {
        let what = outcome.error.unwrap_or_else(|| failures.join("; "));
        return Err(CommandError::failed(format!("the demo did not go as it should: {what}")).hint(
            "this is a fault in Alisio or in this machine's git or sh; `alisio doctor` may tell more",
        ));
    }
    if !app.global.quiet {
        conclude(&app, &session.id, store.state_root())?;
    }
    Ok(exit)
}

/// Makes the scratch folder with the small program.
fn scratch(keep: Option<PathBuf>) -> Result<PathBuf, CommandError> {
    let folder = match keep {
        Some(folder) => {
            std::fs::create_dir(&folder).map_err(|error| {
                CommandError::usage(format!("`{}` can't be made: {error}", folder.display()))
            })?;
            folder
        }
        None => tempfile::Builder::new().prefix("alisio-demo-").tempdir()?.keep(),
    };
    for (name, text) in FILES {
        #[expect(
            clippy::disallowed_methods,
            reason = "the demo makes its own scratch folder; nothing of the user's is there"
        )]
        std::fs::write(folder.join(name), text)?;
    }
    Ok(folder.canonicalize()?)
}

fn introduce(workspace: &Path) -> Result<(), CommandError> {
    let mut err = anstream::stderr();
    writeln!(
        err,
        "\x1b[1mAlisio demo\x1b[0m: the model is scripted; the run loop, the gate, the tools and git are real."
    )?;
    writeln!(err, "Workspace: {} (writes and programs are allowed in this run)", workspace.display())?;
    writeln!(err, "\n\x1b[1m> {PROMPT}\x1b[0m\n")?;
    Ok(())
}

fn conclude(app: &App, session: &SessionId, state: &Path) -> Result<(), CommandError> {
    let mut err = anstream::stderr();
    writeln!(err, "\nThe session is stored in {}:", state.display())?;
    writeln!(err, "  alisio sessions show {session} --cwd {}", app.workspace.display())?;
    writeln!(err, "\nNow with a real model:")?;
    let found = services::find(&app.env);
    match found.first() {
        Some(service) => writeln!(err, "  alisio setup                    (found: {})", service.name)?,
        None => {
            writeln!(err, "  export OPENAI_API_KEY=…         (or start a local server, for example Ollama)")?;
            writeln!(err, "  alisio setup")?;
        }
    }
    writeln!(err, "  alisio run \"what does this repository do?\"")?;
    Ok(())
}

/// Also shows what processes print and what changed: in a demonstration that is the point.
struct WithOutput {
    inner: Box<dyn Surface>,
    shows: bool,
}

impl Surface for WithOutput {
    fn event(&mut self, event: &Event) -> std::io::Result<()> {
        self.inner.event(event)?;
        let EventKind::ToolCompleted { name, preview, is_error, .. } = &event.kind else { return Ok(()) };
        // A failure shows its output anyway.
        if self.shows && !is_error && matches!(name.as_str(), "run_process" | "git_diff") {
            self.inner.flush()?;
            let mut err = anstream::stderr();
            for line in preview.lines() {
                let colour = match line.as_bytes().first() {
                    Some(b'+') => "\x1b[32m",
                    Some(b'-') => "\x1b[31m",
                    _ => "",
                };
                writeln!(err, "    {colour}{}\x1b[0m", harmless(line))?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }

    fn end(&mut self, outcome: &alisio_engine::Outcome, lines: &[String]) -> std::io::Result<()> {
        self.inner.end(outcome, lines)
    }
}
