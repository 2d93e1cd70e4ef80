//! What comes back from Chat Completions, as a stream or in one piece.

use std::borrow::Cow;

use alisio_protocol::{AssistantMessage, Usage};
use alisio_sdk::{ProviderError, ProviderErrorKind, StopReason, StreamEvent};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::calls::{CallPiece, Calls, Ids};
use crate::fault::{Told, fault};
use crate::loose::{Counts, Item, Loose, Many, lenient_value, misshapen};
use crate::pieces::Pieces;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Many<Choice<'a>>,
    #[serde(borrow)]
    usage: Item<Counts<'a>>,
    #[serde(borrow)]
    error: Loose<'a>,
    #[serde(borrow)]
    object: Loose<'a>,
    #[serde(borrow)]
    message: Loose<'a>,
    #[serde(borrow)]
    detail: Loose<'a>,
    #[serde(borrow)]
    code: Loose<'a>,
    #[serde(borrow)]
    r#type: Loose<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    index: Loose<'a>,
    #[serde(borrow)]
    delta: Item<Delta<'a>>,
    #[serde(borrow)]
    message: Item<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Loose<'a>,
    /// Some servers put usage here.
    #[serde(borrow)]
    usage: Item<Counts<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Loose<'a>,
    #[serde(borrow)]
    reasoning_content: Loose<'a>,
    #[serde(borrow)]
    reasoning: Loose<'a>,
    #[serde(borrow)]
    reasoning_text: Loose<'a>,
    #[serde(borrow)]
    refusal: Loose<'a>,
    #[serde(borrow)]
    tool_calls: Many<CallDelta<'a>>,
    #[serde(borrow)]
    function_call: Item<FunctionDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CallDelta<'a> {
    #[serde(borrow)]
    index: Loose<'a>,
    #[serde(borrow)]
    id: Loose<'a>,
    #[serde(borrow)]
    function: Item<FunctionDelta<'a>>,
    /// Without the `function` around them.
    #[serde(borrow)]
    name: Loose<'a>,
    #[serde(borrow)]
    arguments: Loose<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionDelta<'a> {
    #[serde(borrow)]
    name: Loose<'a>,
    #[serde(borrow)]
    arguments: Loose<'a>,
}

/// An answer that grows.
#[derive(Debug, Default)]
pub(crate) struct ChatAnswer {
    text: String,
    calls: Calls,
    usage: Option<Usage>,
    finish: Option<StopReason>,
    /// A choice came, be it empty.
    seen: bool,
    /// Its index.
    index: Option<u64>,
}

impl ChatAnswer {
    /// Whether the service said that it is finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether a choice came, be it empty.
    pub(crate) fn has_choice(&self) -> bool {
        self.seen
    }

    /// Takes one event.
    pub(crate) fn take(&mut self, data: &[u8], out: &mut Pieces) -> Result<(), ProviderError> {
        match serde_json::from_slice::<Chunk<'_>>(data) {
            Ok(chunk) => self.chunk(chunk, out),
            Err(_) => {
                let value = lenient_value(data)?;
                match &value {
                    // A whole answer or error wrapped in a list.
                    Value::Array(_) if Told::read(&value).is_some() => {
                        Err(Told::read(&value).unwrap_or_default().in_stream())
                    }
                    _ => {
                        self.chunk(Chunk::deserialize(&value).map_err(|error| misshapen(&error, data))?, out)
                    }
                }
            }
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Pieces) -> Result<(), ProviderError> {
        if !chunk.error.is_blank() {
            let told = Told::read(&json!({"error": chunk.error.into_value()})).unwrap_or_default();
            return Err(told.in_stream());
        }
        if let Some(usage) = chunk.usage.0.and_then(|counts| counts.usage()) {
            self.usage = Some(usage);
        }
        let is_empty = chunk.choices.0.is_empty();
        // One choice was asked for: further ones of a generous server are not mixed into it.
        let is_ours = |choice: &Choice<'_>| match (choice.index.number(), self.index) {
            (Some(index), Some(ours)) => index == ours,
            _ => true,
        };
        let Some(choice) = chunk.choices.0.into_iter().find(is_ours) else {
            if !is_empty {
                return Ok(());
            }
            if chunk.object.as_text() == Some("error")
                || !chunk.message.is_blank()
                || !chunk.detail.is_blank()
            {
                let told = json!({
                    "message": chunk.message.into_value(), "detail": chunk.detail.into_value(),
                    "code": chunk.code.into_value(), "type": chunk.r#type.into_value(),
                });
                return Err(Told::read(&told).unwrap_or_default().in_stream());
            }
            return Ok(());
        };
        self.seen = true;
        self.index = self.index.or(choice.index.number());
        if let Some(usage) = choice.usage.0.and_then(|counts| counts.usage()) {
            self.usage = Some(usage);
        }
        if let Some(delta) = &choice.delta.0 {
            self.delta(delta, out);
        }
        // Where nothing was streamed the whole message counts; after deltas it only repeats them.
        if let Some(message) = &choice.message.0
            && self.text.is_empty()
            && self.calls.is_empty()
        {
            self.delta(message, out);
        }
        self.finished(choice.finish_reason.as_text())
    }

    fn delta(&mut self, delta: &Delta<'_>, out: &mut Pieces) {
        let reasoning = [&delta.reasoning_content, &delta.reasoning, &delta.reasoning_text];
        if let Some(reasoning) = reasoning.into_iter().map(parts_text).find(|text| !text.is_empty()) {
            out.reasoning(&reasoning);
        }
        if let Loose::Other(Value::Array(parts)) = &delta.content {
            for part in
                parts.iter().filter(|part| part.get("type").and_then(Value::as_str) == Some("thinking"))
            {
                out.reasoning(&part_text(part.get("thinking").unwrap_or(&Value::Null)));
            }
        }
        for text in [&delta.content, &delta.refusal] {
            let text = parts_text(text);
            self.text.push_str(&text);
            out.text(&text);
        }
        for call in &delta.tool_calls.0 {
            let function = call.function.0.as_ref();
            self.calls.grow(&CallPiece {
                index: call.index.number(),
                id: call.id.as_text(),
                name: function.map_or(&call.name, |function| &function.name).as_text(),
                arguments: function.map_or(&call.arguments, |function| &function.arguments),
            });
            out.call_progress();
        }
        if let Some(function) = &delta.function_call.0 {
            let piece = CallPiece {
                index: None,
                id: None,
                name: function.name.as_text(),
                arguments: &function.arguments,
            };
            self.calls.grow(&piece);
            out.call_progress();
        }
    }

    fn finished(&mut self, reason: Option<&str>) -> Result<(), ProviderError> {
        let stop = match reason {
            None | Some("null" | "None") => return Ok(()),
            Some("length" | "max_tokens" | "MAX_TOKENS" | "max_output_tokens") => StopReason::OutputLimit,
            Some("content_filter" | "SAFETY" | "sensitive") => StopReason::ContentFilter,
            Some(
                word @ ("error" | "network_error" | "insufficient_system_resource" | "abort" | "aborted"),
            ) => {
                let message = format!("the service gave up in the middle of the answer (`{word}`)");
                return Err(fault(ProviderErrorKind::Server, message));
            }
            // `stop` with calls, `tool_calls` without any: what is there counts, not the word.
            Some(_) => StopReason::Done,
        };
        self.finish = Some(stop);
        Ok(())
    }

    /// Ends the answer: `[DONE]`, the end of the stream after a finish reason, or the end of one JSON object.
    pub(crate) fn complete(&mut self, mut ids: Ids) -> Result<StreamEvent, ProviderError> {
        if !self.seen {
            let message = "the service ended its answer before there was anything in it (no `choices`)";
            return Err(fault(ProviderErrorKind::Protocol, message));
        }
        let stop = self.finish.unwrap_or(StopReason::Done);
        let message = AssistantMessage {
            text: std::mem::take(&mut self.text),
            calls: std::mem::take(&mut self.calls).finish(&mut ids, stop),
            items: Vec::new(),
            truncated: stop == StopReason::OutputLimit,
        };
        Ok(StreamEvent::Completed { message, usage: self.usage, stop })
    }

    /// Says what the stream lacked when it ended early.
    pub(crate) fn unfinished(&self) -> String {
        let held = match (self.text.is_empty(), self.calls.is_empty()) {
            (true, true) => "before anything came",
            (false, true) => "in the middle of the text",
            (_, false) => "in the middle of a tool call",
        };
        format!("the service ended the stream {held}, without a finish reason and without `[DONE]`")
    }
}

/// Returns a text, or the texts of a list of parts.
fn parts_text<'a>(value: &'a Loose<'_>) -> Cow<'a, str> {
    match value {
        Loose::Null => Cow::Borrowed(""),
        Loose::Text(text) => Cow::Borrowed(text),
        Loose::Other(value) => Cow::Owned(part_text(value)),
    }
}

fn part_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part_text).collect(),
        Value::Object(part) => part.get("text").map(part_text).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
