//! Permission policies in a real run: what they let through, ask about, refuse and count.

use serde_json::{Value, json};

use crate::rig::Rig;

fn shell(command: &str) -> Value {
    json!([{"name": "shell", "arguments": {"command": command}}])
}

/// A run whose model calls `shell` with each command and then stops.
fn running(commands: &[&str]) -> Rig {
    let mut turns: Vec<Value> = commands.iter().map(|command| json!({"calls": shell(command)})).collect();
    turns.push(json!({"text": "done"}));
    Rig::new(Value::Array(turns))
}

fn policy(rig: &Rig, policy: Value) {
    rig.configure(json!({ "permissions": policy }));
}

#[test]
fn an_allow_of_the_user_lifts_an_unset_flag_and_covers_no_second_command() {
    let rig = running(&["git --version", "git --version; touch made", "touch made"]);
    policy(
        &rig,
        json!({"default": "deny", "rules": [{"tool": "bash", "pattern": "git *", "action": "allow"}]}),
    );
    rig.alisio(&["run", "go"]).expect(0);
    let results = rig.results();
    assert!(results[0].contains("git version"), "{results:?}");
    assert!(results[1].contains("refused") && results[2].contains("refused"), "{results:?}");
    assert!(!rig.workspace().join("made").exists());
}

#[test]
fn classify_lets_readers_run_and_refuses_the_rest_where_nobody_is() {
    let rig = running(&["ls -l | wc -l", "cat notes.txt && touch made", "ls > made"]);
    rig.write("notes.txt", "hello\n");
    policy(&rig, json!({"default": "ask", "rules": [{"tool": "bash", "action": "classify"}]}));
    rig.alisio(&["run", "go"]).expect(4);
    let results = rig.results();
    assert!(results[0].contains("exit code 0"), "{results:?}");
    assert!(results[1].contains("refused") && results[2].contains("refused"), "{results:?}");
    assert!(!rig.workspace().join("made").exists());
}

#[test]
fn a_deny_tells_its_reason_and_no_flag_or_grant_lifts_it() {
    let rig = running(&["rm -rf build"]);
    policy(
        &rig,
        json!({"default": "allow", "rules": [
            {"tool": "bash", "pattern": "*rm -rf*", "action": "deny", "reason": "move it to trash/ instead"}
        ]}),
    );
    rig.alisio(&["run", "--allow-process", "--mode", "full", "go"]).expect(0);
    assert!(rig.results()[0].contains("move it to trash/ instead"), "{:?}", rig.results());
}

#[test]
fn readonly_offers_the_readers_alone_and_refuses_the_others_when_called() {
    let rig = running(&["touch made"]);
    policy(&rig, json!("readonly"));
    rig.alisio(&["run", "--allow-write", "go"]);
    let offered = rig.offered(0);
    assert!(
        offered.contains(&"read_file".to_owned()) && offered.contains(&"search_text".to_owned()),
        "{offered:?}"
    );
    assert!(
        !offered
            .iter()
            .any(|name| ["shell", "run_process", "write_file", "edit_file"].contains(&name.as_str()))
    );
    assert!(rig.results()[0].contains("refused"), "{:?}", rig.results());
}

#[test]
fn a_ceiling_counts_by_rule_whatever_the_text_and_across_restarts() {
    let rig = running(&["echo one", "echo two", "echo three"]);
    policy(
        &rig,
        json!({"default": "deny", "rules": [
            {"tool": "shell", "action": "rate_limit", "limit": {"count": 2, "windowMs": 3_600_000}}
        ]}),
    );
    rig.alisio(&["run", "go"]).expect(0);
    let results = rig.results();
    assert!(results[0].contains("one") && results[1].contains("two"), "{results:?}");
    assert!(
        results[2].contains("refused") && results[2].contains("min"),
        "the time left is told: {results:?}"
    );
}

#[test]
fn a_project_only_tightens_and_a_broken_policy_stops_the_start() {
    let rig = running(&["echo hello"]);
    rig.write(".alisio/config.json", json!({"permissions": "auto"}).to_string());
    rig.alisio(&["run", "--trust-project", "go"]).expect(4);
    rig.write(".alisio/config.json", json!({"permissions": {"default": "deny"}}).to_string());
    let rig = rig;
    rig.alisio(&["run", "--trust-project", "--allow-process", "go"]);
    rig.write(
        ".alisio/config.json",
        json!({"permissions": {"default": "perhaps", "rules": [{"tool": "bash", "action": "rate_limit"}]}})
            .to_string(),
    );
    rig.alisio(&["run", "--trust-project", "go"]).expect(2).says(&["2 problems", "default", "rules[0]"]);
}

#[test]
fn a_file_of_the_command_line_counts_beside_the_configured_one() {
    let rig = running(&["echo hello"]);
    let file = rig.path("policy.json");
    std::fs::write(&file, json!({"permissions": {"default": "deny"}}).to_string()).expect("it is written");
    policy(&rig, json!("auto"));
    rig.alisio(&["run", "--policy", file.to_str().expect("text"), "go"]).expect(0);
    assert!(rig.results()[0].contains("refused"), "{:?}", rig.results());
    rig.alisio(&["run", "--policy", "/nowhere/at/all.json", "go"]).expect(2);
}

#[test]
fn modes_decide_by_effect_where_no_policy_is_set() {
    let write = json!([{"name": "write_file", "arguments": {"path": "new.txt", "content": "x", "expectedHash": null}}]);
    for (mode, writes, runs) in [("ask", false, false), ("auto", true, false), ("full", true, true)] {
        let rig = Rig::new(json!([{"calls": write}, {"calls": shell("touch made")}, {"text": "done"}]));
        rig.alisio(&["run", "--mode", mode, "go"]);
        let there = |name: &str| rig.workspace().join(name).exists();
        assert_eq!((there("new.txt"), there("made")), (writes, runs), "{mode}");
    }
}
