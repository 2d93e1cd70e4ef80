//! `shell` and `run_process`.

use alisio_policy::Request;
use alisio_protocol::{ContentPart, Sha256, UiBlock};
use serde_json::json;

use crate::Bench;

pub(crate) fn results_tell_what_happened() {
    let bench = Bench::new();
    std::fs::create_dir(bench.workspace.join("sub")).expect("a new folder");
    let root = bench.workspace.display();
    for (tool, input, expected, is_error) in [
        ("shell", json!({"command": "echo a; echo b >&2"}), "exit code 0\nstdout:\na\n\nstderr:\nb\n".to_owned(), false),
        ("shell", json!({"command": "true"}), "exit code 0\n(no output)".to_owned(), false),
        ("shell", json!({"command": "exit 3"}), "exit code 3\n(no output)".to_owned(), true),
        ("shell", json!({"command": "kill -9 $$"}), "ended by signal 9\n(no output)".to_owned(), true),
        ("shell", json!({"command": "pwd", "cwd": "sub"}), format!("exit code 0\nstdout:\n{root}/sub\n"), false),
        (
            "shell",
            json!({"command": "sleep 60", "timeoutMs": 50}),
            "ended by signal 15; it was ended after its limit of 50 ms\n(no output)".to_owned(),
            true,
        ),
        (
            "shell",
            json!({"command": "sleep 60 & echo on"}),
            "exit code 0\nnote: 1 process still running at its exit: ended\nstdout:\non\n".to_owned(),
            false,
        ),
        (
            "shell",
            json!({"command": "printf 'a\\0b\\xffc'"}),
            "exit code 0\nstdout:\na\u{2400}b\u{FFFD}c\n[bytes that are not UTF-8 are shown as \u{FFFD}, NUL as \u{2400}]".to_owned(),
            false,
        ),
        ("run_process", json!({"command": "true"}), "exit code 0\n(no output)".to_owned(), false),
        ("run_process", json!({"command": "printf", "args": ["%s|", "a b", "$HOME", ""]}), "exit code 0\nstdout:\na b|$HOME||".to_owned(), false),
        (
            "run_process",
            json!({"command": "no-such-program", "args": []}),
            "`no-such-program` could not be started: No such file or directory (os error 2)".to_owned(),
            true,
        ),
    ] {
        let result = bench.call(tool, &input.to_string());
        assert_eq!(result.text_projection(), expected, "{tool} {input}");
        assert_eq!(result.is_error, is_error, "{tool} {input}");
    }
    let result = bench.call(
        "run_process",
        r#"{"command": "sh", "args": ["-c", "echo 'out'; echo err >&2; exit 4"], "cwd": "sub"}"#,
    );
    let Some(ContentPart::Ui { block: UiBlock::Terminal { output, command, cwd, exit_code, truncated, .. } }) =
        result.content.last()
    else {
        panic!("no terminal block in {result:?}");
    };
    assert_eq!(output, "out\nerr\n");
    assert_eq!(command, r#"sh -c 'echo '\''out'\''; echo err >&2; exit 4'"#);
    assert_eq!((cwd.as_deref(), *exit_code, *truncated), (Some("sub"), Some(4), false));
}

pub(crate) fn inputs_are_strict() {
    let bench = Bench::new();
    for (tool, input, expected) in [
        ("shell", json!({}), "missing field `command`"),
        ("shell", json!({"command": "true", "shell": "zsh"}), "unknown field `shell`"),
        ("shell", json!({"command": " "}), "`command` is empty"),
        ("shell", json!({"command": "a\u{0}b"}), "NUL character"),
        ("shell", json!({"command": "true", "timeoutMs": 0}), "`timeoutMs` must be from 1 to"),
        ("shell", json!({"command": "true", "timeoutMs": 3_600_001}), "`timeoutMs` must be from 1 to"),
        ("shell", json!({"command": "true", "cwd": "nowhere"}), "`cwd`: `nowhere` can't be entered"),
        ("shell", json!({"command": "true", "cwd": "/etc/passwd"}), "is not a directory"),
        ("shell", json!({"command": "x".repeat(1 << 20)}), "longer than 1 MiB"),
        ("run_process", json!({"command": "true", "args": "-x"}), "expected a sequence"),
        ("run_process", json!({"command": "", "args": []}), "`command` is empty"),
        ("git_status", json!({"path": "."}), "unknown field `path`"),
        ("git_diff", json!({"path": "../x"}), "without `..`"),
        ("git_diff", json!({"path": "/etc"}), "must be a path in the workspace"),
    ] {
        let error = bench.try_call(tool, &input.to_string(), |_| ()).expect_err("bad input").to_string();
        assert!(error.contains(expected), "{tool}: {error}");
    }
}

pub(crate) fn long_output_is_cut_and_kept() {
    let bench = Bench::new();
    let text = bench.text("shell", r#"{"command": "seq -f '%010.0f é' 1 100000; echo end; echo short >&2"}"#);
    assert!(text.len() < 66 * 1024, "{}", text.len());
    assert!(text.starts_with("exit code 0\nstdout:\n0000000001 é\n"), "{}", &text[..200]);
    assert!(text.ends_with("end\n\nstderr:\nshort\n"), "{}", &text[text.len() - 100..]);
    assert!(!text.contains('\u{FFFD}'), "a character was cut");
    let (_, mark) = text.split_once("[truncated: ").expect("a mark");
    let (left_out, mark) = mark.split_once(" bytes left out here; the full output is in `").expect("a mark");
    let (path, _) = mark.split_once("`, which read_file pages]").expect("a path");
    let all = std::fs::read_to_string(path).expect("the full output");
    assert_eq!(all.lines().count(), 100_001);
    assert!(std::path::Path::new(path).starts_with(bench.outside().join("outputs")), "{path}");
    let left_out: usize = left_out.parse().expect("a number");
    assert!(left_out < all.len() && left_out > all.len() - 64 * 1024);
}

pub(crate) fn output_is_shown_while_it_comes() {
    let bench = Bench::new();
    bench.call("shell", r#"{"command": "printf '\\xc3'; sleep 0.1; printf '\\xa9\\n'; echo e >&2"}"#);
    let shown = std::mem::take(&mut *bench.shown.lock().expect("no panic"));
    let of = |stream: &str| {
        shown
            .iter()
            .filter(|value| value["stream"] == stream)
            .filter_map(|value| value["text"].as_str())
            .collect::<String>()
    };
    assert_eq!((of("stdout").as_str(), of("stderr").as_str()), ("é\n", "e\n"));
    bench.call("shell", r#"{"command": "head -c 10000000 /dev/zero | tr '\\0' x"}"#);
    let shown: usize =
        bench.shown.lock().expect("no panic").iter().map(|value| value.to_string().len()).sum();
    assert!(shown < 400_000, "{shown}");
}

pub(crate) fn the_request_names_what_runs() {
    let bench = Bench::new();
    std::fs::create_dir(bench.workspace.join("sub")).expect("a new folder");
    std::os::unix::fs::symlink("/", bench.workspace.join("link")).expect("a link");
    let (sub, root) = (bench.workspace.join("sub"), bench.workspace.clone());
    let workspace =
        std::sync::Arc::new(alisio_host::workspace::Workspace::open(&root).expect("the workspace"));
    let tools = alisio_tools::commands(&workspace, &bench.processes);
    let request = |name: &str, input: &str| -> Request {
        let tool = tools.iter().find(|tool| tool.spec().name == name).expect("a tool");
        let call = alisio_protocol::ToolCall {
            id: alisio_protocol::CallId::new("c"),
            name: name.into(),
            arguments: input.into(),
        };
        tool.prepare(&call).expect("good input").request()
    };
    assert_eq!(request("shell", r#"{"command": "true", "cwd": "sub/../sub"}"#).scope.spawns_in, Some(sub));
    assert!(request("shell", r#"{"command": "true"}"#).outside.is_empty());
    // A link does not hide where it leads.
    assert_eq!(
        request("shell", r#"{"command": "true", "cwd": "link"}"#).outside[0].path,
        std::path::Path::new("/")
    );
    assert_eq!(
        request("shell", r#"{"command": "true", "cwd": "/usr"}"#).outside[0].path,
        std::path::Path::new("/usr")
    );
    let digests = [
        request("shell", r#"{"command": "true"}"#),
        request("shell", r#"{"command": "true "}"#),
        request("shell", r#"{"command": "true", "cwd": "sub"}"#),
        request("shell", r#"{"command": "true", "timeoutMs": 5}"#),
        request("run_process", r#"{"command": "a", "args": ["b", "c"]}"#),
        request("run_process", r#"{"command": "a", "args": ["b c"]}"#),
        request("git_diff", "{}"),
        request("git_diff", r#"{"staged": true}"#),
        request("git_status", "{}"),
    ];
    let different: std::collections::HashSet<Sha256> = digests.iter().map(|request| request.digest).collect();
    assert_eq!(different.len(), digests.len());
}

pub(crate) fn what_was_not_shown_does_not_run() {
    let bench = Bench::new();
    for (tool, input) in [("shell", r#"{"command": "touch ran"}"#), ("git_status", "{}")] {
        let changed =
            bench.try_call(tool, input, |request| request.digest = Sha256::of(b"other")).expect("good input");
        assert!(
            changed.is_error && changed.text_projection().contains("changed after it was decided on"),
            "{changed:?}"
        );
    }
    let moved = bench.try_call("shell", r#"{"command": "touch ran"}"#, |request| {
        request.scope.spawns_in = Some("/".into())
    });
    assert!(moved.expect("good input").text_projection().contains("does not cover"));
    let without =
        bench.try_call("shell", r#"{"command": "touch ran"}"#, |request| request.scope.spawns_in = None);
    assert!(without.expect("good input").is_error);
    assert!(!bench.workspace.join("ran").exists());
}
