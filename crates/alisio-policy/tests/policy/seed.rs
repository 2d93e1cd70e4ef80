//! The documentation of the permission gate that policies come from, table by table.

use alisio_policy::{Action, Outcome, Policy, RecordedUses};
use serde_json::{Value, json};

use crate::bench::{judge, judge_at, outcome, policy, subject};

use Outcome::{Allow, Ask, Deny};

const TOOLS: [&str; 7] = ["read", "grep", "find", "ls", "write", "edit", "bash"];

fn offered(policy: &Policy) -> Vec<&'static str> {
    TOOLS.into_iter().filter(|tool| policy.offers(tool)).collect()
}

#[test]
fn modes() {
    #[rustfmt::skip]
    let table: &[(&str, &str, &str, Outcome)] = &[
        // mode        tool      target             what happens
        // "Never ask."
        ("auto",       "bash",   "rm -rf /",        Allow),
        ("auto",       "write",  "a",               Allow),
        // "Pause before every tool call."
        ("ask",        "read",   "a",               Ask),
        ("ask",        "ls",     ".",               Ask),
        ("ask",        "bash",   "ls",              Ask),
        // "Restrict the model's toolset to the read-only tools."
        ("readonly",   "read",   "a",               Allow),
        ("readonly",   "grep",   "a",               Allow),
        ("readonly",   "find",   "a",               Allow),
        ("readonly",   "ls",     "a",               Allow),
        ("readonly",   "write",  "a",               Deny),
        ("readonly",   "edit",   "a",               Deny),
        // "Any bash left reachable is classify-triaged."
        ("readonly",   "bash",   "git status",      Allow),
        ("readonly",   "bash",   "rm a",            Ask),
    ];
    for (mode, tool, target, expected) in table {
        assert_eq!(outcome(&json!(mode), tool, target), *expected, "{mode}: {tool} {target}");
    }
    assert_eq!(offered(&policy(&json!("auto"))), TOOLS);
    assert_eq!(offered(&policy(&json!("ask"))), TOOLS);
    assert_eq!(offered(&policy(&json!("readonly"))), ["read", "grep", "find", "ls"]);
    for ours in ["read_file", "search_text", "list_files"] {
        assert!(policy(&json!("readonly")).offers(ours), "{ours}");
    }
    for ours in ["write_file", "edit_file", "shell", "run_process", "webfetch"] {
        assert!(!policy(&json!("readonly")).offers(ours), "{ours}");
    }
}

/// "Action when no rule matches. Defaults to ask."
#[test]
fn default() {
    assert_eq!(policy(&json!({})).default, Action::Ask);
    for (word, expected) in
        [("allow", Allow), ("ask", Ask), ("deny", Deny), ("classify", Ask), ("sandbox", Ask)]
    {
        assert_eq!(outcome(&json!({"default": word}), "write", "a"), expected, "{word}");
    }
}

/// "Evaluated in order; the last matching rule wins."
#[test]
fn rules() {
    let rules = |first: &str, second: &str| {
        json!({"rules": [
            {"tool": "bash", "pattern": "git *", "action": first},
            {"tool": "bash", "pattern": "*status*", "action": second},
        ]})
    };
    assert_eq!(outcome(&rules("allow", "deny"), "bash", "git status"), Deny);
    assert_eq!(outcome(&rules("deny", "allow"), "bash", "git status"), Allow);
    assert_eq!(outcome(&rules("allow", "deny"), "bash", "git log"), Allow);
    assert_eq!(outcome(&rules("allow", "deny"), "bash", "make"), Ask);
}

/// "Stripped from the model's tool list, with an unconditional deny backstop." "The only tools the model may see."
#[test]
fn lists() {
    let disabled = json!({"default": "allow", "disabledTools": ["bash"], "rules": [{"tool": "bash", "action": "allow"}]});
    assert_eq!(offered(&policy(&disabled)), ["read", "grep", "find", "ls", "write", "edit"]);
    assert_eq!(outcome(&disabled, "bash", "ls"), Deny);
    let restricted =
        json!({"default": "allow", "restrictToTools": ["read", "bash"], "disabledTools": ["bash"]});
    assert_eq!(offered(&policy(&restricted)), ["read"]);
    assert_eq!(outcome(&restricted, "write", "a"), Deny);
    assert_eq!(outcome(&restricted, "read", "a"), Allow);
}

/// "Anchored: `git *` matches `git status` but not `x && git status`; use `*git*` for a substring match."
#[test]
fn patterns() {
    let with = |pattern: &str| json!({"rules": [{"tool": "bash", "pattern": pattern, "action": "allow"}]});
    assert_eq!(outcome(&with("git *"), "bash", "git status"), Allow);
    assert_eq!(outcome(&with("git *"), "bash", "x && git status"), Ask);
    let substring =
        json!({"default": "allow", "rules": [{"tool": "bash", "pattern": "*git*", "action": "deny"}]});
    assert_eq!(outcome(&substring, "bash", "x && git status"), Deny);
}

#[test]
fn actions() {
    let with = |action: &str| json!({"default": "deny", "rules": [{"tool": "*", "action": action}]});
    #[rustfmt::skip]
    let table: &[(&str, &str, &str, Outcome)] = &[
        // action       tool          target                what happens
        ("allow",       "bash",       "make",               Allow),
        ("ask",         "bash",       "ls",                 Ask),
        ("deny",        "bash",       "ls",                 Deny),
        // "All parts read-only → allow; anything unrecognised, a redirect, sudo, rm → falls through to ask."
        ("classify",    "bash",       "ls && git status",   Allow),
        ("classify",    "bash",       "ls > f",             Ask),
        ("classify",    "bash",       "sudo make",          Ask),
        ("classify",    "bash",       "rm f",               Ask),
        // "For any other tool, classify behaves as ask."
        ("classify",    "read",       "f",                  Ask),
        ("classify",    "powershell", "Get-ChildItem",      Ask),
    ];
    for (action, tool, target, expected) in table {
        assert_eq!(outcome(&with(action), tool, target), *expected, "{action}: {tool} {target}");
    }
}

/// "Allow up to limit.count matching calls per limit.windowMs, then deny."
#[test]
fn rate_limit() {
    let policy = policy(&json!({"rules": [
        {"tool": "bash", "pattern": "curl *", "action": "rate_limit", "limit": {"count": 2, "windowMs": 60_000}},
    ]}));
    let mut uses = RecordedUses::default();
    let mut call = |now: i64, target: &str| {
        let judgement = judge_at(&policy, "bash", &subject("bash", target), now, &uses);
        if judgement.outcome == Allow {
            uses.record(&judgement.uses, now);
        }
        judgement
    };
    assert_eq!(call(0, "curl a").outcome, Allow);
    assert_eq!(call(10_000, "curl b").outcome, Allow);
    let refused = call(20_000, "curl c");
    assert_eq!(refused.outcome, Deny);
    assert!(refused.reason.contains("the next may run in 41 s"), "{}", refused.reason);
    // Exactly as old as the window still counts; the refused call was never counted.
    assert_eq!(call(60_000, "curl d").outcome, Deny);
    assert_eq!(call(60_001, "curl e").outcome, Allow);
    // A clock that was set back frees nothing.
    assert_eq!(call(-1_000_000, "curl f").outcome, Deny);
    // What another rule is about is not limited.
    assert_eq!(call(60_002, "wget a").outcome, Ask);
}

/// A deny rule's own words reach the model.
#[test]
fn reasons() {
    let policy = policy(&json!({"rules": [
        {"tool": "bash", "pattern": "pip install*", "action": "deny", "reason": "use the standard library"},
    ]}));
    let judgement = judge(&policy, "bash", "cd x && pip install y");
    assert_eq!(judgement.outcome, Deny);
    assert_eq!(judgement.reason, "use the standard library (rules[0], on `pip install y`)");
    assert_eq!((judgement.rule, judgement.part), (Some(0), Some(1)));
}

fn codes(value: &Value) -> Vec<(String, &'static str)> {
    Policy::parse(value)
        .expect_err("it has problems")
        .into_iter()
        .map(|problem| {
            assert!(!problem.message.is_empty());
            (problem.path, problem.code)
        })
        .collect()
}

/// "All problems of a spec are reported together (path, message, code per problem)."
#[test]
fn problems() {
    let value = json!({
        "default": "maybe",
        "rules": [
            {"tool": 7, "action": "allow"},
            {"tool": "bash", "action": "permit"},
            {"tool": "bash", "action": "rate_limit"},
            {"tool": "bash", "action": "rate_limit", "limit": {"count": 0, "windowMs": 1.5}},
            {"action": "allow"},
            {"tool": "bash"},
            {"tool": "bash", "patern": "x", "action": "allow"},
            {"tool": "bash", "effect": "destroy", "action": "allow"},
            "bash",
            {"tool": "bash", "pattern": ["x"], "action": "allow"},
        ],
        "disabledTools": "bash",
        "restrictToTools": [1],
    });
    let expected = [
        ("default", "unknown_action"),
        ("rules[0].tool", "type"),
        ("rules[1].action", "unknown_action"),
        ("rules[2].limit", "missing_limit"),
        ("rules[3].limit.count", "not_positive"),
        ("rules[3].limit.windowMs", "not_positive"),
        ("rules[4].tool", "missing"),
        ("rules[5].action", "missing"),
        ("rules[6].patern", "misspelled_key"),
        ("rules[7].effect", "unknown_effect"),
        ("rules[8]", "type"),
        ("rules[9].pattern", "type"),
        ("disabledTools", "type"),
        ("restrictToTools[0]", "type"),
    ];
    let found = codes(&value);
    let found: Vec<(&str, &str)> = found.iter().map(|(path, code)| (path.as_str(), *code)).collect();
    assert_eq!(found, expected);
    assert_eq!(codes(&json!("full")), [(String::new(), "unknown_mode")]);
    assert_eq!(codes(&json!(null)), [(String::new(), "type")]);
    assert_eq!(codes(&json!([])), [(String::new(), "type")]);
    assert_eq!(codes(&json!({"default": "rate_limit"})), [("default".to_owned(), "no_default")]);
    assert_eq!(codes(&json!({"disableTools": []})), [("disableTools".to_owned(), "misspelled_key")]);
}

/// "Unknown extra keys are kept and ignored at every level", unless they are nearly a known one.
#[test]
fn unknown_keys_are_ignored() {
    let policy = policy(&json!({
        "comment": "x",
        "rules": [{"tool": "bash", "action": "rate_limit", "note": 1, "limit": {"count": 1, "windowMs": 1, "x": 1}}],
    }));
    let told: Vec<String> = policy.lint().into_iter().map(|lint| lint.path).collect();
    assert_eq!(told, ["comment", "rules[0].note", "rules[0].limit.x"]);
}
