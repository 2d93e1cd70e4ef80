//! Tool calls that come in odd shapes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Act, BOTH, CHAT, Fault, Plot};
use crate::scenario::Finish;
use crate::wire::Event;
use crate::wire::chat::delta;

/// Changes each delta of a tool call; `first` says whether it opens its call.
fn each_call_delta(events: &mut [Event], mut edit: impl FnMut(&mut Value, bool)) {
    for data in events.iter_mut().filter_map(Event::json_mut) {
        let calls = data.pointer_mut("/choices/0/delta/tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            let first = call.get("id").is_some();
            edit(call, first);
        }
    }
}

fn remove(value: &mut Value, field: &str) {
    if let Some(object) = value.as_object_mut() {
        object.remove(field);
    }
}

fn is_call(event: &Event) -> bool {
    event.json().is_some_and(|data| data["choices"][0]["delta"]["tool_calls"].is_array())
}

/// Puts all arguments of a Chat call into its first delta.
fn join_arguments(events: &mut Vec<Event>) {
    let mut arguments: BTreeMap<u64, String> = BTreeMap::new();
    each_call_delta(events, |call, _| {
        let piece = call["function"]["arguments"].as_str().unwrap_or("");
        arguments.entry(call["index"].as_u64().unwrap_or(0)).or_default().push_str(piece);
    });
    events.retain(|event| {
        !is_call(event)
            || event
                .json()
                .is_some_and(|data| data["choices"][0]["delta"]["tool_calls"][0].get("id").is_some())
    });
    each_call_delta(events, |call, _| {
        let index = call["index"].as_u64().unwrap_or(0);
        call["function"]["arguments"] = arguments.remove(&index).unwrap_or_default().into();
    });
}

/// Makes the arguments objects, wherever they are whole.
fn arguments_as_object(events: &mut Vec<Event>) {
    join_arguments(events);
    let object = |text: &Value| text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    each_call_delta(events, |call, _| {
        if let Some(object) = object(&call["function"]["arguments"]) {
            call["function"]["arguments"] = object;
        }
    });
    events.retain(|event| {
        event.json().is_none_or(|data| data["type"] != "response.function_call_arguments.delta")
    });
    for data in events.iter_mut().filter_map(Event::json_mut) {
        for place in ["/arguments", "/item/arguments"] {
            if let Some(arguments) = data.pointer_mut(place)
                && let Some(object) = object(arguments)
            {
                *arguments = object;
            }
        }
        let output = data.pointer_mut("/response/output").and_then(Value::as_array_mut);
        for item in output.into_iter().flatten() {
            if let Some(object) = item.get("arguments").and_then(object) {
                item["arguments"] = object;
            }
        }
    }
}

fn interleave(events: &mut Vec<Event>) {
    let Some(start) = events.iter().position(is_call) else { return };
    let end = events.iter().rposition(is_call).map_or(start, |at| at + 1);
    let calls: Vec<Event> = events.drain(start..end).collect();
    let of = |index: u64| {
        let is_of = move |event: &&Event| {
            event.json().is_some_and(|data| data["choices"][0]["delta"]["tool_calls"][0]["index"] == index)
        };
        calls.iter().filter(is_of).cloned().collect::<Vec<_>>()
    };
    let mixed = of(0).into_iter().zip(of(1)).flat_map(|(first, second)| [first, second]);
    events.splice(start..start, mixed);
}

pub(super) static FAULTS: &[Fault] = &[
    Fault::new(
        "call-without-index",
        CHAT,
        "Tool-call deltas have no `index`; the id opens a call and what follows belongs to it.",
        Act::Events(|events, _, _| each_call_delta(events, |call, _| remove(call, "index"))),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-without-id",
        CHAT,
        "No tool-call delta has an `id`; the client has to make one.",
        Act::Events(|events, _, _| each_call_delta(events, |call, _| remove(call, "id"))),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-without-index-and-id",
        CHAT,
        "Tool-call deltas have neither `index` nor `id`; a name opens a call.",
        Act::Events(|events, _, _| {
            each_call_delta(events, |call, _| {
                remove(call, "index");
                remove(call, "id");
            });
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-id-null",
        CHAT,
        "The `id` of every tool-call delta is `null`.",
        Act::Events(|events, _, _| each_call_delta(events, |call, _| call["id"] = Value::Null)),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-id-repeated",
        CHAT,
        "The `id` stands in every delta of its call and must not open new ones.",
        Act::Events(|events, reply, _| {
            each_call_delta(events, |call, _| {
                let index = call["index"].as_u64().and_then(|index| usize::try_from(index).ok());
                call["id"] =
                    index.and_then(|index| reply.calls.get(index)).map_or("", |call| &call.id).into();
            });
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-id-empty-later",
        CHAT,
        "Later deltas of a call carry an empty `id` and an empty name.",
        Act::Events(|events, _, _| {
            each_call_delta(events, |call, first| {
                if !first {
                    call["id"] = "".into();
                    call["function"]["name"] = "".into();
                }
            });
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-id-last",
        CHAT,
        "The `id` comes only with the last delta of its call.",
        Act::Events(|events, reply, _| {
            each_call_delta(events, |call, _| remove(call, "id"));
            if let Some(at) = events.iter().rposition(is_call) {
                let id = reply.calls.last().map_or("", |call| &call.id);
                each_call_delta(&mut events[at..=at], |call, _| call["id"] = id.into());
            }
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-index-from-one",
        CHAT,
        "The `index` of calls starts at 1.",
        Act::Events(|events, _, _| {
            each_call_delta(events, |call, _| {
                call["index"] = (call["index"].as_u64().unwrap_or(0) + 1).into();
            });
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-index-always-zero",
        CHAT,
        "Two parallel calls both have the `index` 0; only their ids tell them apart.",
        Act::Events(|events, _, _| each_call_delta(events, |call, _| call["index"] = 0.into())),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-index-as-text",
        CHAT,
        "The `index` is a string.",
        Act::Events(|events, _, _| {
            each_call_delta(events, |call, _| call["index"] = call["index"].to_string().into());
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "calls-interleaved",
        CHAT,
        "The deltas of two calls alternate.",
        Act::Events(|events, _, _| interleave(events)),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "calls-in-one-delta",
        CHAT,
        "Two whole calls stand in the `tool_calls` of one delta.",
        Act::Events(|events, _, _| {
            join_arguments(events);
            let mut calls = Vec::new();
            each_call_delta(events, |call, _| calls.push(call.take()));
            let Some(at) = events.iter().position(is_call) else { return };
            if let Some(data) = events[at].json_mut() {
                data["choices"][0]["delta"]["tool_calls"] = calls.into();
            }
            let mut number = 0;
            events.retain(|event| {
                number += 1;
                number == at + 1 || !is_call(event)
            });
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-type-missing",
        CHAT,
        "Tool-call deltas have no `type`.",
        Act::Events(|events, _, _| each_call_delta(events, |call, _| remove(call, "type"))),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-name-repeated",
        CHAT,
        "The name of the tool stands in every delta and must not be joined to itself.",
        Act::Events(|events, reply, _| {
            let name = reply.calls.first().map_or("", |call| &call.name);
            each_call_delta(events, |call, _| call["function"]["name"] = name.into());
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-name-missing",
        BOTH,
        "A call has an empty name; it needs an error result, and history must stay valid.",
        Act::Reply(|reply| reply.calls.iter_mut().for_each(|call| call.name.clear())),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-unknown-tool",
        BOTH,
        "A call names a tool that was not offered; it needs an error result.",
        Act::Reply(|reply| reply.calls.iter_mut().for_each(|call| call.name = "launch_rocket".into())),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-in-final-chunk",
        CHAT,
        "The whole call comes in the chunk that also has the `finish_reason`.",
        Act::Events(|events, reply, _| {
            join_arguments(events);
            if let Some(at) = events.iter().position(is_call) {
                if let Some(data) = events[at].json_mut() {
                    data["choices"][0]["finish_reason"] = "tool_calls".into();
                }
                events.truncate(at + 1);
                events.push(crate::wire::chat::late_usage(reply));
                events.push(Event::Text("[DONE]".into()));
            }
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-arguments-by-letter",
        BOTH,
        "Arguments come letter by letter.",
        Act::Reply(|reply| reply.deltas.size = Some(1)),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-arguments-whole",
        BOTH,
        "A call comes whole in one delta (Chat), or its arguments do (Responses).",
        Act::Events(|events, _, _| {
            join_arguments(events);
            let mut whole: BTreeMap<u64, String> = BTreeMap::new();
            let is_piece = |data: &Value| data["type"] == "response.function_call_arguments.delta";
            for data in events.iter().filter_map(Event::json).filter(|data| is_piece(data)) {
                let index = data["output_index"].as_u64().unwrap_or(0);
                whole.entry(index).or_default().push_str(data["delta"].as_str().unwrap_or(""));
            }
            events.retain_mut(|event| match event.json_mut() {
                Some(data) if is_piece(data) => {
                    let index = data["output_index"].as_u64().unwrap_or(0);
                    whole.remove(&index).map(|text| data["delta"] = text.into()).is_some()
                }
                _ => true,
            });
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-arguments-object",
        BOTH,
        "The arguments are a JSON object and not its text.",
        Act::Events(|events, _, _| arguments_as_object(events)),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-arguments-null-first",
        CHAT,
        "The delta that opens a call has `null` as its arguments.",
        Act::Events(|events, _, _| {
            each_call_delta(events, |call, first| {
                if first {
                    call["function"]["arguments"] = Value::Null;
                }
            });
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-arguments-empty",
        BOTH,
        "The arguments are the empty text; what is sent back must be a JSON object again.",
        Act::Reply(|reply| reply.calls.iter_mut().for_each(|call| call.arguments.clear())),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-arguments-malformed",
        BOTH,
        "The arguments are not JSON; the call needs an error result, and history must stay valid.",
        Act::Reply(|reply| {
            for call in &mut reply.calls {
                call.arguments = "{\"path\": notes.txt, \"and".into();
            }
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-arguments-not-object",
        BOTH,
        "The arguments are a JSON array; the call needs an error result, and history must stay valid.",
        Act::Reply(|reply| {
            reply.calls.iter_mut().for_each(|call| call.arguments = "[\"notes.txt\"]".into());
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-arguments-twice-encoded",
        BOTH,
        "The arguments are a JSON string that holds the JSON object.",
        Act::Reply(|reply| {
            for call in &mut reply.calls {
                call.arguments = Value::from(call.arguments.as_str()).to_string();
            }
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-arguments-truncated",
        BOTH,
        "The output limit cuts the arguments; the client drops the call and asks again.",
        Act::Reply(|reply| {
            reply.finish = Finish::Length;
            for call in &mut reply.calls {
                call.arguments.truncate(8);
            }
        }),
    )
    .plot(Plot::CallAgain),
    Fault::new(
        "call-ids-duplicate-parallel",
        BOTH,
        "Two parallel calls have the same id.",
        Act::Reply(|reply| reply.calls.iter_mut().for_each(|call| call.id = "call_same".into())),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "call-ids-duplicate-across-turns",
        BOTH,
        "The call of a later turn has the id of an earlier one.",
        Act::Reply(|reply| reply.calls.iter_mut().for_each(|call| call.id = "call_0".into())),
    )
    .plot(Plot::TwoTurns),
    Fault::new(
        "call-id-long-and-odd",
        BOTH,
        "The id of a call has 300 characters, among them spaces, slashes and quotes.",
        Act::Reply(|reply| {
            for (index, call) in reply.calls.iter_mut().enumerate() {
                call.id = format!("call/{index} \"{}\"", "../é".repeat(75));
            }
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "call-legacy-function",
        CHAT,
        "The call comes as the old `function_call` with the `finish_reason` `function_call`.",
        Act::Events(|events, reply, _| {
            let Some(start) = events.iter().position(is_call) else { return };
            events.truncate(start);
            if let Some(call) = reply.calls.first() {
                events.push(delta(reply, json!({"function_call": {"name": call.name, "arguments": ""}})));
                for piece in reply.split(&call.arguments) {
                    events.push(delta(reply, json!({"function_call": {"arguments": piece}})));
                }
            }
            let mut end = delta(reply, json!({}));
            if let Some(data) = end.json_mut() {
                data["choices"][0]["finish_reason"] = "function_call".into();
            }
            events.push(end);
            events.push(Event::Text("[DONE]".into()));
        }),
    )
    .plot(Plot::Call),
];
