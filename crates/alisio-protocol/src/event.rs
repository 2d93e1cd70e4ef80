//! What happened, in the order in which it happened.
//!
//! A durable event is on disk before anyone sees it and then carries an [`EventId`]; the three kinds that only show
//! progress (`text_delta`, `reasoning_delta`, `tool_progress`) are never stored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, Effect, EventId, Resolution, RunId, SessionId};

/// The envelope: one JSON object a line with `--json`, the same object for every other surface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Version of the envelope: 1 for as long as changes only add.
    pub schema_version: u32,
    /// The run that the event belongs to.
    pub run_id: RunId,
    /// The session that the run belongs to.
    pub session_id: SessionId,
    /// Counts the events of the run from 1, without gaps, ephemeral ones too.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// RFC 3339, UTC, milliseconds.
    pub timestamp: String,
    /// Number of the event in the store; durable events only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// The caller's own name for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// What happened, with its payload. `type` and `data` on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// A run began.
    RunStarted {
        /// The model that is asked.
        model: String,
    },
    /// A piece of the answer.
    TextDelta {
        /// The piece.
        delta: String,
    },
    /// A piece of the reasoning that the service shows.
    ReasoningDelta {
        /// The piece.
        delta: String,
    },
    /// One response of the model is complete and stored.
    TurnCompleted {
        /// Counts the responses of the run from 1.
        turn: u32,
        /// Tokens reported for this response, 0 when the service reported none.
        tokens: u64,
        /// How many tool calls it holds.
        calls: u32,
        /// The model that answered.
        model: String,
        /// What the service reported.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Milliseconds from request to completion.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// Milliseconds from request to the first text or reasoning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttft_ms: Option<u64>,
    },
    /// The gate decided on a call (ours; the ledger holds the same verdict).
    ToolDecided {
        /// The call.
        id: CallId,
        /// The tool.
        name: String,
        /// Its effect.
        effect: Effect,
        /// Whether it may run.
        verdict: VerdictWord,
        /// What decided.
        source: VerdictSource,
        /// One sentence.
        reason: String,
    },
    /// A call waits for a person.
    ApprovalRequested {
        /// The call.
        id: CallId,
        /// The tool.
        name: String,
        /// Its effect.
        effect: Effect,
        /// Names the question, for `alisio approvals resolve`.
        request_id: String,
        /// The agents from the root down.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        label: String,
        /// What asked, in one sentence.
        reason: String,
    },
    /// A call does not wait any more.
    ApprovalResolved {
        /// The call.
        id: CallId,
        /// The tool.
        name: String,
        /// Its effect.
        effect: Effect,
        /// Names the question.
        request_id: String,
        /// `once`, `session` or `deny`, as surfaces have always been told.
        decision: String,
        /// How it ended, in full.
        resolution: Resolution,
    },
    /// A call begins to run.
    ToolStarted {
        /// The call.
        id: CallId,
        /// The tool.
        name: String,
        /// The input as the model wrote it.
        arguments: String,
        /// Its effect.
        effect: Effect,
    },
    /// Something a running call shows.
    ToolProgress {
        /// The call.
        id: CallId,
        /// `{stream: "stdout"|"stderr", text}` for processes.
        data: Value,
    },
    /// A call ended.
    ToolCompleted {
        /// The call.
        id: CallId,
        /// The tool.
        name: String,
        /// Whether the model reads a failure.
        is_error: bool,
        /// Wall time in milliseconds.
        duration_ms: u64,
        /// The beginning of the result's text.
        preview: String,
    },
    /// The output limit cut a response that is usable all the same.
    ResponseTruncated {
        /// The response.
        turn: u32,
        /// The limit that was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_output_tokens: Option<u64>,
        /// Where the limit came from: `user`, `model` or `default`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// A response that the output limit made useless is asked for again.
    TruncationRecovery {
        /// Counts from 1.
        attempt: u32,
        /// How many there may be.
        of: u32,
        /// What was cut.
        reason: TruncationReason,
        /// The limit that was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_output_tokens: Option<u64>,
    },
    /// The same request is sent again.
    RequestRetry {
        /// Counts from 1.
        attempt: u32,
        /// How many there may be.
        of: u32,
        /// Why.
        reason: RetryReason,
        /// The pause before it, in milliseconds.
        after_ms: u64,
        /// The HTTP status, where one was the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// Tool results were shortened so that the conversation fits.
    ContextReduced {
        /// How many messages were shortened.
        messages: u32,
    },
    /// The model changed for this session.
    ModelChanged {
        /// The new one.
        model: String,
        /// The one before.
        previous: String,
    },
    /// The run ended with an answer.
    RunCompleted {
        /// Tokens of the run.
        tokens: u64,
        /// The final text.
        text: String,
        /// Whether the output limit cut it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
    /// The run ended at the limit of model responses; the next prompt goes on.
    RunTurnsExceeded {
        /// Responses used.
        turns: u32,
        /// Responses allowed.
        max_turns: u32,
    },
    /// The run ended with a fault.
    RunFailed {
        /// A sentence for people.
        error: String,
        /// The kind of fault, where programs may care.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<FailureCode>,
        /// More on `code: timeout`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<TimeoutInfo>,
        /// More on `code: output_truncated`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncation: Option<TruncationInfo>,
    },
    /// The run was stopped on request.
    RunCancelled {
        /// Who or what asked for it.
        error: String,
    },
}

impl EventKind {
    /// Whether the event is stored before it is shown.
    pub fn is_durable(&self) -> bool {
        !matches!(self, Self::TextDelta { .. } | Self::ReasoningDelta { .. } | Self::ToolProgress { .. })
    }

    /// Whether the run ends with this event.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::RunCompleted { .. }
                | Self::RunTurnsExceeded { .. }
                | Self::RunFailed { .. }
                | Self::RunCancelled { .. }
        )
    }
}

/// Tokens as the service reported them; nothing is invented where it was silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the service's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
}

/// Whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictWord {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// What decided on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictSource {
    /// `--read-only`.
    ReadOnly,
    /// A path outside every declared root.
    Directory,
    /// The effect needs no permission.
    Effect,
    /// An `--allow-*` flag.
    Flag,
    /// The permission mode.
    Mode,
    /// A person's answer to this call.
    Answer,
    /// A remembered answer.
    Grant,
    /// Nobody was there to answer.
    NobodyToAsk,
    /// What the harness that started this one may do at most.
    Ceiling,
    /// The check itself failed; that refuses.
    Fault,
    /// A rule of a permission policy.
    Rule,
    /// The default of a permission policy.
    PolicyDefault,
    /// `disabledTools` of a permission policy.
    Disabled,
    /// `restrictToTools` of a permission policy.
    Restricted,
    /// A rule that limits how often something runs.
    RateLimit,
}

/// Why a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryReason {
    /// Nothing came within the first-token limit.
    FirstTokenTimeout,
    /// The service asked to slow down (429).
    RateLimited,
    /// The service is overloaded or failed (5xx).
    ServerError,
    /// The connection could not be made or broke before the first delta.
    Connection,
}

/// What the output limit cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruncationReason {
    /// A tool call whose arguments are not complete JSON.
    ToolCallCut,
    /// A response without text and without a call.
    EmptyResponse,
}

/// Kinds of failure that programs may care about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// A time limit; see [`TimeoutInfo`].
    Timeout,
    /// The output limit made every try useless; see [`TruncationInfo`].
    OutputTruncated,
    /// The token budget of the run is spent.
    TokenBudget,
    /// The conversation no longer fits the model.
    ContextLength,
    /// The service refused or failed.
    Provider,
    /// The session holds a call whose outcome nobody knows.
    Uncertain,
    /// Alisio's own state could not be written.
    Store,
}

/// A time limit that ended a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutInfo {
    /// Which limit.
    pub kind: TimeoutKind,
    /// The limit in milliseconds.
    pub ms: u64,
    /// The model that was asked.
    pub model: String,
    /// The service that was asked.
    pub provider: String,
    /// What was going on: `model` or `tool`.
    pub stage: String,
    /// The tool that was running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether it was the first request of the run.
    pub first_request: bool,
    /// How often the request that failed was sent.
    pub attempts: u32,
}

/// Which time limit ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// Active time of the whole run.
    Run,
    /// Silence before the first delta.
    FirstToken,
    /// Silence between two deltas.
    Idle,
}

/// An output limit that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TruncationInfo {
    /// How often the turn was asked for.
    pub attempts: u32,
    /// The limit that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn envelope_is_the_documented_one_and_reads_back() {
        let event = Event {
            schema_version: 1,
            run_id: RunId::new("r"),
            session_id: SessionId::new("s"),
            seq: 3,
            kind: EventKind::ToolCompleted {
                id: CallId::new("c"),
                name: "read_file".into(),
                is_error: false,
                duration_ms: 2,
                preview: "x".into(),
            },
            timestamp: "2026-01-02T03:04:05.006Z".into(),
            event_id: Some(EventId(41)),
            correlation_id: None,
        };
        let wire = json!({
            "schemaVersion": 1, "runId": "r", "sessionId": "s", "seq": 3, "type": "tool_completed",
            "timestamp": "2026-01-02T03:04:05.006Z", "eventId": "41",
            "data": {"id": "c", "name": "read_file", "isError": false, "durationMs": 2, "preview": "x"},
        });
        assert_eq!(serde_json::to_value(&event).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Event>(wire).unwrap(), event);
    }
}
