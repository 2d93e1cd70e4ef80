//! The scripted server: HTTP/1.1 and HTTP/2 (prior knowledge) without TLS, on loopback.
//!
//! It runs as tasks of the caller's runtime, or on a thread of its own where the caller blocks. It records every
//! request and ends with its handle.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::asked::Asked;
use crate::faults::{self, Given};
use crate::scenario::{Model, Scenario};
use crate::script::Script;
use crate::socket::{Control, Socket};
use crate::wire::{Answer, Api, Piece};

/// How many requests are kept; older ones are forgotten.
const KEPT_REQUESTS: usize = 4096;
/// What was written before a connection breaks gets this long to reach the client.
const BEFORE_BREAK: Duration = Duration::from_millis(40);

type Body = UnsyncBoxBody<Bytes, Infallible>;
/// Is shown every request when it has been read.
pub type Observer = Box<dyn Fn(&RecordedRequest) + Send + Sync>;

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedRequest {
    /// `POST` and the like.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub version: String,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// The JSON body; null when there was none or it was not JSON.
    pub body: Value,
}

impl RecordedRequest {
    /// Returns the first header of a name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Says that the server could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The address can't be had.
    #[error("can't listen on `{address}`: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// There is no thread or runtime for it.
    #[error("can't start a thread for the server: {0}")]
    Thread(io::Error),
}

/// A running server. Dropping it ends it and every connection.
pub struct Server {
    state: Arc<State>,
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct State {
    script: Mutex<Script>,
    requests: Mutex<VecDeque<RecordedRequest>>,
    observer: Option<Observer>,
    port: u16,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts on a free port of 127.0.0.1, as tasks of the current tokio runtime.
    ///
    /// # Errors
    /// [`StartError::Listen`].
    pub async fn start(scenario: Scenario) -> Result<Self, StartError> {
        Self::start_on(scenario, any_port(), None).await
    }

    /// Starts on `address`; `observer` is shown every request when it has been read.
    ///
    /// # Errors
    /// [`StartError::Listen`].
    pub async fn start_on(
        scenario: Scenario,
        address: SocketAddr,
        observer: Option<Observer>,
    ) -> Result<Self, StartError> {
        let failed = |source| StartError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let state = Arc::new(State {
            script: Mutex::new(Script::new(scenario)),
            requests: Mutex::default(),
            observer,
            port: address.port(),
        });
        let stop = CancellationToken::new();
        tokio::spawn(accept(listener, state.clone(), stop.clone()));
        Ok(Self { state, address, stop, thread: None })
    }

    /// Starts on a free port of 127.0.0.1, on a thread of its own, for callers that block.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start_blocking(scenario: Scenario) -> Result<Self, StartError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => {
                    // A caller that has gone needs no answer, here and below.
                    let _ = sender.send(Err(StartError::Thread(error)));
                    return;
                }
            };
            runtime.block_on(async {
                let started = Self::start(scenario).await;
                let stop = started.as_ref().map(|server| server.stop.clone()).ok();
                if sender.send(started).is_ok()
                    && let Some(stop) = stop
                {
                    stop.cancelled().await;
                }
            });
        };
        let thread = std::thread::Builder::new().name("conformance".into()).spawn(run);
        let thread = thread.map_err(StartError::Thread)?;
        let gone = |_| StartError::Thread(io::Error::other("it ended before the server ran"));
        let mut server = receiver.recv().map_err(gone)??;
        server.thread = Some(thread);
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client takes as base URL: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, the last 4096 of them, those for the list of models included.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.state.requests).iter().cloned().collect()
    }

    /// How many requests are kept.
    pub fn request_count(&self) -> usize {
        lock(&self.state.requests).len()
    }

    /// What the scenario did not expect, a sentence each.
    pub fn failures(&self) -> Vec<String> {
        lock(&self.state.script).failures().to_vec()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed where it happened.
            let _ = thread.join();
        }
    }
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, state: Arc<State>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    tokio::spawn(serve(stream, state.clone(), stop.clone()));
                }
                // No descriptor is free, or the client has gone again.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

async fn serve(stream: TcpStream, state: Arc<State>, stop: CancellationToken) {
    // Small chunks should go out at once; a system that refuses only makes it slower.
    let _ = stream.set_nodelay(true);
    let control = Arc::new(Control::default());
    let service = {
        let control = control.clone();
        service_fn(move |request| respond(request, state.clone(), control.clone()))
    };
    let socket = TokioIo::new(Socket::new(stream, control.clone()));
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(socket, service);
    tokio::select! {
        () = stop.cancelled() => {}
        () = control.ended() => {}
        // How a connection ended is the client's to judge.
        _ = connection => {}
    }
}

async fn respond(
    request: Request<Incoming>,
    state: Arc<State>,
    control: Arc<Control>,
) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let path = head.uri.path().trim_end_matches('/').to_owned();
    let recorded = RecordedRequest {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or_else(|| path.clone(), ToString::to_string),
        version: format!("{:?}", head.version),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body,
    };
    if let Some(observer) = &state.observer {
        observer(&recorded);
    }
    let body = recorded.body.clone();
    {
        let mut requests = lock(&state.requests);
        if requests.len() == KEPT_REQUESTS {
            requests.pop_front();
        }
        requests.push_back(recorded);
    }
    let api = if path.ends_with("/chat/completions") {
        Some(Api::Chat)
    } else if path.ends_with("/responses") {
        Some(Api::Responses)
    } else {
        None
    };
    let (answer, delay) = match api {
        Some(api) if head.method == Method::POST => {
            let raw = String::from_utf8_lossy(&bytes).into_owned();
            let asked = match api {
                Api::Chat => Asked::chat(&body, raw),
                Api::Responses => Asked::responses(&body, raw),
            };
            play(&state, &asked, api)
        }
        None if head.method == Method::GET && path.contains("/models") => {
            (models(&state, &path), Duration::ZERO)
        }
        _ => {
            let message = format!("There is nothing at `{} {path}`.", head.method);
            (Answer::error(404, "invalid_request_error", None, &message), Duration::ZERO)
        }
    };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    Ok(send(answer, control).await)
}

fn play(state: &State, asked: &Asked, api: Api) -> (Answer, Duration) {
    match lock(&state.script).answer(asked) {
        Ok((reply, fault)) => {
            let delay = reply.delay;
            let given = Given {
                api,
                parameters: fault.unwrap_or_default(),
                port: state.port,
                stream: asked.stream,
                include_usage: asked.include_usage,
            };
            (faults::answer(faults::find(&given.parameters.name), reply, &given), delay)
        }
        Err(sentence) => {
            (Answer::error(400, "scenario_error", Some("scenario_error"), &sentence), Duration::ZERO)
        }
    }
}

fn models(state: &State, path: &str) -> Answer {
    let mut models = lock(&state.script).scenario().models.clone();
    if models.is_empty() {
        models.push(Model { id: "scripted".into(), context_window: 128_000 });
    }
    let object = |model: &Model| {
        json!({
            "id": model.id, "object": "model", "created": 1_700_000_000, "owned_by": "scripted",
            "context_window": model.context_window,
        })
    };
    match path.split_once("/models/") {
        None => {
            let data: Vec<Value> = models.iter().map(object).collect();
            Answer::json(200, &json!({"object": "list", "data": data}))
        }
        Some((_, id)) => match models.iter().find(|model| model.id == id) {
            Some(model) => Answer::json(200, &object(model)),
            None => Answer::error(
                404,
                "invalid_request_error",
                Some("model_not_found"),
                "There is no such model.",
            ),
        },
    }
}

async fn send(answer: Answer, control: Arc<Control>) -> Response<Body> {
    match answer {
        Answer::Http { status, headers, body } => {
            let mut response = Response::new(pieces(body, control));
            *response.status_mut() =
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            for (name, value) in headers {
                if let Ok(value) = value.parse() {
                    response.headers_mut().insert(name, value);
                }
            }
            response
        }
        Answer::Raw(bytes) => {
            control.say_instead(bytes);
            Response::new(Full::new(Bytes::new()).boxed_unsync())
        }
        Answer::Close => {
            control.end();
            std::future::pending().await
        }
        Answer::Reset => {
            control.reset();
            std::future::pending().await
        }
        Answer::Silence => std::future::pending().await,
    }
}

/// Makes a body of pieces. One piece of bytes gets a length, everything else is a stream.
fn pieces(body: Vec<Piece>, control: Arc<Control>) -> Body {
    match <[Piece; 1]>::try_from(body) {
        Ok([Piece::Bytes(bytes)]) => Full::new(bytes).boxed_unsync(),
        Ok([other]) => StreamBody::new(frames(vec![other], control)).boxed_unsync(),
        Err(body) if body.is_empty() => Full::new(Bytes::new()).boxed_unsync(),
        Err(body) => StreamBody::new(frames(body, control)).boxed_unsync(),
    }
}

fn frames(body: Vec<Piece>, control: Arc<Control>) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    let mut left: VecDeque<Piece> = body.into();
    stream::unfold((), move |()| {
        // What is done next is taken off synchronously, so that a dropped future loses nothing but itself.
        let mut next = left.pop_front();
        if let Some(Piece::Many { bytes, count, pause }) = &next {
            let (bytes, count, pause) = (bytes.clone(), *count, *pause);
            if count > 1 {
                left.push_front(Piece::Many { bytes: bytes.clone(), count: count - 1, pause });
            }
            if !pause.is_zero() {
                left.push_front(Piece::Pause(pause));
            }
            next = Some(Piece::Bytes(if count == 0 { Bytes::new() } else { bytes }));
        }
        let control = control.clone();
        async move {
            match next? {
                Piece::Bytes(bytes) => return Some((Ok(Frame::data(bytes)), ())),
                Piece::Many { .. } => {}
                Piece::Pause(pause) => tokio::time::sleep(pause).await,
                Piece::Stall => std::future::pending().await,
                Piece::Drop => {
                    tokio::time::sleep(BEFORE_BREAK).await;
                    control.end();
                    std::future::pending().await
                }
                Piece::Reset => {
                    tokio::time::sleep(BEFORE_BREAK).await;
                    control.reset();
                    std::future::pending().await
                }
            }
            Some((Ok(Frame::data(Bytes::new())), ()))
        }
    })
}
