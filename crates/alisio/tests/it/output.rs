//! What goes to standard output and what goes to standard error.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;

use serde_json::{Value, json};

use crate::rig::Rig;

const EPHEMERAL: [&str; 3] = ["text_delta", "reasoning_delta", "tool_progress"];

fn busy() -> Rig {
    Rig::new(json!([
        {"reasoning": "I look.", "text": "First I look.", "calls": [
            {"name": "read_file", "arguments": {"path": "notes.txt"}},
            {"name": "shell", "arguments": {"command": "echo out; echo err >&2"}},
            {"name": "write_file", "arguments": {"path": "new.txt", "content": "hello\n", "expectedHash": null}},
        ]},
        {"text": "All is done.", "usage": {"input": 900, "output": 12, "cachedInput": 800}},
    ]))
}

#[test]
fn json_lines_are_whole_ordered_and_the_ones_on_disk() {
    let rig = busy();
    let ran = rig.alisio(&["run", "--json", "--allow-write", "--allow-process", "go"]).expect(0);
    let events = ran.events();
    let mut last_id = 0;
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["schemaVersion"], 1, "{event}");
        assert_eq!(event["seq"], index + 1, "{event}");
        assert_eq!(event["runId"], events[0]["runId"]);
        assert_eq!(event["sessionId"], events[0]["sessionId"]);
        let timestamp = event["timestamp"].as_str().expect("a time");
        assert!(timestamp.len() == 24 && timestamp.ends_with('Z'), "{timestamp}");
        let kind = event["type"].as_str().expect("a type");
        if EPHEMERAL.contains(&kind) {
            assert!(event.get("eventId").is_none(), "{event}");
        } else {
            let id = event["eventId"]
                .as_str()
                .and_then(|id| id.parse::<u64>().ok())
                .unwrap_or_else(|| panic!("a durable event has an id: {event}"));
            assert!(id > last_id, "{event}");
            last_id = id;
        }
    }
    let kinds: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"run_started"));
    assert_eq!(kinds.last(), Some(&"run_completed"));
    for kind in
        ["text_delta", "reasoning_delta", "tool_decided", "tool_started", "tool_completed", "turn_completed"]
    {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let durable: Vec<_> = events.iter().filter(|e| e.get("eventId").is_some()).cloned().collect();
    let session = events[0]["sessionId"].as_str().expect("an id");
    let exported = rig.alisio(&["sessions", "export", session]).expect(0).events();
    let stored: Vec<_> = exported.into_iter().filter(|line| line.get("eventId").is_some()).collect();
    assert_eq!(stored, durable);
}

#[test]
fn no_display_block_is_printed_or_sent() {
    let rig = busy();
    let ran = rig.alisio(&["run", "--json", "--allow-write", "--allow-process", "go"]).expect(0);
    let sent = rig.request(1).to_string();
    for mark in ["\"ui\"", "\"block\"", "+++ ", "@@ "] {
        assert!(!ran.stdout.contains(mark) && !sent.contains(mark), "{mark}");
    }
    // It is kept for clients that draw it.
    let events = ran.events();
    let export =
        rig.alisio(&["sessions", "export", events[0]["sessionId"].as_str().expect("an id")]).expect(0);
    assert!(
        export.stdout.contains("\"diff\"") && export.stdout.contains("\"terminal\""),
        "{}",
        export.stdout
    );
}

#[test]
fn text_mode_keeps_the_answer_apart() {
    let rig = busy();
    rig.configure(json!({"provider": {
        "baseURL": rig.server.base_url(), "model": "scripted", "auth": "none", "streamUsage": true,
    }}));
    let ran = rig.alisio(&["run", "--allow-write", "--allow-process", "go"]).expect(0);
    assert_eq!(ran.stdout, "First I look.\nAll is done.\n");
    let ran = ran.says(&[
        "read_file notes.txt",
        "shell echo out; echo err >&2",
        "write_file new.txt",
        "files written: new.txt",
        "1000 tokens in (800 cached), 22 out",
        "alisio resume ",
    ]);
    assert!(!ran.stderr.contains('\x1b') && !ran.stdout.contains('\x1b'), "a pipe gets no colour");
    let quiet = busy().alisio(&["run", "--quiet", "--allow-write", "--allow-process", "go"]).expect(0);
    assert!(!quiet.stderr.contains("tokens"), "{}", quiet.stderr);
}

#[test]
fn errors_have_no_colour_in_a_pipe_and_none_with_no_color() {
    let rig = Rig::saying("");
    for variable in ["NO_COLOR", "IRRELEVANT"] {
        let mut command = rig.command(&["run", "--agent", "frob", "x"]);
        let ran =
            crate::rig::finish(command.env(variable, "1").spawn().expect("the binary starts")).expect(2);
        assert!(
            ran.stderr.starts_with("error: there is no agent `frob`") && !ran.stderr.contains('\x1b'),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn control_characters_of_a_name_do_not_reach_the_tool_lines() {
    let rig = Rig::new(json!([
        {"calls": [{"name": "read_file", "arguments": {"path": "a\u{1b}[2Jb\rc"}}]},
        {"text": "done"},
    ]));
    let ran = rig.alisio(&["run", "go"]).expect(0);
    assert!(ran.stderr.contains("read_file"), "{}", ran.stderr);
    assert!(!ran.stderr.contains(['\x1b', '\r']), "{:?}", ran.stderr);
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let rig = Rig::with(
        serde_json::from_value(json!({"turns": [{"deltas": {"count": 20000, "text": "word "}}]}))
            .expect("it is valid"),
    );
    let mut child = rig.command(&["run", "--json", "go"]).spawn().expect("the binary starts");
    drop(child.stdout.take());
    child.stdout = Some(empty_pipe());
    let ran = crate::rig::finish(child);
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

/// A pipe that nobody writes to, in the place of one that nobody reads.
fn empty_pipe() -> std::process::ChildStdout {
    let (reader, _) = std::io::pipe().expect("a pipe can be made");
    std::process::ChildStdout::from(std::os::fd::OwnedFd::from(reader))
}

#[test]
fn usage_that_was_not_reported_is_not_invented() {
    let rig = Rig::new(json!([{"text": "ok", "fault": "usage-missing"}]));
    let ran = rig.alisio(&["run", "--json", "go"]).expect(0);
    let turn: Value = ran.events_of("turn_completed").remove(0);
    assert!(turn["data"].get("usage").is_none(), "{turn}");
    assert!(ran.stderr.contains("tokens not reported"), "{}", ran.stderr);
}

/// Runs a command on a terminal and gives what the terminal got.
fn on_a_terminal(rig: &Rig, variables: &[(&str, &str)]) -> String {
    let (mut master, mut slave) = (0, 0);
    let (name, modes, size) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: the two integers live for the call, and the other pointers may be null.
    let made = unsafe { libc::openpty(&raw mut master, &raw mut slave, name, modes, size) };
    assert_eq!(made, 0, "a terminal can be made");
    // SAFETY: both descriptors were just made and have no other owner.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    let mut command = rig.command(&["run", "--timeout", "30s", "go"]);
    command.env("TERM", "xterm-256color").envs(variables.iter().copied());
    command.stdout(slave.try_clone().expect("a descriptor can be copied")).stderr(slave);
    let mut child = command.spawn().expect("the binary starts");
    // It holds the other end too, and the end of reading is when nobody does.
    drop(command);
    let mut bytes = Vec::new();
    let _ = File::from(master).read_to_end(&mut bytes);
    assert!(child.wait().expect("it is ours").success());
    String::from_utf8(bytes).expect("all output is UTF-8")
}

#[test]
fn a_terminal_is_not_steered_by_the_model() {
    let hostile = "before \u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\u{8} after";
    for (variables, colours) in [(&[][..], true), (&[("NO_COLOR", "1")], false), (&[("TERM", "dumb")], false)]
    {
        let rig = Rig::new(json!([
            {"calls": [{"name": "read_file", "arguments": {"path": "a\u{1b}[2Jb"}}]},
            {"text": hostile},
        ]));
        let shown = on_a_terminal(&rig, variables);
        assert!(
            shown.contains("before ") && shown.contains(" after") && shown.contains("read_file"),
            "{shown:?}"
        );
        for steering in ["\u{1b}]", "\u{1b}[2J", "\u{9b}", "\u{7}", "\u{8}"] {
            assert!(!shown.contains(steering), "{steering:?} in {shown:?}");
        }
        assert_eq!(shown.contains('\u{1b}'), colours, "{variables:?}: {shown:?}");
    }
    // Where a program reads it, the answer is the model's to the byte.
    assert_eq!(Rig::saying(hostile).alisio(&["run", "go"]).expect(0).stdout, format!("{hostile}\n"));
}
