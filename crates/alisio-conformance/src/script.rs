//! Plays a scenario: chooses the turn for a request, checks what it expects, fills in captured values.
//!
//! The server and the in-process provider share it, so that both give the same answers. It does no I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::asked::Asked;
use crate::reply::{Call, Reply};
use crate::scenario::{
    CAPTURE, Capture, CaptureFrom, CaptureKind, Expect, FaultParameters, Finish, Match, Role, Scenario, Then,
    Turn, UsageStep,
};

/// A scenario and how far it has been played.
#[derive(Debug)]
pub(crate) struct Script {
    scenario: Scenario,
    played: Vec<u32>,
    captured: BTreeMap<String, String>,
    requests: usize,
    failures: Vec<String>,
}

impl Script {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let played = vec![0; scenario.turns.len()];
        Self { scenario, played, captured: BTreeMap::new(), requests: 0, failures: Vec::new() }
    }

    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// What went wrong so far, a sentence each.
    pub(crate) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Says whether any turn looks at the body as sent.
    pub(crate) fn reads_raw(&self) -> bool {
        let reads = |expect: &Expect| !expect.body_contains.0.is_empty() || !expect.body_lacks.0.is_empty();
        self.scenario.turns.iter().any(|turn| turn.expect.as_ref().is_some_and(reads))
    }

    /// Gives the next answer for a request; an error is a sentence for a 400, recorded among the failures.
    pub(crate) fn answer(&mut self, asked: &Asked) -> Result<(Reply, Option<FaultParameters>), String> {
        self.requests += 1;
        self.play(asked).map_err(|why| {
            let sentence = format!("request {}: {why}", self.requests);
            self.failures.push(sentence.clone());
            sentence
        })
    }

    fn play(&mut self, asked: &Asked) -> Result<(Reply, Option<FaultParameters>), String> {
        if self.scenario.strict
            && let Some(objection) = &asked.objection
        {
            return Err(format!("the conversation is not valid: {objection}"));
        }
        let index = self.choose(asked).ok_or("no turn of the scenario is left for it")?;
        let turn = &self.scenario.turns[index];
        if let Some(expect) = &turn.expect {
            check(expect, asked).map_err(|why| format!("turn {index} expected otherwise: {why}"))?;
        }
        for capture in &turn.captures {
            let value = take(capture, asked).ok_or_else(|| {
                format!(
                    "turn {index} found nothing to capture as `{}` after `{}`",
                    capture.name, capture.after
                )
            })?;
            self.captured.insert(capture.name.clone(), value);
        }
        self.played[index] += 1;
        let turn = &self.scenario.turns[index];
        Ok((self.reply(turn, asked), turn.fault.as_ref().map(crate::scenario::FaultUse::parameters)))
    }

    fn choose(&mut self, asked: &Asked) -> Option<usize> {
        let holds = |turn: &Turn| turn.when.as_ref().is_none_or(|when| matches(when, asked));
        let turns = &self.scenario.turns;
        let next = |played: &[u32]| {
            turns.iter().zip(played).position(|(turn, played)| *played < turn.repeat && holds(turn))
        };
        next(&self.played).or_else(|| match self.scenario.then {
            Then::Error => None,
            Then::Last => turns.iter().rposition(holds),
            Then::Restart => {
                // Only the turns meant for such a request start again: others may still be under way.
                for (turn, played) in turns.iter().zip(&mut self.played) {
                    if holds(turn) {
                        *played = 0;
                    }
                }
                next(&self.played)
            }
        })
    }

    fn reply(&self, turn: &Turn, asked: &Asked) -> Reply {
        let calls: Vec<Call> = turn
            .calls
            .iter()
            .enumerate()
            .map(|(index, call)| Call {
                id: call.id.clone().unwrap_or_else(|| format!("call_{}_{index}", self.requests)),
                name: call.name.clone(),
                arguments: match &call.arguments {
                    Value::Null => "{}".to_owned(),
                    Value::String(text) => self.fill(text),
                    value => self.fill_value(value).to_string(),
                },
            })
            .collect();
        let finish = turn.finish.unwrap_or(if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls });
        Reply {
            number: self.requests,
            model: if asked.model.is_empty() { "scripted".into() } else { asked.model.clone() },
            text: self.fill(turn.text.as_deref().unwrap_or("")),
            reasoning: turn.reasoning.clone().unwrap_or_default(),
            encrypted_reasoning: turn.encrypted_reasoning.clone(),
            calls,
            usage: turn.usage.unwrap_or(UsageStep { input: 100, output: 10, cached_input: None }),
            finish,
            deltas: turn.deltas.clone().unwrap_or_default(),
            delay: Duration::from_millis(turn.delay_ms),
        }
    }

    /// Puts captured values into a text. A name that is not known stays as it stands.
    fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(CAPTURE) {
            filled.push_str(before);
            match after.split_once("}}").and_then(|(name, tail)| Some((self.captured.get(name)?, tail))) {
                Some((value, tail)) => {
                    filled.push_str(value);
                    rest = tail;
                }
                None => {
                    filled.push_str(CAPTURE);
                    rest = after;
                }
            }
        }
        filled + rest
    }

    fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, field)| (name.clone(), self.fill_value(field))).collect()
            }
            other => other.clone(),
        }
    }
}

fn matches(when: &Match, asked: &Asked) -> bool {
    let contains = |needle: &Option<String>, role| {
        needle.as_ref().is_none_or(|needle| asked.last(role).is_some_and(|text| text.contains(needle)))
    };
    contains(&when.user, Role::User)
        && contains(&when.tool, Role::Tool)
        && when.model.as_ref().is_none_or(|model| *model == asked.model)
        && when.last_role.is_none_or(|role| asked.newest().is_some_and(|entry| entry.role == role))
}

fn check(expect: &Expect, asked: &Asked) -> Result<(), String> {
    let newest = asked.newest();
    if let Some(role) = expect.last_role
        && newest.map(|entry| entry.role) != Some(role)
    {
        return Err(format!("the last message is of {:?}, not of {role:?}", newest.map(|entry| entry.role)));
    }
    let join = |entries: &mut dyn Iterator<Item = &str>| entries.collect::<Vec<_>>().join("\n");
    let results = join(
        &mut asked
            .entries
            .iter()
            .rev()
            .take_while(|entry| entry.role != Role::Assistant)
            .filter(|entry| entry.role == Role::Tool)
            .map(|entry| entry.text.as_str()),
    );
    let system = join(
        &mut asked.entries.iter().filter(|entry| entry.role == Role::System).map(|entry| entry.text.as_str()),
    );
    let last = newest.map_or("", |entry| entry.text.as_str());
    let user = asked.last(Role::User).unwrap_or("");
    for (what, text, needles, wanted) in [
        ("the last message", last, &expect.last_contains, true),
        ("the last user message", user, &expect.user_contains, true),
        ("the tool results", results.as_str(), &expect.tool_contains, true),
        ("the tool results", results.as_str(), &expect.tool_lacks, false),
        ("the system messages", system.as_str(), &expect.system_contains, true),
        ("the body", asked.raw.as_str(), &expect.body_contains, true),
        ("the body", asked.raw.as_str(), &expect.body_lacks, false),
    ] {
        for needle in &needles.0 {
            if text.contains(needle) != wanted {
                let why = if wanted { "is missing" } else { "should not be there" };
                return Err(format!("`{needle}` {why} in {what}, which begins `{}`", shorten(text)));
            }
        }
    }
    if let Some(model) = &expect.model
        && *model != asked.model
    {
        return Err(format!("the model is `{}`, not `{model}`", asked.model));
    }
    for tool in &expect.tools.0 {
        if !asked.tools.contains(tool) {
            return Err(format!("the tool `{tool}` is not offered, only {:?}", asked.tools));
        }
    }
    for tool in &expect.tools_absent.0 {
        if asked.tools.contains(tool) {
            return Err(format!("the tool `{tool}` is offered"));
        }
    }
    match expect.images {
        Some(images) if images != asked.images => {
            Err(format!("the conversation holds {} images, not {images}", asked.images))
        }
        _ => Ok(()),
    }
}

/// Takes the value from the newest message that has it.
fn take(capture: &Capture, asked: &Asked) -> Option<String> {
    let role = match capture.from {
        CaptureFrom::Tool => Role::Tool,
        CaptureFrom::User => Role::User,
    };
    asked.entries.iter().rev().filter(|entry| entry.role == role).find_map(|entry| {
        let (_, rest) = entry.text.split_once(&capture.after)?;
        let value = match &capture.until {
            Some(until) => rest.split_once(until)?.0,
            None => {
                let end = rest.find(|letter: char| !belongs(capture.kind, letter)).unwrap_or(rest.len());
                &rest[..end]
            }
        };
        (!value.is_empty()).then(|| value.to_owned())
    })
}

fn belongs(kind: CaptureKind, letter: char) -> bool {
    match kind {
        CaptureKind::Word => letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'),
        CaptureKind::Hex => letter.is_ascii_hexdigit(),
        CaptureKind::Line => letter != '\n' && letter != '\r',
    }
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(200).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
