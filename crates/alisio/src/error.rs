//! How a command ends badly: a sentence, hints, and an exit code that scripts can rely on.

use std::fmt;

/// Exit codes. They are part of the interface and don't change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The run failed.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// A limit stopped the run; the next prompt goes on.
    Limit = 3,
    /// Something needed approval and nobody could answer.
    Refused = 4,
    /// Interrupted.
    Interrupted = 130,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub struct CommandError {
    /// The exit code.
    pub exit: Exit,
    /// A sentence: lower case, without a full stop.
    pub error: String,
    /// What to do next, a line each.
    pub hints: Vec<String>,
    /// Whether it is only that nobody reads the output any more; then nothing is said.
    pub reader_left: bool,
}

impl CommandError {
    /// The command line or the configuration is wrong.
    pub fn usage(error: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, error)
    }

    /// The work itself failed.
    pub fn failed(error: impl fmt::Display) -> Self {
        Self::new(Exit::Failed, error)
    }

    fn new(exit: Exit, error: impl fmt::Display) -> Self {
        Self { exit, error: error.to_string(), hints: Vec::new(), reader_left: false }
    }

    /// Adds a line on what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<alisio_store::StoreError> for CommandError {
    fn from(error: alisio_store::StoreError) -> Self {
        use alisio_store::StoreError;
        match error {
            StoreError::NoSession(_)
            | StoreError::Ambiguous { .. }
            | StoreError::BadId(_)
            | StoreError::NoApproval(_)
            | StoreError::NoGrant(_)
            | StoreError::AmbiguousId { .. }
            | StoreError::AlreadyResolved { .. }
            | StoreError::NotPending(_)
            | StoreError::WidthNotOffered { .. }
            | StoreError::EndsAtOnce { .. } => Self::usage(error),
            error @ StoreError::File { .. } => {
                Self::failed(error).hint("choose another place with --db FILE")
            }
            error => Self::failed(error),
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        let reader_left = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self { reader_left, ..Self::failed(error) }
    }
}
