//! Questions, answers, and what is remembered of them. Time runs here: the answers come from another thread.

use std::time::Duration;

use alisio_protocol::{Answer, Life, Width};
use alisio_store::RunStatus;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::rig::Rig;

fn save(path: &str) -> Value {
    json!({ "name": "save", "arguments": { "path": path } })
}

fn always(width: Option<Width>, life: Life) -> Answer {
    Answer::Always { width, life, expires_at: None }
}

#[tokio::test]
async fn a_call_waits_for_its_answer_and_then_runs() {
    let mut rig = Rig::new();
    rig.answer_with(vec![Answer::Once, Answer::Once]);
    let told = rig.prompt(json!([{ "calls": [save("/ws/a"), save("/ws/b")] }, { "text": "ok" }])).await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    turn_completed 1 calls=2 tokens=110
    approval_requested save write: the write effect needs approval
    approval_resolved save once (once)
    tool_decided save Allow Answer
    tool_started save write
    tool_completed save ok: ran save /ws/a
    approval_requested save write: the write effect needs approval
    approval_resolved save once (once)
    tool_decided save Allow Answer
    tool_started save write
    tool_completed save ok: ran save /ws/b
    text_delta "ok"
    turn_completed 2 calls=0 tokens=110
    run_completed "ok" tokens=220 truncated=false
    "#);
    assert_eq!(rig.log().len(), 4);
}

#[tokio::test]
async fn a_refusal_reaches_the_model_in_the_words_of_the_person() {
    let mut rig = Rig::new();
    rig.answer_with(vec![Answer::Reject { feedback: Some("Not on a Friday.".into()) }]);
    let told = rig
        .prompt(json!([
            { "expect": { "tools": ["save", "work", "fetch"] }, "calls": [save("/ws/a")] },
            { "expect": { "toolContains": "Not on a Friday." }, "text": "I wait." }
        ]))
        .await;
    assert_eq!(told.provider.failures(), [""; 0]);
    assert!(rig.log().is_empty());
    assert!(told.outcome().refused.is_empty(), "somebody answered");
}

#[tokio::test]
async fn always_is_remembered_at_its_width_and_for_its_life() {
    for (answer, n_asked) in [
        (Answer::Once, 4),
        (always(Some(Width::Call), Life::Session), 3),
        (always(None, Life::Session), 1),
        (always(Some(Width::Tool), Life::Kept), 1),
        (always(Some(Width::Effect), Life::Session), 1),
    ] {
        let mut rig = Rig::new();
        rig.answer_with(vec![answer.clone(); n_asked]);
        rig.prompt(json!([{ "calls": [save("/ws/a"), save("/ws/b")] }, { "text": "ok" }])).await;
        // A later prompt of the session remembers, too.
        let told = rig.prompt(json!([{ "calls": [save("/ws/a"), save("/ws/c")] }, { "text": "ok" }])).await;
        assert_eq!(told.outcome().status, RunStatus::Completed, "{answer:?}");
        assert_eq!(rig.log().len(), 8, "{answer:?}");
        let entries = rig.store.ledger(0, 100).unwrap();
        let asked = entries.iter().filter(|entry| entry.kind == "permission.requested").count();
        assert_eq!(asked, n_asked, "{answer:?}");
    }
}

#[tokio::test]
async fn a_directory_outside_is_asked_about_before_the_effect() {
    let mut rig = Rig::new();
    rig.answer_with(vec![always(Some(Width::Directory), Life::Session), Answer::Once]);
    let look = json!({ "name": "look", "arguments": { "path": "/elsewhere/b" } });
    let told =
        rig.prompt(json!([{ "calls": [save("/elsewhere/a")] }, { "calls": [look] }, { "text": "ok" }])).await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    turn_completed 1 calls=1 tokens=110
    approval_requested save write: `/elsewhere/a` is outside the workspace and every declared directory
    approval_resolved save session (always)
    approval_requested save write: the write effect needs approval
    approval_resolved save once (once)
    tool_decided save Allow Answer
    tool_started save write
    tool_completed save ok: ran save /elsewhere/a
    turn_completed 2 calls=1 tokens=110
    tool_decided look Allow Effect
    tool_started look read
    tool_completed look ok: ran look /elsewhere/b
    text_delta "ok"
    turn_completed 3 calls=0 tokens=110
    run_completed "ok" tokens=330 truncated=false
    "#);
}

#[tokio::test]
async fn a_stop_while_a_call_waits_ends_the_question() {
    let mut rig = Rig::new();
    rig.answer_with(Vec::new());
    let cancel = rig.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.stop("stopped by the test");
    });
    let told = rig.prompt(json!([{ "calls": [save("/ws/a")] }])).await;
    assert_snapshot!(told.story(), @"
    run_started m
    turn_completed 1 calls=1 tokens=110
    approval_requested save write: the write effect needs approval
    approval_resolved save deny (aborted)
    tool_decided save Deny Answer
    tool_completed save error: refused: the run was stopped while the call waited for approval
    run_cancelled: stopped by the test
    ");
    assert!(rig.log().is_empty());
    assert!(rig.store.pending_approvals(None).unwrap().is_empty());
}

#[tokio::test]
async fn a_remembered_answer_counts_where_nobody_is_and_never_under_read_only() {
    let mut rig = Rig::new();
    rig.answer_with(vec![always(None, Life::Kept)]);
    rig.prompt(json!([{ "calls": [save("/ws/a")] }, { "text": "ok" }])).await;
    rig.asks = false;
    rig.authority = alisio_policy::Authority::headless();
    let told = rig.prompt(json!([{ "calls": [save("/ws/b")] }, { "text": "ok" }])).await;
    assert!(told.outcome().refused.is_empty());
    assert_eq!(rig.log().len(), 4);
    rig.authority = alisio_policy::Authority { read_only: true, ..rig.authority };
    rig.prompt(json!([{ "calls": [save("/ws/c")] }, { "text": "ok" }])).await;
    assert_eq!(rig.log().len(), 4);
}

#[tokio::test]
async fn a_function_answers_and_one_that_fails_refuses() {
    let mut rig = Rig::new();
    rig.asks = true;
    rig.authority.answering = alisio_policy::Answering::Person;
    let told = rig
        .prompt_answered(
            json!([
                { "calls": [save("/ws/a"), save("/ws/b"), save("/ws/c")] },
                { "expect": { "toolContains": ["ran save /ws/a", "no such rule", "the check failed: out of order"] }, "text": "ok" }
            ]),
            |approval| match approval.shown["input"]["path"].as_str() {
                Some("/ws/a") => Ok(Answer::Once),
                Some("/ws/b") => Ok(Answer::Reject { feedback: Some("no such rule".into()) }),
                _ => Err("out of order"),
            },
        )
        .await;
    assert_eq!(told.provider.failures(), [""; 0]);
    assert_eq!(rig.log(), ["begin save /ws/a", "end save /ws/a"]);
}
