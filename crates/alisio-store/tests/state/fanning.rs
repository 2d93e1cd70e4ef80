//! Which other questions end with an answer: a table for each kind of call.

use alisio_protocol::{Answer, Approval, Class, Effect, Facts, Part, Resolution, SessionId, Sha256, Width};

use crate::asking::{NOW, always, approval, ask, waiting};
use crate::{Scratch, new_session};

/// A simple command: its text, its words, its hosts.
fn part(text: &str, words: &str, hosts: &[&str]) -> Part {
    let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
    Part {
        text: text.into(),
        program: argv[0].rsplit('/').next().map(str::to_owned),
        argv: Some(argv),
        class: Class::WriteOrUnknown,
        reads: vec![],
        writes: vec![],
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        why: "a test".into(),
    }
}

fn facts(parts: Vec<Part>) -> Option<Facts> {
    Some(Facts { parts, class: Class::WriteOrUnknown, reason: "a test".into() })
}

fn plain(commands: &[&str]) -> Option<Facts> {
    facts(commands.iter().map(|command| part(command, command, &[])).collect())
}

/// Asks all questions, answers the first one, and says which others ended.
fn others(answer: &Answer, ask_all: impl Fn(&SessionId) -> Vec<Approval>) -> String {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let neighbour = new_session(&scratch.store, "t", "/w", 2);
    let writer = scratch.store.lock(&session).unwrap();
    let neighbour_writer = scratch.store.lock(&neighbour).unwrap();
    let questions = ask_all(&session);
    ask(&writer, &questions);
    // The same question of another session is its own matter.
    let twin = Approval { request_id: "twin".into(), session_id: neighbour, ..questions[0].clone() };
    ask(&neighbour_writer, &[twin]);
    let resolved = scratch.store.resolve(&questions[0].request_id, answer, "terminal", NOW).unwrap();
    let expected = if matches!(answer, Answer::Reject { .. }) {
        Resolution::Reject { feedback: None }
    } else {
        Resolution::Once
    };
    let mut ended = Vec::new();
    for (id, resolution) in &resolved.fanned_out {
        assert_eq!(*resolution, expected, "{id}");
        let row = scratch.store.approval(id).unwrap();
        assert_eq!((row.resolution.as_ref(), row.by.as_deref()), (Some(resolution), Some("terminal")));
        ended.push(id.as_str());
    }
    let mut all: Vec<&str> = questions.iter().map(|question| question.request_id.as_str()).skip(1).collect();
    all.retain(|id| !ended.contains(id));
    all.push("twin");
    assert_eq!(waiting(&scratch.store, None), all, "the others wait");
    ended.join(" ")
}

fn commands(session: &SessionId) -> Vec<Approval> {
    let shell = |id: &str, facts| Approval { facts, ..approval(session, id, "shell") };
    let first = shell("first", plain(&["git status"]));
    let digest = first.digest;
    vec![
        first,
        Approval { digest, ..shell("same", plain(&["git status"])) },
        shell("piped", plain(&["git log", "git shortlog"])),
        shell("with-another", plain(&["git status", "rm x"])),
        shell("local", plain(&["./git status"])),
        shell("preloaded", facts(vec![part("LD_PRELOAD=./x git status", "git status", &[])])),
        shell("redirected", facts(vec![part("git log > x", "git log", &[])])),
        shell("computed", facts(vec![Part { argv: None, ..part("git $(x)", "git", &[]) }])),
        shell("unread", None),
        shell("empty", facts(vec![])),
        Approval { facts: plain(&["git status"]), ..approval(session, "vector", "run_process") },
        Approval { digest, ..approval(session, "other-tool", "run_process") },
        Approval { effect: Effect::Write, ..approval(session, "write", "write_file") },
    ]
}

#[test]
fn commands_end_with_an_answer_that_covers_them() {
    let reject = Answer::Reject { feedback: Some("only the first is told".into()) };
    let shells = "same piped with-another local preloaded redirected computed unread empty";
    for (answer, ended) in [
        (Answer::Once, ""),
        (always(Some(Width::Call)), "same"),
        (always(Some(Width::Program)), "same piped vector"),
        (always(Some(Width::Tool)), shells),
        (always(None), shells),
        (always(Some(Width::Effect)), &format!("{shells} vector other-tool")),
        (reject, shells),
    ] {
        assert_eq!(others(&answer, commands), ended, "{answer:?}");
    }
}

#[test]
fn directories_hold_what_lies_below_them() {
    let places = |session: &SessionId| {
        let read = |id: &str, directory: &str| Approval {
            effect: Effect::Read,
            directory: Some(directory.into()),
            ..approval(session, id, "read_file")
        };
        vec![
            read("first", "/data"),
            read("same", "/data"),
            read("below", "/data/a/b"),
            read("slashes", "//data//a"),
            read("out-again", "/data/../etc"),
            read("neighbour", "/database"),
            read("above", "/"),
            read("relative", "data"),
            Approval { tool: "search_text".into(), ..read("other-reader", "/data/x") },
            Approval { effect: Effect::Write, tool: "write_file".into(), ..read("writer", "/data") },
            Approval { directory: None, ..read("none", "/data") },
        ]
    };
    for (answer, ended) in [
        (always(Some(Width::Directory)), "same below slashes other-reader"),
        (always(None), "same below slashes out-again neighbour above relative none"),
    ] {
        assert_eq!(others(&answer, places), ended, "{answer:?}");
    }
}

#[test]
fn hosts_are_told_apart_by_name_alone() {
    let calls = |session: &SessionId| {
        let fetch = |id: &str, target: &str| Approval {
            effect: Effect::External,
            target: target.into(),
            ..approval(session, id, "fetch")
        };
        let curl = |id: &str, parts| Approval { facts: facts(parts), ..fetch(id, "a command") };
        let api = |text: &str| part(text, text, &["api.example.com"]);
        vec![
            fetch("first", "https://api.example.com/a"),
            fetch("port", "https://API.example.com:8443/b?c"),
            fetch("bare", "api.example.com"),
            fetch("dot", "http://api.example.com./"),
            fetch("parent", "https://example.com/"),
            fetch("child", "https://x.api.example.com/"),
            fetch("user", "https://api.example.com@evil.example/"),
            fetch("backslash", "https://evil.example\\@api.example.com/"),
            fetch("query", "https://evil.example?x=https://api.example.com/"),
            fetch("six", "http://[::1]:80/"),
            curl("command", vec![api("curl a"), api("curl b")]),
            curl("two-hosts", vec![part("curl", "curl", &["api.example.com", "evil.example"])]),
            curl("beside", vec![api("curl a"), part("sh", "sh", &[])]),
            Approval { effect: Effect::Process, ..curl("other-effect", vec![api("curl a")]) },
            Approval { tool: "network".into(), ..fetch("other-tool", "api.example.com:443") },
        ]
    };
    assert_eq!(others(&always(Some(Width::Host)), calls), "port bare dot command other-tool");
    let six = |session: &SessionId| {
        let mut calls = calls(session);
        let first = calls.remove(9);
        let again = Approval { request_id: "six-again".into(), target: "::1".into(), ..first.clone() };
        vec![first, again, calls.remove(0)]
    };
    assert_eq!(others(&always(Some(Width::Host)), six), "six-again");
}

#[test]
fn a_grant_says_what_it_covers() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let question = |id: &str| Approval {
        facts: facts(vec![part("./tools/x a", "./tools/x a", &["Example.com:443"])]),
        directory: Some("/data".into()),
        ..approval(&session, id, "shell")
    };
    let mut lines = Vec::new();
    for width in [Width::Call, Width::Program, Width::Directory, Width::Host, Width::Tool, Width::Effect] {
        let id = format!("{width:?}").to_lowercase();
        ask(&writer, &[question(&id)]);
        let resolved = scratch.store.resolve(&id, &always(Some(width)), "terminal", NOW).unwrap();
        let grant = resolved.grant.unwrap();
        assert_eq!(grant.digest, (width == Width::Call).then(|| Sha256::of(b"call")));
        lines.push(format!("{} {:?} {:?} {:?}", grant.id, grant.program, grant.directory, grant.host));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    grant-call None None None
    grant-program Some("./tools/x") None None
    grant-directory None Some("/data") None
    grant-host None None Some("example.com")
    grant-tool None None None
    grant-effect None None None
    "#);
}
