//! The tools end to end: what the model asks for, what lies on the disk afterwards, what it is told.

use std::fs;

use serde_json::{Value, json};

use crate::rig::{Rig, runs, until};

const WRITE: &[&str] = &["run", "--allow-write", "--allow-process", "go"];

/// Reads a file, edits it with the fingerprint that was shown, and runs a command.
fn read_edit_run(path: &str, old: &str, new: &str, command: &str) -> Value {
    json!([
        {"calls": [{"name": "read_file", "arguments": {"path": path}}]},
        {
            "captures": [{"name": "sum", "from": "tool", "after": "sha256 ", "kind": "hex"}],
            "calls": [{"name": "edit_file", "arguments": {
                "path": path, "oldText": old, "newText": new, "expectedHash": "{{capture:sum}}",
            }}],
        },
        {"calls": [{"name": "shell", "arguments": {"command": command}}]},
        {"text": "done"},
    ])
}

#[test]
fn read_edit_and_run() {
    let rig = Rig::new(read_edit_run("notes.txt", "41", "42", "cat notes.txt; git diff --stat"));
    rig.alisio(WRITE).expect(0).says(&["files written: notes.txt"]);
    assert_eq!(rig.read("notes.txt"), "The answer is 42.\n");
    let results = rig.results();
    assert!(results[1].starts_with("edited `notes.txt` at line 1"), "{results:?}");
    assert!(
        results[2].contains("exit code 0")
            && results[2].contains("The answer is 42.")
            && results[2].contains("1 insertion"),
        "{results:?}"
    );
}

#[test]
fn an_edit_keeps_every_other_byte() {
    let content = b"\xef\xbb\xbfone\r\ntwo\r\nmixed\nlast";
    let rig = Rig::new(read_edit_run("crlf.txt", "two\nmixed", "2\nmixed", "true"));
    rig.write("crlf.txt", content);
    rig.alisio(WRITE).expect(0);
    assert_eq!(
        fs::read(rig.workspace().join("crlf.txt")).expect("it is there"),
        b"\xef\xbb\xbfone\r\n2\r\nmixed\nlast"
    );
}

#[test]
fn links_are_refused_by_name() {
    let rig = Rig::new(json!([
        {"calls": [{"name": "read_file", "arguments": {"path": "hard.txt"}}]},
        {
            "captures": [{"name": "sum", "from": "tool", "after": "sha256 ", "kind": "hex"}],
            "calls": [
                {"name": "edit_file", "arguments": {
                    "path": "hard.txt", "oldText": "41", "newText": "42", "expectedHash": "{{capture:sum}}",
                }},
                {"name": "read_file", "arguments": {"path": "soft.txt"}},
                {"name": "write_file", "arguments": {"path": "soft.txt", "content": "x", "expectedHash": null}},
                {"name": "write_file", "arguments": {"path": "folder/new.txt", "content": "x", "expectedHash": null}},
            ],
        },
        {"text": "done"},
    ]));
    fs::hard_link(rig.workspace().join("notes.txt"), rig.workspace().join("hard.txt"))
        .expect("links can be made");
    std::os::unix::fs::symlink("notes.txt", rig.workspace().join("soft.txt")).expect("links can be made");
    std::os::unix::fs::symlink("../outside", rig.workspace().join("folder")).expect("links can be made");
    rig.alisio(WRITE);
    let results = rig.results();
    assert!(results[1].contains("hard link") && results[1].contains("hard.txt"), "{}", results[1]);
    for result in &results[2..] {
        assert!(result.contains("symbolic link"), "{result}");
    }
    assert_eq!(results.len(), 5);
    assert_eq!(rig.read("hard.txt"), "The answer is 41.\n");
    assert_eq!(fs::read_dir(rig.path("outside")).expect("it is there").count(), 0);
}

#[test]
fn a_stale_fingerprint_is_refused_with_the_fresh_one() {
    let stale = "0".repeat(64);
    let edit = json!({"path": "notes.txt", "oldText": "41", "newText": "42", "expectedHash": stale});
    let rig = Rig::calling("edit_file", edit);
    rig.alisio(WRITE).expect(0);
    assert_eq!(rig.read("notes.txt"), "The answer is 41.\n");
    assert!(rig.results()[0].contains("sha256"), "{:?}", rig.results());
}

#[test]
fn large_output_is_kept_and_can_be_paged() {
    let rig = Rig::new(json!([
        {"calls": [{"name": "shell", "arguments": {"command": "seq 1 100000"}}]},
        {
            "captures": [{"name": "file", "from": "tool", "after": "output is in `", "until": "`"}],
            "calls": [{"name": "read_file", "arguments": {"path": "{{capture:file}}", "offset": 50000, "limit": 2}}],
        },
        {"text": "done"},
    ]));
    rig.alisio(WRITE).expect(0);
    assert!(rig.server.failures().is_empty(), "{:?}", rig.server.failures());
    let results = rig.results();
    assert!(results[0].contains("[truncated: ") && results[0].contains("100000"), "{}", &results[0][..200]);
    assert!(results[0].len() < 200_000);
    assert!(results[1].contains("\n50000\n50001\n"), "{}", results[1]);
}

#[test]
fn a_daemon_does_not_outlive_its_run() {
    let command = "setsid nohup sh -c 'echo $$ > daemon; exec sleep 300' > /dev/null 2>&1 & until [ -s daemon ]; do sleep 0.01; done";
    let rig = Rig::calling("shell", json!({"command": command}));
    rig.alisio(WRITE).expect(0);
    let pid = rig.read("daemon");
    until("the daemon is gone", || !runs(&pid));
    assert!(rig.results()[0].contains("exit code 0"), "{:?}", rig.results());
}

#[test]
fn a_command_has_a_limit() {
    let command = "trap '' TERM; echo $$ > pid; echo before; sleep 300; echo after; sleep 300";
    let rig = Rig::calling("shell", json!({"command": command, "timeoutMs": 300}));
    rig.alisio(WRITE).expect(0);
    let result = rig.results().remove(0);
    assert!(result.contains("limit of 300 ms") && result.contains("before"), "{result}");
    until("it is gone", || !runs(&rig.read("pid")));
}

#[test]
fn odd_results_of_commands() {
    for (tool, arguments, words) in [
        ("run_process", json!({"command": "sh", "args": ["-c", "exit 3"]}), &["exit code 3"][..]),
        ("run_process", json!({"command": "no-such-program", "args": []}), &["no-such-program"]),
        (
            "run_process",
            json!({"command": "printf", "args": ["%s|", "a b", "$HOME", "*"]}),
            &["a b|$HOME|*|"],
        ),
        ("shell", json!({"command": "kill -9 $$"}), &["signal 9"]),
        ("shell", json!({"command": "cat; echo end of input"}), &["end of input"]),
        ("shell", json!({"command": "printf 'a\\0b\\377c'"}), &["a\u{2400}b\u{FFFD}c"]),
        ("shell", json!({"command": ""}), &["empty"]),
        ("shell", json!({"cmd": "true"}), &["cmd"]),
    ] {
        let rig = Rig::calling(tool, arguments.clone());
        rig.alisio(WRITE).expect(0);
        let result = rig.results().remove(0);
        for word in words {
            assert!(result.contains(word), "{tool} {arguments}: {result}");
        }
    }
}

#[test]
fn reads_and_searches_find_what_is_there() {
    let rig = Rig::new(json!([
        {"calls": [
            {"name": "list_files", "arguments": {}},
            {"name": "search_text", "arguments": {"pattern": "answer"}},
            {"name": "git_status", "arguments": {}},
            {"name": "git_diff", "arguments": {}},
            {"name": "context_explain", "arguments": {"path": "notes.txt"}},
        ]},
        {"text": "done"},
    ]));
    rig.write(".gitignore", "ignored.txt\n");
    rig.write("ignored.txt", "answer\n");
    rig.write("notes.txt", "The answer is 43.\n");
    rig.write("binary", b"answer\0");
    let ran = rig.alisio(&["run", "--json", "go"]).expect(0);
    let results = rig.results();
    assert!(results[0].contains("notes.txt") && !results[0].contains("ignored.txt"), "{}", results[0]);
    assert!(
        results[1].contains("The answer is 43.") && !results[1].contains("ignored.txt"),
        "{}",
        results[1]
    );
    assert!(results[2].contains("M notes.txt") && results[2].contains("?? .gitignore"), "{}", results[2]);
    assert!(
        results[3].contains("-The answer is 41.") && results[3].contains("+The answer is 43."),
        "{}",
        results[3]
    );
    assert_eq!(ran.events_of("tool_completed").len(), 5);
}

#[test]
fn kept_output_is_a_root_of_its_own_session_only() {
    let rig = Rig::new(json!([
        {
            "match": {"user": "make it"},
            "calls": [{"name": "shell", "arguments": {"command": "seq 1 100000"}}],
        },
        {
            "match": {"user": "make it"},
            "captures": [{"name": "file", "from": "tool", "after": "output is in `", "until": "`"}],
            "calls": [{"name": "write_file", "arguments": {"path": "{{capture:file}}", "content": "x", "expectedHash": null}}],
        },
        {"match": {"user": "make it"}, "text": "done"},
        {
            "match": {"user": "read it"},
            "calls": [{"name": "read_file", "arguments": {"path": "{{capture:file}}"}}],
        },
        {"match": {"user": "read it"}, "text": "done"},
    ]));
    rig.alisio(&["run", "--allow-write", "--allow-process", "make it"]);
    assert!(!rig.results()[1].starts_with("wrote"), "it can be read and not written: {}", rig.results()[1]);
    rig.alisio(&["run", "read it"]).expect(4);
    assert!(rig.results()[0].contains("outside the workspace"), "{:?}", rig.results());
}

#[test]
fn effects_run_one_by_one_in_the_order_of_the_calls() {
    let step = |n: u32| json!({"name": "shell", "arguments": {"command": format!("echo start {n} >> log; sleep 0.05; echo end {n} >> log")}});
    let rig = Rig::new(json!([{"calls": [step(1), step(2), step(3)]}, {"text": "done"}]));
    rig.alisio(WRITE).expect(0);
    assert_eq!(rig.read("log"), "start 1\nend 1\nstart 2\nend 2\nstart 3\nend 3\n");
}

#[test]
fn a_tool_that_does_not_exist_is_an_error_result_and_the_run_goes_on() {
    let rig = Rig::calling("webfetch", json!({"url": "http://127.0.0.1:9/"}));
    rig.alisio(WRITE).expect(0).prints(&["done"]);
    assert!(rig.results()[0].contains("webfetch"), "{:?}", rig.results());
}
