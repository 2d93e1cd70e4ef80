//! The catalogue as it is printed, and what its entries promise.

use std::collections::BTreeSet;

use alisio_conformance::faults::{self, Behaviour, Expectation};
use alisio_conformance::{Api, FaultUse, Then};

#[test]
fn there_are_enough_cases_and_names_are_unique() {
    let names: BTreeSet<&str> = faults::all().iter().map(|fault| fault.name).collect();
    assert_eq!(names.len(), faults::all().len());
    assert!(faults::cases().count() >= 60);
    for fault in faults::all() {
        assert!(fault.sentence.ends_with('.') && !fault.sentence.contains('\n'), "{}", fault.name);
        assert!(
            fault.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{}",
            fault.name
        );
        assert_eq!(faults::find(fault.name).map(|found| found.sentence), Some(fault.sentence));
    }
    assert!(faults::find("no-such-fault").is_none());
}

#[test]
fn ready_scenarios_end_as_they_promise() {
    for (fault, api) in faults::cases() {
        let scenario = fault.scenario(api);
        assert_eq!(scenario.turns[0].fault.as_ref().map(FaultUse::name), Some(fault.name));
        match fault.behaviour() {
            Behaviour::FailsWithSentence => assert_eq!(scenario.then, Then::Last, "{}", fault.name),
            Behaviour::Survives | Behaviour::Retries => {
                let last = scenario.turns.last().and_then(|turn| turn.text.as_deref());
                assert_eq!(last, Some(faults::ANSWER), "{}", fault.name);
                assert_eq!(scenario.then, Then::Error, "{}", fault.name);
            }
        }
    }
}

#[test]
fn words_of_an_error_are_taken_loosely() {
    let expectation = Expectation::Error { contains: &["HTML", "page"] };
    assert!(expectation.accepts_error("the service sent html instead of events"));
    assert!(!expectation.accepts_error("something went wrong"));
    assert!(Expectation::Error { contains: &[] }.accepts_error("anything"));
    assert!(!Expectation::Answer.accepts_error("anything"));
}

#[test]
fn the_catalogue() {
    let mut text = String::new();
    for fault in faults::all() {
        let apis: Vec<&str> = fault.apis.iter().copied().map(Api::as_str).collect();
        let end = match fault.behaviour() {
            Behaviour::Survives => "survives",
            Behaviour::Retries => "retries",
            Behaviour::FailsWithSentence => "fails",
        };
        let line = format!("{end:8} {:14} {:32} {}", apis.join(","), fault.name, fault.sentence);
        text.push_str(&line);
        text.push('\n');
    }
    insta::assert_snapshot!(text);
}
