//! What can go wrong with the state, each as a sentence that says what to do.

use std::path::{Path, PathBuf};

use alisio_protocol::{CallId, Resolution, SessionId, Width};
use thiserror::Error;

/// Says why Alisio's state could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder or the file can't be written.
    #[error("the state at `{path}` cannot be written: {reason}; choose another place with --db FILE")]
    ReadOnly {
        /// The folder or file.
        path: PathBuf,
        /// The operating system's words.
        reason: String,
    },
    /// No space is left.
    #[error("the disk that holds `{path}` is full: free some space and run again")]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// The place is on a network file system, where locks and the shared index can't be trusted.
    #[error(
        "`{path}` is on a network file system ({kind}), where the state is not safe; choose a local place with --db FILE"
    )]
    Network {
        /// The folder.
        path: PathBuf,
        /// The name of the file system.
        kind: String,
    },
    /// The file is something else.
    #[error("`{path}` is not a database of Alisio: {reason}; choose another file with --db FILE")]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: &'static str,
    },
    /// The file was written by a later version.
    #[error(
        "`{path}` has schema version {found} and this Alisio knows {known}: use the newer Alisio, or another file with --db FILE"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// Another process kept the database locked for longer than the limit.
    #[error("`{path}` is busy: another process has been writing to it for 5 seconds; run again")]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// Somebody took the file away, or put another one in its place.
    #[error(
        "`{path}` was moved, removed or replaced while Alisio used it: what would be written now is lost; start again"
    )]
    Moved {
        /// The database.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error(
        "`{path}` is damaged: {reason}; keep a copy of it and of its -wal file, and start anew with --db FILE"
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// SQLite's words.
        reason: String,
    },
    /// Another process works on the session.
    #[error("session `{session}` is in use by {}; wait until it ends", holder(*.owner))]
    Locked {
        /// The session.
        session: SessionId,
        /// The process that holds it, where it can be told.
        owner: Option<u32>,
    },
    /// There is no such session.
    #[error("there is no session `{0}`: `alisio sessions list` shows those there are")]
    NoSession(String),
    /// The beginning of an id fits several sessions.
    #[error("`{prefix}` could be any of these sessions: {}", names(.candidates))]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// The sessions whose ids begin so, newest first, at most ten.
        candidates: Vec<SessionId>,
    },
    /// The text can't be the id of a session.
    #[error("`{0}` cannot be the id of a session: expected 1 to 64 letters, digits, `-` or `_`")]
    BadId(String),
    /// A result came for a call that is not waiting for one.
    #[error("call `{0}` is not waiting for a result")]
    NoCall(CallId),
    /// There is no such question.
    #[error("there is no approval `{0}`: `alisio approvals list` shows those that wait")]
    NoApproval(String),
    /// Somebody else was first, or the question ended by itself.
    #[error("approval `{request_id}` was resolved before: {}", .resolution.word())]
    AlreadyResolved {
        /// The question.
        request_id: String,
        /// How it ended.
        resolution: Resolution,
    },
    /// The process that asked is gone.
    #[error("approval `{0}` was dropped: the process that asked is gone, so nothing would run")]
    NotPending(String),
    /// The answer is wider than the question lets it be.
    #[error("approval `{request_id}` cannot be granted so: it offers {}", width_names(.offered))]
    WidthNotOffered {
        /// The question.
        request_id: String,
        /// What may be answered instead, narrowest first.
        offered: Vec<Width>,
    },
    /// The answer would end at once.
    #[error("the grant would end before it begins: `expiresAt` {0} is not in the future")]
    EndsAtOnce(i64),
    /// There is no such grant.
    #[error("there is no grant `{0}`: `alisio grants list` shows those there are")]
    NoGrant(String),
    /// The beginning of an id fits several.
    #[error("`{prefix}` could be any of these {what}: {}", .candidates.join(", "))]
    AmbiguousId {
        /// `approvals` or `grants`.
        what: &'static str,
        /// What was asked for.
        prefix: String,
        /// The ids that begin so, newest first, at most ten.
        candidates: Vec<String>,
    },
    /// A file of the state other than the database could not be read or written.
    #[error("`{path}` could not be used: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// A value could not be turned into JSON.
    #[error("a value could not be stored as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// What was asked for could not be written out.
    #[error("the export could not be written: {0}")]
    Output(std::io::Error),
    /// A time is not RFC 3339.
    #[error("`{0}` is not a time in RFC 3339 form")]
    Time(String),
    /// Anything else that SQLite says.
    #[error("the database failed: {0}")]
    Sqlite(rusqlite::Error),
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

fn names(ids: &[SessionId]) -> String {
    ids.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", ")
}

fn width_names(widths: &[Width]) -> String {
    let names: Vec<_> =
        widths.iter().map(|width| format!("`{}`", crate::grants::width_word(*width))).collect();
    if names.is_empty() { "`once` and `reject` only".to_owned() } else { names.join(", ") }
}

fn is_full(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|file_system| file_system.f_bavail == 0)
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl StoreError {
    /// Turns what SQLite says into a sentence about the file at `path`.
    pub(crate) fn at(self, path: &Path) -> Self {
        use rusqlite::ErrorCode;
        let Self::Sqlite(error) = self else { return self };
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::ReadOnly { path, reason: error.to_string() }
            }
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path, reason: "it has another format" },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, reason: error.to_string() },
            // On a full disk the shared index can't grow either, and SQLite then only says that reading or writing failed.
            Some(ErrorCode::SystemIoFailure) if is_full(&path) => Self::Full { path },
            _ => Self::Sqlite(error),
        }
    }

    /// Makes a sentence of a failed file operation.
    pub(crate) fn file(path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full { path },
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                Self::ReadOnly { path, reason: source.to_string() }
            }
            _ => Self::File { path, source },
        }
    }
}
