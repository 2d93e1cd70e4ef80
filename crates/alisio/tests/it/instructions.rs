//! Instruction files: the root's in the system message, a nested one with the first touch of its directory.

use serde_json::json;

use crate::rig::Rig;

#[test]
fn the_root_file_is_in_the_system_message() {
    let rig = Rig::saying("ok");
    rig.write("AGENTS.md", "Say quince.\n");
    std::fs::write(rig.path("config").join("AGENTS.md"), "Say medlar.\n").expect("the folder is there");
    rig.write("sub/AGENTS.md", "Say sorb.\n");
    rig.alisio(&["run", "hello"]).expect(0);
    let system = rig.system(0);
    let at = |word: &str| system.find(word);
    assert!(at("Say medlar.") < at("Say quince.") && at("Say medlar.").is_some(), "{system}");
    assert_eq!(at("Say sorb."), None, "nobody touched it yet");
}

#[test]
fn a_nested_file_comes_with_a_read_once() {
    let rig = Rig::new(json!([
        {"calls": [{"name": "read_file", "arguments": {"path": "sub/a.txt"}}]},
        {"calls": [{"name": "read_file", "arguments": {"path": "sub/a.txt"}}]},
        {"text": "done"},
    ]));
    rig.write("sub/AGENTS.md", "Say sorb.\n");
    rig.write("sub/a.txt", "content\n");
    rig.alisio(&["run", "hello"]).expect(0);
    let results = rig.results();
    assert!(results[0].contains("Say sorb.") && results[0].contains("content"), "{results:?}");
    assert!(!results[1].contains("Say sorb.") && results[1].contains("content"), "{results:?}");
}

#[test]
fn a_write_where_instructions_are_unseen_comes_back_first() {
    let write = json!([{"name": "write_file", "arguments": {"path": "sub/new.txt", "content": "x\n", "expectedHash": null}}]);
    let rig = Rig::new(json!([{"calls": write}, {"calls": write}, {"text": "done"}]));
    rig.write("sub/AGENTS.md", "Say sorb.\n");
    let ran = rig.alisio(&["run", "--json", "--allow-write", "hello"]).expect(0);
    let results = rig.results();
    assert!(results[0].contains("Say sorb.") && results[0].starts_with("not run yet"), "{results:?}");
    assert!(results[1].starts_with("wrote `sub/new.txt`"), "{results:?}");
    assert_eq!(rig.read("sub/new.txt"), "x\n");
    let failed: Vec<_> =
        ran.events_of("tool_completed").iter().map(|e| e["data"]["isError"].clone()).collect();
    assert_eq!(failed, [json!(true), json!(false)]);
}

#[test]
fn explain_lists_the_files_of_a_path_closest_last() {
    let rig = Rig::saying("ok");
    rig.alisio(&["context", "explain", "."]).expect(0).prints(&["no instruction file applies"]);
    rig.write("AGENTS.md", "a");
    rig.write("sub/AGENTS.md", "b");
    rig.write("other/AGENTS.md", "c");
    let out = rig.alisio(&["context", "explain", "sub/deep/file.rs"]).expect(0).stdout;
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(lines[0].contains("workspace/AGENTS.md") && lines[1].contains("sub/AGENTS.md"), "{out}");
}

#[test]
fn instructions_are_bounded() {
    let rig = Rig::saying("ok");
    rig.configure(json!({"context": {"maxBytes": 1024}}));
    rig.write("AGENTS.md", format!("{}the last word", "long line\n".repeat(1000)));
    rig.alisio(&["run", "hello"]).expect(0);
    let system = rig.system(0);
    assert!(
        system.contains("long line")
            && system.contains("context.maxBytes")
            && !system.contains("the last word")
    );
}
