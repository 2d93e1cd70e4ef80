//! Grants: how long they live, where they count, and how they end.

use std::path::Path;

use alisio_protocol::{Answer, Life, Sha256};
use alisio_store::{LedgerCheck, RunStatus, Store, StoreError};

use crate::asking::{NOW, approval, ask, told, waiting};
use crate::{Scratch, new_session};

#[test]
fn a_grant_counts_where_and_as_long_as_it_was_given() {
    let scratch = Scratch::new();
    let store = &scratch.store;
    let [first, second, elsewhere] = [("s", "/w"), ("t", "/w"), ("u", "/elsewhere")]
        .map(|(id, workspace)| new_session(store, id, workspace, 1));
    let writer = store.lock(&first).unwrap();
    for (id, life, expires_at) in [
        ("session", Life::Session, None),
        ("session-until", Life::Session, Some(NOW + 10)),
        ("kept", Life::Kept, None),
        ("kept-until", Life::Kept, Some(NOW + 10)),
    ] {
        ask(&writer, &[approval(&first, id, id)]);
        let answer = Answer::Always { width: None, life, expires_at };
        let grant = store.resolve(id, &answer, "terminal", NOW).unwrap().grant.unwrap();
        assert_eq!((grant.life, grant.expires_at, grant.created_at), (life, expires_at, NOW));
        assert_eq!((grant.session_id, grant.workspace.as_str()), (first.clone(), "/w"));
    }
    let tools = |session, workspace: &str, now| -> Vec<String> {
        let grants = store.grants(session, Path::new(workspace), now).unwrap();
        grants.into_iter().map(|grant| grant.tool).collect()
    };
    let all = ["session", "session-until", "kept", "kept-until"];
    assert_eq!(tools(&first, "/w", NOW + 9), all);
    assert_eq!(tools(&first, "/w", NOW + 10), ["session", "kept"]);
    assert_eq!(tools(&second, "/w", NOW), ["kept", "kept-until"]);
    assert_eq!(tools(&elsewhere, "/elsewhere", NOW), [""; 0]);
    assert_eq!(store.all_grants().unwrap().len(), 4);
    // A resumed session has its own still.
    drop(writer);
    let again = Store::open(&scratch.path()).unwrap();
    let writer = again.lock(&first).unwrap();
    assert_eq!(tools(&first, "/w", NOW), all);

    // Taken back, it counts nowhere any more.
    assert!(
        matches!(store.revoke_grant("grant-", NOW), Err(StoreError::AmbiguousId { candidates, .. }) if candidates.len() == 4)
    );
    assert_eq!(store.revoke_grant("grant-kept", NOW + 1).unwrap().tool, "kept", "the exact id wins");
    assert!(matches!(store.revoke_grant("grant-kept", NOW + 2), Err(StoreError::NoGrant(_))));
    assert_eq!(tools(&second, "/w", NOW), ["kept-until"]);
    assert_eq!(store.all_grants().unwrap().len(), 3);
    assert_eq!(told(store).last().unwrap(), "permission.revoked - - by -");
    let entry = store.ledger(0, 99).unwrap().pop().unwrap();
    assert_eq!((entry.grant.as_deref(), entry.digest), (Some("grant-kept"), Sha256::of(b"kept")));

    // Deleting the session takes its own along, not what was kept for the workspace.
    store.delete(writer).unwrap();
    assert_eq!(tools(&first, "/w", NOW), ["kept-until"]);
    assert_eq!(store.all_grants().unwrap().len(), 1);
    assert!(matches!(store.approval("session"), Err(StoreError::NoApproval(_))));
    store.revoke_grant("grant-kept-until", NOW + 3).unwrap();
}

#[test]
fn a_database_of_version_1_keeps_all_it_had_and_takes_questions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(include_str!("version-1.sql")).unwrap();
    let store = Store::open(&path).unwrap();
    let session = store.find("s").unwrap();
    let row = store.session(&session).unwrap().unwrap();
    assert_eq!((row.title.as_str(), row.status), ("do it", Some(RunStatus::Interrupted)));
    assert_eq!(store.events(&session, None, 9).unwrap().len(), 2);
    assert_eq!(store.view(&session).unwrap().messages, [crate::user("do it")]);
    assert_eq!(store.runs(&session).unwrap().len(), 1);
    // The old entries read, print and hash as they did.
    assert!(matches!(store.verify_ledger().unwrap(), LedgerCheck::Whole(head) if head.seq == 3));
    let sql = rusqlite::Connection::open(&path).unwrap();
    for (seq, entry) in store.ledger(0, 9).unwrap().iter().enumerate() {
        let text: String = sql
            .query_row("SELECT entry FROM ledger WHERE seq = ?1", [seq as i64 + 1], |row| row.get(0))
            .unwrap();
        assert_eq!(serde_json::to_string(entry).unwrap(), text);
    }
    let writer = store.lock(&session).unwrap();
    ask(&writer, &[approval(&session, "q", "shell")]);
    assert_eq!(waiting(&store, Some(&session)), ["q"]);
    store.resolve("q", &Answer::Once, "terminal", NOW).unwrap();
    assert!(matches!(store.verify_ledger().unwrap(), LedgerCheck::Whole(head) if head.seq == 5));
    let version: i64 = sql.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert!(version >= 2);
}
