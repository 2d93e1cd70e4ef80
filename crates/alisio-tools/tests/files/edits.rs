//! Writing and editing: what stays, what is refused, and what clients are shown.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::bench::{Bench, patch, reason};

#[test]
fn an_edit_changes_its_span_only() {
    let before = b"\xef\xbb\xbfone\r\ntwo\nthree\r\nfour";
    let bench = Bench::new(&[("a.txt", before)]);
    let result = bench.call(
        "edit_file",
        &json!({"path": "a.txt", "oldText": "one\ntwo\n", "newText": "1\n2\n", "expectedHash": bench.sha256("a.txt")}),
    );
    assert_eq!(bench.read("a.txt"), b"\xef\xbb\xbf1\r\n2\nthree\r\nfour");
    assert_eq!(
        result.text_projection(),
        format!("edited `a.txt` at line 1, sha256 {}", bench.sha256("a.txt"))
    );
    // The fingerprint of the result is good for the next edit.
    let next = bench.call(
        "edit_file",
        &json!({"path": "a.txt", "oldText": "four", "newText": "4\n5", "expectedHash": bench.sha256("a.txt")}),
    );
    assert!(!next.is_error);
    assert_eq!(bench.read("a.txt"), b"\xef\xbb\xbf1\r\n2\nthree\r\n4\r\n5");
}

#[test]
fn refused_edits_say_how_to_go_on() {
    let content = "fn a() {\n    one();\n}\nfn b() {\n    one();\n}\n";
    let bench = Bench::new(&[("a.rs", content)]);
    let hash = bench.sha256("a.rs");
    let stale = "0".repeat(64);
    for (old, expected_hash, expected) in [
        ("    one();", &hash, "refused (not-unique): `oldText` stands in `a.rs` 2 times, at lines 2, 5\nhint: take more lines around it, so that it stands there once".to_owned()),
        ("fn a() {\n  one();", &hash, format!("refused (no-match): `oldText` is not in `a.rs`; sha256 is still {hash}\nhint: it differs only in white space from the text at line 1")),
        ("nothing like it", &hash, format!("refused (no-match): `oldText` is not in `a.rs`; sha256 is still {hash}\nhint: read the file again and copy the text exactly")),
        ("fn a()", &stale, format!("refused (stale): `a.rs` changed since it was read; its sha256 is now {hash}\nhint: read it again, then repeat the change with that sha256")),
    ] {
        let input = json!({"path": "a.rs", "oldText": old, "newText": "x", "expectedHash": expected_hash});
        assert_eq!(bench.text("edit_file", &input), expected);
    }
    assert_eq!(bench.read("a.rs"), content.as_bytes());
}

#[test]
fn files_that_are_no_plain_files_are_refused_by_name() {
    let bench = Bench::new(&[
        ("twin", &b"a\n"[..]),
        ("binary", b"a\0b"),
        ("latin", b"caf\xe9\n"),
        ("large", &vec![b'a'; 1024 * 1024 + 1]),
        ("real", b"a\n"),
    ]);
    let ws = bench.root.join("ws");
    fs::hard_link(ws.join("twin"), ws.join("other-twin")).unwrap();
    symlink("real", ws.join("link")).unwrap();
    fs::create_dir(ws.join("dir")).unwrap();
    for (path, expected) in [
        ("twin", "hard-links"),
        ("binary", "binary"),
        ("latin", "encoding"),
        ("large", "too-large"),
        ("link", "link"),
        ("dir", "wrong-kind"),
        ("gone", "not-found"),
    ] {
        let hash = if ws.join(path).is_file() { bench.sha256(path) } else { "0".repeat(64) };
        let edit = json!({"path": path, "oldText": "a", "newText": "é", "expectedHash": hash});
        assert_eq!(reason(&bench.call("edit_file", &edit)).as_deref(), Some(expected), "{path}");
        let write = json!({"path": path, "content": "é", "expectedHash": hash});
        assert_eq!(reason(&bench.call("write_file", &write)).as_deref(), Some(expected), "{path}");
    }
    let new = json!({"path": "dir", "content": "", "expectedHash": null});
    assert_eq!(reason(&bench.call("write_file", &new)).as_deref(), Some("wrong-kind"));
    let large = json!({"path": "new", "content": "a".repeat(1024 * 1024 + 1), "expectedHash": null});
    assert_eq!(reason(&bench.call("write_file", &large)).as_deref(), Some("too-large"));
    let grown = json!({"path": "real", "oldText": "a", "newText": "a".repeat(1024 * 1024), "expectedHash": bench.sha256("real")});
    assert_eq!(reason(&bench.call("edit_file", &grown)).as_deref(), Some("too-large"));
}

#[test]
fn an_overwritten_file_keeps_its_encoding_and_line_ends() {
    for (before, content, after, said) in [
        (&b"a\n"[..], "é\r\n", "é\r\n".as_bytes(), ""),
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n", "CRLF line ends kept, "),
        (b"a\r\nb\n", "c\nd\n", b"c\nd\n", ""),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n", "UTF-8 with BOM kept, "),
        (b"\xef\xbb\xbfa\n", "\u{feff}b\n", b"\xef\xbb\xbfb\n", "UTF-8 with BOM kept, "),
        (b"\xff\xfea\0", "é", b"\xff\xfe\xe9\0", "UTF-16 LE kept, "),
        (b"\xfe\xff\0a\0\r\0\n", "b\n", b"\xfe\xff\0b\0\r\0\n", "UTF-16 BE kept, CRLF line ends kept, "),
        (b"caf\xe9\n", "tea\n", b"tea\n", "unknown 8-bit, shown as Latin-1 kept, "),
    ] {
        let bench = Bench::new(&[("f", before)]);
        let text = bench
            .text("write_file", &json!({"path": "f", "content": content, "expectedHash": bench.sha256("f")}));
        assert_eq!(bench.read("f"), after, "{text}");
        assert!(text.starts_with(&format!("wrote `f`: {said}{} line", content.lines().count())), "{text}");
        assert!(text.ends_with(&bench.sha256("f")), "{text}");
    }
}

#[test]
fn clients_get_a_patch_and_the_model_does_not() {
    let bench = Bench::new(&[("a.txt", "one\ntwo\n")]);
    let new = bench.call("write_file", &json!({"path": "b/new.rs", "content": "x\n", "expectedHash": null}));
    assert_eq!(patch(&new).unwrap(), ("--- /dev/null\n+++ b/b/new.rs\n@@ -0,0 +1 @@\n+x\n".to_owned(), None));
    assert!(!new.text_projection().contains("+++"));
    let edit = bench.call(
        "edit_file",
        &json!({"path": "a.txt", "oldText": "two\n", "newText": "three", "expectedHash": bench.sha256("a.txt")}),
    );
    assert_eq!(
        patch(&edit).unwrap().0,
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file\n"
    );
    let before = fs::metadata(bench.root.join("ws/a.txt")).unwrap().modified().unwrap();
    let same = bench.call(
        "write_file",
        &json!({"path": "a.txt", "content": "one\nthree", "expectedHash": bench.sha256("a.txt")}),
    );
    assert!(patch(&same).is_none() && same.text_projection().contains("nothing was written"));
    assert_eq!(fs::metadata(bench.root.join("ws/a.txt")).unwrap().modified().unwrap(), before);

    let long: String = (0..30_000).map(|n| format!("line {n}\n")).collect();
    let large = bench.call("write_file", &json!({"path": "l", "content": long, "expectedHash": null}));
    let (patch, caption) = patch(&large).unwrap();
    assert!(patch.len() <= 200 * 1024 && patch.len() > 199 * 1024 && patch.ends_with('\n'));
    assert_eq!(caption.as_deref(), Some("cut: the first 200 KB of 340 KB are shown"));
}
