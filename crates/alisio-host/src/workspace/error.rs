//! Why a file was not touched: one list of reasons for paths, reads, writes and edits.

use std::path::PathBuf;

use alisio_policy::PermitError;
use alisio_protocol::Sha256;
use thiserror::Error;

/// Every reason for which a file tool refuses, in one place. A refusal shows its word, so that a model, a test or a
/// log can tell one from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The path is empty, too long, or holds a NUL.
    BadPath,
    /// The path begins with `~`, which is not expanded.
    Tilde,
    /// A component of the path is a symbolic link.
    Link,
    /// There is nothing at the path.
    NotFound,
    /// There is something at the path that should be new.
    Exists,
    /// A directory stands where a file is needed, or the other way round.
    WrongKind,
    /// A FIFO, device or socket.
    Special,
    /// The place may be read but not written.
    ReadOnly,
    /// The operating system denies it.
    Permission,
    /// The file has several names; replacing it would cut it from the others.
    HardLinks,
    /// The owner or an attribute of the old file could not be given to the new one.
    NotKept,
    /// The file is not what its fingerprint says.
    Stale,
    /// The file, or what it would become, is too large.
    TooLarge,
    /// The file is not text.
    Binary,
    /// The text can't be written in the file's encoding.
    Encoding,
    /// The text to replace is not in the file.
    NoMatch,
    /// The text to replace is in the file more than once.
    NotUnique,
    /// The permit does not cover the act.
    Permit,
    /// The operating system failed in another way.
    System,
}

impl Reason {
    /// All reasons, in the order of the documentation.
    pub const ALL: [Self; 19] = [
        Self::BadPath,
        Self::Tilde,
        Self::Link,
        Self::NotFound,
        Self::Exists,
        Self::WrongKind,
        Self::Special,
        Self::ReadOnly,
        Self::Permission,
        Self::HardLinks,
        Self::NotKept,
        Self::Stale,
        Self::TooLarge,
        Self::Binary,
        Self::Encoding,
        Self::NoMatch,
        Self::NotUnique,
        Self::Permit,
        Self::System,
    ];

    /// The word that a refusal shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadPath => "bad-path",
            Self::Tilde => "tilde",
            Self::Link => "link",
            Self::NotFound => "not-found",
            Self::Exists => "exists",
            Self::WrongKind => "wrong-kind",
            Self::Special => "special",
            Self::ReadOnly => "read-only",
            Self::Permission => "permission",
            Self::HardLinks => "hard-links",
            Self::NotKept => "not-kept",
            Self::Stale => "stale",
            Self::TooLarge => "too-large",
            Self::Binary => "binary",
            Self::Encoding => "encoding",
            Self::NoMatch => "no-match",
            Self::NotUnique => "not-unique",
            Self::Permit => "permit",
            Self::System => "system",
        }
    }
}

/// Says why a path was refused, or a file could not be read or written.
#[derive(Debug, Error)]
pub enum FileError {
    /// The path is empty.
    #[error("the path is empty")]
    EmptyPath,
    /// The path holds a NUL character.
    #[error("the path holds a NUL character")]
    NulInPath,
    /// The path or one of its names is longer than the system takes.
    #[error("the path is too long: at most 4096 bytes, and 255 a name")]
    LongPath,
    /// The path begins with `~`.
    #[error("`{0}`: `~` is not expanded; give a path relative to the workspace, or an absolute one")]
    Tilde(String),
    /// A component is a symbolic link.
    #[error("`{}` is a symbolic link to `{}`; links are not followed: name the file itself", link.display(), target.display())]
    Link {
        /// The link.
        link: PathBuf,
        /// Where it points, as written in it.
        target: PathBuf,
    },
    /// Nothing is there.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// Something is there already.
    #[error("`{0}` exists already")]
    Exists(String),
    /// A directory stands where a file is needed.
    #[error("`{0}` is a directory, not a file")]
    IsDirectory(String),
    /// A file stands where a directory is needed.
    #[error("`{0}` is not a directory, or goes through something that is none")]
    NotDirectory(String),
    /// A FIFO, device or socket.
    #[error("`{path}` is a {kind}, not a regular file")]
    Special {
        /// The path for people.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// A root that may only be read.
    #[error("`{0}` lies in a directory that may only be read")]
    ReadOnly(String),
    /// Denied by the operating system.
    #[error("permission denied for `{0}`")]
    Permission(String),
    /// Several hard links.
    #[error("`{path}` has {links} hard links; replacing it would cut it from its other names")]
    HardLinks {
        /// The path for people.
        path: String,
        /// How many names the file has.
        links: u64,
    },
    /// Owner or attribute lost.
    #[error("the {what} of `{path}` could not be kept, so it was not replaced: {source}")]
    NotKept {
        /// The path for people.
        path: String,
        /// What would be lost.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The fingerprint does not match.
    #[error("`{path}` changed since it was read; its sha256 is now {actual}")]
    Stale {
        /// The path for people.
        path: String,
        /// The fingerprint that it has now.
        actual: Sha256,
    },
    /// Over the size limit.
    #[error("`{path}` has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// The path for people.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The permit does not cover it.
    #[error(transparent)]
    Permit(#[from] PermitError),
    /// Anything else.
    #[error("`{path}`: {source}")]
    System {
        /// The path for people.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl FileError {
    /// Returns the word for it.
    pub fn reason(&self) -> Reason {
        match self {
            Self::EmptyPath | Self::NulInPath | Self::LongPath => Reason::BadPath,
            Self::Tilde(_) => Reason::Tilde,
            Self::Link { .. } => Reason::Link,
            Self::NotFound(_) => Reason::NotFound,
            Self::Exists(_) => Reason::Exists,
            Self::IsDirectory(_) | Self::NotDirectory(_) => Reason::WrongKind,
            Self::Special { .. } => Reason::Special,
            Self::ReadOnly(_) => Reason::ReadOnly,
            Self::Permission(_) => Reason::Permission,
            Self::HardLinks { .. } => Reason::HardLinks,
            Self::NotKept { .. } => Reason::NotKept,
            Self::Stale { .. } => Reason::Stale,
            Self::TooLarge { .. } => Reason::TooLarge,
            Self::Permit(_) => Reason::Permit,
            Self::System { .. } => Reason::System,
        }
    }

    /// Turns what the system said about `path` into a reason.
    pub(super) fn from_errno(path: &str, errno: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        let path = path.to_owned();
        match errno {
            Errno::NOENT => Self::NotFound(path),
            Errno::EXIST => Self::Exists(path),
            Errno::ISDIR => Self::IsDirectory(path),
            Errno::NOTDIR => Self::NotDirectory(path),
            Errno::ACCESS | Errno::PERM => Self::Permission(path),
            Errno::ROFS => Self::ReadOnly(path),
            Errno::NAMETOOLONG => Self::LongPath,
            Errno::NXIO | Errno::NODEV => Self::Special { path, kind: "socket or device" },
            other => Self::System { path, source: other.into() },
        }
    }
}
