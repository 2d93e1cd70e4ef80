//! Questions: one process asks, another answers, and either may be killed.

use std::path::Path;
use std::process::Child;
use std::sync::Barrier;
use std::time::Duration;

use alisio_protocol::{Answer, Approval, CallId, Effect, Life, Resolution, RunId, SessionId, Sha256, Width};
use alisio_store::{Doorbell, Durability, LedgerCheck, LedgerEntry, SessionWriter, Store, StoreError};
use serde_json::json;

use crate::ringing::wait;
use crate::{Scratch, child, new_session};

const ANSWER: &str = "ALISIO_STORE_TEST_ANSWER";
/// 2026-01-02T03:00:00Z
pub(crate) const NOW: i64 = 1_767_322_800_000;
const SECRET: &str = "hunter2-in-the-command";

pub(crate) fn approval(session: &SessionId, id: &str, tool: &str) -> Approval {
    Approval {
        request_id: id.into(),
        session_id: session.clone(),
        run_id: RunId::new("r"),
        call_id: CallId::new(format!("call-{id}")),
        agent: String::new(),
        tool: tool.into(),
        effect: Effect::Process,
        target: format!("login --password {SECRET}"),
        shown: json!({"script": format!("login --password {SECRET}"), "cwd": "/w"}),
        facts: None,
        reason: format!("rule 3 asks about `login --password {SECRET}`"),
        widths: vec![Width::Call, Width::Program, Width::Directory, Width::Host, Width::Tool, Width::Effect],
        directory: None,
        digest: Sha256::of(id.as_bytes()),
        since: NOW,
        deadline: None,
    }
}

pub(crate) fn always(width: Option<Width>) -> Answer {
    Answer::Always { width, life: Life::Session, expires_at: None }
}

pub(crate) fn ask(writer: &SessionWriter, approvals: &[Approval]) {
    writer
        .commit(Durability::Synced, |tx| {
            approvals.iter().try_for_each(|approval| tx.approval_requested(approval))
        })
        .unwrap();
}

pub(crate) fn waiting(store: &Store, session: Option<&SessionId>) -> Vec<String> {
    store.pending_approvals(session).unwrap().into_iter().map(|pending| pending.approval.request_id).collect()
}

/// The ledger, a line an entry.
pub(crate) fn told(store: &Store) -> Vec<String> {
    assert!(matches!(store.verify_ledger().unwrap(), LedgerCheck::Whole(_)));
    let tell = |entry: LedgerEntry| {
        let part = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        format!("{} {} {} by {}", entry.kind, part(entry.request), part(entry.decision), part(entry.by))
    };
    store.ledger(0, 1000).unwrap().into_iter().map(tell).collect()
}

/// A process that asks `q`, waits for the answer without looking at a clock, and uses it.
pub(crate) fn ask_and_run(database: &Path) {
    let store = Store::open(database).unwrap();
    let bell = Doorbell::listen(&store).unwrap();
    let session = SessionId::new("s");
    let writer = store.lock(&session).unwrap();
    ask(&writer, &[approval(&session, "q", "shell")]);
    let resolution = loop {
        if let Some(resolution) = store.approval("q").unwrap().resolution {
            break resolution;
        }
        wait(&bell);
    };
    let used = writer.commit(Durability::Synced, |tx| tx.mark_used("q", &Sha256::of(b"q"), NOW + 9)).unwrap();
    println!("\n{} {used}", serde_json::to_string(&resolution).unwrap());
}

/// A process that asks and then does nothing at all.
pub(crate) fn ask_and_sit(database: &Path) {
    let store = Store::open(database).unwrap();
    let session = SessionId::new("s");
    let writer = store.lock(&session).unwrap();
    ask(&writer, &["q", "once", "kept"].map(|id| approval(&session, id, id)));
    std::thread::sleep(Duration::from_secs(60));
}

/// A process that answers `q` as the environment says.
pub(crate) fn answer(database: &Path) {
    let store = Store::open(database).unwrap();
    let answer: Answer = serde_json::from_str(&std::env::var(ANSWER).unwrap()).unwrap();
    match store.resolve("q", &answer, "terminal", NOW + 5) {
        Ok(resolved) => println!("\nwon {}", resolved.resolution.word()),
        Err(error) => println!("\nlost {error}"),
    }
}

fn answering(database: &Path, answer: &Answer) -> Child {
    let mut command = child::command("answer", database);
    command.env(ANSWER, serde_json::to_string(answer).unwrap()).spawn().unwrap()
}

/// Starts a process and returns when it has asked `count` questions.
fn asking(scratch: &Scratch, role: &str, count: usize) -> Child {
    let bell = Doorbell::listen(&scratch.store).unwrap();
    let child = child::command(role, &scratch.path()).spawn().unwrap();
    while waiting(&scratch.store, None).len() < count {
        wait(&bell);
    }
    child
}

fn output(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn one_process_waits_and_another_answers() {
    let feedback = Answer::Reject { feedback: Some("use the standard library".into()) };
    for (answer, told) in [
        (Answer::Once, r#"{"kind":"once"} true"#),
        (always(None), r#"{"kind":"always","width":"tool","life":"session"} true"#),
        (feedback, r#"{"kind":"reject","feedback":"use the standard library"} false"#),
    ] {
        let scratch = Scratch::new();
        new_session(&scratch.store, "s", "/w", 1);
        let owner = asking(&scratch, "ask", 1);
        let pending = scratch.store.pending_approvals(None).unwrap();
        assert!(pending[0].owner_alive);
        assert_eq!(pending[0].approval, approval(&SessionId::new("s"), "q", "shell"));
        let answered = output(answering(&scratch.path(), &answer));
        assert!(answered.contains("\nwon "), "{answered}");
        let heard = output(owner);
        assert!(heard.lines().any(|line| line == told), "{heard}");
        let row = scratch.store.approval("q").unwrap();
        assert_eq!((row.by.as_deref(), row.resolved_at), (Some("terminal"), Some(NOW + 5)));
        assert_eq!((row.used, row.void), (told.ends_with("true"), false));
        assert_eq!(waiting(&scratch.store, None), [""; 0]);
    }
}

#[test]
fn of_many_answers_one_wins_and_the_others_are_told_which() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let answers = [Answer::Once, Answer::Reject { feedback: None }, always(Some(Width::Call))];
    for round in 0..12 {
        let id = format!("q{round}");
        ask(&writer, &[approval(&session, &id, "shell")]);
        let start = Barrier::new(answers.len());
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads = answers.each_ref().map(|answer| {
                let (id, start, path) = (&id, &start, scratch.path());
                scope.spawn(move || {
                    let store = Store::open(&path).unwrap();
                    start.wait();
                    store.resolve(id, answer, "terminal", NOW)
                })
            });
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let won: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "{outcomes:?}");
        for lost in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            match lost {
                StoreError::AlreadyResolved { resolution, .. } => assert_eq!(*resolution, won[0].resolution),
                other => panic!("{other}"),
            }
        }
        assert_eq!(scratch.store.approval(&id).unwrap().resolution.as_ref(), Some(&won[0].resolution));
        let resolved = told(&scratch.store);
        let resolved = resolved.iter().filter(|line| line.contains(&format!("resolved {id} "))).count();
        assert_eq!(resolved, 1);
    }
}

#[test]
fn a_killed_answerer_leaves_a_whole_answer_or_none() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    ask(&writer, &[approval(&session, "q", "shell"), approval(&session, "other", "shell")]);
    for delay in 0..10 {
        let mut child = answering(&scratch.path(), &always(None));
        std::thread::sleep(Duration::from_millis(delay * 2));
        child.kill().unwrap();
        child.wait().unwrap();
        // Question, grant, what it releases and the ledger: all or nothing.
        let row = scratch.store.approval("q").unwrap();
        let other = scratch.store.approval("other").unwrap();
        let grants = scratch.store.all_grants().unwrap();
        let is_answered = row.resolution.is_some();
        assert_eq!(other.resolution, is_answered.then_some(Resolution::Once));
        assert_eq!(grants.len(), usize::from(is_answered));
        assert_eq!(told(&scratch.store).len(), if is_answered { 4 } else { 2 });
    }
    let late = scratch.store.resolve("q", &Answer::Once, "terminal", NOW);
    assert!(matches!(late, Ok(_) | Err(StoreError::AlreadyResolved { .. })), "{late:?}");
    for used in [true, false] {
        let mark = writer.commit(Durability::Synced, |tx| tx.mark_used("q", &Sha256::of(b"q"), NOW));
        assert_eq!(mark.unwrap(), used, "an answer lets its call run once");
    }
}

#[test]
fn a_killed_owner_drops_what_waits_and_voids_what_was_not_used() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let mut owner = asking(&scratch, "sit", 3);
    let resolve = |id: &str, answer: &Answer| scratch.store.resolve(id, answer, "terminal", NOW + 1);
    resolve("once", &Answer::Once).unwrap();
    resolve("kept", &always(None)).unwrap();
    owner.kill().unwrap();
    owner.wait().unwrap();

    // Before anybody takes the session.
    let pending = scratch.store.pending_approvals(Some(&session)).unwrap();
    assert_eq!(
        pending.iter().map(|p| (p.approval.request_id.as_str(), p.owner_alive)).collect::<Vec<_>>(),
        [("q", false)]
    );
    assert_eq!(scratch.store.approval("q").unwrap().resolution, Some(Resolution::Dropped));

    let writer = scratch.store.lock_at(&session, NOW + 2).unwrap();
    for id in ["q", "once", "kept"] {
        let used =
            writer.commit(Durability::Synced, |tx| tx.mark_used(id, &Sha256::of(id.as_bytes()), NOW + 3));
        assert!(!used.unwrap(), "{id} starts nothing in another process");
    }
    assert!(matches!(resolve("q", &Answer::Once), Err(StoreError::NotPending(_))));
    assert!(matches!(resolve("once", &Answer::Once), Err(StoreError::AlreadyResolved { .. })));
    assert_eq!(waiting(&scratch.store, None), [""; 0]);
    let row = scratch.store.approval("once").unwrap();
    assert_eq!((row.resolution, row.used, row.void), (Some(Resolution::Once), false, true));
    let grants = scratch.store.grants(&session, Path::new("/w"), NOW + 3).unwrap();
    assert_eq!(grants.iter().map(|grant| grant.tool.as_str()).collect::<Vec<_>>(), ["kept"]);
    insta::assert_snapshot!(told(&scratch.store).join("\n"), @"
    permission.requested q - by -
    permission.requested once - by -
    permission.requested kept - by -
    permission.resolved once once by terminal
    permission.resolved kept always by terminal
    permission.resolved q dropped by -
    permission.voided once once by -
    permission.voided kept always by -
    ");
    // Once is enough.
    drop(writer);
    let before = scratch.store.ledger_head().unwrap();
    drop(scratch.store.lock(&session).unwrap());
    assert_eq!(scratch.store.ledger_head().unwrap(), before);
}

#[test]
fn whoever_meets_the_question_of_a_dead_owner_writes_that_down() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let due = |id| Approval { deadline: Some(NOW + 5), ..approval(&session, id, "shell") };
    ask(&writer, &[approval(&session, "a", "shell"), due("b"), approval(&session, "c", "shell")]);
    drop(writer);
    let answered = scratch.store.resolve("a", &Answer::Once, "terminal", NOW);
    assert!(matches!(answered, Err(StoreError::NotPending(_))), "{answered:?}");
    assert_eq!(scratch.store.expire_approvals(NOW + 5).unwrap(), [("b".to_owned(), Resolution::Dropped)]);
    let after = told(&scratch.store);
    assert_eq!(after[3..], ["permission.resolved a dropped by -", "permission.resolved b dropped by -"]);
    // The time is the system's clock, for want of another.
    drop(scratch.store.lock(&session).unwrap());
    assert_eq!(told(&scratch.store)[5..], ["permission.resolved c dropped by -"]);
    assert!(scratch.store.ledger(5, 9).unwrap()[0].at.as_str() > "2026-01-02T03:00:00.000Z");
}

#[test]
fn stopping_closes_everything_and_deadlines_refuse() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let other = new_session(&scratch.store, "t", "/w", 2);
    let writer = scratch.store.lock(&session).unwrap();
    let other_writer = scratch.store.lock(&other).unwrap();
    let until = |id, deadline| Approval { deadline, ..approval(&session, id, id) };
    ask(
        &writer,
        &[
            until("soon", Some(NOW + 10)),
            until("later", Some(NOW + 20)),
            until("never", None),
            until("answered", Some(NOW + 10)),
        ],
    );
    ask(&other_writer, &[Approval { deadline: Some(NOW + 10), ..approval(&other, "theirs", "shell") }]);
    scratch.store.resolve("answered", &Answer::Once, "embedder", NOW).unwrap();
    let expire = |now| {
        let expired = scratch.store.expire_approvals(now).unwrap();
        expired.into_iter().map(|(id, resolution)| format!("{id} {}", resolution.word())).collect::<Vec<_>>()
    };
    assert_eq!(expire(NOW + 9), [""; 0]);
    // While somebody looks at them, nothing runs out; then there is a full window again.
    let postpone =
        |deadline| writer.commit(Durability::Unsynced, |tx| tx.postpone_approvals(deadline)).unwrap();
    assert_eq!(postpone(None), 3);
    assert_eq!(scratch.store.approval("soon").unwrap().approval.deadline, None);
    assert_eq!(expire(NOW + 10), ["theirs timeout"]);
    assert_eq!(postpone(Some(NOW + 30)), 3);
    assert_eq!(expire(NOW + 29), [""; 0]);
    ask(&writer, &[until("new", None)]);
    assert_eq!(expire(NOW + 30), ["soon timeout", "later timeout", "never timeout"]);
    match scratch.store.resolve("soon", &Answer::Once, "terminal", NOW + 31) {
        Err(StoreError::AlreadyResolved { resolution: Resolution::Timeout, .. }) => {}
        outcome => panic!("{outcome:?}"),
    }
    let closed =
        writer.commit(Durability::Synced, |tx| tx.close_approvals(&Resolution::Aborted, NOW + 40)).unwrap();
    assert_eq!(closed, [("new".to_owned(), Resolution::Aborted)]);
    let used =
        writer.commit(Durability::Synced, |tx| tx.mark_used("answered", &Sha256::of(b"answered"), NOW + 41));
    assert!(!used.unwrap(), "the run that it was for is over");
    insta::assert_snapshot!(told(&scratch.store)[5..].join("\n"), @"
    permission.resolved answered once by embedder
    permission.resolved theirs timeout by -
    permission.requested new - by -
    permission.resolved soon timeout by -
    permission.resolved later timeout by -
    permission.resolved never timeout by -
    permission.voided answered once by -
    permission.resolved new aborted by -
    ");
}

#[test]
fn one_question_can_be_closed_alone() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    ask(&writer, &["a", "b", "c"].map(|id| approval(&session, id, "shell")));
    scratch.store.resolve("b", &Answer::Once, "terminal", NOW).unwrap();
    let close = |id: &str, resolution| {
        writer.commit(Durability::Synced, |tx| tx.close_approval(id, &resolution, NOW + 1))
    };
    assert!(close("a", Resolution::Timeout).unwrap());
    assert!(!close("a", Resolution::Aborted).unwrap(), "an end is never replaced");
    assert!(!close("b", Resolution::Timeout).unwrap(), "nor is an answer");
    assert!(matches!(close("none", Resolution::Timeout), Err(StoreError::NoApproval(_))));
    // Whoever stops waiting lets nothing run by it.
    assert!(close("c", Resolution::Once).unwrap());
    let ended = ["a", "b", "c"].map(|id| scratch.store.approval(id).unwrap().resolution.unwrap());
    assert_eq!(ended, [Resolution::Timeout, Resolution::Once, Resolution::Aborted]);
    let used = writer.commit(Durability::Synced, |tx| tx.mark_used("b", &Sha256::of(b"b"), NOW + 2));
    assert!(used.unwrap(), "the answer to another question stands");
}

#[test]
fn an_answer_lets_only_run_what_was_shown() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let other = new_session(&scratch.store, "t", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let other_writer = scratch.store.lock(&other).unwrap();
    ask(&writer, &[approval(&session, "q", "shell"), approval(&session, "no", "write")]);
    let mark = |writer: &SessionWriter, id: &str, digest: &[u8]| {
        writer.commit(Durability::Synced, |tx| tx.mark_used(id, &Sha256::of(digest), NOW)).unwrap()
    };
    assert!(!mark(&writer, "q", b"q"), "nobody has answered");
    scratch.store.resolve("q", &Answer::Once, "terminal", NOW).unwrap();
    scratch.store.resolve("no", &Answer::Reject { feedback: None }, "terminal", NOW).unwrap();
    assert!(!mark(&writer, "q", b"something else"));
    assert!(!mark(&other_writer, "q", b"q"), "another session's");
    assert!(!mark(&writer, "no", b"no"));
    assert!(mark(&writer, "q", b"q"));
    assert!(!mark(&writer, "q", b"q"), "used up");
}

#[test]
fn what_cannot_be_asked_or_answered_is_told() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let narrow = Approval {
        widths: vec![Width::Call, Width::Program, Width::Tool],
        ..approval(&session, "ab1", "shell")
    };
    let narrowest = Approval { widths: vec![], ..approval(&session, "cd", "shell") };
    ask(&writer, &[narrow, narrowest, approval(&session, "ab2", "shell")]);
    let foreign = approval(&SessionId::new("t"), "x", "shell");
    let asked = writer.commit(Durability::Synced, |tx| tx.approval_requested(&foreign));
    assert!(matches!(asked, Err(StoreError::NoSession(_))));
    let again = writer.commit(Durability::Synced, |tx| tx.approval_requested(&approval(&session, "cd", "x")));
    assert!(again.is_err());

    let ends = Answer::Always { width: None, life: Life::Kept, expires_at: Some(NOW) };
    let store = &scratch.store;
    let said = [
        store.resolve("none", &Answer::Once, "terminal", NOW).unwrap_err(),
        // An answer names the whole id: a beginning that fits today may fit another question tomorrow.
        store.resolve("ab", &Answer::Once, "terminal", NOW).unwrap_err(),
        store.resolve("ab1", &always(Some(Width::Effect)), "terminal", NOW).unwrap_err(),
        store.resolve("ab1", &always(Some(Width::Program)), "terminal", NOW).unwrap_err(),
        store.resolve("cd", &always(None), "terminal", NOW).unwrap_err(),
        store.resolve("ab1", &ends, "terminal", NOW).unwrap_err(),
        store.approval("ab").unwrap_err(),
        store.approval("").unwrap_err(),
        store.revoke_grant("g", NOW).unwrap_err(),
    ];
    let said: Vec<_> = said.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(said.join("\n"), @"
    there is no approval `none`: `alisio approvals list` shows those that wait
    there is no approval `ab`: `alisio approvals list` shows those that wait
    approval `ab1` cannot be granted so: it offers `call`, `tool`
    approval `ab1` cannot be granted so: it offers `call`, `tool`
    approval `cd` cannot be granted so: it offers `once` and `reject` only
    the grant would end before it begins: `expiresAt` 1767322800000 is not in the future
    `ab` could be any of these approvals: ab2, ab1
    there is no approval ``: `alisio approvals list` shows those that wait
    there is no grant `g`: `alisio grants list` shows those there are
    ");
    assert_eq!(waiting(store, None), ["ab1", "cd", "ab2"], "all still wait");
    assert_eq!(store.all_grants().unwrap(), []);
    assert_eq!(store.approval("c").unwrap().approval.request_id, "cd");
}

#[test]
fn the_ledger_tells_of_questions_and_never_what_was_in_them() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    ask(&writer, &[approval(&session, "q", "shell"), approval(&session, "p", "shell")]);
    let answer = Answer::Always { width: None, life: Life::Kept, expires_at: Some(NOW + 1_000) };
    scratch.store.resolve("q", &answer, "terminal", NOW + 1).unwrap();
    scratch.store.revoke_grant("grant-q", NOW + 2).unwrap();
    let feedback = format!("never write {SECRET}");
    ask(&writer, &[approval(&session, "n", "shell")]);
    scratch.store.resolve("n", &Answer::Reject { feedback: Some(feedback) }, "embedder", NOW + 3).unwrap();
    let sql = scratch.sql();
    let mut statement = sql.prepare("SELECT entry FROM ledger ORDER BY seq").unwrap();
    let entries: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(entries.iter().all(|entry| !entry.contains(SECRET) && !entry.contains("login")));
    // What is stored is what the entry prints, with its fields in order.
    for (entry, text) in scratch.store.ledger(0, 99).unwrap().iter().zip(&entries) {
        assert_eq!(serde_json::to_string(entry).unwrap(), *text);
        let sorted: std::collections::BTreeMap<String, serde_json::Value> =
            serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&sorted).unwrap(), *text);
    }
    let digests = entries.join("\n").replace(&Sha256::of(b"q").to_string(), "SHA-OF-Q");
    let digests = digests.replace(&Sha256::of(b"p").to_string(), "SHA-OF-P");
    insta::assert_snapshot!(digests.replace(&Sha256::of(b"n").to_string(), "SHA-OF-N"), @r#"
    {"at":"2026-01-02T03:00:00.000Z","call":"call-q","digest":"SHA-OF-Q","effect":"process","kind":"permission.requested","paths":[],"reason":"the call waits for an answer","request":"q","run":"r","session":"s","tool":"shell"}
    {"at":"2026-01-02T03:00:00.000Z","call":"call-p","digest":"SHA-OF-P","effect":"process","kind":"permission.requested","paths":[],"reason":"the call waits for an answer","request":"p","run":"r","session":"s","tool":"shell"}
    {"at":"2026-01-02T03:00:00.001Z","by":"terminal","call":"call-q","decision":"always","digest":"SHA-OF-Q","effect":"process","grant":"grant-q","kind":"permission.resolved","life":"kept","paths":[],"reason":"somebody answered","request":"q","run":"r","session":"s","tool":"shell","width":"tool"}
    {"at":"2026-01-02T03:00:00.001Z","by":"terminal","call":"call-p","decision":"once","digest":"SHA-OF-P","effect":"process","grant":"grant-q","kind":"permission.resolved","paths":[],"reason":"the answer to another question of the session holds for it too","request":"p","run":"r","session":"s","tool":"shell"}
    {"at":"2026-01-02T03:00:00.002Z","call":"call-q","digest":"SHA-OF-Q","effect":"process","grant":"grant-q","kind":"permission.revoked","life":"kept","paths":[],"reason":"somebody took the grant back","run":"r","session":"s","tool":"shell","width":"tool"}
    {"at":"2026-01-02T03:00:00.000Z","call":"call-n","digest":"SHA-OF-N","effect":"process","kind":"permission.requested","paths":[],"reason":"the call waits for an answer","request":"n","run":"r","session":"s","tool":"shell"}
    {"at":"2026-01-02T03:00:00.003Z","by":"embedder","call":"call-n","decision":"reject","digest":"SHA-OF-N","effect":"process","kind":"permission.resolved","paths":[],"reason":"somebody answered","request":"n","run":"r","session":"s","tool":"shell"}
    "#);
}
