//! Stopping a run, with the reason why.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Stops a run. The first reason stays; a fault that follows from the stop never replaces it.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    token: CancellationToken,
    reason: Arc<OnceLock<String>>,
}

impl Cancel {
    /// Makes one that has not been asked to stop.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the run to stop.
    pub fn stop(&self, reason: impl Into<String>) {
        let _ = self.reason.set(reason.into());
        self.token.cancel();
    }

    /// Whether a stop was asked for.
    pub fn is_stopped(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Why.
    pub fn reason(&self) -> String {
        self.reason.get().cloned().unwrap_or_else(|| "the run was stopped".into())
    }

    /// Comes back when a stop was asked for.
    pub async fn stopped(&self) {
        self.token.cancelled().await;
    }

    pub(crate) fn child_token(&self) -> CancellationToken {
        self.token.child_token()
    }
}
