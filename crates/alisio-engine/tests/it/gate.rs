//! The way to a tool leads through the gate.

use alisio_policy::Authority;
use alisio_protocol::Effect;
use alisio_store::{LedgerCheck, RunStatus};
use insta::assert_snapshot;
use serde_json::json;

use crate::rig::{Rig, instructions};

#[tokio::test(start_paused = true)]
async fn an_effect_without_its_flag_is_not_offered_and_a_call_of_it_is_refused() {
    let mut rig = Rig::new();
    let told = rig
        .prompt(json!([
            {
                "expect": { "tools": ["look", "slow_look"], "toolsAbsent": ["save", "work", "fetch"] },
                "calls": [{ "name": "save", "arguments": { "path": "/ws/a" } }]
            },
            { "expect": { "toolContains": "--allow-write" }, "text": "I may not write." }
        ]))
        .await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    turn_completed 1 calls=1 tokens=110
    tool_decided save Deny NobodyToAsk
    tool_completed save error: refused: the write effect needs approval and nobody can answer in this run
    text_delta "I may not wr"
    text_delta "ite."
    turn_completed 2 calls=0 tokens=110
    run_completed "I may not write." tokens=220 truncated=false
    "#);
    assert_eq!(told.provider.failures(), [""; 0]);
    assert!(rig.log().is_empty(), "the tool did not run");
    assert_eq!(told.outcome().status, RunStatus::Completed);
    assert_eq!(
        told.outcome().refused,
        [
            "save: the write effect needs approval and nobody can answer in this run; run again with --allow-write"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_the_model_gets_over_is_not_the_end() {
    let mut rig = Rig::new();
    let told = rig
        .prompt(json!([
            { "calls": [{ "name": "save", "arguments": { "path": "/ws/a" } }] },
            { "calls": [{ "name": "look", "arguments": { "path": "/ws/a" } }] },
            { "text": "It is there already." }
        ]))
        .await;
    assert!(told.outcome().refused.is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_verdict_stands_in_the_ledger_and_the_chain_is_whole() {
    let mut rig = Rig::new().allow(&[Effect::Write]);
    rig.prompt(json!([
        { "calls": [
            { "name": "look", "arguments": { "path": "/ws/a" } },
            { "name": "look", "arguments": { "path": "/elsewhere/secret" } },
            { "name": "save", "arguments": { "path": "/ws/b" } },
            { "name": "fetch", "arguments": { "path": "/ws/c" } }
        ] },
        { "text": "ok" }
    ]))
    .await;
    let entries = rig.store.ledger(0, 100).unwrap();
    let lines: Vec<_> = entries
        .iter()
        .map(|entry| format!("{} {:?} {:?} {:?}", entry.tool, entry.verdict, entry.source, entry.paths))
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    look Some(Allow) Some(Effect) ["a"]
    look Some(Deny) Some(Directory) ["/elsewhere/secret"]
    save Some(Allow) Some(Flag) ["b"]
    fetch Some(Deny) Some(NobodyToAsk) ["c"]
    "#);
    assert!(matches!(rig.store.verify_ledger().unwrap(), LedgerCheck::Whole(head) if head.seq == 4));
}

#[tokio::test(start_paused = true)]
async fn read_only_wins_over_every_flag() {
    let mut rig = Rig::new().allow(&[Effect::Write, Effect::Process, Effect::External]);
    rig.authority = Authority { read_only: true, ..rig.authority };
    let told = rig
        .prompt(json!([
            {
                "expect": { "toolsAbsent": ["save", "work", "fetch"] },
                "calls": [
                    { "name": "save", "arguments": { "path": "/ws/a" } },
                    { "name": "work", "arguments": { "path": "/ws" } },
                    { "name": "look", "arguments": { "path": "/elsewhere/a" } }
                ]
            },
            { "text": "no" }
        ]))
        .await;
    assert_snapshot!(told.story(), @r#"
    run_started m
    turn_completed 1 calls=3 tokens=110
    tool_decided save Deny ReadOnly
    tool_completed save error: refused: --read-only rules out the write effect
    tool_decided work Deny ReadOnly
    tool_completed work error: refused: --read-only rules out the process effect
    tool_decided look Deny ReadOnly
    tool_completed look error: refused: `/elsewhere/a` is outside the workspace, and --read-only opens no other directory
    text_delta "no"
    turn_completed 2 calls=0 tokens=110
    run_completed "no" tokens=220 truncated=false
    "#);
    assert_eq!(told.provider.failures(), [""; 0]);
    assert!(told.outcome().refused.is_empty(), "nobody could have lifted these");
}

#[tokio::test(start_paused = true)]
async fn a_write_into_a_directory_with_unseen_instructions_comes_back_with_them_first() {
    let mut rig = Rig::new().allow(&[Effect::Write]);
    rig.nested = vec![instructions("/ws/sub", "Write in capitals.")];
    let save = json!({ "name": "save", "arguments": { "path": "/ws/sub/a" } });
    let told = rig
        .prompt(json!([
            { "calls": [save] },
            { "expect": { "toolContains": ["not run yet", "Write in capitals."] }, "calls": [save] },
            { "expect": { "toolContains": "ran save" }, "text": "DONE" }
        ]))
        .await;
    assert_eq!(told.provider.failures(), [""; 0]);
    assert_eq!(rig.log(), ["begin save /ws/sub/a", "end save /ws/sub/a"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_gets_unseen_instructions_with_its_result_and_once() {
    let mut rig = Rig::new();
    rig.nested = vec![instructions("/ws/sub", "Mind the gap.")];
    let look = json!({ "name": "look", "arguments": { "path": "/ws/sub/a" } });
    let told = rig
        .prompt(json!([
            { "calls": [look] },
            { "expect": { "toolContains": ["ran look", "Mind the gap."] }, "calls": [look] },
            { "expect": { "toolContains": "ran look", "toolLacks": "Mind the gap." }, "text": "ok" }
        ]))
        .await;
    assert_eq!(told.provider.failures(), [""; 0]);
}
