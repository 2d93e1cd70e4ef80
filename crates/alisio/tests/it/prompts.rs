//! What goes into a prompt, and where the key goes.

use std::fs;

use serde_json::{Value, json};

use crate::rig::{Rig, finish, holds, text_of, tree};

/// A whole image of one pixel.
const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0,
    1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0xda, 0x63, 0x60, 0,
    0, 0, 2, 0, 1, 0xe5, 0x27, 0xde, 0xfc, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

fn asked(rig: &Rig) -> String {
    let request = rig.request(rig.server.request_count() - 1);
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    text_of(&messages.last().expect("there is a prompt")["content"])
}

#[test]
fn a_prompt_from_the_command_line_or_standard_input() {
    let rig = Rig::saying("ok");
    for (args, input, prompt) in [
        (&["run", "from an argument"][..], &b""[..], "from an argument"),
        (&["run"], b"from a pipe\nwith lines", "from a pipe\nwith lines"),
        (&["run", "-"], "größer".as_bytes(), "größer"),
    ] {
        rig.piped(args, input).expect(0);
        assert!(asked(&rig).contains(prompt), "{args:?}: {}", asked(&rig));
    }
    let n = rig.server.request_count();
    for (args, input, words) in [
        (&["run"][..], &b""[..], "the prompt is empty"),
        (&["run", "-"], b" \n", "the prompt is empty"),
        (&["run", ""], b"", "the prompt is empty"),
        (&["run", "--add-dir", "/", "mend it"], b"", "put the prompt before it"),
        (&["run"], b"caf\xe9", "not UTF-8"),
        (&["resume", "mend the test"], b"", "alisio run --continue"),
    ] {
        rig.piped(args, input).expect(2).says(&[words]);
    }
    assert_eq!(rig.server.request_count(), n);
}

#[test]
fn images_go_with_a_prompt() {
    let rig = Rig::saying("a pixel");
    let image = rig.write("pixel.dat", PNG);
    let image = image.to_str().expect("it is UTF-8");
    rig.alisio(&["run", "--attach", image, "what is it?"]).expect(0);
    let request = rig.request(0).to_string();
    assert!(request.contains("data:image/png;base64,iVBORw0KGgo"), "{request}");
    rig.alisio(&["run", "--api-mode", "responses", "--attach", image, "--attach", image, "what is it?"])
        .expect(0);
    assert_eq!(rig.request(1).to_string().matches("input_image").count(), 2);
    let large = rig.write("large.png", [PNG, &vec![0; 5 * 1024 * 1024]].concat());
    let text = rig.write("text.png", "no image");
    let n = rig.server.request_count();
    for (path, words) in [
        (large.to_str().expect("it is UTF-8"), "larger than 5 MB"),
        (text.to_str().expect("it is UTF-8"), "no PNG, JPEG, GIF or WebP"),
        ("missing.png", "missing.png"),
        (".", "not a file"),
    ] {
        rig.alisio(&["run", "--attach", path, "what is it?"]).expect(2).says(&[words]);
    }
    let five = ["--attach", image].repeat(5);
    rig.alisio(&[&["run", "what is it?"][..], &five].concat()).expect(2).says(&["at most 4"]);
    assert_eq!(rig.server.request_count(), n);
}

#[test]
fn flags_choose_model_service_and_format() {
    let rig = Rig::saying("ok");
    let url = rig.server.base_url();
    rig.configure(
        json!({"provider": {"baseURL": "http://127.0.0.1:9/v1", "model": "configured", "auth": "none"}}),
    );
    for (mode, path) in [("chat", "/v1/chat/completions"), ("responses", "/v1/responses")] {
        rig.alisio(&["run", "--base-url", &url, "--model", "chosen", "--api-mode", mode, "hello"]).expect(0);
        let request = rig.server.requests().pop().expect("it was asked");
        assert_eq!((request.path.as_str(), &request.body["model"]), (path, &json!("chosen")));
    }
}

#[test]
fn the_key_is_sent_and_is_nowhere_else() {
    let rig = Rig::calling(
        "shell",
        json!({"command": "env; cat /proc/$PPID/environ | tr '\\0' '\\n'; cat notes.txt"}),
    );
    rig.configure(
        json!({"provider": {"baseURL": rig.server.base_url(), "model": "scripted", "apiKeyEnv": "MY_KEY"}}),
    );
    let secret = "sk-0123456789-secret";
    let mut command = rig.command(&["run", "--json", "--allow-process", "hello"]);
    command.env("MY_KEY", secret).env("GITHUB_TOKEN", "ghp-secret").env("RUST_LOG", "trace");
    let ran = finish(command.spawn().expect("the binary starts")).expect(0);
    for request in rig.server.requests() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {secret}").as_str()));
        assert!(!request.body.to_string().contains(secret));
    }
    let result = rig.results().remove(0);
    assert!(result.contains("PATH=") && result.contains("The answer is 41."), "{result}");
    assert!(!result.contains(secret) && !result.contains("ghp-secret"), "{result}");
    assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret));
    for folder in ["state", "config", "workspace", "tmp", "home"] {
        for (path, content) in tree(&rig.path(folder)) {
            assert!(!holds(&content, secret), "{}", path.display());
        }
    }
}

#[test]
fn a_refused_key_is_not_repeated_in_the_error() {
    let rig = Rig::new(json!([{"fault": "http-401", "repeat": 9}]));
    rig.configure(
        json!({"provider": {"baseURL": rig.server.base_url(), "model": "scripted", "apiKeyEnv": "MY_KEY"}}),
    );
    let mut command = rig.command(&["run", "hello"]);
    let ran = finish(command.env("MY_KEY", "sk-wrong").spawn().expect("the binary starts")).expect(1);
    assert!(ran.stderr.contains("401") && !ran.stderr.contains("sk-wrong"), "{}", ran.stderr);
}

#[test]
fn an_image_is_stored_once() {
    let rig = Rig::saying("a pixel");
    let image = rig.write("pixel.png", PNG);
    let image = image.to_str().expect("it is UTF-8");
    let session = {
        let ran = rig.alisio(&["run", "--json", "--attach", image, "what is it?"]).expect(0);
        ran.events()[0]["sessionId"].as_str().expect("an id").to_owned()
    };
    fs::remove_file(image).expect("it was there");
    rig.alisio(&["resume", &session, "and now?"]).expect(0);
    let request: Value = rig.request(1);
    assert!(request.to_string().contains("data:image/png;base64,iVBORw0KGgo"), "the conversation keeps it");
}
