//! Exit codes, and what signals leave behind.

use std::process::Child;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::rig::{Rig, finish, runs, until};

#[test]
fn every_exit_code_by_a_real_case() {
    let read = json!([{"name": "read_file", "arguments": {"path": "notes.txt"}}]);
    let outside = json!([{"name": "read_file", "arguments": {"path": "/etc/hostname"}}]);
    for (what, turns, args, code) in [
        ("done", json!([{"text": "ok"}]), &["run", "go"][..], 0),
        ("the service refuses", json!([{"fault": "http-401", "repeat": 9}]), &["run", "go"], 1),
        ("an unknown flag", json!([]), &["run", "--frobnicate", "go"], 2),
        ("an unknown command", json!([]), &["frobnicate"], 2),
        ("an unknown agent", json!([]), &["run", "--agent", "frob", "go"], 2),
        ("a directory that is not there", json!([]), &["--cwd", "/nowhere/at/all", "run", "go"], 2),
        ("turns are used up", json!([{"calls": read}]), &["run", "--max-turns", "1", "go"], 3),
        (
            "time is used up",
            json!([{"delayMs": 60000, "text": "late"}]),
            &["run", "--timeout", "500ms", "go"],
            3,
        ),
        ("refused", json!([{"calls": outside}, {"text": "a pity"}]), &["run", "go"], 4),
    ] {
        let rig = Rig::new(turns);
        let ran = rig.alisio(args);
        assert_eq!(ran.code, code, "{what}: {}", ran.stderr);
    }
}

#[test]
fn the_help_documents_the_codes() {
    let help = Rig::saying("").alisio(&["--help"]).expect(0).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "0 done",
        "1 run failed",
        "2 usage or configuration",
        "3 stopped by a limit",
        "4 something needed approval",
        "130 interrupted",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
}

/// Starts a run whose tool leaves a tree of processes, two of which do not listen to SIGTERM.
fn working() -> (Rig, Child, Vec<String>) {
    let command = "trap '' TERM; (trap '' TERM; echo $BASHPID >> pids; sleep 300; sleep 300) & \
                   setsid sh -c 'echo $$ >> pids; exec sleep 301' & echo $$ >> pids; wait; sleep 300";
    let rig = Rig::calling("shell", json!({"command": command}));
    let child = rig.command(&["run", "--json", "--allow-process", "go"]).spawn().expect("the binary starts");
    let pids = rig.workspace().join("pids");
    let read = || std::fs::read_to_string(&pids).unwrap_or_default();
    until("the tree of processes", || read().lines().count() == 3);
    let pids = read().lines().map(str::to_owned).collect();
    (rig, child, pids)
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the child runs");
}

#[test]
fn one_interrupt_ends_the_run_cleanly() {
    ends_cleanly(Signal::INT, "SIGINT");
}

#[test]
fn a_request_to_terminate_ends_the_run_cleanly() {
    ends_cleanly(Signal::TERM, "SIGTERM");
}

fn ends_cleanly(signal: Signal, name: &str) {
    let (rig, child, pids) = working();
    send(&child, signal);
    let ran = finish(child).expect(130);
    let cancelled = ran.events_of("run_cancelled");
    assert!(
        cancelled[0]["data"]["error"].as_str().is_some_and(|error| error.contains(name)),
        "{cancelled:?}"
    );
    for pid in &pids {
        until("the processes of the run are gone", || !runs(pid));
    }
    let session = cancelled[0]["sessionId"].as_str().expect("events name their session");
    let exported = rig.alisio(&["sessions", "export", session]).expect(0);
    assert_eq!(exported.events_of("run_cancelled"), cancelled);
    // The call was cut; its outcome is not known, and that is said.
    rig.alisio(&["resume", session]).expect(0).prints(&["cancelled"]);
}

#[test]
fn two_signals_end_it_at_once() {
    let (rig, child, pids) = working();
    send(&child, Signal::INT);
    thread::sleep(Duration::from_millis(200));
    send(&child, Signal::INT);
    let ran = finish(child).expect(130);
    for pid in &pids {
        until("the processes of the run are gone", || !runs(pid));
    }
    let session = ran.events()[0]["sessionId"].as_str().expect("events name their session").to_owned();
    rig.alisio(&["resume", &session]).expect(0).prints(&["shell", "sessions recover"]);
    rig.alisio(&["resume", &session, "go on"]).expect(1).says(&["sessions recover"]);
    rig.alisio(&["sessions", "recover", &session]).expect(0).prints(&["--acknowledge"]);
    rig.alisio(&["sessions", "recover", &session, "--acknowledge"]).expect(0).prints(&["closed 1 call"]);
    rig.alisio(&["resume", &session, "go on"]).expect(0);
}

#[test]
fn a_signal_while_the_model_is_silent() {
    let rig = Rig::new(json!([{"delayMs": 60000, "text": "late"}]));
    let child = rig.command(&["run", "--json", "go"]).spawn().expect("the binary starts");
    until("the request", || rig.server.request_count() == 1);
    send(&child, Signal::INT);
    let ran = finish(child).expect(130);
    assert_eq!(ran.events_of("run_cancelled").len(), 1);
}
