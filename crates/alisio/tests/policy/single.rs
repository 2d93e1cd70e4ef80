//! One question at a time.

use std::path::Path;

use alisio_protocol::{
    AssistantMessage, CallId, Effect, Event, EventKind, Message, RunId, SessionId, ToolCall, VerdictSource,
    VerdictWord,
};
use alisio_store::{Durability, NewRun, NewSession, Store};

use crate::Rig;

const POLICY: &str = r#"{"rules": [
    {"tool": "bash", "action": "classify"},
    {"tool": "bash", "pattern": "git *", "action": "allow"},
    {"tool": "bash", "pattern": "git push*", "action": "deny", "reason": "ask a person to push"}
]}"#;

#[test]
fn check_and_classify() {
    let rig = Rig::new();
    let policy = rig.write("policy.json", POLICY);
    let ran = rig.alisio(&["check", "bash", "ls; git push", "--policy", &policy], b"").expect(0);
    assert!(ran.stdout.starts_with("deny: ask a person to push (rules[2], on `git push`)"), "{}", ran.stdout);
    let ran = rig.alisio(
        &[
            "check",
            "--json",
            "run_process",
            "--input",
            r#"{"command":"git","args":["log"]}"#,
            "--policy",
            &policy,
        ],
        b"",
    );
    let answer = ran.expect(0).lines().remove(0);
    assert_eq!((&answer["action"], &answer["rule"]), (&"allow".into(), &1.into()));
    rig.alisio(&["check"], b"").expect(2);
    rig.alisio(&["check", "bash", "--input", "{"], b"").expect(2);
    let ran = rig.alisio(&["classify", "ls | wc -l"], b"").expect(0);
    assert!(ran.stdout.starts_with("read: "), "{}", ran.stdout);
}

#[test]
fn explain_names_rule_word_and_next_changes() {
    let rig = Rig::new();
    let policy = rig.write("policy.json", POLICY);
    let explain = |args: &[&str]| {
        let args: Vec<&str> =
            ["explain", "--json", "--policy", &policy].iter().chain(args).copied().collect();
        rig.alisio(&args, b"").expect(0).lines().remove(0)
    };
    let asks = explain(&["bash", "cd src && make"]);
    assert_eq!(
        (&asks["action"], &asks["policy"]["word"], &asks["policy"]["rule"]),
        (&"ask".into(), &"make".into(), &0.into())
    );
    assert!(asks["policy"]["looser"].as_str().unwrap().contains(r#""action":"allow""#), "{asks}");
    assert!(asks["policy"]["stricter"].as_str().unwrap().contains(r#""action":"deny""#), "{asks}");
    // Flags answer questions, lift no refusal, and nothing lifts read-only.
    assert_eq!(explain(&["--allow-process", "bash", "make"])["source"], "flag");
    assert_eq!(explain(&["--allow-process", "bash", "git push"])["action"], "deny");
    assert_eq!(explain(&["--read-only", "bash", "git log"])["source"], "read-only");
    let refused = explain(&["--headless", "bash", "make"]);
    assert_eq!((&refused["action"], &refused["source"]), (&"deny".into(), &"nobody-to-ask".into()));
    assert!(refused["remedy"].as_str().unwrap().contains("--allow-process"));
    // The directory comes first.
    assert_eq!(explain(&["--headless", "read", "/etc/passwd"])["source"], "directory");
    let text = rig.alisio(&["explain", "bash", "make", "--policy", &policy], b"").expect(0).stdout;
    for word in ["rule ", "word ", "stricter", "looser"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn lint_and_test() {
    let rig = Rig::new();
    let bad = rig.write("bad.json", r#"{"rules": [{"tool": "bash", "pattern": "*rm*", "action": "deny"}, {"tool": "bash", "action": "allow"}]}"#);
    let ran = rig.alisio(&["lint", "--policy", &bad], b"").expect(1);
    assert!(ran.stdout.contains("rules[0]") && ran.stdout.contains("disarms"), "{}", ran.stdout);
    let good = rig.write("good.json", r#"{"rules": [{"tool": "bash", "pattern": "git *", "action": "allow", "match": "git log", "notMatch": ["ls"]}]}"#);
    rig.alisio(&["lint", "--policy", &good], b"").expect(0);
    let ran = rig.alisio(&["test", "--policy", &good], b"").expect(0);
    assert!(ran.stdout.contains("2 examples of 1 rules hold"), "{}", ran.stdout);
    let failing = rig.write(
        "failing.json",
        r#"{"rules": [{"tool": "bash", "pattern": "git *", "action": "allow", "match": ["ls"]}]}"#,
    );
    let ran = rig.alisio(&["test", "--policy", &failing], b"").expect(2);
    assert!(ran.stderr.contains("rules[0].match[0]"), "{}", ran.stderr);
    rig.alisio(&["test"], b"").expect(2);
}

fn call(id: &str, tool: &str, arguments: &str) -> ToolCall {
    ToolCall { id: CallId::new(id), name: tool.into(), arguments: arguments.into() }
}

#[test]
fn replay_tells_what_would_change() {
    let rig = Rig::new();
    let database = rig.path("state/sessions.sqlite");
    let store = Store::open(&database).unwrap();
    let (session, run) = (SessionId::new("s"), RunId::new("r"));
    let time = |second: u32| format!("2026-01-02T03:04:{second:02}.000Z");
    store
        .create_session(&NewSession {
            id: session.clone(),
            workspace: Path::new("/srv/repo").into(),
            provider: "p".into(),
            model: "m".into(),
            agent: None,
            created_at: time(0),
        })
        .unwrap();
    let writer = store.lock(&session).unwrap();
    let calls = vec![
        call("1", "shell", r#"{"command": "git log"}"#),
        call("2", "shell", r#"{"command": "git push"}"#),
        call("3", "shell", r#"{"command": "make"}"#),
        call("4", "write_file", r#"{"path": "src/a", "content": ""}"#),
    ];
    let verdicts = [
        ("1", VerdictWord::Allow, VerdictSource::Flag),
        ("2", VerdictWord::Allow, VerdictSource::Flag),
        ("3", VerdictWord::Deny, VerdictSource::NobodyToAsk),
        ("4", VerdictWord::Deny, VerdictSource::ReadOnly),
    ];
    writer
        .commit(Durability::Synced, |tx| {
            tx.run_started(&NewRun {
                id: run.clone(),
                request_id: None,
                model: "m".into(),
                started_at: time(0),
            })?;
            for (index, (id, verdict, source)) in verdicts.into_iter().enumerate() {
                let mut event = Event {
                    schema_version: 1,
                    run_id: run.clone(),
                    session_id: session.clone(),
                    seq: index as u64 + 1,
                    kind: EventKind::ToolDecided {
                        id: CallId::new(id),
                        name: "shell".into(),
                        effect: Effect::Process,
                        verdict,
                        source,
                        reason: "then".into(),
                    },
                    timestamp: time(1),
                    event_id: None,
                    correlation_id: None,
                };
                tx.event(&mut event)?;
            }
            let answer = AssistantMessage { text: String::new(), calls, items: Vec::new(), truncated: false };
            tx.message(&run, &Message::Assistant(answer))
        })
        .unwrap();
    drop(writer);
    drop(store);
    let policy = rig.write("policy.json", POLICY);
    let lines = rig.alisio(&["replay", "s", "--json", "--policy", &policy], b"").expect(0).lines();
    let changed: Vec<String> = lines
        .iter()
        .map(|line| {
            format!(
                "{} {}",
                line["call"].as_str().unwrap(),
                ["before", "after"].map(|key| line[key].as_str().unwrap()).join("→")
            )
        })
        .collect();
    assert_eq!(changed, ["2 allow→deny", "4 deny→ask"]);
    let text = rig.alisio(&["replay", "s", "--policy", &policy], b"").expect(0).stdout;
    assert!(text.contains("2 of 4 verdicts would change"), "{text}");
}

/// Without a file the policies of the configuration judge together, as in a run.
#[test]
fn a_project_only_tightens() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.path("workspace/.alisio")).unwrap();
    rig.write("workspace/.alisio/config.json", r#"{"permissions": {"default": "allow", "rules": [{"tool": "bash", "pattern": "git push*", "action": "deny"}]}}"#);
    let action = |target: &str| {
        let answer = rig
            .alisio(&["check", "--json", "--trust-project", "bash", target], b"")
            .expect(0)
            .lines()
            .remove(0);
        (answer["action"].as_str().unwrap().to_owned(), answer["reason"].as_str().unwrap().to_owned())
    };
    assert_eq!(action("make").0, "ask");
    let (word, reason) = action("git push");
    assert_eq!(word, "deny");
    assert!(reason.ends_with("(policy of the project)"), "{reason}");
    rig.write(
        "config/config.json",
        r#"{"permissions": {"default": "ask", "rules": [{"tool": "bash", "action": "allow"}]}}"#,
    );
    assert_eq!(action("make").0, "allow");
    assert_eq!(action("git push").0, "deny");
    let explained = rig
        .alisio(&["explain", "--json", "--trust-project", "bash", "git push"], b"")
        .expect(0)
        .lines()
        .remove(0);
    assert_eq!(explained["policy"]["from"], "project");
}
