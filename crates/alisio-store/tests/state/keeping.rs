//! What is kept comes back as it was, once, and the ledger shows any change.

use alisio_protocol::{
    AssistantMessage, Attachment, CallId, ContentPart, Effect, EventKind, Message, RunId, SessionId,
    ToolCall, ToolResult, UiBlock, UserMessage,
};
use alisio_store::{Durability, LedgerCheck, ListFilter, RunStatus, StoreError};

use crate::{Scratch, answer, call, child, event, new_session, run, time, user};

fn blob_files(scratch: &Scratch) -> Vec<std::path::PathBuf> {
    let Ok(folders) = std::fs::read_dir(scratch.folder.path().join("blobs/sha256")) else {
        return Vec::new();
    };
    folders
        .flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .collect()
}

#[test]
fn long_content_is_kept_once_and_comes_back() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let id = RunId::new("r");
    let arguments = serde_json::json!({"content": "line\n".repeat(4000)}).to_string();
    let patch = "+x\n".repeat(5000);
    let result = ToolResult::text("y".repeat(20_000)).with_block(UiBlock::Diff {
        patch: patch.clone(),
        path: "a".into(),
        lang: None,
        caption: None,
    });
    let prompt = Message::User(UserMessage {
        text: "look".into(),
        display: None,
        attachments: vec![
            Attachment { mime_type: "image/png".into(), data: "A".repeat(30_000) },
            Attachment { mime_type: "image/gif".into(), data: "B".repeat(100) },
        ],
    });
    let asks = Message::Assistant(AssistantMessage {
        calls: vec![ToolCall {
            id: CallId::new("a"),
            name: "write_file".into(),
            arguments: arguments.clone(),
        }],
        items: vec![serde_json::json!({"type": "reasoning", "a/b~c": "z".repeat(9000)})],
        ..AssistantMessage::default()
    });
    let kind = EventKind::ToolStarted {
        id: CallId::new("a"),
        name: "write_file".into(),
        arguments: arguments.clone(),
        effect: Effect::Write,
    };
    let mut started = event(&session, &id, 1, kind);
    started.correlation_id = Some("mine".into());
    writer
        .commit(Durability::Synced, |tx| {
            tx.message(&id, &prompt)?;
            tx.message(&id, &asks)?;
            tx.call_started(&alisio_store::CallRow {
                arguments: arguments.clone(),
                ..call(&id, "a", Effect::Write)
            })?;
            tx.event(&mut started)
        })
        .unwrap();
    writer
        .commit(Durability::Unsynced, |tx| {
            tx.call_ended(&CallId::new("a"), &result, &time(2))?;
            tx.message(&id, &answer("a", result.clone()))
        })
        .unwrap();
    let loaded = writer.load().unwrap();
    assert_eq!(loaded.messages, [prompt.clone(), asks.clone(), answer("a", result)]);
    assert_eq!(loaded.repairs, [""; 0]);
    assert_eq!(scratch.store.events(&session, None, 10).unwrap(), [started]);
    // Input (message, journal and event), image, reasoning, text and patch: five files.
    let files = blob_files(&scratch);
    assert_eq!(files.len(), 5, "{files:?}");
    let stored: i64 = scratch
        .sql()
        .query_row("SELECT sum(length(coalesce(body, ''))) FROM messages", [], |row| row.get(0))
        .unwrap();
    assert!(stored < 2000, "{stored} bytes of messages in the database");

    // Damaged content is told and left out; the rest stays.
    for file in files {
        std::fs::write(file, "damaged").unwrap();
    }
    let loaded = writer.load().unwrap();
    crate::repair::assert_balanced(&loaded.messages);
    assert_eq!(loaded.messages.len(), 3);
    let Message::User(prompt) = &loaded.messages[0] else { panic!() };
    assert_eq!(prompt.attachments.len(), 1);
    let Message::Assistant(asks) = &loaded.messages[1] else { panic!() };
    assert!(asks.items.is_empty());
    let Message::Tool(answer) = &loaded.messages[2] else { panic!() };
    assert!(
        matches!(&answer.result.content[0], ContentPart::Text { text } if text.contains("gone or damaged"))
    );
    assert_eq!(loaded.repairs.len(), 5, "{:#?}", loaded.repairs);
}

#[test]
fn sessions_are_listed_found_and_titled() {
    let scratch = Scratch::new();
    let store = &scratch.store;
    for (n, (id, workspace)) in
        [("aa1", "/one"), ("aa2", "/two"), ("ab", "/one"), ("a_1", "/one")].into_iter().enumerate()
    {
        new_session(store, id, workspace, n as u32);
    }
    let writer = store.lock(&SessionId::new("aa1")).unwrap();
    writer
        .commit(Durability::Unsynced, |tx| {
            tx.run_started(&run("r1", 40))?;
            tx.message(&RunId::new("r1"), &user(&format!("  first\n\tprompt {}", "é".repeat(80))))?;
            tx.message(&RunId::new("r1"), &user("second"))?;
            tx.run_ended(&RunId::new("r1"), RunStatus::Failed, None, Some("why"), &time(50))
        })
        .unwrap();
    let ids = |filter| store.list(&filter).unwrap().into_iter().map(|s| s.id.to_string()).collect::<Vec<_>>();
    let all = ListFilter { workspace: None, limit: 10, offset: 0 };
    assert_eq!(ids(all), ["aa1", "a_1", "ab", "aa2"]);
    assert_eq!(ids(ListFilter { limit: 2, offset: 1, ..all }), ["a_1", "ab"]);
    assert_eq!(ids(ListFilter { workspace: Some("/two".as_ref()), ..all }), ["aa2"]);
    assert_eq!(store.latest("/one".as_ref()).unwrap(), Some(SessionId::new("aa1")));
    assert_eq!(store.latest("/three".as_ref()).unwrap(), None);
    let first = &store.list(&all).unwrap()[0];
    assert_eq!(first.title, format!("first prompt {}…", "é".repeat(46)));
    assert_eq!(first.title.chars().count(), 60);
    assert_eq!((first.messages, first.runs, first.status), (2, 1, Some(RunStatus::Failed)));
    assert_eq!(first.updated_at, time(50));

    let found = |prefix: &str| store.find(prefix).map(|id| id.to_string()).map_err(|error| error.to_string());
    assert_eq!(found("ab").unwrap(), "ab");
    assert_eq!(found("aa2").unwrap(), "aa2");
    assert_eq!(found("a_").unwrap(), "a_1");
    assert_eq!(found("aa").unwrap_err(), "`aa` could be any of these sessions: aa2, aa1");
    for prefix in ["", "x", "%", "aa12"] {
        assert!(matches!(store.find(prefix), Err(StoreError::NoSession(_))), "{prefix}");
    }
    new_session(store, "aa", "/one", 9);
    assert_eq!(found("aa").unwrap(), "aa", "a whole id is no beginning");
    for bad in ["", "../x", "a b", "ä", &"x".repeat(65)] {
        assert!(matches!(store.spill_folder(&SessionId::new(bad)), Err(StoreError::BadId(_))), "{bad}");
    }
}

#[test]
fn a_request_starts_one_run() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let start = |id: &str| {
        let run = alisio_store::NewRun { request_id: Some("q".into()), ..run(id, 1) };
        writer.commit(Durability::Unsynced, |tx| tx.run_started(&run))
    };
    assert_eq!(scratch.store.run_by_request(&session, "q").unwrap(), None);
    start("r1").unwrap();
    assert!(start("r2").is_err());
    assert_eq!(scratch.store.run_by_request(&session, "q").unwrap().unwrap().id, RunId::new("r1"));
    let usage = alisio_protocol::Usage { input: 5, output: 6, cached_input: Some(2) };
    let end = |status| {
        writer.commit(Durability::Synced, |tx| {
            tx.run_ended(&RunId::new("r1"), status, Some(usage), None, &time(3))
        })
    };
    assert!(end(RunStatus::Completed).unwrap());
    assert!(!end(RunStatus::Failed).unwrap(), "an end is never replaced");
    let kept = &scratch.store.runs(&session).unwrap()[0];
    assert_eq!(
        (kept.status, kept.usage, kept.ended_at.clone()),
        (RunStatus::Completed, Some(usage), Some(time(3)))
    );
}

#[test]
fn events_are_numbered_over_the_whole_store_and_export_is_lines() {
    let scratch = Scratch::new();
    let (one, two) =
        (new_session(&scratch.store, "one", "/w", 1), new_session(&scratch.store, "two", "/w", 1));
    let first = crate::play(&scratch.store, &one, "r1");
    let second = crate::play(&scratch.store, &two, "r2");
    let ids: Vec<u64> = first.iter().chain(&second).map(|event| event.event_id.unwrap().0).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    assert_eq!(scratch.store.events(&two, second[1].event_id, 2).unwrap(), second[2..4]);
    let writer = scratch.store.lock(&one).unwrap();
    let mut delta = event(&one, &RunId::new("r1"), 9, EventKind::TextDelta { delta: "x".into() });
    writer.commit(Durability::Unsynced, |tx| tx.event(&mut delta)).unwrap();
    assert_eq!(delta.event_id, None);

    // An event of a later version: exported as it is, left out where it can't be understood.
    scratch.sql().execute("UPDATE events SET type = 'tomorrow' WHERE seq = ?1", [ids[1] as i64]).unwrap();
    assert_eq!(scratch.store.events(&one, None, 99).unwrap().len(), first.len() - 1);
    let mut out = Vec::new();
    scratch.store.export(&one, &mut out).unwrap();
    let lines: Vec<serde_json::Value> =
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), first.len() + 4);
    assert_eq!(lines[0], serde_json::to_value(&first[0]).unwrap());
    assert_eq!(lines[1]["type"], "tomorrow");
    let roles: Vec<_> = lines[first.len()..].iter().map(|line| line["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool"]);
}

#[test]
fn the_ledger_only_grows_and_shows_a_change() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    for seq in 1..=5 {
        let head = writer.commit(Durability::Synced, |tx| tx.ledger(&child::entry_of(&session))).unwrap();
        assert_eq!(head.seq, seq);
    }
    let entry = &scratch.store.ledger(0, 9).unwrap()[0];
    assert_eq!(entry.paths, ["a", ".", "/elsewhere/b"]);
    insta::assert_snapshot!(serde_json::to_string(entry).unwrap(), @r#"{"at":"2026-01-02T03:00:01.000Z","call":"c","digest":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","effect":"write","kind":"verdict","paths":["a",".","/elsewhere/b"],"reason":"--allow-write was given","run":"r","session":"s","source":"flag","tool":"write_file","verdict":"allow"}"#);
    let sql = scratch.sql();
    for change in [
        "UPDATE ledger SET entry = '{}' WHERE seq = 3",
        "DELETE FROM ledger WHERE seq = 3",
        "DELETE FROM ledger",
    ] {
        let error = sql.execute(change, []).unwrap_err().to_string();
        assert!(error.contains("the ledger only grows"), "{change}: {error}");
    }
    // Whoever takes the triggers away is found out by the chain.
    sql.execute_batch("DROP TRIGGER ledger_no_update; DROP TRIGGER ledger_no_delete;").unwrap();
    let cases = [
        ("UPDATE ledger SET entry = replace(entry, 'allow', 'deny') WHERE seq = 3", 3),
        ("UPDATE ledger SET hash = lower(hex(zeroblob(32))) WHERE seq = 2", 2),
        ("DELETE FROM ledger WHERE seq = 4", 4),
        ("DELETE FROM ledger WHERE seq = 1", 1),
    ];
    for (change, at) in cases {
        sql.execute_batch("BEGIN").unwrap();
        sql.execute(change, []).unwrap();
        sql.execute_batch("COMMIT; CREATE TABLE keep AS SELECT 1").unwrap();
        match scratch.store.verify_ledger().unwrap() {
            LedgerCheck::Broken { seq, .. } => assert_eq!(seq, at, "{change}"),
            whole => panic!("{change}: {whole:?}"),
        }
        sql.execute_batch("DROP TABLE keep; DELETE FROM ledger").unwrap();
        for _ in 0..5 {
            writer.commit(Durability::Unsynced, |tx| tx.ledger(&child::entry_of(&session))).unwrap();
        }
        assert!(matches!(scratch.store.verify_ledger().unwrap(), LedgerCheck::Whole(head) if head.seq == 5));
    }
}
