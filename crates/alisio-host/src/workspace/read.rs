//! Reading a file that was opened below a root.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use super::{FileError, Located, open};

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    size: u64,
}

impl OpenFile {
    /// Its size in bytes when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

/// Waits for nobody: a FIFO without a writer must not hold us up.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// Says whether a file lies in `/proc`: its files tell what processes hold, ours with its keys among them, and some
/// never end.
#[cfg(target_os = "linux")]
fn is_made_up(file: impl AsFd, stat: &Stat) -> bool {
    // Only there is a file without a length worth a second call.
    stat.st_size == 0
        && rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_made_up(_: impl AsFd, _: &Stat) -> bool {
    false
}

impl Located {
    /// Opens the regular file that lies there.
    ///
    /// # Errors
    /// When there is none, or the way leads through a link.
    pub fn open_file(&self) -> Result<OpenFile, FileError> {
        let fail = |errno| self.fail(errno);
        let opened = self.root.lookup.open(self.root.handle.as_fd(), &self.relative, READ).map_err(fail)?;
        let stat = rustix::fs::fstat(&opened).map_err(fail)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if is_made_up(&opened, &stat) => {
                Err(FileError::Special { path: self.display.clone(), kind: "file that the kernel makes up" })
            }
            FileType::RegularFile => {
                Ok(OpenFile { file: opened.into(), size: u64::try_from(stat.st_size).unwrap_or(0) })
            }
            FileType::Directory => Err(FileError::IsDirectory(self.display.clone())),
            other => Err(FileError::Special { path: self.display.clone(), kind: open::special_kind(other) }),
        }
    }

    /// Opens a regular file at `absolute`, below the same root; `None` where it is something else, is gone, is denied
    /// or is reached only through a link. For searches, which meet thousands of files and name none of those.
    pub fn open_below(&self, absolute: &Path) -> Option<File> {
        let relative = absolute.strip_prefix(&self.root.directory).ok()?;
        let opened = self.root.lookup.open(self.root.handle.as_fd(), relative, READ).ok()?;
        let stat = rustix::fs::fstat(&opened).ok()?;
        let is_file =
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && !is_made_up(&opened, &stat);
        is_file.then(|| opened.into())
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// As [`Located::open_file`], and when it is larger than `limit` bytes.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, FileError> {
        let opened = self.open_file()?;
        let size = opened.size;
        let too_large = |size| FileError::TooLarge { path: self.display.clone(), size, limit };
        if size > limit {
            return Err(too_large(size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        // It may grow while it is read.
        opened.take(limit + 1).read_to_end(&mut bytes).map_err(|error| self.fail_io(error))?;
        if bytes.len() as u64 > limit { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
    }

    /// Makes the error for a failed read or write.
    pub fn fail_io(&self, error: io::Error) -> FileError {
        match Errno::from_io_error(&error) {
            Some(errno) => self.fail(errno),
            None => FileError::System { path: self.display.clone(), source: error },
        }
    }
}
