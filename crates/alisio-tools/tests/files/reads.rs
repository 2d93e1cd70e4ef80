//! Reading, listing, explaining, the schemas and the examples.

use std::fs;
use std::os::unix::fs::symlink;

use alisio_protocol::Effect;
use alisio_tools::{Expected, examples};
use serde_json::json;

use crate::bench::{Bench, permit, reason};

#[test]
fn every_example_gives_what_it_says() {
    for example in examples() {
        let bench = Bench::new(example.files);
        if !bench.all().iter().any(|tool| tool.spec().name == example.tool) {
            continue;
        }
        let mut input = example.input.to_owned();
        for (path, content) in example.files {
            let fingerprint = alisio_protocol::Sha256::of(content.as_bytes()).to_string();
            input = input.replace(&format!("SHA256({path})"), &fingerprint);
        }
        let result = bench.call_text(example.tool, &input);
        let text = result.text_projection();
        match example.expected {
            Expected::Text(start) => assert!(text.starts_with(start), "{}: {text}", example.title),
            Expected::Holds(part) => assert!(text.contains(part), "{}: {text}", example.title),
            Expected::Refused(why) => {
                assert_eq!(reason(&result).as_deref(), Some(why.as_str()), "{}: {text}", example.title);
            }
        }
    }
}

#[test]
fn every_tool_has_an_example_and_a_strict_schema() {
    let bench = Bench::new::<&str, &str>(&[]);
    for tool in bench.all() {
        let spec = tool.spec();
        assert!(examples().any(|example| example.tool == spec.name), "{}", spec.name);
        assert_eq!(spec.input_schema["type"], "object", "{}", spec.name);
        assert_eq!(spec.input_schema["additionalProperties"], false, "{}", spec.name);
        let properties = spec.input_schema["properties"].as_object().unwrap();
        for (name, property) in properties {
            assert!(property["description"].is_string(), "{}.{name}", spec.name);
            assert!(property.get("format").is_none(), "{}.{name}", spec.name);
        }
    }
    let schema = |name: &str| {
        bench.all().iter().find(|tool| tool.spec().name == name).unwrap().spec().input_schema.clone()
    };
    assert_eq!(schema("write_file")["required"], json!(["path", "content", "expectedHash"]));
    assert_eq!(schema("write_file")["properties"]["expectedHash"]["type"], json!(["string", "null"]));
    assert_eq!(schema("edit_file")["required"], json!(["path", "oldText", "newText", "expectedHash"]));
    assert_eq!(schema("read_file")["required"], json!(["path"]));
}

#[test]
fn bad_input_says_what_was_expected() {
    let bench = Bench::new(&[("a.txt", "a\n")]);
    for (tool, input, expected) in [
        (
            "read_file",
            "{}",
            "bad input for `read_file`: missing field `path`; expected {\"path\": string, \"limit\"?: integer, \"offset\"?: integer}",
        ),
        ("read_file", "", "bad input for `read_file`: missing field `path`"),
        ("read_file", "{\"path\": ", "bad input for `read_file`: EOF while parsing"),
        (
            "read_file",
            "{\"path\": \"a\", \"line\": 1}",
            "bad input for `read_file`: unknown field `line`, expected one of `path`, `offset`, `limit`",
        ),
        ("read_file", "{\"path\": \"a.txt\", \"offset\": 0}", "`offset` and `limit` count from 1"),
        (
            "write_file",
            "{\"path\": \"a\", \"content\": \"\"}",
            "bad input for `write_file`: missing field `expectedHash`; expected {\"content\": string, \"expectedHash\": string|null, \"path\": string}",
        ),
        (
            "write_file",
            "{\"path\": \"a\", \"content\": \"\", \"expectedHash\": \"abc\"}",
            "bad input for `write_file`: expected a SHA-256 value of 64 hexadecimal digits",
        ),
        (
            "edit_file",
            "{\"path\": \"a.txt\", \"oldText\": \"\", \"newText\": \"\", \"expectedHash\": \"HASH\"}",
            "`oldText` is empty",
        ),
        (
            "edit_file",
            "{\"path\": \"a.txt\", \"oldText\": \"a\", \"newText\": \"a\", \"expectedHash\": \"HASH\"}",
            "`oldText` and `newText` are the same",
        ),
        (
            "search_text",
            "{\"pattern\": \"a(b\"}",
            "`pattern` is not a valid regular expression: regex parse error:\n    a(b\n     ^\nerror: unclosed group",
        ),
        ("search_text", "{\"pattern\": \"\"}", "`pattern` is empty"),
        (
            "search_text",
            "{\"pattern\": \"a\\nb\"}",
            "`pattern` is not a valid regular expression: the literal \"\\n\" is not allowed",
        ),
        ("search_text", "{\"pattern\": \"a\", \"glob\": \"a[\"}", "`glob` is not a valid pattern: "),
        ("search_text", "{\"pattern\": \"a\", \"maxResults\": 0}", "`maxResults` is 1 to 1000"),
        ("list_files", "{\"limit\": 0}", "`depth` counts from 1, and `limit` is 1 to 5000"),
        ("read_file", "{\"path\": \"~/a\"}", "refused (tilde): `~/a`: `~` is not expanded"),
    ] {
        let result = bench.call_text(tool, &input.replace("HASH", &bench.sha256("a.txt")));
        assert!(result.is_error, "{tool} {input}");
        let text = result.text_projection();
        assert!(text.starts_with(expected), "{tool} {input}: {text}");
    }
}

#[test]
fn a_call_asks_for_what_it_touches_and_runs_nothing_else() {
    let bench = Bench::new(&[("a.txt", "a\n")]);
    let file = bench.root.join("ws/a.txt");
    let input = json!({"path": "sub/../a.txt", "content": "b\n", "expectedHash": bench.sha256("a.txt")});
    let request = bench.prepare("write_file", &input.to_string()).unwrap().request();
    assert_eq!(request.effect, Effect::Write);
    assert_eq!((&request.scope.reads, &request.scope.writes), (&vec![file.clone()], &vec![file.clone()]));
    assert_eq!(request.outside, []);
    let other = json!({"path": "a.txt", "content": "c\n", "expectedHash": bench.sha256("a.txt")});
    let prepared = bench.prepare("write_file", &other.to_string()).unwrap();
    assert_ne!(prepared.request().digest, request.digest);
    let result = bench.run(prepared, permit(request));
    assert_eq!(reason(&result).as_deref(), Some("permit"));
    assert_eq!(bench.read("a.txt"), b"a\n");

    let read = bench.prepare("read_file", r#"{"path": "a.txt"}"#).unwrap().request();
    assert_eq!((read.effect, &read.scope.reads, &read.scope.writes), (Effect::Read, &vec![file], &vec![]));

    fs::write(bench.root.join("x.txt"), "outside\n").unwrap();
    let outside = bench.prepare("read_file", r#"{"path": "../x.txt"}"#).unwrap();
    let request = outside.request();
    assert_eq!(request.outside.len(), 1);
    assert_eq!(request.outside[0].path, bench.root.join("x.txt"));
    assert_eq!(request.outside[0].directory, bench.root);
    // Allowed by the gate, it is read.
    let text = bench.run(outside, permit(request)).text_projection();
    assert!(text.ends_with("\n\noutside"), "{text}");
}

#[test]
fn the_header_tells_what_the_file_is() {
    for (content, head, body) in [
        (&b""[..], "empty, UTF-8", None),
        (b"a\nb", "lines 1-2 of 2, UTF-8, LF, no line end at the end", Some("a\nb")),
        (b"a\r\nb\r\n", "lines 1-2 of 2, UTF-8, CRLF", Some("a\nb")),
        (b"a\r\nb\n", "lines 1-2 of 2, UTF-8, mixed LF and CRLF", Some("a\nb")),
        (b"a", "lines 1-1 of 1, UTF-8, no line ends, no line end at the end", Some("a")),
        (b"\xef\xbb\xbfa\n", "lines 1-1 of 1, UTF-8 with BOM, LF", Some("a")),
        (b"\xff\xfea\0\r\0\n\0", "lines 1-1 of 1, UTF-16 LE, CRLF", Some("a")),
        (b"\xfe\xff\0a\0\n", "lines 1-1 of 1, UTF-16 BE, LF", Some("a")),
        (b"caf\xe9\n", "lines 1-1 of 1, unknown 8-bit, shown as Latin-1, LF", Some("caf\u{e9}")),
    ] {
        let bench = Bench::new(&[("f", content)]);
        let text = bench.text("read_file", &json!({"path": "f"}));
        let header = format!("`f`: {head}, sha256 {}", bench.sha256("f"));
        let expected = body.map_or(header.clone(), |body| format!("{header}\n\n{body}"));
        assert_eq!(text, expected);
    }
    for content in [&b"a\0b"[..], b"\xff\xfe\0\0a\0\0\0", b"\x7fELF\0"] {
        let bench = Bench::new(&[("f", content)]);
        assert_eq!(reason(&bench.call("read_file", &json!({"path": "f"}))).as_deref(), Some("binary"));
    }
}

/// Reads page after page and joins what was shown.
fn pages(bench: &Bench, path: &str) -> (String, usize) {
    let (mut joined, mut offset, mut count) = (String::new(), 1, 0);
    loop {
        let text = bench.text("read_file", &json!({"path": path, "offset": offset}));
        assert!(text.len() < 66 * 1024, "{}", text.len());
        let (_, body) = text.split_once("\n\n").unwrap_or_else(|| panic!("{text}"));
        count += 1;
        match body.rsplit_once("\n[truncated: go on with offset ") {
            Some((shown, next)) => {
                joined.push_str(shown);
                joined.push('\n');
                offset = next.trim_end_matches(']').parse().unwrap();
            }
            None => {
                joined.push_str(body);
                return (joined, count);
            }
        }
    }
}

#[test]
fn long_files_are_read_in_pages() {
    let lines =
        |count: usize| (1..=count).map(|n| format!("line {n} {}", "é".repeat(20))).collect::<Vec<_>>();
    // Under and over the limit up to which a file is read whole.
    for count in [5_000, 60_000] {
        let content = lines(count).join("\n");
        let bench = Bench::new(&[("f", &content)]);
        fs::write(bench.root.join("spill/out"), &content).unwrap();
        for path in ["f".to_owned(), bench.root.join("spill/out").display().to_string()] {
            let (joined, pages) = pages(&bench, &path);
            assert!(joined == content, "{count} {path}");
            assert!(pages > 2);
        }
        let some = bench.text("read_file", &json!({"path": "f", "offset": count - 1, "limit": 1}));
        assert!(some.contains(&format!("\n\nline {} é", count - 1)), "{some}");
        assert!(some.ends_with(&format!("[truncated: go on with offset {count}]")), "{some}");
        let past = bench.call("read_file", &json!({"path": "f", "offset": count + 1}));
        assert!(past.is_error && past.text_projection().contains("is past the end"));
        let head = bench.text("read_file", &json!({"path": "f"}));
        assert_eq!(head.lines().next().unwrap().contains("sha256"), content.len() <= 1024 * 1024);
    }
}

#[test]
fn a_line_longer_than_a_page_is_cut_and_said_so() {
    for size in [100_000, 3_000_000] {
        let content = format!("{}\nend\n", "é".repeat(size / 2));
        let bench = Bench::new(&[("f", &content)]);
        let text = bench.text("read_file", &json!({"path": "f"}));
        assert!(text.contains("\n[truncated: line 1 is longer; only its first 65536 bytes are shown]\n"));
        assert!(text.ends_with("[truncated: go on with offset 2]"));
        let next = bench.text("read_file", &json!({"path": "f", "offset": 2}));
        assert!(next.ends_with("\n\nend"), "{next}");
    }
}

#[test]
fn a_stored_output_is_shown_whatever_is_in_it() {
    let bench = Bench::new::<&str, &str>(&[]);
    let path = bench.root.join("spill/out");
    for filler in [0, 2_000_000] {
        let mut content = b"a\0b\xff\n".to_vec();
        content.resize(content.len() + filler, b'x');
        fs::write(&path, content).unwrap();
        let text = bench.text("read_file", &json!({"path": path}));
        assert!(text.contains("\n\na\0b\u{fffd}"), "{}", &text[..200.min(text.len())]);
    }
    let written = bench.call("write_file", &json!({"path": path, "content": "", "expectedHash": null}));
    assert_eq!(reason(&written).as_deref(), Some("read-only"));
}

#[test]
fn lists_follow_the_rules_of_ripgrep() {
    let bench = Bench::new(&[
        ("b.rs", ""),
        ("a/z.rs", ""),
        ("a/b/c.rs", ""),
        ("a.rs", ""),
        ("build/out.o", ""),
        (".gitignore", "build/\n"),
        (".rgignore", "secret.txt\n"),
        ("secret.txt", ""),
    ]);
    symlink("b.rs", bench.root.join("ws/link.rs")).unwrap();
    // As with ripgrep, .gitignore means something in a repository only.
    let outside_git = "a/b/c.rs\na/z.rs\na.rs\nb.rs\nbuild/out.o\n[5 entries]";
    let cases = |first: &str| {
        [
            (json!({}), first.to_owned()),
            (json!({"limit": 2}), "a/b/c.rs\na/z.rs\n[truncated: only the first 2 are listed; narrow it with path, glob or depth]".to_owned()),
            (json!({"path": "a"}), "a/b/c.rs\na/z.rs\n[2 entries]".to_owned()),
            (json!({"path": "a", "depth": 1}), "a/b/\na/z.rs\n[2 entries]".to_owned()),
            (json!({"path": "a", "glob": "b/**"}), "a/b/c.rs\n[1 entry]".to_owned()),
            (json!({"glob": "*.c"}), "[no files; hidden and ignored ones are not listed]".to_owned()),
            (json!({"path": "b.rs"}), "b.rs\n[1 entry]".to_owned()),
        ]
    };
    for (input, expected) in cases(outside_git) {
        assert_eq!(bench.text("list_files", &input), expected, "{input}");
    }
    fs::create_dir(bench.root.join("ws/.git")).unwrap();
    for (input, expected) in cases("a/b/c.rs\na/z.rs\na.rs\nb.rs\n[4 entries]") {
        assert_eq!(bench.text("list_files", &input), expected, "{input}");
    }
}

#[test]
fn instructions_are_explained_closest_last() {
    let bench = Bench::new(&[("global.md", ""), ("src/AGENTS.override.md", ""), ("src/deep/AGENTS.md", "")]);
    let text = |path: &str| bench.text("context_explain", &json!({"path": path}));
    assert_eq!(
        text("a.txt"),
        "instruction files for `a.txt`, closest last:\n1. `global.md` (agents, global)"
    );
    assert_eq!(
        text("src/deep/x"),
        "instruction files for `src/deep/x`, closest last:\n1. `global.md` (agents, global)\n\
         2. `src/AGENTS.override.md` (override, for `src`)\n\
         3. `src/deep/AGENTS.md` (agents, for `src/deep`, cut at the budget)"
    );
}

#[test]
fn what_was_cancelled_says_so() {
    let bench = Bench::new(&[("a.txt", "a\n")]);
    bench.cancel.cancel();
    for (tool, input) in [("list_files", json!({})), ("search_text", json!({"pattern": "a"}))] {
        let result = bench.call(tool, &input);
        assert!(result.is_error && result.text_projection().ends_with("was cancelled"), "{tool}");
    }
}
