//! Model services.

use std::sync::Arc;
use std::time::Duration;

use alisio_protocol::{AssistantMessage, Message, RetryReason, ToolSpec, Usage};
use thiserror::Error;

use crate::BoxStream;

/// A model service. It streams one response and never runs a tool.
pub trait Provider: Send + Sync {
    /// Names the service and its wire format, as `openai-compatible:chat:<normalised base URL>`.
    fn id(&self) -> &str;

    /// Asks for one response. Dropping the stream ends the request.
    ///
    /// The stream ends after [`StreamEvent::Completed`] or after its first error. It does not retry: the error says
    /// whether the same request may be sent again, and the run loop decides.
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<StreamEvent, ProviderError>>;
}

/// One request for a response.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The model.
    pub model: String,
    /// Instructions that stand before the conversation; empty for none.
    pub instructions: String,
    /// The conversation: balanced (each call has its result), arguments are JSON objects.
    pub messages: Arc<Vec<Message>>,
    /// A notice that goes last as a system message and is never stored; empty for none.
    pub notice: String,
    /// The tools that may be called.
    pub tools: Arc<Vec<ToolSpec>>,
    /// Output limit in tokens; `None` leaves it to the service.
    pub max_output_tokens: Option<u64>,
    /// Silence allowed between two events once the response has begun.
    pub idle_timeout: Duration,
}

/// A piece of a response. Adjacent pieces of one kind that arrive together may be joined.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// Visible text.
    Text(String),
    /// Reasoning that the service shows.
    Reasoning(String),
    /// A tool call grows: nothing to show, but the service is alive.
    CallProgress,
    /// The response is whole.
    Completed {
        /// What was answered. Calls whose arguments are not a complete JSON object are in it as they came; the run
        /// loop sorts them out.
        message: AssistantMessage,
        /// What the service reported; `None` when it was silent.
        usage: Option<Usage>,
        /// Why it stopped, as far as the service can be believed.
        stop: StopReason,
    },
}

/// Why a response stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was finished, or wants its calls answered.
    Done,
    /// The output limit.
    OutputLimit,
    /// The service withheld the rest.
    ContentFilter,
}

/// Says what went wrong with a request, in a sentence that names the fault.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{message}")]
pub struct ProviderError {
    /// The kind, for the run loop.
    pub kind: ProviderErrorKind,
    /// A sentence for people: lower case, without a full stop, without any secret.
    pub message: String,
    /// What to do about it; empty for nothing.
    pub hint: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// How long the service asked to wait.
    pub retry_after: Option<Duration>,
}

/// Kinds of provider error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// No connection, or it broke. Retried only before the first delta.
    Connection,
    /// 429.
    RateLimited,
    /// 500, 502, 503, 504, 529 and the like.
    Server,
    /// The key is missing, wrong or not allowed.
    Authentication,
    /// The conversation is too long for the model.
    ContextLength,
    /// The service does not take the request: 4xx, or an error object.
    Rejected,
    /// What came is not what the protocol says (HTML, broken JSON, a stream without an end).
    Protocol,
    /// Silence between two events for longer than the idle limit.
    Idle,
    /// The output limit, told as an error.
    OutputTruncated,
}

impl ProviderErrorKind {
    /// Why the same request may be sent again, provided that no delta has come yet; `None` where it may not.
    pub fn retry_reason(self) -> Option<RetryReason> {
        match self {
            Self::Connection => Some(RetryReason::Connection),
            Self::RateLimited => Some(RetryReason::RateLimited),
            Self::Server => Some(RetryReason::ServerError),
            Self::Authentication
            | Self::ContextLength
            | Self::Rejected
            | Self::Protocol
            | Self::Idle
            | Self::OutputTruncated => None,
        }
    }
}
