//! The one writer of a session, and what can be written in one transaction.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use alisio_protocol::{CallId, Event, EventId, Message, RunId, SessionId, ToolResult, Usage};
use rusqlite::{Connection, OptionalExtension, params};

use crate::content::{Blobs, Packer};
use crate::lock::HeldLock;
use crate::{
    CallRow, Durability, LedgerEntry, LedgerHead, Loaded, NewRun, RunStatus, Store, StoreError, ledger, load,
};

/// How many characters a title has at most.
const TITLE_LIMIT: usize = 60;

/// The right to write a session, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct SessionWriter {
    store: Store,
    session: SessionId,
    pub(crate) key: i64,
    _lock: HeldLock,
}

impl SessionWriter {
    pub(crate) fn new(store: Store, session: SessionId, key: i64, lock: HeldLock) -> Self {
        Self { store, session, key, _lock: lock }
    }

    /// Returns the session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the store that it is in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Reads the conversation and makes it fit to be sent. Calls that can't have left anything and have no result are
    /// closed in the journal; those that can are listed as uncertain.
    ///
    /// # Errors
    /// When the database fails; odd rows are told, not failed on.
    pub fn load(&self) -> Result<Loaded, StoreError> {
        let blobs = &self.store.inner.blobs;
        let (loaded, closings) = self.store.read(|connection| load::load(connection, blobs, self.key))?;
        if !closings.is_empty() {
            self.store.write(Durability::Unsynced, |connection, _| load::close(connection, &closings))?;
        }
        Ok(loaded)
    }

    /// Writes in one transaction: all that `act` does is kept, or, when it or the commit fails, nothing. `act` must
    /// not use the store or a writer otherwise: it would wait for itself.
    ///
    /// # Errors
    /// Those of `act`, and a sentence for a full disk, a place that became read-only and a busy database.
    pub fn commit<T>(
        &self,
        durability: Durability,
        act: impl FnOnce(&Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let blobs = &self.store.inner.blobs;
        let rings = Cell::new(false);
        let result = self.store.write(durability, |connection, written| {
            act(&Tx { connection, blobs, written, session: self.key, rings: &rings })
        })?;
        if rings.get() {
            self.store.ring(&self.session);
        }
        Ok(result)
    }

    /// Records of every uncertain call that its outcome is unknown, as its result, and returns those calls. Nothing is
    /// verified, completed or undone.
    ///
    /// # Errors
    /// When the database fails.
    pub fn acknowledge_uncertain(&self, now: &str) -> Result<Vec<CallId>, StoreError> {
        self.store.write(Durability::Synced, |connection, _| load::acknowledge(connection, self.key, now))
    }
}

/// An open transaction of a session.
pub struct Tx<'a> {
    pub(crate) connection: &'a Connection,
    blobs: &'a Blobs,
    written: &'a RefCell<Vec<PathBuf>>,
    pub(crate) session: i64,
    /// Set where others wait for what was written: the commit then rings.
    pub(crate) rings: &'a Cell<bool>,
}

impl Tx<'_> {
    pub(crate) fn connection(&self) -> &Connection {
        self.connection
    }

    fn packer(&self) -> Packer<'_> {
        Packer {
            blobs: self.blobs,
            connection: self.connection,
            session: self.session,
            written: self.written,
        }
    }

    /// Keeps a durable event and gives it its number, which counts over the whole store and only grows. An event that
    /// only shows progress is left alone. The number is good once the commit has succeeded.
    ///
    /// # Errors
    /// When the database fails.
    pub fn event(&self, event: &mut Event) -> Result<(), StoreError> {
        if !event.kind.is_durable() {
            return Ok(());
        }
        let mut kind = serde_json::to_value(&event.kind)?;
        let data = self.packer().pack(&kind["data"].take())?;
        self.connection
            .prepare_cached(
                "INSERT INTO events (session, run, run_seq, version, type, data, refs, timestamp, correlation_id)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                self.session,
                event.run_id.as_str(),
                event.seq as i64,
                event.schema_version,
                kind["type"].as_str().unwrap_or_default(),
                data.body,
                data.refs,
                event.timestamp,
                event.correlation_id,
            ])?;
        event.event_id = Some(EventId(self.connection.last_insert_rowid() as u64));
        Ok(())
    }

    /// Adds a message to the conversation. A result that the journal holds is not kept a second time. The first
    /// prompt gives the session its title.
    ///
    /// # Errors
    /// When the database fails.
    pub fn message(&self, run: &RunId, message: &Message) -> Result<(), StoreError> {
        match message {
            Message::User(prompt) => {
                let title = title_of(prompt.display.as_deref().unwrap_or(&prompt.text));
                self.connection
                    .prepare_cached("UPDATE sessions SET title = ?2 WHERE key = ?1 AND title IS NULL")?
                    .execute(params![self.session, title])?;
                let body = self.packer().pack(message)?;
                self.insert_message(run, "user", None, None, Some(&body.body), body.refs.as_deref())
            }
            Message::Assistant(_) => {
                let body = self.packer().pack(message)?;
                self.insert_message(run, "assistant", None, None, Some(&body.body), body.refs.as_deref())
            }
            Message::Tool(answer) => {
                let call = answer.call_id.as_str();
                // Servers repeat ids: the oldest call of that id that no message has told of is meant.
                let row = self
                    .connection
                    .prepare_cached(
                        "SELECT key, result, result_refs FROM calls
                         WHERE session = ?1 AND call = ?2 AND run = ?3 AND in_message = 0 ORDER BY key LIMIT 1",
                    )?
                    .query_row(params![self.session, call, run.as_str()], |row| {
                        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?, row.get::<_, Option<String>>(2)?))
                    })
                    .optional()?;
                let result = self.packer().pack(&answer.result)?;
                let Some((key, kept, kept_refs)) = row else {
                    return self.insert_message(
                        run,
                        "tool",
                        Some(call),
                        None,
                        Some(&result.body),
                        result.refs.as_deref(),
                    );
                };
                self.connection
                    .prepare_cached("UPDATE calls SET in_message = 1 WHERE key = ?1")?
                    .execute([key])?;
                if kept.as_ref() == Some(&result.body) && kept_refs == result.refs {
                    return self.insert_message(run, "tool", Some(call), Some(key), None, None);
                }
                self.insert_message(
                    run,
                    "tool",
                    Some(call),
                    Some(key),
                    Some(&result.body),
                    result.refs.as_deref(),
                )
            }
        }
    }

    fn insert_message(
        &self,
        run: &RunId,
        role: &str,
        call: Option<&str>,
        call_key: Option<i64>,
        body: Option<&str>,
        refs: Option<&str>,
    ) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "INSERT INTO messages (session, run, role, call, call_key, body, refs)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![self.session, run.as_str(), role, call, call_key, body, refs])?;
        Ok(())
    }

    /// Adds an entry to the ledger. Whoever listens to a [`Doorbell`](crate::Doorbell) is told.
    ///
    /// # Errors
    /// When the database fails.
    pub fn ledger(&self, entry: &LedgerEntry) -> Result<LedgerHead, StoreError> {
        self.rings.set(true);
        ledger::append(self.connection, entry)
    }

    /// Writes into the journal that a call is about to run.
    ///
    /// # Errors
    /// When the database fails.
    pub fn call_started(&self, call: &CallRow) -> Result<(), StoreError> {
        // In a list of one, so that the text goes by the same hash as in the message and the event.
        let arguments = self.packer().pack(&[&call.arguments])?;
        self.connection
            .prepare_cached(
                "INSERT INTO calls (session, run, call, tool, effect, arguments, arguments_refs, digest, started_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                self.session,
                call.run.as_str(),
                call.call.as_str(),
                call.tool,
                call.effect.as_str(),
                arguments.body,
                arguments.refs,
                call.digest.to_string(),
                call.started_at,
            ])?;
        Ok(())
    }

    /// Writes into the journal what a call gave. A result that is there is never replaced.
    ///
    /// # Errors
    /// [`StoreError::NoCall`] when no call of that id waits for a result.
    pub fn call_ended(&self, call: &CallId, result: &ToolResult, ended_at: &str) -> Result<(), StoreError> {
        let packed = self.packer().pack(result)?;
        let changed = self
            .connection
            .prepare_cached(
                "UPDATE calls SET result = ?3, result_refs = ?4, ended_at = ?5 WHERE key =
                 (SELECT key FROM calls WHERE session = ?1 AND call = ?2 AND result IS NULL ORDER BY key LIMIT 1)",
            )?
            .execute(params![self.session, call.as_str(), packed.body, packed.refs, ended_at])?;
        if changed == 0 { Err(StoreError::NoCall(call.clone())) } else { Ok(()) }
    }

    /// Keeps a run that begins.
    ///
    /// # Errors
    /// When the run or its request is there already, or the database fails.
    pub fn run_started(&self, run: &NewRun) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "INSERT INTO runs (id, session, request_id, model, status, started_at)
                 VALUES (?1, ?2, ?3, ?4, 'running', ?5)",
            )?
            .execute(params![run.id.as_str(), self.session, run.request_id, run.model, run.started_at])?;
        self.set_status(RunStatus::Running, &run.started_at)
    }

    /// Ends a run, unless it has ended: an end is never replaced. Says whether it did.
    ///
    /// # Errors
    /// When the database fails.
    pub fn run_ended(
        &self,
        run: &RunId,
        status: RunStatus,
        usage: Option<Usage>,
        error: Option<&str>,
        ended_at: &str,
    ) -> Result<bool, StoreError> {
        let changed = self
            .connection
            .prepare_cached(
                "UPDATE runs SET status = ?3, input_tokens = ?4, output_tokens = ?5, cached_tokens = ?6, error = ?7,
                 ended_at = ?8 WHERE id = ?2 AND session = ?1 AND status = 'running'",
            )?
            .execute(params![
                self.session,
                run.as_str(),
                status.as_str(),
                usage.map(|usage| usage.input as i64),
                usage.map(|usage| usage.output as i64),
                usage.and_then(|usage| usage.cached_input).map(|cached| cached as i64),
                error,
                ended_at,
            ])?;
        if changed == 0 {
            return Ok(false);
        }
        self.set_status(status, ended_at)?;
        Ok(true)
    }

    fn set_status(&self, status: RunStatus, at: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "UPDATE sessions SET status = ?2, updated_at = max(updated_at, ?3) WHERE key = ?1",
            )?
            .execute(params![self.session, status.as_str(), at])?;
        Ok(())
    }

    /// Changes the model of the session.
    ///
    /// # Errors
    /// When the database fails.
    pub fn set_model(&self, model: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("UPDATE sessions SET model = ?2 WHERE key = ?1")?
            .execute(params![self.session, model])?;
        Ok(())
    }

    /// Notes that the repairs of the last load were told, so that the next load does not tell them again.
    ///
    /// # Errors
    /// When the database fails.
    pub fn repairs_told(&self) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "UPDATE sessions SET told_to =
                 coalesce((SELECT max(key) FROM messages WHERE session = ?1), told_to) WHERE key = ?1",
            )?
            .execute([self.session])?;
        Ok(())
    }
}

/// Makes a title of a prompt: one line, at most 60 characters.
fn title_of(text: &str) -> String {
    let mut title = String::new();
    for word in text.split_whitespace() {
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
        if title.len() > TITLE_LIMIT * 4 {
            break;
        }
    }
    title.retain(|character| !character.is_control());
    match title.char_indices().nth(TITLE_LIMIT) {
        Some(_) => title.chars().take(TITLE_LIMIT - 1).chain(['…']).collect(),
        None => title,
    }
}
