//! Puts an engine together for one test and tells what came of a prompt.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alisio_conformance::{Scenario, ScriptedProvider};
use alisio_engine::{
    Approvals, Cancel, Clock, Engine, Limits, OpenSession, Operator, Outcome, Prompt, Registry, RunError,
};
use alisio_policy::{Answering, Authority, Issuer};
use alisio_protocol::{Answer, Approval, Effect, Event, EventKind, RunId, SessionId, Sha256, UserMessage};
use alisio_sdk::{InstructionFile, InstructionKind, InstructionSource, Provider, Tool};
use alisio_store::{Loaded, NewSession, Store};
use serde_json::Value;

use crate::tools::{Act, Log, TestTool};

/// An engine, a store and a session to try.
pub struct Rig {
    pub store: Store,
    pub session: SessionId,
    pub authority: Authority,
    pub limits: Limits,
    pub cancel: Cancel,
    pub log: Log,
    pub nested: Vec<InstructionFile>,
    /// Whether somebody can answer.
    pub asks: bool,
    runs: u32,
    folder: tempfile::TempDir,
}

/// What came of a prompt.
pub struct Told {
    pub outcome: Result<Outcome, RunError>,
    pub events: Vec<Event>,
    pub provider: ScriptedProvider,
}

impl Rig {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("sessions.sqlite")).unwrap();
        let session = SessionId::new("session-1");
        store
            .create_session(&NewSession {
                id: session.clone(),
                workspace: "/ws".into(),
                provider: "scripted".into(),
                model: "m".into(),
                agent: None,
                created_at: "2026-01-01T00:00:00.000Z".into(),
            })
            .unwrap();
        Self {
            store,
            session,
            authority: Authority::headless(),
            limits: Limits::default(),
            cancel: Cancel::new(),
            log: Arc::default(),
            nested: Vec::new(),
            asks: false,
            runs: 0,
            folder,
        }
    }

    pub fn allow(mut self, effects: &[Effect]) -> Self {
        self.authority.flags = effects.iter().copied().collect();
        self
    }

    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tool = |name, effect, act| TestTool::make(name, effect, act, &self.log);
        vec![
            tool("look", Effect::Read, Act::Answer),
            tool("slow_look", Effect::Read, Act::Slow),
            tool("stuck_look", Effect::Read, Act::Forever),
            tool("save", Effect::Write, Act::Answer),
            tool("work", Effect::Process, Act::UntilStopped),
            tool("stuck", Effect::Process, Act::Forever),
            tool("broken", Effect::Read, Act::Panic),
            tool("fetch", Effect::External, Act::Answer),
        ]
    }

    /// Works on a prompt with a model that answers as `turns` say.
    pub async fn prompt(&mut self, turns: Value) -> Told {
        let scenario: Scenario =
            serde_json::json!({ "turns": turns }).to_string().parse().expect("the scenario is good");
        self.prompt_with(ScriptedProvider::new(scenario)).await
    }

    pub async fn prompt_with(&mut self, provider: ScriptedProvider) -> Told {
        let (engine, prompt) = self.parts(&provider);
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let outcome = engine.run(self.open(), prompt, sender).await;
        let mut events = Vec::new();
        while let Ok(event) = receiver.try_recv() {
            events.push(event);
        }
        self.check_events(&events);
        Told { outcome, events, provider }
    }

    /// Works on a prompt, with `answer` in the place of a person.
    pub async fn prompt_answered(
        &mut self,
        turns: Value,
        answer: impl FnMut(&Approval) -> Result<Answer, &'static str>,
    ) -> Told {
        let scenario: Scenario =
            serde_json::json!({ "turns": turns }).to_string().parse().expect("the scenario is good");
        let provider = ScriptedProvider::new(scenario);
        let (engine, prompt) = self.parts(&provider);
        let operator = Operator::new(self.store.clone(), engine.clock);
        let session = self.open();
        let mut events = Vec::new();
        let outcome =
            engine.run_with(session, prompt, &operator, |event| events.push(event.clone()), answer).await;
        self.check_events(&events);
        Told { outcome, events, provider }
    }

    fn open(&self) -> OpenSession {
        let writer = self.store.lock(&self.session).unwrap();
        let loaded = writer.load().unwrap();
        OpenSession { writer, loaded, provider: "scripted".into(), model: "m".into() }
    }

    fn parts(&mut self, provider: &ScriptedProvider) -> (Engine, Prompt) {
        self.runs += 1;
        let engine = Engine {
            provider: Arc::new(provider.clone()) as Arc<dyn Provider>,
            registry: Registry::new(self.tools()),
            instructions: Arc::new(Nested(self.nested.clone())),
            issuer: Issuer::new(),
            approvals: self.asks.then(|| Approvals::listen(&self.store, None).unwrap()),
            clock: Clock::Fixed("2026-01-01T00:00:01Z".parse().unwrap()),
        };
        let prompt = Prompt {
            run_id: RunId::new(format!("run-{}", self.runs)),
            request_id: None,
            correlation_id: None,
            message: UserMessage { text: "do it".into(), ..UserMessage::default() },
            workspace: "/ws".into(),
            spill_folder: self.folder.path().to_owned(),
            model: "m".into(),
            authority: self.authority.clone(),
            limits: self.limits.clone(),
            cancel: self.cancel.clone(),
        };
        (engine, prompt)
    }

    /// What holds for every run: numbers without gaps, and every durable event on disk as it was shown.
    fn check_events(&self, events: &[Event]) {
        for (event, seq) in events.iter().zip(1..) {
            assert_eq!(event.seq, seq, "numbers have no gaps: {event:?}");
            assert_eq!(event.kind.is_durable(), event.event_id.is_some(), "{event:?}");
        }
        let stored = self.store.events(&self.session, None, 10_000).unwrap();
        for event in events.iter().filter(|event| event.kind.is_durable()) {
            assert!(stored.contains(event), "shown and not stored: {event:?}");
        }
    }

    /// Answers the questions of this rig, one after the other, as they come up.
    pub fn answer_with(&mut self, answers: Vec<Answer>) {
        self.asks = true;
        self.authority.answering = Answering::Person;
        let store = self.store.clone();
        std::thread::spawn(move || {
            for answer in answers {
                let request_id = loop {
                    if let Some(pending) = store.pending_approvals(None).unwrap().first() {
                        break pending.approval.request_id.clone();
                    }
                    std::thread::sleep(std::time::Duration::from_millis(2));
                };
                store.resolve(&request_id, &answer, "test", 0).unwrap();
            }
        });
    }

    pub fn loaded(&self) -> Loaded {
        self.store.lock(&self.session).unwrap().load().unwrap()
    }

    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Told {
    /// The events in short: type, and what matters of the payload.
    pub fn story(&self) -> String {
        self.events.iter().map(|event| format!("{}\n", line(&event.kind))).collect()
    }

    pub fn outcome(&self) -> &Outcome {
        self.outcome.as_ref().expect("the run began and its end was stored")
    }
}

fn line(kind: &EventKind) -> String {
    match kind {
        EventKind::RunStarted { model } => format!("run_started {model}"),
        EventKind::TextDelta { delta } => format!("text_delta {delta:?}"),
        EventKind::ReasoningDelta { delta } => format!("reasoning_delta {delta:?}"),
        EventKind::TurnCompleted { turn, calls, tokens, .. } => {
            format!("turn_completed {turn} calls={calls} tokens={tokens}")
        }
        EventKind::ToolDecided { name, verdict, source, .. } => {
            format!("tool_decided {name} {verdict:?} {source:?}")
        }
        EventKind::ApprovalRequested { name, effect, reason, .. } => {
            format!("approval_requested {name} {effect}: {reason}")
        }
        EventKind::ApprovalResolved { name, decision, resolution, .. } => {
            format!("approval_resolved {name} {decision} ({})", resolution.word())
        }
        EventKind::ToolStarted { name, effect, .. } => format!("tool_started {name} {effect}"),
        EventKind::ToolProgress { data, .. } => format!("tool_progress {data}"),
        EventKind::ToolCompleted { name, is_error, preview, .. } => {
            let mark = if *is_error { "error" } else { "ok" };
            format!("tool_completed {name} {mark}: {}", preview.lines().next().unwrap_or_default())
        }
        EventKind::ResponseTruncated { turn, .. } => format!("response_truncated {turn}"),
        EventKind::TruncationRecovery { attempt, of, reason, .. } => {
            format!("truncation_recovery {attempt}/{of} {reason:?}")
        }
        EventKind::RequestRetry { attempt, of, reason, status, .. } => {
            format!("request_retry {attempt}/{of} {reason:?} {status:?}")
        }
        EventKind::ContextReduced { messages } => format!("context_reduced {messages}"),
        EventKind::ModelChanged { model, previous } => format!("model_changed {previous} -> {model}"),
        EventKind::RunCompleted { tokens, text, truncated } => {
            format!("run_completed {text:?} tokens={tokens} truncated={truncated}")
        }
        EventKind::RunTurnsExceeded { turns, max_turns } => format!("run_turns_exceeded {turns}/{max_turns}"),
        EventKind::RunFailed { error, code, .. } => format!("run_failed {code:?}: {error}"),
        EventKind::RunCancelled { error } => format!("run_cancelled: {error}"),
    }
}

/// Instruction files below `/ws`.
struct Nested(Vec<InstructionFile>);

impl InstructionSource for Nested {
    fn eager(&self) -> Vec<InstructionFile> {
        Vec::new()
    }

    fn nested(&self, path: &Path) -> Vec<InstructionFile> {
        self.0
            .iter()
            .filter(|file| file.scope.as_ref().is_some_and(|scope| path.starts_with(scope)))
            .cloned()
            .collect()
    }
}

/// An instruction file that speaks for `scope`.
pub fn instructions(scope: &str, text: &str) -> InstructionFile {
    InstructionFile {
        path: PathBuf::from(scope).join("AGENTS.md"),
        scope: Some(scope.into()),
        kind: InstructionKind::Agents,
        text: text.into(),
        sha256: Sha256::of(text.as_bytes()),
        truncated: false,
    }
}
