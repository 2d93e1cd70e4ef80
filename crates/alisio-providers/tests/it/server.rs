//! A server that does exactly what a test says, byte by byte, and the client's side of a test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alisio_protocol::{AssistantMessage, Message, Usage, UserMessage};
use alisio_providers::{ApiMode, OpenAiCompatible, Settings};
use alisio_sdk::{ModelRequest, Provider, ProviderError, StopReason, StreamEvent};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// What a server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Pause(Duration),
    /// Nothing more, but the connection stays open.
    Hold,
    Close,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Request line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
    /// Counts connections.
    pub(crate) connection: usize,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Script {
    answers: Arc<Mutex<Vec<Vec<Step>>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Script {
    /// Plays one answer after the other; the last one again and again.
    pub(crate) fn new(answers: Vec<Vec<Step>>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers)), seen: Arc::default() }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn next(&self) -> Vec<Step> {
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }

    /// Answers requests on one connection until it is closed.
    pub(crate) async fn play<S: AsyncRead + AsyncWrite + Unpin>(self, mut stream: S, connection: usize) {
        let mut buffer = Vec::new();
        loop {
            let end = loop {
                if let Some(at) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                    break at + 4;
                }
                if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                    return;
                }
            };
            let head = String::from_utf8(buffer.drain(..end).collect()).unwrap().to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse().unwrap());
            while buffer.len() < length {
                if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                    return;
                }
            }
            let body = String::from_utf8(buffer.drain(..length).collect()).unwrap();
            self.seen.lock().unwrap().push(Seen { head, body, connection });
            for step in self.next() {
                match step {
                    Step::Send(bytes) => {
                        if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                            return;
                        }
                    }
                    Step::Pause(duration) => tokio::time::sleep(duration).await,
                    Step::Hold => std::future::pending().await,
                    Step::Close => return,
                }
            }
        }
    }

    /// Listens on loopback and returns `host:port`.
    pub(crate) async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = self.clone();
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                tokio::spawn(script.clone().play(stream, connection));
            }
        });
        address.to_string()
    }
}

/// An HTTP answer with a length.
pub(crate) fn plain(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let text = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len());
    vec![Step::Send(text.into_bytes())]
}

/// A stream of events whose body is cut into these HTTP chunks, without its end.
pub(crate) fn begun(pieces: &[&[u8]]) -> Vec<Step> {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    vec![Step::Send(bytes)]
}

/// The same with its end.
pub(crate) fn chunked(pieces: &[&[u8]]) -> Vec<Step> {
    let mut steps = begun(pieces);
    steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
    steps
}

pub(crate) fn settings(address: &str, api_mode: ApiMode) -> Settings {
    Settings { api_mode, ..Settings::new(format!("http://{address}/v1")) }
}

pub(crate) fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "scripted".to_owned(),
        instructions: String::new(),
        messages: Arc::new(messages),
        notice: String::new(),
        tools: Arc::default(),
        max_output_tokens: None,
        idle_timeout: Duration::from_secs(20),
    }
}

pub(crate) fn ask(text: &str) -> ModelRequest {
    request(vec![Message::User(UserMessage { text: text.to_owned(), ..UserMessage::default() })])
}

/// Everything that one request gave.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Pieces of text, as they came.
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) n_events: usize,
    pub(crate) completed: Option<(AssistantMessage, Option<Usage>, StopReason)>,
    pub(crate) error: Option<ProviderError>,
}

impl Outcome {
    pub(crate) fn message(&self) -> &AssistantMessage {
        let (message, ..) = self.completed.as_ref().unwrap_or_else(|| panic!("no answer: {:?}", self.error));
        message
    }

    pub(crate) fn error(&self) -> &ProviderError {
        self.error.as_ref().unwrap_or_else(|| panic!("no error: {:?}", self.completed))
    }

    /// Returns `name arguments` of each call.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.message().calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect()
    }
}

/// Sends a request and collects what comes; a hang is a failure.
pub(crate) async fn outcome(service: &OpenAiCompatible, request: ModelRequest) -> Outcome {
    let collected = tokio::time::timeout(Duration::from_secs(30), async {
        let mut events = service.stream(request);
        let mut outcome = Outcome::default();
        while let Some(event) = events.next().await {
            assert!(
                outcome.completed.is_none() && outcome.error.is_none(),
                "an event after the end: {event:?}"
            );
            outcome.n_events += 1;
            match event {
                Ok(StreamEvent::Text(text)) => outcome.text.push_str(&text),
                Ok(StreamEvent::Reasoning(text)) => outcome.reasoning.push_str(&text),
                Ok(StreamEvent::CallProgress) => {}
                Ok(StreamEvent::Completed { message, usage, stop }) => {
                    outcome.completed = Some((message, usage, stop))
                }
                Err(error) => outcome.error = Some(error),
            }
        }
        outcome
    });
    collected.await.expect("the stream ends")
}

/// Asks a server that plays `steps`.
pub(crate) async fn answered(api_mode: ApiMode, steps: Vec<Step>) -> Outcome {
    let address = Script::new(vec![steps]).listen().await;
    outcome(&OpenAiCompatible::new(settings(&address, api_mode)).unwrap(), ask("go on")).await
}
