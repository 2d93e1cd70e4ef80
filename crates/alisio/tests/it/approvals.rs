//! A run that waits, answered from another process: for once, always, reject; killed on either side.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::rig::{Rig, finish, until};

/// A run that writes twice, each time through a tool that leaves a line in `effects`.
fn twice() -> Rig {
    let shell =
        |text: &str| json!([{"name": "shell", "arguments": {"command": format!("echo {text} >> effects")}}]);
    Rig::new(json!([{"calls": shell("one")}, {"calls": shell("two")}, {"text": "done"}]))
}

fn waiting(rig: &Rig) -> Child {
    rig.command(&["run", "--json", "--approvals", "wait", "go"]).spawn().expect("the binary starts")
}

/// The one question that waits, as `approvals list --json` tells it.
fn question(rig: &Rig) -> Value {
    let mut found = Value::Null;
    until("a call waits", || {
        let ran = rig.alisio(&["approvals", "list", "--json"]).expect(0);
        let Some(line) = ran.stdout.lines().next() else { return false };
        found = serde_json::from_str(line).expect("a JSON line");
        true
    });
    found
}

fn id_of(question: &Value) -> String {
    question["requestId"].as_str().expect("a request id").to_owned()
}

fn effects(rig: &Rig) -> Vec<String> {
    let path = rig.workspace().join("effects");
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn once_lets_one_call_run_and_the_next_one_waits_again() {
    let rig = twice();
    let run = waiting(&rig);
    let first = question(&rig);
    assert_eq!(first["type"], "permission_request");
    assert_eq!(first["tool"], "shell");
    assert_eq!(first["target"], "echo one >> effects");
    assert!(first["since"].is_i64(), "{first}");
    assert_eq!(effects(&rig), [""; 0], "nothing ran before the answer");
    rig.alisio(&["approvals", "resolve", &id_of(&first), "once"]).expect(0);
    let mut second = question(&rig);
    until("the second call waits", || {
        second = question(&rig);
        second["target"] == "echo two >> effects"
    });
    rig.alisio(&["approvals", "resolve", &id_of(&second), "once"]).expect(0);
    let ran = finish(run).expect(0);
    assert_eq!(effects(&rig), ["one", "two"]);
    assert_eq!(ran.events_of("approval_requested").len(), 2);
    assert_eq!(ran.events_of("approval_resolved").len(), 2);
    rig.alisio(&["ledger", "verify"]).expect(0);
}

#[test]
fn always_is_remembered_listed_and_taken_back() {
    let rig = twice();
    let run = waiting(&rig);
    let answered =
        rig.alisio(&["approvals", "resolve", &id_of(&question(&rig)), "always", "--keep"]).expect(0);
    assert!(answered.stdout.contains("remembered as"), "{}", answered.stdout);
    finish(run).expect(0);
    assert_eq!(effects(&rig), ["one", "two"]);
    let grants = rig.alisio(&["grants", "list", "--json"]).expect(0);
    let grant: Value = serde_json::from_str(grants.stdout.trim()).expect("one grant");
    assert_eq!(
        (&grant["width"], &grant["tool"], &grant["life"]),
        (&json!("tool"), &json!("shell"), &json!("kept"))
    );
    rig.alisio(&["grants", "revoke", grant["id"].as_str().expect("an id")]).expect(0);
    rig.alisio(&["grants", "list"]).expect(0).prints(&["nothing is granted"]);
}

#[test]
fn reject_reaches_the_model_with_its_feedback() {
    let rig = twice();
    let run = waiting(&rig);
    let id = id_of(&question(&rig));
    rig.alisio(&["approvals", "resolve", &id, "reject", "--feedback", "use the standard library"]).expect(0);
    until("the second call waits", || {
        let second = question(&rig);
        second["target"] == "echo two >> effects"
    });
    rig.alisio(&["approvals", "resolve", &id_of(&question(&rig)), "reject"]).expect(0);
    finish(run).expect(0);
    assert_eq!(effects(&rig), [""; 0]);
    assert!(rig.results()[0].contains("use the standard library"), "{:?}", rig.results());
}

#[test]
fn an_answer_comes_too_late_twice_or_for_nothing() {
    let rig = twice();
    let run = waiting(&rig);
    let id = id_of(&question(&rig));
    rig.alisio(&["approvals", "resolve", "no-such-request", "once"]).expect(2);
    rig.alisio(&["approvals", "resolve", &id, "once", "--keep"]).expect(2).says(&["go with `always`"]);
    rig.alisio(&["approvals", "resolve", &id, "always", "--width", "host"])
        .expect(2)
        .says(&["call", "tool", "effect"]);
    rig.alisio(&["approvals", "resolve", &id, "always"]).expect(0);
    rig.alisio(&["approvals", "resolve", &id, "reject"]).expect(2).says(&["always"]);
    finish(run).expect(0);
    assert_eq!(effects(&rig), ["one", "two"]);
}

#[test]
fn waiting_ends_by_itself_where_a_limit_is_given() {
    let rig = twice();
    let ran = rig.alisio(&["run", "--json", "--approvals", "wait=200ms", "go"]).expect(4);
    let ends: Vec<_> =
        ran.events_of("approval_resolved").iter().map(|e| e["data"]["resolution"]["kind"].clone()).collect();
    assert_eq!(ends, [json!("timeout"), json!("timeout")]);
    assert_eq!(effects(&rig), [""; 0]);
}

#[test]
fn a_tool_cannot_answer_for_a_person() {
    let binary = env!("CARGO_BIN_EXE_alisio");
    // Without the variable, too: its ancestors tell.
    let command = format!(
        "setsid env -u ALISIO_CEILING {binary} approvals resolve x once; env -u ALISIO_CEILING {binary} grants revoke x; true"
    );
    let rig = Rig::calling("shell", json!({"command": command}));
    rig.alisio(&["run", "--allow-process", "go"]).expect(0);
    let said = rig.results().join("\n");
    assert_eq!(said.matches("can't answer for a person").count(), 2, "{said}");
}

#[test]
fn a_killed_run_drops_its_question_and_runs_nothing() {
    let rig = twice();
    let mut run = waiting(&rig);
    let asked = question(&rig);
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    rig.alisio(&["approvals", "list"]).expect(0).prints(&["nothing waits"]);
    rig.alisio(&["approvals", "resolve", &id_of(&asked), "once"]).expect(2);
    assert_eq!(effects(&rig), [""; 0]);
    let session = asked["sessionId"].as_str().expect("a session");
    rig.alisio(&["resume", session]).expect(0);
    let logs = rig.alisio(&["logs", session]).expect(0);
    assert!(logs.stdout.contains("requested"), "{}", logs.stdout);
}

#[test]
fn kills_on_either_side_lose_no_decision_and_run_nothing_twice() {
    let n_runs: u64 = std::env::var("ALISIO_CRASH_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    for n in 0..n_runs {
        let rig = twice();
        let mut run = waiting(&rig);
        let asked = question(&rig);
        let id = id_of(&asked);
        let mut resolver = rig
            .command(&["approvals", "resolve", &id, "once"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        // Anywhere from before the answer to after the call.
        std::thread::sleep(std::time::Duration::from_micros(n * 7919 % 40_000));
        let victim = if n % 2 == 0 { &mut run } else { &mut resolver };
        let _ = victim.kill();
        let _ = resolver.wait();
        if n % 2 == 0 {
            let _ = run.wait();
            // What was started and not finished is uncertain; nothing starts by itself.
            // A command that ran at that moment is being ended; what it had done is done.
            std::thread::sleep(std::time::Duration::from_millis(300));
            let before = effects(&rig);
            assert!(before.len() <= 1, "run {n}: {before:?}");
            let session = asked["sessionId"].as_str().expect("a session");
            rig.alisio(&["resume", session]).expect(0);
            assert_eq!(effects(&rig), before, "run {n}");
        } else {
            // The answer was given whole or not at all.
            let waits = rig.alisio(&["approvals", "list", "--json"]).expect(0).stdout;
            if waits.contains(&id) {
                rig.alisio(&["approvals", "resolve", &id, "once"]).expect(0);
            }
            let mut second = Value::Null;
            until("the second call waits", || {
                second = question(&rig);
                second["target"] == "echo two >> effects"
            });
            rig.alisio(&["approvals", "resolve", &id_of(&second), "once"]).expect(0);
            finish(run).expect(0);
            assert_eq!(effects(&rig), ["one", "two"], "run {n}");
        }
        rig.alisio(&["ledger", "verify"]).expect(0);
    }
}

#[test]
fn a_program_answers_on_standard_input() {
    let rig = twice();
    let mut child = rig
        .command(&["run", "--json", "--approvals", "stdio", "go"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut answers = child.stdin.take().expect("a pipe");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let decisions = [json!({"kind": "once"}), json!({"kind": "reject", "feedback": "enough"})];
    let mut decisions = decisions.into_iter();
    let mut resolved = Vec::new();
    for line in lines {
        let line: Value = serde_json::from_str(&line.expect("text")).expect("JSON lines only");
        match line["type"].as_str() {
            Some("permission_request") => {
                writeln!(answers, "nonsense").expect("it reads");
                let decision = decisions.next().expect("two questions");
                writeln!(answers, "{}", json!({"requestId": line["requestId"], "decision": decision}))
                    .expect("it reads");
            }
            Some("permission_resolved") => resolved.push(line["decision"]["kind"].clone()),
            _ => {}
        }
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(resolved, [json!("once"), json!("reject")]);
    assert_eq!(effects(&rig), ["one"]);
    assert!(rig.results()[1].contains("enough"), "{:?}", rig.results());
}

#[test]
fn a_head_finds_a_cut_tail_and_a_flipped_byte_is_found_at_its_entry() {
    let rig = twice();
    rig.alisio(&["run", "--allow-process", "go"]).expect(0);
    let whole = rig.alisio(&["ledger", "verify"]).expect(0).stdout;
    let head = whole.trim().rsplit(' ').next().expect("a head").to_owned();
    rig.alisio(&["ledger", "verify", "--head", &head]).expect(0);
    rig.alisio(&["ledger", "verify", "--head", "99:0123456789"]).expect(1).says(&["missing"]);
    rig.alisio(&["ledger", "verify", "--head", "1:0123456789"]).expect(1).says(&["written anew"]);
    rig.alisio(&["ledger", "verify", "--head", "soon"]).expect(2);
    let database = rusqlite::Connection::open(rig.database()).expect("it opens");
    database
        .execute_batch(
            "PRAGMA writable_schema = on; DROP TRIGGER IF EXISTS ledger_no_update; DROP TRIGGER IF EXISTS ledger_no_delete;",
        )
        .expect("the guards can be taken away by whoever owns the file");
    let triggers: Vec<String> = database
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
        .expect("a list");
    for trigger in triggers {
        database.execute_batch(&format!("DROP TRIGGER \"{trigger}\"")).expect("it goes");
    }
    database
        .execute("UPDATE ledger SET entry = replace(entry, 'allow', 'alloW') WHERE seq = 1", [])
        .expect("it changes");
    drop(database);
    rig.alisio(&["ledger", "verify"]).expect(1).says(&["entry 1"]);
}

#[test]
fn the_ledger_holds_no_contents_no_commands_and_no_secrets() {
    const SECRET: &str = "hunter2-in-a-command";
    let write = json!([{"name": "write_file", "arguments": {"path": "a.txt", "content": format!("{SECRET}\n"), "expectedHash": null}}]);
    let shell = json!([{"name": "shell", "arguments": {"command": format!("echo {SECRET} | wc -c; rm -rf {SECRET}")}}]);
    let process = json!([{"name": "run_process", "arguments": {"command": "printf", "args": [SECRET]}}]);
    let search = json!([{"name": "search_text", "arguments": {"pattern": SECRET}}]);
    let turns = |last: &str| json!([{"calls": write}, {"calls": shell}, {"calls": process}, {"calls": search}, {"text": format!("{SECRET} {last}")}]);
    let rules = json!([
        {"tool": "bash", "action": "classify"},
        {"tool": "bash", "pattern": "*rm -rf*", "action": "deny", "reason": "no"},
        {"tool": "write", "action": "allow"},
        {"tool": "grep", "action": "rate_limit", "limit": {"count": 1, "windowMs": 60000}}
    ]);
    for permissions in [json!(null), json!("auto"), json!("ask"), json!({"rules": rules})] {
        let rig = Rig::new(turns("done"));
        if !permissions.is_null() {
            rig.configure(json!({ "permissions": permissions }));
        }
        rig.alisio(&["run", "--allow-write", "--allow-process", &format!("say {SECRET}")]);
        rig.alisio(&["run", "--approvals", "wait=50ms", &format!("say {SECRET}")]);
        let exported = rig.alisio(&["ledger", "export"]).expect(0).stdout;
        assert!(exported.lines().count() >= 4, "{permissions}: {exported}");
        assert!(!exported.contains(SECRET), "{permissions}: {exported}");
        assert!(!exported.contains("sk-scripted"), "{permissions}");
    }
}

#[test]
fn the_example_for_embedders_runs() {
    // `cargo test` builds it beside the binary.
    let example =
        std::path::Path::new(env!("CARGO_BIN_EXE_alisio")).with_file_name("examples/human_in_the_loop");
    let ran = std::process::Command::new(example)
        .output()
        .expect("`cargo test` without --test builds it; else run `cargo build --examples` first");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}");
    for words in ["shell: pip install requests", "shell: echo 'print(42)'", "Done with the standard library."]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
}
