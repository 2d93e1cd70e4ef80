//! The policies of the documentation are what they are said to be.

use serde_json::Value;

use crate::{Rig, repository};

fn policies() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(repository().join("docs/policy.md")).unwrap();
    let (_, text) = text.split_once("\n## Ten policies\n").expect("the page has its policies");
    text.split("\n### ")
        .skip(1)
        .map(|section| {
            let title = section.lines().next().unwrap().to_owned();
            let json = section.split_once("```json\n").and_then(|(_, rest)| rest.split_once("```")).unwrap();
            (title, json.0.to_owned())
        })
        .collect()
}

#[test]
fn each_policy_decides_what_it_shows() {
    let rig = Rig::new();
    let policies = policies();
    assert_eq!(policies.len(), 10);
    for (title, text) in policies {
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{title}: {error}"));
        for key in ["match", "notMatch"] {
            assert!(text.contains(&format!("\"{key}\":")), "{title} shows no call under {key}");
        }
        let file = rig.write("policy.json", &value.to_string());
        let ran = rig.alisio(&["test", "--policy", &file], b"");
        assert_eq!(ran.code, 0, "{title}: {}", ran.stderr);
        let ran = rig.alisio(&["lint", "--policy", &file], b"");
        assert_eq!(ran.code, 0, "{title}: {}", ran.stdout);
    }
}
