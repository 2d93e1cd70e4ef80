//! One response of the model: sent, sent again where that is safe, and streamed.
//!
//! A request is repeated only before its first text or tool-call delta; afterwards a fault ends the run, since what
//! was shown can't be taken back.

use std::pin::pin;
use std::time::Duration;

use alisio_protocol::{AssistantMessage, EventKind, RetryReason, Usage};
use alisio_sdk::{ModelRequest, Provider, ProviderError, ProviderErrorKind, StopReason, StreamEvent};
use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::StreamExt;

use crate::active_time::ActiveTime;
use crate::cancel::Cancel;
use crate::clock::Clock;
use crate::limits::Limits;
use crate::recorder::Recorder;

/// Pause before a silent request is sent again.
const SILENT_PAUSE: Duration = Duration::from_millis(250);

/// What a response needs around it.
pub(crate) struct Turn<'a> {
    pub(crate) provider: &'a dyn Provider,
    pub(crate) recorder: &'a Recorder,
    pub(crate) limits: &'a Limits,
    pub(crate) active: &'a ActiveTime,
    pub(crate) cancel: &'a Cancel,
    pub(crate) clock: Clock,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) message: AssistantMessage,
    pub(crate) usage: Option<Usage>,
    pub(crate) stop: StopReason,
    pub(crate) duration_ms: u64,
    pub(crate) ttft_ms: Option<u64>,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum TurnFault {
    Cancelled,
    RunTimeout { attempts: u32 },
    FirstToken { attempts: u32 },
    Provider { error: ProviderError, attempts: u32 },
}

enum Attempt {
    Answer(Box<Answer>),
    Silent,
    /// `begun`: a text or tool-call delta has come, so the request must not be sent again.
    Fault {
        error: ProviderError,
        begun: bool,
    },
    Cancelled,
    RunTimeout,
}

impl Turn<'_> {
    /// Asks for one response.
    pub(crate) async fn ask(&self, request: &ModelRequest) -> Result<Answer, TurnFault> {
        let policy = self.limits.retry;
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(policy.first_pause)
            .with_max_delay(policy.longest_pause)
            .with_max_times(policy.retries as usize)
            .with_jitter()
            .build();
        let mut attempts = 0;
        let mut silent = 0;
        let mut faults = 0;
        loop {
            attempts += 1;
            let (reason, status, pause, attempt, of) = match self.attempt(request.clone()).await {
                Attempt::Answer(answer) => return Ok(*answer),
                Attempt::Cancelled => return Err(TurnFault::Cancelled),
                Attempt::RunTimeout => return Err(TurnFault::RunTimeout { attempts }),
                Attempt::Silent => {
                    let needed = SILENT_PAUSE + self.limits.first_token_timeout;
                    if silent >= self.limits.first_token_retries || self.active.left() < needed {
                        return Err(TurnFault::FirstToken { attempts });
                    }
                    silent += 1;
                    (
                        RetryReason::FirstTokenTimeout,
                        None,
                        SILENT_PAUSE,
                        silent,
                        self.limits.first_token_retries,
                    )
                }
                Attempt::Fault { error, begun } => {
                    let reason = error.kind.retry_reason().filter(|_| !begun);
                    let Some((reason, own_pause)) = reason.and_then(|reason| Some((reason, pauses.next()?)))
                    else {
                        return Err(TurnFault::Provider { error, attempts });
                    };
                    let pause = error.retry_after.unwrap_or(own_pause);
                    if pause > policy.longest_asked_pause || pause >= self.active.left() {
                        return Err(TurnFault::Provider { error: too_long_a_pause(error, pause), attempts });
                    }
                    faults += 1;
                    (reason, error.status, pause, faults, policy.retries)
                }
            };
            let after_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            let event = EventKind::RequestRetry { attempt, of, reason, after_ms, status };
            // A retry that could not be stored is no reason to give up the request; the next store will say so.
            let _ = self.recorder.store_events(vec![event]);
            tokio::select! {
                biased;
                () = self.cancel.stopped() => return Err(TurnFault::Cancelled),
                () = self.active.expired() => return Err(TurnFault::RunTimeout { attempts }),
                () = tokio::time::sleep(pause) => (),
            }
        }
    }

    async fn attempt(&self, request: ModelRequest) -> Attempt {
        let watch = self.clock.start();
        let mut stream = self.provider.stream(request);
        let mut cancelled = pin!(self.cancel.stopped());
        let mut expired = pin!(self.active.expired());
        let limit = self.limits.first_token_timeout;
        let mut first_token = pin!(tokio::time::sleep(if limit.is_zero() { Duration::MAX } else { limit }));
        let mut heard = limit.is_zero();
        let mut begun = false;
        let mut ttft_ms = None;
        loop {
            let event = tokio::select! {
                biased;
                () = &mut cancelled => return Attempt::Cancelled,
                event = stream.next() => event,
                () = &mut expired => return Attempt::RunTimeout,
                () = &mut first_token, if !heard => return Attempt::Silent,
            };
            match event {
                Some(Ok(StreamEvent::Text(delta))) => {
                    (heard, begun) = (true, true);
                    ttft_ms.get_or_insert_with(|| watch.elapsed_ms());
                    self.recorder.show(EventKind::TextDelta { delta });
                }
                Some(Ok(StreamEvent::Reasoning(delta))) => {
                    heard = true;
                    ttft_ms.get_or_insert_with(|| watch.elapsed_ms());
                    self.recorder.show(EventKind::ReasoningDelta { delta });
                }
                Some(Ok(StreamEvent::CallProgress)) => (heard, begun) = (true, true),
                Some(Ok(StreamEvent::Completed { message, usage, stop })) => {
                    let duration_ms = watch.elapsed_ms();
                    return Attempt::Answer(Box::new(Answer { message, usage, stop, duration_ms, ttft_ms }));
                }
                Some(Err(error)) => return Attempt::Fault { error, begun },
                None => {
                    let error = ProviderError {
                        kind: ProviderErrorKind::Protocol,
                        message: "the response ended before it was complete".into(),
                        hint: String::new(),
                        status: None,
                        retry_after: None,
                    };
                    return Attempt::Fault { error, begun };
                }
            }
        }
    }
}

fn too_long_a_pause(mut error: ProviderError, pause: Duration) -> ProviderError {
    error.message = format!(
        "{}; the service asks to wait {} s, longer than this run waits",
        error.message,
        pause.as_secs()
    );
    error
}
