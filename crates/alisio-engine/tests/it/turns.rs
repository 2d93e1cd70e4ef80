//! Answers and calls.

use alisio_protocol::{Effect, Message};
use insta::assert_snapshot;
use serde_json::json;

use crate::rig::Rig;

#[tokio::test(start_paused = true)]
async fn an_answer_ends_the_run() {
    let mut rig = Rig::new();
    let told = rig.prompt(json!([{ "text": "Hello.", "deltas": { "size": 3 } }])).await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    text_delta "Hel"
    text_delta "lo."
    turn_completed 1 calls=0 tokens=110
    run_completed "Hello." tokens=110 truncated=false
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_decided_recorded_run_and_answered() {
    let mut rig = Rig::new().allow(&[Effect::Write]);
    let told = rig
        .prompt(json!([
            { "calls": [{ "name": "save", "arguments": { "path": "/ws/a" } }] },
            { "expect": { "toolContains": "ran save /ws/a" }, "text": "Saved." }
        ]))
        .await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    turn_completed 1 calls=1 tokens=110
    tool_decided save Allow Flag
    tool_started save write
    tool_completed save ok: ran save /ws/a
    text_delta "Saved."
    turn_completed 2 calls=0 tokens=110
    run_completed "Saved." tokens=220 truncated=false
    "#);
    assert_eq!(told.outcome().written, [std::path::PathBuf::from("/ws/a")]);
    assert_eq!(told.provider.failures(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn reads_run_four_at_a_time_and_effects_alone_in_call_order() {
    let mut rig = Rig::new().allow(&[Effect::Write]);
    let read = |n: u32| json!({ "name": "slow_look", "arguments": { "path": format!("/ws/{n}") } });
    let save = json!({ "name": "save", "arguments": { "path": "/ws/s" } });
    let calls = [read(1), read(2), read(3), read(4), read(5), save, read(6)];
    let started = tokio::time::Instant::now();
    let told = rig.prompt(json!([{ "calls": calls }, { "text": "ok" }])).await;
    // Ten seconds a batch: four reads, the fifth, and the one after the write.
    assert_eq!(started.elapsed().as_secs(), 30);
    assert_snapshot!(rig.log().join("\n"), @"
    begin slow_look /ws/1
    begin slow_look /ws/2
    begin slow_look /ws/3
    begin slow_look /ws/4
    end slow_look /ws/1
    end slow_look /ws/2
    end slow_look /ws/3
    end slow_look /ws/4
    begin slow_look /ws/5
    end slow_look /ws/5
    begin save /ws/s
    end save /ws/s
    begin slow_look /ws/6
    end slow_look /ws/6
    ");
    let loaded = rig.loaded();
    let results: Vec<_> = loaded
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(answer) => Some(answer.result.text_projection()),
            _ => None,
        })
        .collect();
    assert_snapshot!(results.join("\n"), @"
    ran slow_look /ws/1
    ran slow_look /ws/2
    ran slow_look /ws/3
    ran slow_look /ws/4
    ran slow_look /ws/5
    ran save /ws/s
    ran slow_look /ws/6
    ");
    assert!(told.outcome().error.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_bad_call_is_an_error_result_and_the_run_goes_on() {
    let mut rig = Rig::new();
    let told = rig
        .prompt(json!([
            { "calls": [
                { "name": "no_such_tool", "arguments": {} },
                { "name": "look", "arguments": {} },
                { "name": "look", "arguments": "{\"path\": \"/ws/a" },
                { "name": "look", "arguments": "[1, 2]" },
                { "name": "broken", "arguments": { "path": "/ws/a" } }
            ] },
            { "text": "I see." }
        ]))
        .await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    turn_completed 1 calls=5 tokens=110
    tool_completed no_such_tool error: there is no tool `no_such_tool`; the tools are look, slow_look, stuck_look, save, work, stuck, broken, fetch
    tool_decided broken Allow Effect
    tool_started broken read
    tool_completed look error: `path` is missing
    tool_completed look error: the arguments of this call could not be read: they are not valid JSON: EOF while parsing a string at line 1 column 15. They began: {"path": "/ws/a
    tool_completed look error: the arguments of this call could not be read: they are not a JSON object. They began: [1, 2]
    tool_completed broken error: the tool stopped because of a fault in Alisio; what it had done so far stands
    text_delta "I see."
    turn_completed 2 calls=0 tokens=110
    run_completed "I see." tokens=220 truncated=false
    "#);
    // What was malformed is not in the history.
    for message in &rig.loaded().messages {
        if let Message::Assistant(answer) = message {
            assert!(
                answer
                    .calls
                    .iter()
                    .all(|call| call.arguments.starts_with('{') && call.arguments.ends_with('}'))
            );
        }
    }
}
