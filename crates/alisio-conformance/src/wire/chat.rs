//! The events of the Chat Completions API as OpenAI sends them.

use serde_json::{Map, Value, json};

use super::Event;
use crate::reply::Reply;
use crate::scenario::{Finish, UsageStep};

/// When every scripted answer was made, so that recordings are equal.
pub(crate) const CREATED: u64 = 1_700_000_000;

/// Makes a chunk with the given choices.
pub(crate) fn chunk(reply: &Reply, choices: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", reply.number),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": reply.model,
        "choices": choices,
    })
}

/// Makes a chunk with one delta.
pub(crate) fn delta(reply: &Reply, delta: Value) -> Event {
    Event::chat(chunk(reply, json!([{"index": 0, "delta": delta, "finish_reason": null}])))
}

/// Makes the usage object.
pub(crate) fn usage(usage: &UsageStep) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input.unwrap_or(0)},
    })
}

/// The word for the end.
pub(crate) fn finish_word(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
    }
}

pub(super) fn events(reply: &Reply, include_usage: bool) -> Vec<Event> {
    let mut events = vec![delta(reply, json!({"role": "assistant", "content": ""}))];
    for piece in reply.split(&reply.reasoning) {
        events.push(delta(reply, json!({"reasoning_content": piece})));
    }
    match reply.big() {
        Some((text, count)) => {
            let data = chunk(reply, json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]));
            events.push(Event::Many {
                name: None,
                data: data.to_string(),
                count,
                pause: std::time::Duration::from_millis(reply.deltas.delay_ms),
                per_write: reply.deltas.per_write.unwrap_or(1),
            });
        }
        None => {
            for piece in reply.split(&reply.text) {
                events.push(delta(reply, json!({"content": piece})));
            }
        }
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let head = json!({"index": index, "id": call.id, "type": "function", "function": function});
        events.push(delta(reply, json!({"tool_calls": [head]})));
        for piece in reply.split(&call.arguments) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            events.push(delta(reply, json!({"tool_calls": [more]})));
        }
    }
    let end = json!([{"index": 0, "delta": {}, "finish_reason": finish_word(reply.finish)}]);
    events.push(Event::chat(chunk(reply, end)));
    if include_usage {
        events.push(late_usage(reply));
    }
    events.push(Event::Text("[DONE]".into()));
    events
}

/// Makes the chunk that comes after the end, without choices, to report what was used.
pub(crate) fn late_usage(reply: &Reply) -> Event {
    let mut last = chunk(reply, json!([]));
    last["usage"] = usage(&reply.usage);
    Event::chat(last)
}

pub(super) fn whole(reply: &Reply) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    let text = reply.whole_text();
    let content = if text.is_empty() { Value::Null } else { text.into() };
    message.insert("content".into(), content);
    if !reply.reasoning.is_empty() {
        message.insert("reasoning_content".into(), reply.reasoning.clone().into());
    }
    if !reply.calls.is_empty() {
        let calls = reply.calls.iter().map(|call| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        });
        message.insert("tool_calls".into(), calls.collect());
    }
    json!({
        "id": format!("chatcmpl-{}", reply.number),
        "object": "chat.completion",
        "created": CREATED,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_word(reply.finish)}],
        "usage": usage(&reply.usage),
    })
}
