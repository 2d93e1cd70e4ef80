//! Configuration: layers, precedence, keys.
//!
//! [`load`] reads the user's file, then the project's (or the one that `--config` names instead), then a few environment
//! variables, then flags, and returns the typed result with the origin of every value. Each file is checked alone and strictly:
//! an unknown key, a wrong type, a number out of range or a repeated key refuses the file, with all problems at once.
//!
//! What it deliberately does not do: it never opens a project's file (the bytes come from [`crate::trust`], where they were
//! hashed, so that what is loaded is what was trusted), holds no keys or passwords, and keeps no state. Nothing slow happens at an
//! ordinary start: the JSON Schema is made only when somebody asks for it or a message needs the list of known keys.

mod explain;
mod keys;
mod merge;
mod problem;
mod read;
mod schema;
mod values;
mod write;

use std::path::PathBuf;

pub use explain::Explained;
pub(crate) use explain::settings_to_show;
pub use keys::*;
pub use merge::{Notice, NoticeKind, Origin};
pub(crate) use problem::printable;
pub use problem::{ConfigError, Problem};
pub use schema::schema;
pub use values::{
    Bounded, Decimal, DecisionProviderId, HttpUrl, ImageDigest, LARGEST, VariableName, WordOrObject,
};
pub use write::{FileOwner, write};
pub(crate) use write::{lock, replace};

use crate::dirs::Env;

/// A project's configuration as it was read and hashed. Whoever makes one says that the project is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// What flags of the command line say.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--model`.
    pub model: Option<String>,
    /// `--base-url`.
    pub base_url: Option<String>,
    /// `--api-mode`.
    pub api_mode: Option<String>,
    /// `--max-turns`.
    pub max_turns: Option<u64>,
    /// `--timeout`, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// `--add-dir`; relative ones belong to the working directory of this process.
    pub add_directories: Vec<PathBuf>,
    /// `--read-only`: no directory outside the workspace is opened.
    pub read_only: bool,
}

/// Where configuration comes from, lowest layer first.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    /// The user's file; it may be absent.
    pub global: PathBuf,
    /// The project's file, given only when the project is trusted.
    pub project: Option<ProjectFile>,
    /// The file of `--config`; it must exist and takes the place of the project's.
    pub explicit: Option<PathBuf>,
    /// The environment.
    pub env: &'a Env,
    /// The command line.
    pub flags: Overrides,
}

/// The configuration in force.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// What a person should know: ignored values, features that are not there yet, missing directories.
    pub notices: Vec<Notice>,
    /// The files that were read, lowest layer first.
    pub files: Vec<PathBuf>,
    /// The permission policies, each with the file that brings it, lowest layer first. They are not merged: of several
    /// the stricter word counts, which is for the policy to say.
    pub permissions: Vec<(PathBuf, serde_json::Value)>,
    origins: merge::Origins,
}

/// Reads all layers and merges them.
///
/// # Errors
/// When a file cannot be read, is not JSON, or holds an unknown key or a wrong value; when a variable or flag has a wrong value.
/// All of them are mistakes of usage.
pub fn load(sources: &Sources<'_>) -> Result<Loaded, ConfigError> {
    let mut merge = merge::Merge::new(sources);
    if let Some(bytes) = read::file_if_present(&sources.global)? {
        merge.add(read::layer(&sources.global, &bytes)?, merge::Rank::Global);
    }
    match (&sources.explicit, &sources.project) {
        (Some(path), _) => merge.add(read::layer(path, &read::file(path)?)?, merge::Rank::Lower),
        (None, Some(project)) => merge.add(read::layer(&project.path, &project.bytes)?, merge::Rank::Lower),
        (None, None) => {}
    }
    merge.finish()
}

impl Loaded {
    /// Returns every key with its value and where that was set. Secrets are masked.
    pub fn explain(&self) -> Vec<Explained> {
        explain::explain(&self.config, &self.origins)
    }
}
