//! Finds rules that do not do what they seem to: those that can never match, that a later one hides, or that take the force
//! from an earlier refusal. It compares the texts of conditions; a finding is certain, the lack of one is not.

use std::fmt;

use alisio_protocol::Effect;

use crate::Glob;
use crate::alias::{effect_of, known_tools, reaches};
use crate::rule::{Action, Policy, Rule};

/// What kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LintCode {
    /// A rule that no call can meet.
    NeverMatches,
    /// A rule that a later one hides.
    Shadowed,
    /// A rule that lets through what an earlier one refuses or asks about.
    Disarms,
    /// A rule that lets through a part of what an earlier one refuses.
    Weakens,
    /// A key that is not known and has no effect.
    UnknownKey,
    /// A tool name that is known in another spelling.
    UnknownTool,
}

impl LintCode {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverMatches => "never_matches",
            Self::Shadowed => "shadowed",
            Self::Disarms => "disarms",
            Self::Weakens => "weakens",
            Self::UnknownKey => "unknown_key",
            Self::UnknownTool => "unknown_tool",
        }
    }

    /// Whether the policy is most likely not what was meant.
    pub fn is_warning(self) -> bool {
        !matches!(self, Self::Weakens | Self::UnknownKey)
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// Where.
    pub path: String,
    /// What kind.
    pub code: LintCode,
    /// One sentence.
    pub message: String,
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {} ({})", self.path, self.message, self.code.as_str())
    }
}

impl Policy {
    /// Finds what a person should look at again.
    pub fn lint(&self) -> Vec<Lint> {
        let mut lints = Vec::new();
        for path in &self.ignored {
            let message = "the key is not known and has no effect".to_owned();
            lints.push(Lint { path: path.clone(), code: LintCode::UnknownKey, message });
        }
        for (list, names) in
            [("disabledTools", &self.disabled_tools), ("restrictToTools", &self.restrict_to_tools)]
        {
            for (index, name) in names.iter().enumerate() {
                if let Some(message) = misspelled(name) {
                    lints.push(Lint {
                        path: format!("{list}[{index}]"),
                        code: LintCode::UnknownTool,
                        message,
                    });
                }
            }
        }
        for (index, rule) in self.rules.iter().enumerate() {
            self.lint_rule(index, rule, &mut lints);
        }
        lints
    }

    fn lint_rule(&self, index: usize, rule: &Rule, lints: &mut Vec<Lint>) {
        let path = format!("rules[{index}]");
        let mut say = |code, message| lints.push(Lint { path: path.clone(), code, message });
        if rule.tool.is_literal() {
            let tool = rule.tool.as_str();
            if let Some(message) = misspelled(tool) {
                say(LintCode::UnknownTool, message);
            }
            if let Some((_, why)) = self.rules_out(tool) {
                say(LintCode::NeverMatches, format!("it can never decide: {why}"));
            }
            let effect = effect_of(tool);
            let is_known = known_tools().any(|known| known == tool);
            if is_known && rule.effects.is_some_and(|effects| !effects.contains(effect)) {
                say(
                    LintCode::NeverMatches,
                    format!("`{tool}` has the {effect} effect, which the rule does not name"),
                );
            }
            if rule.program.is_some() && is_known && effect != Effect::Process {
                say(LintCode::NeverMatches, format!("`{tool}` runs no program, so `program` never holds"));
            }
        } else if !rule.tool.as_str().contains('*') && !known_tools().any(|tool| reaches(&rule.tool, tool)) {
            say(LintCode::NeverMatches, format!("no known tool has a name like `{}`", rule.tool.as_str()));
        }
        let contradiction = [&rule.pattern, &rule.path]
            .iter()
            .any(|glob| glob.as_ref().is_some_and(|glob| glob.as_str().is_empty()));
        if contradiction && rule.path.as_ref().is_some_and(|glob| glob.as_str().is_empty()) {
            say(LintCode::NeverMatches, "no path is empty".to_owned());
        }
        if rule
            .path
            .as_ref()
            .is_some_and(|glob| glob.as_str().contains("/../") || glob.as_str().contains("//"))
        {
            say(LintCode::NeverMatches, "a resolved path has neither `..` nor doubled slashes".to_owned());
        }
        let later = || self.rules.iter().enumerate().skip(index + 1);
        if let Some((hiding, other)) = later().find(|(_, other)| covers(other, rule)) {
            let by = format!("rules[{}] ({})", hiding, other.summary());
            match (&rule.action, &other.action) {
                (Action::Deny | Action::Ask, other) if other.can_allow() => {
                    let word = if rule.action == Action::Deny { "refuses" } else { "asks about" };
                    say(
                        LintCode::Disarms,
                        format!("all that it {word} is let through by {by}, which comes later"),
                    );
                }
                _ => say(
                    LintCode::Shadowed,
                    format!("it never decides: {by} comes later and matches the same calls"),
                ),
            }
        } else if rule.action == Action::Deny {
            let weak =
                later().find(|(_, other)| matches!(other.action, Action::Allow) && may_meet(other, rule));
            if let Some((weakening, other)) = weak {
                let by = format!("rules[{}] ({})", weakening, other.summary());
                say(LintCode::Weakens, format!("{by} comes later and lets a part of it through"));
            }
        }
    }
}

/// Says whether `later` matches whatever `earlier` matches.
fn covers(later: &Rule, earlier: &Rule) -> bool {
    let tools = later.tool.covers(&earlier.tool)
        || (earlier.tool.is_literal()
            && reaches(&later.tool, earlier.tool.as_str())
            && later.tool.as_str() == "bash");
    let glob = |later: &Option<Glob>, earlier: &Option<Glob>| match (later, earlier) {
        (None, _) => true,
        (Some(later), _) if later.is_universal() => true,
        (Some(_), None) => false,
        (Some(later), Some(earlier)) => later.covers(earlier),
    };
    tools
        && glob(&later.pattern, &earlier.pattern)
        && glob(&later.path, &earlier.path)
        && glob(&later.host, &earlier.host)
        && glob(&later.agent, &earlier.agent)
        && match (&later.program, &earlier.program) {
            (None, _) => true,
            (Some(later), Some(earlier)) => earlier.starts_with(later),
            (Some(_), None) => false,
        }
        && match (later.effects, earlier.effects) {
            (None, _) => true,
            (Some(later), Some(earlier)) => later.intersection(earlier) == earlier,
            (Some(_), None) => false,
        }
}

/// Says whether some call may meet both.
fn may_meet(later: &Rule, earlier: &Rule) -> bool {
    let glob = |later: &Option<Glob>, earlier: &Option<Glob>| match (later, earlier) {
        (Some(later), Some(earlier)) => later.meets(earlier),
        _ => true,
    };
    (later.tool.meets(&earlier.tool))
        && glob(&later.pattern, &earlier.pattern)
        && glob(&later.path, &earlier.path)
        && glob(&later.host, &earlier.host)
        && match (&later.program, &earlier.program) {
            (Some(later), Some(earlier)) => earlier.starts_with(later) || later.starts_with(earlier),
            _ => true,
        }
}

/// Says which known tool a name is probably meant to be.
fn misspelled(name: &str) -> Option<String> {
    if known_tools().any(|known| known == name) {
        return None;
    }
    if name.contains(['*', '?']) {
        return Some(format!(
            "names in this list are taken to the letter: `{name}` stands for no other tool"
        ));
    }
    let near = known_tools().find(|known| {
        known.eq_ignore_ascii_case(name) || (name.len() > 4 && strsim::osa_distance(known, name) <= 1)
    })?;
    Some(format!("there is no tool `{name}` that Alisio knows; `{near}` may be meant"))
}
