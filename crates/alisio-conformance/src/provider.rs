//! The scripted model without a socket, for unit tests of a run loop and for the demonstration.
//!
//! It plays the same scenarios as the server. Faults of the wire's form have nothing to show here and are played as
//! good answers; those that a client would tell as an error are that error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alisio_protocol::{AssistantMessage, CallId, ToolCall, Usage};
use alisio_sdk::{
    BoxStream, ModelRequest, Provider, ProviderError, ProviderErrorKind, StopReason, StreamEvent,
};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::faults::{self, Fault, Given, InProcessFault};
use crate::reply::Reply;
use crate::scenario::{Finish, Scenario};
use crate::script::Script;
use crate::wire::Api;

type Item = Result<StreamEvent, ProviderError>;

/// A provider that says what its scenario says.
#[derive(Clone, Debug)]
pub struct ScriptedProvider {
    script: Arc<Mutex<Script>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    with_raw: bool,
}

impl ScriptedProvider {
    /// Makes one.
    pub fn new(scenario: Scenario) -> Self {
        let script = Script::new(scenario);
        let with_raw = script.reads_raw();
        Self { script: Arc::new(Mutex::new(script)), requests: Arc::default(), with_raw }
    }

    /// The requests so far; clones of a provider share them.
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.requests).clone()
    }

    /// What the scenario did not expect, a sentence each.
    pub fn failures(&self) -> Vec<String> {
        lock(&self.script).failures().to_vec()
    }

    fn play(&self, request: &ModelRequest) -> BoxStream<'static, Item> {
        let asked = Asked::in_process(request, self.with_raw);
        let (mut reply, parameters) = match lock(&self.script).answer(&asked) {
            Ok(played) => played,
            Err(sentence) => {
                let error = error(ProviderErrorKind::Rejected, sentence, Some(400), None);
                return stream::iter([Err(error)]).boxed();
            }
        };
        let delay = reply.delay;
        let mut items: Vec<Item> = Vec::new();
        let mut silence = false;
        let mut failure = None;
        if let Some(parameters) = parameters
            && let Some(fault) = faults::find(&parameters.name)
        {
            let given = Given { api: Api::Chat, parameters, port: 0, stream: true, include_usage: true };
            fault.change(&mut reply);
            match fault.in_process() {
                None => {}
                Some(InProcessFault::Silence) => silence = true,
                Some(InProcessFault::Error { kind, midway }) => {
                    if midway {
                        items.extend(
                            reply
                                .split(&reply.text)
                                .first()
                                .map(|text| Ok(StreamEvent::Text((*text).into()))),
                        );
                    }
                    failure = Some((kind, failed(fault, kind, &reply, &given)));
                }
            }
        }
        if silence {
            return stream::pending().boxed();
        }
        let wait = match failure {
            Some((kind, error)) => {
                items.push(Err(error));
                // An idle limit can only pass by waiting.
                (kind == ProviderErrorKind::Idle).then_some(request.idle_timeout)
            }
            None => {
                items.extend(good(&reply).map(Ok));
                None
            }
        };
        let big = paced(&reply);
        let last = items.pop();
        let first = async move { tokio_sleep(delay).await }.into_stream().filter_map(|()| async { None });
        let end = async move {
            tokio_sleep(wait.unwrap_or_default()).await;
            last
        };
        first
            .chain(stream::iter(items))
            .chain(big)
            .chain(end.into_stream().filter_map(|item| async { item }))
            .boxed()
    }
}

/// Sleeps, and needs no timer where there is nothing to wait for.
async fn tokio_sleep(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

impl Provider for ScriptedProvider {
    fn id(&self) -> &str {
        "scripted"
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Item> {
        let stream = self.play(&request);
        lock(&self.requests).push(request);
        stream
    }
}

/// The events before a big stream's text, and the end.
fn good(reply: &Reply) -> impl Iterator<Item = StreamEvent> {
    let mut events = Vec::new();
    let owned = |text: &&str| (*text).to_owned();
    events.extend(reply.split(&reply.reasoning).iter().map(owned).map(StreamEvent::Reasoning));
    if reply.big().is_none() {
        events.extend(reply.split(&reply.text).iter().map(owned).map(StreamEvent::Text));
    }
    for call in &reply.calls {
        events.extend(reply.split(&call.arguments).iter().map(|_| StreamEvent::CallProgress));
    }
    let items = reply.encrypted_reasoning.as_ref().map(|encrypted| -> Value {
        let id = format!("rs_{}", reply.number);
        json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": encrypted})
    });
    events.push(StreamEvent::Completed {
        message: AssistantMessage {
            text: reply.whole_text(),
            calls: reply
                .calls
                .iter()
                .map(|call| ToolCall {
                    id: CallId::new(call.id.as_str()),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                })
                .collect(),
            items: items.into_iter().collect(),
            truncated: reply.finish == Finish::Length,
        },
        usage: Some(Usage {
            input: reply.usage.input,
            output: reply.usage.output,
            cached_input: reply.usage.cached_input,
        }),
        stop: match reply.finish {
            Finish::Stop | Finish::ToolCalls => StopReason::Done,
            Finish::Length => StopReason::OutputLimit,
            Finish::ContentFilter => StopReason::ContentFilter,
        },
    });
    events.into_iter()
}

/// The deltas of a big stream.
fn paced(reply: &Reply) -> BoxStream<'static, Item> {
    let Some((text, count)) = reply.big() else {
        return stream::empty().boxed();
    };
    let text = text.to_owned();
    let pause = Duration::from_millis(reply.deltas.delay_ms);
    stream::iter(0..count)
        .then(move |_| {
            let text = text.clone();
            async move {
                tokio_sleep(pause).await;
                Ok(StreamEvent::Text(text))
            }
        })
        .boxed()
}

fn failed(fault: &Fault, kind: ProviderErrorKind, reply: &Reply, given: &Given) -> ProviderError {
    let words = match fault.expectation {
        faults::Expectation::Error { contains } => contains.join(", "),
        faults::Expectation::Answer => String::new(),
    };
    let named = format!("the scripted service has the fault `{}`", fault.name);
    let sentence = if words.is_empty() { named } else { format!("{named} ({words})") };
    let waits = fault.name.contains("retry-after-seconds").then(|| given.parameters.retry_after.unwrap_or(1));
    error(kind, sentence, fault.status(reply, given), waits.map(Duration::from_secs))
}

fn error(
    kind: ProviderErrorKind,
    message: String,
    status: Option<u16>,
    retry_after: Option<Duration>,
) -> ProviderError {
    ProviderError { kind, message, hint: String::new(), status, retry_after }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
