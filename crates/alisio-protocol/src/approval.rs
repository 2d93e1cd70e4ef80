//! A question about one call, its answer, and what is remembered of it.
//!
//! The words of the answers are those of the permission protocol that existing embedders speak (`once`, `always`,
//! `reject`); widths and lives are ours. A bare `always` means what it means there: the tool, for the session.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, Effect, Facts, RunId, SessionId, Sha256};

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Names the question.
    pub request_id: String,
    /// The session that asks.
    pub session_id: SessionId,
    /// The run that asks.
    pub run_id: RunId,
    /// The call that waits.
    pub call_id: CallId,
    /// The agents from the root down, joined by `/`; empty for the root itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// What the call does to the world.
    pub effect: Effect,
    /// The exact thing: the command, the path, the host.
    pub target: String,
    /// What would run, whole, for people to look at: arguments, working directory, a diff.
    pub shown: Value,
    /// What the command would do, in parts, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// What asked: a rule, the policy's default, the mode, a directory outside the workspace. One sentence.
    pub reason: String,
    /// How wide an `always` may be here, narrowest first.
    pub widths: Vec<Width>,
    /// The directory that is asked about, for [`Width::Directory`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Names what would run, to the byte. What runs after the answer must have the same digest.
    pub digest: Sha256,
    /// When it was asked: milliseconds since 1970.
    pub since: i64,
    /// When it is refused by itself: milliseconds since 1970; never, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
}

/// How wide a remembered answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// Exactly this call: the same digest.
    Call,
    /// This program with any arguments, where every part of the command is it.
    Program,
    /// This directory and what lies below it.
    Directory,
    /// This host.
    Host,
    /// This tool.
    Tool,
    /// This effect, whatever the tool.
    Effect,
}

/// How long a remembered answer lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Life {
    /// Until the session's process ends its work on it; a resumed session has it still.
    #[default]
    Session,
    /// In every session of this workspace, until it is revoked or expires.
    Kept,
}

/// What a person answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Answer {
    /// Runs this call.
    Once,
    /// Runs this call and what the width covers.
    Always {
        /// How wide; the tool when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        width: Option<Width>,
        /// How long.
        #[serde(default)]
        life: Life,
        /// When it ends: milliseconds since 1970; with `life` when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<i64>,
    },
    /// Refuses this call, and every other waiting one of the same tool.
    Reject {
        /// A sentence for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Resolution {
    /// Somebody let this call run.
    Once,
    /// Somebody let this call run, and what the width covers.
    Always {
        /// How wide.
        width: Width,
        /// How long.
        life: Life,
    },
    /// Somebody refused it, or another one of the same tool.
    Reject {
        /// A sentence for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
    /// Nobody answered in time.
    Timeout,
    /// The run was stopped.
    Aborted,
    /// The process that asked is gone.
    Dropped,
}

impl Resolution {
    /// Whether the call may run.
    pub fn allows(&self) -> bool {
        matches!(self, Self::Once | Self::Always { .. })
    }

    /// The wire word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Always { .. } => "always",
            Self::Reject { .. } => "reject",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::Dropped => "dropped",
        }
    }
}

/// A remembered answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Names the grant.
    pub id: String,
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// The workspace that it belongs to; a kept grant counts there in every session.
    pub workspace: String,
    /// How wide.
    pub width: Width,
    /// How long.
    pub life: Life,
    /// The tool that was asked about.
    pub tool: String,
    /// The effect that was asked about.
    pub effect: Effect,
    /// The program, for [`Width::Program`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The directory, for [`Width::Directory`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The host, for [`Width::Host`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The call, for [`Width::Call`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Sha256>,
    /// When it was given: milliseconds since 1970.
    pub created_at: i64,
    /// When it ends: milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_the_words_that_embedders_send() {
        for (wire, answer) in [
            (json!({"kind": "once"}), Answer::Once),
            (
                json!({"kind": "always"}),
                Answer::Always { width: None, life: Life::Session, expires_at: None },
            ),
            (
                json!({"kind": "always", "width": "program", "life": "kept", "expiresAt": 5}),
                Answer::Always { width: Some(Width::Program), life: Life::Kept, expires_at: Some(5) },
            ),
            (json!({"kind": "reject"}), Answer::Reject { feedback: None }),
            (json!({"kind": "reject", "feedback": "no"}), Answer::Reject { feedback: Some("no".into()) }),
        ] {
            assert_eq!(serde_json::from_value::<Answer>(wire).unwrap(), answer);
        }
        assert!(serde_json::from_value::<Answer>(json!({"kind": "sometimes"})).is_err());
    }
}
