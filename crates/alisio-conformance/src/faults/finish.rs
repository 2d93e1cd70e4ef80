//! Ends that lie, come twice or not at all, and answers that the output limit or a filter cut.

use alisio_sdk::ProviderErrorKind as Kind;
use serde_json::{Value, json};

use super::{Act, BOTH, CHAT, Fault, Plot};
use crate::scenario::Finish;
use crate::wire::Event;
use crate::wire::chat::delta;

/// Changes the `finish_reason` of the chunk that ends the choice.
fn set_finish(events: &mut [Event], word: Value) {
    let ends = |data: &&mut Value| data["choices"][0]["finish_reason"].is_string();
    if let Some(data) = events.iter_mut().filter_map(Event::json_mut).find(ends) {
        data["choices"][0]["finish_reason"] = word;
    }
}

pub(super) static FAULTS: &[Fault] = &[
    Fault::new(
        "finish-stop-with-calls",
        CHAT,
        "The `finish_reason` is `stop` though there are calls.",
        Act::Events(|events, _, _| set_finish(events, "stop".into())),
    )
    .plot(Plot::Call),
    Fault::new(
        "finish-tool-calls-without-calls",
        CHAT,
        "The `finish_reason` is `tool_calls` though there are none.",
        Act::Events(|events, _, _| set_finish(events, "tool_calls".into())),
    ),
    Fault::new(
        "finish-length-though-complete",
        BOTH,
        "The output limit is named as the end of an answer that is whole.",
        Act::Reply(|reply| reply.finish = Finish::Length),
    ),
    Fault::new(
        "finish-length-with-whole-call",
        BOTH,
        "The output limit is named as the end though the call is whole.",
        Act::Reply(|reply| reply.finish = Finish::Length),
    )
    .plot(Plot::Call),
    Fault::new(
        "finish-never",
        CHAT,
        "The `finish_reason` stays `null`; the stream ends with `[DONE]`.",
        Act::Events(|events, _, _| set_finish(events, Value::Null)),
    ),
    Fault::new(
        "finish-empty-text",
        CHAT,
        "Every chunk before the last has the empty text as `finish_reason`.",
        Act::Events(|events, _, _| {
            for data in events.iter_mut().filter_map(Event::json_mut) {
                if let Some(reason) = data.pointer_mut("/choices/0/finish_reason")
                    && reason.is_null()
                {
                    *reason = "".into();
                }
            }
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "finish-unknown-word",
        CHAT,
        "The `finish_reason` is a word that nobody knows.",
        Act::Events(|events, _, _| set_finish(events, "eos_token".into())),
    ),
    Fault::new(
        "finish-twice",
        CHAT,
        "The `finish_reason` comes twice, the second time with another word.",
        Act::Events(|events, reply, _| {
            let mut again = delta(reply, json!({}));
            if let Some(data) = again.json_mut() {
                data["choices"][0]["finish_reason"] = "stop".into();
            }
            let at = events.iter().rposition(|event| matches!(event, Event::Text(_))).unwrap_or(events.len());
            events.insert(at, again);
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "finish-length-empty",
        BOTH,
        "The output limit is reached before any text; the client asks again.",
        Act::Reply(|reply| {
            reply.finish = Finish::Length;
            reply.text.clear();
            reply.calls.clear();
        }),
    )
    .plot(Plot::CallAgain),
    Fault::new(
        "finish-content-filter",
        BOTH,
        "The answer is withheld by a filter: no text, and the end says `content_filter`.",
        Act::Reply(|reply| {
            reply.finish = Finish::ContentFilter;
            reply.text.clear();
        }),
    )
    .fails(Kind::Rejected, &["filter", "withheld"])
    .in_process_plain(),
];
