//! Kept sessions: listed, shown, exported, gone on with, deleted.

use std::fs;
use std::path::Path;

use alisio_store::Store;
use serde_json::json;

use crate::rig::{Rig, finish, until};

#[test]
fn list_show_and_export() {
    let rig = Rig::new(json!([
        {"calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]},
        {"text": "It says 41."},
        {"text": "Again."},
    ]));
    rig.alisio(&["sessions", "list"]).expect(0).prints(&["no session"]);
    let first = rig.session("what does it say?\nand why?");
    let second = rig.session("again");
    let listed = rig.alisio(&["sessions", "list"]).expect(0);
    let lines: Vec<_> = listed.stdout.lines().collect();
    assert!(lines[0].starts_with(&second) && lines[1].starts_with(&first), "newest first: {lines:?}");
    assert!(lines[1].contains("completed") && lines[1].contains("what does it say?"), "{lines:?}");
    assert_eq!(rig.alisio(&["sessions", "list", "--limit", "1", "--offset", "1"]).stdout.lines().count(), 1);
    let rows = rig.alisio(&["sessions", "list", "--json"]).expect(0).events();
    assert_eq!((rows.len(), &rows[1]["status"], &rows[1]["messages"]), (2, &json!("completed"), &json!(4)));
    let shown = rig.alisio(&["sessions", "show", &first]).expect(0);
    shown.prints(&[
        "> what does it say?",
        "* read_file notes.txt",
        "The answer is 41.",
        "It says 41.",
        "resume",
    ]);
    let messages = rig.alisio(&["sessions", "show", "--json", &first]).expect(0).events();
    assert_eq!(messages.len(), 4);
    let exported = rig.alisio(&["sessions", "export", &first]).expect(0).events();
    let events = exported.iter().filter(|line| line.get("eventId").is_some()).count();
    assert_eq!(exported.len() - events, 4, "events, then messages");
    assert!(exported[..events].iter().all(|line| line.get("eventId").is_some()));
    // Sessions belong to a directory.
    let elsewhere = rig.path("outside");
    let elsewhere = elsewhere.to_str().expect("it is UTF-8");
    rig.alisio(&["--cwd", elsewhere, "sessions", "list"]).expect(0).prints(&["no session", "--all"]);
    let all = rig.alisio(&["--cwd", elsewhere, "sessions", "list", "--all"]).expect(0);
    assert_eq!(all.stdout.lines().count(), 2);
}

#[test]
fn resume_goes_on_and_without_a_prompt_says_how_it_stands() {
    let rig = Rig::new(
        json!([{"text": "answer-a"}, {"text": "answer-b"}, {"text": "answer-c"}, {"text": "answer-d"}]),
    );
    let id = rig.session("prompt-a");
    rig.alisio(&["resume", &id]).expect(0).prints(&["prompt-a", "last run: completed", "alisio resume"]);
    rig.alisio(&["resume"]).expect(0).prints(&[&id]);
    assert_eq!(rig.server.request_count(), 1, "nothing was asked");
    rig.alisio(&["resume", &id[..13], "prompt-b"]).expect(0).prints(&["answer-b"]);
    rig.alisio(&["run", "--continue", "prompt-c"]).expect(0).prints(&["answer-c"]);
    rig.piped(&["resume", &id, "-"], b"prompt-d").expect(0).prints(&["answer-d"]);
    let sent = rig.request(3)["messages"].to_string();
    let at = |text: &str| sent.find(text).unwrap_or_else(|| panic!("`{text}` is missing: {sent}"));
    let order = ["prompt-a", "answer-a", "prompt-b", "answer-b", "prompt-c", "answer-c", "prompt-d"].map(at);
    assert!(order.is_sorted(), "{sent}");
    assert_eq!(rig.alisio(&["sessions", "list"]).stdout.lines().count(), 1);
}

#[test]
fn ids_that_fit_none_or_several() {
    let rig = Rig::saying("ok");
    let (first, second) = (rig.session("a"), rig.session("b"));
    let common: String =
        first.chars().zip(second.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    assert!(!common.is_empty());
    for args in [&["resume"][..], &["sessions", "show"], &["sessions", "export"], &["sessions", "recover"]] {
        rig.alisio(&[args, &[&common]].concat()).expect(2).says(&[&first, &second]);
        rig.alisio(&[args, &["zzzz"]].concat()).expect(2).says(&["there is no session `zzzz`"]);
        rig.alisio(&[args, &["../x"]].concat()).expect(2).says(&["there is no session `../x`"]);
        rig.alisio(&[args, &["%"]].concat()).expect(2).says(&["there is no session `%`"]);
    }
    let empty = Rig::saying("ok");
    for args in [&["resume"][..], &["run", "--continue", "x"]] {
        empty.alisio(args).expect(2).says(&["no session of", "alisio run"]);
    }
}

#[test]
fn a_session_belongs_to_its_directory() {
    let rig = Rig::saying("ok");
    let id = rig.session("a");
    let elsewhere = rig.path("outside");
    let elsewhere = elsewhere.to_str().expect("it is UTF-8");
    let workspace = rig.workspace().display().to_string();
    rig.alisio(&["--cwd", elsewhere, "resume", &id, "go on"]).expect(2).says(&[
        "belongs to",
        &workspace,
        "--cwd",
    ]);
    assert_eq!(rig.server.request_count(), 1);
}

#[test]
fn one_process_at_a_time() {
    let rig = Rig::new(json!([{"text": "ok"}, {"delayMs": 60000, "text": "late"}]));
    let id = rig.session("a");
    let mut child = rig.command(&["resume", &id, "slow"]).spawn().expect("the binary starts");
    until("the second request", || rig.server.request_count() == 2);
    let holder = format!("process {}", child.id());
    rig.alisio(&["resume", &id, "me too"]).expect(1).says(&["in use", &holder]);
    rig.alisio(&["sessions", "delete", "--yes", &id]).expect(1).says(&["in use"]);
    rig.alisio(&["resume", &id]).expect(0).prints(&["another process is working on it"]);
    child.kill().expect("it is ours");
    finish(child);
    // The lock died with its owner, and the cut run is told as what it is.
    rig.alisio(&["resume", &id]).expect(0).prints(&["last run: interrupted"]);
    let ran = rig.alisio(&["resume", "--json", "--timeout", "1s", &id, "again"]);
    assert_eq!(ran.events()[0]["type"], "run_started", "{}", ran.stderr);
}

fn ledger(rig: &Rig, session: &str) -> usize {
    let store = Store::open(&rig.database()).expect("the database opens");
    assert!(store.verify_ledger().is_ok(), "the chain of the ledger is whole");
    let entries = store.ledger(0, 1000).expect("the ledger can be read");
    entries.iter().filter(|entry| entry.session.to_string() == session).count()
}

#[test]
fn deleting_takes_contents_and_leaves_the_ledger() {
    let command = "echo a-word-nobody-says; seq 1 200000";
    let rig = Rig::new(json!([
        {"calls": [{"name": "shell", "arguments": {"command": command}}]},
        {"text": "another-word-nobody-says"},
    ]));
    let ran = rig.alisio(&["run", "--json", "--allow-process", "a-prompt-nobody-writes"]).expect(0);
    let id = ran.events()[0]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(ledger(&rig, &id), 1);
    rig.alisio(&["sessions", "delete", &id]).expect(2).says(&["--yes"]);
    rig.alisio(&["sessions", "show", &id]).expect(0);
    rig.alisio(&["sessions", "delete", "--yes", &id]).expect(0).says(&["ledger stay"]);
    assert_eq!(ledger(&rig, &id), 1);
    rig.alisio(&["sessions", "show", &id]).expect(2).says(&["there is no session"]);
    rig.alisio(&["sessions", "list"]).expect(0).prints(&["no session"]);
    rig.alisio(&["sessions", "gc"]).expect(0).prints(&["removed"]);
    for (path, content) in crate::rig::tree(&rig.path("state")) {
        for text in ["a-word-nobody-says", "another-word-nobody-says", "a-prompt-nobody-writes"] {
            assert!(!crate::rig::holds(&content, text), "`{text}` is still in {}", path.display());
        }
    }
}

#[test]
fn gc_forgets_what_is_old_and_keeps_what_is_not() {
    let rig = Rig::saying("ok");
    let id = rig.session("a");
    rig.alisio(&["sessions", "gc", "--older-than-days", "0"]).expect(2).says(&["pass --yes"]);
    rig.alisio(&["sessions", "gc", "--older-than-days", "1", "--yes"])
        .expect(0)
        .prints(&["removed 0 sessions"]);
    rig.alisio(&["sessions", "show", &id]).expect(0);
    rig.alisio(&["sessions", "gc", "--older-than-days", "0", "--yes"])
        .expect(0)
        .prints(&["removed 1 session"]);
    rig.alisio(&["sessions", "show", &id]).expect(2);
}

#[test]
fn nothing_to_recover() {
    let rig = Rig::saying("ok");
    let id = rig.session("a");
    rig.alisio(&["sessions", "recover", &id]).expect(0).prints(&["nothing is uncertain"]);
}

#[test]
fn a_killed_run_leaves_its_call_uncertain_and_its_tree_dead() {
    let rig = Rig::new(json!([
        {"calls": [{"name": "shell", "arguments": {"command": "echo $$ > pid; sleep 300"}}]},
        {"text": "I know now"},
    ]));
    let mut child =
        rig.command(&["run", "--json", "--allow-process", "go"]).spawn().expect("the binary starts");
    let pid = rig.workspace().join("pid");
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    until("the command", || !read(&pid).is_empty());
    child.kill().expect("it is ours");
    let ran = finish(child);
    until("the command is gone", || !crate::rig::runs(&read(&pid)));
    let id = ran.events()[0]["sessionId"].as_str().expect("an id").to_owned();
    rig.alisio(&["resume", &id]).expect(0).prints(&["interrupted", "process shell", "sessions recover"]);
    rig.alisio(&["resume", &id, "go on"]).expect(1).says(&["sessions recover", "--acknowledge"]);
    assert_eq!(rig.server.request_count(), 1, "the call was not repeated and the model was not asked");
    rig.alisio(&["sessions", "recover", "--acknowledge", &id]).expect(0).prints(&["closed 1 call"]);
    rig.alisio(&["resume", &id, "go on"]).expect(0).prints(&["I know now"]);
    assert!(
        rig.results()[0].contains("unknown") || rig.results()[0].contains("uncertain"),
        "{:?}",
        rig.results()
    );
}
