//! One prompt, worked on until idle.

use std::path::PathBuf;
use std::sync::Arc;

use alisio_policy::{Authority, Issuer};
use alisio_protocol::{
    AssistantMessage, CallId, Event, EventKind, FailureCode, Message, RunId, SessionId, TimeoutInfo,
    TimeoutKind, ToolSpec, TruncationInfo, TruncationReason, Usage, UserMessage,
};
use alisio_sdk::{InstructionSource, ModelRequest, Provider, ProviderErrorKind, StopReason};
use alisio_store::{Durability, Loaded, NewRun, RunStatus, SessionWriter, StoreError, UncertainCall};
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;

use crate::active_time::ActiveTime;
use crate::approvals::Approvals;
use crate::calls::{Calls, Round, RoundFault};
use crate::cancel::Cancel;
use crate::clock::Clock;
use crate::context::Context;
use crate::conversation::{Asked, Conversation, malformed};
use crate::limits::Limits;
use crate::recorder::Recorder;
use crate::registry::Registry;
use crate::turn::{Answer, Turn, TurnFault};

/// What every run of a process shares.
pub struct Engine {
    /// The model service.
    pub provider: Arc<dyn Provider>,
    /// The tools.
    pub registry: Registry,
    /// Finds instruction files.
    pub instructions: Arc<dyn InstructionSource>,
    /// The only maker of permits.
    pub issuer: Issuer,
    /// Puts questions to whoever can answer; absent where nobody can.
    pub approvals: Option<Approvals>,
    /// Tells the time.
    pub clock: Clock,
}

/// One prompt to work on.
pub struct Prompt {
    /// The run's id.
    pub run_id: RunId,
    /// The caller's name for the request; a second run with the same one is refused by the store.
    pub request_id: Option<String>,
    /// The caller's name for the run; stands on each of its events.
    pub correlation_id: Option<String>,
    /// What was said.
    pub message: UserMessage,
    /// The directory that the session works in, canonical.
    pub workspace: PathBuf,
    /// Owner-only folder of the session for outputs too long for a result.
    pub spill_folder: PathBuf,
    /// The model to ask.
    pub model: String,
    /// What the run may do at most.
    pub authority: Authority,
    /// How much it may use.
    pub limits: Limits,
    /// Stops it.
    pub cancel: Cancel,
}

/// A session that was opened for writing: its writer, what was loaded, and what its row says.
pub struct OpenSession {
    /// Holds the session's lock.
    pub writer: SessionWriter,
    /// The conversation as it was found.
    pub loaded: Loaded,
    /// The service that its opaque items belong to.
    pub provider: String,
    /// The model of its last run.
    pub model: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How.
    pub status: RunStatus,
    /// The final text; empty where there is none.
    pub text: String,
    /// Tokens as reported, summed up; `None` when the service was silent.
    pub usage: Option<Usage>,
    /// Active time in milliseconds.
    pub active_ms: u64,
    /// Files written, each once, in order.
    pub written: Vec<PathBuf>,
    /// Refusals of the last round of calls that a person could have lifted. Where the run completed with some, it ended
    /// because of them.
    pub refused: Vec<String>,
    /// What went wrong, for a failed or cancelled run.
    pub error: Option<String>,
    /// Whether a limit that the user set ended the run: its turns, its active time or its token budget.
    pub stopped_by_limit: bool,
}

/// Why a run could not begin, or could not be told about.
#[derive(Debug, Error)]
pub enum RunError {
    /// The session holds calls of which nobody knows how they ended.
    #[error("{}", uncertain_message(.session, .calls))]
    Uncertain {
        /// The session.
        session: SessionId,
        /// The calls.
        calls: Vec<UncertainCall>,
    },
    /// The state could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn uncertain_message(session: &SessionId, calls: &[UncertainCall]) -> String {
    let list: Vec<_> = calls
        .iter()
        .map(|call| {
            format!("  {} {} (begun {}): {}", call.effect, call.tool, call.started_at, call.arguments)
        })
        .collect();
    format!(
        "the session was cut while a call with an effect was running, and nobody knows how it ended:\n{}\nlook at what it \
         may have done, then run `alisio sessions recover {session} --acknowledge`",
        list.join("\n")
    )
}

/// Why a run ended, other than with an answer.
struct Failure {
    status: RunStatus,
    event: Box<EventKind>,
    error: String,
}

impl Failure {
    fn is_limit(&self) -> bool {
        match &*self.event {
            EventKind::RunTurnsExceeded { .. }
            | EventKind::RunFailed { code: Some(FailureCode::TokenBudget), .. } => true,
            EventKind::RunFailed { timeout: Some(timeout), .. } => timeout.kind == TimeoutKind::Run,
            _ => false,
        }
    }
}

impl Engine {
    /// Works on one prompt until idle. Every event is stored before it is sent to `surface`.
    ///
    /// # Errors
    /// When the run could not begin, or its end could not be stored. A run that failed or was stopped is an
    /// [`Outcome`].
    pub async fn run(
        &self,
        session: OpenSession,
        prompt: Prompt,
        surface: UnboundedSender<Event>,
    ) -> Result<Outcome, RunError> {
        if !session.loaded.uncertain.is_empty() {
            return Err(RunError::Uncertain {
                session: session.writer.session().clone(),
                calls: session.loaded.uncertain,
            });
        }
        let mut conversation = Conversation::new(session.loaded.messages);
        if session.provider != self.provider.id() {
            conversation.drop_opaque_items();
        }
        let recorder = Arc::new(Recorder::new(
            prompt.run_id.clone(),
            prompt.correlation_id.clone(),
            self.clock,
            session.writer,
            surface,
        ));
        let active = ActiveTime::start(prompt.limits.timeout);
        let mut context = Context::new(Arc::clone(&self.instructions), prompt.workspace.clone());
        let instructions = context.instructions(&prompt.authority);
        let mut run = Run {
            engine: self,
            tools: Arc::new(self.registry.offered(&prompt.authority)),
            prompt,
            recorder,
            active,
            context,
            instructions,
            conversation,
            notice: interruption_notice(&session.loaded.repairs),
            usage: None,
            turn: 0,
            written: Vec::new(),
            refused: Vec::new(),
        };
        run.begin(&session.model)?;
        let ended = run.turns().await;
        run.end(ended)
    }
}

/// A run at work.
struct Run<'a> {
    engine: &'a Engine,
    prompt: Prompt,
    recorder: Arc<Recorder>,
    active: ActiveTime,
    context: Context,
    instructions: String,
    tools: Arc<Vec<ToolSpec>>,
    conversation: Conversation,
    notice: String,
    usage: Option<Usage>,
    turn: u32,
    written: Vec<PathBuf>,
    refused: Vec<String>,
}

/// A response that can be used.
struct Usable {
    message: AssistantMessage,
    asked: Vec<Asked>,
}

impl Run<'_> {
    fn begin(&mut self, previous_model: &str) -> Result<(), StoreError> {
        let prompt = &self.prompt;
        let message = Message::User(prompt.message.clone());
        let mut events = vec![EventKind::RunStarted { model: prompt.model.clone() }];
        let switched = previous_model != prompt.model;
        if switched {
            events.push(EventKind::ModelChanged {
                model: prompt.model.clone(),
                previous: previous_model.to_owned(),
            });
        }
        let new_run = NewRun {
            id: prompt.run_id.clone(),
            request_id: prompt.request_id.clone(),
            model: prompt.model.clone(),
            started_at: self.engine.clock.stamp(),
        };
        self.recorder.commit(Durability::Unsynced, events, |tx| {
            tx.run_started(&new_run)?;
            if switched {
                tx.set_model(&prompt.model)?;
            }
            // The notice of the first request tells the model what was repaired; once is enough.
            tx.repairs_told()?;
            tx.message(&prompt.run_id, &message)
        })?;
        self.conversation.push(message);
        Ok(())
    }

    /// Asks and answers until the model wants nothing more. Returns the final text and whether it was cut.
    async fn turns(&mut self) -> Result<(String, bool), Failure> {
        loop {
            if self.turn >= self.prompt.limits.max_turns {
                return Err(self.turns_exceeded());
            }
            self.turn += 1;
            let Usable { message, asked } = self.respond().await?;
            let (text, truncated) = (message.text.clone(), message.truncated);
            self.conversation.push(Message::Assistant(message));
            if asked.is_empty() {
                return Ok((text, truncated));
            }
            self.check_budget()?;
            self.answer_calls(asked).await?;
        }
    }

    /// Asks for one response, again where the output limit made it useless, and stores it.
    async fn respond(&mut self) -> Result<Usable, Failure> {
        let limits = self.prompt.limits.clone();
        let mut recoveries = 0;
        let mut cut_to_fit = false;
        loop {
            let shortened = self.conversation.fit(limits.max_context_chars);
            if shortened > 0 {
                self.store_events(vec![EventKind::ContextReduced { messages: shortened }])?;
            }
            let request = ModelRequest {
                model: self.prompt.model.clone(),
                instructions: self.instructions.clone(),
                messages: self.conversation.messages(),
                notice: self.notice.clone(),
                tools: Arc::clone(&self.tools),
                max_output_tokens: limits.max_output_tokens.map(|limit| limit.tokens),
                idle_timeout: limits.idle_timeout,
            };
            let turn = Turn {
                provider: self.engine.provider.as_ref(),
                recorder: &self.recorder,
                limits: &limits,
                active: &self.active,
                cancel: &self.prompt.cancel,
                clock: self.engine.clock,
            };
            let asked = turn.ask(&request).await;
            drop(request);
            let answer = match asked {
                Ok(answer) => answer,
                Err(TurnFault::Provider { error, .. })
                    if error.kind == ProviderErrorKind::ContextLength && !cut_to_fit =>
                {
                    cut_to_fit = true;
                    let messages = self.conversation.fit(0);
                    if messages == 0 {
                        return Err(self.provider_failure(error, 1));
                    }
                    self.store_events(vec![EventKind::ContextReduced { messages }])?;
                    continue;
                }
                Err(TurnFault::Provider { error, .. })
                    if error.kind == ProviderErrorKind::OutputTruncated
                        && recoveries < limits.truncation_recoveries =>
                {
                    recoveries += 1;
                    self.recover(recoveries, TruncationReason::EmptyResponse)?;
                    continue;
                }
                Err(fault) => return Err(self.turn_failure(fault)),
            };
            self.notice.clear();
            if answer.stop == StopReason::ContentFilter {
                self.keep_visible_text(answer)?;
                let error = "the service withheld its answer, or the rest of it (content filter)".to_owned();
                return Err(failed(error, FailureCode::Provider));
            }
            match self.useless(&answer) {
                None => return self.admit(answer),
                Some(reason) if recoveries < limits.truncation_recoveries => {
                    recoveries += 1;
                    self.keep_visible_text(answer)?;
                    self.recover(recoveries, reason)?;
                }
                Some(_) => return Err(self.truncated_failure(recoveries + 1)),
            }
        }
    }

    /// Says why a response that the output limit cut can't be used; `None` when it can.
    fn useless(&self, answer: &Answer) -> Option<TruncationReason> {
        let message = &answer.message;
        if answer.stop != StopReason::OutputLimit {
            return None;
        }
        if message.calls.iter().any(|call| malformed(&call.arguments).is_some()) {
            return Some(TruncationReason::ToolCallCut);
        }
        (message.text.trim().is_empty() && message.calls.is_empty())
            .then_some(TruncationReason::EmptyResponse)
    }

    /// Stores a usable response.
    fn admit(&mut self, answer: Answer) -> Result<Usable, Failure> {
        self.count(answer.usage);
        let mut message = answer.message;
        message.truncated = answer.stop == StopReason::OutputLimit;
        let asked = self.conversation.admit(&mut message);
        let mut events = vec![EventKind::TurnCompleted {
            turn: self.turn,
            tokens: answer.usage.map_or(0, |usage| usage.input + usage.output),
            calls: u32::try_from(asked.len()).unwrap_or(u32::MAX),
            model: self.prompt.model.clone(),
            usage: answer.usage,
            duration_ms: Some(answer.duration_ms),
            ttft_ms: answer.ttft_ms,
        }];
        if message.truncated && asked.is_empty() {
            let limit = self.prompt.limits.max_output_tokens;
            events.push(EventKind::ResponseTruncated {
                turn: self.turn,
                max_output_tokens: limit.map(|limit| limit.tokens),
                source: limit.map(|limit| limit.source.as_str().to_owned()),
            });
        }
        let stored = Message::Assistant(message.clone());
        self.commit(events, |tx, run| tx.message(run, &stored))?;
        Ok(Usable { message, asked })
    }

    /// Keeps the text of a response whose calls were cut, as an ordinary message.
    fn keep_visible_text(&mut self, answer: Answer) -> Result<(), Failure> {
        self.count(answer.usage);
        if answer.message.text.trim().is_empty() {
            return Ok(());
        }
        let message =
            AssistantMessage { text: answer.message.text, truncated: true, ..AssistantMessage::default() };
        let message = Message::Assistant(message);
        self.commit(Vec::new(), |tx, run| tx.message(run, &message))?;
        self.conversation.push(message);
        Ok(())
    }

    fn recover(&mut self, attempt: u32, reason: TruncationReason) -> Result<(), Failure> {
        "Your last response was cut off by the output limit before it could be used. Do not repeat what you said. Go on in \
         smaller steps: one short tool call at a time, and little reasoning."
            .clone_into(&mut self.notice);
        let limits = &self.prompt.limits;
        self.store_events(vec![EventKind::TruncationRecovery {
            attempt,
            of: limits.truncation_recoveries,
            reason,
            max_output_tokens: limits.max_output_tokens.map(|limit| limit.tokens),
        }])
    }

    /// Runs the calls of a response and stores their results in call order.
    async fn answer_calls(&mut self, asked: Vec<Asked>) -> Result<(), Failure> {
        let calls = Calls {
            registry: &self.engine.registry,
            authority: &self.prompt.authority,
            issuer: &self.engine.issuer,
            recorder: &self.recorder,
            approvals: self.engine.approvals.as_ref(),
            active: &self.active,
            cancel: &self.prompt.cancel,
            clock: self.engine.clock,
            workspace: &self.prompt.workspace,
            spill_folder: &self.prompt.spill_folder,
        };
        let Round { results, n_told, unknown, refused, fault, written } =
            calls.run(&mut self.context, asked).await;
        self.refused = refused;
        for path in written {
            if !self.written.contains(&path) {
                self.written.push(path);
            }
        }
        // The result of a call that did not come back stays unwritten: the journal tells that it is uncertain.
        let untold: Vec<_> = results
            .iter()
            .skip(n_told)
            .filter(|result| !unknown.contains(&result.call_id))
            .map(|result| Message::Tool(result.clone()))
            .collect();
        let stored = if untold.is_empty() {
            Ok(())
        } else {
            self.commit(Vec::new(), |tx, run| untold.iter().try_for_each(|message| tx.message(run, message)))
        };
        for result in results {
            self.conversation.push(Message::Tool(result));
        }
        match fault {
            Some(RoundFault::Cancelled) => Err(self.cancelled(&unknown)),
            Some(RoundFault::RunTimeout { tool }) => Err(self.timed_out(TimeoutKind::Run, Some(tool), 0)),
            Some(RoundFault::Store(error)) => Err(failed(error, FailureCode::Store)),
            None => {
                stored?;
                self.check_budget()
            }
        }
    }

    fn check_budget(&self) -> Result<(), Failure> {
        let used = self.usage.map_or(0, |usage| usage.input + usage.output);
        let limit = self.prompt.limits.max_tokens;
        if used < limit {
            return Ok(());
        }
        let error = format!("the token budget of the run is spent: {used} of {limit} (`limits.maxTokens`)");
        Err(failed(error, FailureCode::TokenBudget))
    }

    fn count(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        let sum = self.usage.get_or_insert_default();
        sum.input += usage.input;
        sum.output += usage.output;
        sum.cached_input = match (sum.cached_input, usage.cached_input) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0) + other.unwrap_or(0)),
        };
    }

    /// Stores the end of the run and shows it.
    fn end(self, ended: Result<(String, bool), Failure>) -> Result<Outcome, RunError> {
        let stopped_by_limit = ended.as_ref().is_err_and(Failure::is_limit);
        let (status, event, text, error) = match ended {
            Ok((text, truncated)) => {
                let tokens = self.usage.map_or(0, |usage| usage.input + usage.output);
                let event = EventKind::RunCompleted { tokens, text: text.clone(), truncated };
                (RunStatus::Completed, event, text, None)
            }
            Err(Failure { status, event, error }) => {
                let event = *event;
                let error = (status != RunStatus::TurnsExceeded).then_some(error);
                (status, event, String::new(), error)
            }
        };
        let usage = self.usage;
        let ended_at = self.engine.clock.stamp();
        self.recorder.commit(Durability::Unsynced, vec![event], |tx| {
            tx.run_ended(&self.prompt.run_id, status, usage, error.as_deref(), &ended_at)
        })?;
        Ok(Outcome {
            status,
            text,
            usage,
            active_ms: u64::try_from(self.active.used().as_millis()).unwrap_or(u64::MAX),
            written: self.written,
            refused: self.refused,
            error,
            stopped_by_limit,
        })
    }

    fn commit<T>(
        &self,
        events: Vec<EventKind>,
        rows: impl FnOnce(&alisio_store::Tx<'_>, &RunId) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        self.recorder
            .commit(Durability::Unsynced, events, |tx| rows(tx, &self.prompt.run_id))
            .map_err(|error| store_failure(&error))
    }

    fn store_events(&self, events: Vec<EventKind>) -> Result<(), Failure> {
        self.recorder.store_events(events).map_err(|error| store_failure(&error))
    }

    fn turns_exceeded(&self) -> Failure {
        let max_turns = self.prompt.limits.max_turns;
        Failure {
            status: RunStatus::TurnsExceeded,
            event: Box::new(EventKind::RunTurnsExceeded { turns: self.turn, max_turns }),
            error: format!("the run used its {max_turns} turns"),
        }
    }

    fn turn_failure(&self, fault: TurnFault) -> Failure {
        match fault {
            TurnFault::Cancelled => self.cancelled(&[]),
            TurnFault::RunTimeout { attempts } => self.timed_out(TimeoutKind::Run, None, attempts),
            TurnFault::FirstToken { attempts } => self.timed_out(TimeoutKind::FirstToken, None, attempts),
            TurnFault::Provider { error, attempts } => match error.kind {
                ProviderErrorKind::Idle => self.timed_out(TimeoutKind::Idle, None, attempts),
                ProviderErrorKind::OutputTruncated => {
                    self.truncated_failure(self.prompt.limits.truncation_recoveries + 1)
                }
                _ => self.provider_failure(error, attempts),
            },
        }
    }

    fn cancelled(&self, unknown: &[CallId]) -> Failure {
        let mut error = self.prompt.cancel.reason();
        if !unknown.is_empty() {
            error.push_str("; a call did not come back, so its outcome is unknown");
        }
        Failure {
            status: RunStatus::Cancelled,
            event: Box::new(EventKind::RunCancelled { error: error.clone() }),
            error,
        }
    }

    fn provider_failure(&self, error: alisio_sdk::ProviderError, attempts: u32) -> Failure {
        let code = match error.kind {
            ProviderErrorKind::ContextLength => FailureCode::ContextLength,
            _ => FailureCode::Provider,
        };
        let mut text = error.message;
        if attempts > 1 {
            text.push_str(&format!(" (sent {attempts} times)"));
        }
        if !error.hint.is_empty() {
            // A service's own words may end a sentence; the hint goes on with it.
            text.truncate(text.trim_end_matches('.').len());
            text.push_str("; ");
            text.push_str(&error.hint);
        }
        failed(text, code)
    }

    fn truncated_failure(&self, attempts: u32) -> Failure {
        let max_output_tokens = self.prompt.limits.max_output_tokens.map(|limit| limit.tokens);
        let limit = max_output_tokens.map_or_else(String::new, |tokens| format!(" of {tokens} tokens"));
        let model = &self.prompt.model;
        let error = format!(
            "the output limit{limit} cut the response of `{model}` before it could be used, {attempts} times; raise \
             `limits.maxOutputTokens` or ask for less at once"
        );
        let mut failure = failed(error, FailureCode::OutputTruncated);
        if let EventKind::RunFailed { truncation, .. } = &mut *failure.event {
            *truncation = Some(TruncationInfo { attempts, max_output_tokens });
        }
        failure
    }

    fn timed_out(&self, kind: TimeoutKind, tool: Option<String>, attempts: u32) -> Failure {
        let limits = &self.prompt.limits;
        let (limit, what) = match kind {
            TimeoutKind::Run => (limits.timeout, "the run used its active time"),
            TimeoutKind::FirstToken => {
                (limits.first_token_timeout, "the model sent nothing for the first-token limit")
            }
            TimeoutKind::Idle => {
                (limits.idle_timeout, "the response stalled: the model sent nothing more for the idle limit")
            }
        };
        let (model, provider) = (self.prompt.model.clone(), self.engine.provider.id().to_owned());
        let error = format!("{what} of {} s (model `{model}`, provider `{provider}`)", limit.as_secs_f64());
        let info = TimeoutInfo {
            kind,
            ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
            model,
            provider,
            stage: if tool.is_some() { "tool".into() } else { "model".into() },
            tool,
            first_request: self.turn == 1,
            attempts,
        };
        let mut failure = failed(error, FailureCode::Timeout);
        if let EventKind::RunFailed { timeout, .. } = &mut *failure.event {
            *timeout = Some(info);
        }
        failure
    }
}

fn failed(error: String, code: FailureCode) -> Failure {
    let event = Box::new(EventKind::RunFailed {
        error: error.clone(),
        code: Some(code),
        timeout: None,
        truncation: None,
    });
    Failure { status: RunStatus::Failed, event, error }
}

fn store_failure(error: &StoreError) -> Failure {
    failed(error.to_string(), FailureCode::Store)
}

fn interruption_notice(repairs: &[String]) -> String {
    if repairs.is_empty() {
        return String::new();
    }
    format!(
        "This session was interrupted before. What was in flight then:\n- {}\nCheck the present state before you rely on \
         it.",
        repairs.join("\n- ")
    )
}
