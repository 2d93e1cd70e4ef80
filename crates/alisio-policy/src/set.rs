//! The policies of a session: several sources, of which the stricter wins.
//!
//! Some sources may let more run than the session's flags and mode would; the others may only tighten. The one way to
//! lend a policy to a child is [`PolicySet::narrow`], after which nothing of the child's own lets anything through that
//! the parent's would not.

use std::fmt;
use std::sync::Arc;

use crate::judge::{Call, Judgement, Moment};
use crate::rule::Policy;

/// Where a policy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The administrator's file: it binds everybody, and lets nothing through by itself.
    Administrator,
    /// The user's configuration.
    User,
    /// `--policy`.
    Flag,
    /// The agent's own file, in the user's configuration; one that a project brings is of the project.
    Agent,
    /// The project: it may only tighten.
    Project,
}

impl Source {
    /// Whether a policy from there may let more run than flags and mode do.
    pub fn may_loosen(self) -> bool {
        matches!(self, Self::User | Self::Flag | Self::Agent)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Administrator => "administrator",
            Self::User => "user",
            Self::Flag => "flag",
            Self::Agent => "agent",
            Self::Project => "project",
        })
    }
}

/// One policy of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    source: Source,
    policy: Arc<Policy>,
    may_loosen: bool,
}

/// Policies by source. Without any, mode and flags decide alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySet(Vec<Layer>);

/// What the policies of one kind say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whose policy decided.
    pub source: Source,
    /// What it said.
    pub judgement: Judgement,
}

impl PolicySet {
    /// A set with one policy.
    pub fn of(source: Source, policy: Policy) -> Self {
        let mut set = Self::default();
        set.add(source, policy);
        set
    }

    /// Adds a policy.
    pub fn add(&mut self, source: Source, policy: Policy) {
        self.0.push(Layer { source, policy: Arc::new(policy), may_loosen: source.may_loosen() });
    }

    /// Adds the policy of a project of which the user said that it may also loosen.
    pub fn add_trusted_project(&mut self, policy: Policy) {
        self.0.push(Layer { source: Source::Project, policy: Arc::new(policy), may_loosen: true });
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lists the policies with their sources.
    pub fn iter(&self) -> impl Iterator<Item = (Source, &Policy)> {
        self.0.iter().map(|layer| (layer.source, &*layer.policy))
    }

    /// The strictest word of the policies that may loosen; `None` where there are none, and the mode decides.
    pub fn judge_loosening(&self, call: Call<'_>, moment: Moment<'_>) -> Option<Said> {
        self.strictest(true, call, moment)
    }

    /// The strictest word of the policies that may only tighten.
    pub fn judge_tightening(&self, call: Call<'_>, moment: Moment<'_>) -> Option<Said> {
        self.strictest(false, call, moment)
    }

    fn strictest(&self, may_loosen: bool, call: Call<'_>, moment: Moment<'_>) -> Option<Said> {
        let mut worst: Option<Said> = None;
        let mut uses = Vec::new();
        for layer in self.0.iter().filter(|layer| layer.may_loosen == may_loosen) {
            let judgement = layer.policy.judge(call, moment);
            uses.extend(judgement.uses.iter().cloned());
            if worst.as_ref().is_none_or(|worst| judgement.outcome > worst.judgement.outcome) {
                worst = Some(Said { source: layer.source, judgement });
            }
        }
        // What runs uses up the allowance in every policy that limits it.
        worst.map(|mut worst| {
            uses.dedup();
            worst.judgement.uses = uses;
            worst
        })
    }

    /// Says whether every policy offers this tool.
    pub fn offers(&self, tool: &str) -> bool {
        self.0.iter().all(|layer| layer.policy.offers(tool))
    }

    /// Says whether some call of the tool could run by the policies that may loosen; `None` where there are none.
    pub fn could_allow(&self, tool: &str) -> Option<bool> {
        let mut own = self.0.iter().filter(|layer| layer.may_loosen).peekable();
        own.peek()?;
        Some(own.all(|layer| layer.policy.could_allow(tool)))
    }

    /// Returns the policies of a child that asks for `wanted`: the parent's, and what the child adds only tightens.
    #[must_use]
    pub fn narrow(&self, wanted: &Self) -> Self {
        // A child that asks for no policy of its own kind is judged by its mode, which the parent's policy then tightens.
        let keeps = wanted.0.iter().any(|layer| layer.may_loosen);
        let mut layers: Vec<Layer> = self
            .0
            .iter()
            .map(|layer| Layer { may_loosen: layer.may_loosen && keeps, ..layer.clone() })
            .collect();
        for layer in &wanted.0 {
            let is_there =
                layers.iter().any(|other| other.source == layer.source && other.policy == layer.policy);
            if !is_there {
                layers.push(Layer { may_loosen: false, ..layer.clone() });
            }
        }
        Self(layers)
    }
}
