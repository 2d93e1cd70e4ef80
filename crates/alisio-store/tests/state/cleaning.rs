//! Deleting takes contents and leaves the ledger; cleaning takes only what nobody uses.

use std::path::Path;
use std::time::Duration;

use alisio_protocol::{Effect, RunId, SessionId};
use alisio_store::{Durability, LedgerCheck, Removed, Store, StoreError};

use crate::{Scratch, call, child, new_session, user};

const SECRET: &str = "a-word-that-must-go";

fn fill(store: &Store, session: &SessionId) {
    let run = RunId::new(format!("run-of-{session}"));
    let writer = store.lock(session).unwrap();
    writer
        .commit(Durability::Synced, |tx| {
            tx.run_started(&crate::run(run.as_str(), 1))?;
            tx.message(&run, &user(&format!("{session} {SECRET}")))?;
            tx.message(&run, &user(&format!("{session} {}", SECRET.repeat(1000))))?;
            tx.message(&run, &user(&"shared".repeat(5000)))?;
            tx.call_started(&call(&run, "c", Effect::Write))?;
            tx.ledger(&child::entry_of(session))?;
            Ok(())
        })
        .unwrap();
    std::fs::write(store.spill_folder(session).unwrap().join("out"), SECRET).unwrap();
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn deleting_takes_contents_and_leaves_the_ledger() {
    let scratch = Scratch::new();
    let store = &scratch.store;
    let (one, two) = (new_session(store, "one", "/w", 1), new_session(store, "two", "/w", 2));
    fill(store, &one);
    fill(store, &two);
    store.delete(store.lock(&one).unwrap()).unwrap();

    assert_eq!(store.session(&one).unwrap(), None);
    assert!(matches!(store.view(&one), Err(StoreError::NoSession(_))));
    assert!(matches!(store.verify_ledger().unwrap(), LedgerCheck::Whole(head) if head.seq == 2));
    let kept = store.view(&two).unwrap();
    assert_eq!(kept.messages.len(), 3);
    assert_eq!(kept.messages[2], user(&"shared".repeat(5000)), "content that another session uses stays");
    store.delete(store.lock(&two).unwrap()).unwrap();
    for file in files(scratch.folder.path()) {
        let bytes = std::fs::read(&file).unwrap();
        let is_there = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!is_there, "{} still holds what was deleted", file.display());
    }
    let left: Vec<_> =
        files(scratch.folder.path()).into_iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    assert_eq!(left.len(), 3, "database, log and index: {left:?}");
    assert_eq!(store.ledger(0, 9).unwrap().len(), 2);
    // The numbers of events go on.
    let again = new_session(store, "one", "/w", 3);
    assert_eq!(store.view(&again).unwrap().messages, []);
}

#[test]
fn cleaning_takes_only_what_nobody_uses() {
    let scratch = Scratch::new();
    let store = &scratch.store;
    let (one, two) = (new_session(store, "one", "/w", 1), new_session(store, "two", "/w", 2));
    fill(store, &one);
    fill(store, &two);
    let root = scratch.folder.path();
    assert_eq!(store.gc("2026-01-02T04:00:00.000Z", None).unwrap(), Removed::default());

    std::fs::create_dir_all(root.join("outputs/gone")).unwrap();
    std::fs::write(root.join("outputs/gone/out"), "x").unwrap();
    std::fs::write(root.join("locks/gone.lock"), "1").unwrap();
    let orphan = "ab".repeat(32);
    std::fs::create_dir_all(root.join("blobs/sha256/ab")).unwrap();
    std::fs::write(root.join("blobs/sha256/ab").join(&orphan), "12345").unwrap();
    std::fs::write(root.join("blobs/sha256/ab").join(format!("{orphan}.tmp")), "12").unwrap();
    // A lock that is held belongs to somebody, whatever the sessions say.
    let held = std::fs::File::create(root.join("locks/busy.lock")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let removed = store.gc("2026-01-02T04:00:00.000Z", None).unwrap();
    assert_eq!(removed, Removed { sessions: vec![], blobs: 2, bytes: 7, spill_folders: 1, lock_files: 1 });
    assert!(root.join("locks/busy.lock").exists());
    assert!(!root.join("locks/gone.lock").exists());
    assert_eq!(store.view(&one).unwrap().messages.len(), 3);

    // By age: `one` and `two` were last worked on at 03:00:01 and 03:00:02.
    let writer = store.lock(&two).unwrap();
    let removed = store.gc("2026-01-02T03:00:01.900Z", Some(Duration::from_secs(1))).unwrap();
    assert_eq!(removed.sessions, []);
    let removed = store.gc("2026-02-02T03:00:00.000Z", Some(Duration::from_secs(3600))).unwrap();
    assert_eq!(removed.sessions, [one], "a session in use stays");
    drop(writer);
    assert_eq!(store.view(&two).unwrap().messages.len(), 3);
    assert!(store.gc("yesterday", Some(Duration::ZERO)).is_err());
    assert_eq!(store.ledger_head().unwrap().seq, 2);
}
