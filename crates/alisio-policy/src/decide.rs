//! The verdict on one request: the one place where hard limits, rules, modes and flags meet.

use alisio_protocol::{Effect, VerdictSource};

use crate::judge::{Call, Judgement, Moment, Outcome};
use crate::set::Said;
use crate::{Answering, Authority, OutsidePath, Request, RuleId, Source};

/// A plain verdict; it acts on nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It may run.
    Allow(Basis),
    /// A person must say.
    Ask(Ask),
    /// It may not run.
    Deny(Denial),
}

/// What decided, and why, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// What decided.
    pub source: VerdictSource,
    /// One sentence, lower case, without a full stop.
    pub reason: String,
}

/// A question for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// May the tools touch this directory?
    Directory(OutsidePath),
    /// May the call run?
    Effect(Effect),
}

/// A refusal in words that the model can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// What decided, and why.
    pub basis: Basis,
    /// What a person could do about it; empty where nothing can be done.
    pub remedy: String,
    /// Whether a person could have allowed it, had one been there. Such a refusal is what exit code 4 tells of.
    pub answerable: bool,
}

impl Denial {
    /// Says the refusal to the model.
    pub fn message(&self) -> String {
        let mut text = format!("refused: {}", self.basis.reason);
        if !self.remedy.is_empty() {
            text.push_str("\nremedy for the person running Alisio: ");
            text.push_str(&self.remedy);
        }
        text
    }
}

/// A verdict with everything that led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    /// The verdict.
    pub decision: Decision,
    /// What decided, and why; also of a question.
    pub basis: Basis,
    /// Whose policy decided, and what it said in full; `None` where none had a word in it.
    pub said: Option<Said>,
    /// Rules whose allowance the call uses up if it runs.
    pub uses: Vec<RuleId>,
}

/// Decides on one request at a moment of which nothing is known: see [`rule_on`].
pub fn decide(authority: &Authority, request: &Request) -> Decision {
    rule_on(authority, request, Moment::UNKNOWN).decision
}

/// Decides on one request.
///
/// In this order: what nothing lifts (read-only, the ceiling, tools that a policy leaves out); the directory; what the
/// user's policies say, or the mode where there are none; what other policies tighten; flags, which turn a question into
/// a yes and touch no refusal. Where the answer would be a question and nobody can answer, it is a refusal that names
/// the remedy.
pub fn rule_on(authority: &Authority, request: &Request, moment: Moment<'_>) -> Ruling {
    let effect = request.effect;
    if let Some(denial) = hard_denial(authority, effect).or_else(|| left_out(authority, &request.tool)) {
        return Ruling::deny(denial, None);
    }
    if let Some(outside) = request.outside.iter().find(|outside| !is_open(authority, outside)) {
        return outside_directory(authority, outside);
    }
    let call = Call { tool: &request.tool, effect, subject: &request.subject };
    let own = authority.policies.judge_loosening(call, moment);
    let others = authority.policies.judge_tightening(call, moment);
    let uses: Vec<RuleId> =
        own.iter().chain(&others).flat_map(|said| said.judgement.uses.iter().cloned()).collect();
    let mut verdict = match own {
        Some(said) => Verdict::of(said),
        None => by_mode(authority, effect),
    };
    if let Some(said) = others.filter(|said| said.judgement.outcome > verdict.outcome) {
        verdict = Verdict::of(said);
    }
    let Verdict { outcome, basis, said } = verdict;
    match outcome {
        Outcome::Allow => Ruling { decision: Decision::Allow(basis.clone()), basis, said, uses },
        Outcome::Deny => {
            let denial = Denial { basis, remedy: String::new(), answerable: false };
            Ruling::deny(denial, said)
        }
        Outcome::Ask if authority.flags.contains(effect) => {
            let basis = Basis { source: VerdictSource::Flag, reason: format!("--allow-{effect} was given") };
            Ruling { decision: Decision::Allow(basis.clone()), basis, said, uses }
        }
        Outcome::Ask => match authority.answering {
            Answering::Person => Ruling { decision: Decision::Ask(Ask::Effect(effect)), basis, said, uses },
            Answering::Nobody => Ruling::deny(nobody_to_ask(effect, &basis, said.is_some()), said),
        },
    }
}

/// Says whether a tool with this effect is worth offering to the model: it could run, or somebody could be asked.
pub fn offers(authority: &Authority, effect: Effect) -> bool {
    hard_denial(authority, effect).is_none()
        && (matches!(effect, Effect::Read | Effect::Internal)
            || authority.flags.contains(effect)
            || authority.mode.allows(effect)
            || authority.answering == Answering::Person)
}

/// Says whether this tool is worth offering to the model: no policy leaves it out, and some call of it could run, or
/// somebody could be asked.
pub fn offers_tool(authority: &Authority, tool: &str, effect: Effect) -> bool {
    if hard_denial(authority, effect).is_some() || !authority.policies.offers(tool) {
        return false;
    }
    match authority.policies.could_allow(tool) {
        Some(could) => could || authority.flags.contains(effect) || authority.answering == Answering::Person,
        None => offers(authority, effect),
    }
}

/// A word that is not yet final.
struct Verdict {
    outcome: Outcome,
    basis: Basis,
    said: Option<Said>,
}

impl Verdict {
    fn of(said: Said) -> Self {
        let Judgement { outcome, source, reason, .. } = &said.judgement;
        let reason = match said.source {
            Source::User | Source::Flag => reason.clone(),
            other => format!("{reason} (policy of the {other})"),
        };
        Self { outcome: *outcome, basis: Basis { source: *source, reason }, said: Some(said) }
    }
}

impl Ruling {
    fn deny(denial: Denial, said: Option<Said>) -> Self {
        Self { basis: denial.basis.clone(), decision: Decision::Deny(denial), said, uses: Vec::new() }
    }
}

/// What holds where no policy is set.
fn by_mode(authority: &Authority, effect: Effect) -> Verdict {
    let make = |outcome, source, reason| Verdict { outcome, basis: Basis { source, reason }, said: None };
    if matches!(effect, Effect::Read | Effect::Internal) {
        return make(
            Outcome::Allow,
            VerdictSource::Effect,
            format!("the {effect} effect needs no permission"),
        );
    }
    if authority.flags.contains(effect) {
        return make(Outcome::Allow, VerdictSource::Flag, format!("--allow-{effect} was given"));
    }
    if authority.mode.allows(effect) {
        let reason = format!("the permission mode allows the {effect} effect");
        return make(Outcome::Allow, VerdictSource::Mode, reason);
    }
    make(Outcome::Ask, VerdictSource::Mode, format!("the {effect} effect needs approval"))
}

fn nobody_to_ask(effect: Effect, basis: &Basis, by_policy: bool) -> Denial {
    let source = VerdictSource::NobodyToAsk;
    if !by_policy {
        return Denial {
            basis: Basis {
                source,
                reason: format!("the {effect} effect needs approval and nobody can answer in this run"),
            },
            remedy: format!("run again with --allow-{effect}"),
            answerable: true,
        };
    }
    let remedy = if effect.leaves_traces() {
        format!("allow it in the permission policy, or run again with --allow-{effect}")
    } else {
        "allow it in the permission policy, or run it where a person can answer".to_owned()
    };
    let reason = format!("{}, and nobody can answer in this run", basis.reason);
    Denial { basis: Basis { source, reason }, remedy, answerable: true }
}

fn hard_denial(authority: &Authority, effect: Effect) -> Option<Denial> {
    let (source, reason) = if authority.read_only && effect.leaves_traces() {
        (VerdictSource::ReadOnly, format!("--read-only rules out the {effect} effect"))
    } else if !authority.ceiling.contains(effect) {
        (VerdictSource::Ceiling, format!("the run that started this one does not have the {effect} effect"))
    } else {
        return None;
    };
    Some(Denial { basis: Basis { source, reason }, remedy: String::new(), answerable: false })
}

/// A tool that the lists of some policy leave out.
fn left_out(authority: &Authority, tool: &str) -> Option<Denial> {
    let (source, reason) = authority.policies.iter().find_map(|(_, policy)| policy.rules_out(tool))?;
    Some(Denial { basis: Basis { source, reason }, remedy: String::new(), answerable: false })
}

fn is_open(authority: &Authority, outside: &OutsidePath) -> bool {
    !authority.read_only && authority.opened.iter().any(|directory| outside.path.starts_with(directory))
}

fn outside_directory(authority: &Authority, outside: &OutsidePath) -> Ruling {
    let path = outside.path.display();
    if authority.read_only {
        let reason = format!("`{path}` is outside the workspace, and --read-only opens no other directory");
        let basis = Basis { source: VerdictSource::ReadOnly, reason };
        return Ruling::deny(Denial { basis, remedy: String::new(), answerable: false }, None);
    }
    let reason = format!("`{path}` is outside the workspace and every declared directory");
    let basis = Basis { source: VerdictSource::Directory, reason };
    match authority.answering {
        Answering::Person => {
            let decision = Decision::Ask(Ask::Directory(outside.clone()));
            Ruling { decision, basis, said: None, uses: Vec::new() }
        }
        Answering::Nobody => {
            let directory = outside.directory.display();
            let remedy = format!(
                "run again with --add-dir {directory}, or add \"{directory}\" to `additionalDirectories` in the \
                 configuration"
            );
            Ruling::deny(Denial { basis, remedy, answerable: true }, None)
        }
    }
}
