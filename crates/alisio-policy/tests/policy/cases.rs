//! Calls with the answers that are right for them, one JSON object a line in `cases.jsonl`. The binary is given the same
//! file.

use alisio_policy::{Outcome, RecordedUses, Subject};
use serde_json::Value;

use crate::bench::{DIRECTORY, facts, judge_at, policy};

fn subject_of(call: &Value) -> Subject {
    let tool = call["tool"].as_str().unwrap();
    let mut subject = match call.get("target") {
        Some(target) => Subject::of_target(tool, target.as_str().unwrap(), DIRECTORY),
        None => Subject::of_input(tool, &input_of(call), DIRECTORY).unwrap(),
    };
    subject.understand(tool, &facts);
    subject
}

/// The input in the order of the file: a value that went through a map has lost it.
fn input_of(call: &Value) -> String {
    call["input"].to_string()
}

#[test]
fn every_call_gets_an_answer_that_is_right_for_it() {
    let text = include_str!("cases.jsonl");
    let mut wrong = Vec::new();
    let mut n_cases = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let policy = policy(&case["policy"]);
        let mut uses = RecordedUses::default();
        let mut prior: Vec<&Value> = case["prior"].as_array().into_iter().flatten().collect();
        prior.sort_by_key(|call| -call["agoMs"].as_i64().unwrap());
        for call in prior {
            let now = -call["agoMs"].as_i64().unwrap();
            let judgement = judge_at(&policy, call["tool"].as_str().unwrap(), &subject_of(call), now, &uses);
            if judgement.outcome == Outcome::Allow {
                uses.record(&judgement.uses, now);
            }
        }
        let call = &case["call"];
        // The order of keys is kept by the line, not by the value.
        let mut subject = subject_of(call);
        if let Some((_, rest)) = line.split_once("\"input\": ").filter(|_| call.get("target").is_none()) {
            let input = serde_json::Deserializer::from_str(rest)
                .into_iter::<Box<serde_json::value::RawValue>>()
                .next();
            let tool = call["tool"].as_str().unwrap();
            subject = Subject::of_input(tool, input.unwrap().unwrap().get(), DIRECTORY).unwrap();
            subject.understand(tool, &facts);
        }
        let judgement = judge_at(&policy, call["tool"].as_str().unwrap(), &subject, 0, &uses);
        let accepted = case["accept"].as_array().unwrap();
        if !accepted.iter().any(|word| word == judgement.outcome.as_str()) {
            wrong.push(format!(
                "{}: {} ({}), right is {}",
                case["id"], judgement.outcome, judgement.reason, case["accept"]
            ));
        }
        assert!(
            !judgement.reason.is_empty() && !judgement.reason.ends_with('.'),
            "{}: {}",
            case["id"],
            judgement.reason
        );
        n_cases += 1;
    }
    assert!(wrong.is_empty(), "{} of {n_cases} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(n_cases >= 150, "{n_cases}");
}
