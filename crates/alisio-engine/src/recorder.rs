//! Writes what happens in a run, then shows it.
//!
//! The order is the same everywhere: numbers are given out, rows and events are committed together, and only then does
//! anyone see the events. An event that could not be stored is never shown.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use alisio_policy::{RuleId, Uses};
use alisio_protocol::{Event, EventKind, Grant, RunId, SessionId};
use alisio_store::{Durability, SessionWriter, StoreError, Tx};
use tokio::sync::mpsc::UnboundedSender;

use crate::clock::Clock;

/// Numbers, stores and shows the events of one run.
pub(crate) struct Recorder {
    run_id: RunId,
    session_id: SessionId,
    correlation_id: Option<String>,
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    writer: SessionWriter,
    seq: u64,
    surface: UnboundedSender<Event>,
}

impl Recorder {
    pub(crate) fn new(
        run_id: RunId,
        correlation_id: Option<String>,
        clock: Clock,
        writer: SessionWriter,
        surface: UnboundedSender<Event>,
    ) -> Self {
        let session_id = writer.session().clone();
        Self {
            run_id,
            session_id,
            correlation_id,
            clock,
            state: Mutex::new(State { writer, seq: 0, surface }),
        }
    }

    pub(crate) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    pub(crate) fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// What a person allowed before, in this session or for this workspace.
    pub(crate) fn grants(&self, workspace: &Path, now_ms: i64) -> Result<Vec<Grant>, StoreError> {
        self.state().writer.store().grants(&self.session_id, workspace, now_ms)
    }

    /// When a rule with a ceiling let calls through; `None` where that can't be told.
    fn rule_uses(&self, rule: &RuleId) -> Option<Vec<i64>> {
        self.state().writer.store().rule_uses(rule.as_str(), i64::MIN).ok()
    }

    /// Shows something that is not kept.
    pub(crate) fn show(&self, kind: EventKind) {
        let mut state = self.state();
        state.seq += 1;
        let event = self.event(state.seq, kind);
        // Nobody looking is no fault.
        let _ = state.surface.send(event);
    }

    /// Stores events alone, then shows them.
    pub(crate) fn store_events(&self, kinds: Vec<EventKind>) -> Result<(), StoreError> {
        self.commit(Durability::Unsynced, kinds, |_| Ok(()))
    }

    /// Stores rows and events in one transaction, then shows the events.
    pub(crate) fn commit<T>(
        &self,
        durability: Durability,
        kinds: Vec<EventKind>,
        rows: impl FnOnce(&Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut state = self.state();
        let first = state.seq + 1;
        let mut events: Vec<Event> = (first..).zip(kinds).map(|(seq, kind)| self.event(seq, kind)).collect();
        let value = state.writer.commit(durability, |tx| {
            let value = rows(tx)?;
            for event in &mut events {
                tx.event(event)?;
            }
            Ok(value)
        })?;
        for event in events {
            state.seq = event.seq;
            let _ = state.surface.send(event);
        }
        Ok(value)
    }

    fn event(&self, seq: u64, kind: EventKind) -> Event {
        Event {
            schema_version: 1,
            run_id: self.run_id.clone(),
            session_id: self.session_id.clone(),
            seq,
            kind,
            timestamp: self.clock.stamp(),
            event_id: None,
            correlation_id: self.correlation_id.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Uses for Recorder {
    fn times(&self, rule: &RuleId) -> Option<Vec<i64>> {
        self.rule_uses(rule)
    }
}
