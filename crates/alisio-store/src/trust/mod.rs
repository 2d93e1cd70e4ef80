//! Which project directories a person trusts, pinned to their content.
//!
//! A project's files can point a key at another endpoint and start programs, so none of them is used before a person said yes to exactly
//! these files. [`snapshot`] reads everything in a project that can run or redirect, once, and gives its fingerprint together with the
//! bytes of `config.json`: what is loaded is what was hashed. [`Store`] keeps the answers. Any change of a byte, a name, a kind or a link
//! makes the answer stale, a yes and a no alike.
//!
//! What it deliberately does not do: ask (that belongs to a surface), understand a project's configuration (the inventory only shows
//! it), or follow a link out of the workspace. Where it cannot see everything (too much, unreadable, odd), the project cannot be trusted.

mod inventory;
mod snapshot;

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use alisio_protocol::Sha256;
use serde::{Deserialize, Serialize};

pub use inventory::{Inventory, Item, ItemKind};
pub use snapshot::{LARGEST_TOTAL, MOST_ENTRIES, Snapshot, snapshot};

use crate::config::{ProjectFile, lock, replace};

/// Bytes of `trust.json` at most.
const LARGEST_STORE: u64 = 16 << 20;
/// Entries of a project that are remembered one by one, to say later what changed. A larger one is remembered as a whole.
const MOST_REMEMBERED: usize = 1000;

/// Says why trust could not be looked up or stored.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The directory cannot be opened.
    #[error("cannot open the directory `{}`: {source}", path.display())]
    Workspace {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not everything that counts can be seen.
    #[error("`{}` cannot be trusted: {reason}", workspace.display())]
    CannotTrust {
        /// The directory.
        workspace: PathBuf,
        /// Why, with the path.
        reason: String,
    },
    /// The answers cannot be read or written.
    #[error("{reason}")]
    Store {
        /// Why, with the path.
        reason: String,
    },
}

/// What a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Yes.
    Trusted,
    /// No.
    Declined,
}

/// How a directory stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// A person said yes to exactly this content.
    Trusted,
    /// A person said no to exactly this content.
    Declined,
    /// A person answered, and the content is another one now: nothing of it is used until somebody answers again.
    Changed {
        /// The old answer.
        before: Answer,
        /// What changed since; empty where there was too much to remember.
        changes: Vec<Change>,
    },
    /// Nobody was asked.
    Undecided,
    /// The directory holds nothing that would need trust.
    NothingToTrust,
    /// Not everything that counts can be seen, so a yes would mean nothing.
    CannotTrust {
        /// Why, in one sentence.
        reason: String,
    },
}

/// One difference between what was answered and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path in the workspace, printable.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// Its content, kind or target is another.
    Modified,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.kind {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::Modified => "changed",
        };
        write!(f, "{what} {}", self.path)
    }
}

/// The status of a directory together with what was read to find it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The status.
    pub status: Status,
    /// What was read; absent when the project cannot be trusted.
    pub snapshot: Option<Snapshot>,
}

impl Checked {
    /// Returns the project's configuration, only if a person trusts exactly these bytes.
    pub fn project_file(&self) -> Option<ProjectFile> {
        match self.status {
            Status::Trusted => self.snapshot.as_ref()?.project_file(),
            _ => None,
        }
    }
}

/// A stored answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The directory.
    pub workspace: PathBuf,
    /// The answer.
    pub answer: Answer,
    /// When it was given, in RFC 3339 form.
    pub decided_at: String,
    /// The content it was given for.
    pub fingerprint: Sha256,
}

/// The answers of one user, in `trust.json` of the state folder.
#[derive(Clone, Debug)]
pub struct Store {
    state_home: PathBuf,
    book: Result<Book, String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Book {
    schema_version: u32,
    workspaces: BTreeMap<String, Page>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Page {
    decision: Answer,
    fingerprint: Sha256,
    decided_at: String,
    #[serde(default)]
    entries: BTreeMap<String, String>,
}

const VERSION: u32 = 1;

impl Store {
    /// Reads the answers. A file that cannot be read, or that somebody else could have written, means that nothing is trusted;
    /// [`Store::problem`] then says why.
    pub fn open(state_home: &Path) -> Self {
        Self { state_home: state_home.to_owned(), book: read_book(state_home) }
    }

    /// Says why nothing is trusted, in one sentence.
    pub fn problem(&self) -> Option<&str> {
        self.book.as_ref().err().map(String::as_str)
    }

    /// Looks at a directory and at what was answered for it.
    ///
    /// # Errors
    /// When the directory itself cannot be opened.
    pub fn check(&self, workspace: &Path) -> Result<Checked, TrustError> {
        let snapshot = match snapshot(workspace) {
            Ok(snapshot) => snapshot,
            Err(TrustError::CannotTrust { reason, .. }) => {
                return Ok(Checked { status: Status::CannotTrust { reason }, snapshot: None });
            }
            Err(error) => return Err(error),
        };
        let page =
            self.book.as_ref().ok().and_then(|book| book.workspaces.get(&key_of(snapshot.workspace())));
        let status = match page {
            _ if snapshot.is_empty() => Status::NothingToTrust,
            None => Status::Undecided,
            Some(page) if page.fingerprint != snapshot.fingerprint() => {
                Status::Changed { before: page.decision, changes: changes(&page.entries, &snapshot) }
            }
            Some(page) => match page.decision {
                Answer::Trusted => Status::Trusted,
                Answer::Declined => Status::Declined,
            },
        };
        Ok(Checked { status, snapshot: Some(snapshot) })
    }

    /// Stores an answer for exactly the content in `shown`.
    ///
    /// # Errors
    /// When the answers cannot be read or written.
    pub fn add(&mut self, shown: &Snapshot, answer: Answer) -> Result<(), TrustError> {
        let entries = shown.remembered();
        let page = Page {
            decision: answer,
            fingerprint: shown.fingerprint(),
            decided_at: jiff::Timestamp::now().to_string(),
            entries: if entries.len() > MOST_REMEMBERED { BTreeMap::new() } else { entries },
        };
        self.change(|book| {
            book.workspaces.insert(key_of(shown.workspace()), page);
            true
        })?;
        Ok(())
    }

    /// Forgets the answer for a directory; it need not exist any more. Returns whether there was one.
    ///
    /// # Errors
    /// When the answers cannot be read or written.
    pub fn revoke(&mut self, workspace: &Path) -> Result<bool, TrustError> {
        let path = std::fs::canonicalize(workspace)
            .or_else(|_| std::path::absolute(workspace))
            .map_err(|source| TrustError::Workspace { path: workspace.to_owned(), source })?;
        self.change(|book| book.workspaces.remove(&key_of(&path)).is_some())
    }

    /// Returns all answers, by directory.
    pub fn list(&self) -> Vec<Remembered> {
        let pages = self.book.as_ref().map(|book| &book.workspaces).into_iter().flatten();
        pages
            .map(|(key, page)| Remembered {
                workspace: path_of(key),
                answer: page.decision,
                decided_at: page.decided_at.clone(),
                fingerprint: page.fingerprint,
            })
            .collect()
    }

    /// Changes the file under a lock, beginning with what it holds now: another process may have added to it.
    fn change(&mut self, change: impl FnOnce(&mut Book) -> bool) -> Result<bool, TrustError> {
        let file = file_of(&self.state_home);
        let failed = |error: std::io::Error| TrustError::Store {
            reason: format!("cannot write `{}`: {error}", file.display()),
        };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.state_home).map_err(failed)?;
        let folder = File::open(&self.state_home).map_err(failed)?;
        folder.set_permissions(Permissions::from_mode(0o700)).map_err(failed)?;
        lock(&folder).map_err(failed)?;
        let mut book = read_book(&self.state_home).map_err(|reason| TrustError::Store { reason })?;
        book.schema_version = VERSION;
        let has_changed = change(&mut book);
        if has_changed {
            let mut bytes = serde_json::to_vec_pretty(&book).map_err(|error| failed(error.into()))?;
            bytes.push(b'\n');
            replace(&file, &folder, &bytes, Permissions::from_mode(0o600)).map_err(failed)?;
        }
        self.book = Ok(book);
        Ok(has_changed)
    }
}

fn file_of(state_home: &Path) -> PathBuf {
    state_home.join("trust.json")
}

fn read_book(state_home: &Path) -> Result<Book, String> {
    let path = file_of(state_home);
    let told = |reason: &dyn std::fmt::Display| {
        format!("no project is trusted, since `{}` cannot be used: {reason}", path.display())
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Book { schema_version: VERSION, workspaces: BTreeMap::new() });
        }
        Err(error) => return Err(told(&error)),
    };
    let metadata = file.metadata().map_err(|error| told(&error))?;
    let user = rustix::process::geteuid().as_raw();
    if !metadata.is_file() {
        return Err(told(&"it is not a regular file"));
    }
    if metadata.uid() != user && metadata.uid() != 0 {
        return Err(told(&"it belongs to another user"));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(told(&"others may write it; `chmod 600` makes it yours again"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_STORE + 1).read_to_end(&mut bytes).map_err(|error| told(&error))?;
    if bytes.len() as u64 > LARGEST_STORE {
        return Err(told(&"it is too large"));
    }
    let book: Book = serde_json::from_slice(&bytes).map_err(|error| told(&error))?;
    if book.schema_version != VERSION {
        return Err(told(&format_args!("its version is {}, known is {VERSION}", book.schema_version)));
    }
    Ok(book)
}

/// The key of a directory: its real path, or its bytes where the path is not UTF-8. The first begins with `/`, so they never meet.
fn key_of(workspace: &Path) -> String {
    match workspace.to_str() {
        Some(text) => text.to_owned(),
        None => {
            let bytes = workspace.as_os_str().as_bytes();
            bytes.iter().fold("hex:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
        }
    }
}

fn path_of(key: &str) -> PathBuf {
    let bytes = key.strip_prefix("hex:").and_then(|digits| {
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<Vec<u8>>>()
    });
    match bytes {
        Some(bytes) => PathBuf::from(std::ffi::OsStr::from_bytes(&bytes)),
        None => PathBuf::from(key),
    }
}

fn changes(before: &BTreeMap<String, String>, snapshot: &Snapshot) -> Vec<Change> {
    let now = snapshot.remembered();
    if before.is_empty() {
        return Vec::new();
    }
    let mut changes: Vec<Change> = now
        .iter()
        .filter_map(|(path, digest)| {
            let kind = match before.get(path) {
                None => ChangeKind::Added,
                Some(old) if old != digest => ChangeKind::Modified,
                Some(_) => return None,
            };
            Some(Change { path: path.clone(), kind })
        })
        .collect();
    let removed = before.keys().filter(|path| !now.contains_key(*path));
    changes.extend(removed.map(|path| Change { path: path.clone(), kind: ChangeKind::Removed }));
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}
