//! Opening below a directory handle without following a link.
//!
//! On Linux the kernel does it (`openat2`); where that is missing, the path is walked one component at a time with
//! `O_NOFOLLOW`. Both hold against a link planted while we look: a name is looked up once, by the open itself.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// How paths are looked up below a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookup {
    /// By the kernel where it can, else by walking.
    #[default]
    Kernel,
    /// Component by component.
    Walk,
}

/// Names a directory without needing the right to read it, where the system knows such a thing.
#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlags = OFlags::RDONLY;

/// Flags that every open carries: never inherited, never a controlling terminal.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY);

impl Lookup {
    /// Falls back to walking where the kernel does not know `openat2`, or a sandbox hides it.
    pub(super) fn probe(self, directory: BorrowedFd<'_>) -> Self {
        match self {
            Self::Kernel if kernel_open(directory, Path::new("."), HANDLE | OFlags::DIRECTORY).is_err() => {
                Self::Walk
            }
            other => other,
        }
    }

    /// Opens `relative` (clean, without `..`; empty for the root itself) below `root`.
    pub(super) fn open(self, root: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        match self {
            Self::Kernel => kernel_open(root, relative, flags),
            Self::Walk => walk_open(root, relative, flags),
        }
    }

    /// Opens a directory so that names can be looked up, made and synced in it.
    pub(super) fn directory(self, root: BorrowedFd<'_>, relative: &Path) -> Result<OwnedFd, Errno> {
        self.open(root, relative, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Opens a mere handle of whatever lies there, except a link.
    pub(super) fn handle(self, root: BorrowedFd<'_>, relative: &Path) -> Result<OwnedFd, Errno> {
        self.open(root, relative, HANDLE | OFlags::NONBLOCK)
    }
}

#[cfg(target_os = "linux")]
fn kernel_open(root: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // O_PATH takes no other flag than these; openat2 refuses what open ignores.
    let flags = if flags.contains(OFlags::PATH) {
        (flags & (OFlags::PATH | OFlags::DIRECTORY)) | OFlags::CLOEXEC
    } else {
        flags | ALWAYS
    };
    let mut attempts = 0;
    loop {
        match rustix::fs::openat2(root, relative, flags, Mode::empty(), resolve) {
            // The kernel could not prove that nothing escaped while the tree was being renamed.
            Err(Errno::AGAIN | Errno::INTR) if attempts < 64 => attempts += 1,
            other => return other,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn kernel_open(_: BorrowedFd<'_>, _: &Path, _: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

fn walk_open(root: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | ALWAYS | OFlags::NOFOLLOW;
    let mut components = relative.components().peekable();
    let mut directory: Option<OwnedFd> = None;
    while let Some(component) = components.next() {
        if matches!(component, Component::ParentDir | Component::RootDir | Component::Prefix(_)) {
            return Err(Errno::XDEV);
        }
        let parent = directory.as_ref().map_or(root, AsFd::as_fd);
        let last = components.peek().is_none();
        let step = if last { flags } else { HANDLE | OFlags::DIRECTORY | OFlags::NOFOLLOW | ALWAYS };
        let opened = rustix::io::retry_on_intr(|| {
            rustix::fs::openat(parent, component.as_os_str(), step, Mode::empty())
        })?;
        // A handle of the last component may be one of a link: O_PATH with O_NOFOLLOW opens the link itself.
        if last && FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        directory = Some(opened);
    }
    directory.ok_or(Errno::NOENT)
}

/// Finds the first component of `relative` that is a link, and where it points. For messages only: what is there may
/// have changed since the open failed.
pub(super) fn find_link(lookup: Lookup, root: BorrowedFd<'_>, relative: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut seen = PathBuf::new();
    for component in relative.components() {
        let parent = lookup.handle(root, &seen).ok()?;
        seen.push(component);
        let stat = rustix::fs::statat(&parent, component.as_os_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            let target = rustix::fs::readlinkat(&parent, component.as_os_str(), Vec::new()).ok()?;
            return Some((seen, PathBuf::from(target.to_string_lossy().into_owned())));
        }
    }
    None
}

/// Names a kind of file that is neither a regular file nor a directory.
pub(super) fn special_kind(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Symlink => "symbolic link",
        _ => "special file",
    }
}
