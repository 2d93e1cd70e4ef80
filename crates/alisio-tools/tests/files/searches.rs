//! Searching.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::bench::Bench;

#[test]
fn matches_come_sorted_whatever_the_threads_do() {
    let files: Vec<(String, String)> = (0..300)
        .map(|n| (format!("d{:02}/f{n:03}.txt", n % 17), format!("needle {n}\nhay\nneedle again {n}\n")))
        .collect();
    let bench = Bench::new(&files);
    let all = bench.text("search_text", &json!({"pattern": "needle", "maxResults": 1000}));
    let lines: Vec<_> = all.lines().collect();
    assert_eq!(lines.last(), Some(&"[600 matches in 300 files]"));
    let mut sorted: Vec<_> = files.iter().map(|(path, _)| path.clone()).collect();
    sorted.sort();
    let shown: Vec<_> =
        lines[..600].iter().step_by(2).map(|line| line.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(shown, sorted);
    // Fewer results are the first of them, every time.
    for most in [1, 2, 7, 100, 599] {
        for _ in 0..3 {
            let text = bench.text("search_text", &json!({"pattern": "needle", "maxResults": most}));
            let (shown, note) = text.rsplit_once('\n').unwrap();
            assert_eq!(shown, lines[..most].join("\n"));
            let matches = if most == 1 { "1 match".to_owned() } else { format!("{most} matches") };
            assert_eq!(
                note,
                format!(
                    "[truncated: only the first {matches} are shown; narrow it with path, glob or pattern]"
                )
            );
        }
    }
    let exact = bench.text("search_text", &json!({"pattern": "needle", "maxResults": 600}));
    assert_eq!(exact, all);
}

#[test]
fn patterns_mean_what_they_say() {
    let bench = Bench::new(&[
        ("crlf.txt", &b"Foo bar\r\nbaz\r\n"[..]),
        ("utf16.txt", b"\xff\xfef\0o\0o\0\n\0"),
        ("latin.txt", b"caf\xe9 foo\n"),
        (".hidden", b"foo\n"),
        ("x.md", b"foo.bar\n"),
    ]);
    symlink("x.md", bench.root.join("ws/link.md")).unwrap();
    for (input, expected) in [
        (json!({"pattern": "bar$"}), "crlf.txt:1: Foo bar\nx.md:1: foo.bar\n[2 matches in 2 files]"),
        (json!({"pattern": "^baz$"}), "crlf.txt:2: baz\n[1 match in 1 file]"),
        (json!({"pattern": "Foo"}), "crlf.txt:1: Foo bar\n[1 match in 1 file]"),
        (
            json!({"pattern": "foo", "ignoreCase": true, "glob": "!*.md"}),
            "crlf.txt:1: Foo bar\nlatin.txt:1: caf\u{fffd} foo\nutf16.txt:1: foo\n[3 matches in 3 files]",
        ),
        (json!({"pattern": "o.b", "literal": true}), "x.md:1: foo.bar\n[1 match in 1 file]"),
        (json!({"pattern": "foo", "path": ".hidden"}), ".hidden:1: foo\n[1 match in 1 file]"),
        (json!({"pattern": "none"}), "[no matches]"),
    ] {
        assert_eq!(bench.text("search_text", &input), expected, "{input}");
    }
}

#[test]
fn binary_files_are_skipped_and_said_so() {
    let bench = Bench::new(&[("a.bin", &b"needle\n\0needle"[..]), ("b.txt", b"needle\n")]);
    assert_eq!(
        bench.text("search_text", &json!({"pattern": "needle"})),
        "b.txt:1: needle\n[1 match in 1 file]\n[1 binary file skipped]"
    );
}

#[test]
fn context_lines_and_long_lines() {
    let long = format!("{}needle{}", "a".repeat(5000), "b".repeat(5000));
    let bench = Bench::new(&[("a.txt", "1\n2\nneedle\n4\n5\n6\nneedle\n8\n".to_owned()), ("b.txt", long)]);
    let text = bench.text("search_text", &json!({"pattern": "needle", "context": 1}));
    let (first, second) = text.split_once("\n--\nb.txt:1: ").unwrap();
    assert_eq!(first, "a.txt-2- 2\na.txt:3: needle\na.txt-4- 4\n--\na.txt-6- 6\na.txt:7: needle\na.txt-8- 8");
    let (line, note) = second.split_once('\n').unwrap();
    assert!(
        line.starts_with('…') && line.contains("aneedleb") && line.ends_with("… [of 10006 bytes]"),
        "{line}"
    );
    assert!(line.len() < 450);
    assert_eq!(note, "[3 matches in 2 files]");
}

#[test]
fn results_are_bounded_in_bytes() {
    let line = format!("needle {}\n", "x".repeat(300));
    let bench = Bench::new(&[("a.txt", line.repeat(1000))]);
    let text = bench.text("search_text", &json!({"pattern": "needle", "maxResults": 1000}));
    assert!(text.len() < 65 * 1024, "{}", text.len());
    assert!(text.contains("[truncated: only the first "), "{}", &text[text.len() - 200..]);
}

#[test]
fn a_file_that_may_not_be_read_is_counted() {
    let bench = Bench::new(&[("a.txt", "needle\n")]);
    plant_fifo(&bench);
    assert_eq!(
        bench.text("search_text", &json!({"pattern": "needle"})),
        "a.txt:1: needle\n[1 match in 1 file]"
    );
    // A line without an end that is longer than what is kept in memory.
    fs::write(bench.root.join("ws/huge"), "x".repeat(65 * 1024 * 1024)).unwrap();
    assert_eq!(
        bench.text("search_text", &json!({"pattern": "needle"})),
        "a.txt:1: needle\n[1 match in 1 file]\n[1 entry could not be read]"
    );
}

/// A FIFO in the tree, which nothing writes to: a search that opened it would never end.
fn plant_fifo(bench: &Bench) {
    let path = bench.root.join("ws/fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
}

#[test]
fn ignore_rules_that_never_end_hold_nobody_up() {
    let plant = |path: &std::path::Path, what: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match what {
            "pipe" => {
                rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
            }
            "huge" => fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
            target => symlink(target, path).unwrap(),
        }
    };
    for name in [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"] {
        for what in ["pipe", "/dev/zero", "/proc/kmsg", "huge"] {
            let bench = Bench::new(&[("a.txt", "needle\n"), ("sub/b.txt", "needle\n")]);
            plant(&bench.root.join("ws/sub").join(name), what);
            let found = bench.text("search_text", &json!({"pattern": "needle"}));
            let expected = "a.txt:1: needle\n[1 match in 1 file]\n[1 entry could not be read]";
            assert_eq!(found, expected, "{name} {what}");
            let listed = bench.text("list_files", &json!({}));
            assert_eq!(listed, "a.txt\n[1 entry]\n[1 could not be read]", "{name} {what}");

            // In the directory that was asked for it is an error; a file in it is found all the same.
            plant(&bench.root.join("ws").join(name), what);
            for tool in ["search_text", "list_files"] {
                let input = if tool == "list_files" { json!({}) } else { json!({"pattern": "needle"}) };
                let refused = bench.call(tool, &input);
                assert!(refused.is_error, "{name} {what}: {refused:?}");
                let text = refused.text_projection();
                let expected = format!("refused (special): `{name}` is no ordinary file of ignore rules");
                assert!(text.starts_with(&expected), "{text}");
            }
            let found = bench.text("search_text", &json!({"pattern": "needle", "path": "sub/b.txt"}));
            assert_eq!(found, "sub/b.txt:1: needle\n[1 match in 1 file]");
        }
    }
    // A working tree's `.git` file can lead to such a file in two more steps.
    let bench = Bench::new(&[("sub/b.txt", "needle\n")]);
    let git = bench.root.join("ws/git");
    fs::create_dir(&git).unwrap();
    fs::write(bench.root.join("ws/sub/.git"), format!("gitdir: {}\n", git.display())).unwrap();
    plant(&git.join("commondir"), "pipe");
    assert!(bench.text("list_files", &json!({})).contains("[1 could not be read]"));
    fs::remove_file(git.join("commondir")).unwrap();
    fs::write(git.join("commondir"), ".\n").unwrap();
    assert!(bench.text("list_files", &json!({})).starts_with("git/commondir\nsub/b.txt\n"));
    plant(&git.join("info/exclude"), "pipe");
    assert!(bench.text("list_files", &json!({})).contains("[1 could not be read]"));

    // A link to ordinary rules is followed, as ripgrep does.
    let bench = Bench::new(&[("rules", "b.txt\n"), ("b.txt", "needle\n")]);
    plant(&bench.root.join("ws/.ignore"), "rules");
    assert_eq!(bench.text("list_files", &json!({})), "rules\n[1 entry]");
}
