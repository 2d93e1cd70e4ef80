//! The verdict on one request.

use alisio_protocol::{Effect, VerdictSource};

use crate::{Answering, Authority, OutsidePath, Request};

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

/// Decides on one request: the hard denials of the authority, then the directory, then the effect by flag and mode.
///
/// Where the answer would be a question and nobody can answer, the answer is a denial that names the remedy.
pub fn decide(authority: &Authority, request: &Request) -> Decision {
    let effect = request.effect;
    if let Some(denial) = hard_denial(authority, effect) {
        return Decision::Deny(denial);
    }
    if let Some(outside) = request.outside.iter().find(|outside| !is_open(authority, outside)) {
        return outside_directory(authority, outside);
    }
    if matches!(effect, Effect::Read | Effect::Internal) {
        let reason = format!("the {effect} effect needs no permission");
        return Decision::Allow(Basis { source: VerdictSource::Effect, reason });
    }
    if authority.flags.contains(effect) {
        let reason = format!("--allow-{effect} was given");
        return Decision::Allow(Basis { source: VerdictSource::Flag, reason });
    }
    if authority.mode.allows(effect) {
        let reason = format!("the permission mode allows the {effect} effect");
        return Decision::Allow(Basis { source: VerdictSource::Mode, reason });
    }
    match authority.answering {
        Answering::Person => Decision::Ask(Ask::Effect(effect)),
        Answering::Nobody => Decision::Deny(Denial {
            basis: Basis {
                source: VerdictSource::NobodyToAsk,
                reason: format!("the {effect} effect needs approval and nobody can answer in this run"),
            },
            remedy: format!("run again with --allow-{effect}"),
            answerable: true,
        }),
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

fn is_open(authority: &Authority, outside: &OutsidePath) -> bool {
    !authority.read_only && authority.opened.iter().any(|directory| outside.path.starts_with(directory))
}

fn outside_directory(authority: &Authority, outside: &OutsidePath) -> Decision {
    let path = outside.path.display();
    if authority.read_only {
        let reason = format!("`{path}` is outside the workspace, and --read-only opens no other directory");
        let basis = Basis { source: VerdictSource::ReadOnly, reason };
        return Decision::Deny(Denial { basis, remedy: String::new(), answerable: false });
    }
    match authority.answering {
        Answering::Person => Decision::Ask(Ask::Directory(outside.clone())),
        Answering::Nobody => {
            let directory = outside.directory.display();
            Decision::Deny(Denial {
                basis: Basis {
                    source: VerdictSource::Directory,
                    reason: format!("`{path}` is outside the workspace and every declared directory"),
                },
                remedy: format!(
                    "run again with --add-dir {directory}, or add \"{directory}\" to `additionalDirectories` in the \
                     configuration"
                ),
                answerable: true,
            })
        }
    }
}
