//! Questions to a person, as rows. A row waits, is answered by exactly one, and lets its call run at most once.
//!
//! The row is the truth and the doorbell only a hint, so nothing is lost when either side is killed. An owner is alive
//! while its session's lock is held; a question without an owner can't be answered, and whoever takes the lock next
//! writes down that it was dropped. Which call is asked about, and whether what runs is what was shown, is for the
//! caller to know: a row holds the digest and compares it.

use std::collections::BTreeMap;

use alisio_protocol::{Answer, Approval, Resolution, SessionId, Sha256, Width};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use crate::sessions::session_key;
use crate::{
    ApprovalRow, Durability, LedgerEntry, PendingApproval, Resolved, Store, StoreError, Tx, grants, ledger,
    lock,
};

/// How many ids an ambiguous beginning is told with.
pub(crate) const CANDIDATES: i64 = 10;

const ASKED: &str = "the call waits for an answer";
const ANSWERED: &str = "somebody answered";
const PULLED: &str = "the answer to another question of the session holds for it too";
const TIMED_OUT: &str = "nobody answered in time";
const ABORTED: &str = "the run was stopped";
const GONE: &str = "the process that asked is gone";

impl Tx<'_> {
    /// Keeps a question, with its ledger entry. Once it is committed anybody may answer it with [`Store::resolve`].
    /// Listen to a [`Doorbell`](crate::Doorbell) before, so that no answer is missed.
    ///
    /// # Errors
    /// [`StoreError::NoSession`] when the question is another session's; when a question of that id is there already.
    pub fn approval_requested(&self, approval: &Approval) -> Result<(), StoreError> {
        if session_key(self.connection, &approval.session_id)? != Some(self.session) {
            return Err(StoreError::NoSession(approval.session_id.as_str().to_owned()));
        }
        self.connection
            .prepare_cached(
                "INSERT INTO approvals (id, session, tool, digest, deadline, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                approval.request_id,
                self.session,
                approval.tool,
                approval.digest.to_string(),
                approval.deadline,
                serde_json::to_string(approval)?,
            ])?;
        let at = stamp(approval.since)?;
        let entry = LedgerEntry::of_approval(at, LedgerEntry::REQUESTED, approval, ASKED);
        ledger::append(self.connection, &entry)?;
        self.rings.set(true);
        Ok(())
    }

    /// Ends all questions of the session that wait, as `resolution` says ([`Resolution::Aborted`] for a run that is
    /// stopped), and makes answers void whose call has not begun. An ending that would let calls run counts as
    /// [`Resolution::Aborted`]. Returns the questions that it ended, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub fn close_approvals(
        &self,
        resolution: &Resolution,
        now_ms: i64,
    ) -> Result<Vec<(String, Resolution)>, StoreError> {
        let (resolution, reason) = ending(resolution);
        let closed = close(self.connection, self.session, resolution, reason, now_ms)?;
        self.rings.set(self.rings.get() || !closed.is_empty());
        Ok(closed)
    }

    /// Ends one question of the session that waits, as [`Tx::close_approvals`] ends all of them, and leaves everything
    /// else. Says whether it did: false when it had ended before.
    ///
    /// # Errors
    /// [`StoreError::NoApproval`], or when the database fails.
    pub fn close_approval(
        &self,
        request_id: &str,
        resolution: &Resolution,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let sql = "WHERE id = ?1 AND session = ?2";
        let row = select(self.connection, sql, &[&request_id, &self.session])?.pop();
        let row = row.ok_or_else(|| StoreError::NoApproval(request_id.to_owned()))?;
        if row.resolution.is_some() {
            return Ok(false);
        }
        let (resolution, reason) = ending(resolution);
        settle(self.connection, &row.approval, resolution, &End { by: None, reason, grant: None, now_ms })?;
        self.rings.set(true);
        Ok(true)
    }

    /// Gives all questions of the session that wait another deadline; `None` takes it away, as is due while somebody
    /// looks at them. Returns how many there are.
    ///
    /// # Errors
    /// When the database fails.
    pub fn postpone_approvals(&self, deadline: Option<i64>) -> Result<usize, StoreError> {
        let sql = "UPDATE approvals SET deadline = ?2 WHERE session = ?1 AND open = 1 AND word IS NULL";
        let postponed = self.connection.prepare_cached(sql)?.execute(params![self.session, deadline])?;
        self.rings.set(self.rings.get() || postponed > 0);
        Ok(postponed)
    }

    /// Uses up an answer that lets a call run: to be done in the transaction that records the verdict. `digest` names
    /// what is about to run. Says whether it may: false when nobody let it run, when the answer was used or is void,
    /// and when something else was shown.
    ///
    /// # Errors
    /// When the database fails.
    pub fn mark_used(&self, request_id: &str, digest: &Sha256, now_ms: i64) -> Result<bool, StoreError> {
        let changed = self
            .connection
            .prepare_cached(
                "UPDATE approvals SET open = 0, used_at = ?4
                 WHERE id = ?1 AND session = ?2 AND digest = ?3 AND open = 1 AND word IN ('once', 'always')",
            )?
            .execute(params![request_id, self.session, digest.to_string(), now_ms])?;
        Ok(changed == 1)
    }
}

impl Store {
    /// Returns the questions that nobody has answered, of one session or of all, oldest first. Those whose process is
    /// gone are told too, and marked.
    ///
    /// # Errors
    /// When the database fails.
    pub fn pending_approvals(&self, session: Option<&SessionId>) -> Result<Vec<PendingApproval>, StoreError> {
        let waiting = self.read(|connection| match session {
            None => select(connection, "WHERE open = 1 AND word IS NULL ORDER BY key", &[]),
            Some(session) => match session_key(connection, session)? {
                Some(key) => select(connection, WAITING_OF_SESSION, &[&key]),
                None => Ok(Vec::new()),
            },
        })?;
        let mut alive = BTreeMap::new();
        let pending = waiting.into_iter().map(|row| {
            let session = row.approval.session_id.as_str().to_owned();
            let owner_alive = *alive.entry(session).or_insert_with_key(|session| self.is_owned(session));
            PendingApproval { approval: row.approval, owner_alive }
        });
        Ok(pending.collect())
    }

    /// Finds the question whose id is, or begins with, `prefix`.
    ///
    /// # Errors
    /// [`StoreError::NoApproval`], or [`StoreError::AmbiguousId`] with the newest candidates.
    pub fn approval(&self, prefix: &str) -> Result<ApprovalRow, StoreError> {
        let row = self.read(|connection| {
            let id = find(connection, "approvals", prefix)?
                .ok_or_else(|| StoreError::NoApproval(prefix.to_owned()))?;
            by_id(connection, &id)
        })?;
        if row.resolution.is_some() || self.is_owned(row.approval.session_id.as_str()) {
            return Ok(row);
        }
        // The owner may have ended it as its last act, after it was read.
        let mut row = self.read(|connection| by_id(connection, &row.approval.request_id))?;
        row.resolution.get_or_insert(Resolution::Dropped);
        Ok(row)
    }

    /// Answers a question. Exactly one answer wins, and it is on the disk when this returns; then the doorbells ring.
    /// `by` says who or what answers: `terminal`, `embedder`, …
    ///
    /// `always` without a width means the tool. It leaves a grant, and lets every other waiting call of the session run
    /// that the grant covers. `reject` refuses every other waiting call of the same tool in the session, without the
    /// feedback.
    ///
    /// # Errors
    /// [`StoreError::NoApproval`]; [`StoreError::AlreadyResolved`] with the answer that won; [`StoreError::NotPending`]
    /// when the process that asked is gone; [`StoreError::WidthNotOffered`] and [`StoreError::EndsAtOnce`], after
    /// which the question still waits.
    pub fn resolve(
        &self,
        request_id: &str,
        answer: &Answer,
        by: &str,
        now_ms: i64,
    ) -> Result<Resolved, StoreError> {
        // One that dies between its answer and its ring must not leave the run waiting: it rings before, too, and the
        // run looks again for a while.
        let asked = self.read(|connection| by_id(connection, request_id))?;
        if asked.resolution.is_none() {
            self.ring(&asked.approval.session_id);
        }
        let (session, outcome) = self.write(Durability::Synced, |connection, _| {
            let row = by_id(connection, request_id)?;
            let session = row.approval.session_id.clone();
            match row.resolution {
                Some(Resolution::Dropped) => return Err(StoreError::NotPending(request_id.to_owned())),
                Some(resolution) => {
                    return Err(StoreError::AlreadyResolved {
                        request_id: request_id.to_owned(),
                        resolution,
                    });
                }
                None => {}
            }
            // The lock is free while this transaction keeps everybody from asking: the question is a dead owner's.
            if !self.is_owned(session.as_str()) {
                let end = End { by: None, reason: GONE, grant: None, now_ms };
                settle(connection, &row.approval, &Resolution::Dropped, &end)?;
                return Ok((session, Err(StoreError::NotPending(request_id.to_owned()))));
            }
            let resolved = answer_in(connection, &row.approval, answer, by, now_ms)?;
            Ok((session, Ok(resolved)))
        })?;
        self.ring(&session);
        outcome
    }

    /// Refuses the questions whose deadline has come, and drops those among them whose process is gone. Returns what
    /// ended, oldest first; the doorbells ring for it.
    ///
    /// # Errors
    /// When the database fails.
    pub fn expire_approvals(&self, now_ms: i64) -> Result<Vec<(String, Resolution)>, StoreError> {
        const DUE: &str = "WHERE open = 1 AND word IS NULL AND deadline <= ?1 ORDER BY key";
        if self.read(|connection| select(connection, DUE, &[&now_ms]))?.is_empty() {
            return Ok(Vec::new());
        }
        let ended = self.write(Durability::Unsynced, |connection, _| {
            let mut ended = Vec::new();
            for row in select(connection, DUE, &[&now_ms])? {
                let (resolution, reason) = match self.is_owned(row.approval.session_id.as_str()) {
                    true => (Resolution::Timeout, TIMED_OUT),
                    false => (Resolution::Dropped, GONE),
                };
                settle(
                    connection,
                    &row.approval,
                    &resolution,
                    &End { by: None, reason, grant: None, now_ms },
                )?;
                ended.push((row.approval, resolution));
            }
            Ok(ended)
        })?;
        let mut sessions: Vec<_> = ended.iter().map(|(approval, _)| &approval.session_id).collect();
        sessions.dedup();
        sessions.into_iter().for_each(|session| self.ring(session));
        Ok(ended.into_iter().map(|(approval, resolution)| (approval.request_id, resolution)).collect())
    }

    /// Closes what a dead owner left, for the one who has just taken its lock.
    pub(crate) fn bury_approvals(
        &self,
        session: &SessionId,
        key: i64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM approvals WHERE session = ?1 AND open = 1)";
        if !self
            .read(|connection| Ok(connection.prepare_cached(sql)?.query_row([key], |row| row.get(0))?))?
        {
            return Ok(());
        }
        self.write(Durability::Unsynced, |connection, _| {
            close(connection, key, &Resolution::Dropped, GONE, now_ms)
        })?;
        self.ring(session);
        Ok(())
    }

    /// Whether a process works on the session.
    fn is_owned(&self, session: &str) -> bool {
        !lock::is_free(&self.inner.root.join("locks"), session)
    }
}

/// An ending that nobody gave, and its sentence for the ledger.
fn ending(resolution: &Resolution) -> (&Resolution, &'static str) {
    match resolution {
        Resolution::Dropped => (resolution, GONE),
        Resolution::Timeout => (resolution, TIMED_OUT),
        Resolution::Once | Resolution::Always { .. } => (&Resolution::Aborted, ABORTED),
        Resolution::Aborted | Resolution::Reject { .. } => (resolution, ABORTED),
    }
}

/// How a question ends, but for the resolution itself.
struct End<'a> {
    by: Option<&'a str>,
    /// A sentence for the ledger.
    reason: &'a str,
    grant: Option<&'a str>,
    now_ms: i64,
}

/// Writes an answer and what follows from it.
fn answer_in(
    connection: &Connection,
    approval: &Approval,
    answer: &Answer,
    by: &str,
    now_ms: i64,
) -> Result<Resolved, StoreError> {
    let (resolution, grant) = match answer {
        Answer::Once => (Resolution::Once, None),
        Answer::Reject { feedback } => (Resolution::Reject { feedback: feedback.clone() }, None),
        Answer::Always { width, life, expires_at } => {
            let (width, life) = (width.unwrap_or(Width::Tool), *life);
            if let Some(end) = expires_at.filter(|end| *end <= now_ms) {
                return Err(StoreError::EndsAtOnce(end));
            }
            let grant = grants::create(connection, approval, width, life, *expires_at, now_ms)?;
            (Resolution::Always { width, life }, Some(grant))
        }
    };
    let grant_id = grant.as_ref().map(|grant| grant.id.as_str());
    let end = End { by: Some(by), reason: ANSWERED, grant: grant_id, now_ms };
    settle(connection, approval, &resolution, &end)?;
    let mut fanned_out = Vec::new();
    if *answer != Answer::Once {
        let key = session_key(connection, &approval.session_id)?;
        let end = End { reason: PULLED, ..end };
        for other in select(connection, WAITING_OF_SESSION, &[&key])? {
            let other = other.approval;
            let resolution = match &grant {
                Some(grant) if grants::covers(grant, &other) => Resolution::Once,
                None if other.tool == approval.tool => Resolution::Reject { feedback: None },
                _ => continue,
            };
            settle(connection, &other, &resolution, &end)?;
            fanned_out.push((other.request_id, resolution));
        }
    }
    Ok(Resolved { resolution, fanned_out, grant })
}

/// Ends the waiting questions of a session, and voids the answers that were not used.
fn close(
    connection: &Connection,
    session: i64,
    resolution: &Resolution,
    reason: &str,
    now_ms: i64,
) -> Result<Vec<(String, Resolution)>, StoreError> {
    let mut closed = Vec::new();
    for row in select(connection, "WHERE session = ?1 AND open = 1 ORDER BY key", &[&session])? {
        match row.resolution {
            None => {
                settle(
                    connection,
                    &row.approval,
                    resolution,
                    &End { by: None, reason, grant: None, now_ms },
                )?;
                closed.push((row.approval.request_id, resolution.clone()));
            }
            Some(given) => {
                connection
                    .prepare_cached("UPDATE approvals SET open = 0, void_at = ?2 WHERE id = ?1")?
                    .execute(params![row.approval.request_id, now_ms])?;
                let mut entry =
                    LedgerEntry::of_approval(stamp(now_ms)?, LedgerEntry::VOIDED, &row.approval, reason);
                entry.decision = Some(given.word().to_owned());
                ledger::append(connection, &entry)?;
            }
        }
    }
    Ok(closed)
}

/// Ends a question that waits, with its ledger entry.
fn settle(
    connection: &Connection,
    approval: &Approval,
    resolution: &Resolution,
    end: &End<'_>,
) -> Result<(), StoreError> {
    let changed = connection
        .prepare_cached(
            "UPDATE approvals SET open = ?2, word = ?3, resolution = ?4, resolved_by = ?5, resolved_at = ?6
             WHERE id = ?1 AND word IS NULL",
        )?
        .execute(params![
            approval.request_id,
            resolution.allows(),
            resolution.word(),
            serde_json::to_string(resolution)?,
            end.by,
            end.now_ms,
        ])?;
    debug_assert_eq!(changed, 1, "the row was read in this write transaction");
    let mut entry = LedgerEntry::of_approval(stamp(end.now_ms)?, LedgerEntry::RESOLVED, approval, end.reason);
    entry.by = end.by.map(str::to_owned);
    entry.decision = Some(resolution.word().to_owned());
    entry.grant = end.grant.map(str::to_owned);
    if let Resolution::Always { width, life } = resolution {
        (entry.width, entry.life) = (Some(*width), Some(*life));
    }
    ledger::append(connection, &entry)?;
    Ok(())
}

const WAITING_OF_SESSION: &str = "WHERE session = ?1 AND open = 1 AND word IS NULL ORDER BY key";

fn by_id(connection: &Connection, id: &str) -> Result<ApprovalRow, StoreError> {
    let row = select(connection, "WHERE id = ?1", &[&id])?.pop();
    row.ok_or_else(|| StoreError::NoApproval(id.to_owned()))
}

fn select(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> Result<Vec<ApprovalRow>, StoreError> {
    let sql = format!(
        "SELECT body, deadline, resolution, resolved_by, resolved_at, used_at, void_at FROM approvals {condition}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(values)?;
    let mut approvals = Vec::new();
    while let Some(row) = rows.next()? {
        approvals.push(row_of(row)?);
    }
    Ok(approvals)
}

fn row_of(row: &Row<'_>) -> Result<ApprovalRow, StoreError> {
    let text = |column| row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from);
    let approval: Approval = serde_json::from_str(text(0)?.unwrap_or_default())?;
    Ok(ApprovalRow {
        approval: Approval { deadline: row.get(1)?, ..approval },
        resolution: text(2)?.map(serde_json::from_str).transpose()?,
        by: row.get(3)?,
        resolved_at: row.get(4)?,
        used: row.get::<_, Option<i64>>(5)?.is_some(),
        void: row.get::<_, Option<i64>>(6)?.is_some(),
    })
}

/// Finds the one id in `table` that is, or begins with, `prefix`.
pub(crate) fn find(
    connection: &Connection,
    table: &'static str,
    prefix: &str,
) -> Result<Option<String>, StoreError> {
    let exact = format!("SELECT id FROM {table} WHERE id = ?1");
    let exact = connection.prepare_cached(&exact)?.query_row([prefix], |row| row.get(0)).optional()?;
    if exact.is_some() || prefix.is_empty() {
        return Ok(exact);
    }
    let similar =
        format!("SELECT id FROM {table} WHERE substr(id, 1, length(?1)) = ?1 ORDER BY key DESC LIMIT ?2");
    let mut statement = connection.prepare_cached(&similar)?;
    let mut candidates: Vec<String> =
        statement.query_map(params![prefix, CANDIDATES], |row| row.get(0))?.collect::<Result<_, _>>()?;
    match candidates.len() {
        0 | 1 => Ok(candidates.pop()),
        _ => Err(StoreError::AmbiguousId { what: table, prefix: prefix.to_owned(), candidates }),
    }
}

/// Writes a time as the ledger has it.
pub(crate) fn stamp(ms: i64) -> Result<String, StoreError> {
    let time = jiff::Timestamp::from_millisecond(ms).map_err(|_| StoreError::Time(ms.to_string()))?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}
