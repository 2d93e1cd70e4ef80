//! Finds a repository and reads the few files that say where its parts are, without git.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Bytes of a file that names one thing.
const SMALL: u64 = 4096;
/// Bytes of a list of object directories, and entries of all such lists of a repository.
const ALTERNATES: u64 = 64 * 1024;
const MOST_ALTERNATES: usize = 64;
/// Bytes of a `packed-refs` file.
const PACKED: u64 = 256 * 1024 * 1024;

/// Says why there is no repository to look at.
#[derive(Debug, Error)]
pub(crate) enum RepositoryError {
    #[error("`{0}` is not in a git repository")]
    None(PathBuf),
    #[error("`{0}` is a bare repository, which has no working tree")]
    Bare(PathBuf),
    #[error("`{0}` is a symbolic link; the git tools do not follow it")]
    Link(PathBuf),
    #[error("`{0}` leads out of the repository through a symbolic link; the git tools do not follow it")]
    Elsewhere(PathBuf),
    #[error("`{file}` names `{target}` as its git directory, which does not belong to it")]
    Foreign { file: PathBuf, target: PathBuf },
    #[error("the repository uses {0}, which the git tools do not know")]
    Unknown(String),
    #[error("`{path}` could not be read: {source}")]
    File { path: PathBuf, source: io::Error },
}

/// Where the parts of a repository are.
#[derive(Debug)]
pub(super) struct Repository {
    /// The working tree.
    pub(super) top: PathBuf,
    /// What belongs to this working tree: `HEAD`, `index`.
    pub(super) git_dir: PathBuf,
    /// What all working trees share: `config`, `objects`, `refs`.
    pub(super) common_dir: PathBuf,
}

impl Repository {
    /// Finds the repository of a directory, as git does: the nearest one above.
    pub(super) fn discover(start: &Path) -> Result<Self, RepositoryError> {
        for top in start.ancestors() {
            let entry = top.join(".git");
            match entry.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => return Err(RepositoryError::Link(entry)),
                Ok(metadata) if metadata.is_file() => return Self::from_file(top, &entry),
                Ok(metadata) if metadata.is_dir() && is_git_dir(&entry) => {
                    return Ok(Self { top: top.to_owned(), git_dir: entry.clone(), common_dir: entry });
                }
                _ => {}
            }
            if is_git_dir(top) {
                return Err(RepositoryError::Bare(top.to_owned()));
            }
        }
        Err(RepositoryError::None(start.to_owned()))
    }

    /// Follows a `.git` file of a working tree or a submodule. What it names must belong to it: else a file in a
    /// checkout could show us another repository of this machine.
    fn from_file(top: &Path, file: &Path) -> Result<Self, RepositoryError> {
        let text = small_file(file)?;
        let named = text.strip_prefix(b"gitdir:").map(<[u8]>::trim_ascii).unwrap_or_default();
        let target = top.join(path(named));
        let foreign = || RepositoryError::Foreign { file: file.to_owned(), target: target.clone() };
        let git_dir = target.canonicalize().map_err(|_| foreign())?;
        let common = git_dir.join("commondir");
        if common.exists() {
            let common_dir = git_dir.join(path(small_file(&common)?.trim_ascii()));
            let common_dir = common_dir.canonicalize().map_err(|_| foreign())?;
            let back = git_dir.join(path(small_file(&git_dir.join("gitdir"))?.trim_ascii()));
            let names_us =
                back.canonicalize().is_ok_and(|back| file.canonicalize().is_ok_and(|file| file == back));
            let is_listed = git_dir.parent() == Some(&common_dir.join("worktrees"));
            return if names_us && is_listed && is_git_dir(&common_dir) {
                Ok(Self { top: top.to_owned(), git_dir, common_dir })
            } else {
                Err(foreign())
            };
        }
        // The git directory of a submodule lies in the one of a repository around it.
        let is_module =
            top.ancestors().skip(1).any(|around| git_dir.starts_with(around.join(".git/modules")));
        if is_module && is_git_dir(&git_dir) {
            Ok(Self { top: top.to_owned(), git_dir: git_dir.clone(), common_dir: git_dir })
        } else {
            Err(foreign())
        }
    }

    /// Checks that a part of the repository, where it is there, is its own: through a link to the index or the
    /// branches of another one, its files would show as changes of this one.
    pub(super) fn check_own(&self, part: &Path) -> Result<(), RepositoryError> {
        let Ok(real) = part.canonicalize() else { return Ok(()) };
        let is_own = [&self.git_dir, &self.common_dir]
            .into_iter()
            .any(|directory| directory.canonicalize().is_ok_and(|directory| real.starts_with(directory)));
        if is_own { Ok(()) } else { Err(RepositoryError::Elsewhere(part.to_owned())) }
    }

    /// Checks the lists of further object directories, which git reads whole: a device there would take all memory.
    pub(super) fn check_alternates(&self) -> Result<(), RepositoryError> {
        check_alternates(&self.common_dir.join("objects"), &mut { MOST_ALTERNATES })
    }

    /// Returns what a `HEAD` of ours must hold: the commit, or the name of a branch that has none yet.
    pub(super) fn head(&self) -> Result<Vec<u8>, RepositoryError> {
        let mut name = b"HEAD".to_vec();
        for _ in 0..5 {
            let directory = if name == b"HEAD" { &self.git_dir } else { &self.common_dir };
            let file = directory.join(path(&name));
            self.check_own(&file)?;
            let value = match small_file(&file) {
                Ok(value) => value,
                Err(_) if name == b"HEAD" => {
                    return Err(RepositoryError::Unknown("a HEAD that is no ordinary file".into()));
                }
                Err(_) => match self.packed(&name)? {
                    Some(commit) => commit,
                    // An unborn branch. Its name matters to nobody.
                    None => return Ok(b"ref: refs/heads/unborn\n".to_vec()),
                },
            };
            let value = value.trim_ascii();
            if let Some(next) = value.strip_prefix(b"ref:") {
                name = next.trim_ascii().to_vec();
                let is_safe = name.starts_with(b"refs/") && !name.windows(2).any(|pair| pair == b"..");
                if !is_safe {
                    return Err(RepositoryError::Unknown("a HEAD that names no branch".into()));
                }
            } else if is_object_name(value) {
                return Ok([value, b"\n"].concat());
            } else {
                return Err(RepositoryError::Unknown("a HEAD that names neither branch nor commit".into()));
            }
        }
        Err(RepositoryError::Unknown("branches that name each other in a circle".into()))
    }

    fn packed(&self, name: &[u8]) -> Result<Option<Vec<u8>>, RepositoryError> {
        let file = self.common_dir.join("packed-refs");
        self.check_own(&file)?;
        if !file.exists() {
            return Ok(None);
        }
        let text = read_file(&file, PACKED)?;
        Ok(text.split(|byte| *byte == b'\n').find_map(|line| {
            let space = line.iter().position(|byte| *byte == b' ')?;
            (&line[space + 1..] == name && is_object_name(&line[..space])).then(|| line[..space].to_vec())
        }))
    }
}

/// Checks one list and those that it leads to; `left` is how many directories may still be named.
fn check_alternates(objects: &Path, left: &mut usize) -> Result<(), RepositoryError> {
    let list = objects.join("info/alternates");
    match list.symlink_metadata() {
        Err(_) => return Ok(()),
        Ok(metadata) if metadata.is_symlink() => return Err(RepositoryError::Link(list)),
        Ok(_) => {}
    }
    let text = read_file(&list, ALTERNATES)?;
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#');
    for line in lines {
        *left = left
            .checked_sub(1)
            .ok_or_else(|| RepositoryError::Unknown("too many object directories elsewhere".into()))?;
        check_alternates(&objects.join(path(line)), left)?;
    }
    Ok(())
}

fn is_git_dir(directory: &Path) -> bool {
    directory.join("objects").is_dir()
        && directory.join("refs").exists()
        && directory.join("HEAD").symlink_metadata().is_ok()
}

fn is_object_name(text: &[u8]) -> bool {
    matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit)
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

fn small_file(path: &Path) -> Result<Vec<u8>, RepositoryError> {
    read_file(path, SMALL)
}

/// Reads an ordinary file; a pipe that was planted does not hold us up.
fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, RepositoryError> {
    let fail = |source| RepositoryError::File { path: path.to_owned(), source };
    let file = open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > limit {
        return Err(fail(io::Error::other("it is too long")));
    }
    Ok(bytes)
}

/// Opens an ordinary file for reading.
pub(super) fn open(path: &Path) -> io::Result<File> {
    const NONBLOCK: i32 = 0o4000;
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no ordinary file")) }
}
