//! What comes back from Responses, as a stream or in one piece.
//!
//! The items of the final response count; where a server leaves them out, the finished items of the stream do, and
//! failing these the deltas.

use std::collections::BTreeMap;

use alisio_protocol::{AssistantMessage, ToolCall, Usage};
use alisio_sdk::{ProviderError, ProviderErrorKind, StopReason, StreamEvent};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::calls::{CallPiece, Calls, Ids, tool_call};
use crate::fault::{Told, fault};
use crate::loose::{Counts, Loose, lenient_value, misshapen};
use crate::pieces::Pieces;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Loose<'a>,
    #[serde(borrow)]
    delta: Loose<'a>,
    #[serde(borrow)]
    arguments: Loose<'a>,
    #[serde(borrow)]
    output_index: Loose<'a>,
    item: Option<Value>,
    response: Option<Value>,
    #[serde(borrow)]
    error: Loose<'a>,
    #[serde(borrow)]
    message: Loose<'a>,
    #[serde(borrow)]
    code: Loose<'a>,
    #[serde(borrow)]
    object: Loose<'a>,
}

/// An answer that grows.
#[derive(Debug, Default)]
pub(crate) struct ResponsesAnswer {
    text: String,
    calls: Calls,
    /// Finished items by their place.
    items: BTreeMap<u64, Value>,
    /// The final response.
    response: Option<Value>,
    seen: bool,
}

impl ResponsesAnswer {
    /// Whether the final response came.
    pub(crate) fn is_finished(&self) -> bool {
        self.response.is_some()
    }

    /// Whether anything of an answer came.
    pub(crate) fn has_output(&self) -> bool {
        self.seen
    }

    /// Takes one event; `name` is its `event` field, for servers that leave `type` out.
    pub(crate) fn take(&mut self, name: &[u8], data: &[u8], out: &mut Pieces) -> Result<(), ProviderError> {
        match serde_json::from_slice::<Event<'_>>(data) {
            Ok(event) if event.object.as_text() != Some("response") => self.event(name, event, out),
            _ => {
                let value = lenient_value(data)?;
                // A whole response instead of a stream of events.
                if value.get("object").and_then(Value::as_str) == Some("response")
                    || value.get("output").is_some()
                {
                    return self.ended(value);
                }
                self.event(name, Event::deserialize(&value).map_err(|error| misshapen(&error, data))?, out)
            }
        }
    }

    fn event(&mut self, name: &[u8], event: Event<'_>, out: &mut Pieces) -> Result<(), ProviderError> {
        let name = String::from_utf8_lossy(name);
        let kind = event.r#type.as_text().unwrap_or(&name);
        let index = event.output_index.number();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let text = event.delta.to_text();
                self.seen = true;
                self.text.push_str(&text);
                out.text(&text);
            }
            "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning.delta" => {
                self.seen = true;
                out.reasoning(&event.delta.to_text());
            }
            "response.function_call_arguments.delta" => {
                self.seen = true;
                self.calls.grow(&CallPiece { index, id: None, name: None, arguments: &event.delta });
                out.call_progress();
            }
            "response.function_call_arguments.done" => self.calls.settle(index, &event.arguments),
            "response.output_item.added" => {
                let item = event.item.unwrap_or_default();
                if item.get("type").and_then(Value::as_str) == Some("function_call") {
                    self.seen = true;
                    self.begin_call(index, &item);
                    out.call_progress();
                }
            }
            "response.output_item.done" => {
                let item = event.item.unwrap_or_default();
                self.seen = true;
                if item.get("type").and_then(Value::as_str) == Some("function_call") {
                    out.call_progress();
                }
                let place =
                    index.unwrap_or_else(|| self.items.last_key_value().map_or(0, |(last, _)| last + 1));
                self.items.insert(place, item);
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                return self.ended(event.response.unwrap_or_else(|| json!({})));
            }
            "response.failed" | "response.cancelled" => {
                let response = event.response.unwrap_or_default();
                return Err(failed(&response));
            }
            _ if kind == "error" || !event.error.is_blank() || event.object.as_text() == Some("error") => {
                let told = json!({
                    "error": event.error.into_value(), "message": event.message.into_value(),
                    "code": event.code.into_value(),
                });
                return Err(Told::read(&told).unwrap_or_default().in_stream());
            }
            // Created, queued, part added, part done and whatever may come: nothing that is not said elsewhere.
            _ => {}
        }
        Ok(())
    }

    fn begin_call(&mut self, index: Option<u64>, item: &Value) {
        let text = |key: &str| item.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let arguments = match item.get("arguments") {
            Some(Value::String(text)) => Loose::Text(text.as_str().into()),
            Some(Value::Object(object)) if !object.is_empty() => Loose::Other(Value::Object(object.clone())),
            _ => Loose::Null,
        };
        let id = text("call_id").or(text("id"));
        self.calls.grow(&CallPiece { index, id, name: text("name"), arguments: &arguments });
    }

    fn ended(&mut self, response: Value) -> Result<(), ProviderError> {
        let status = response.get("status").and_then(Value::as_str);
        if response.get("error").is_some_and(|error| !error.is_null())
            || matches!(status, Some("failed" | "cancelled"))
        {
            return Err(failed(&response));
        }
        self.seen |=
            response.get("output").and_then(Value::as_array).is_some_and(|output| !output.is_empty());
        self.response = Some(response);
        Ok(())
    }

    /// Ends the answer.
    pub(crate) fn complete(&mut self, mut ids: Ids, out: &mut Pieces) -> Result<StreamEvent, ProviderError> {
        let mut response = self.response.take();
        if !self.seen && response.is_none() {
            let message = "the service ended its answer before there was anything in it";
            return Err(fault(ProviderErrorKind::Protocol, message));
        }
        let stop = response.as_ref().map_or(StopReason::Done, stop_reason);
        let usage = response.as_ref().and_then(usage);
        let mut items =
            match response.as_mut().and_then(|response| response.get_mut("output")).map(Value::take) {
                Some(Value::Array(items)) if !items.is_empty() => items,
                _ => std::mem::take(&mut self.items).into_values().collect(),
            };
        items.retain(Value::is_object);
        let text = text_of(&items);
        let streamed = std::mem::take(&mut self.text);
        if streamed.is_empty() {
            out.text(&text);
        }
        let drafts = std::mem::take(&mut self.calls);
        let places = items.iter_mut().zip(0..);
        let found = places.filter_map(|(item, place)| call_of(item, place, &drafts, &mut ids, stop));
        let mut calls: Vec<ToolCall> = found.collect();
        if calls.is_empty() {
            calls = drafts.finish(&mut ids, stop);
        }
        let message = AssistantMessage {
            text: if text.is_empty() { streamed } else { text },
            calls,
            items,
            truncated: stop == StopReason::OutputLimit,
        };
        Ok(StreamEvent::Completed { message, usage, stop })
    }

    /// Says what the stream lacked when it ended early.
    pub(crate) fn unfinished(&self) -> String {
        let held = match (self.text.is_empty(), self.calls.is_empty()) {
            (true, true) => "before anything came",
            (false, true) => "in the middle of the text",
            (_, false) => "in the middle of a tool call",
        };
        format!("the service ended the stream {held}, without `response.completed`")
    }
}

fn failed(response: &Value) -> ProviderError {
    match response.get("error").filter(|error| !error.is_null()).and_then(Told::read) {
        Some(told) => told.in_stream(),
        None => fault(ProviderErrorKind::Server, "the service gave up on the answer without saying why"),
    }
}

fn stop_reason(response: &Value) -> StopReason {
    let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
    match reason {
        Some("content_filter") => StopReason::ContentFilter,
        Some(_) => StopReason::OutputLimit,
        None if response.get("status").and_then(Value::as_str) == Some("incomplete") => {
            StopReason::OutputLimit
        }
        None => StopReason::Done,
    }
}

fn usage(response: &Value) -> Option<Usage> {
    Counts::deserialize(response.get("usage")?).ok()?.usage()
}

fn text_of(items: &[Value]) -> String {
    let messages = items.iter().filter(|item| item.get("type").and_then(Value::as_str) == Some("message"));
    let parts = messages.flat_map(|item| match item.get("content") {
        Some(Value::Array(parts)) => parts.iter().collect(),
        Some(content) => vec![content],
        None => Vec::new(),
    });
    parts
        .filter_map(|part| part.get("text").or_else(|| part.get("refusal")).unwrap_or(part).as_str())
        .collect()
}

/// Reads a call, and writes into its item what had to be changed.
fn call_of(
    item: &mut Value,
    place: u64,
    drafts: &Calls,
    ids: &mut Ids,
    stop: StopReason,
) -> Option<ToolCall> {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("type") != "function_call" {
        return None;
    }
    let id = if text("call_id").is_empty() { text("id") } else { text("call_id") };
    let arguments = match item.get("arguments") {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        Some(Value::String(_) | Value::Null) | None => {
            drafts.arguments(place, id).unwrap_or_default().to_owned()
        }
        Some(other) => other.to_string(),
    };
    let call = tool_call(id, text("name"), arguments, ids, stop);
    for (key, value) in [("call_id", call.id.as_str()), ("arguments", &call.arguments)] {
        if item.get(key).and_then(Value::as_str) != Some(value) {
            item[key] = Value::String(value.to_owned());
        }
    }
    Some(call)
}
