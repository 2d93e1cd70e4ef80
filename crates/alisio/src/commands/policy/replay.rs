//! Judges what a session called by another policy, and tells each verdict that would change.
//!
//! Paths count from the workspace of the session and go by their text, as the session gave them; no file of today is
//! looked at. Limits are counted by the times of the recorded calls.

use std::collections::HashMap;
use std::io::Write;

use alisio_policy::{Moment, Outcome, RecordedUses, no_rung};
use alisio_protocol::{EventKind, Message, VerdictSource, VerdictWord};
use alisio_store::StoreError;
use serde_json::json;

use super::{CallText, Desk, judge, the_policy};
use crate::app::App;
use crate::error::{CommandError, Exit};
use crate::output::{harmless, summarize};

/// Events that are read at once.
const PAGE: usize = 1000;

/// `alisio policy replay`.
pub fn run(mut desk: Desk, session: &str) -> Result<Exit, CommandError> {
    let standing = the_policy(&mut desk)?;
    let app = App::new(desk.global.clone())?;
    let store = app.store()?;
    let session = store.find(session)?;
    let row = store.session(&session)?.ok_or_else(|| StoreError::NoSession(session.to_string()))?;
    desk.directory = row.workspace.to_string_lossy().into_owned();

    let mut decided: HashMap<String, (VerdictWord, VerdictSource, i64)> = HashMap::new();
    let mut after = None;
    loop {
        let events = store.events(&session, after, PAGE)?;
        let Some(last) = events.last() else { break };
        after = last.event_id;
        for event in &events {
            if let EventKind::ToolDecided { id, verdict, source, .. } = &event.kind {
                let time = event.timestamp.parse::<jiff::Timestamp>().map_or(0, |time| time.as_millisecond());
                decided.insert(id.to_string(), (*verdict, *source, time));
            }
        }
        if after.is_none() {
            break;
        }
    }

    let mut uses = RecordedUses::default();
    let (mut n_calls, mut n_changed) = (0_usize, 0_usize);
    let mut out = anstream::stdout().lock();
    for message in store.view(&session)?.messages {
        let Message::Assistant(answer) = message else { continue };
        for call in answer.calls {
            // A call that never came to a verdict (bad input, an unknown tool) has none that could change.
            let Some((word, source, now)) = decided.get(&call.id.to_string()).copied() else { continue };
            let Ok(subject) = desk.subject(&call.name, &CallText::Input(&call.arguments)) else { continue };
            n_calls += 1;
            let moment = Moment { now, uses: &uses, has_rung: &no_rung };
            let judgement = judge(Some(&standing), &call.name, &subject, moment);
            if judgement.outcome == Outcome::Allow {
                uses.record(&judgement.uses, now);
            }
            let before = match (word, source) {
                (VerdictWord::Allow, _) => Outcome::Allow,
                (VerdictWord::Deny, VerdictSource::NobodyToAsk) => Outcome::Ask,
                (VerdictWord::Deny, _) => Outcome::Deny,
            };
            if before == judgement.outcome {
                continue;
            }
            n_changed += 1;
            if desk.global.json {
                let line = json!({
                    "call": call.id, "tool": call.name, "target": subject.target, "before": before.as_str(),
                    "beforeSource": source, "after": judgement.outcome.as_str(), "source": judgement.source,
                    "rule": judgement.rule, "reason": judgement.reason,
                });
                writeln!(out, "{line}")?;
            } else {
                let about = harmless(&summarize(&call.arguments)).into_owned();
                writeln!(out, "{before} → {}  {} {about}", judgement.outcome, call.name)?;
                writeln!(out, "  \x1b[2m{}\x1b[0m", harmless(&judgement.reason))?;
            }
        }
    }
    if !desk.global.json {
        writeln!(out, "{n_changed} of {n_calls} verdicts would change under {}", harmless(&standing.shown))?;
    }
    Ok(Exit::Done)
}
