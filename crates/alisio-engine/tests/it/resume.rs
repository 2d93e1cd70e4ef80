//! A session that goes on.

use alisio_protocol::{Effect, Message};
use serde_json::json;

use crate::rig::Rig;

#[tokio::test(start_paused = true)]
async fn the_next_prompt_sees_what_was_said() {
    let mut rig = Rig::new();
    rig.prompt(json!([
        { "calls": [{ "name": "look", "arguments": { "path": "/ws/a" } }] },
        { "text": "The answer is 42." }
    ]))
    .await;
    let told = rig
        .prompt(
            json!([{ "expect": { "bodyContains": ["The answer is 42.", "ran look /ws/a"] }, "text": "ok" }]),
        )
        .await;
    assert_eq!(told.provider.failures(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_uncertain_call_can_be_acknowledged_and_the_model_is_told() {
    let mut rig = Rig::new().allow(&[Effect::Process]);
    rig.limits.timeout = std::time::Duration::from_secs(3);
    rig.prompt(json!([{ "calls": [{ "name": "stuck", "arguments": { "path": "/ws" } }] }])).await;
    let writer = rig.store.lock(&rig.session).unwrap();
    assert_eq!(writer.acknowledge_uncertain("2026-01-01T00:00:02.000Z").unwrap().len(), 1);
    drop(writer);
    let told =
        rig.prompt(json!([{ "expect": { "bodyContains": "unknown" }, "text": "I look first." }])).await;
    assert_eq!(told.provider.failures(), [""; 0]);
    assert_eq!(told.outcome().text, "I look first.");
    let balanced = rig.loaded().messages.iter().filter(|message| matches!(message, Message::Tool(_))).count();
    assert_eq!(balanced, 1);
    assert_eq!(rig.log().len(), 1, "the call was not repeated");
}
