//! Rules that do not do what they seem to.

use serde_json::{Value, json};

use crate::bench::{facts, policy};

fn codes(rules: Value) -> Vec<String> {
    lints(json!({"rules": rules}))
}

fn lints(value: Value) -> Vec<String> {
    policy(&value).lint().into_iter().map(|lint| format!("{} {}", lint.path, lint.code.as_str())).collect()
}

#[test]
fn findings() {
    let rule =
        |tool: &str, pattern: &str, action: &str| json!({"tool": tool, "pattern": pattern, "action": action});
    assert_eq!(
        codes(json!([rule("bash", "*rm -rf*", "deny"), {"tool": "bash", "action": "allow"}])),
        ["rules[0] disarms"]
    );
    assert_eq!(
        codes(json!([rule("bash", "*rm -rf*", "deny"), {"tool": "*", "action": "classify"}])),
        ["rules[0] disarms"]
    );
    assert_eq!(
        codes(json!([rule("bash", "git push*", "deny"), rule("bash", "git *", "allow")])),
        ["rules[0] disarms"]
    );
    assert_eq!(
        codes(json!([rule("bash", "git *", "allow"), rule("bash", "git push*", "deny")])),
        [] as [&str; 0]
    );
    assert_eq!(
        codes(json!([rule("bash", "git push*", "allow"), rule("bash", "git *", "deny")])),
        ["rules[0] shadowed"]
    );
    assert_eq!(
        codes(json!([rule("bash", "*secret*", "deny"), rule("bash", "cat *", "allow")])),
        ["rules[0] weakens"]
    );
    assert_eq!(
        codes(json!([rule("bash", "npm *", "deny"), rule("bash", "git *", "allow")])),
        [] as [&str; 0]
    );
    assert_eq!(codes(json!([rule("shell", "x", "deny"), rule("bash", "*", "allow")])), ["rules[0] disarms"]);
    assert_eq!(
        codes(json!([{"tool": "read", "effect": "write", "action": "deny"}])),
        ["rules[0] never_matches"]
    );
    assert_eq!(
        codes(json!([{"tool": "read", "program": "git", "action": "deny"}])),
        ["rules[0] never_matches"]
    );
    assert_eq!(
        codes(json!([{"tool": "*", "path": "/a/../b", "action": "deny"}])),
        ["rules[0] never_matches"]
    );
    assert_eq!(codes(json!([{"tool": "*", "path": "", "action": "deny"}])), ["rules[0] never_matches"]);
    assert_eq!(codes(json!([{"tool": "Bash", "action": "deny"}])), ["rules[0] unknown_tool"]);
    assert_eq!(codes(json!([{"tool": "mcp__x", "action": "deny"}])), [] as [&str; 0]);
    assert_eq!(
        lints(
            json!({"disabledTools": ["bash", "Write", "web*"], "rules": [{"tool": "bash", "action": "allow"}]})
        ),
        ["disabledTools[1] unknown_tool", "disabledTools[2] unknown_tool", "rules[0] never_matches"]
    );
    assert_eq!(
        lints(json!({"restrictToTools": ["read"], "rules": [{"tool": "write", "action": "ask"}]})),
        ["rules[0] never_matches"]
    );
}

/// The policy of the documentation has nothing to be told.
#[test]
fn the_documented_example_is_clean() {
    let rules = json!([
        {"tool": "read", "action": "allow"},
        {"tool": "grep", "action": "allow"},
        {"tool": "bash", "action": "classify"},
        {"tool": "bash", "pattern": "*rm -rf*", "action": "deny"},
        {"tool": "write", "pattern": "*/package.json", "action": "ask"},
    ]);
    assert_eq!(codes(rules), [] as [&str; 0]);
}

#[test]
fn examples_are_checked() {
    let value = json!({"rules": [{
        "tool": "bash", "pattern": "git *", "action": "allow",
        "match": ["git status", "git status; rm x"],
        "notMatch": ["git log", "ls", {"tool": "read", "target": "git x"}],
    }]});
    let problems = policy(&value).check_examples("/srv/repo", &facts);
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["rules[0].match[1]", "rules[0].notMatch[0]"], "{problems:?}");
    assert!(problems.iter().all(|problem| problem.code == "example"));
}
