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
