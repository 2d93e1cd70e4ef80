//! What the state costs: `cargo bench -p alisio-store`.

use std::path::PathBuf;

use alisio_protocol::{
    AssistantMessage, CallId, Effect, Event, EventKind, Message, RunId, SessionId, Sha256, ToolCall,
    ToolMessage, ToolResult, UserMessage,
};
use alisio_store::{CallRow, Durability, ListFilter, NewRun, NewSession, SessionWriter, Store};
use divan::Bencher;

fn main() {
    divan::main();
}

const NOW: &str = "2026-01-02T03:04:05.006Z";

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("the temporary folder can be written");
    let path = folder.path().join("state.db");
    (folder, path)
}

fn open(path: &std::path::Path) -> Store {
    Store::open(path).expect("the database opens")
}

fn session(store: &Store, id: &str) -> SessionId {
    let session = NewSession {
        id: SessionId::new(id),
        workspace: "/w".into(),
        provider: "p".into(),
        model: "m".into(),
        agent: None,
        created_at: NOW.into(),
    };
    store.create_session(&session).expect("the session is new");
    session.id
}

fn event(session: &SessionId, kind: EventKind) -> Event {
    Event {
        schema_version: 1,
        run_id: RunId::new("r"),
        session_id: session.clone(),
        seq: 1,
        kind,
        timestamp: NOW.into(),
        event_id: None,
        correlation_id: None,
    }
}

/// The rows of one call: journal and event before it, result, event and messages after it.
fn one_call(writer: &SessionWriter, number: u64, effect: Effect, before: Durability) {
    let (session, run) = (writer.session(), RunId::new("r"));
    let id = CallId::new(format!("c{number}"));
    let arguments = "{\"path\":\"src/main.rs\"}".to_owned();
    let asks = Message::Assistant(AssistantMessage {
        calls: vec![ToolCall { id: id.clone(), name: "read_file".into(), arguments: arguments.clone() }],
        ..AssistantMessage::default()
    });
    let kind = EventKind::ToolStarted {
        id: id.clone(),
        name: "read_file".into(),
        arguments: arguments.clone(),
        effect,
    };
    let mut started = event(session, kind);
    let row = CallRow {
        call: id.clone(),
        run: run.clone(),
        tool: "read_file".into(),
        effect,
        arguments,
        digest: Sha256::of(b"x"),
        started_at: NOW.into(),
    };
    let write =
        |durability, act: &mut dyn FnMut(&alisio_store::Tx<'_>) -> Result<(), alisio_store::StoreError>| {
            writer.commit(durability, |tx| act(tx)).expect("the commit succeeds");
        };
    write(Durability::Unsynced, &mut |tx| tx.message(&run, &asks));
    write(before, &mut |tx| {
        tx.call_started(&row)?;
        tx.event(&mut started)
    });
    let result = ToolResult::text("line of a file\n".repeat(100));
    let kind = EventKind::ToolCompleted {
        id: id.clone(),
        name: "read_file".into(),
        is_error: false,
        duration_ms: 1,
        preview: "line of a file".into(),
    };
    let mut completed = event(session, kind);
    let told = Message::Tool(ToolMessage { call_id: id.clone(), result: result.clone() });
    write(Durability::Unsynced, &mut |tx| {
        tx.call_ended(&id, &result, NOW)?;
        tx.event(&mut completed)?;
        tx.message(&run, &told)
    });
}

#[divan::bench]
fn first_open(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(scratch).bench_values(|(folder, path)| (open(&path), folder));
}

#[divan::bench]
fn open_and_close_again(bencher: Bencher<'_, '_>) {
    let (_folder, path) = scratch();
    let store = open(&path);
    let id = session(&store, "s");
    let writer = store.lock(&id).expect("nobody else has it");
    (0..200).for_each(|number| one_call(&writer, number, Effect::Read, Durability::Unsynced));
    drop((writer, store));
    bencher.bench(|| drop(open(&path)));
}

#[divan::bench]
fn rows_of_a_read_call(bencher: Bencher<'_, '_>) {
    let (_folder, path) = scratch();
    let store = open(&path);
    let writer = store.lock(&session(&store, "s")).expect("nobody else has it");
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        one_call(&writer, number, Effect::Read, Durability::Unsynced);
    });
}

#[divan::bench]
fn rows_of_a_write_call(bencher: Bencher<'_, '_>) {
    let (_folder, path) = scratch();
    let store = open(&path);
    let writer = store.lock(&session(&store, "s")).expect("nobody else has it");
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        one_call(&writer, number, Effect::Write, Durability::Synced);
    });
}

#[divan::bench]
fn list_50_of_10000(bencher: Bencher<'_, '_>) {
    let (_folder, path) = scratch();
    let store = open(&path);
    for number in 0..10_000 {
        let id = session(&store, &format!("s{number}"));
        let writer = store.lock(&id).expect("nobody else has it");
        let run = RunId::new(format!("r{number}"));
        let new = NewRun { id: run.clone(), request_id: None, model: "m".into(), started_at: NOW.into() };
        let prompt = Message::User(UserMessage { text: "a prompt".into(), ..UserMessage::default() });
        let written = writer.commit(Durability::Unsynced, |tx| {
            tx.run_started(&new)?;
            tx.message(&run, &prompt)
        });
        written.expect("the commit succeeds");
    }
    drop(store);
    bencher.bench(|| {
        let store = open(&path);
        store.list(&ListFilter { workspace: None, limit: 50, offset: 0 }).expect("the database can be read")
    });
}

#[divan::bench]
fn load_1000_messages(bencher: Bencher<'_, '_>) {
    let (_folder, path) = scratch();
    let store = open(&path);
    let writer = store.lock(&session(&store, "s")).expect("nobody else has it");
    (0..500).for_each(|number| one_call(&writer, number, Effect::Read, Durability::Unsynced));
    bencher.bench_local(|| writer.load().expect("the database can be read"));
}
