//! Wakes processes that wait for a row to change: a datagram socket a listener in a folder that only its owner can look
//! into. Nobody polls, and nothing depends on a ring arriving but how soon somebody looks: the row is the truth.
//!
//! A full queue and a dead listener are no faults. Where the state lies too deep for the name of a socket (about 100
//! bytes), the folder is under `/tmp`, named after the user and the state's own folder: not after the environment, which
//! two terminals need not share.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alisio_protocol::SessionId;

use crate::store::Inner;
use crate::{Store, StoreError, lock, place};

/// The longest path of a socket that every system takes, without the zero at its end.
const PATH_LIMIT: usize = 100;
/// How many bytes the name of a socket has: 16 drawn ones, the ending and the slash before it.
const NAME_LENGTH: usize = 16 + ENDING.len() + 1;
const ENDING: &str = ".bell";
/// How long a listener waits for others that begin at the same time.
const LISTEN_LIMIT: Duration = Duration::from_secs(5);

/// A listener. Dropping it takes its socket away.
///
/// Listen first, then read the rows, then wait for [`Doorbell::as_fd`] to be readable, call [`Doorbell::try_recv`] and
/// read the rows again: so no change is missed.
#[derive(Debug)]
pub struct Doorbell {
    // The file goes with it.
    socket: tempfile::NamedTempFile<UnixDatagram>,
}

impl Doorbell {
    /// Begins to listen to everything that happens to the approvals of `store`. Sockets of dead listeners are removed.
    ///
    /// # Errors
    /// When the folder can't be made or is not its owner's alone, or the socket can't be bound.
    pub fn listen(store: &Store) -> Result<Self, StoreError> {
        let folder = folder(&store.inner)?;
        open_folder(folder)?;
        // One at a time: a socket that is just being bound looks like a dead one.
        let _alone = lock::wait(&store.inner.root.join("locks"), ".bells", LISTEN_LIMIT)?
            .ok_or_else(|| StoreError::Busy { path: folder.to_owned() })?;
        for path in sockets(folder) {
            let dead = UnixDatagram::unbound()
                .and_then(|socket| socket.connect(&path))
                .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
            if dead {
                let _ = fs::remove_file(&path);
            }
        }
        let socket = tempfile::Builder::new()
            .prefix("")
            .suffix(ENDING)
            .rand_bytes(NAME_LENGTH - ENDING.len() - 1)
            .make_in(folder, |path| {
                let socket = UnixDatagram::bind(path)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
                socket.set_nonblocking(true)?;
                Ok(socket)
            })
            .map_err(|error| StoreError::file(folder, error))?;
        Ok(Self { socket })
    }

    /// Takes all rings that have come; says whether there was one. Never blocks.
    pub fn try_recv(&self) -> bool {
        let mut rang = false;
        let mut text = [0; 64];
        loop {
            match self.socket.as_file().recv(&mut text) {
                Ok(_) => rang = true,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return rang,
            }
        }
    }
}

impl AsFd for Doorbell {
    /// Readable when somebody rang.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_file().as_fd()
    }
}

impl Store {
    /// Tells every listener that something about the approvals of `session` has changed. Never blocks and never fails.
    /// What this crate writes rings by itself.
    pub fn ring(&self, session: &SessionId) {
        let Ok(folder) = folder(&self.inner) else { return };
        let listeners = sockets(folder);
        if listeners.is_empty() || check_folder(folder).is_err() {
            return;
        }
        let Ok(socket) = UnixDatagram::unbound() else { return };
        if socket.set_nonblocking(true).is_err() {
            return;
        }
        for path in listeners {
            let _ = socket.send_to(session.as_str().as_bytes(), path);
        }
    }
}

/// Where the sockets are; found once for a handle, since every entry of the ledger asks.
fn folder(inner: &Inner) -> Result<&Path, StoreError> {
    let folder = match inner.bells.get() {
        Some(folder) => folder,
        None => {
            let found = find_folder(&inner.root)?;
            inner.bells.get_or_init(|| found)
        }
    };
    Ok(folder)
}

/// Every process comes to the same place, whatever way it was shown to the state.
fn find_folder(root: &Path) -> Result<PathBuf, StoreError> {
    let fail = |error| StoreError::file(root, error);
    let real = fs::canonicalize(root).map_err(fail)?;
    let near = real.join("run");
    if near.as_os_str().len() + NAME_LENGTH <= PATH_LIMIT {
        return Ok(near);
    }
    let metadata = fs::metadata(&real).map_err(fail)?;
    let user = rustix::process::geteuid().as_raw();
    Ok(PathBuf::from(format!("/tmp/alisio-{user}-{:x}-{:x}", metadata.dev(), metadata.ino())))
}

/// Makes the folder, its owner's alone.
fn open_folder(folder: &Path) -> Result<(), StoreError> {
    place::private_folder(folder)?;
    check_folder(folder)
}

/// Refuses a folder that another user made or may look into; a link counts as one.
fn check_folder(folder: &Path) -> Result<(), StoreError> {
    let metadata = fs::symlink_metadata(folder).map_err(|error| StoreError::file(folder, error))?;
    let is_ours = metadata.is_dir()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & 0o077 == 0;
    if is_ours {
        return Ok(());
    }
    let reason = std::io::Error::other("it is not a folder of this user alone (mode 0700)");
    Err(StoreError::File { path: folder.to_owned(), source: reason })
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.as_os_str().as_encoded_bytes().ends_with(ENDING.as_bytes())).collect()
}
