//! The trail of verdicts: append-only and chained by hash, so that an entry can't be changed or taken out without
//! every later hash being wrong.
//!
//! It holds metadata, never contents or arguments, and it outlives the sessions it speaks of. What it can't show by
//! itself is that its *end* was cut off: for that, keep a [`LedgerHead`] elsewhere and compare.

use std::path::Path;

use alisio_policy::Verdict;
use alisio_protocol::{
    Approval, CallId, Effect, Life, RunId, SessionId, Sha256, VerdictSource, VerdictWord, Width,
};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::{Store, StoreError};

/// One entry. Its fields stand in alphabetical order, so that its JSON is canonical: this very text is stored and
/// hashed. A field that may be absent is then not written at all, so that older entries read and print as they did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// When it was decided.
    pub at: String,
    /// Who or what ended the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The call.
    pub call: CallId,
    /// How the question ended: `once`, `always`, `reject`, `timeout`, `aborted` or `dropped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Names what would run, to the byte.
    pub digest: Sha256,
    /// What the tool does to the world.
    pub effect: Effect,
    /// The grant that was made or taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// What the entry tells of: one of the constants of this type.
    pub kind: String,
    /// How long the grant lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<Life>,
    /// What the call may touch: relative to the workspace where it lies there, else absolute.
    pub paths: Vec<String>,
    /// Why, in one sentence.
    pub reason: String,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The run.
    pub run: RunId,
    /// The session.
    pub session: SessionId,
    /// What decided; verdicts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<VerdictSource>,
    /// The tool.
    pub tool: String,
    /// Whether it may run; verdicts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictWord>,
    /// How wide the grant is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Width>,
}

impl LedgerEntry {
    /// The kind of an entry that tells a verdict.
    pub const VERDICT: &'static str = "verdict";
    /// The kind of an entry that tells of a question.
    pub const REQUESTED: &'static str = "permission.requested";
    /// The kind of an entry that tells how a question ended.
    pub const RESOLVED: &'static str = "permission.resolved";
    /// The kind of an entry that tells that the leave to run ended before the call began.
    pub const VOIDED: &'static str = "permission.voided";
    /// The kind of an entry that tells that a grant was taken back.
    pub const REVOKED: &'static str = "permission.revoked";

    /// Makes the entry for a verdict; `workspace` is the directory that paths are told relative to.
    pub fn of_verdict(
        at: String,
        session: SessionId,
        run: RunId,
        workspace: &Path,
        verdict: &Verdict,
    ) -> Self {
        let request = &verdict.request;
        let scope = &request.scope;
        let mut paths: Vec<String> = Vec::new();
        for path in scope.reads.iter().chain(&scope.writes).chain(&scope.spawns_in) {
            let path = match path.strip_prefix(workspace) {
                Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
                Ok(inside) => inside.to_string_lossy().into_owned(),
                Err(_) => path.to_string_lossy().into_owned(),
            };
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        Self {
            at,
            by: None,
            call: request.call.clone(),
            decision: None,
            digest: request.digest,
            effect: request.effect,
            grant: None,
            kind: Self::VERDICT.to_owned(),
            life: None,
            paths,
            reason: verdict.basis.reason.clone(),
            request: None,
            run,
            session,
            source: Some(verdict.basis.source),
            tool: request.tool.clone(),
            verdict: Some(verdict.word),
            width: None,
        }
    }

    /// Makes an entry about a question. Neither its target nor what was shown nor its reason, which may quote them, is
    /// in it: `reason` is a sentence of ours.
    pub(crate) fn of_approval(at: String, kind: &str, approval: &Approval, reason: &str) -> Self {
        Self {
            at,
            by: None,
            call: approval.call_id.clone(),
            decision: None,
            digest: approval.digest,
            effect: approval.effect,
            grant: None,
            kind: kind.to_owned(),
            life: None,
            paths: Vec::new(),
            reason: reason.to_owned(),
            request: Some(approval.request_id.clone()),
            run: approval.run_id.clone(),
            session: approval.session_id.clone(),
            source: None,
            tool: approval.tool.clone(),
            verdict: None,
            width: None,
        }
    }
}

/// The end of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerHead {
    /// How many entries there are.
    pub seq: u64,
    /// The hash of the last one; 64 zeros before the first.
    pub hash: Sha256,
}

impl LedgerHead {
    const START: Self = Self { seq: 0, hash: Sha256::from_bytes([0; 32]) };
}

/// What walking the chain found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerCheck {
    /// Every hash is right; this is the end.
    Whole(LedgerHead),
    /// The first entry that is not what was written.
    Broken {
        /// Its number.
        seq: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// Hashes an entry onto the chain: SHA-256 over the 32 bytes of the previous hash and the JSON text.
fn chain(previous: &Sha256, entry: &str) -> Sha256 {
    let mut bytes = Vec::with_capacity(32 + entry.len());
    bytes.extend_from_slice(previous.as_bytes());
    bytes.extend_from_slice(entry.as_bytes());
    Sha256::of(&bytes)
}

fn head(connection: &Connection) -> Result<LedgerHead, StoreError> {
    let last = connection
        .prepare_cached("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    let Some((seq, hash)) = last else { return Ok(LedgerHead::START) };
    // A hash that can't be read breaks the chain there; `verify_ledger` names the entry. Appending goes on from the
    // text that stands there, so that evidence is added to and never lost.
    let hash = hash.parse().unwrap_or_else(|_| Sha256::of(hash.as_bytes()));
    Ok(LedgerHead { seq: seq as u64, hash })
}

/// Appends within a write transaction, which is what keeps two processes from following the same entry.
pub(crate) fn append(connection: &Connection, entry: &LedgerEntry) -> Result<LedgerHead, StoreError> {
    let previous = head(connection)?;
    let text = serde_json::to_string(entry)?;
    let next = LedgerHead { seq: previous.seq + 1, hash: chain(&previous.hash, &text) };
    connection
        .prepare_cached("INSERT INTO ledger (seq, hash, entry) VALUES (?1, ?2, ?3)")?
        .execute(params![next.seq as i64, next.hash.to_string(), text])?;
    Ok(next)
}

impl Store {
    /// Returns the end of the chain.
    ///
    /// # Errors
    /// When the database fails.
    pub fn ledger_head(&self) -> Result<LedgerHead, StoreError> {
        self.read(head)
    }

    /// Returns the hash of entry `seq` as it stands; `None` where there is no such entry.
    ///
    /// # Errors
    /// When the database fails.
    pub fn ledger_hash(&self, seq: u64) -> Result<Option<Sha256>, StoreError> {
        self.read(|connection| {
            let hash = connection
                .prepare_cached("SELECT hash FROM ledger WHERE seq = ?1")?
                .query_row([i64::try_from(seq).unwrap_or(i64::MAX)], |row| row.get::<_, String>(0))
                .optional()?;
            Ok(hash.and_then(|hash| hash.parse().ok()))
        })
    }

    /// Walks the whole chain.
    ///
    /// # Errors
    /// When the database fails; a broken chain is a result.
    pub fn verify_ledger(&self) -> Result<LedgerCheck, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare("SELECT seq, hash, entry FROM ledger ORDER BY seq")?;
            let mut rows = statement.query([])?;
            let mut at = LedgerHead::START;
            while let Some(row) = rows.next()? {
                let broken = |reason| Ok(LedgerCheck::Broken { seq: at.seq + 1, reason });
                let (seq, hash, entry): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                if seq as u64 != at.seq + 1 {
                    return broken("the entry is missing");
                }
                let expected = chain(&at.hash, &entry);
                if hash != expected.to_string() {
                    return broken("the entry or its hash was changed");
                }
                at = LedgerHead { seq: seq as u64, hash: expected };
            }
            Ok(LedgerCheck::Whole(at))
        })
    }

    /// Returns the entries after number `after`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// When the database fails, or an entry is not one.
    pub fn ledger(&self, after: u64, limit: usize) -> Result<Vec<LedgerEntry>, StoreError> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT entry FROM ledger WHERE seq > ?1 ORDER BY seq LIMIT ?2")?;
            let mut rows = statement.query(params![after as i64, limit as i64])?;
            let mut entries = Vec::new();
            while let Some(row) = rows.next()? {
                entries.push(serde_json::from_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?);
            }
            Ok(entries)
        })
    }
}
