//! Several processes on one state, and processes that end at any moment.

use std::io::{BufRead, BufReader};

use alisio_protocol::{EventId, RunId, SessionId};
use alisio_store::{Durability, LedgerCheck, ListFilter, RunStatus, Store, StoreError};

use crate::{Scratch, child, copy_cut, new_session, play, run, time};

#[test]
fn a_session_has_one_writer_and_the_lock_dies_with_its_owner() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let mut owner = child::command("hold", &scratch.path()).spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));

    match scratch.store.lock(&session) {
        Err(StoreError::Locked { owner: Some(pid), .. }) => assert_eq!(pid, owner.id()),
        other => panic!("{other:?}"),
    }
    let all = ListFilter { workspace: None, limit: 9, offset: 0 };
    assert_eq!(scratch.store.list(&all).unwrap()[0].status, Some(RunStatus::Running));
    // Other sessions are free, and everybody may read.
    let other = new_session(&scratch.store, "t", "/w", 2);
    scratch.store.lock(&other).unwrap();
    assert_eq!(scratch.store.view(&session).unwrap().messages, []);

    owner.kill().unwrap();
    owner.wait().unwrap();
    let status =
        |store: &Store| store.list(&all).unwrap().into_iter().find(|s| s.id == session).unwrap().status;
    assert_eq!(status(&scratch.store), Some(RunStatus::Interrupted), "before anyone locks it");
    let writer = scratch.store.lock(&session).unwrap();
    assert_eq!(scratch.store.runs(&session).unwrap()[0].status, RunStatus::Interrupted);
    // An end is never replaced.
    let ended = writer.commit(Durability::Unsynced, |tx| {
        tx.run_ended(&RunId::new("r"), RunStatus::Completed, None, None, &time(9))
    });
    assert!(!ended.unwrap());
    assert_eq!(scratch.store.runs(&session).unwrap()[0].status, RunStatus::Interrupted);
}

#[test]
fn one_process_is_no_exception() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let again = Store::open(&scratch.path()).unwrap();
    assert!(matches!(again.lock(&session), Err(StoreError::Locked { .. })));
    drop(writer);
    again.lock(&session).unwrap();
    assert!(matches!(again.lock(&SessionId::new("none")), Err(StoreError::NoSession(_))));
    assert!(matches!(again.lock(&SessionId::new("../x")), Err(StoreError::BadId(_))));
}

#[test]
fn processes_append_to_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/state.db");
    // They also race to make the database.
    let children: Vec<_> = (0..3).map(|_| child::command("append", &path).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = Store::open(&path).unwrap();
    match store.verify_ledger().unwrap() {
        LedgerCheck::Whole(head) => {
            assert_eq!(head.seq, 120);
            assert_eq!(head, store.ledger_head().unwrap());
        }
        broken => panic!("{broken:?}"),
    }
}

#[test]
fn what_was_told_before_a_kill_is_there_after_it() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let mut after = None;
    for round in 1..6 {
        let mut writer = child::command("write", &scratch.path()).spawn().unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut told = Vec::new();
        for line in lines.map_while(Result::ok) {
            if let Some(id) = line.strip_prefix("id ") {
                told.push(EventId(id.parse().unwrap()));
            }
            if told.len() == round * 23 {
                writer.kill().unwrap();
            }
        }
        writer.wait().unwrap();
        let store = Store::open(&scratch.path()).unwrap();
        let kept: Vec<_> = store
            .events(&session, after, 100_000)
            .unwrap()
            .iter()
            .map(|event| event.event_id.unwrap())
            .collect();
        assert!(kept.len() >= told.len() && told.len() >= round * 23, "{} of {}", kept.len(), told.len());
        assert_eq!(kept[..told.len()], told, "round {round}");
        after = kept.last().copied();
    }
}

#[test]
fn a_log_cut_anywhere_opens_and_holds_a_beginning_of_the_story() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let events = play(&scratch.store, &session, "r");
    let log = std::fs::metadata(format!("{}-wal", scratch.path().display())).unwrap().len();
    let mut lengths = Vec::new();
    for part in 0..=40 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        copy_cut(&scratch.path(), &path, log * part / 40);
        let store = Store::open(&path).unwrap();
        if store.session(&session).unwrap().is_none() {
            lengths.push(None);
            continue;
        }
        let kept = store.events(&session, None, 100).unwrap();
        assert_eq!(kept, events[..kept.len()]);
        let loaded = store.lock(&session).unwrap().load().unwrap();
        crate::repair::assert_balanced(&loaded.messages);
        lengths.push(Some(kept.len()));
    }
    assert!(lengths.is_sorted(), "{lengths:?}");
    assert_eq!(lengths.last(), Some(&Some(events.len())));
    assert!(lengths.contains(&None) && lengths.contains(&Some(3)), "the cuts hit nothing: {lengths:?}");
}

#[test]
fn a_commit_that_fails_leaves_nothing() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let failed = writer.commit(Durability::Synced, |tx| {
        tx.run_started(&run("r", 1))?;
        tx.message(&RunId::new("r"), &crate::user("lost"))?;
        tx.ledger(&child::entry_of(&session))?;
        tx.run_started(&run("r", 1))
    });
    assert!(failed.is_err());
    assert_eq!(scratch.store.runs(&session).unwrap(), []);
    assert_eq!(writer.load().unwrap().messages, []);
    assert_eq!(scratch.store.ledger_head().unwrap().seq, 0);
    assert_eq!(scratch.store.session(&session).unwrap().unwrap().title, "");
}
