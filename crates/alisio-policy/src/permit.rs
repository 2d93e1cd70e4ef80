//! Proof that a call was allowed and that the verdict is on record.

use std::path::Path;

use alisio_protocol::{Effect, Sha256, VerdictWord};
use thiserror::Error;

use crate::{Basis, Decision, Denial, Request, Scope};

/// A verdict that is about to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What was decided on.
    pub request: Request,
    /// Whether it may run.
    pub word: VerdictWord,
    /// What decided, and why.
    pub basis: Basis,
}

/// Writes a verdict where nobody can edit it quietly. The write is durable as far as the effect demands when this
/// returns: synced before a write, process or external effect.
pub trait LedgerSink {
    /// Records one verdict.
    ///
    /// # Errors
    /// When it could not be written; nothing may run then.
    fn record(&self, verdict: &Verdict) -> Result<(), RecordError>;
}

/// Says why a verdict could not be written.
#[derive(Debug, Error)]
#[error("the ledger could not be written: {0}")]
pub struct RecordError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Turns recorded verdicts into permits. The binary makes one and hands it to the engine; nothing else has one.
#[derive(Debug)]
pub struct Issuer(());

impl Issuer {
    /// Makes the issuer. Called once, where the program is put together.
    #[expect(clippy::new_without_default, reason = "an issuer must not come into being by derivation")]
    pub fn new() -> Self {
        Self(())
    }

    /// Records what was decided and returns the permit, or the denial that was recorded.
    ///
    /// # Errors
    /// [`RecordError`] when the ledger could not be written: the call must not run.
    pub fn record(
        &self,
        request: Request,
        decision: Result<Basis, Denial>,
        ledger: &dyn LedgerSink,
    ) -> Result<Result<Permit, Denial>, RecordError> {
        let (word, basis) = match &decision {
            Ok(basis) => (VerdictWord::Allow, basis.clone()),
            Err(denial) => (VerdictWord::Deny, denial.basis.clone()),
        };
        let verdict = Verdict { request, word, basis };
        ledger.record(&verdict)?;
        Ok(decision.map(|_| Permit {
            effect: verdict.request.effect,
            scope: verdict.request.scope,
            digest: verdict.request.digest,
        }))
    }
}

impl Decision {
    /// Splits a decision that needs no question into what [`Issuer::record`] takes.
    ///
    /// # Errors
    /// Gives the question back when there is one.
    pub fn settled(self) -> Result<Result<Basis, Denial>, crate::Ask> {
        match self {
            Self::Allow(basis) => Ok(Ok(basis)),
            Self::Deny(denial) => Ok(Err(denial)),
            Self::Ask(ask) => Err(ask),
        }
    }
}

/// Proof for one call. It can be made only by [`Issuer::record`], and it is used up by the call.
#[derive(Debug)]
pub struct Permit {
    effect: Effect,
    scope: Scope,
    digest: Sha256,
}

/// Says that an act is not what the permit covers.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PermitError {
    /// What would run is not what was shown.
    #[error("the call changed after it was decided on; it was not run")]
    Changed,
    /// The act needs another effect.
    #[error("the permit covers the {has} effect, not {needs}")]
    Effect {
        /// What the permit covers.
        has: Effect,
        /// What the act needs.
        needs: Effect,
    },
    /// The path or directory is not in the permit.
    #[error("the permit does not cover `{0}`")]
    Scope(std::path::PathBuf),
}

impl Permit {
    /// The effect that it covers.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Checks that `digest` names what was decided on.
    ///
    /// # Errors
    /// [`PermitError::Changed`].
    pub fn check_digest(&self, digest: &Sha256) -> Result<(), PermitError> {
        if self.digest == *digest { Ok(()) } else { Err(PermitError::Changed) }
    }

    /// Checks that `path` may be written.
    ///
    /// # Errors
    /// When the effect is not `write` or the path is another one.
    pub fn check_write(&self, path: &Path) -> Result<(), PermitError> {
        if self.effect != Effect::Write {
            return Err(PermitError::Effect { has: self.effect, needs: Effect::Write });
        }
        if self.scope.writes.iter().any(|allowed| allowed == path) {
            Ok(())
        } else {
            Err(PermitError::Scope(path.to_owned()))
        }
    }

    /// Checks that a process may be started in `directory`. A read that starts a program (git) says so in its scope.
    ///
    /// # Errors
    /// When the scope holds no process, or another directory.
    pub fn check_spawn(&self, directory: &Path) -> Result<(), PermitError> {
        match &self.scope.spawns_in {
            None => Err(PermitError::Effect { has: self.effect, needs: Effect::Process }),
            Some(allowed) if allowed == directory => Ok(()),
            Some(_) => Err(PermitError::Scope(directory.to_owned())),
        }
    }
}
