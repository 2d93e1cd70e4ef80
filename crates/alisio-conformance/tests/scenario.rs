//! Scenarios are read strictly and say where they are wrong.

use alisio_conformance::{FaultUse, Scenario, Then, faults};

fn check(text: &str, expected: &str) {
    match text.parse::<Scenario>() {
        Ok(scenario) => panic!("`{text}` was taken as {scenario:?}"),
        Err(error) => {
            let sentence = error.to_string();
            assert!(sentence.contains(expected), "`{text}`\n  says    `{sentence}`\n  without `{expected}`");
        }
    }
}

#[test]
fn errors_name_the_place() {
    for (text, expected) in [
        (r#"{"turns": []}"#, "`turns`: a scenario needs at least one turn"),
        (r#"{"turns": [{"text": "a"}, {"txet": "b"}]}"#, "`turns[1].txet`: unknown field `txet`"),
        (r#"{"turns": [{"calls": [{"arguments": {}}]}]}"#, "`turns[0].calls[0]`: missing field `name`"),
        (r#"{"turns": [{"finish": "because"}]}"#, "`turns[0].finish`: unknown variant `because`"),
        (r#"{"turns": [{"text": 7}]}"#, "`turns[0].text`: invalid type"),
        (r#"{"turns": [{"repeat": 0}]}"#, "`turns[0].repeat`: must be at least 1"),
        (
            r#"{"turns": [{"text": "a", "deltas": {"size": 0}}]}"#,
            "`turns[0].deltas.size`: must be at least 1",
        ),
        (r#"{"turns": [{"deltas": {"text": "a"}}]}"#, "`turns[0].deltas.count`: is needed"),
        (
            r#"{"turns": [{"text": "a", "fault": "http-504x"}]}"#,
            "`turns[0].fault`: there is no fault `http-504x`, did you mean `http-504`?",
        ),
        (
            r#"{"turns": [{"calls": [{"name": "t", "arguments": {"a": ["{{capture:sum}}"]}}]}]}"#,
            "`turns[0].calls[0].arguments`: no capture up to here is named `sum`",
        ),
        (r#"{"turns": [{"text": "a"}], "then": "again"}"#, "`then`: unknown variant `again`"),
        (r#"{"turns": [{"text": "a"}]} x"#, "`.`: trailing characters"),
        ("", "EOF"),
    ] {
        check(text, expected);
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Scenario::load("/nowhere/scenario.json".as_ref()).expect_err("there is no such file");
    assert!(error.to_string().starts_with("can't read `/nowhere/scenario.json`: "), "{error}");
}

#[test]
fn a_full_scenario_is_read_and_written_without_loss() {
    let text = r#"{
        "name": "full",
        "models": [{"id": "m", "contextWindow": 1000}],
        "turns": [
            {"match": {"user": "hello"}, "expect": {"tools": "a", "bodyContains": ["b", "c"]},
             "captures": [{"name": "sum", "from": "tool", "after": "sha256 ", "kind": "hex"}],
             "calls": [{"name": "edit", "arguments": {"sha256": "{{capture:sum}}"}}], "repeat": 2},
            {"deltas": {"count": 20000, "text": "word ", "perWrite": 8}, "usage": {"input": 1, "output": 2}},
            {"fault": {"name": "http-429-retry-after-seconds", "retryAfter": 3}}
        ],
        "then": "last"
    }"#;
    let scenario: Scenario = text.parse().expect("it is well formed");
    assert_eq!(scenario.then, Then::Last);
    assert_eq!(scenario.turns[2].fault.as_ref().map(FaultUse::name), Some("http-429-retry-after-seconds"));
    let again: Scenario = serde_json::to_string(&scenario).expect("data").parse().expect("what it wrote");
    assert_eq!(again, scenario);
}

#[test]
fn every_ready_scenario_is_a_valid_file() {
    for (fault, api) in faults::cases() {
        let scenario = fault.scenario(api);
        let text = serde_json::to_string(&scenario).expect("data");
        let again: Scenario = text.parse().unwrap_or_else(|error| panic!("{}: {error}", fault.name));
        assert_eq!(again, scenario, "{}", fault.name);
    }
}

#[test]
fn the_schema_knows_every_field_of_a_turn() {
    let schema = Scenario::json_schema();
    let turn = schema["$defs"]["Turn"]["properties"].as_object().expect("an object schema");
    let names: Vec<&str> = turn.keys().map(String::as_str).collect();
    insta::assert_snapshot!(names.join(" "), @"calls captures delayMs deltas encryptedReasoning expect fault finish match reasoning repeat text usage");
}

#[test]
fn the_examples_of_the_page_are_valid() {
    let page = include_str!("../../../docs/conformance.md");
    let examples: Vec<&str> = page
        .split("```json\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(json, _)| json))
        .collect();
    assert!(examples.len() >= 3);
    for example in examples {
        if let Err(error) = example.parse::<Scenario>() {
            panic!("{error}\n{example}");
        }
    }
}
