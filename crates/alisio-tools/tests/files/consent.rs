//! What was shown is what runs: a permit for one call lets no other one through, whichever field differs.

use serde_json::{Value, json};

use crate::bench::{Bench, permit};

#[test]
fn changing_any_field_between_consent_and_execution_is_refused() {
    let hash = |bench: &Bench| bench.sha256("a.txt");
    let bench = Bench::new(&[("a.txt", "one\ntwo\n"), ("b.txt", "one\ntwo\n")]);
    let edit = json!({"path": "a.txt", "oldText": "one", "newText": "1", "expectedHash": hash(&bench)});
    let write = json!({"path": "a.txt", "content": "new\n", "expectedHash": hash(&bench)});
    let new = json!({"path": "c.txt", "content": "new\n", "expectedHash": null});
    let read = json!({"path": "a.txt", "offset": 1, "limit": 1});
    let list = json!({"path": ".", "glob": "*.txt", "depth": 1, "limit": 10});
    let search = json!({"pattern": "one", "path": ".", "glob": "*.txt", "ignoreCase": false, "literal": false, "context": 0, "maxResults": 5});
    let other_hash = "0".repeat(64);
    for (tool, shown, field, changed) in [
        ("edit_file", &edit, "path", json!("b.txt")),
        ("edit_file", &edit, "oldText", json!("two")),
        ("edit_file", &edit, "newText", json!("2")),
        ("edit_file", &edit, "expectedHash", json!(other_hash)),
        ("write_file", &write, "path", json!("b.txt")),
        ("write_file", &write, "content", json!("other\n")),
        ("write_file", &write, "expectedHash", json!(other_hash)),
        ("write_file", &new, "path", json!("d.txt")),
        ("write_file", &new, "content", json!("other\n")),
        ("write_file", &new, "expectedHash", json!(other_hash)),
        ("read_file", &read, "path", json!("b.txt")),
        ("read_file", &read, "offset", json!(2)),
        ("read_file", &read, "limit", json!(2)),
        ("list_files", &list, "path", json!("..")),
        ("list_files", &list, "glob", json!("*")),
        ("list_files", &list, "depth", json!(2)),
        ("list_files", &list, "limit", json!(11)),
        ("search_text", &search, "pattern", json!("two")),
        ("search_text", &search, "path", json!("a.txt")),
        ("search_text", &search, "glob", json!("*")),
        ("search_text", &search, "ignoreCase", json!(true)),
        ("search_text", &search, "literal", json!(true)),
        ("search_text", &search, "context", json!(1)),
        ("search_text", &search, "maxResults", json!(6)),
    ] {
        let prepare = |input: &Value| bench.prepare(tool, &input.to_string()).expect("the input is good");
        let consent = permit(prepare(shown).request());
        let mut other = shown.clone();
        other[field] = changed;
        let result = bench.run(prepare(&other), consent);
        let text = result.text_projection();
        assert!(
            result.is_error && text.contains("changed after it was decided on"),
            "{tool}.{field}: {text}"
        );
    }
    for name in ["a.txt", "b.txt"] {
        assert_eq!(bench.read(name), b"one\ntwo\n", "{name}");
    }
    assert!(!bench.root.join("ws/c.txt").exists() && !bench.root.join("ws/d.txt").exists());
}

#[test]
fn a_permit_for_one_tool_is_none_for_another() {
    let bench = Bench::new(&[("a.txt", "one\n")]);
    let input = json!({"path": "a.txt"}).to_string();
    let consent = permit(bench.prepare("read_file", &input).expect("good").request());
    let result = bench.run(bench.prepare("list_files", &input).expect("good"), consent);
    assert!(result.is_error, "{}", result.text_projection());
}
