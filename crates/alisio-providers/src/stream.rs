//! One exchange: the request goes out, bytes come in, events leave.
//!
//! A plain state machine: no task, no channel, no timer beside the one that measures silence. It looks at the first
//! byte to tell events from a JSON object, an HTML page and plain text, since content types lie.

use std::sync::Arc;
use std::time::Duration;

use alisio_sdk::{ModelRequest, ProviderError, ProviderErrorKind as Kind, StreamEvent};
use reqwest::Response;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use crate::calls::Ids;
use crate::chat::ChatAnswer;
use crate::client::Service;
use crate::fault::{Told, fault, html, quoted};
use crate::pieces::Pieces;
use crate::responses::ResponsesAnswer;
use crate::settings::ApiMode;
use crate::sse::{Flow, LIMIT, Sse, TooLong};

/// How long `[DONE]` and late usage are waited for once the service said that it is finished.
const GRACE: Duration = Duration::from_secs(5);
/// How long the end of the body is waited for after the end of the answer, before and behind the caller's back.
const DRAIN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(2));
/// The largest answer that is taken, in bytes on the wire.
const ANSWER_LIMIT: usize = 256 << 20;

/// One request and its answer.
pub(crate) struct Exchange {
    service: Arc<Service>,
    phase: Phase,
    ready: Pieces,
}

enum Phase {
    Send(Box<ModelRequest>),
    Read(Box<Reading>),
    Failed(Box<ProviderError>),
    Over,
}

impl Exchange {
    pub(crate) fn new(service: Arc<Service>, request: ModelRequest) -> Self {
        Self { service, phase: Phase::Send(Box::new(request)), ready: Pieces::default() }
    }

    /// Returns the next event; `None` when it is over.
    pub(crate) async fn next(&mut self) -> Option<Result<StreamEvent, ProviderError>> {
        loop {
            if let Some(event) = self.ready.pop() {
                return Some(Ok(event));
            }
            let outcome = match &mut self.phase {
                Phase::Send(request) => match self.service.send(request).await {
                    Ok(response) => {
                        let reading = Reading::new(response, request, &self.service);
                        self.phase = Phase::Read(Box::new(reading));
                        continue;
                    }
                    Err(error) => Err(error),
                },
                Phase::Read(reading) => reading.step(&mut self.ready).await,
                Phase::Failed(error) => {
                    let error = std::mem::replace(&mut **error, fault(Kind::Protocol, ""));
                    self.phase = Phase::Over;
                    return Some(Err(self.service.scrub(error)));
                }
                Phase::Over => return None,
            };
            // What came before the fault is handed on first.
            match outcome {
                Ok(Flow::More) => {}
                Ok(Flow::End) => self.phase = Phase::Over,
                Err(error) => self.phase = Phase::Failed(Box::new(error)),
            }
        }
    }
}

/// What the body turned out to be.
enum Body {
    /// Nothing but white space came.
    Blank,
    Events(Sse),
    Json(Vec<u8>),
    Html(Vec<u8>),
}

enum Answer {
    Chat(ChatAnswer),
    Responses(ResponsesAnswer),
}

struct Reading {
    /// `None` once the answer is whole.
    response: Option<Response>,
    host: String,
    body: Body,
    answer: Answer,
    /// The conversation, for the ids in it.
    request: ModelRequest,
    /// When silence has lasted too long; `None` until something came that shows.
    deadline: Option<Instant>,
    n_bytes: usize,
    n_events: usize,
    /// The beginning of what is no event, to be quoted.
    sample: Vec<u8>,
}

impl Reading {
    fn new(response: Response, request: &ModelRequest, service: &Service) -> Self {
        let answer = match service.api_mode() {
            ApiMode::Chat => Answer::Chat(ChatAnswer::default()),
            ApiMode::Responses => Answer::Responses(ResponsesAnswer::default()),
        };
        Self {
            response: Some(response),
            host: service.host().to_owned(),
            body: Body::Blank,
            answer,
            request: request.clone(),
            deadline: None,
            n_bytes: 0,
            n_events: 0,
            sample: Vec::new(),
        }
    }

    /// Waits for bytes and takes them.
    async fn step(&mut self, out: &mut Pieces) -> Result<Flow, ProviderError> {
        let Some(response) = &mut self.response else { return Ok(Flow::End) };
        let chunk = match self.deadline {
            Some(deadline) => match timeout_at(deadline, response.chunk()).await {
                Ok(chunk) => chunk,
                Err(_) if self.is_finished() => return self.complete(out),
                Err(_) => return Err(self.silent()),
            },
            None => response.chunk().await,
        };
        match chunk {
            Ok(Some(bytes)) => {
                let n_events = self.n_events;
                if self.take(&bytes, out)? == Flow::End {
                    self.drain().await;
                    return self.complete(out);
                }
                if self.n_events != n_events
                    && (self.deadline.is_some() || !out.is_empty() || self.is_finished())
                {
                    let idle = self.request.idle_timeout;
                    let patience = if self.is_finished() { idle.min(GRACE) } else { idle };
                    self.deadline = Instant::now().checked_add(patience);
                }
                Ok(Flow::More)
            }
            Ok(None) => self.end(out),
            Err(_) if self.is_finished() => self.complete(out),
            Err(error) => Err(crate::fault::from_transport(error, &self.host, true)),
        }
    }

    /// Reads the body to its end, which leaves the connection free for the next request.
    async fn drain(&mut self) {
        let Some(mut response) = self.response.take() else { return };
        if timeout(DRAIN.0, exhaust(&mut response)).await.is_err() {
            tokio::spawn(async move { timeout(DRAIN.1, exhaust(&mut response)).await });
            return;
        }
        drop(response);
        // The tasks that hand it back to the pool come before whatever asks next.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
    }

    fn take(&mut self, mut bytes: &[u8], out: &mut Pieces) -> Result<Flow, ProviderError> {
        self.n_bytes += bytes.len();
        if self.n_bytes > ANSWER_LIMIT {
            return Err(fault(
                Kind::Protocol,
                format!("the answer is larger than {} MiB", ANSWER_LIMIT >> 20),
            ));
        }
        if let Body::Blank = self.body {
            let begin = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start();
            match begin.first() {
                None => return Ok(Flow::More),
                Some(b'{' | b'[') => {
                    bytes = begin;
                    self.body = Body::Json(Vec::new());
                }
                Some(b'<') => self.body = Body::Html(Vec::new()),
                Some(_) => self.body = Body::Events(Sse::default()),
            }
        }
        match &mut self.body {
            Body::Blank => Ok(Flow::More),
            Body::Events(sse) => {
                if self.n_events == 0 && self.sample.len() < 2048 {
                    self.sample.extend_from_slice(&bytes[..bytes.len().min(2048)]);
                }
                let (answer, n_events) = (&mut self.answer, &mut self.n_events);
                sse.feed(bytes, &mut |name, data| event(answer, n_events, name, data, out))
            }
            Body::Json(text) => {
                if text.len() + bytes.len() > LIMIT {
                    return Err(TooLong.into());
                }
                text.extend_from_slice(bytes);
                self.n_events += 1;
                Ok(Flow::More)
            }
            Body::Html(text) => {
                text.extend_from_slice(&bytes[..bytes.len().min(1 << 16)]);
                if text.len() < 1 << 16 { Ok(Flow::More) } else { Err(self.html()) }
            }
        }
    }

    /// Judges the end of the body.
    fn end(&mut self, out: &mut Pieces) -> Result<Flow, ProviderError> {
        match &mut self.body {
            Body::Blank => Err(fault(Kind::Protocol, "the service answered 200 and sent nothing")),
            Body::Html(_) => Err(self.html()),
            Body::Json(text) => {
                let text = std::mem::take(text);
                self.json(&text, out)?;
                self.complete(out)
            }
            Body::Events(sse) => {
                let (answer, n_events) = (&mut self.answer, &mut self.n_events);
                let tail = sse.finish(&mut |name, data| event(answer, n_events, name, data, out));
                match tail {
                    Ok(Flow::End) => self.complete(out),
                    _ if self.is_finished() => self.complete(out),
                    Ok(Flow::More) if self.n_events == 0 => {
                        let text = quoted(String::from_utf8_lossy(&self.sample));
                        let message =
                            format!("the service answered 200 with text that is no event stream: `{text}`");
                        Err(fault(Kind::Protocol, message))
                    }
                    // A last event that is cut is the end of the stream, not broken JSON.
                    Ok(Flow::More) => Err(fault(Kind::Protocol, self.unfinished())),
                    Err(error) if error.kind == Kind::Protocol => {
                        Err(fault(Kind::Protocol, self.unfinished()))
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Takes a body that is JSON: one answer, one error, or a line each.
    fn json(&mut self, text: &[u8], out: &mut Pieces) -> Result<(), ProviderError> {
        let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
        let mut begin = 0;
        while let Some(value) = values.next() {
            let value = value.map_err(|error| {
                let text = quoted(String::from_utf8_lossy(text));
                fault(
                    Kind::Protocol,
                    format!("the service answered 200 with JSON that is broken ({error}): `{text}`"),
                )
            })?;
            if value.is_array()
                && let Some(told) = Told::read(&value)
            {
                return Err(told.in_stream());
            }
            let end = values.byte_offset();
            self.answer_take(b"", &text[begin..end], out)?;
            begin = end;
        }
        if !self.has_answer() {
            let text = quoted(String::from_utf8_lossy(text));
            let api = match self.answer {
                Answer::Chat(_) => "Chat Completions",
                Answer::Responses(_) => "Responses",
            };
            let message =
                format!("the service answered 200 with JSON that is no answer of the {api} API: `{text}`");
            return Err(fault(Kind::Protocol, message));
        }
        Ok(())
    }

    fn answer_take(&mut self, name: &[u8], data: &[u8], out: &mut Pieces) -> Result<(), ProviderError> {
        match &mut self.answer {
            Answer::Chat(answer) => answer.take(data, out),
            Answer::Responses(answer) => answer.take(name, data, out),
        }
    }

    fn has_answer(&self) -> bool {
        match &self.answer {
            Answer::Chat(answer) => answer.has_choice(),
            Answer::Responses(answer) => answer.is_finished() || answer.has_output(),
        }
    }

    fn is_finished(&self) -> bool {
        match &self.answer {
            Answer::Chat(answer) => answer.is_finished(),
            Answer::Responses(answer) => answer.is_finished(),
        }
    }

    fn unfinished(&self) -> String {
        match &self.answer {
            Answer::Chat(answer) => answer.unfinished(),
            Answer::Responses(answer) => answer.unfinished(),
        }
    }

    fn complete(&mut self, out: &mut Pieces) -> Result<Flow, ProviderError> {
        let ids = Ids::of(&self.request.messages);
        let completed = match &mut self.answer {
            Answer::Chat(answer) => answer.complete(ids),
            Answer::Responses(answer) => answer.complete(ids, out),
        }?;
        out.push(completed);
        Ok(Flow::End)
    }

    fn html(&self) -> ProviderError {
        let Body::Html(page) = &self.body else {
            return fault(Kind::Protocol, "the service answered 200 with an HTML page");
        };
        let page = html(&String::from_utf8_lossy(page));
        let hint =
            "does `baseURL` point at a web page, or does a proxy or login page stand before the service?";
        crate::fault::hinted(
            Kind::Protocol,
            format!("the service answered 200 with {page} instead of a stream"),
            hint,
        )
    }

    fn silent(&self) -> ProviderError {
        let seconds = self.request.idle_timeout.as_secs_f64();
        fault(Kind::Idle, format!("the stream from `{}` stalled: nothing came for {seconds} s", self.host))
    }
}

impl From<TooLong> for ProviderError {
    fn from(_: TooLong) -> Self {
        fault(Kind::Protocol, format!("the service sent a line longer than {} MiB", LIMIT >> 20))
    }
}

async fn exhaust(response: &mut Response) {
    while let Ok(Some(_)) = response.chunk().await {}
}

fn event(
    answer: &mut Answer,
    n_events: &mut usize,
    name: &[u8],
    data: &[u8],
    out: &mut Pieces,
) -> Result<Flow, ProviderError> {
    let data = data.trim_ascii();
    match data.first() {
        None => return Ok(Flow::More),
        Some(_) if data == b"[DONE]" => {
            *n_events += 1;
            return Ok(Flow::End);
        }
        Some(b'{' | b'[') => {}
        Some(_) if name == b"error" => {
            let text = String::from_utf8_lossy(data).into_owned();
            return Err(Told::read(&Value::String(text)).unwrap_or_default().in_stream());
        }
        // `data: ping`, `data: null` and the like keep a connection open.
        Some(_) if name == b"ping" || matches!(data, b"null" | b"ping" | b"keep-alive" | b"\"\"") => {
            return Ok(Flow::More);
        }
        Some(_) => {}
    }
    *n_events += 1;
    match answer {
        Answer::Chat(answer) => answer.take(data, out)?,
        // The final response is the end; what is after `finish_reason` may still be usage.
        Answer::Responses(answer) => {
            answer.take(name, data, out)?;
            if answer.is_finished() {
                return Ok(Flow::End);
            }
        }
    }
    Ok(Flow::More)
}
