//! The conversation as it is stored and sent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, ToolCall, ToolResult};

/// One entry of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// What a person (or a program for one) said.
    User(UserMessage),
    /// What the model answered.
    Assistant(AssistantMessage),
    /// What a tool gave back.
    Tool(ToolMessage),
}

/// A prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// What the model reads.
    pub text: String,
    /// What was typed, where that differs (a template, a command).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// Images that go with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// An image beside a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub mime_type: String,
    /// The bytes, in standard base64.
    pub data: String,
}

/// One response of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The visible text.
    pub text: String,
    /// The tool calls, in the order in which the model asked for them. Their arguments are complete JSON objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Items of the provider that go back to it unchanged (encrypted reasoning of the Responses API).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Value>,
    /// Whether the output limit cut the response.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// The answer to one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolMessage {
    /// The call that is answered.
    pub call_id: CallId,
    /// What it gave.
    pub result: ToolResult,
}
