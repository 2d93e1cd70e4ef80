//! The store through its public API, on real files and with real processes.
#![allow(clippy::disallowed_methods, reason = "tests start processes and write files of their own")]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "children talk to their test, and skipped tests say so"
)]

mod asking;
mod child;
mod cleaning;
mod fanning;
mod granting;
mod keeping;
mod opening;
mod repair;
mod ringing;
mod sharing;

use std::path::Path;

use alisio_protocol::{
    AssistantMessage, CallId, Effect, Event, EventKind, Message, RunId, SessionId, Sha256, ToolCall,
    ToolMessage, ToolResult, UserMessage,
};
use alisio_store::{CallRow, Durability, NewRun, NewSession, Store};

/// A store in a folder that goes with the value.
pub(crate) struct Scratch {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state.db")).unwrap();
        Self { folder, store }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("state.db")
    }

    /// Another connection, past the API.
    pub(crate) fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

/// A time that grows with `n`.
pub(crate) fn time(n: u32) -> String {
    format!("2026-01-02T03:{:02}:{:02}.000Z", n / 60 % 60, n % 60)
}

pub(crate) fn new_session(store: &Store, id: &str, workspace: &str, n: u32) -> SessionId {
    let id = SessionId::new(id);
    store
        .create_session(&NewSession {
            id: id.clone(),
            workspace: workspace.into(),
            provider: "openai-compatible:chat:http://127.0.0.1".into(),
            model: "small".into(),
            agent: None,
            created_at: time(n),
        })
        .unwrap();
    id
}

pub(crate) fn run(id: &str, n: u32) -> NewRun {
    NewRun { id: RunId::new(id), request_id: None, model: "small".into(), started_at: time(n) }
}

pub(crate) fn user(text: &str) -> Message {
    Message::User(UserMessage { text: text.into(), ..UserMessage::default() })
}

pub(crate) fn asking(ids: &[&str]) -> Message {
    let call = |id: &&str| ToolCall { id: CallId::new(*id), name: "tool".into(), arguments: "{}".into() };
    Message::Assistant(AssistantMessage {
        calls: ids.iter().map(call).collect(),
        ..AssistantMessage::default()
    })
}

pub(crate) fn answer(id: &str, result: ToolResult) -> Message {
    Message::Tool(ToolMessage { call_id: CallId::new(id), result })
}

pub(crate) fn call(run: &RunId, id: &str, effect: Effect) -> CallRow {
    CallRow {
        call: CallId::new(id),
        run: run.clone(),
        tool: "tool".into(),
        effect,
        arguments: "{}".into(),
        digest: Sha256::of(b"x"),
        started_at: time(1),
    }
}

pub(crate) fn event(session: &SessionId, run: &RunId, seq: u64, kind: EventKind) -> Event {
    Event {
        schema_version: 1,
        run_id: run.clone(),
        session_id: session.clone(),
        seq,
        kind,
        timestamp: time(seq as u32),
        event_id: None,
        correlation_id: None,
    }
}

/// Writes a run of three calls: one read that is done, a write that is done and one that is not.
pub(crate) fn play(store: &Store, session: &SessionId, run_id: &str) -> Vec<Event> {
    let writer = store.lock(session).unwrap();
    let id = RunId::new(run_id);
    let mut events = Vec::new();
    let mut step = |durability, kind, more: &dyn Fn(&alisio_store::Tx<'_>)| {
        let mut event = event(session, &id, events.len() as u64 + 1, kind);
        writer
            .commit(durability, |tx| {
                more(tx);
                tx.event(&mut event)
            })
            .unwrap();
        events.push(event);
    };
    let started = |call: &str, effect| EventKind::ToolStarted {
        id: CallId::new(call),
        name: "tool".into(),
        arguments: "{}".into(),
        effect,
    };
    let completed = |call: &str| EventKind::ToolCompleted {
        id: CallId::new(call),
        name: "tool".into(),
        is_error: false,
        duration_ms: 1,
        preview: "ok".into(),
    };
    step(Durability::Unsynced, EventKind::RunStarted { model: "small".into() }, &|tx| {
        tx.run_started(&run(run_id, 1)).unwrap();
        tx.message(&id, &user("do it")).unwrap();
        tx.message(&id, &asking(&["c1", "c2", "c3"])).unwrap();
    });
    for (name, effect, durability) in
        [("c1", Effect::Read, Durability::Unsynced), ("c2", Effect::Write, Durability::Synced)]
    {
        step(durability, started(name, effect), &|tx| tx.call_started(&call(&id, name, effect)).unwrap());
        step(Durability::Unsynced, completed(name), &|tx| {
            tx.call_ended(&CallId::new(name), &ToolResult::text("ok"), &time(3)).unwrap();
            tx.message(&id, &answer(name, ToolResult::text("ok"))).unwrap();
        });
    }
    step(Durability::Synced, started("c3", Effect::Process), &|tx| {
        tx.call_started(&call(&id, "c3", Effect::Process)).unwrap();
    });
    events
}

/// Copies the database and its log as a kill would leave them, the log cut to `bytes`.
pub(crate) fn copy_cut(from: &Path, to: &Path, bytes: u64) {
    std::fs::copy(from, to).unwrap();
    let log = |path: &Path| std::path::PathBuf::from(format!("{}-wal", path.display()));
    std::fs::copy(log(from), log(to)).unwrap();
    std::fs::OpenOptions::new().write(true).open(log(to)).unwrap().set_len(bytes).unwrap();
}
