//! The values that go into the state and come out of it. Plain data; times are RFC 3339 text in UTC with milliseconds,
//! and come in as arguments.

use std::fmt;
use std::path::{Path, PathBuf};

use alisio_protocol::{
    Approval, CallId, Effect, Grant, Message, Resolution, RunId, SessionId, Sha256, Usage,
};
use serde::{Deserialize, Serialize};

/// What a commit promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On the disk when the commit returns, together with everything committed before.
    Synced,
    /// Survives the end of the process, not a loss of power; the next synced commit covers it.
    Unsynced,
}

/// A session that is about to be.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id: 1 to 64 letters, digits, `-` or `_`.
    pub id: SessionId,
    /// The directory that it works in, absolute.
    pub workspace: PathBuf,
    /// The model service.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The agent, where one was chosen.
    pub agent: Option<String>,
    /// When it began.
    pub created_at: String,
}

/// A kept session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// The directory that it works in.
    pub workspace: PathBuf,
    /// The model service.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The agent, where one was chosen.
    pub agent: Option<String>,
    /// The first prompt in one line of at most 60 characters; empty before there is one.
    pub title: String,
    /// How its last run stands, `None` before the first one; a run whose process is gone counts as interrupted.
    pub status: Option<RunStatus>,
    /// When it began.
    pub created_at: String,
    /// When a run last began or ended.
    pub updated_at: String,
}

/// Which sessions to list. The newest by `updated_at` come first.
#[derive(Clone, Copy, Debug)]
pub struct ListFilter<'a> {
    /// Only those of this directory.
    pub workspace: Option<&'a Path>,
    /// How many at most.
    pub limit: usize,
    /// How many to leave out first.
    pub offset: usize,
}

/// A line of the list of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// The first prompt in one line of at most 60 characters; empty before there is one.
    pub title: String,
    /// The directory that it works in.
    pub workspace: PathBuf,
    /// The model.
    pub model: String,
    /// How its last run stands, `None` before the first one; a run whose process is gone counts as interrupted.
    pub status: Option<RunStatus>,
    /// When it began.
    pub created_at: String,
    /// When a run last began or ended.
    pub updated_at: String,
    /// How many messages it holds.
    pub messages: u64,
    /// How many prompts were worked on.
    pub runs: u64,
}

/// How a run stands. All but the first are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// At work.
    Running,
    /// Ended with an answer.
    Completed,
    /// Ended at the limit of model responses.
    TurnsExceeded,
    /// Ended with a fault.
    Failed,
    /// Stopped on request.
    Cancelled,
    /// Its process ended without saying how.
    Interrupted,
}

impl RunStatus {
    const ALL: [Self; 6] = [
        Self::Running,
        Self::Completed,
        Self::TurnsExceeded,
        Self::Failed,
        Self::Cancelled,
        Self::Interrupted,
    ];

    /// The stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::TurnsExceeded => "turns_exceeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A run that begins.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// The caller's name for the request, unique within the session: see [`Store::run_by_request`](crate::Store::run_by_request).
    pub request_id: Option<String>,
    /// The model that is asked.
    pub model: String,
    /// When it began.
    pub started_at: String,
}

/// A kept run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// The caller's name for the request.
    pub request_id: Option<String>,
    /// The model that was asked.
    pub model: String,
    /// How it stands.
    pub status: RunStatus,
    /// Tokens as reported, summed up; `None` while it runs or when the service was silent.
    pub usage: Option<Usage>,
    /// Why it failed or was stopped.
    pub error: Option<String>,
    /// When it began.
    pub started_at: String,
    /// When it ended; `None` also for an interrupted one.
    pub ended_at: Option<String>,
}

/// A call that is about to run, for the journal.
#[derive(Clone, Debug)]
pub struct CallRow {
    /// The call.
    pub call: CallId,
    /// The run that it belongs to.
    pub run: RunId,
    /// The tool.
    pub tool: String,
    /// What it does to the world.
    pub effect: Effect,
    /// The input as JSON text.
    pub arguments: String,
    /// Names what runs, to the byte.
    pub digest: Sha256,
    /// When it began.
    pub started_at: String,
}

/// A conversation as it was found, made fit to be sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The conversation: each call of an assistant message is followed by exactly one result, in call order.
    pub messages: Vec<Message>,
    /// What was in flight or odd and has not been told yet, a sentence each, for the model and for people.
    pub repairs: Vec<String>,
    /// Calls whose outcome nobody knows. While there are any, the session must not go on.
    pub uncertain: Vec<UncertainCall>,
}

/// A call with an effect that was begun and of which no result is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncertainCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// What it does to the world.
    pub effect: Effect,
    /// The beginning of its input, one line, at most 200 characters.
    pub arguments: String,
    /// When it began.
    pub started_at: String,
}

/// What cleaning took away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Sessions older than the limit.
    pub sessions: Vec<SessionId>,
    /// Stored contents that nothing refers to.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Folders with full outputs of sessions that are gone.
    pub spill_folders: u64,
    /// Lock files that a killed process left.
    pub lock_files: u64,
}

/// A question that nobody has answered.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingApproval {
    /// The question; its deadline is the present one.
    pub approval: Approval,
    /// Whether a process still waits. Without one the question counts as dropped and can't be answered.
    pub owner_alive: bool,
}

/// A kept question, answered or not.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRow {
    /// The question; its deadline is the present one.
    pub approval: Approval,
    /// How it ended; `None` while it waits. One whose process is gone is [`Resolution::Dropped`], also before somebody
    /// writes that down.
    pub resolution: Option<Resolution>,
    /// Who or what ended it: `terminal`, `embedder`, …
    pub by: Option<String>,
    /// When it ended: milliseconds since 1970.
    pub resolved_at: Option<i64>,
    /// Whether the call that was let run has begun.
    pub used: bool,
    /// Whether the leave to run ended before the call began.
    pub void: bool,
}

/// What an answer did.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// How the question ended that was answered.
    pub resolution: Resolution,
    /// The other questions of the session that ended with it, in the order in which they were asked.
    pub fanned_out: Vec<(String, Resolution)>,
    /// What is remembered.
    pub grant: Option<Grant>,
}
