//! The program, run as people run it.
#![allow(clippy::disallowed_methods, reason = "the tests start the program and write its input")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_alisio-conformance")).args(arguments).output().expect("it starts")
}

fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn list_has_every_fault_in_both_forms() {
    let text = stdout(&["list"]);
    let json: Value = serde_json::from_str(&stdout(&["list", "--json"])).expect("JSON");
    let entries = json.as_array().expect("an array");
    assert_eq!(entries.len(), alisio_conformance::faults::all().len());
    for entry in entries {
        assert!(text.contains(entry["name"].as_str().expect("a name")));
        assert!(text.contains(entry["sentence"].as_str().expect("a sentence")));
    }
    assert!(text.contains("html-with-200 [chat, responses]\n    A page of HTML comes with status 200"));
}

#[test]
fn show_gives_a_file_that_serve_takes_and_requests_are_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, record) = (folder.path().join("scenario.json"), folder.path().join("requests.jsonl"));
    std::fs::write(&file, stdout(&["show", "http-503"])).expect("the folder is ours");
    let mut child = Command::new(env!("CARGO_BIN_EXE_alisio-conformance"))
        .args(["serve", "--scenario"])
        .arg(&file)
        .arg("--record")
        .arg(&record)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let address =
        line.trim().strip_prefix("http://").and_then(|url| url.strip_suffix("/v1")).expect("a base URL");
    let mut socket = TcpStream::connect(address).expect("it listens");
    let body = r#"{"messages": [{"role": "user", "content": "hello"}]}"#;
    let length = body.len();
    write!(
        socket,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("it answers and closes");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let recorded: Value = serde_json::from_str(std::fs::read_to_string(&record).expect("written").trim())
        .expect("a line of JSON");
    assert_eq!(recorded["path"], "/v1/chat/completions");
    assert_eq!(recorded["body"]["messages"][0]["content"], "hello");
}

#[test]
fn mistakes_are_sentences_with_exit_code_two() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.json");
    std::fs::write(&file, r#"{"turns": [{"text": 1}]}"#).expect("the folder is ours");
    let bad = file.to_str().expect("UTF-8");
    for (arguments, expected) in [
        (&["serve", "--fault", "http-5o3"][..], "there is no fault `http-5o3`, did you mean `http-503`?"),
        (&["show", "done-missing", "--api", "responses"], "does not exist in the wire format `responses`"),
        (&["serve", "--scenario", "/nowhere.json"], "can't read `/nowhere.json`"),
        (&["serve", "--scenario", bad], "`turns[0].text`: invalid type"),
        (&["serve"], "required"),
    ] {
        let output = run(arguments);
        let sentence = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
    }
}

#[test]
fn schema_is_a_json_schema() {
    let schema: Value = serde_json::from_str(&stdout(&["schema"])).expect("JSON");
    assert!(schema["properties"]["turns"].is_object());
}
