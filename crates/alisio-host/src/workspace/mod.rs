//! Files in declared roots, reached through directory handles.
//!
//! A [`Workspace`] knows the directories that tools may touch. [`Workspace::resolve`] turns a path as the model wrote
//! it into a place below one of them ([`Located`]) or says that it lies outside ([`Outside`]); whether outside is
//! allowed is the gate's to decide. Whatever is opened later is opened below the root's handle and without following
//! a link, so that what was checked is what is touched, however the tree changes in between.
//!
//! It does not decide, does not walk trees, and does not confine what a process does.

mod error;
mod open;
mod path;
mod read;
mod write;

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alisio_policy::OutsidePath;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

pub use error::{FileError, Reason};
pub use open::Lookup;
pub use path::is_broad;
pub use read::OpenFile;
pub use write::is_leftover;

/// Files up to this size are edited, and read in one go.
pub const EDIT_LIMIT: u64 = 1024 * 1024;

/// What a path is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To be read, listed or searched.
    Read,
    /// To be written.
    Write,
}

/// What a root may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    ReadWrite,
    ReadOnly,
}

/// A directory that tools may touch, held by a handle.
#[derive(Debug)]
struct Root {
    directory: PathBuf,
    handle: OwnedFd,
    rights: Rights,
    lookup: Lookup,
}

impl Root {
    /// Opens a directory by its real path.
    fn open(directory: &Path, rights: Rights, lookup: Lookup) -> Result<Self, FileError> {
        let shown = directory.display().to_string();
        let directory = directory.canonicalize().map_err(|error| match Errno::from_io_error(&error) {
            Some(errno) => FileError::from_errno(&shown, errno),
            None => FileError::System { path: shown.clone(), source: error },
        })?;
        Self::at(directory, rights, lookup)
    }

    /// Opens a directory whose path holds no link; a link planted since is refused.
    fn at(directory: PathBuf, rights: Rights, lookup: Lookup) -> Result<Self, FileError> {
        let shown = directory.display().to_string();
        let fail = |errno| FileError::from_errno(&shown, errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open("/", flags, Mode::empty()).map_err(fail)?;
        let lookup = lookup.probe(top.as_fd());
        let below = directory.strip_prefix("/").unwrap_or(&directory);
        let handle = lookup.directory(top.as_fd(), below).map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR => match open::find_link(lookup, top.as_fd(), below) {
                Some((link, target)) => FileError::Link { link: Path::new("/").join(link), target },
                None => fail(errno),
            },
            other => fail(other),
        })?;
        Ok(Self { directory, handle, rights, lookup })
    }
}

/// The directories that tools may touch: the workspace, declared ones, and ones that may only be read.
///
/// Cloning is cheap; the handles are shared.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The workspace itself comes first.
    roots: Vec<Arc<Root>>,
    /// Directories in which nothing is written, whatever root they lie in.
    guarded: Vec<PathBuf>,
    lookup: Lookup,
}

impl Workspace {
    /// Opens the workspace at `root`.
    ///
    /// # Errors
    /// When `root` is no directory that can be opened.
    pub fn open(root: &Path) -> Result<Self, FileError> {
        Self::open_with(root, Lookup::default())
    }

    /// Opens the workspace at `root` with a given way of looking paths up.
    ///
    /// # Errors
    /// As [`Workspace::open`].
    pub fn open_with(root: &Path, lookup: Lookup) -> Result<Self, FileError> {
        let roots = vec![Arc::new(Root::open(root, Rights::ReadWrite, lookup)?)];
        Ok(Self { roots, guarded: Vec::new(), lookup })
    }

    /// Returns the workspace with another directory that may be read and written: one declared by a flag or by the
    /// configuration, or opened by a person.
    ///
    /// # Errors
    /// When `directory` is no directory that can be opened.
    pub fn with_root(&self, directory: &Path) -> Result<Self, FileError> {
        self.with(Root::open(directory, Rights::ReadWrite, self.lookup)?)
    }

    /// Returns the workspace with another directory that may only be read.
    ///
    /// # Errors
    /// When `directory` is no directory that can be opened.
    pub fn with_read_only(&self, directory: &Path) -> Result<Self, FileError> {
        self.with(Root::open(directory, Rights::ReadOnly, self.lookup)?)
    }

    fn with(&self, root: Root) -> Result<Self, FileError> {
        let mut roots = self.roots.clone();
        roots.push(Arc::new(root));
        Ok(Self { roots, guarded: self.guarded.clone(), lookup: self.lookup })
    }

    /// Returns the workspace with a directory in which nothing is written, even where it lies in a root that may be:
    /// Alisio's own configuration and state, with which a model could widen what it may do. It need not exist.
    #[must_use]
    pub fn guarding(&self, directory: &Path) -> Self {
        let mut guarded = self.guarded.clone();
        guarded.push(directory.canonicalize().unwrap_or_else(|_| path::real(directory)));
        Self { guarded, ..self.clone() }
    }

    /// The workspace directory, canonical. Relative paths count from here.
    pub fn root(&self) -> &Path {
        &self.roots[0].directory
    }

    /// All directories that tools may touch, canonical, the workspace first.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.directory.as_path())
    }

    /// Resolves a path as the model wrote it. Nothing needs to exist there.
    ///
    /// # Errors
    /// When the path can't be one, when it goes through a link inside a root, or when it is to be written and its
    /// root may only be read.
    pub fn resolve(&self, input: &str, access: Access) -> Result<Resolved, FileError> {
        let absolute = path::absolute(self.root(), input)?;
        if access == Access::Write {
            let real = path::real(&absolute);
            if self.guarded.iter().any(|directory| real.starts_with(directory)) {
                return Err(FileError::ReadOnly(self.display(&real)));
            }
        }
        let located = match self.locate(&absolute) {
            Some(located) => located,
            None => {
                // Another spelling of a place inside a root, perhaps.
                let real = path::real(&absolute);
                match self.locate(&real) {
                    Some(located) => located,
                    None => return Ok(Resolved::Outside(Outside::of(real))),
                }
            }
        };
        if access == Access::Write && located.root.rights == Rights::ReadOnly {
            return Err(FileError::ReadOnly(located.display));
        }
        match located.root.lookup.handle(located.root.handle.as_fd(), &located.relative) {
            Err(errno @ (Errno::LOOP | Errno::NOTDIR)) => Err(located.fail(errno)),
            _ => Ok(Resolved::Inside(located)),
        }
    }

    /// Finds the innermost root that holds an absolute, clean path.
    fn locate(&self, absolute: &Path) -> Option<Located> {
        let root = self
            .roots
            .iter()
            .filter(|root| absolute.starts_with(&root.directory))
            .max_by_key(|root| root.directory.as_os_str().len())?;
        let relative = absolute.strip_prefix(&root.directory).ok()?.to_owned();
        let display = self.display(absolute);
        Some(Located { root: Arc::clone(root), relative, absolute: absolute.to_owned(), display })
    }

    /// Says a path as people read it: relative to the workspace where it lies in it.
    pub fn display(&self, absolute: &Path) -> String {
        match absolute.strip_prefix(self.root()) {
            Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            Ok(relative) => relative.display().to_string(),
            Err(_) => absolute.display().to_string(),
        }
    }
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub enum Resolved {
    /// Below a root.
    Inside(Located),
    /// Outside every root; the gate decides.
    Outside(Outside),
}

impl Resolved {
    /// The absolute path.
    pub fn absolute(&self) -> &Path {
        match self {
            Self::Inside(located) => &located.absolute,
            Self::Outside(outside) => &outside.path,
        }
    }

    /// What the gate must know about it: nothing for a path below a root.
    pub fn outside(&self) -> Vec<OutsidePath> {
        match self {
            Self::Inside(_) => Vec::new(),
            Self::Outside(Outside { path, directory }) => {
                vec![OutsidePath { path: path.clone(), directory: directory.clone() }]
            }
        }
    }

    /// Makes the place usable once a permit is there: a path outside gets a root of its own, made of the directory
    /// that was shown.
    ///
    /// # Errors
    /// When that directory can't be opened, or a link was planted in its path meanwhile.
    pub fn locate(self) -> Result<Located, FileError> {
        match self {
            Self::Inside(located) => Ok(located),
            Self::Outside(Outside { path, directory }) => {
                let root = Root::at(directory, Rights::ReadWrite, Lookup::default())?;
                let relative = path.strip_prefix(&root.directory).unwrap_or(Path::new("")).to_owned();
                let display = path.display().to_string();
                let located = Located { root: Arc::new(root), relative, absolute: path, display };
                match located.root.lookup.handle(located.root.handle.as_fd(), &located.relative) {
                    Err(errno @ (Errno::LOOP | Errno::NOTDIR)) => Err(located.fail(errno)),
                    _ => Ok(located),
                }
            }
        }
    }
}

/// A path outside every root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The path with the links of its directories resolved.
    pub path: PathBuf,
    /// The directory that an approval would open: the path itself where it is one, else its parent.
    pub directory: PathBuf,
}

impl Outside {
    fn of(path: PathBuf) -> Self {
        let is_directory = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let directory = match path.parent() {
            Some(parent) if !is_directory => parent.to_owned(),
            _ => path.clone(),
        };
        Self { path, directory }
    }
}

/// What lies at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// A place below a root.
#[derive(Clone, Debug)]
pub struct Located {
    root: Arc<Root>,
    relative: PathBuf,
    absolute: PathBuf,
    display: String,
}

impl Located {
    /// The absolute path.
    pub fn absolute(&self) -> &Path {
        &self.absolute
    }

    /// The root that it lies in, canonical.
    pub fn root(&self) -> &Path {
        &self.root.directory
    }

    /// The path below its root; empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// The path for people: relative to the workspace where it lies in it, else absolute.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Whether the root may only be read: such a root holds outputs of Alisio, not the user's files.
    pub fn is_read_only(&self) -> bool {
        self.root.rights == Rights::ReadOnly
    }

    /// Says what lies there.
    ///
    /// # Errors
    /// When nothing does, when it is neither a file nor a directory, or when the way leads through a link.
    pub fn kind(&self) -> Result<Kind, FileError> {
        let fail = |errno| self.fail(errno);
        let handle = self.root.lookup.handle(self.root.handle.as_fd(), &self.relative).map_err(fail)?;
        let stat = rustix::fs::fstat(&handle).map_err(fail)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Kind::File),
            FileType::Directory => Ok(Kind::Directory),
            other => Err(FileError::Special { path: self.display.clone(), kind: open::special_kind(other) }),
        }
    }

    /// Says what lies at `absolute`, below this place, without following a link; `None` for anything that is neither
    /// a file nor a directory reached without one.
    pub fn kind_below(&self, absolute: &Path) -> Option<Kind> {
        let relative = absolute.strip_prefix(&self.root.directory).ok()?;
        let handle = self.root.lookup.handle(self.root.handle.as_fd(), relative).ok()?;
        match FileType::from_raw_mode(rustix::fs::fstat(&handle).ok()?.st_mode) {
            FileType::RegularFile => Some(Kind::File),
            FileType::Directory => Some(Kind::Directory),
            _ => None,
        }
    }

    /// Makes the error for a failed open, with the link named where one was in the way.
    fn fail(&self, errno: Errno) -> FileError {
        if matches!(errno, Errno::LOOP | Errno::NOTDIR) {
            match open::find_link(self.root.lookup, self.root.handle.as_fd(), &self.relative) {
                Some((link, target)) => {
                    return FileError::Link { link: self.root.directory.join(link), target };
                }
                // It was one a moment ago.
                None if errno == Errno::LOOP => {
                    let target = PathBuf::from("?");
                    return FileError::Link { link: self.absolute.clone(), target };
                }
                None => {}
            }
        }
        FileError::from_errno(&self.display, errno)
    }
}
