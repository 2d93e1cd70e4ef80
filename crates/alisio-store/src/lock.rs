//! One writer a session, across processes: `flock(2)` on a file, so that the kernel ends the lock with its owner,
//! however that ends. The number in the file is only there to be told to people.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::{StoreError, place};

/// A held lock. Dropping it takes the file away and gives the lock back; whoever opened the file before sees that it
/// is gone.
#[derive(Debug)]
pub(crate) struct HeldLock {
    _file: File,
    path: PathBuf,
}

/// Says who holds a lock that could not be had.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) owner: Option<u32>,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes the lock `name` in `folder`, or says who holds it.
///
/// A reader may hold it for an instant ([`is_free`]), so a taken one is tried again for a little while.
pub(crate) fn take(folder: &Path, name: &str) -> Result<Result<HeldLock, Taken>, StoreError> {
    for _ in 0..5 {
        if let Some(lock) = attempt(folder, name)? {
            return Ok(Ok(lock));
        }
        std::thread::sleep(Duration::from_millis(8));
    }
    let path = file_path(folder, name);
    let owner = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    Ok(Err(Taken { owner }))
}

/// Takes the lock `name` in `folder`, waiting for at most `limit`.
pub(crate) fn wait(folder: &Path, name: &str, limit: Duration) -> Result<Option<HeldLock>, StoreError> {
    let start = Instant::now();
    loop {
        if let Some(lock) = attempt(folder, name)? {
            return Ok(Some(lock));
        }
        if start.elapsed() >= limit {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Says whether nobody holds the lock `name`.
pub(crate) fn is_free(folder: &Path, name: &str) -> bool {
    match File::open(file_path(folder, name)) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_ok(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn file_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.lock"))
}

fn attempt(folder: &Path, name: &str) -> Result<Option<HeldLock>, StoreError> {
    let path = file_path(folder, name);
    let fail = |error| StoreError::file(&path, error);
    place::private_folder(folder)?;
    loop {
        // Rust opens with O_CLOEXEC, so no child keeps the lock alive.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(fail)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(fail(error.into())),
        }
        // Someone may have taken the file away between opening and locking; then this lock is nobody's.
        let held = file.metadata().map_err(fail)?;
        match fs::metadata(&path) {
            Ok(there) if there.ino() == held.ino() && there.dev() == held.dev() => {}
            _ => continue,
        }
        let owner = format!("{}\n", std::process::id());
        let mut before = String::new();
        // The number is a courtesy: on a full disk the lock must still be had.
        if file.read_to_string(&mut before).is_ok() && before != owner {
            let _ = file.set_len(0);
            let _ = std::io::Seek::rewind(&mut file);
            let _ = file.write_all(owner.as_bytes());
        }
        return Ok(Some(HeldLock { _file: file, path }));
    }
}
