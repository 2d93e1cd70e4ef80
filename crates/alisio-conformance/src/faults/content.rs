//! Text, reasoning and usage that come in odd shapes (Chat Completions).

use serde_json::{Value, json};

use super::{Act, BOTH, CHAT, Fault, Plot};
use crate::reply::Reply;
use crate::wire::Event;
use crate::wire::chat::{chunk, delta, late_usage, usage};

/// Changes the first choice's delta of every chunk that has one.
fn each_delta(events: &mut [Event], mut edit: impl FnMut(&mut Value)) {
    for data in events.iter_mut().filter_map(Event::json_mut) {
        if let Some(delta) = data.pointer_mut("/choices/0/delta") {
            edit(delta);
        }
    }
}

/// Moves the reasoning to another field.
fn rename_reasoning(events: &mut [Event], field: &str) {
    each_delta(events, |delta| {
        if let Some(object) = delta.as_object_mut()
            && let Some(text) = object.remove("reasoning_content")
        {
            object.insert(field.to_owned(), text);
        }
    });
}

/// Takes away what was reported as used.
fn without_usage(events: &mut Vec<Event>) {
    events.retain(|event| event.json().is_none_or(|data| data.get("usage").is_none_or(Value::is_null)));
    for data in events.iter_mut().filter_map(Event::json_mut) {
        if let Some(response) = data.pointer_mut("/response").and_then(Value::as_object_mut) {
            response.remove("usage");
        }
    }
}

fn before_done(events: &[Event]) -> usize {
    events.iter().rposition(|event| matches!(event, Event::Text(_))).unwrap_or(events.len())
}

fn whole_message(reply: &Reply) -> Value {
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .map(|call| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        })
        .collect();
    json!({"role": "assistant", "content": reply.text, "tool_calls": calls})
}

pub(super) static FAULTS: &[Fault] = &[
    Fault::new(
        "content-null",
        CHAT,
        "Every delta without text has `content: null`.",
        Act::Events(|events, _, _| {
            each_delta(events, |delta| {
                if delta["content"].as_str().is_none_or(str::is_empty) {
                    delta["content"] = Value::Null;
                }
            });
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "fields-null",
        CHAT,
        "Every delta has all fields of its type: `tool_calls` as `null` or an empty list, the others as `null`.",
        Act::Events(|events, _, _| {
            let mut number = 0;
            each_delta(events, |delta| {
                number += 1;
                let none = if number % 2 == 0 { Value::Null } else { json!([]) };
                for (field, value) in [("tool_calls", none), ("content", Value::Null)] {
                    if delta.get(field).is_none() {
                        delta[field] = value;
                    }
                }
                for field in ["function_call", "refusal", "audio", "reasoning", "annotations"] {
                    delta[field] = Value::Null;
                }
            });
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "text-in-final-chunk",
        CHAT,
        "The last text stands in the chunk that also has the `finish_reason`.",
        Act::Events(|events, _, _| {
            let ends = |event: &Event| {
                event.json().is_some_and(|data| data["choices"][0]["finish_reason"].is_string())
            };
            let Some(at) = events.iter().position(ends).filter(|at| *at > 0) else { return };
            let before = events.remove(at - 1);
            if let (Some(data), Some(end)) = (before.json(), events[at - 1].json_mut()) {
                end["choices"][0]["delta"] = data["choices"][0]["delta"].clone();
            }
        }),
    ),
    Fault::new(
        "content-as-parts",
        CHAT,
        "The `content` of a delta is an array of `text` parts.",
        Act::Events(|events, _, _| {
            each_delta(events, |delta| {
                if let Some(text) = delta["content"].as_str() {
                    delta["content"] = json!([{"type": "text", "text": text}]);
                }
            });
        }),
    ),
    Fault::new(
        "message-instead-of-delta",
        CHAT,
        "The stream holds one chunk with a whole `message` and no `delta`.",
        Act::Events(|events, reply, _| {
            let choices =
                json!([{"index": 0, "message": whole_message(reply), "finish_reason": "tool_calls"}]);
            *events = vec![Event::chat(chunk(reply, choices)), Event::Text("[DONE]".into())];
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "delta-null",
        CHAT,
        "The first chunk has `delta: null`, and so has the one with the `finish_reason`.",
        Act::Events(|events, _, _| {
            each_delta(events, |delta| {
                let empty = delta.as_object().is_some_and(serde_json::Map::is_empty);
                if empty || delta["content"] == "" {
                    *delta = Value::Null;
                }
            });
        }),
    ),
    Fault::new(
        "role-repeated",
        CHAT,
        "Every delta has the role.",
        Act::Events(|events, _, _| each_delta(events, |delta| delta["role"] = "assistant".into())),
    )
    .plot(Plot::Call),
    Fault::new(
        "role-missing",
        CHAT,
        "No delta has a role.",
        Act::Events(|events, _, _| {
            each_delta(events, |delta| {
                if let Some(object) = delta.as_object_mut() {
                    object.remove("role");
                }
            });
        }),
    ),
    Fault::new(
        "choices-empty-first",
        CHAT,
        "The first chunk has no choices (a report of content filters).",
        Act::Events(|events, reply, _| {
            let mut first = chunk(reply, json!([]));
            first["prompt_filter_results"] = json!([{"prompt_index": 0, "content_filter_results": {}}]);
            events.insert(0, Event::chat(first));
        }),
    ),
    Fault::new(
        "choices-null",
        CHAT,
        "A chunk in the middle has `choices: null`, another has none.",
        Act::Events(|events, reply, _| {
            let mut without = chunk(reply, Value::Null);
            events.insert(1, Event::chat(without.clone()));
            if let Some(object) = without.as_object_mut() {
                object.remove("choices");
            }
            events.insert(2, Event::chat(without));
        }),
    ),
    Fault::new(
        "choices-several",
        CHAT,
        "The stream holds a second choice, which nobody asked for.",
        Act::Events(|events, reply, _| {
            let other = |text: &str| {
                let choices = json!([{"index": 1, "delta": {"content": text}, "finish_reason": null}]);
                Event::chat(chunk(reply, choices))
            };
            events.insert(1, other("The other answer "));
            let at = before_done(events);
            events.insert(at, other("is 43."));
        }),
    ),
    Fault::new(
        "fields-unknown",
        BOTH,
        "Every event has fields that nobody knows, deeply nested ones among them.",
        Act::Events(|events, _, _| {
            for data in events.iter_mut().filter_map(Event::json_mut) {
                data["x_unknown"] =
                    json!({"a": [[[[{"b": null}]]]], "service_tier": "default", "obfuscation": "xxxxxx"});
                data["logprobs"] = Value::Null;
            }
        }),
    ),
    Fault::new(
        "object-empty",
        BOTH,
        "The stream holds the event `{}`.",
        Act::Events(|events, _, _| events.insert(1, Event::chat(json!({})))),
    ),
    Fault::new(
        "reasoning-as-reasoning",
        CHAT,
        "Reasoning comes in the field `reasoning`.",
        Act::Events(|events, _, _| rename_reasoning(events, "reasoning")),
    ),
    Fault::new(
        "reasoning-as-reasoning-content",
        CHAT,
        "Reasoning comes in the field `reasoning_content`.",
        Act::Events(|events, _, _| rename_reasoning(events, "reasoning_content")),
    ),
    Fault::new(
        "reasoning-as-reasoning-text",
        CHAT,
        "Reasoning comes in the field `reasoning_text`.",
        Act::Events(|events, _, _| rename_reasoning(events, "reasoning_text")),
    ),
    Fault::new(
        "reasoning-after-text",
        CHAT,
        "Reasoning comes after the first text.",
        Act::Events(|events, reply, _| {
            let at = super::after_first_text(events);
            events.insert(at, delta(reply, json!({"reasoning_content": "One more thought."})));
        }),
    ),
    Fault::new(
        "usage-missing",
        BOTH,
        "Nothing is reported as used, though it was asked for.",
        Act::Events(|events, _, _| without_usage(events)),
    ),
    Fault::new(
        "usage-late",
        CHAT,
        "Usage comes after the `finish_reason`, in a chunk without choices, asked for or not.",
        Act::Events(|events, reply, _| {
            without_usage(events);
            let at = before_done(events);
            events.insert(at, late_usage(reply));
        }),
    ),
    Fault::new(
        "usage-with-finish",
        CHAT,
        "Usage stands in the chunk with the `finish_reason`.",
        Act::Events(|events, reply, _| {
            without_usage(events);
            if let Some(data) = events.iter_mut().rev().find_map(Event::json_mut) {
                data["usage"] = usage(&reply.usage);
            }
        }),
    ),
    Fault::new(
        "usage-every-chunk",
        CHAT,
        "Every chunk reports what was used so far; only the last counts, and nothing may be added up.",
        Act::Events(|events, reply, _| {
            for (written, data) in events.iter_mut().filter_map(Event::json_mut).enumerate() {
                data["usage"] = usage(&reply.usage);
                data["usage"]["completion_tokens"] = written.into();
            }
        }),
    ),
    Fault::new(
        "usage-null",
        BOTH,
        "Every event has `usage: null`, the last one included.",
        Act::Events(|events, _, _| {
            without_usage(events);
            for data in events.iter_mut().filter_map(Event::json_mut) {
                let place = if data["response"].is_object() { &mut data["response"] } else { data };
                place["usage"] = Value::Null;
            }
        }),
    ),
    Fault::new(
        "usage-odd-types",
        BOTH,
        "Usage holds fractions, texts and negative numbers.",
        Act::Events(|events, _, _| {
            without_usage(events);
            let odd = json!({
                "prompt_tokens": 100.0, "completion_tokens": "10", "total_tokens": -1, "prompt_tokens_details": null,
                "input_tokens": 100.0, "output_tokens": "10", "input_tokens_details": null,
            });
            if let Some(data) = events.iter_mut().rev().find_map(Event::json_mut) {
                let place = if data["response"].is_object() { &mut data["response"] } else { data };
                place["usage"] = odd;
            }
        }),
    ),
];
