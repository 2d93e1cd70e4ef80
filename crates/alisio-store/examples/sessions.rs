//! Fills a database with sessions of one run each, for measuring: `sessions DATABASE WORKSPACE COUNT`.

use std::path::PathBuf;

use alisio_protocol::{AssistantMessage, Event, EventKind, Message, RunId, SessionId, UserMessage};
use alisio_store::{Durability, NewRun, NewSession, RunStatus, Store, StoreError};

fn main() -> Result<(), StoreError> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, database, workspace, count] = arguments.as_slice() else {
        panic!("wanted: DATABASE WORKSPACE COUNT");
    };
    let store = Store::open(&PathBuf::from(database))?;
    for index in 0..count.parse().expect("COUNT is a number") {
        add(&store, workspace, index)?;
    }
    Ok(())
}

fn add(store: &Store, workspace: &str, index: u64) -> Result<(), StoreError> {
    let at = format!(
        "2026-01-{:02}T{:02}:{:02}:{:02}.000Z",
        1 + index / 3600 / 24,
        index / 3600 % 24,
        index / 60 % 60,
        index % 60
    );
    let session = SessionId::new(format!("00000000-0000-7000-8000-{index:012x}"));
    let run = RunId::new(format!("00000000-0000-7000-9000-{index:012x}"));
    store.create_session(&NewSession {
        id: session.clone(),
        workspace: workspace.into(),
        provider: "http://127.0.0.1/v1".into(),
        model: "scripted".into(),
        agent: None,
        created_at: at.clone(),
    })?;
    store.lock(&session)?.commit(Durability::Unsynced, |tx| {
        let started =
            NewRun { id: run.clone(), request_id: None, model: "scripted".into(), started_at: at.clone() };
        tx.run_started(&started)?;
        let prompt =
            UserMessage { text: format!("prompt number {index}"), display: None, attachments: Vec::new() };
        tx.message(&run, &Message::User(prompt))?;
        let text = "It is a small repository with a few files. ".repeat(8);
        tx.message(
            &run,
            &Message::Assistant(AssistantMessage { text: text.clone(), ..AssistantMessage::default() }),
        )?;
        let kinds = [
            EventKind::RunStarted { model: "scripted".into() },
            EventKind::RunCompleted { tokens: 110, text, truncated: false },
        ];
        for (seq, kind) in (1..).zip(kinds) {
            tx.event(&mut Event {
                schema_version: 1,
                run_id: run.clone(),
                session_id: session.clone(),
                seq,
                kind,
                timestamp: at.clone(),
                event_id: None,
                correlation_id: None,
            })?;
        }
        tx.run_ended(&run, RunStatus::Completed, None, None, &at).map(|_| ())
    })
}
