//! Reads a policy from JSON and reports everything that is wrong with it at once.
//!
//! Keys that are not known are kept out and told by `lint`, as the policies of other programs carry some. One exception: a
//! key that is nearly a known one is an error, since a condition that is misspelled makes a rule wider than it reads.

use std::fmt;

use alisio_protocol::{Effect, EffectSet};
use serde_json::{Map, Value};

use crate::Glob;
use crate::rule::{Action, Example, ExampleCall, Limit, Policy, Rule, RuleId};

const POLICY_KEYS: &[&str] = &["default", "rules", "disabledTools", "restrictToTools"];
const RULE_KEYS: &[&str] = &[
    "tool", "pattern", "action", "limit", "effect", "path", "host", "program", "agent", "reason", "match",
    "notMatch", "rung",
];
const LIMIT_KEYS: &[&str] = &["count", "windowMs"];
const ACTIONS: &str = "allow, ask, deny, rate_limit, classify, sandbox";

/// One thing that is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    /// Where: `rules[2].limit.count`; empty for the policy as a whole.
    pub path: String,
    /// What kind of problem: `type`, `unknown_mode`, `unknown_action`, `unknown_effect`, `missing`, `missing_limit`,
    /// `not_positive`, `misspelled_key`, `no_default`, `example`.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "permissions" } else { &self.path };
        write!(f, "`{path}`: {} ({})", self.message, self.code)
    }
}

impl Policy {
    /// Reads a policy: a mode (`auto`, `ask`, `readonly`) or an object.
    ///
    /// # Errors
    /// All problems, in the order of the document.
    pub fn parse(value: &Value) -> Result<Self, Vec<PolicyProblem>> {
        let mut reader = Reader { problems: Vec::new(), ignored: Vec::new() };
        let policy = match value {
            Value::String(mode) => match mode.as_str() {
                "auto" => Some(Self::auto()),
                "ask" => Some(Self::ask()),
                "readonly" => Some(Self::readonly()),
                _ => {
                    reader.say(
                        "",
                        "unknown_mode",
                        format!("`{mode}` is no mode; the modes are auto, ask, readonly"),
                    );
                    None
                }
            },
            Value::Object(object) => Some(reader.policy(object)),
            other => {
                reader.say("", "type", format!("found {}, allowed is a mode or an object", kind_of(other)));
                None
            }
        };
        match policy {
            Some(policy) if reader.problems.is_empty() => Ok(Self { ignored: reader.ignored, ..policy }),
            _ => Err(reader.problems),
        }
    }
}

struct Reader {
    problems: Vec<PolicyProblem>,
    ignored: Vec<String>,
}

impl Reader {
    fn say(&mut self, path: &str, code: &'static str, message: String) {
        self.problems.push(PolicyProblem { path: path.to_owned(), code, message });
    }

    fn policy(&mut self, object: &Map<String, Value>) -> Policy {
        self.keys("", object, POLICY_KEYS);
        let mut policy = Policy::ask();
        if let Some(default) = present(object, "default") {
            match default.as_str() {
                Some("rate_limit") => self.say(
                    "default",
                    "no_default",
                    "`rate_limit` needs a limit, which only a rule has: it can't be the default".to_owned(),
                ),
                _ => {
                    if let Some(action) = self.action("default", default, None, None) {
                        policy.default = action;
                    }
                }
            }
        }
        match present(object, "rules") {
            None => {}
            Some(Value::Array(rules)) => {
                policy.rules = rules
                    .iter()
                    .enumerate()
                    .filter_map(|(index, rule)| self.rule(&format!("rules[{index}]"), rule))
                    .collect();
            }
            Some(other) => self.wrong("rules", other, "a list of rules"),
        }
        policy.disabled_tools = self.names("disabledTools", object);
        policy.restrict_to_tools = self.names("restrictToTools", object);
        policy
    }

    fn names(&mut self, key: &str, object: &Map<String, Value>) -> Vec<String> {
        let Some(value) = present(object, key) else { return Vec::new() };
        let Value::Array(items) = value else {
            self.wrong(key, value, "a list of tool names");
            return Vec::new();
        };
        let mut names = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(name) => names.push(name.to_owned()),
                None => self.wrong(&format!("{key}[{index}]"), item, "a tool name"),
            }
        }
        names
    }

    fn rule(&mut self, path: &str, value: &Value) -> Option<Rule> {
        let Value::Object(object) = value else {
            self.wrong(path, value, "an object");
            return None;
        };
        self.keys(path, object, RULE_KEYS);
        let before = self.problems.len();
        let at = |key: &str| format!("{path}.{key}");
        let glob = |reader: &mut Self, key: &str| {
            reader.text(&at(key), present(object, key)?).map(|text| Glob::new(&text))
        };
        let effects = present(object, "effect").and_then(|value| self.effects(&at("effect"), value));
        let program = present(object, "program").and_then(|value| self.words(&at("program"), value));
        let (pattern, file, host, agent) =
            (glob(self, "pattern"), glob(self, "path"), glob(self, "host"), glob(self, "agent"));
        let says_more =
            ["effect", "path", "host", "program"].iter().any(|key| present(object, key).is_some());
        let tool = match object.get("tool") {
            Some(value) => self.text(&at("tool"), value),
            None if says_more => Some(if program.is_some() { "bash" } else { "*" }.to_owned()),
            None => {
                self.say(&at("tool"), "missing", "a rule says which tool it is for".to_owned());
                None
            }
        };
        let limit = present(object, "limit").and_then(|value| self.limit(&at("limit"), value));
        let action = match object.get("action") {
            Some(value) => self.action(&at("action"), value, limit, object.get("rung")),
            None => {
                self.say(&at("action"), "missing", format!("a rule says what it does: {ACTIONS}"));
                None
            }
        };
        if object.get("action").and_then(Value::as_str) == Some("rate_limit")
            && present(object, "limit").is_none()
        {
            let message = "`rate_limit` needs `limit`: {\"count\": …, \"windowMs\": …}; without one it would limit nothing";
            self.say(&at("limit"), "missing_limit", message.to_owned());
        }
        let reason = present(object, "reason").and_then(|value| self.text(&at("reason"), value));
        let tool_name = tool.clone().unwrap_or_default();
        let mut examples = self.examples(&at("match"), present(object, "match"), &tool_name, true);
        examples.extend(self.examples(&at("notMatch"), present(object, "notMatch"), &tool_name, false));
        if self.problems.len() > before {
            return None;
        }
        // What a rule is called does not depend on its examples or its words.
        let mut named = object.clone();
        ["reason", "match", "notMatch"].iter().for_each(|key| drop(named.remove(*key)));
        Some(Rule {
            id: RuleId::of(&Value::Object(named)),
            tool: Glob::new(&tool?),
            pattern,
            effects,
            path: file,
            host,
            program,
            agent,
            action: action?,
            reason,
            examples,
        })
    }

    fn action(
        &mut self,
        path: &str,
        value: &Value,
        limit: Option<Limit>,
        rung: Option<&Value>,
    ) -> Option<Action> {
        let word = self.text(path, value)?;
        Some(match word.as_str() {
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            "deny" => Action::Deny,
            // A missing limit is a problem of its own.
            "rate_limit" => Action::RateLimit(limit.unwrap_or(Limit { count: 0, window_ms: 1 })),
            "classify" => Action::Classify,
            "sandbox" => {
                let rung = rung.filter(|value| !value.is_null());
                Action::Sandbox {
                    rung: rung.and_then(|value| self.text(&path.replace("action", "rung"), value)),
                }
            }
            _ => {
                self.say(path, "unknown_action", format!("`{word}` is no action; the actions are {ACTIONS}"));
                return None;
            }
        })
    }

    fn limit(&mut self, path: &str, value: &Value) -> Option<Limit> {
        let Value::Object(object) = value else {
            self.wrong(path, value, "an object with `count` and `windowMs`");
            return None;
        };
        self.keys(path, object, LIMIT_KEYS);
        let count = self.positive(&format!("{path}.count"), object.get("count"));
        let window_ms = self.positive(&format!("{path}.windowMs"), object.get("windowMs"));
        Some(Limit { count: count?, window_ms: window_ms? })
    }

    fn positive(&mut self, path: &str, value: Option<&Value>) -> Option<u64> {
        let whole =
            |number: f64| (number.fract() == 0.0 && (1.0..9e15).contains(&number)).then_some(number as u64);
        let number = value.and_then(|value| value.as_u64().or_else(|| value.as_f64().and_then(whole)));
        let number = number.filter(|number| *number > 0);
        if number.is_none() {
            let found = value.map_or("nothing".to_owned(), ToString::to_string);
            self.say(path, "not_positive", format!("found {found}, allowed is a whole number from 1"));
        }
        number
    }

    fn effects(&mut self, path: &str, value: &Value) -> Option<EffectSet> {
        let mut set = EffectSet::EMPTY;
        for word in self.words(path, value)? {
            match Effect::ALL.into_iter().find(|effect| effect.as_str() == word) {
                Some(effect) => set = set.with(effect),
                None => {
                    let known = Effect::ALL.map(Effect::as_str).join(", ");
                    self.say(
                        path,
                        "unknown_effect",
                        format!("`{word}` is no effect; the effects are {known}"),
                    );
                    return None;
                }
            }
        }
        Some(set)
    }

    /// Words: a text that is split at blanks, or a list.
    fn words(&mut self, path: &str, value: &Value) -> Option<Vec<String>> {
        let words: Option<Vec<String>> = match value {
            Value::String(text) => Some(text.split_whitespace().map(str::to_owned).collect()),
            Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        match words {
            Some(words) if !words.is_empty() => Some(words),
            Some(_) => {
                self.say(path, "missing", "at least one word is needed".to_owned());
                None
            }
            None => {
                self.wrong(path, value, "a text or a list of texts");
                None
            }
        }
    }

    fn examples(&mut self, path: &str, value: Option<&Value>, tool: &str, matches: bool) -> Vec<Example> {
        let list = match value {
            None => return Vec::new(),
            Some(Value::Array(items)) => items.as_slice(),
            Some(single @ (Value::String(_) | Value::Object(_))) => std::slice::from_ref(single),
            Some(other) => {
                self.wrong(path, other, "a list of calls");
                return Vec::new();
            }
        };
        let mut examples = Vec::new();
        for (index, item) in list.iter().enumerate() {
            let path = format!("{path}[{index}]");
            // A rule for many tools is given a shell command unless the example names its tool.
            let default_tool = if tool.contains(['*', '?']) { "bash" } else { tool };
            let named = item.get("tool").and_then(Value::as_str).unwrap_or(default_tool).to_owned();
            let call = match (item.as_str(), item.get("target").and_then(Value::as_str), item.get("input")) {
                (Some(text), _, _) | (None, Some(text), _) => ExampleCall::Target(text.to_owned()),
                (None, None, Some(input)) => ExampleCall::Input(input.to_string()),
                (None, None, None) => {
                    self.wrong(&path, item, "a text, or an object with `tool` and `target` or `input`");
                    continue;
                }
            };
            examples.push(Example { matches, tool: named, call, path });
        }
        examples
    }

    fn text(&mut self, path: &str, value: &Value) -> Option<String> {
        let text = value.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong(path, value, "a text");
        }
        text
    }

    fn wrong(&mut self, path: &str, value: &Value, allowed: &str) {
        self.say(path, "type", format!("found {}, allowed is {allowed}", kind_of(value)));
    }

    fn keys(&mut self, path: &str, object: &Map<String, Value>, known: &[&str]) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match known.iter().find(|known| is_near(key, known)) {
                Some(meant) => {
                    self.say(
                        &full,
                        "misspelled_key",
                        format!("`{key}` is not known; `{meant}` was probably meant"),
                    );
                }
                None => self.ignored.push(full),
            }
        }
    }
}

/// Says whether `key` is probably `known`, misspelled.
fn is_near(key: &str, known: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let (key, known) = (plain(key), plain(known));
    key == known
        || (key.len() >= 5 && strsim::osa_distance(&key, &known) <= 2)
        || strsim::osa_distance(&key, &known) <= 1 && key.len() >= 4
}

/// A value that is there and not null.
fn present<'v>(object: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    object.get(key).filter(|value| !value.is_null())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
