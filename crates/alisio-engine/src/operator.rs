//! The permission protocol for programs that embed the engine: see what waits, answer it, or hand over a function that
//! answers.
//!
//! The same rows serve every surface, so an operator made here and `alisio approvals` in a terminal may both answer; the
//! first answer wins.

use std::fmt::Display;

use alisio_protocol::{Answer, Approval, Event, EventKind, SessionId};
use alisio_store::{Resolved, Store, StoreError};
use tokio::sync::mpsc::unbounded_channel;

use crate::clock::Clock;
use crate::run::{Engine, OpenSession, Outcome, Prompt, RunError};

/// Answers questions for a person.
#[derive(Clone)]
pub struct Operator {
    store: Store,
    clock: Clock,
}

impl Operator {
    /// Makes an operator over the state that the runs use.
    pub fn new(store: Store, clock: Clock) -> Self {
        Self { store, clock }
    }

    /// Lists the calls that wait, of one session or of all, oldest first.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn list_pending_permissions(&self, session: Option<&SessionId>) -> Result<Vec<Approval>, StoreError> {
        let pending = self.store.pending_approvals(session)?;
        Ok(pending
            .into_iter()
            .filter(|pending| pending.owner_alive)
            .map(|pending| pending.approval)
            .collect())
    }

    /// Answers one question, and with it those that the answer covers.
    ///
    /// # Errors
    /// When there is no such question, it has its answer already, its run is gone, or the width was not offered.
    pub fn resolve_permission(&self, request_id: &str, answer: &Answer) -> Result<Resolved, StoreError> {
        self.store.resolve(request_id, answer, "embedder", self.clock.now().as_millisecond())
    }
}

impl Engine {
    /// Works on one prompt like [`Engine::run`], shows each event to `on_event` and puts each question to
    /// `on_permission`. A function that fails refuses the call, with its error as the reason that the model reads.
    ///
    /// The engine must have [`Approvals`](crate::Approvals) and the authority somebody to answer; otherwise no question
    /// comes up.
    ///
    /// # Errors
    /// Those of [`Engine::run`].
    pub async fn run_with<E: Display>(
        &self,
        session: OpenSession,
        prompt: Prompt,
        operator: &Operator,
        mut on_event: impl FnMut(&Event),
        mut on_permission: impl FnMut(&Approval) -> Result<Answer, E>,
    ) -> Result<Outcome, RunError> {
        let (sender, mut events) = unbounded_channel();
        let show = async {
            while let Some(event) = events.recv().await {
                on_event(&event);
                if let EventKind::ApprovalRequested { request_id, .. } = &event.kind {
                    operator.answer(request_id, &mut on_permission)?;
                }
            }
            Ok::<_, StoreError>(())
        };
        let (outcome, shown) = tokio::join!(self.run(session, prompt, sender), show);
        let outcome = outcome?;
        shown?;
        Ok(outcome)
    }
}

impl Operator {
    fn answer<E: Display>(
        &self,
        request_id: &str,
        on_permission: &mut impl FnMut(&Approval) -> Result<Answer, E>,
    ) -> Result<(), StoreError> {
        let row = self.store.approval(request_id)?;
        if row.resolution.is_some() {
            return Ok(());
        }
        let answer = on_permission(&row.approval)
            .unwrap_or_else(|error| Answer::Reject { feedback: Some(format!("the check failed: {error}")) });
        match self.resolve_permission(request_id, &answer) {
            // Somebody else was quicker, or the run was stopped: that answer stands.
            Ok(_) | Err(StoreError::AlreadyResolved { .. } | StoreError::NotPending(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
