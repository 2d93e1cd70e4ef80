//! Connections that break, fall silent or speak something else.

use alisio_sdk::ProviderErrorKind as Kind;

use super::{Act, BOTH, Fault, Plot};
use crate::wire::{Answer, Event, Piece};

const BROKE: &[&str] =
    &["connection", "broke", "dropped", "closed", "reset", "ended", "incomplete", "interrupted"];
const SILENT: &[&str] = &["idle", "silent", "silence", "stalled", "timed out", "no event", "nothing"];

fn cut(events: &mut Vec<Event>, at: usize, piece: Piece) {
    events.truncate(at);
    events.push(Event::Raw(vec![piece]));
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

fn raw(head: &str, body: &[u8]) -> Vec<u8> {
    [HEAD.as_bytes(), head.as_bytes(), b"\r\n", body].concat()
}

pub(super) static FAULTS: &[Fault] = &[
    Fault::new(
        "close-before-headers",
        BOTH,
        "The connection ends without a byte, then the next one is answered.",
        Act::Answer(|_, _| Answer::Close),
    )
    .again(Kind::Connection),
    Fault::new(
        "reset-before-headers",
        BOTH,
        "The connection is reset without a byte, then the next one is answered.",
        Act::Answer(|_, _| Answer::Reset),
    )
    .again(Kind::Connection),
    Fault::new(
        "drop-after-headers",
        BOTH,
        "The connection ends after the headers, then the next one is answered.",
        Act::Answer(|_, _| Answer::stream(vec![Piece::Drop])),
    )
    .again(Kind::Connection),
    Fault::new(
        "drop-before-first-delta",
        BOTH,
        "The connection ends after an event that holds no text, then the next one is answered.",
        Act::Events(|events, _, _| cut(events, 1, Piece::Drop)),
    )
    .again(Kind::Connection),
    Fault::new(
        "drop-after-text",
        BOTH,
        "The connection ends after the first text; sending again would say it twice.",
        Act::Events(|events, _, _| cut(events, super::after_first_text(events), Piece::Drop)),
    )
    .midway(Kind::Connection, BROKE),
    Fault::new(
        "reset-after-text",
        BOTH,
        "The connection is reset after the first text.",
        Act::Events(|events, _, _| cut(events, super::after_first_text(events), Piece::Reset)),
    )
    .midway(Kind::Connection, BROKE),
    Fault::new(
        "drop-in-call",
        BOTH,
        "The connection ends in the middle of a call's arguments.",
        Act::Events(|events, _, _| cut(events, super::after_first_arguments(events), Piece::Drop)),
    )
    .midway(Kind::Connection, BROKE),
    Fault::new(
        "end-in-call",
        BOTH,
        "The stream ends in good order in the middle of a call's arguments.",
        Act::Events(|events, _, _| events.truncate(super::after_first_arguments(events))),
    )
    .midway(Kind::Protocol, &["ended", "end", "incomplete", "without", "connection"]),
    Fault::new(
        "end-after-text",
        BOTH,
        "The stream ends in good order after the first text, without any sign of the end.",
        Act::Events(|events, _, _| events.truncate(super::after_first_text(events))),
    )
    .midway(Kind::Protocol, &["ended", "end", "incomplete", "without", "connection"]),
    Fault::new(
        "stall-after-text",
        BOTH,
        "Nothing comes any more after the first text; a client needs an idle limit.",
        Act::Events(|events, _, _| cut(events, super::after_first_text(events), Piece::Stall)),
    )
    .midway(Kind::Idle, SILENT),
    Fault::new(
        "stall-in-call",
        BOTH,
        "Nothing comes any more in the middle of a call's arguments.",
        Act::Events(|events, _, _| cut(events, super::after_first_arguments(events), Piece::Stall)),
    )
    .midway(Kind::Idle, SILENT),
    Fault::new(
        "silence-after-headers",
        BOTH,
        "Headers come and then nothing; a client needs a first-token limit. The next request is answered.",
        Act::Answer(|_, _| Answer::stream(vec![Piece::Stall])),
    )
    .again(Kind::Idle)
    .in_process_silent(),
    Fault::new(
        "silence-before-headers",
        BOTH,
        "The request is read and nothing comes, not even headers. The next request is answered.",
        Act::Answer(|_, _| Answer::Silence),
    )
    .again(Kind::Idle)
    .in_process_silent(),
    Fault::new(
        "not-http",
        BOTH,
        "The server speaks something that is not HTTP, then it does.",
        Act::Answer(|_, _| Answer::Raw(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n".to_vec())),
    )
    .again(Kind::Connection),
    Fault::new(
        "http1-close-delimited",
        BOTH,
        "The body has neither a length nor chunks and ends with the connection (HTTP/1.1 only).",
        Act::Raw(|body| raw("connection: close\r\n", &body)),
    )
    .plot(Plot::Call),
    Fault::new(
        "http1-early-hints",
        BOTH,
        "Responses 100 and 103 come before the real one (HTTP/1.1 only).",
        Act::Raw(|body| {
            let hints =
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n";
            [&hints[..], &raw("connection: close\r\n", &body)].concat()
        }),
    )
    .plot(Plot::Call),
    Fault::new(
        "http1-length-short",
        BOTH,
        "More bytes are promised than come, but the stream of events is whole (HTTP/1.1 only).",
        Act::Raw(|body| raw(&format!("content-length: {}\r\n", body.len() + 1000), &body)),
    ),
    Fault::new(
        "http1-chunk-broken",
        BOTH,
        "The size of a chunk is not a number (HTTP/1.1 only).",
        Act::Raw(|body| {
            let half = body.get(..body.len() / 2).unwrap_or(&body);
            let mut bytes = raw("transfer-encoding: chunked\r\n", format!("{:x}\r\n", half.len()).as_bytes());
            bytes.extend_from_slice(half);
            bytes.extend_from_slice(b"\r\nnonsense\r\n");
            bytes
        }),
    )
    .midway(Kind::Connection, &["connection", "broke", "body", "chunk", "decod", "protocol", "malformed"]),
];
