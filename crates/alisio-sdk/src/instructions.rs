//! Instruction files (`AGENTS.md`) that belong to a directory.

use std::path::{Path, PathBuf};

use alisio_protocol::Sha256;
use serde::{Deserialize, Serialize};

/// Which name an instruction file was found under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstructionKind {
    /// `AGENTS.override.md`.
    Override,
    /// `AGENTS.md`.
    Agents,
    /// `AGENT.md`.
    Legacy,
    /// `CLAUDE.md`, where the configuration asks for it.
    Claude,
}

/// One instruction file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionFile {
    /// Where it lies, absolute.
    pub path: PathBuf,
    /// The directory that it speaks for; `None` for the user's global file.
    pub scope: Option<PathBuf>,
    /// Its kind.
    pub kind: InstructionKind,
    /// Its text, cut at the budget.
    pub text: String,
    /// Names the content, so that a changed file is shown again.
    pub sha256: Sha256,
    /// Whether `text` lacks its end.
    pub truncated: bool,
}

/// Finds the instruction files that apply to a path.
pub trait InstructionSource: Send + Sync {
    /// The files read at every start: the global one, then one a directory from the root down to the working
    /// directory. Farthest first.
    fn eager(&self) -> Vec<InstructionFile>;

    /// The files of directories below the working directory that apply to `path` (absolute). Farthest first.
    fn nested(&self, path: &Path) -> Vec<InstructionFile>;
}
