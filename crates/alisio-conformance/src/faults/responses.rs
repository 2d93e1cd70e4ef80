//! What only the Responses API can get wrong.

use alisio_sdk::ProviderErrorKind as Kind;
use serde_json::{Value, json};

use super::{Act, Fault, Plot, RESPONSES};
use crate::scenario::Finish;
use crate::wire::Event;
use crate::wire::responses::response;

/// The fault whose scenario carries encrypted reasoning.
pub(super) const ENCRYPTED_REASONING: &str = "resp-encrypted-reasoning";

fn is_type(event: &Event, kinds: &[&str]) -> bool {
    event.json().and_then(|data| data["type"].as_str()).is_some_and(|kind| kinds.contains(&kind))
}

/// Takes away every event of these types.
fn without(events: &mut Vec<Event>, kinds: &[&str]) {
    events.retain(|event| !is_type(event, kinds));
}

/// Changes the response object of the last event.
fn edit_final(events: &mut [Event], edit: impl FnOnce(&mut Value)) {
    let last = events.iter_mut().rev().find_map(Event::json_mut);
    if let Some(response) = last.and_then(|data| data.get_mut("response")) {
        edit(response);
    }
}

/// Removes a field, wherever it stands directly in an event.
fn remove_field(events: &mut [Event], field: &str) {
    for object in events.iter_mut().filter_map(Event::json_mut).filter_map(Value::as_object_mut) {
        object.remove(field);
    }
}

const TEXT_DELTAS: &[&str] = &[
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.added",
];

pub(super) static FAULTS: &[Fault] = &[
    Fault::new(
        "resp-failed",
        RESPONSES,
        "The stream ends with `response.failed`.",
        Act::Events(|events, reply, _| {
            events.truncate(2);
            let mut failed = response(reply, "failed", json!([]));
            failed["error"] = json!({"code": "invalid_prompt", "message": "The prompt was found invalid."});
            events.push(Event::typed(json!({"type": "response.failed", "response": failed})));
        }),
    )
    .fails(Kind::Rejected, &["found invalid"]),
    Fault::new(
        "resp-failed-server-error",
        RESPONSES,
        "`response.failed` with `server_error` before any text, then the answer.",
        Act::Events(|events, reply, _| {
            events.truncate(2);
            let mut failed = response(reply, "failed", json!([]));
            failed["error"] = json!({"code": "server_error", "message": "The server had an error."});
            events.push(Event::typed(json!({"type": "response.failed", "response": failed})));
        }),
    )
    .again(Kind::Server),
    Fault::new(
        "resp-error-event-nested",
        RESPONSES,
        "An `error` event has its message inside an `error` object.",
        Act::Events(|events, _, _| {
            events.truncate(2);
            let error =
                json!({"type": "invalid_request_error", "code": null, "message": "The input is odd."});
            events.push(Event::typed(json!({"type": "error", "error": error})));
        }),
    )
    .fails(Kind::Rejected, &["input is odd"]),
    Fault::new(
        "resp-incomplete-text",
        RESPONSES,
        "`response.incomplete` for the output limit after usable text.",
        Act::Reply(|reply| reply.finish = Finish::Length),
    ),
    Fault::new(
        "resp-index-out-of-order",
        RESPONSES,
        "The items of two calls come interleaved and the second one first.",
        Act::Events(|events, _, _| {
            let of = |index: u64| {
                let is_of =
                    move |event: &&Event| event.json().is_some_and(|data| data["output_index"] == index);
                events.iter().filter(is_of).cloned().collect::<Vec<_>>()
            };
            let last =
                events.iter().filter_map(|event| event.json()?["output_index"].as_u64()).max().unwrap_or(1);
            let (second, first) = (of(last), of(last - 1));
            let is_call = |event: &Event| {
                event
                    .json()
                    .is_some_and(|data| data["output_index"] == last || data["output_index"] == last - 1)
            };
            let at = events.iter().position(is_call).unwrap_or(events.len());
            let mixed: Vec<Event> = second.into_iter().zip(first).flat_map(|(b, a)| [b, a]).collect();
            events.retain(|event| !is_call(event));
            events.splice(at..at, mixed);
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "resp-completed-missing",
        RESPONSES,
        "Every item is done, but the stream ends without `response.completed`.",
        Act::Events(|events, _, _| without(events, &["response.completed"])),
    )
    .midway(Kind::Protocol, &["ended", "end", "completed", "incomplete", "without"]),
    Fault::new(
        "resp-completed-without-output",
        RESPONSES,
        "`response.completed` has an empty `output`; the items count.",
        Act::Events(|events, _, _| edit_final(events, |response| response["output"] = json!([]))),
    )
    .plot(Plot::Call),
    Fault::new(
        "resp-items-without-deltas",
        RESPONSES,
        "Items come only as `response.output_item.done`.",
        Act::Events(|events, _, _| without(events, TEXT_DELTAS)),
    )
    .plot(Plot::Call),
    Fault::new(
        "resp-deltas-without-item-done",
        RESPONSES,
        "`response.output_item.done` never comes; the deltas and `response.completed` do.",
        Act::Events(|events, _, _| without(events, &["response.output_item.done"])),
    )
    .plot(Plot::Call),
    Fault::new(
        "resp-only-completed",
        RESPONSES,
        "The whole answer stands in `response.completed` alone.",
        Act::Events(|events, _, _| {
            let last = events.len() - 1;
            events.drain(..last);
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "resp-arguments-only-in-done",
        RESPONSES,
        "The arguments of a call come only in `response.function_call_arguments.done`.",
        Act::Events(|events, _, _| {
            without(events, &["response.function_call_arguments.delta"]);
            let blank = |item: &mut Value| {
                if item["type"] == "function_call" {
                    item["arguments"] = "".into();
                }
            };
            for data in events.iter_mut().filter_map(Event::json_mut) {
                if let Some(item) = data.get_mut("item") {
                    blank(item);
                }
                let output = data.pointer_mut("/response/output").and_then(Value::as_array_mut);
                output.into_iter().flatten().for_each(blank);
            }
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "resp-unknown-events",
        RESPONSES,
        "Events and items of unknown types come between the others.",
        Act::Events(|events, _, _| {
            let queued = json!({"type": "response.queued", "response": {"id": "resp_0", "status": "queued"}});
            events.insert(0, Event::typed(queued));
            events
                .insert(3, Event::typed(json!({"type": "vendor.rate_limits", "limits": {"primary": null}})));
            let item = json!({"type": "web_search_call", "id": "ws_0", "status": "completed"});
            let done = json!({"type": "response.output_item.done", "output_index": 99, "item": item});
            events.insert(4, Event::typed(done));
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        ENCRYPTED_REASONING,
        RESPONSES,
        "A reasoning item with encrypted content comes before a call and has to be sent back.",
        Act::Events(|_, _, _| ()),
    )
    .plot(Plot::Call),
    Fault::new(
        "resp-item-ids-missing",
        RESPONSES,
        "Events have no `item_id` and items no `id`.",
        Act::Events(|events, _, _| {
            remove_field(events, "item_id");
            for data in events.iter_mut().filter_map(Event::json_mut) {
                if let Some(item) = data.get_mut("item").and_then(Value::as_object_mut) {
                    item.remove("id");
                }
            }
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "resp-item-ids-change",
        RESPONSES,
        "The id of an item is another one in every event.",
        Act::Events(|events, _, _| {
            for (number, data) in events.iter_mut().filter_map(Event::json_mut).enumerate() {
                for place in ["/item_id", "/item/id"] {
                    if let Some(id) = data.pointer_mut(place) {
                        *id = format!("changing_{number}").into();
                    }
                }
            }
        }),
    )
    .plot(Plot::TwoCalls),
    Fault::new(
        "resp-sequence-missing",
        RESPONSES,
        "Events have no `sequence_number`.",
        Act::Events(|events, _, _| remove_field(events, "sequence_number")),
    ),
    Fault::new(
        "resp-done-sentinel",
        RESPONSES,
        "`[DONE]` follows `response.completed`.",
        Act::Events(|events, _, _| events.push(Event::Text("[DONE]".into()))),
    )
    .plot(Plot::Call),
    Fault::new(
        "resp-created-missing",
        RESPONSES,
        "The stream begins with an item, without `response.created`.",
        Act::Events(|events, _, _| without(events, &["response.created", "response.in_progress"])),
    )
    .plot(Plot::Call),
    Fault::new(
        "resp-status-lies",
        RESPONSES,
        "`response.completed` holds a response whose `status` is `in_progress`.",
        Act::Events(|events, _, _| {
            edit_final(events, |response| response["status"] = "in_progress".into());
        }),
    ),
];
