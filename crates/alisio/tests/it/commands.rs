//! The commands around a run: demo, setup, doctor, completions, manual.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};

use crate::rig::{Ran, Rig, finish, tree};

#[test]
fn the_demo_needs_nothing_and_ends_with_a_passing_test() {
    let rig = Rig::saying("");
    fs::remove_file(rig.config_file()).expect("it was there");
    let kept = rig.path("kept");
    let ran = rig.alisio(&["demo", "--keep", kept.to_str().expect("it is UTF-8")]).expect(0);
    let all = format!("{}{}", ran.stdout, ran.stderr);
    for words in ["scripted", "edit_file", "alisio setup", &rig.path("state").display().to_string()] {
        assert!(all.contains(words), "{words}: {all}");
    }
    assert!(kept.join(".git").is_dir());
    assert_eq!(rig.server.request_count(), 0);
    rig.alisio(&["demo", "--keep", kept.to_str().expect("it is UTF-8")]).expect(2);
}

#[test]
fn the_demo_explains_that_git_is_missing() {
    let rig = Rig::saying("");
    let mut command = rig.command(&["demo"]);
    let ran = finish(command.env("PATH", rig.path("outside")).spawn().expect("the binary starts"));
    assert!(ran.code == 1 || ran.code == 2, "{}", ran.code);
    ran.says(&["git"]);
}

fn setup(rig: &Rig, args: &[&str], key: Option<&str>) -> Ran {
    let mut command = rig.command(&[&["setup", "--yes"][..], args].concat());
    if let Some(key) = key {
        command.env("MY_KEY", key);
    }
    finish(command.spawn().expect("the binary starts"))
}

#[test]
fn setup_verifies_and_writes_no_key() {
    let rig = Rig::saying("ok");
    fs::write(rig.config_file(), r#"{"limits": {"maxTurns": 7}}"#).expect("the folder is there");
    let url = rig.server.base_url();
    setup(&rig, &["--base-url", &url, "--api-key-env", "MY_KEY"], Some("sk-secret"))
        .expect(0)
        .prints(&["it answers", "config.json"]);
    assert!(rig.server.requests().iter().any(|request| request.method == "POST"), "a real request");
    let text = fs::read_to_string(rig.config_file()).expect("it was written");
    let file: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(
        file["provider"],
        json!({"baseURL": url, "model": "scripted", "apiKeyEnv": "MY_KEY", "streamUsage": true})
    );
    assert_eq!(file["limits"]["maxTurns"], 7, "what was there stays");
    assert!(!text.contains("sk-secret"));
    // What it wrote is enough to work.
    let mut command = rig.command(&["run", "hello"]);
    finish(command.env("MY_KEY", "sk-secret").spawn().expect("the binary starts"))
        .expect(0)
        .prints(&["ok"])
        .says(&["100 tokens in, 10 out"]);
}

/// A service that refuses the question for token counts is used without it.
#[test]
fn setup_does_without_token_counts_where_they_are_refused() {
    let rig = Rig::new(json!([
        {"expect": {"bodyLacks": ["include_usage"]}, "text": "ok", "repeat": 2}
    ]));
    setup(&rig, &["--base-url", &rig.server.base_url(), "--no-key"], None).expect(0).prints(&["it answers"]);
    let text = fs::read_to_string(rig.config_file()).expect("it was written");
    let file: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(file["provider"].get("streamUsage"), None);
}

#[test]
fn setup_for_a_project_waits_for_trust() {
    let rig = Rig::saying("ok");
    let before = fs::read(rig.config_file()).expect("it is there");
    setup(&rig, &["--project", "--no-key", "--base-url", &rig.server.base_url()], None)
        .expect(0)
        .prints(&["trust"]);
    let file: Value = serde_json::from_str(&rig.read(".alisio/config.json")).expect("it is JSON");
    assert_eq!(file["provider"]["auth"], "none");
    assert_eq!(fs::read(rig.config_file()).expect("it is there"), before);
}

/// Answers one request with an empty list; gives its address.
fn service_without_models() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
    let url = format!("http://{}/v1", listener.local_addr().expect("it listens"));
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("setup asks");
        let _ = socket.read(&mut [0; 4096]);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 11\r\n\r\n";
        let _ = socket.write_all(format!("{head}{{\"data\":[]}}").as_bytes());
    });
    url
}

#[test]
fn setup_explains_what_fails_and_writes_nothing() {
    let free = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
    let closed = format!("http://{}/v1", free.local_addr().expect("it listens"));
    drop(free);
    let refusing = Rig::new(json!([{"fault": "http-401", "repeat": 9}]));
    let several = Rig::with(
        serde_json::from_value(json!({"models": [{"id": "a"}, {"id": "b"}], "turns": [{"text": "ok"}]}))
            .expect("valid"),
    );
    let none = service_without_models();
    let url = |rig: &Rig| rig.server.base_url();
    for (rig, args, key, code, words) in [
        (
            &refusing,
            vec!["--base-url".into(), url(&refusing), "--api-key-env".into(), "MY_KEY".into()],
            Some("sk-wrong"),
            1,
            &["401", "check the key in MY_KEY"][..],
        ),
        (
            &refusing,
            vec!["--base-url".into(), url(&refusing), "--api-key-env".into(), "MY_KEY".into()],
            None,
            2,
            &["`MY_KEY` is not set", "--no-key"],
        ),
        (
            &refusing,
            vec!["--base-url".into(), closed.clone(), "--no-key".into()],
            None,
            1,
            &["is the server running"],
        ),
        (
            &several,
            vec!["--base-url".into(), url(&several), "--no-key".into()],
            None,
            2,
            &["several models", "a, b"],
        ),
        (
            &several,
            vec!["--base-url".into(), none, "--no-key".into()],
            None,
            2,
            &["lists no model", "--model ID"],
        ),
    ] {
        let before = fs::read(rig.config_file()).expect("it is there");
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let ran = setup(rig, &args, key);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("sk-wrong"));
        ran.says(words);
        assert_eq!(fs::read(rig.config_file()).expect("it is there"), before, "{args:?}");
    }
}

#[test]
fn doctor_changes_nothing() {
    let rig = Rig::saying("ok");
    for _ in 0..2 {
        let before = tree(&rig.path(""));
        rig.alisio(&["doctor"]).expect(0).prints(&["git", "scripted", "nothing is missing"]);
        // What SQLite keeps in the `-shm` file is a cache in shared memory; every reader touches it.
        let is_cache = |path: &Path| path.extension().is_some_and(|extension| extension == "sqlite-shm");
        let after =
            tree(&rig.path("")).into_iter().filter(|file| !before.contains(file) && !is_cache(&file.0));
        let changed: Vec<_> = after.map(|file| file.0).collect();
        assert_eq!(changed, Vec::<PathBuf>::new());
        // And again where there is a database.
        rig.session("hello");
    }
    assert_eq!(rig.server.request_count(), 2, "it sends nothing");
}

#[test]
fn doctor_names_what_is_missing() {
    let rig = Rig::saying("ok");
    rig.configure(json!({"provider": {"baseURL": rig.server.base_url(), "apiKeyEnv": "MY_KEY"}}));
    let mut command = rig.command(&["doctor"]);
    let ran = finish(command.env("PATH", rig.path("outside")).spawn().expect("the binary starts")).expect(1);
    ran.prints(&["! git", "! model", "! key", "MY_KEY is not set"]);
    fs::write(rig.config_file(), "{").expect("it is there");
    rig.alisio(&["doctor"]).expect(1).prints(&["config.json", "line 1"]);
}

#[test]
fn tools_say_what_the_flags_make_of_them() {
    let rig = Rig::saying("");
    for (flags, state) in [
        (&[][..], "disabled"),
        (&["--allow-write"], "enabled"),
        (&["--mode", "auto"], "enabled"),
        (&["--approvals", "deny"], "disabled"),
        (&["--approvals", "wait"], "asks"),
        (&["--approvals", "wait", "--allow-write"], "enabled"),
        (&["--approvals", "wait", "--read-only"], "disabled"),
    ] {
        let listed = rig.alisio(&[&["tools", "--json"][..], flags].concat()).expect(0).stdout;
        let tools = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
        let states: Vec<_> =
            tools.filter(|tool| tool["name"] == "write_file").map(|tool| tool["state"].clone()).collect();
        assert_eq!(states, [json!(state)], "{flags:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_told_nothing() {
    let rig = Rig::saying("");
    let mut child = rig.command(&["config", "schema"]).spawn().expect("the binary starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn help_manual_and_completions_name_every_command() {
    let rig = Rig::saying("");
    let commands = [
        "run",
        "resume",
        "demo",
        "setup",
        "doctor",
        "tools",
        "sessions",
        "trust",
        "config",
        "context",
        "completions",
    ];
    let mut texts: Vec<_> = ["bash", "zsh", "fish"]
        .iter()
        .map(|shell| rig.alisio(&["completions", shell]).expect(0).stdout)
        .collect();
    texts.push(rig.alisio(&["--help"]).expect(0).stdout);
    texts.push(rig.alisio(&["man"]).expect(0).stdout);
    for text in texts {
        for command in commands {
            assert!(text.contains(command), "{command} in:\n{text}");
        }
    }
    for command in commands {
        let help = rig.alisio(&[command, "--help"]).expect(0).stdout;
        assert!(help.contains("Usage: alisio"), "{command}: {help}");
    }
    rig.alisio(&["--version"]).expect(0).prints(&[env!("CARGO_PKG_VERSION")]);
    assert!(!rig.path("state").exists(), "none of these makes state");
}

#[test]
fn the_page_about_tools_is_what_the_tools_say() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md"));
    let made = Rig::saying("").alisio(&["tools", "--markdown"]).expect(0).stdout;
    assert_eq!(page.expect("the page is there"), made, "run `alisio tools --markdown > docs/tools.md`");
}
