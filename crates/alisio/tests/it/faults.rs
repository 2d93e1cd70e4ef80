//! Every way in which a model service can misbehave, through `alisio run --json`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use alisio_conformance::Api;
use alisio_conformance::faults::{self, ANSWER, Expectation, Fault};
use serde_json::json;

use crate::rig::Rig;

/// Cases at once; most of them wait.
const THREADS: usize = 48;

/// Requests of a case at most: no fault is answered by trying for ever.
const MOST_REQUESTS: usize = 6;

/// The limit between two events of a response is two minutes and has no key. The limit of the run ends these earlier.
const STALLS: [&str; 2] = ["stall-after-text", "stall-in-call"];

#[test]
fn every_named_fault_is_survived_or_named_in_a_sentence() {
    let mut cases: Vec<_> = faults::cases().collect();
    // Those that are tried again for long begin first.
    cases.sort_by_key(|(fault, _)| fault.expectation == Expectation::Answer);
    assert!(faults::all().len() >= 60);
    let next = AtomicUsize::new(0);
    let problems = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((fault, api)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(problem) = play(fault, *api) {
                        let case = format!("{} ({}): {problem}", fault.name, api.as_str());
                        problems.lock().expect("no holder panics").push(case);
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().expect("no holder panics");
    assert!(problems.is_empty(), "{} of {} cases:\n{}", problems.len(), cases.len(), problems.join("\n\n"));
}

fn play(fault: &Fault, api: Api) -> Result<(), String> {
    let rig = Rig::with(fault.scenario(api));
    rig.configure(json!({"limits": {"firstTokenTimeoutMs": 4000}}));
    let stalls = STALLS.contains(&fault.name);
    let timeout = if stalls { "4s" } else { "80s" };
    let ran = rig.alisio(&[
        "run",
        "--json",
        "--timeout",
        timeout,
        "--api-mode",
        api.as_str(),
        "what is the answer?",
    ]);
    if let Some(line) = ran.stdout.lines().find(|line| !line.starts_with('{') || !line.ends_with('}')) {
        return Err(format!("not JSON: {line}"));
    }
    let events = ran.events();
    let last = events.last().ok_or_else(|| format!("no event; {}", ran.stderr))?;
    if rig.server.request_count() > MOST_REQUESTS {
        return Err(format!("{} requests", rig.server.request_count()));
    }
    let told = || format!("exit {}, last event {last}, failures {:?}", ran.code, rig.server.failures());
    match fault.expectation {
        Expectation::Answer => {
            let answered = last["type"] == "run_completed" && last["data"]["text"] == ANSWER;
            let retried = events.iter().filter(|event| event["type"] == "request_retry").count();
            if ran.code != 0 || !answered || !rig.server.failures().is_empty() {
                return Err(told());
            }
            (retried >= fault.retries as usize)
                .then_some(())
                .ok_or_else(|| format!("{retried} retries; {}", told()))
        }
        Expectation::Error { .. } => {
            let error = last["data"]["error"].as_str().unwrap_or_default();
            let code = if stalls { 3 } else { 1 };
            let named =
                if stalls { error.contains("active") } else { fault.expectation.accepts_error(error) };
            if ran.code != code || last["type"] != "run_failed" || error.is_empty() || !named {
                return Err(told());
            }
            ran.stderr
                .contains(error)
                .then_some(())
                .ok_or_else(|| format!("stderr lacks it: {}; {}", ran.stderr, told()))
        }
    }
}
