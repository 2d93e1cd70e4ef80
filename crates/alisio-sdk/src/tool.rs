//! Tools.

use std::sync::Arc;

use alisio_policy::{Permit, Request};
use alisio_protocol::{CallId, ToolCall, ToolResult, ToolSpec};
use serde_json::Value;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;

/// Something the model can call.
pub trait Tool: Send + Sync {
    /// What the model and the gate are told.
    fn spec(&self) -> &ToolSpec;

    /// Reads the input, resolves its paths and says what the call would do. It has no effect of its own and does not
    /// block for long: a file of at most 1 MiB may be read here, a tree may not be walked.
    ///
    /// # Errors
    /// [`InputError`] in words that the model can act on.
    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError>;
}

/// A call that is understood and waits for its permit.
pub trait Prepared: Send {
    /// What is to be decided on.
    fn request(&self) -> Request;

    /// Runs the call. A failed command is a result, not an error.
    fn run(self: Box<Self>, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolResult>;
}

/// Says what was wrong with the input of a call and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InputError(pub String);

/// What a running call is given.
#[derive(Clone)]
pub struct ToolContext {
    /// The call.
    pub call: CallId,
    /// Ends when the run ends or is stopped; a process then gets SIGTERM and, 5 s later, SIGKILL.
    pub cancel: CancellationToken,
    /// Takes what the call wants to show while it runs; `{stream, text}` for processes.
    pub progress: Progress,
    /// An owner-only folder of the session for outputs too long for a result. It is a readable root of the session.
    pub spill_folder: std::path::PathBuf,
}

/// Takes what a call wants to show while it runs.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(Value) + Send + Sync>);

impl Progress {
    /// Makes one from a function.
    pub fn new(show: impl Fn(Value) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    /// Makes one that shows nothing.
    pub fn silent() -> Self {
        Self::new(|_| ())
    }

    /// Shows `data`.
    pub fn show(&self, data: Value) {
        (self.0)(data);
    }
}
