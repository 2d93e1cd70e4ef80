//! What the model is told about a tool, what it asks, and what comes back.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, Effect};

/// A tool as the model and the gate see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// What the tool does, written for the model.
    pub description: String,
    /// JSON Schema of the input: an object with `additionalProperties: false`.
    pub input_schema: Value,
    /// What a call does to the world.
    pub effect: Effect,
}

/// One call that the model asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the result must carry.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The input as JSON text.
    pub arguments: String,
}

/// What a call gave back: text first, display blocks after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The parts, in order.
    pub content: Vec<ContentPart>,
    /// Whether the model should read this as a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentPart {
    /// Text; the only part a model ever receives.
    Text {
        /// The text.
        text: String,
    },
    /// A block for rich clients.
    Ui {
        /// The block.
        block: UiBlock,
    },
}

/// A display block. Clients that don't know a kind show it as labelled JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum UiBlock {
    /// A change of one file.
    Diff {
        /// Unified patch, at most 200 KB, cut at the end of a line.
        patch: String,
        /// The file, relative to the workspace where it lies in it.
        path: String,
        /// The extension of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lang: Option<String>,
        /// Says that the patch was cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caption: Option<String>,
    },
    /// What a process printed.
    Terminal {
        /// Standard output, then standard error: the last 256 KB.
        output: String,
        /// The command line.
        command: String,
        /// The working directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// The exit code; absent when a signal ended the process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Wall time in milliseconds.
        duration_ms: u64,
        /// Whether `output` lacks its beginning.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
}

impl ToolResult {
    /// Makes a result of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentPart::Text { text: text.into() }], is_error: false }
    }

    /// Makes a failure that the model reads.
    pub fn error(text: impl Into<String>) -> Self {
        Self { content: vec![ContentPart::Text { text: text.into() }], is_error: true }
    }

    /// Adds a display block.
    #[must_use]
    pub fn with_block(mut self, block: UiBlock) -> Self {
        self.content.push(ContentPart::Ui { block });
        self
    }

    /// Returns what a model, a log and headless output see: the text parts, one after the other.
    pub fn text_projection(&self) -> String {
        let mut text = String::new();
        for part in &self.content {
            if let ContentPart::Text { text: part } = part {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(part);
            }
        }
        text
    }
}
