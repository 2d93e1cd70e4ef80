//! What a session may do at most.

use std::path::PathBuf;

use alisio_protocol::{Effect, EffectSet};

use crate::PolicySet;

/// Which effects run without asking where no rule speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Writes, processes and external tools ask.
    #[default]
    Ask,
    /// Writes run; processes and external tools ask.
    Auto,
    /// Everything runs.
    Full,
}

impl Mode {
    /// The one table from mode to what runs unasked.
    pub fn allows(self, effect: Effect) -> bool {
        match (self, effect) {
            (_, Effect::Read | Effect::Internal) => true,
            (Self::Ask, _) | (Self::Auto, Effect::Process | Effect::External) => false,
            (Self::Auto, Effect::Write) | (Self::Full, _) => true,
        }
    }
}

/// Whether somebody can answer a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answering {
    /// A person is attached.
    Person,
    /// Nobody is: what would be asked is refused.
    Nobody,
}

/// What a session may do at most. Only [`Authority::narrow`] makes a child's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// `--read-only`: nothing but reads and internal effects, no path outside the workspace.
    pub read_only: bool,
    /// Effects allowed by `--allow-*` flags.
    pub flags: EffectSet,
    /// The permission mode.
    pub mode: Mode,
    /// Effects that the session may not go beyond whatever else is said.
    pub ceiling: EffectSet,
    /// Whether somebody can answer.
    pub answering: Answering,
    /// Directories outside the workspace that a person opened for this session.
    pub opened: Vec<PathBuf>,
    /// Permission policies; without any, mode and flags decide alone.
    pub policies: PolicySet,
}

impl Authority {
    /// Makes an authority without any flag: reads only, and nobody to ask.
    pub fn headless() -> Self {
        Self {
            read_only: false,
            flags: EffectSet::EMPTY,
            mode: Mode::Ask,
            ceiling: Effect::ALL.into_iter().collect(),
            answering: Answering::Nobody,
            opened: Vec::new(),
            policies: PolicySet::default(),
        }
    }

    /// Returns the rights of a child that asks for `wanted`: never more than its parent's.
    #[must_use]
    pub fn narrow(&self, wanted: &Self) -> Self {
        Self {
            read_only: self.read_only || wanted.read_only,
            flags: self.flags.intersection(wanted.flags),
            mode: if (self.mode as u8) < (wanted.mode as u8) { self.mode } else { wanted.mode },
            ceiling: self.ceiling.intersection(wanted.ceiling),
            answering: match (self.answering, wanted.answering) {
                (Answering::Person, Answering::Person) => Answering::Person,
                _ => Answering::Nobody,
            },
            opened: wanted.opened.iter().filter(|path| self.opened.contains(path)).cloned().collect(),
            policies: self.policies.narrow(&wanted.policies),
        }
    }
}
