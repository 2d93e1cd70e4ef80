//! The events of the Responses API as OpenAI sends them.

use std::time::Duration;

use serde_json::{Value, json};

use super::Event;
use super::chat::CREATED;
use crate::reply::Reply;
use crate::scenario::{Finish, UsageStep};

/// Makes the usage object.
fn usage(usage: &UsageStep) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached_input.unwrap_or(0)},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    })
}

/// Makes the response object with the given state and output.
pub(crate) fn response(reply: &Reply, status: &str, output: Value) -> Value {
    let done = status != "in_progress";
    json!({
        "id": format!("resp_{}", reply.number),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": reply.model,
        "output": output,
        "usage": if done { usage(&reply.usage) } else { Value::Null },
    })
}

fn ended(reply: &Reply) -> Value {
    let output = Value::from(items(reply));
    let reason = match reply.finish {
        Finish::Stop | Finish::ToolCalls => return response(reply, "completed", output),
        Finish::Length => "max_output_tokens",
        Finish::ContentFilter => "content_filter",
    };
    let mut ended = response(reply, "incomplete", output);
    ended["incomplete_details"] = json!({"reason": reason});
    ended
}

/// Makes the finished output items.
fn items(reply: &Reply) -> Vec<Value> {
    let mut items = Vec::new();
    if !reply.reasoning.is_empty() || reply.encrypted_reasoning.is_some() {
        let summary = if reply.reasoning.is_empty() {
            json!([])
        } else {
            json!([{"type": "summary_text", "text": reply.reasoning}])
        };
        let mut item = json!({"type": "reasoning", "id": format!("rs_{}", reply.number), "summary": summary});
        if let Some(encrypted) = &reply.encrypted_reasoning {
            item["encrypted_content"] = encrypted.clone().into();
        }
        items.push(item);
    }
    let text = reply.whole_text();
    if !text.is_empty() {
        items.push(json!({
            "type": "message",
            "id": format!("msg_{}", reply.number),
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        items.push(json!({
            "type": "function_call",
            "id": format!("fc_{}_{index}", reply.number),
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }));
    }
    items
}

pub(super) fn events(reply: &Reply) -> Vec<Event> {
    let started = response(reply, "in_progress", json!([]));
    let mut events = vec![
        Event::typed(json!({"type": "response.created", "response": started})),
        Event::typed(json!({"type": "response.in_progress", "response": started})),
    ];
    for (index, item) in items(reply).into_iter().enumerate() {
        let mut begun = item.clone();
        match item["type"].as_str() {
            Some("message") => begun["content"] = json!([]),
            Some("function_call") => begun["arguments"] = "".into(),
            _ => begun["summary"] = json!([]),
        }
        if begun.get("status").is_some() {
            begun["status"] = "in_progress".into();
        }
        events.push(Event::typed(
            json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
        ));
        match item["type"].as_str() {
            Some("message") => message(reply, index, &item, &mut events),
            Some("function_call") => call(reply, index, &item, &mut events),
            _ => reasoning(reply, index, &item, &mut events),
        }
        events.push(Event::typed(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        ));
    }
    let response = ended(reply);
    let kind = format!("response.{}", response["status"].as_str().unwrap_or("completed"));
    events.push(Event::typed(json!({"type": kind, "response": response})));
    number(&mut events);
    events
}

/// Numbers the events from 0. The repeated delta of a big stream keeps the number of its first.
fn number(events: &mut [Event]) {
    for (number, event) in events.iter_mut().enumerate() {
        if let Some(data) = event.json_mut() {
            data["sequence_number"] = number.into();
        }
    }
}

fn message(reply: &Reply, index: usize, item: &Value, events: &mut Vec<Event>) {
    let id = &item["id"];
    let about = |kind: &str| json!({"type": kind, "item_id": id, "output_index": index, "content_index": 0});
    let with = |kind: &str, field: &str, value: Value| {
        let mut event = about(kind);
        event[field] = value;
        Event::typed(event)
    };
    let empty = json!({"type": "output_text", "text": "", "annotations": []});
    events.push(with("response.content_part.added", "part", empty));
    match reply.big() {
        Some((text, count)) => {
            let mut data = about("response.output_text.delta");
            data["delta"] = text.into();
            events.push(Event::Many {
                name: Some("response.output_text.delta".into()),
                data: data.to_string(),
                count,
                pause: Duration::from_millis(reply.deltas.delay_ms),
                per_write: reply.deltas.per_write.unwrap_or(1),
            });
        }
        None => {
            for piece in reply.split(&reply.text) {
                events.push(with("response.output_text.delta", "delta", piece.into()));
            }
        }
    }
    events.push(with("response.output_text.done", "text", reply.whole_text().into()));
    events.push(with("response.content_part.done", "part", item["content"][0].clone()));
}

fn call(reply: &Reply, index: usize, item: &Value, events: &mut Vec<Event>) {
    let arguments = item["arguments"].as_str().unwrap_or("");
    for piece in reply.split(arguments) {
        events.push(Event::typed(json!({
            "type": "response.function_call_arguments.delta",
            "item_id": item["id"], "output_index": index, "delta": piece,
        })));
    }
    events.push(Event::typed(json!({
        "type": "response.function_call_arguments.done",
        "item_id": item["id"], "output_index": index, "arguments": arguments,
    })));
}

fn reasoning(reply: &Reply, index: usize, item: &Value, events: &mut Vec<Event>) {
    if reply.reasoning.is_empty() {
        return;
    }
    let with = |kind: &str, field: &str, value: Value| {
        let mut event =
            json!({"type": kind, "item_id": item["id"], "output_index": index, "summary_index": 0});
        event[field] = value;
        Event::typed(event)
    };
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    events.push(with("response.reasoning_summary_part.added", "part", part("")));
    for piece in reply.split(&reply.reasoning) {
        events.push(with("response.reasoning_summary_text.delta", "delta", piece.into()));
    }
    events.push(with("response.reasoning_summary_text.done", "text", reply.reasoning.clone().into()));
    events.push(with("response.reasoning_summary_part.done", "part", part(&reply.reasoning)));
}

pub(super) fn whole(reply: &Reply) -> Value {
    ended(reply)
}
