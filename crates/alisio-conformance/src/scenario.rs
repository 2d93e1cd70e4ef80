//! The scenario: what the scripted model answers, request by request, as JSON.
//!
//! A scenario is a list of turns. This module reads and checks it and says where it is wrong; it does not play it
//! (`script` does) and knows nothing of wires. `docs/conformance.md` is the page for people.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::faults;

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Where an editor finds the JSON Schema.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// What the scenario is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What `GET /v1/models` lists; one model, `scripted`, when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
    /// The answers. A request gets the first turn that is not used up and whose `match` holds.
    pub turns: Vec<Turn>,
    /// What happens when no turn is left.
    #[serde(default)]
    pub then: Then,
    /// Refuse requests that a strict service would refuse: a call without its result, a result without its call,
    /// arguments that are no JSON object.
    #[serde(default = "yes")]
    pub strict: bool,
}

fn yes() -> bool {
    true
}

/// A model in the list of models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Model {
    /// Its id.
    pub id: String,
    /// Told as `context_window`.
    #[serde(default = "context_window")]
    pub context_window: u64,
}

fn context_window() -> u64 {
    128_000
}

/// What happens when no turn is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// The request is answered with 400 and counted as a failure.
    #[default]
    Error,
    /// The last turn whose `match` holds is played again.
    Last,
    /// The script starts again.
    Restart,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Turn {
    /// When the turn is meant; always, when absent.
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Match>,
    /// What the request must hold; otherwise it is answered with 400 and the failure is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// Values taken from the request, for `{{capture:NAME}}` in this and later turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<Capture>,
    /// The visible text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The reasoning that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Reasoning that the client can't read and must send back (Responses API).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted_reasoning: Option<String>,
    /// The tool calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallStep>,
    /// What is reported as used; 100 read and 10 written when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageStep>,
    /// Why the answer stops; `tool_calls` or `stop` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Finish>,
    /// How the answer is split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deltas: Option<Deltas>,
    /// Silence before the answer begins.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// The misbehaviour, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultUse>,
    /// How often the turn is played.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub repeat: u32,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(value: &u32) -> bool {
    *value == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Says for which requests a turn is meant. All that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Match {
    /// The last user message contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The last tool result contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// This model is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who spoke last; system messages don't count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_role: Option<Role>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions (`system` and `developer`).
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Tool,
}

/// Says what a request must hold. All that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// Who spoke last; system messages don't count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_role: Option<Role>,
    /// The last message that is no system message contains each of these.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub last_contains: Texts,
    /// The last user message contains each of these.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub user_contains: Texts,
    /// The tool results after the last assistant message, taken together, contain each of these.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub tool_contains: Texts,
    /// The tool results after the last assistant message contain none of these.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub tool_lacks: Texts,
    /// The system messages, taken together, contain each of these.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub system_contains: Texts,
    /// The body as sent contains each of these.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub body_contains: Texts,
    /// The body as sent contains none of these.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub body_lacks: Texts,
    /// This model is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// These tools are offered (among others).
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub tools: Texts,
    /// These tools are not offered.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub tools_absent: Texts,
    /// How many images the conversation holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<usize>,
}

/// One text or a list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "OneOrMany")]
#[schemars(with = "OneOrMany")]
pub struct Texts(pub Vec<String>);

impl Texts {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<const N: usize> From<[&str; N]> for Texts {
    fn from(texts: [&str; N]) -> Self {
        Self(texts.iter().map(|text| (*text).to_owned()).collect())
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Texts {
    fn from(value: OneOrMany) -> Self {
        match value {
            OneOrMany::One(text) => Self(vec![text]),
            OneOrMany::Many(texts) => Self(texts),
        }
    }
}

/// Takes a value out of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capture {
    /// The name in `{{capture:NAME}}`.
    pub name: String,
    /// Where to look, newest message first.
    pub from: CaptureFrom,
    /// The value starts right after this text.
    pub after: String,
    /// The value ends before this text; otherwise where `kind` ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Which characters belong to the value, when `until` is absent.
    #[serde(default)]
    pub kind: CaptureKind,
}

/// Where a value is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CaptureFrom {
    /// Tool results.
    Tool,
    /// User messages.
    User,
}

/// Which characters belong to a captured value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CaptureKind {
    /// Letters, digits, `_`, `-` and `.`.
    #[default]
    Word,
    /// Hexadecimal digits.
    Hex,
    /// Everything up to the end of the line.
    Line,
}

/// One tool call of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallStep {
    /// Its id; made up when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The input: an object, or a string that is sent as it is, valid JSON or not.
    #[serde(default)]
    pub arguments: Value,
}

/// What is reported as used, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UsageStep {
    /// Read, cached ones included.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
}

/// Why an answer stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It is finished.
    Stop,
    /// It wants its calls answered.
    ToolCalls,
    /// The output limit.
    Length,
    /// The rest is withheld.
    ContentFilter,
}

/// How an answer is split.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deltas {
    /// How many deltas the text is split into; with `text`, how often that is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// How many characters a delta holds (text, reasoning and arguments); 12 when nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// Sent `count` times, instead of the turn's text: a big stream that costs the server little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Silence after each write of a big stream.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// How many deltas of a big stream go into one write; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_write: Option<usize>,
}

/// A fault by name, with or without parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FaultUse {
    /// The name alone.
    Name(String),
    /// The name and what differs from its defaults.
    With(FaultParameters),
}

impl FaultUse {
    /// Returns the name.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::With(parameters) => &parameters.name,
        }
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> FaultParameters {
        match self {
            Self::Name(name) => FaultParameters { name: name.clone(), ..FaultParameters::default() },
            Self::With(parameters) => parameters.clone(),
        }
    }
}

/// The parameters of a fault; each fault uses those that make sense for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultParameters {
    /// The fault.
    pub name: String,
    /// A silence in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// The seconds of a `Retry-After` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// The size of what is too big.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
}

/// Says why a scenario can't be used.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// The file can't be read.
    #[error("can't read `{path}`: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A part of it is not what the format says.
    #[error("`{place}`: {message}")]
    Part {
        /// The place, as `turns[2].calls[0].name`.
        place: String,
        /// What is wrong with it.
        message: String,
    },
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let scenario: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            ScenarioError::Part { place: error.path().to_string(), message: error.inner().to_string() }
        })?;
        reader
            .end()
            .map_err(|error| ScenarioError::Part { place: ".".into(), message: error.to_string() })?;
        scenario.check()?;
        Ok(scenario)
    }
}

impl Scenario {
    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// [`ScenarioError`], with the file or the place in it.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        std::fs::read_to_string(path)
            .map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?
            .parse()
    }

    /// Makes a scenario of `turns`, as strict as the default.
    pub fn new(turns: Vec<Turn>) -> Self {
        Self { turns, strict: true, ..Self::default() }
    }

    /// Returns the JSON Schema of the format.
    pub fn json_schema() -> Value {
        schemars::schema_for!(Scenario).to_value()
    }

    /// Checks what the types don't: names of faults and captures, counts that must not be zero.
    ///
    /// # Errors
    /// [`ScenarioError::Part`] with the place.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let part = |place: String, message: String| Err(ScenarioError::Part { place, message });
        if self.turns.is_empty() {
            return part("turns".into(), "a scenario needs at least one turn".into());
        }
        let mut known: Vec<&str> = Vec::new();
        for (index, turn) in self.turns.iter().enumerate() {
            let place = |field: &str| format!("turns[{index}].{field}");
            if turn.repeat == 0 {
                return part(place("repeat"), "must be at least 1".into());
            }
            if let Some(fault) = &turn.fault
                && faults::find(fault.name()).is_none()
            {
                return part(place("fault"), faults::unknown_name(fault.name()));
            }
            if let Some(deltas) = &turn.deltas {
                for (field, value) in
                    [("count", deltas.count), ("size", deltas.size), ("perWrite", deltas.per_write)]
                {
                    if value == Some(0) {
                        return part(place(&format!("deltas.{field}")), "must be at least 1".into());
                    }
                }
                if deltas.text.is_some() && deltas.count.is_none() {
                    return part(place("deltas.count"), "is needed beside `text`".into());
                }
            }
            known.extend(turn.captures.iter().map(|capture| capture.name.as_str()));
            for (field, text) in turn.templates() {
                for name in capture_names(&text) {
                    if !known.contains(&name.as_str()) {
                        return part(place(&field), format!("no capture up to here is named `{name}`"));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Turn {
    /// Makes a turn that answers with `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), repeat: 1, ..Self::default() }
    }

    /// Makes a turn that calls a tool.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            calls: vec![CallStep { id: None, name: name.into(), arguments }],
            repeat: 1,
            ..Self::default()
        }
    }

    /// Adds a fault.
    #[must_use]
    pub fn with_fault(mut self, name: &str) -> Self {
        self.fault = Some(FaultUse::Name(name.into()));
        self
    }

    fn templates(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        found.extend(self.text.iter().map(|text| ("text".to_owned(), text.clone())));
        for (index, call) in self.calls.iter().enumerate() {
            found.push((format!("calls[{index}].arguments"), call.arguments.to_string()));
        }
        found
    }
}

/// Marks where a captured value goes.
pub(crate) const CAPTURE: &str = "{{capture:";

fn capture_names(text: &str) -> Vec<String> {
    text.split(CAPTURE)
        .skip(1)
        .filter_map(|rest| rest.split_once("}}").map(|(name, _)| name.to_owned()))
        .collect()
}
