//! The wire: how a reply becomes events, events become bytes, and bytes become what the socket does.
//!
//! Every stage is plain data, so that a fault can change one of them and leave the others alone. Nothing here touches
//! a socket.

pub(crate) mod chat;
pub(crate) mod responses;

use std::time::Duration;

use bytes::Bytes;
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::reply::Reply;

/// A wire format.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
}

impl Api {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Chat, Self::Responses];

    /// The word used in files and arguments.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }
}

/// One server-sent event, or what stands in its place.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A JSON event.
    Json { name: Option<String>, data: Value },
    /// Text that is not JSON, as `[DONE]`.
    Text(String),
    /// The same event many times over.
    Many { name: Option<String>, data: String, count: usize, pause: Duration, per_write: usize },
    /// Bytes and acts that are no event.
    Raw(Vec<Piece>),
}

impl Event {
    /// Makes an event of the Chat Completions API, which has no name.
    pub(crate) fn chat(data: Value) -> Self {
        Self::Json { name: None, data }
    }

    /// Makes an event of the Responses API, named by its type.
    pub(crate) fn typed(data: Value) -> Self {
        Self::Json { name: data["type"].as_str().map(str::to_owned), data }
    }

    /// Makes bytes that stand between events.
    pub(crate) fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::Raw(vec![Piece::Bytes(bytes.into())])
    }

    /// The JSON of an event.
    pub(crate) fn json(&self) -> Option<&Value> {
        match self {
            Self::Json { data, .. } => Some(data),
            _ => None,
        }
    }

    /// The JSON of an event, to change it.
    pub(crate) fn json_mut(&mut self) -> Option<&mut Value> {
        match self {
            Self::Json { data, .. } => Some(data),
            _ => None,
        }
    }
}

/// What a body does next.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// Sends bytes as a chunk of their own.
    Bytes(Bytes),
    /// Sends the same bytes `count` times, with a pause after each.
    Many { bytes: Bytes, count: usize, pause: Duration },
    /// Says nothing for a while.
    Pause(Duration),
    /// Says nothing any more and keeps the connection.
    Stall,
    /// Ends the connection in the middle of the body.
    Drop,
    /// Ends the connection in the middle of the body with a TCP reset.
    Reset,
}

/// What a request gets.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// An HTTP response.
    Http { status: u16, headers: Vec<(&'static str, String)>, body: Vec<Piece> },
    /// These bytes instead of what an HTTP server would write; then the connection ends.
    Raw(Vec<u8>),
    /// The end of the connection, without a byte.
    Close,
    /// The same, as a TCP reset.
    Reset,
    /// Nothing at all, for ever.
    Silence,
}

impl Answer {
    /// Makes a response of JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::body(status, "application/json", body.to_string())
    }

    /// Makes a response of one piece.
    pub(crate) fn body(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let body = vec![Piece::Bytes(body.into())];
        Self::Http { status, headers: vec![("content-type", content_type.to_owned())], body }
    }

    /// Makes a stream of events.
    pub(crate) fn stream(body: Vec<Piece>) -> Self {
        let headers =
            vec![("content-type", "text/event-stream".to_owned()), ("cache-control", "no-cache".to_owned())];
        Self::Http { status: 200, headers, body }
    }

    /// Makes the error that OpenAI's services give.
    pub(crate) fn error(status: u16, kind: &str, code: Option<&str>, message: &str) -> Self {
        Self::json(status, &error_object(kind, code, message))
    }

    /// Adds a header.
    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Http { headers, .. } = &mut self {
            headers.push((name, value.into()));
        }
        self
    }
}

/// Makes `{"error": …}` as OpenAI's services write it.
pub(crate) fn error_object(kind: &str, code: Option<&str>, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// Makes the events of a reply.
pub(crate) fn events(api: Api, reply: &Reply, include_usage: bool) -> Vec<Event> {
    match api {
        Api::Chat => chat::events(reply, include_usage),
        Api::Responses => responses::events(reply),
    }
}

/// Makes the one JSON body of a reply that was not asked for as a stream.
pub(crate) fn whole(api: Api, reply: &Reply) -> Value {
    match api {
        Api::Chat => chat::whole(reply),
        Api::Responses => responses::whole(reply),
    }
}

/// How one event is written.
pub(crate) type Frame = fn(name: Option<&str>, data: &str) -> Vec<u8>;

/// Writes an event as it should be.
pub(crate) fn plain_frame(name: Option<&str>, data: &str) -> Vec<u8> {
    let mut frame = String::with_capacity(data.len() + 40);
    if let Some(name) = name {
        frame.push_str("event: ");
        frame.push_str(name);
        frame.push('\n');
    }
    frame.push_str("data: ");
    frame.push_str(data);
    frame.push_str("\n\n");
    frame.into_bytes()
}

/// Writes events, one piece each.
pub(crate) fn pieces(events: Vec<Event>, frame: Frame) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(events.len());
    for event in events {
        match event {
            Event::Json { name, data } => {
                pieces.push(Piece::Bytes(frame(name.as_deref(), &data.to_string()).into()));
            }
            Event::Text(text) => pieces.push(Piece::Bytes(frame(None, &text).into())),
            Event::Many { name, data, count, pause, per_write } => {
                let one = frame(name.as_deref(), &data);
                let (whole, rest) = (count / per_write, count % per_write);
                pieces.push(Piece::Many { bytes: one.repeat(per_write).into(), count: whole, pause });
                pieces.push(Piece::Bytes(one.repeat(rest).into()));
            }
            Event::Raw(raw) => pieces.extend(raw),
        }
    }
    pieces
}

/// Joins the bytes of pieces; pauses and acts are left out.
pub(crate) fn joined(pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(part) => bytes.extend_from_slice(part),
            Piece::Many { bytes: part, count, .. } => bytes.extend(part.repeat(*count)),
            Piece::Pause(_) | Piece::Stall | Piece::Drop | Piece::Reset => {}
        }
    }
    bytes
}
