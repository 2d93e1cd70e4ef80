//! What one policy says of one call.
//!
//! The last rule that matches wins. A command is judged part by part and the strictest part wins; a rule that lets through
//! has to hold for every part, a rule that refuses or asks may also match the text as a whole. What could not be understood
//! is let through only by rules that ask for nothing but the tool, or that spell the whole text out.
//!
//! It knows nothing of flags, modes, roots and other policies: those meet it in [`decide`](crate::decide).

use std::borrow::Cow;

use alisio_protocol::{Class, Effect, VerdictSource};

use crate::Glob;
use crate::alias::{Names, TargetKind, is_name_of, target_kind};
use crate::glob::Pairs;
use crate::rule::{Action, Policy, Rule, RuleId};
use crate::shape;
use crate::subject::Subject;
use crate::unit::{Fit, Unit, units};
use crate::uses::{Uses, span, time_left};

/// What is to become of a call; the later, the stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask,
    /// It is refused.
    Deny,
}

impl Outcome {
    /// The word: `allow`, `ask`, `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A call as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// The tool, under the name that was called.
    pub tool: &'c str,
    /// Its effect.
    pub effect: Effect,
    /// What rules see of it.
    pub subject: &'c Subject,
}

/// The moment of a judgement: the time and what was used before.
#[derive(Clone, Copy)]
pub struct Moment<'m> {
    /// Now, in milliseconds from the point that the uses count from.
    pub now: i64,
    /// What was used before.
    pub uses: &'m dyn Uses,
    /// Whether a sandbox at this rung or a better one can be had.
    pub has_rung: &'m dyn Fn(Option<&str>) -> bool,
}

impl Moment<'static> {
    /// A moment of which nothing is known: what is limited asks, and there is no sandbox.
    pub const UNKNOWN: Self = Self { now: 0, uses: &crate::uses::UnknownUses, has_rung: &no_rung };
}

/// Says that there is no sandbox.
pub fn no_rung(_: Option<&str>) -> bool {
    false
}

/// What a policy says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What is to become of it.
    pub outcome: Outcome,
    /// What decided.
    pub source: VerdictSource,
    /// The rule that decided, counted from 0.
    pub rule: Option<usize>,
    /// The part of the command that decided, counted from 0; `None` for the call as a whole.
    pub part: Option<usize>,
    /// One sentence, lower case, without a full stop.
    pub reason: String,
    /// What was said of each part of a command.
    pub parts: Vec<PartJudgement>,
    /// Rules whose allowance the call uses up if it runs.
    pub uses: Vec<RuleId>,
}

/// What a policy says of one part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartJudgement {
    /// Its text.
    pub text: String,
    /// What is to become of it.
    pub outcome: Outcome,
    /// The rule that decided.
    pub rule: Option<usize>,
    /// One sentence.
    pub reason: String,
}

/// What was found for one unit.
struct Found {
    outcome: Outcome,
    source: VerdictSource,
    rule: Option<usize>,
    reason: String,
    uses: Vec<RuleId>,
}

impl Policy {
    /// Judges a call.
    pub fn judge(&self, call: Call<'_>, moment: Moment<'_>) -> Judgement {
        if let Some((source, reason)) = self.rules_out(call.tool) {
            return Judgement {
                outcome: Outcome::Deny,
                source,
                rule: None,
                part: None,
                reason,
                parts: Vec::new(),
                uses: Vec::new(),
            };
        }
        let units = units(call.tool, call.subject);
        let bench = Bench::new(self, call, moment, &units);
        let mut worst: Option<(Option<usize>, Found)> = None;
        let (mut parts, mut uses) = (Vec::new(), Vec::new());
        for unit in &units {
            let Some(found) = bench.judge(unit) else { continue };
            for id in &found.uses {
                if !uses.contains(id) {
                    uses.push(id.clone());
                }
            }
            if unit.index.is_some() {
                parts.push(PartJudgement {
                    text: unit.text.to_owned(),
                    outcome: found.outcome,
                    rule: found.rule,
                    reason: found.reason.clone(),
                });
            }
            if worst.as_ref().is_none_or(|(_, worst)| found.outcome > worst.outcome) {
                worst = Some((unit.index, found));
            }
        }
        let (part, found) = worst.unwrap_or_else(|| (None, bench.by_default(None)));
        let Found { outcome, source, rule, reason, .. } = found;
        Judgement { outcome, source, rule, part, reason, parts, uses }
    }

    /// Says why no call of this tool runs, whatever the rules say; `None` when the lists leave it alone.
    pub fn rules_out(&self, tool: &str) -> Option<(VerdictSource, String)> {
        if let Some(name) = self.disabled_tools.iter().find(|name| is_name_of(name, tool)) {
            let alias = if name == tool { String::new() } else { format!(" (as `{name}`)") };
            return Some((VerdictSource::Disabled, format!("the tool `{tool}` is in disabledTools{alias}")));
        }
        let is_shell = matches!(
            target_kind(tool),
            TargetKind::Command | TargetKind::Program | TargetKind::OpaqueCommand
        );
        let is_free = self.restrict_to_tools.is_empty()
            || self.restrict_to_tools.iter().any(|name| is_name_of(name, tool))
            || (self.triages_shell && is_shell);
        (!is_free).then(|| {
            let allowed = self.restrict_to_tools.join(", ");
            (VerdictSource::Restricted, format!("the tool `{tool}` is not in restrictToTools ({allowed})"))
        })
    }

    /// Says whether the model should be offered this tool.
    pub fn offers(&self, tool: &str) -> bool {
        self.rules_out(tool).is_none()
            && (self.restrict_to_tools.is_empty()
                || self.restrict_to_tools.iter().any(|name| is_name_of(name, tool)))
    }

    /// Says whether some call of this tool could run unasked.
    pub fn could_allow(&self, tool: &str) -> bool {
        let names = Names::of(tool);
        self.rules_out(tool).is_none()
            && (self.default.can_allow()
                || self.rules.iter().any(|rule| rule.action.can_allow() && names.are_reached_by(&rule.tool)))
    }
}

/// One call on the bench: the rules that may speak for it, the last first.
struct Bench<'b> {
    policy: &'b Policy,
    call: Call<'b>,
    moment: Moment<'b>,
    candidates: Vec<Candidate<'b>>,
    redirects: bool,
    n_parts: usize,
}

struct Candidate<'b> {
    index: usize,
    rule: &'b Rule,
    /// It lets the whole text through, spelled out or piece by piece.
    covers: bool,
    /// It refuses or asks, and its pieces match neighbouring parts.
    meets_pieces: bool,
}

impl<'b> Bench<'b> {
    fn new(policy: &'b Policy, call: Call<'b>, moment: Moment<'b>, units: &[Unit<'_>]) -> Self {
        let mut pairs = Pairs::none();
        units.iter().for_each(|unit| unit.add_to(&mut pairs));
        let has_holes = units.iter().any(Unit::has_holes);
        let names = Names::of(call.tool);
        let is_command = matches!(target_kind(call.tool), TargetKind::Command | TargetKind::Program);
        let target = call.subject.target.as_str();
        let parts = call.subject.facts.as_ref().map_or(&[][..], |facts| &facts.parts);
        let mut candidates = Vec::new();
        for (index, rule) in policy.rules.iter().enumerate().rev() {
            if !names.are_reached_by(&rule.tool)
                || rule.effects.is_some_and(|effects| !effects.contains(call.effect))
                || rule.agent.as_ref().is_some_and(|agent| !agent.matches(&call.subject.agent))
            {
                continue;
            }
            let (mut covers, mut meets_pieces) = (false, false);
            if let Some(pattern) = &rule.pattern {
                let has_operator = is_command && pattern.has_operator();
                let may_guess = has_holes && !rule.action.can_allow();
                if !has_operator && !may_guess && !pattern.may_match(&pairs) {
                    continue;
                }
                if is_command && rule.action.can_allow() {
                    covers = (pattern.is_literal() && pattern.as_str() == target)
                        || (has_operator
                            && parts.len() > 1
                            && pattern.matches(target)
                            && pieces_fit(pattern, parts));
                } else if has_operator {
                    meets_pieces = pieces_meet(pattern, parts, target);
                }
            }
            candidates.push(Candidate { index, rule, covers, meets_pieces });
            if rule.is_unconditional() {
                // Nothing before it can speak.
                break;
            }
        }
        let redirects = is_command
            && call.subject.argv.is_none()
            && target.contains('>')
            && shape::redirects_to_file(target);
        Self { policy, call, moment, candidates, redirects, n_parts: parts.len() }
    }

    /// Judges one unit; `None` where it has nothing to say.
    fn judge(&self, unit: &Unit<'_>) -> Option<Found> {
        let mut suspect: Option<&Candidate<'_>> = None;
        let mut passed_over: Option<(&Candidate<'_>, &'static str)> = None;
        let (mut found, mut counted) = (None, Vec::new());
        for candidate in &self.candidates {
            let mut fit = self.fit(candidate, unit);
            if fit >= Fit::Partly
                && candidate.rule.action.can_allow()
                && !candidate.covers
                && let Some(why) = self.too_wide(candidate.rule, unit)
            {
                passed_over = passed_over.or(Some((candidate, why)));
                fit = fit.min(Fit::Partly);
            }
            if fit == Fit::Could && !candidate.rule.action.can_allow() {
                suspect = suspect.or(Some(candidate));
            }
            if fit >= Fit::Partly {
                found = self.act(candidate, unit, fit);
                if found.is_some() {
                    break;
                }
                if matches!(candidate.rule.action, Action::RateLimit(_)) {
                    // It does not let this through, but what an earlier rule lets through counts for it.
                    counted.push(candidate.rule.id.clone());
                }
            }
        }
        if unit.strict_only {
            // The parts speak for themselves; only a pattern that names the whole counts here.
            return found.filter(|found| {
                found.outcome > Outcome::Allow
                    && found.rule.is_some_and(|rule| {
                        let rule = &self.policy.rules[rule];
                        !rule.is_unconditional() && !matches!(rule.action, Action::Classify)
                    })
            });
        }
        let mut found = found.unwrap_or_else(|| self.by_default(Some((unit, passed_over))));
        found.uses.extend(counted);
        Some(match suspect {
            Some(suspect) if found.outcome == Outcome::Allow => Found {
                outcome: Outcome::Ask,
                source: VerdictSource::Rule,
                rule: Some(suspect.index),
                reason: format!(
                    "nobody can tell before it runs whether `{}` is what rules[{}] is about ({})",
                    shown(unit.text),
                    suspect.index,
                    suspect.rule.summary()
                ),
                uses: Vec::new(),
            },
            _ => found,
        })
    }

    fn fit(&self, candidate: &Candidate<'_>, unit: &Unit<'_>) -> Fit {
        let rule = candidate.rule;
        let mut fit = match &rule.pattern {
            None => Fit::Fully,
            Some(_) if candidate.covers => Fit::Fully,
            Some(pattern) => {
                let fit = unit.fit_pattern(pattern);
                let met = candidate.meets_pieces && unit.index.is_none();
                if met { fit.max(Fit::Partly) } else { fit }
            }
        };
        if fit == Fit::No {
            return fit;
        }
        if let Some(path) = &rule.path {
            fit = fit.min(unit.fit_path(path));
        }
        if let Some(host) = &rule.host {
            fit = fit.min(unit.fit_host(host));
        }
        if let Some(program) = &rule.program {
            fit = fit.min(unit.fit_program(program));
        }
        fit
    }

    /// Says why a rule that lets through does not reach this unit although its conditions hold.
    fn too_wide(&self, rule: &Rule, unit: &Unit<'_>) -> Option<&'static str> {
        if rule.is_unconditional() {
            return None;
        }
        if unit.is_unclear {
            return Some("the command could not be understood as a whole");
        }
        let names_redirection = rule.pattern.as_ref().is_some_and(|pattern| pattern.as_str().contains('>'));
        if self.redirects && !names_redirection {
            return Some("the command writes a file by redirection, which the rule does not name");
        }
        None
    }

    /// Carries out the action of a rule; `None` when the rule is passed over.
    fn act(&self, candidate: &Candidate<'_>, unit: &Unit<'_>, fit: Fit) -> Option<Found> {
        let rule = candidate.rule;
        let make = |outcome, source, reason, uses| {
            Some(Found { outcome, source, rule: Some(candidate.index), reason, uses })
        };
        let by_rule = VerdictSource::Rule;
        match &rule.action {
            Action::Deny => make(Outcome::Deny, by_rule, self.reason(candidate, unit), Vec::new()),
            Action::Ask => make(Outcome::Ask, by_rule, self.reason(candidate, unit), Vec::new()),
            Action::Allow if fit == Fit::Fully => {
                make(Outcome::Allow, by_rule, self.reason(candidate, unit), Vec::new())
            }
            Action::Sandbox { rung } => {
                let outcome = match fit {
                    Fit::Fully if (self.moment.has_rung)(rung.as_deref()) => Outcome::Allow,
                    _ => Outcome::Ask,
                };
                let mut reason = self.reason(candidate, unit);
                if outcome == Outcome::Ask {
                    let rung = rung.as_ref().map_or_else(String::new, |rung| format!(" at rung `{rung}`"));
                    reason.push_str(&format!(", and there is no sandbox{rung} for it"));
                }
                make(outcome, by_rule, reason, Vec::new())
            }
            Action::Allow => None,
            Action::Classify => {
                let (outcome, why) = self.classify(unit);
                let outcome = if fit == Fit::Fully { outcome } else { Outcome::Ask };
                make(outcome, by_rule, format!("rules[{}] classifies: {why}", candidate.index), Vec::new())
            }
            Action::RateLimit(limit) => {
                let window = span(limit.window_ms);
                let calls = if limit.count == 1 { "call" } else { "calls" };
                let name = format!("rules[{}] allows {} {calls} in {window}", candidate.index, limit.count);
                let Some(times) = self.moment.uses.times(&rule.id) else {
                    let reason = format!("{name}, and how many there were is not known");
                    return make(Outcome::Ask, VerdictSource::RateLimit, reason, Vec::new());
                };
                match time_left(*limit, &times, self.moment.now) {
                    Some(left) => {
                        let more =
                            rule.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
                        let reason = format!(
                            "{name}, and they are used up: the next may run in {}; wait, or go about it another way{more}",
                            span(left)
                        );
                        make(Outcome::Deny, VerdictSource::RateLimit, reason, Vec::new())
                    }
                    None if fit == Fit::Fully => {
                        make(Outcome::Allow, VerdictSource::RateLimit, name, vec![rule.id.clone()])
                    }
                    None => None,
                }
            }
        }
    }

    /// Says what `classify` makes of a unit.
    fn classify(&self, unit: &Unit<'_>) -> (Outcome, Cow<'_, str>) {
        match target_kind(self.call.tool) {
            TargetKind::Command | TargetKind::Program => {}
            TargetKind::OpaqueCommand => {
                return (Outcome::Ask, format!("nothing here understands `{}`", self.call.tool).into());
            }
            TargetKind::Path | TargetKind::Text | TargetKind::Json => {
                return (Outcome::Ask, format!("`{}` runs no command, so it asks", self.call.tool).into());
            }
        }
        let Some(facts) = &self.call.subject.facts else {
            return (Outcome::Ask, "nobody looked at the command".into());
        };
        match unit.part {
            _ if unit.is_unclear => (Outcome::Ask, Cow::Owned(facts.reason.clone())),
            Some(part) if part.class == Class::Read => (Outcome::Allow, Cow::Owned(part.why.clone())),
            Some(part) => (Outcome::Ask, Cow::Owned(part.why.clone())),
            None if facts.class == Class::Read => (Outcome::Allow, Cow::Owned(facts.reason.clone())),
            None => (Outcome::Ask, Cow::Owned(facts.reason.clone())),
        }
    }

    fn reason(&self, candidate: &Candidate<'_>, unit: &Unit<'_>) -> String {
        let number = candidate.index;
        match &candidate.rule.reason {
            Some(reason) => format!("{reason} (rules[{number}], on `{}`)", shown(unit.text)),
            None => format!("rules[{number}] ({}) matches `{}`", candidate.rule.summary(), shown(unit.text)),
        }
    }

    fn by_default(&self, unit: Option<(&Unit<'_>, Option<(&Candidate<'_>, &'static str)>)>) -> Found {
        let passed_over = unit.and_then(|(_, passed_over)| passed_over);
        let why_not = match (unit, passed_over) {
            (_, Some((candidate, why))) => format!("rules[{}] does not hold, since {why}", candidate.index),
            (Some((unit, _)), None) if unit.index.is_some() && self.n_parts > 1 => {
                format!("no rule is about the part `{}`", shown(unit.text))
            }
            _ => "no rule is about it".to_owned(),
        };
        let found = |outcome, more: &str| Found {
            outcome,
            source: VerdictSource::PolicyDefault,
            rule: None,
            reason: format!("{why_not}, and the default is {}{more}", self.policy.default),
            uses: Vec::new(),
        };
        match &self.policy.default {
            Action::Allow => found(Outcome::Allow, ""),
            Action::Ask => found(Outcome::Ask, ""),
            Action::Deny => found(Outcome::Deny, ""),
            Action::Sandbox { rung } if (self.moment.has_rung)(rung.as_deref()) => found(Outcome::Allow, ""),
            Action::Sandbox { .. } => found(Outcome::Ask, ", but there is no sandbox here"),
            Action::Classify => match unit {
                Some((unit, _)) => {
                    let (outcome, why) = self.classify(unit);
                    found(outcome, &format!(": {why}"))
                }
                None => found(Outcome::Ask, ""),
            },
            // Never made by the reader of policies.
            Action::RateLimit(_) => found(Outcome::Deny, ""),
        }
    }
}

/// Says whether the pieces of a pattern match the parts of a command one to one.
fn pieces_fit(pattern: &Glob, parts: &[alisio_protocol::Part]) -> bool {
    let pieces = shape::at_operators(pattern.as_str());
    pieces.len() == parts.len()
        && pieces.iter().zip(parts).all(|(piece, part)| Glob::new(piece).matches(&part.text))
}

/// Says whether the pieces of a pattern match parts that stand side by side, where the text has the same operators.
fn pieces_meet(pattern: &Glob, parts: &[alisio_protocol::Part], target: &str) -> bool {
    let operators = ['|', ';', '&', '\n'];
    if !operators.iter().all(|operator| !pattern.as_str().contains(*operator) || target.contains(*operator)) {
        return false;
    }
    let pieces: Vec<Glob> = shape::at_operators(pattern.as_str()).into_iter().map(Glob::new).collect();
    if pieces.len() < 2 || pieces.len() > parts.len() {
        return false;
    }
    parts.windows(pieces.len()).any(|window| {
        pieces.iter().zip(window).all(|(piece, part)| {
            piece.matches(&part.text) || part.argv.as_ref().is_some_and(|argv| piece.matches(&argv.join(" ")))
        })
    })
}

/// The beginning of a text, for a sentence.
fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(120) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
