//! JSON Lines in, JSON Lines out.

use serde_json::{Value, json};

use crate::{Rig, repository};

/// The cases of the policy crate, through the whole binary; the directory need not exist.
#[test]
fn every_case_gets_an_answer_that_is_right_for_it() {
    let text =
        std::fs::read_to_string(repository().join("crates/alisio-policy/tests/policy/cases.jsonl")).unwrap();
    let rig = Rig::new();
    let ran = rig.alisio(&["check", "--batch", "--cwd", "/srv/repo"], text.as_bytes()).expect(0);
    let answers = ran.lines();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len());
    let mut wrong = Vec::new();
    for (case, answer) in cases.iter().zip(&answers) {
        assert_eq!(case["id"], answer["id"]);
        for key in ["action", "source", "rule", "parts", "reason"] {
            assert!(answer.get(key).is_some(), "{key} is missing: {answer}");
        }
        if !case["accept"].as_array().unwrap().contains(&answer["action"]) {
            wrong.push(format!("{answer}, right is {}", case["accept"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_bad_line_is_told_in_its_place_and_the_rest_goes_on() {
    let rig = Rig::new();
    let lines: [&[u8]; 9] = [
        br#"{"id": 1, "policy": "auto", "call": {"tool": "bash", "target": "ls"}}"#,
        b"not json",
        br#"{"id": 3, "policy": "full", "call": {"tool": "bash", "target": "ls"}}"#,
        br#"{"id": 4, "policy": {"rules": [{"tool": "bash", "action": "rate_limit"}]}, "call": {"tool": "bash", "target": "ls"}}"#,
        br#"{"id": 5, "policy": "auto"}"#,
        br#"{"id": 6, "policy": "auto", "call": {"tool": "bash"}}"#,
        b"\xff\xfe",
        br#"{"id": {"of": 8}, "policy": "auto", "call": {"tool": "bash", "target": "x", "input": {}}}"#,
        br#"{"id": 9, "policy": "ask", "call": {"tool": "bash", "target": "ls"}}"#,
    ];
    let ran = rig.alisio(&["check", "--batch"], &lines.join(&b"\n"[..])).expect(2);
    let answers = ran.lines();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(json!(ids), json!([1, null, 3, 4, 5, 6, null, {"of": 8}, 9]));
    for (index, answer) in answers.iter().enumerate() {
        let is_good = matches!(index, 0 | 8);
        assert_eq!(answer.get("error").is_none(), is_good, "{answer}");
        let expected = if is_good { ["allow", "ask"][index / 8] } else { "deny" };
        assert_eq!(answer["action"], expected, "{answer}");
    }
    assert!(answers[3]["error"].as_str().unwrap().contains("rules[0].limit"), "{}", answers[3]);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

#[test]
fn the_policy_is_that_of_the_line_then_of_the_file_then_of_the_configuration() {
    let rig = Rig::new();
    let line = br#"{"id": 1, "call": {"tool": "bash", "target": "make"}}
{"id": 2, "policy": "auto", "call": {"tool": "bash", "target": "make"}}
{"id": 3, "call": {"tool": "read", "target": "a"}}"#;
    let actions = |args: &[&str]| -> Vec<Value> {
        let args: Vec<&str> = ["check", "--batch"].iter().chain(args).copied().collect();
        rig.alisio(&args, line).expect(0).lines().iter().map(|answer| answer["action"].clone()).collect()
    };
    // Without any, the table of effects.
    assert_eq!(json!(actions(&[])), json!(["ask", "allow", "allow"]));
    rig.write("config/config.json", r#"{"permissions": {"default": "deny"}}"#);
    assert_eq!(json!(actions(&[])), json!(["deny", "allow", "deny"]));
    let bare = rig.write("bare.json", r#"{"rules": [{"tool": "bash", "action": "allow"}]}"#);
    assert_eq!(json!(actions(&["--policy", &bare])), json!(["allow", "allow", "ask"]));
    let wrapped = rig.write("wrapped.json", r#"{"permissions": "readonly", "other": 1}"#);
    assert_eq!(json!(actions(&["--policy", &wrapped])), json!(["ask", "allow", "allow"]));

    for (content, said) in
        [("{", "is no JSON"), (r#"{"default": "x"}"#, "unknown_action"), (r#"{"permissions": 1}"#, "type")]
    {
        let bad = rig.write("bad.json", content);
        let ran = rig.alisio(&["check", "--batch", "--policy", &bad], line).expect(2);
        assert!(ran.stdout.is_empty() && ran.stderr.contains(said), "{}", ran.stderr);
    }
    rig.alisio(&["check", "--batch", "--policy", "/no/such/file"], line).expect(2);
}

/// A link is followed when it is asked for, and no file is looked at otherwise.
#[test]
fn links_are_followed_on_demand() {
    let rig = Rig::new();
    std::os::unix::fs::symlink("/etc", rig.path("workspace/src/link")).unwrap();
    let policy = rig.write(
        "policy.json",
        r#"{"rules": [{"tool": "write", "pattern": "src/*", "action": "allow"}, {"tool": "*", "path": "/etc/*", "action": "deny"}]}"#,
    );
    let line = br#"{"id": 1, "call": {"tool": "write", "target": "src/link/hosts"}}"#;
    let action = |more: &[&str]| {
        let args: Vec<&str> = ["check", "--batch", "--policy", &policy].iter().chain(more).copied().collect();
        rig.alisio(&args, line).expect(0).lines()[0]["action"].clone()
    };
    assert_eq!(action(&[]), "allow");
    assert_eq!(action(&["--resolve"]), "deny");
    let only_allow =
        rig.write("policy.json", r#"{"rules": [{"tool": "write", "pattern": "src/*", "action": "allow"}]}"#);
    assert_eq!(only_allow, policy);
    assert_eq!(action(&[]), "allow");
    assert_eq!(action(&["--resolve"]), "ask");
}

#[test]
fn commands_are_classified() {
    let rig = Rig::new();
    let lines = br#"{"id": "a", "cmd": "ls -l | sort"}
{"id": "b", "cmd": "rm x"}
{"id": "c"}
{"id": "d", "cmd": ""}
"#;
    let answers = rig.alisio(&["classify", "--batch"], lines).expect(2).lines();
    let classes: Vec<&Value> = answers.iter().map(|answer| &answer["class"]).collect();
    assert_eq!(json!(classes), json!(["read", "write-or-unknown", null, "write-or-unknown"]));
    assert!(answers[2].get("error").is_some());
    assert_eq!(answers[0]["facts"]["parts"].as_array().unwrap().len(), 2);
    assert!(answers.iter().all(|answer| answer.get("reason").is_some() || answer.get("error").is_some()));
}
