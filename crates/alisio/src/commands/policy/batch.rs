//! Many calls, or many commands, one JSON object a line. A line that can't be used gives a line that says so; the rest goes
//! on, and the exit code tells at the end.

use std::io::{BufRead, BufReader, BufWriter, Write};

use alisio_policy::{CommandText, Moment, Outcome, RecordedUses, no_rung};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{CallText, Desk, Standing, as_json, facts, judge};
use crate::error::{CommandError, Exit};

#[derive(Deserialize)]
struct CheckLine {
    policy: Option<Value>,
    call: CallLine,
    #[serde(default)]
    prior: Vec<PriorLine>,
}

#[derive(Deserialize)]
struct CallLine {
    tool: String,
    target: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct PriorLine {
    #[serde(flatten)]
    call: PriorCall,
    #[serde(rename = "agoMs")]
    ago_ms: f64,
}

#[derive(Deserialize)]
struct PriorCall {
    tool: String,
    target: Option<String>,
    input: Option<Value>,
}

#[derive(Deserialize)]
struct ClassifyLine {
    cmd: String,
}

/// `alisio policy check --batch`.
pub fn check(mut desk: Desk) -> Result<Exit, CommandError> {
    let mut last: Option<(Value, Result<Standing, String>)> = None;
    each_line(|line| {
        let CheckLine { policy, call, prior } =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let standing;
        let judging = match policy {
            Some(value) => {
                if last.as_ref().is_none_or(|(known, _)| *known != value) {
                    let parsed =
                        super::parse_policy(&value, "this line").map(Standing::alone).map_err(|error| {
                            let mut text = error.error;
                            for hint in error.hints {
                                text.push_str("; ");
                                text.push_str(&hint);
                            }
                            text
                        });
                    last = Some((value, parsed));
                }
                match &last {
                    Some((_, Ok(standing))) => Some(standing),
                    Some((_, Err(error))) => return Err(error.clone()),
                    None => None,
                }
            }
            None => {
                standing = desk.standing().map_err(|error| error.error)?;
                standing.as_ref()
            }
        };
        let mut uses = RecordedUses::default();
        let mut earlier = prior;
        // The oldest first; of equally old ones in the order of the line.
        earlier.sort_by(|a, b| b.ago_ms.total_cmp(&a.ago_ms));
        for PriorLine { call, ago_ms } in &earlier {
            let input = call.input.as_ref().map(ToString::to_string);
            let text = text_of(call.target.as_deref(), input.as_deref())?;
            let subject = desk.subject(&call.tool, &text)?;
            let now = -(*ago_ms as i64);
            let judgement =
                judge(judging, &call.tool, &subject, Moment { now, uses: &uses, has_rung: &no_rung });
            // What was refused, or waits for a person, was not used.
            if judgement.outcome == Outcome::Allow {
                uses.record(&judgement.uses, now);
            }
        }
        let text = text_of(call.target.as_deref(), call.input.as_deref().map(RawValue::get))?;
        let subject = desk.subject(&call.tool, &text)?;
        Ok(as_json(&judge(judging, &call.tool, &subject, Moment { now: 0, uses: &uses, has_rung: &no_rung })))
    })
}

fn text_of<'c>(target: Option<&'c str>, input: Option<&'c str>) -> Result<CallText<'c>, String> {
    match (target, input) {
        (Some(target), None) => Ok(CallText::Target(target)),
        (None, Some(input)) => Ok(CallText::Input(input)),
        (Some(_), Some(_)) => Err("a call has `target` or `input`, not both".to_owned()),
        (None, None) => Err("a call needs `target` or `input`".to_owned()),
    }
}

/// `alisio policy classify --batch`.
pub fn classify() -> Result<Exit, CommandError> {
    each_line(|line| {
        let ClassifyLine { cmd } = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let facts = facts(CommandText::Script(&cmd));
        Ok(json!({"class": facts.class, "facts": facts, "reason": facts.reason}))
    })
}

/// Answers every line of standard input, with its id in front.
fn each_line(mut answer: impl FnMut(&str) -> Result<Value, String>) -> Result<Exit, CommandError> {
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut exit = Exit::Done;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let line = std::str::from_utf8(&bytes).map_err(|error| error.to_string());
        let id = line.as_ref().ok().and_then(|line| id_of(line)).unwrap_or(Value::Null);
        let answer = line.and_then(|line| answer(line.trim()));
        let answer = answer.unwrap_or_else(|error| {
            exit = Exit::Usage;
            // What can't be judged would not run.
            json!({"error": error, "action": "deny"})
        });
        write!(out, "{{\"id\":{id}")?;
        if let Value::Object(fields) = answer {
            for (name, value) in fields {
                write!(out, ",{}:{value}", Value::String(name))?;
            }
        }
        writeln!(out, "}}")?;
        if input.buffer().is_empty() {
            // Whoever waits for this answer before the next question gets it.
            out.flush()?;
        }
    }
    out.flush()?;
    Ok(exit)
}

fn id_of(line: &str) -> Option<Value> {
    #[derive(Deserialize)]
    struct WithId {
        id: Value,
    }
    serde_json::from_str::<WithId>(line).ok().map(|line| line.id)
}
