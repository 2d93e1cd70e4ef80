//! Sessions and runs as rows: making, finding, listing. What is in a session is read by `load.rs` and `export.rs`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use alisio_protocol::{RunId, SessionId, Usage};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::store::check_id;
use crate::{
    Durability, ListFilter, NewSession, RunRow, RunStatus, SessionRow, SessionSummary, SessionWriter, Store,
    StoreError, lock,
};

const CANDIDATES: usize = 10;

impl Store {
    /// Keeps a new session.
    ///
    /// # Errors
    /// When the id can't be one or is in use, or the database fails.
    pub fn create_session(&self, session: &NewSession) -> Result<(), StoreError> {
        check_id(&session.id)?;
        self.write(Durability::Unsynced, |connection, _| {
            connection
                .prepare_cached(
                    "INSERT INTO sessions (id, workspace, provider, model, agent, created_at, updated_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
                )?
                .execute(params![
                    session.id.as_str(),
                    path_value(&session.workspace),
                    session.provider,
                    session.model,
                    session.agent,
                    session.created_at,
                ])?;
            Ok(())
        })
    }

    /// Returns a session.
    ///
    /// # Errors
    /// When the database fails.
    pub fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        let row = self.read(|connection| {
            let row = connection
                .prepare_cached(
                    "SELECT id, workspace, provider, model, agent, title, status, created_at, updated_at
                     FROM sessions WHERE id = ?1",
                )?
                .query_row([session.as_str()], |row| {
                    Ok(SessionRow {
                        id: SessionId::new(row.get::<_, String>(0)?),
                        workspace: path_of(row, 1)?,
                        provider: row.get(2)?,
                        model: row.get(3)?,
                        agent: row.get(4)?,
                        title: row.get::<_, Option<String>>(5)?.unwrap_or_default(),
                        status: status_of(row, 6)?,
                        created_at: row.get(7)?,
                        updated_at: row.get(8)?,
                    })
                })
                .optional()?;
            Ok(row)
        })?;
        Ok(row.map(|row| SessionRow { status: self.true_status(session, row.status), ..row }))
    }

    /// Finds the session whose id is, or begins with, `prefix`.
    ///
    /// # Errors
    /// [`StoreError::NoSession`], or [`StoreError::Ambiguous`] with the newest candidates.
    pub fn find(&self, prefix: &str) -> Result<SessionId, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id FROM sessions WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id = ?1 DESC, key DESC LIMIT ?2",
            )?;
            let candidates: Vec<String> = match prefix {
                "" => Vec::new(),
                _ => statement
                    .query_map(params![prefix, CANDIDATES as i64], |row| row.get(0))?
                    .collect::<Result<_, _>>()?,
            };
            match candidates.as_slice() {
                [] => Err(StoreError::NoSession(prefix.to_owned())),
                [first, ..] if first == prefix || candidates.len() == 1 => Ok(SessionId::new(first.as_str())),
                _ => Err(StoreError::Ambiguous {
                    prefix: prefix.to_owned(),
                    candidates: candidates.into_iter().map(SessionId::new).collect(),
                }),
            }
        })
    }

    /// Returns the session of `workspace` that was last worked on.
    ///
    /// # Errors
    /// When the database fails.
    pub fn latest(&self, workspace: &Path) -> Result<Option<SessionId>, StoreError> {
        let filter = ListFilter { workspace: Some(workspace), limit: 1, offset: 0 };
        Ok(self.list(&filter)?.pop().map(|summary| summary.id))
    }

    /// Lists sessions, the last worked on first.
    ///
    /// # Errors
    /// When the database fails.
    pub fn list(&self, filter: &ListFilter<'_>) -> Result<Vec<SessionSummary>, StoreError> {
        const COLUMNS: &str = "SELECT id, title, workspace, model, status, created_at, updated_at,
            (SELECT count(*) FROM messages WHERE session = sessions.key),
            (SELECT count(*) FROM runs WHERE session = sessions.key) FROM sessions";
        const ORDER: &str = "ORDER BY updated_at DESC, key DESC LIMIT ?1 OFFSET ?2";
        let (limit, offset) = (filter.limit.min(i64::MAX as usize) as i64, filter.offset as i64);
        let mut sessions = self.read(|connection| {
            let read = |row: &Row<'_>| {
                Ok(SessionSummary {
                    id: SessionId::new(row.get::<_, String>(0)?),
                    title: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
                    workspace: path_of(row, 2)?,
                    model: row.get(3)?,
                    status: status_of(row, 4)?,
                    created_at: row.get(5)?,
                    updated_at: row.get(6)?,
                    messages: row.get::<_, i64>(7)? as u64,
                    runs: row.get::<_, i64>(8)? as u64,
                })
            };
            let sessions = match filter.workspace {
                Some(workspace) => connection
                    .prepare_cached(&format!("{COLUMNS} WHERE workspace = ?3 {ORDER}"))?
                    .query_map(params![limit, offset, path_value(workspace)], read)?
                    .collect::<Result<Vec<_>, _>>()?,
                None => connection
                    .prepare_cached(&format!("{COLUMNS} {ORDER}"))?
                    .query_map(params![limit, offset], read)?
                    .collect::<Result<Vec<_>, _>>()?,
            };
            Ok(sessions)
        })?;
        for session in &mut sessions {
            session.status = self.true_status(&session.id, session.status);
        }
        Ok(sessions)
    }

    /// A run whose process is gone is interrupted, also before somebody writes that down.
    fn true_status(&self, session: &SessionId, status: Option<RunStatus>) -> Option<RunStatus> {
        match status {
            Some(RunStatus::Running) if lock::is_free(&self.inner.root.join("locks"), session.as_str()) => {
                Some(RunStatus::Interrupted)
            }
            other => other,
        }
    }

    /// Becomes the one writer of a session. Runs that a dead process left running are interrupted from here on; its
    /// questions are dropped and its unused answers void, which the ledger tells with the time of the system's clock.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process, or another writer of this one, has it; [`StoreError::NoSession`].
    pub fn lock(&self, session: &SessionId) -> Result<SessionWriter, StoreError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.lock_at(session, now.as_millis() as i64)
    }

    /// Does as [`Store::lock`] and takes the time, in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`Store::lock`].
    pub fn lock_at(&self, session: &SessionId, now_ms: i64) -> Result<SessionWriter, StoreError> {
        check_id(session)?;
        let missing = || StoreError::NoSession(session.as_str().to_owned());
        self.read(|connection| session_key(connection, session))?.ok_or_else(missing)?;
        let held = lock::take(&self.inner.root.join("locks"), session.as_str())?
            .map_err(|taken| StoreError::Locked { session: session.clone(), owner: taken.owner })?;
        // Whoever had it before may have deleted the session.
        let key = self.read(|connection| session_key(connection, session))?.ok_or_else(missing)?;
        let left: i64 = self.read(|connection| {
            let sql = "SELECT count(*) FROM runs WHERE session = ?1 AND status = 'running'";
            Ok(connection.prepare_cached(sql)?.query_row([key], |row| row.get(0))?)
        })?;
        if left > 0 {
            self.write(Durability::Unsynced, |connection, _| {
                connection.execute(
                    "UPDATE runs SET status = 'interrupted' WHERE session = ?1 AND status = 'running'",
                    [key],
                )?;
                connection.execute("UPDATE sessions SET status = 'interrupted' WHERE key = ?1", [key])?;
                Ok(())
            })?;
        }
        self.bury_approvals(session, key, now_ms)?;
        Ok(SessionWriter::new(self.clone(), session.clone(), key, held))
    }

    /// Returns the runs of a session, oldest first.
    ///
    /// # Errors
    /// [`StoreError::NoSession`], or when the database fails.
    pub fn runs(&self, session: &SessionId) -> Result<Vec<RunRow>, StoreError> {
        self.read(|connection| {
            let key = existing_key(connection, session)?;
            let mut statement =
                connection.prepare_cached(&format!("{RUN_COLUMNS} WHERE session = ?1 ORDER BY key"))?;
            let runs = statement.query_map([key], run_of)?.collect::<Result<_, _>>()?;
            Ok(runs)
        })
    }

    /// Returns the run that was started for a caller's request, so that asking twice starts one.
    ///
    /// # Errors
    /// When the database fails.
    pub fn run_by_request(
        &self,
        session: &SessionId,
        request_id: &str,
    ) -> Result<Option<RunRow>, StoreError> {
        self.read(|connection| {
            let Some(key) = session_key(connection, session)? else { return Ok(None) };
            let sql = format!("{RUN_COLUMNS} WHERE session = ?1 AND request_id = ?2");
            Ok(connection.prepare_cached(&sql)?.query_row(params![key, request_id], run_of).optional()?)
        })
    }
}

const RUN_COLUMNS: &str =
    "SELECT id, request_id, model, status, input_tokens, output_tokens, cached_tokens, error,
    started_at, ended_at FROM runs";

fn run_of(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let input: Option<i64> = row.get(4)?;
    let output: Option<i64> = row.get(5)?;
    let cached: Option<i64> = row.get(6)?;
    let usage = input.zip(output).map(|(input, output)| Usage {
        input: input as u64,
        output: output as u64,
        cached_input: cached.map(|cached| cached as u64),
    });
    Ok(RunRow {
        id: RunId::new(row.get::<_, String>(0)?),
        request_id: row.get(1)?,
        model: row.get(2)?,
        // An unknown word comes from a later version: nothing runs under it here.
        status: status_of(row, 3)?.unwrap_or(RunStatus::Interrupted),
        usage,
        error: row.get(7)?,
        started_at: row.get(8)?,
        ended_at: row.get(9)?,
    })
}

fn status_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<RunStatus>> {
    Ok(row.get::<_, Option<String>>(column)?.and_then(|word| RunStatus::parse(&word)))
}

/// Finds the number of a session.
pub(crate) fn session_key(connection: &Connection, session: &SessionId) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT key FROM sessions WHERE id = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([session.as_str()], |row| row.get(0)).optional()?)
}

/// Finds the number of a session that must be there.
pub(crate) fn existing_key(connection: &Connection, session: &SessionId) -> Result<i64, StoreError> {
    session_key(connection, session)?.ok_or_else(|| StoreError::NoSession(session.as_str().to_owned()))
}

/// A path as a value: text where it is UTF-8, so that people can read the table, else its bytes.
pub(crate) fn path_value(path: &Path) -> Value {
    match path.to_str() {
        Some(text) => Value::Text(text.to_owned()),
        None => Value::Blob(path.as_os_str().as_bytes().to_vec()),
    }
}

fn path_of(row: &Row<'_>, column: usize) -> rusqlite::Result<PathBuf> {
    let bytes = match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    };
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}
