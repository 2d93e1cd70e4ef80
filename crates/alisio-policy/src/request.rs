//! One thing to decide.

use std::path::PathBuf;

use alisio_protocol::{CallId, Effect, Sha256};

use crate::Subject;

/// One call, resolved as far as it can be without acting.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The effect that the tool declares.
    pub effect: Effect,
    /// Everything the call may touch, absolute and resolved; the permit covers no more.
    pub scope: Scope,
    /// Paths of the call that lie outside every declared root.
    pub outside: Vec<OutsidePath>,
    /// Names what would run, to the byte. What runs must have the same digest.
    pub digest: Sha256,
    /// What rules see of it.
    pub subject: Subject,
}

/// What a permit covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Files that may be read, or folders that may be searched.
    pub reads: Vec<PathBuf>,
    /// Files that may be written.
    pub writes: Vec<PathBuf>,
    /// Whether a process may be started, and in which directory.
    pub spawns_in: Option<PathBuf>,
}

/// A path outside every declared root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsidePath {
    /// The path as resolved.
    pub path: PathBuf,
    /// The directory that an approval would open: the path itself where it is one, else its parent.
    pub directory: PathBuf,
}
