//! The policy language as data: modes, actions, rules.

use std::fmt;

use alisio_protocol::{EffectSet, Sha256};
use serde_json::Value;

use crate::Glob;

/// What a rule, or the default, does with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Runs it.
    Allow,
    /// Asks a person.
    Ask,
    /// Refuses it.
    Deny,
    /// Runs it up to so many times in a while, then refuses it.
    RateLimit(Limit),
    /// Runs a command that only looks, asks about everything else.
    Classify,
    /// Runs it unasked, but only in the kernel's sandbox at this rung or a better one; asks otherwise.
    Sandbox {
        /// The lowest rung that will do; any where it is `None`.
        rung: Option<String>,
    },
}

impl Action {
    /// The word in a policy.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::RateLimit(_) => "rate_limit",
            Self::Classify => "classify",
            Self::Sandbox { .. } => "sandbox",
        }
    }

    /// Says whether it can let a call run unasked.
    pub fn can_allow(&self) -> bool {
        !matches!(self, Self::Ask | Self::Deny)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How often something may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many calls.
    pub count: u64,
    /// In how many milliseconds, rolling.
    pub window_ms: u64,
}

/// Names a rule across restarts: its source and what it says, not where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(String);

impl RuleId {
    /// Takes an id as it was stored.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn of(rule: &Value) -> Self {
        let mut digest = Sha256::of(rule.to_string().as_bytes()).to_string();
        digest.truncate(24);
        Self(digest)
    }

    /// The text to store.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One rule. It speaks for a call when all its conditions hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name across restarts.
    pub id: RuleId,
    /// The tools.
    pub tool: Glob,
    /// The text of the call.
    pub pattern: Option<Glob>,
    /// Effects of the tool.
    pub effects: Option<EffectSet>,
    /// Absolute paths, resolved.
    pub path: Option<Glob>,
    /// Hosts.
    pub host: Option<Glob>,
    /// The first words of one simple command.
    pub program: Option<Vec<String>>,
    /// The agent.
    pub agent: Option<Glob>,
    /// What it does.
    pub action: Action,
    /// Why, in words that the model reads.
    pub reason: Option<String>,
    /// Calls that it must decide.
    pub examples: Vec<Example>,
}

impl Rule {
    /// Says the rule in a few words: its conditions and its action.
    pub fn summary(&self) -> String {
        let mut words = vec![format!("`{}`", self.tool.as_str())];
        let globs =
            [("", &self.pattern), ("path ", &self.path), ("host ", &self.host), ("agent ", &self.agent)];
        words.extend(
            globs
                .into_iter()
                .filter_map(|(label, glob)| glob.as_ref().map(|glob| format!("{label}`{}`", glob.as_str()))),
        );
        words.extend(self.program.as_ref().map(|program| format!("program `{}`", program.join(" "))));
        words.extend(self.effects.map(|effects| {
            format!(
                "effect {}",
                effects.iter().map(alisio_protocol::Effect::as_str).collect::<Vec<_>>().join(" or ")
            )
        }));
        format!("{} → {}", words.join(" "), self.action)
    }

    /// Says whether nothing but the tool is asked for, or a pattern that every text has.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.pattern.as_ref().is_none_or(Glob::is_universal)
            && self.effects.is_none()
            && self.path.is_none()
            && self.host.is_none()
            && self.program.is_none()
            && self.agent.is_none()
    }
}

/// A call that a rule must decide, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Whether it must.
    pub matches: bool,
    /// The tool.
    pub tool: String,
    /// The text of the call, or its input as JSON.
    pub call: ExampleCall,
    /// Where it stands: `rules[2].match[0]`.
    pub path: String,
}

/// How an example gives its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExampleCall {
    /// By the text that patterns see.
    Target(String),
    /// By the input, as JSON.
    Input(String),
}

/// A policy that can be judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What happens when no rule speaks.
    pub default: Action,
    /// The rules, the last that matches wins.
    pub rules: Vec<Rule>,
    /// Tools that never run.
    pub disabled_tools: Vec<String>,
    /// The only tools that run; empty for no restriction.
    pub restrict_to_tools: Vec<String>,
    /// Whether a shell that is reachable in spite of the restriction is judged by the rules: the mode `readonly`.
    pub(crate) triages_shell: bool,
    /// Things that a person should know; see [`Policy::lint`](crate::Policy::lint).
    pub(crate) ignored: Vec<String>,
}

impl Policy {
    /// Never asks: the mode `auto`.
    pub fn auto() -> Self {
        Self::of_default(Action::Allow)
    }

    /// Asks before every call: the mode `ask`.
    pub fn ask() -> Self {
        Self::of_default(Action::Ask)
    }

    /// Offers the four readers only: the mode `readonly`.
    pub fn readonly() -> Self {
        let rule = |tool: &str, action: Action| Rule {
            id: RuleId::of(&serde_json::json!({"tool": tool, "action": action.as_str()})),
            tool: Glob::new(tool),
            pattern: None,
            effects: None,
            path: None,
            host: None,
            program: None,
            agent: None,
            action,
            reason: None,
            examples: Vec::new(),
        };
        let readers = ["read", "grep", "find", "ls"];
        let mut rules: Vec<Rule> = readers.iter().map(|tool| rule(tool, Action::Allow)).collect();
        rules.push(rule("bash", Action::Classify));
        Self {
            rules,
            restrict_to_tools: readers.map(str::to_owned).to_vec(),
            triages_shell: true,
            ..Self::of_default(Action::Ask)
        }
    }

    fn of_default(default: Action) -> Self {
        Self {
            default,
            rules: Vec::new(),
            disabled_tools: Vec::new(),
            restrict_to_tools: Vec::new(),
            triages_shell: false,
            ignored: Vec::new(),
        }
    }
}
