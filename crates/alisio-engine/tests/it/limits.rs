//! Limits, faults of the service, and stopping.

use std::time::Duration;

use alisio_engine::Cancel;
use alisio_protocol::Effect;
use alisio_store::RunStatus;
use insta::assert_snapshot;
use serde_json::json;

use crate::rig::Rig;

#[tokio::test(start_paused = true)]
async fn turns_are_a_soft_end_and_the_next_prompt_goes_on() {
    let mut rig = Rig::new();
    rig.limits.max_turns = 2;
    let look = json!({ "name": "look", "arguments": { "path": "/ws/a" } });
    let told = rig.prompt(json!([{ "calls": [look] }, { "calls": [look] }])).await;
    assert_snapshot!(told.story(), @"
    run_started m
    turn_completed 1 calls=1 tokens=110
    tool_decided look Allow Effect
    tool_started look read
    tool_completed look ok: ran look /ws/a
    turn_completed 2 calls=1 tokens=110
    tool_decided look Allow Effect
    tool_started look read
    tool_completed look ok: ran look /ws/a
    run_turns_exceeded 2/2
    ");
    assert!(told.outcome().stopped_by_limit);
    let told = rig.prompt(json!([{ "text": "There." }])).await;
    assert_eq!(told.outcome().text, "There.");
}

#[tokio::test(start_paused = true)]
async fn the_token_budget_is_a_hard_end() {
    let mut rig = Rig::new();
    rig.limits.max_tokens = 100;
    let look = json!({ "name": "look", "arguments": { "path": "/ws/a" } });
    let told = rig.prompt(json!([{ "calls": [look], "usage": { "input": 90, "output": 20 } }])).await;
    assert_snapshot!(told.story(), @"
    run_started m
    turn_completed 1 calls=1 tokens=110
    run_failed Some(TokenBudget): the token budget of the run is spent: 110 of 100 (`limits.maxTokens`)
    ");
    assert!(told.outcome().stopped_by_limit);
}

#[tokio::test(start_paused = true)]
async fn a_silent_service_is_asked_again_and_then_given_up() {
    let mut rig = Rig::new();
    rig.limits.first_token_timeout = Duration::from_secs(5);
    let told = rig.prompt(json!([{ "text": "late", "delayMs": 8000, "repeat": 2 }])).await;
    assert_snapshot!(told.story(), @"
    run_started m
    request_retry 1/1 FirstTokenTimeout None
    run_failed Some(Timeout): the model sent nothing for the first-token limit of 5 s (model `m`, provider `scripted`)
    ");
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_service_is_asked_again() {
    let mut rig = Rig::new();
    let told = rig
        .prompt(json!([
            { "fault": { "name": "http-503" }, "text": "x" },
            { "fault": { "name": "http-429" }, "text": "x" },
            { "text": "At last." }
        ]))
        .await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    request_retry 1/4 ServerError Some(503)
    request_retry 2/4 RateLimited Some(429)
    text_delta "At last."
    turn_completed 1 calls=0 tokens=110
    run_completed "At last." tokens=110 truncated=false
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_response_cut_before_it_is_usable_is_asked_for_again() {
    let mut rig = Rig::new();
    let told = rig
        .prompt(json!([
            { "text": "Let me", "calls": [{ "name": "look", "arguments": "{\"path\": \"/wo" }], "finish": "length" },
            { "expect": { "systemContains": "cut off" }, "finish": "length" },
            { "text": "Short.", "finish": "length" }
        ]))
        .await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    text_delta "Let me"
    truncation_recovery 1/2 ToolCallCut
    truncation_recovery 2/2 EmptyResponse
    text_delta "Short."
    turn_completed 1 calls=0 tokens=110
    response_truncated 1
    run_completed "Short." tokens=330 truncated=true
    "#);
    assert_eq!(told.provider.failures(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_call_that_runs_and_its_result_is_kept() {
    let mut rig = Rig::new().allow(&[Effect::Process]);
    let cancel = rig.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.stop("stopped by the test");
        cancel.stop("a second reason does not count");
    });
    let work = json!({ "name": "work", "arguments": { "path": "/ws" } });
    let told = rig.prompt(json!([{ "calls": [work, work] }])).await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    turn_completed 1 calls=2 tokens=110
    tool_decided work Allow Flag
    tool_started work process
    tool_progress {"stream":"stdout","text":"working"}
    tool_completed work error: stopped on request
    run_cancelled: stopped by the test
    "#);
    assert_eq!(told.outcome().status, RunStatus::Cancelled);
    assert!(rig.loaded().uncertain.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_come_back_is_uncertain_and_a_read_is_not() {
    for (tool, n_uncertain) in [("stuck", 1), ("stuck_look", 0)] {
        let mut rig = Rig::new().allow(&[Effect::Process]);
        rig.limits.timeout = Duration::from_secs(3);
        let told = rig.prompt(json!([{ "calls": [{ "name": tool, "arguments": { "path": "/ws" } }] }])).await;
        assert!(told.outcome().stopped_by_limit, "{tool}");
        assert_eq!(rig.loaded().uncertain.len(), n_uncertain, "{tool}");
        // Nothing goes on before somebody has looked.
        rig.cancel = Cancel::new();
        let told = rig.prompt(json!([{ "text": "on" }])).await;
        assert_eq!(told.outcome.is_err(), n_uncertain == 1, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn active_time_ends_a_request_too() {
    let mut rig = Rig::new();
    rig.limits.timeout = Duration::from_secs(3);
    let told = rig.prompt(json!([{ "text": "late", "delayMs": 8000 }])).await;
    assert_snapshot!(told.story(), @"
    run_started m
    run_failed Some(Timeout): the run used its active time of 3 s (model `m`, provider `scripted`)
    ");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_withheld_fails_the_run_and_keeps_what_was_shown() {
    let mut rig = Rig::new();
    let told = rig.prompt(json!([{ "text": "The first", "finish": "content_filter" }])).await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    text_delta "The first"
    run_failed Some(Provider): the service withheld its answer, or the rest of it (content filter)
    "#);
    assert_eq!(rig.loaded().messages.len(), 2);
}
