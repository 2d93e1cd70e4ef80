//! Server-sent events in every dress that the standard allows, and some that it does not.

use std::time::Duration;

use alisio_sdk::ProviderErrorKind as Kind;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{Act, BOTH, CHAT, Fault, Plot, RESPONSES};
use crate::wire::{Event, Piece, joined, plain_frame};

/// Writes an event and then changes its text.
fn rewritten(name: Option<&str>, data: &str, change: impl Fn(String) -> String) -> Vec<u8> {
    let frame = plain_frame(name, data);
    change(String::from_utf8_lossy(&frame).into_owned()).into_bytes()
}

/// Cuts bytes so that every letter of several bytes is cut.
fn cut_letters(bytes: &Bytes) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for at in 1..bytes.len() {
        let continues = bytes[at] & 0b1100_0000 == 0b1000_0000;
        if continues {
            pieces.push(Piece::Bytes(bytes.slice(start..at)));
            start = at;
        }
    }
    pieces.push(Piece::Bytes(bytes.slice(start..)));
    pieces
}

/// Puts raw bytes before every event.
fn before_each(events: &mut Vec<Event>, bytes: &'static [u8]) {
    *events = std::mem::take(events).into_iter().flat_map(|event| [Event::bytes(bytes), event]).collect();
}

pub(super) static FAULTS: &[Fault] = &[
    Fault::new(
        "sse-comments",
        BOTH,
        "Comment lines stand before, between and inside events.",
        Act::Frame(|name, data| {
            rewritten(name, data, |frame| {
                format!(": OPENROUTER PROCESSING\n\n:\n{}", frame.replacen("data: ", ":inside\ndata: ", 1))
            })
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-blank-lines",
        BOTH,
        "Several blank lines stand between events.",
        Act::Frame(|name, data| rewritten(name, data, |frame| format!("\n\n\n{frame}\n\n\n"))),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-crlf",
        BOTH,
        "Lines end with CR LF.",
        Act::Frame(|name, data| rewritten(name, data, |frame| frame.replace('\n', "\r\n"))),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-crlf-cut",
        BOTH,
        "Lines end with CR LF, and chunks are cut between the two.",
        Act::Pieces(|pieces, _| {
            let text = String::from_utf8_lossy(&joined(&pieces)).replace('\n', "\r\n");
            text.split_inclusive('\r').map(|part| Piece::Bytes(part.to_owned().into())).collect()
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-lone-cr",
        BOTH,
        "Lines end with a lone CR.",
        Act::Frame(|name, data| rewritten(name, data, |frame| frame.replace('\n', "\r"))),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-byte-order-mark",
        BOTH,
        "The stream begins with a byte-order mark.",
        Act::Events(|events, _, _| events.insert(0, Event::bytes(&b"\xef\xbb\xbf"[..]))),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-no-space",
        BOTH,
        "No space follows `data:`.",
        Act::Frame(|name, data| {
            rewritten(name, data, |frame| {
                frame.replacen("event: ", "event:", 1).replacen("data: ", "data:", 1)
            })
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-data-over-lines",
        BOTH,
        "The JSON of an event is spread over several `data:` lines.",
        Act::Frame(|name, data| {
            let pretty = serde_json::from_str::<Value>(data)
                .and_then(|value| serde_json::to_string_pretty(&value))
                .unwrap_or_else(|_| data.to_owned());
            plain_frame(name, &pretty.replace('\n', "\ndata: "))
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-extra-fields",
        BOTH,
        "Events have `event:`, `id:`, `retry:` and unknown fields.",
        Act::Frame(|name, data| {
            rewritten(Some(name.unwrap_or("message")), data, |frame| {
                format!("id: 7\nretry: 100\nunknown: field\nfield-without-colon\n{frame}")
            })
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-no-event-names",
        RESPONSES,
        "Events have no `event:` line; the type stands in the JSON alone.",
        Act::Frame(|_, data| plain_frame(None, data)),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-empty-data",
        BOTH,
        "Events without data and with empty data stand between the others.",
        Act::Events(|events, _, _| before_each(events, b"event: ping\n\ndata:\n\ndata: \n\n")),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-pings",
        BOTH,
        "`event: ping` with a JSON object comes between the others.",
        Act::Events(|events, _, _| before_each(events, b"event: ping\ndata: {\"type\": \"ping\"}\n\n")),
    )
    .plot(Plot::Call),
    Fault::new(
        "sse-invalid-utf8-comment",
        BOTH,
        "A comment holds bytes that are not UTF-8.",
        Act::Events(|events, _, _| before_each(events, b": \xff\xfe\xc3\n\n")),
    ),
    Fault::new(
        "sse-json-invalid",
        BOTH,
        "An event in the middle is not JSON.",
        Act::Events(|events, _, _| {
            let at = super::after_first_text(events);
            events.insert(at, Event::bytes(&b"data: {\"choices\": [{\"index\": 0, \"del\n\n"[..]));
        }),
    )
    .midway(Kind::Protocol, &["JSON", "malformed", "parse", "protocol"]),
    Fault::new(
        "cut-utf8",
        BOTH,
        "Chunks are cut inside letters of two, three and four bytes.",
        Act::Pieces(|pieces, _| cut_letters(&joined(&pieces).into())),
    )
    .plot(Plot::Call),
    Fault::new(
        "cut-every-byte",
        BOTH,
        "Every byte is a chunk of its own.",
        Act::Pieces(|pieces, _| {
            let bytes = Bytes::from(joined(&pieces));
            (0..bytes.len()).map(|at| Piece::Bytes(bytes.slice(at..=at))).collect()
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "cut-nowhere",
        BOTH,
        "The whole stream is one chunk.",
        Act::Pieces(|pieces, _| vec![Piece::Bytes(joined(&pieces).into())]),
    )
    .plot(Plot::Call),
    Fault::new(
        "keep-alive-silence",
        BOTH,
        "Only comments come for a while (`ms`, 300), then the answer.",
        Act::Pieces(|pieces, given| {
            let rounds = given.parameters.ms.unwrap_or(300).div_ceil(50);
            let wait = [
                Piece::Bytes(Bytes::from_static(b": keep-alive\n\n")),
                Piece::Pause(Duration::from_millis(50)),
            ];
            let silence = std::iter::repeat_n(wait, usize::try_from(rounds).unwrap_or(1)).flatten();
            silence.chain(pieces).collect()
        }),
    ),
    Fault::new(
        "pause-between-events",
        BOTH,
        "The stream pauses (`ms`, 100) in the middle and goes on.",
        Act::Events(|events, _, given| {
            let pause = Duration::from_millis(given.parameters.ms.unwrap_or(100));
            let at = super::after_first_text(events);
            events.insert(at, Event::Raw(vec![Piece::Pause(pause)]));
        }),
    ),
    Fault::new(
        "done-missing",
        CHAT,
        "The stream ends after the `finish_reason` without `[DONE]`.",
        Act::Events(|events, _, _| events.retain(|event| !matches!(event, Event::Text(_)))),
    )
    .plot(Plot::Call),
    Fault::new(
        "done-without-close",
        CHAT,
        "After `[DONE]` the connection stays open and silent.",
        Act::Events(|events, _, _| events.push(Event::Raw(vec![Piece::Stall]))),
    ),
    Fault::new(
        "done-then-more",
        BOTH,
        "More data comes after the end, and it must not count.",
        Act::Events(|events, reply, given| {
            let more = match given.api {
                crate::wire::Api::Chat => {
                    crate::wire::chat::delta(reply, json!({"content": " Or is it 43?"}))
                }
                crate::wire::Api::Responses => Event::typed(json!({
                    "type": "response.output_text.delta", "item_id": "msg_0", "output_index": 0,
                    "content_index": 0, "delta": " Or is it 43?",
                })),
            };
            events.push(more);
        }),
    ),
    Fault::new(
        "last-event-unterminated",
        BOTH,
        "No line end follows the last event.",
        Act::Pieces(|mut pieces, _| {
            if let Some(Piece::Bytes(last)) = pieces.last_mut() {
                *last = last.slice(..last.len().saturating_sub(2));
            }
            pieces
        }),
    ),
    Fault::new(
        "line-huge",
        BOTH,
        "One event is a line of 2 MiB (`bytes`), most of it padding.",
        Act::Events(|events, _, given| {
            let padding = "x".repeat(given.parameters.bytes.unwrap_or(2 << 20));
            let at = super::after_first_text(events) - 1;
            if let Some(data) = events.get_mut(at).and_then(Event::json_mut) {
                data["padding"] = padding.into();
            }
        }),
    ),
    Fault::new(
        "line-endless",
        BOTH,
        "A line goes on for 64 MiB (`bytes`) without an end; a client needs a bound.",
        Act::Pieces(|_, given| {
            let bytes = given.parameters.bytes.unwrap_or(64 << 20);
            let block = Bytes::from(vec![b'x'; 1 << 16]);
            vec![
                Piece::Bytes(Bytes::from_static(b"data: {\"padding\": \"")),
                Piece::Many { bytes: block, count: bytes >> 16, pause: Duration::ZERO },
            ]
        }),
    )
    .fails(Kind::Protocol, &["line", "long", "large", "big", "limit", "exceed", "MiB"]),
];
