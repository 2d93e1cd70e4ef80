//! Drives one run from its prompt to its exit code: signals, surface, summary.
//!
//! `run`, `resume` and `demo` differ in what they hand over; what happens then is the same.

use std::io;
use std::path::Path;

use alisio_engine::{Cancel, Engine, OpenSession, Outcome, Prompt, RunError};
use alisio_protocol::SessionId;
use alisio_store::{RunStatus, Store};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::error::{CommandError, Exit};
use crate::output::{Surface, span};

/// Events that are shown before the surface is flushed.
const BATCH: usize = 1024;

/// Runs one prompt on a runtime of its own.
pub fn drive(
    engine: &Engine,
    session: OpenSession,
    prompt: Prompt,
    store: &Store,
    surface: &mut dyn Surface,
) -> Result<(Outcome, Exit), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cancel = prompt.cancel.clone();
    let workspace = prompt.workspace.clone();
    let session_id = session.writer.session().clone();
    let outcome = runtime.block_on(async {
        watch_signals(&cancel)?;
        let (sender, receiver) = unbounded_channel();
        let (outcome, shown) =
            tokio::join!(engine.run(session, prompt, sender), show(surface, receiver, cancel.clone()));
        // A reader that went away is told by the stopped run; any other fault of the output is its own.
        match (outcome, shown) {
            (Ok(_), Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(CommandError::from(error))
            }
            (outcome, _) => outcome.map_err(CommandError::from),
        }
    });
    // What still runs on other threads must not hold up the end.
    runtime.shutdown_background();
    let outcome = outcome?;
    let exit = exit_of(&outcome);
    let lines = summary(&outcome, exit, &session_id, &workspace, store);
    match surface.end(&outcome, &lines) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    Ok((outcome, exit))
}

async fn show(
    surface: &mut dyn Surface,
    mut events: UnboundedReceiver<alisio_protocol::Event>,
    cancel: Cancel,
) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut shown = Ok(());
    while events.recv_many(&mut batch, BATCH).await > 0 {
        for event in batch.drain(..) {
            if shown.is_ok() {
                shown = surface.event(&event);
            }
        }
        if shown.is_ok() {
            shown = surface.flush();
        }
        if let Err(error) = &shown {
            cancel.stop(format!("the output could not be written: {error}"));
        }
    }
    shown
}

/// Ends the run on the first signal, the process on the second; the supervisor then ends what the run had started.
fn watch_signals(cancel: &Cancel) -> io::Result<()> {
    for (kind, name) in [
        (SignalKind::interrupt(), "SIGINT"),
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::hangup(), "SIGHUP"),
    ] {
        let mut signals = signal(kind)?;
        let cancel = cancel.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if cancel.is_stopped() {
                    std::process::exit(Exit::Interrupted as i32);
                }
                cancel.stop(format!("stopped by {name}"));
            }
        });
    }
    Ok(())
}

/// Says which exit code a run ends with.
fn exit_of(outcome: &Outcome) -> Exit {
    match outcome.status {
        RunStatus::Completed if !outcome.refused.is_empty() => Exit::Refused,
        RunStatus::Completed => Exit::Done,
        RunStatus::TurnsExceeded => Exit::Limit,
        RunStatus::Cancelled | RunStatus::Interrupted => Exit::Interrupted,
        RunStatus::Running | RunStatus::Failed if outcome.stopped_by_limit => Exit::Limit,
        RunStatus::Running | RunStatus::Failed => Exit::Failed,
    }
}

fn summary(
    outcome: &Outcome,
    exit: Exit,
    session: &SessionId,
    workspace: &Path,
    store: &Store,
) -> Vec<String> {
    let mut lines = Vec::new();
    if exit == Exit::Refused {
        for refused in &outcome.refused {
            lines.push(format!("refused, and nobody could be asked: {refused}"));
        }
    }
    if !outcome.written.is_empty() {
        let files: Vec<_> = outcome
            .written
            .iter()
            .map(|path| path.strip_prefix(workspace).unwrap_or(path).display().to_string())
            .collect();
        lines.push(format!("files written: {}", files.join(", ")));
    }
    let tokens = match outcome.usage {
        Some(usage) => {
            let cached = usage
                .cached_input
                .filter(|n| *n > 0)
                .map_or_else(String::new, |cached| format!(" ({cached} cached)"));
            format!("{} tokens in{cached}, {} out", usage.input, usage.output)
        }
        None => "tokens not reported".to_owned(),
    };
    let head = match store.ledger_head() {
        Ok(head) if head.seq == 0 => String::new(),
        Ok(head) => format!(" · ledger {}:{:.16}", head.seq, head.hash.to_string()),
        Err(error) => format!(" · ledger unreadable: {error}"),
    };
    lines.push(format!("{tokens} · {}{head}", span(outcome.active_ms)));
    let how = match outcome.status {
        RunStatus::TurnsExceeded => "the turns are used up; go on with",
        _ => "go on with",
    };
    // The id stands once, so that the line fits a terminal.
    lines.push(format!("{how}: alisio resume {session} \"…\""));
    lines
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => error.into(),
            error @ RunError::Uncertain { .. } => Self::failed(error),
        }
    }
}
