//! Data that every part of Alisio speaks: ids, messages, calls, results, effects, events.
//!
//! Nothing here does I/O, reads a clock or makes a random number; a value is plain data that any crate may build,
//! store or print. Wire names are the ones existing Alisio consumers know (camelCase fields, snake_case event types).

mod approval;
mod effect;
mod event;
mod facts;
mod hash;
mod id;
mod message;
mod tool;

pub use approval::{Answer, Approval, Grant, Life, Resolution, Width};
pub use effect::{Effect, EffectSet};
pub use event::{
    Event, EventKind, FailureCode, RetryReason, TimeoutInfo, TimeoutKind, TruncationInfo, TruncationReason,
    Usage, VerdictSource, VerdictWord,
};
pub use facts::{Class, Facts, Part};
pub use hash::{Sha256, Sha256Error};
pub use id::{CallId, EventId, RunId, SessionId};
pub use message::{AssistantMessage, Attachment, Message, ToolMessage, UserMessage};
pub use tool::{ContentPart, ToolCall, ToolResult, ToolSpec, UiBlock};
