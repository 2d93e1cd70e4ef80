//! Reads what counts in a project, once, and gives it one fingerprint.
//!
//! Folders are walked by handle and no link is followed by the kernel. A link that stays in the workspace is resolved by name and its
//! target hashed too, so that nothing reachable escapes the fingerprint; one that leads outside is hashed as a link only, and nothing
//! behind it may be loaded. Special files count by kind and are never opened.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use alisio_protocol::Sha256;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, readlinkat, statat};
use sha2::Digest;

use super::TrustError;
use super::inventory::{self, Inventory};
use crate::config::{ProjectFile, printable};

/// What can run or redirect.
const ROOTS: &[&str] = &[
    ".alisio",
    ".agents/agents",
    ".agents/skills",
    ".claude/agents",
    ".claude/skills",
    ".opencode/agent",
    ".opencode/agents",
];
const OWN: &str = ".alisio";
/// Written by Alisio itself, never loaded from.
const CACHE: &str = ".alisio/cache";
const CONFIG: &str = ".alisio/config.json";

/// Files, folders and links of a project that are looked at.
pub const MOST_ENTRIES: usize = 10_000;
/// Bytes of all files of a project that are read.
pub const LARGEST_TOTAL: u64 = 32 << 20;
/// Folders in folders; a handle is open for each.
const DEEPEST: usize = 64;

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    File { digest: Sha256 },
    Directory,
    Link { target: Vec<u8>, leads_outside: bool },
    Special { kind: &'static str },
}

/// Everything in a project that can run or redirect, as it was at one reading.
#[derive(Clone, Debug)]
pub struct Snapshot {
    workspace: PathBuf,
    entries: BTreeMap<Vec<u8>, Found>,
    fingerprint: Sha256,
    config: Option<Vec<u8>>,
}

impl Snapshot {
    /// The real path of the workspace.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Names the content: any change of a byte, name, kind or link gives another.
    pub fn fingerprint(&self) -> Sha256 {
        self.fingerprint
    }

    /// Says whether there is nothing that would need trust.
    pub fn is_empty(&self) -> bool {
        self.entries.values().all(|found| *found == Found::Directory)
    }

    /// Returns the project's configuration, the very bytes that were hashed. Whoever loads it says that the project is trusted.
    pub fn project_file(&self) -> Option<ProjectFile> {
        Some(ProjectFile { path: self.workspace.join(CONFIG), bytes: self.config.clone()? })
    }

    /// Returns what would load, for a person to look at before they answer. All texts are printable.
    pub fn inventory(&self) -> Inventory {
        inventory::inventory(&self.entries, self.project_file().as_ref())
    }

    /// Returns a short digest of each path, to say later what changed.
    pub(super) fn remembered(&self) -> BTreeMap<String, String> {
        self.entries
            .iter()
            .map(|(path, found)| {
                let [kind, content] = found.fields();
                let digest = Sha256::of_fields([kind, content]).to_string();
                (shown(path), digest[..16].to_owned())
            })
            .collect()
    }
}

impl Found {
    fn fields(&self) -> [&[u8]; 2] {
        match self {
            Self::File { digest } => [b"file", digest.as_bytes()],
            Self::Directory => [b"directory", b""],
            Self::Link { target, .. } => [b"link", target],
            Self::Special { kind } => [b"special", kind.as_bytes()],
        }
    }
}

/// Shows a path in the workspace.
pub(super) fn shown(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) => printable(text),
        Err(_) => path.escape_ascii().to_string(),
    }
}

/// Reads and hashes what counts in a project.
///
/// # Errors
/// When the directory cannot be opened, or not everything that counts can be seen.
pub fn snapshot(workspace: &Path) -> Result<Snapshot, TrustError> {
    let failed = |source: std::io::Error| TrustError::Workspace { path: workspace.to_owned(), source };
    let workspace = std::fs::canonicalize(workspace).map_err(failed)?;
    let root =
        rustix::fs::open(&workspace, DIRECTORY, Mode::empty()).map_err(|error| failed(error.into()))?;
    let config_path = inside(&workspace, Path::new(CONFIG));
    let mut walk = Walk {
        workspace: &workspace,
        entries: BTreeMap::new(),
        bytes: 0,
        links: Vec::new(),
        config_path,
        config: None,
    };
    let outcome = walk.all(root.as_fd());
    let Walk { entries, config, .. } = walk;
    outcome.map_err(|reason| TrustError::CannotTrust { workspace: workspace.clone(), reason })?;
    let fields = entries.iter().flat_map(|(path, found)| {
        let [kind, content] = found.fields();
        [path.as_slice(), kind, content]
    });
    let fingerprint = Sha256::of_fields(std::iter::once(&b"alisio trust 1"[..]).chain(fields));
    Ok(Snapshot { workspace, entries, fingerprint, config })
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Returns where a path really is, relative to the workspace; `None` when that is outside or nowhere.
fn inside(workspace: &Path, path: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(workspace.join(path)).ok()?;
    real.strip_prefix(workspace).ok().map(Path::to_owned)
}

struct Walk<'a> {
    workspace: &'a Path,
    entries: BTreeMap<Vec<u8>, Found>,
    bytes: u64,
    /// Real paths in the workspace that links lead to and that are still to be looked at.
    links: Vec<PathBuf>,
    /// Where the configuration really is.
    config_path: Option<PathBuf>,
    config: Option<Vec<u8>>,
}

impl Walk<'_> {
    fn all(&mut self, root: BorrowedFd<'_>) -> Result<(), String> {
        for path in ROOTS {
            self.reach(root, Path::new(path))?;
        }
        while let Some(path) = self.links.pop() {
            self.reach(root, &path)?;
        }
        Ok(())
    }

    /// Goes down to `path` one name at a time and looks at it; stops at a name that is missing or no folder.
    fn reach(&mut self, root: BorrowedFd<'_>, path: &Path) -> Result<(), String> {
        let names: Vec<&OsStr> = path
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name),
                _ => None,
            })
            .collect();
        let Some((last, parents)) = names.split_last() else {
            // A link leads to the workspace itself.
            return self.folder(root, Path::new(""), 0);
        };
        let mut handle: Option<OwnedFd> = None;
        let mut above = PathBuf::new();
        for name in parents {
            let folder = handle.as_ref().map_or(root, |handle| handle.as_fd());
            let here = above.join(name);
            match self.kind(folder, name, &here)? {
                None => return Ok(()),
                Some(FileType::Directory) => handle = Some(self.open(folder, name, &here, DIRECTORY)?),
                Some(kind) => {
                    // A link in the middle: it counts itself, and behind it only what this path names.
                    let found = self.found(folder, name, &here, kind)?;
                    self.note(&here, found)?;
                    self.links.extend(inside(self.workspace, path));
                    return Ok(());
                }
            }
            above = here;
        }
        self.look(handle.as_ref().map_or(root, |handle| handle.as_fd()), last, path, 0)
    }

    /// Looks at one name in a folder.
    fn look(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        depth: usize,
    ) -> Result<(), String> {
        let key = path.as_os_str().as_bytes();
        if self.entries.contains_key(key) {
            return Ok(());
        }
        match self.kind(folder, name, path)? {
            None => Ok(()),
            Some(FileType::Directory) => {
                // Alisio's own folder says nothing by being there: it is made for the cache.
                if path != Path::new(OWN) {
                    self.note(path, Found::Directory)?;
                }
                let handle = self.open(folder, name, path, DIRECTORY)?;
                self.folder(handle.as_fd(), path, depth + 1)
            }
            Some(kind) => {
                let found = self.found(folder, name, path, kind)?;
                if matches!(found, Found::Link { .. }) {
                    self.links.extend(inside(self.workspace, path));
                }
                self.note(path, found)
            }
        }
    }

    /// Reads what is no folder.
    fn found(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        kind: FileType,
    ) -> Result<Found, String> {
        Ok(match kind {
            FileType::RegularFile => self.file(folder, name, path)?,
            FileType::Symlink => {
                let target = readlinkat(folder, name, Vec::new()).map_err(|error| at(path, error))?;
                let leads_outside = inside(self.workspace, path).is_none();
                Found::Link { target: target.into_bytes(), leads_outside }
            }
            FileType::Fifo => Found::Special { kind: "fifo" },
            FileType::Socket => Found::Special { kind: "socket" },
            FileType::CharacterDevice => Found::Special { kind: "character device" },
            FileType::BlockDevice => Found::Special { kind: "block device" },
            FileType::Directory | FileType::Unknown => Found::Special { kind: "unknown" },
        })
    }

    fn note(&mut self, path: &Path, found: Found) -> Result<(), String> {
        if self.entries.len() >= MOST_ENTRIES {
            return Err(format!("it holds more than {MOST_ENTRIES} files that would have to be looked at"));
        }
        self.entries.insert(path.as_os_str().as_bytes().to_vec(), found);
        Ok(())
    }

    fn folder(&mut self, folder: BorrowedFd<'_>, path: &Path, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!(
                "`{}` is more than {DEEPEST} folders deep",
                shown(path.as_os_str().as_bytes())
            ));
        }
        let mut names = Vec::new();
        for entry in Dir::read_from(folder).map_err(|error| at(path, error))? {
            let name = entry.map_err(|error| at(path, error))?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
            if names.len() > MOST_ENTRIES {
                return Err(format!(
                    "it holds more than {MOST_ENTRIES} files that would have to be looked at"
                ));
            }
        }
        names.sort();
        for name in names {
            let path = path.join(&name);
            // Only as a folder is the cache what Alisio wrote.
            if path == Path::new(CACHE) && self.kind(folder, &name, &path)? == Some(FileType::Directory) {
                continue;
            }
            self.look(folder, &name, &path, depth)?;
        }
        Ok(())
    }

    fn file(&mut self, folder: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<Found, String> {
        // Without NONBLOCK, a pipe put in the file's place in between would hold us.
        let flags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
        let mut file = std::fs::File::from(self.open(folder, name, path, flags)?);
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(format!("`{}` changed while it was read", shown(path.as_os_str().as_bytes())));
        }
        let keep = self.config_path.as_deref() == Some(path);
        let mut kept = Vec::new();
        let mut hasher = sha2::Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let length = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(at(path, error)),
            };
            self.bytes += length as u64;
            if self.bytes > LARGEST_TOTAL {
                return Err(format!("it holds more than {LARGEST_TOTAL} bytes that would have to be read"));
            }
            hasher.update(&buffer[..length]);
            if keep {
                kept.extend_from_slice(&buffer[..length]);
            }
        }
        if keep {
            self.config = Some(kept);
        }
        Ok(Found::File { digest: Sha256::from_bytes(hasher.finalize().into()) })
    }

    fn kind(&self, folder: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<Option<FileType>, String> {
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(at(path, error)),
        }
    }

    fn open(
        &self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        flags: OFlags,
    ) -> Result<OwnedFd, String> {
        openat(folder, name, flags, Mode::empty()).map_err(|error| at(path, error))
    }
}

fn at(path: &Path, error: impl Into<std::io::Error>) -> String {
    format!("`{}` cannot be read: {}", shown(path.as_os_str().as_bytes()), error.into())
}
