//! The tables, as numbered steps that only go forward.
//!
//! A step is never edited once it has shipped: a change is a new step. A database with a later number than this
//! program knows is refused, since an older program could not keep what the newer one promised.

use std::path::Path;

use rusqlite::Connection;

use crate::StoreError;

/// Marks the file as ours in its header (`PRAGMA application_id`): "Alis".
pub(crate) const APPLICATION_ID: i64 = 0x416c_6973;

/// One step a version, the first one is version 1.
///
/// Why the columns are as they are: sessions have a short number so that each row of the big tables needs no text id;
/// `refs` lists the strings of a row that are kept as content files (see `content.rs`); `calls` has a number of its
/// own because servers repeat call ids; the ledger has no foreign key, for it outlives what it speaks of. An approval is
/// `open` while it waits (`word` is null) or while its answer lets a call run that has not begun; its body is kept whole
/// in the row, since people decide on it. A grant has the id of its session and no foreign key, for a kept one stays.
const STEPS: &[&str] = &[
    "
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    workspace ANY NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    agent TEXT,
    title TEXT,
    status TEXT,
    told_to INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_by_time ON sessions (updated_at, key);
CREATE INDEX sessions_by_workspace ON sessions (workspace, updated_at, key);

CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    request_id TEXT,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER,
    started_at TEXT NOT NULL,
    ended_at TEXT
) STRICT;
CREATE INDEX runs_by_session ON runs (session);
CREATE UNIQUE INDEX runs_by_request ON runs (session, request_id) WHERE request_id IS NOT NULL;

CREATE TABLE calls (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    run TEXT NOT NULL,
    call TEXT NOT NULL,
    tool TEXT NOT NULL,
    effect TEXT NOT NULL,
    arguments TEXT NOT NULL,
    arguments_refs TEXT,
    digest TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    in_message INTEGER NOT NULL DEFAULT 0,
    result TEXT,
    result_refs TEXT
) STRICT;
CREATE INDEX calls_by_session ON calls (session, call);

CREATE TABLE messages (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    run TEXT NOT NULL,
    role TEXT NOT NULL,
    call TEXT,
    call_key INTEGER,
    body TEXT,
    refs TEXT
) STRICT;
CREATE INDEX messages_by_session ON messages (session);

CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    run TEXT NOT NULL,
    run_seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    refs TEXT,
    timestamp TEXT NOT NULL,
    correlation_id TEXT
) STRICT;
CREATE INDEX events_by_session ON events (session);

CREATE TABLE blob_uses (
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (session, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uses_by_hash ON blob_uses (hash);

CREATE TABLE ledger (
    seq INTEGER PRIMARY KEY,
    hash TEXT NOT NULL,
    entry TEXT NOT NULL
) STRICT;
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger only grows');
END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger only grows');
END;
",
    "
CREATE TABLE approvals (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    digest TEXT NOT NULL,
    deadline INTEGER,
    body TEXT NOT NULL,
    open INTEGER NOT NULL DEFAULT 1,
    word TEXT,
    resolution TEXT,
    resolved_by TEXT,
    resolved_at INTEGER,
    used_at INTEGER,
    void_at INTEGER
) STRICT;
CREATE INDEX approvals_by_session ON approvals (session);
CREATE INDEX approvals_open ON approvals (session) WHERE open = 1;

CREATE TABLE grants (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    workspace ANY NOT NULL,
    life TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    body TEXT NOT NULL,
    run TEXT NOT NULL,
    call TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT;
CREATE INDEX grants_by_session ON grants (session) WHERE life = 'session';
CREATE INDEX grants_by_workspace ON grants (workspace) WHERE life = 'kept';
CREATE TRIGGER grants_end_with_their_session AFTER DELETE ON sessions BEGIN
    DELETE FROM grants WHERE session = OLD.id AND life = 'session';
END;
",
    "
CREATE TABLE rule_uses (
    rule TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX rule_uses_by_time ON rule_uses (rule, at);
",
];

/// Brings the database to the newest version; says whether anything was done.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<bool, StoreError> {
    let known = STEPS.len() as i64;
    let found = version(connection, path)?;
    if found == known {
        return Ok(false);
    }
    // Read again inside the transaction: another process may have been first.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found = version(&transaction, path)?;
    for step in &STEPS[found as usize..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(true)
}

/// Reads the version and makes sure that the file is ours to change.
pub(crate) fn version(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let known = STEPS.len() as i64;
    let read = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, found) = (read("application_id")?, read("user_version")?);
    if application == APPLICATION_ID {
        if found > known {
            return Err(StoreError::Newer { path: path.to_owned(), found, known });
        }
        return Ok(found.max(0));
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != 0 || found != 0 || tables != 0 {
        let reason = "it is the database of another program";
        return Err(StoreError::NotADatabase { path: path.to_owned(), reason });
    }
    Ok(0)
}
