//! Writing a file: a temporary one in the same directory, synced, then renamed over the name.
//!
//! A file is therefore either the old one or the new one, also after a power cut. What may stay behind after a crash
//! is a hidden file whose name [`is_leftover`] knows; nothing reads it.
//!
//! Kept of the old file: mode, owner, group, access lists and user attributes. Where one can't be, the write is
//! refused rather than the file handed to somebody else. Between the last look at the old file and the rename a
//! change by another program can still be lost; that moment is as short as two system calls.

use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use alisio_policy::Permit;
use alisio_protocol::Sha256;
use rustix::fs::{Access as Right, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::{EDIT_LIMIT, FileError, Located, Rights, open};

const LEFTOVER_START: &str = ".alisio-";
const LEFTOVER_END: &str = ".tmp";

/// Says whether a file name is that of a temporary file which a crash may have left behind.
pub fn is_leftover(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix(LEFTOVER_START)?.strip_suffix(LEFTOVER_END))
        .is_some_and(|middle| middle.len() == 32 && middle.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl Located {
    /// Writes a file that must not exist yet, with the missing directories above it.
    ///
    /// # Errors
    /// When something is there, or the permit does not cover the path. Then nothing was written, but directories may
    /// have been made.
    pub fn write_new(&self, permit: &Permit, bytes: &[u8]) -> Result<(), FileError> {
        let fail = |errno| self.fail(errno);
        let name = self.writable_name(permit)?;
        let parent = self.make_parent().map_err(fail)?;
        // The kernel applies the umask and the directory's default access list.
        let temporary = Temporary::create(parent.as_fd(), Mode::from_raw_mode(0o666)).map_err(fail)?;
        temporary.fill(bytes).map_err(|error| self.fail_io(error))?;
        rustix::fs::fsync(&temporary.file).map_err(fail)?;
        temporary.link_new(name).map_err(fail)?;
        self.sync_directory(&parent)
    }

    /// Replaces a file whose content has the fingerprint `expected`.
    ///
    /// # Errors
    /// When the file has changed, is not a regular file of one name, can't keep its owner and attributes, may not be
    /// written by this user, or when the permit does not cover it. Then nothing was written.
    pub fn replace(&self, permit: &Permit, expected: &Sha256, bytes: &[u8]) -> Result<(), FileError> {
        let fail = |errno| self.fail(errno);
        let name = self.writable_name(permit)?;
        let above = self.relative.parent().unwrap_or(Path::new(""));
        let parent = self.root.lookup.directory(self.root.handle.as_fd(), above).map_err(fail)?;
        let (old, stat) = self.open_old(parent.as_fd(), name, expected)?;
        // The rename would succeed where the file itself is write-protected.
        if let Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) =
            rustix::fs::accessat(&parent, name, Right::WRITE_OK, AtFlags::EACCESS)
        {
            return Err(fail(errno));
        }
        let temporary = Temporary::create(parent.as_fd(), Mode::from_raw_mode(0o600)).map_err(fail)?;
        temporary.fill(bytes).map_err(|error| self.fail_io(error))?;
        self.keep_owner(&temporary.file, &stat)?;
        self.keep_attributes(old.as_fd(), temporary.file.as_fd())?;
        rustix::fs::fchmod(&temporary.file, Mode::from_raw_mode(stat.st_mode & 0o7777)).map_err(fail)?;
        rustix::fs::fsync(&temporary.file).map_err(fail)?;
        drop(old);
        self.open_old(parent.as_fd(), name, expected)?;
        temporary.rename_over(name).map_err(fail)?;
        self.sync_directory(&parent)
    }

    fn writable_name(&self, permit: &Permit) -> Result<&OsStr, FileError> {
        permit.check_write(&self.absolute)?;
        if self.root.rights == Rights::ReadOnly {
            return Err(FileError::ReadOnly(self.display.clone()));
        }
        self.relative.file_name().ok_or_else(|| FileError::IsDirectory(self.display.clone()))
    }

    /// Opens the directory above, making what is missing, each step through the handle of the one before.
    fn make_parent(&self) -> Result<OwnedFd, Errno> {
        let above = self.relative.parent().unwrap_or(Path::new(""));
        let lookup = self.root.lookup;
        match lookup.directory(self.root.handle.as_fd(), above) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let mut directory = lookup.directory(self.root.handle.as_fd(), Path::new(""))?;
        for component in above.components() {
            let step = Path::new(component.as_os_str());
            match rustix::fs::mkdirat(&directory, step, Mode::from_raw_mode(0o777)) {
                Ok(()) => sync(&directory)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            directory = lookup.directory(directory.as_fd(), step)?;
        }
        Ok(directory)
    }

    /// Opens the file to be replaced and checks that it is what was read.
    fn open_old(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        expected: &Sha256,
    ) -> Result<(std::fs::File, Stat), FileError> {
        let fail = |errno| self.fail(errno);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let opened = self.root.lookup.open(parent, Path::new(name), flags).map_err(fail)?;
        let stat = rustix::fs::fstat(&opened).map_err(fail)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(FileError::IsDirectory(self.display.clone())),
            other => {
                return Err(FileError::Special {
                    path: self.display.clone(),
                    kind: open::special_kind(other),
                });
            }
        }
        #[allow(clippy::useless_conversion, reason = "the width of the field differs between systems")]
        let links = u64::from(stat.st_nlink);
        if links > 1 {
            return Err(FileError::HardLinks { path: self.display.clone(), links });
        }
        let mut file = std::fs::File::from(opened);
        let mut bytes = Vec::new();
        (&mut file).take(EDIT_LIMIT + 1).read_to_end(&mut bytes).map_err(|error| self.fail_io(error))?;
        if bytes.len() as u64 > EDIT_LIMIT {
            let size = u64::try_from(stat.st_size).unwrap_or(EDIT_LIMIT + 1).max(bytes.len() as u64);
            return Err(FileError::TooLarge { path: self.display.clone(), size, limit: EDIT_LIMIT });
        }
        let actual = Sha256::of(&bytes);
        if actual != *expected {
            return Err(FileError::Stale { path: self.display.clone(), actual });
        }
        Ok((file, stat))
    }

    fn keep_owner(&self, file: &std::fs::File, old: &Stat) -> Result<(), FileError> {
        let new = rustix::fs::fstat(file).map_err(|errno| self.fail(errno))?;
        if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid) {
            return Ok(());
        }
        let owner = (new.st_uid != old.st_uid).then(|| rustix::fs::Uid::from_raw(old.st_uid));
        let group = (new.st_gid != old.st_gid).then(|| rustix::fs::Gid::from_raw(old.st_gid));
        rustix::fs::fchown(file, owner, group).map_err(|errno| {
            let what = if owner.is_some() { "owner" } else { "group" }.to_owned();
            FileError::NotKept { path: self.display.clone(), what, source: errno.into() }
        })
    }

    /// Copies the attributes that a user set, access lists among them. Those of the security modules are given by the
    /// kernel to every new file, and file capabilities end at every write; they are copied where that is allowed.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn keep_attributes(&self, old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> Result<(), FileError> {
        let mut names = vec![0_u8; 64 * 1024];
        let length = match rustix::fs::flistxattr(old, &mut names[..]) {
            Ok(length) => length,
            Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(()),
            Err(errno) => return Err(self.fail(errno)),
        };
        let mut value = vec![0_u8; 64 * 1024];
        for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let copied = rustix::fs::fgetxattr(old, name, &mut value[..]).and_then(|length| {
                rustix::fs::fsetxattr(new, name, &value[..length], rustix::fs::XattrFlags::empty())
            });
            let must_keep = name.starts_with(b"user.") || name.starts_with(b"system.");
            if let (Err(errno), true) = (copied, must_keep) {
                let what = format!("attribute `{}`", String::from_utf8_lossy(name));
                return Err(FileError::NotKept { path: self.display.clone(), what, source: errno.into() });
            }
        }
        Ok(())
    }

    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    fn keep_attributes(&self, _: BorrowedFd<'_>, _: BorrowedFd<'_>) -> Result<(), FileError> {
        Ok(())
    }

    fn sync_directory(&self, directory: &OwnedFd) -> Result<(), FileError> {
        sync(directory).map_err(|errno| self.fail(errno))
    }
}

/// Syncs a directory; some file systems don't know how, and then it needs none.
fn sync(directory: &OwnedFd) -> Result<(), Errno> {
    match rustix::fs::fsync(directory) {
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        other => other,
    }
}

/// A file under a passing name; gone when dropped, unless it got its real one.
struct Temporary<'a> {
    directory: BorrowedFd<'a>,
    name: String,
    file: std::fs::File,
}

impl<'a> Temporary<'a> {
    fn create(directory: BorrowedFd<'a>, mode: Mode) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut attempts = 0;
        loop {
            // Each state is seeded by the system, so the name can't be foreseen; O_EXCL makes a guess harmless.
            let (high, low) = (RandomState::new().hash_one(0_u8), RandomState::new().hash_one(1_u8));
            let name = format!("{LEFTOVER_START}{high:016x}{low:016x}{LEFTOVER_END}");
            match rustix::fs::openat(directory, &name, flags, mode) {
                Ok(opened) => return Ok(Self { directory, name, file: opened.into() }),
                Err(Errno::EXIST) if attempts < 8 => attempts += 1,
                Err(errno) => return Err(errno),
            }
        }
    }

    fn fill(&self, bytes: &[u8]) -> std::io::Result<()> {
        (&self.file).write_all(bytes)
    }

    fn rename_over(self, name: &OsStr) -> Result<(), Errno> {
        rustix::fs::renameat(self.directory, &self.name, self.directory, name)
    }

    /// Gives the file its name unless something has it.
    fn link_new(self, name: &OsStr) -> Result<(), Errno> {
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        match rustix::fs::renameat_with(
            self.directory,
            &self.name,
            self.directory,
            name,
            RenameFlags::NOREPLACE,
        ) {
            // The file system does not know the flag; a hard link gives the same promise.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            other => return other,
        }
        rustix::fs::linkat(self.directory, &self.name, self.directory, name, AtFlags::empty())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // After a rename the name is gone already, and nothing else has it.
        let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}
