//! `--approvals stdio`: a program that embeds Alisio reads questions on standard output and answers on standard input.
//!
//! Questions and their ends are lines of their own among the events: `permission_request` and `permission_resolved`, with
//! the fields of the permission protocol that existing embedders speak. An answer is
//! `{"requestId": "…", "decision": {"kind": "once" | "always" | "reject", "feedback"?}}`.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use alisio_engine::{Detacher, Outcome};
use alisio_protocol::{Answer, Event, EventKind};
use alisio_store::Store;
use serde::Deserialize;

use crate::commands::approvals::{now_ms, request_line, resolved_line};
use crate::output::Surface;

/// How long a question waits once standard input has ended: nobody is attached any more.
const DETACHED: Duration = Duration::from_secs(5 * 60);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    request_id: String,
    decision: Answer,
}

/// Takes answers from standard input until it ends. What can't be used is told on standard error and changes nothing.
pub fn answer_from_stdin(store: Store, detacher: Detacher) {
    // The thread waits in `read` and ends with the process.
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if line.trim().is_empty() {
                continue;
            }
            let said = match serde_json::from_str::<Line>(&line) {
                Ok(answer) => store
                    .resolve(&answer.request_id, &answer.decision, "embedder", now_ms())
                    .map(drop)
                    .map_err(|error| error.to_string()),
                Err(error) => Err(format!(
                    "not an answer: {error}; expected {{\"requestId\": \"…\", \"decision\": {{\"kind\": \"once\"}}}}"
                )),
            };
            if let Err(error) = said {
                let _ = writeln!(io::stderr(), "error: standard input: {error}");
            }
        }
        detacher.detach(DETACHED);
    });
}

/// Shows questions and their ends beside the events.
pub struct WithRequests {
    inner: Box<dyn Surface>,
    store: Store,
}

impl WithRequests {
    /// Adds the lines of the protocol to a surface that writes JSON Lines to standard output.
    pub fn new(inner: Box<dyn Surface>, store: Store) -> Self {
        Self { inner, store }
    }

    fn line(&mut self, line: &serde_json::Value) -> io::Result<()> {
        // What stands in the buffer comes first.
        self.inner.flush()?;
        let mut out = io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()
    }
}

impl Surface for WithRequests {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.inner.event(event)?;
        match &event.kind {
            EventKind::ApprovalRequested { request_id, .. } => {
                let row = self.store.approval(request_id).map_err(io::Error::other)?;
                self.line(&request_line(&row.approval))
            }
            EventKind::ApprovalResolved { request_id, resolution, .. } => {
                self.line(&resolved_line(request_id, resolution))
            }
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    fn end(&mut self, outcome: &Outcome, lines: &[String]) -> io::Result<()> {
        self.inner.end(outcome, lines)
    }
}
