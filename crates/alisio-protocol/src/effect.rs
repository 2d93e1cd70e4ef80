//! What a tool does to the world.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The effect that a tool declares; it decides whether a call runs, asks or is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// No side effects.
    Read,
    /// Modifies files of the workspace.
    Write,
    /// Runs arbitrary processes.
    Process,
    /// Reaches the network or somebody else's program.
    External,
    /// Writes only state that Alisio owns; honoured for built-in tools alone.
    Internal,
}

impl Effect {
    /// All effects, in the order of the documentation.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Process, Self::External, Self::Internal];

    /// The wire word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Process => "process",
            Self::External => "external",
            Self::Internal => "internal",
        }
    }

    /// Whether a call can change something that outlives it, so that it must never be repeated by itself.
    pub fn leaves_traces(self) -> bool {
        matches!(self, Self::Write | Self::Process | Self::External)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EffectSet(u8);

impl EffectSet {
    /// The set without members.
    pub const EMPTY: Self = Self(0);

    /// Returns the set with `effect` added.
    #[must_use]
    pub fn with(self, effect: Effect) -> Self {
        Self(self.0 | 1 << effect as u8)
    }

    /// Says whether `effect` is a member.
    pub fn contains(self, effect: Effect) -> bool {
        self.0 & (1 << effect as u8) != 0
    }

    /// Returns what both sets hold.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Lists the members in the order of [`Effect::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Effect> {
        Effect::ALL.into_iter().filter(move |effect| self.contains(*effect))
    }
}

impl FromIterator<Effect> for EffectSet {
    fn from_iter<I: IntoIterator<Item = Effect>>(effects: I) -> Self {
        effects.into_iter().fold(Self::EMPTY, Self::with)
    }
}
