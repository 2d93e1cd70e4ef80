//! The handle: opening the file, and the two ways to use it, a read and a write transaction.
//!
//! Durability in one paragraph: the file is in WAL mode and never checkpointed at close, so that closing costs nothing
//! and the next start finds everything. An unsynced commit is written to the log and left to the kernel: the end of
//! the process can't lose it. A synced commit waits until the log is on the disk, and since the log is one file, all
//! commits before it are then on the disk too. Content files written since the last synced commit are synced first.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use alisio_protocol::SessionId;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::content::Blobs;
use crate::{Durability, StoreError, lock, migrations, place};

/// How long a write waits for another process.
const BUSY_LIMIT: Duration = Duration::from_secs(5);

/// The state of Alisio. Cheap to clone; all clones share one connection, and calls take turns.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) root: PathBuf,
    path: PathBuf,
    pub(crate) blobs: Blobs,
    /// Where the doorbells are, once somebody asked.
    pub(crate) bells: OnceLock<PathBuf>,
    state: Mutex<State>,
}

struct State {
    connection: Connection,
    /// Device and number of the file that is open. When another one, or none, lies at the path, what is written is lost.
    identity: Option<(u64, u64)>,
    /// What `PRAGMA synchronous` stands at.
    durability: Durability,
    /// Content files that the next synced commit must sync first.
    unsynced: Vec<PathBuf>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.inner.path).finish()
    }
}

impl Store {
    /// Opens the database at `path`, creating its folder (0700), the file (0600) and the tables as needed.
    ///
    /// # Errors
    /// A sentence for a place that can't be written, a full disk, a network file system, a file that is something else,
    /// was written by a later version or is damaged, and for a database that is busy for more than 5 seconds.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(path).map_err(|error| StoreError::file(path, error))?;
        let root = path.parent().unwrap_or(Path::new("/")).to_owned();
        place::private_folder(&root)?;
        place::check_local(&root)?;
        let is_new = place::private_file(&path)?;
        let connection = connect(&path, &root, is_new).map_err(|error| error.at(&path))?;
        let blobs = Blobs::new(root.join("blobs").join("sha256"));
        let identity = place::identity(&path);
        let state = State { connection, identity, durability: Durability::Unsynced, unsynced: Vec::new() };
        let inner = Inner { root, path, blobs, bells: OnceLock::new(), state: Mutex::new(state) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the folder of the database, which also holds `blobs/`, `outputs/`, `locks/` and `run/`.
    pub fn state_root(&self) -> &Path {
        &self.inner.root
    }

    /// Returns the folder for outputs of the session that are too long for a result, creating it (0700).
    ///
    /// # Errors
    /// When it can't be created, or the id is none.
    pub fn spill_folder(&self, session: &SessionId) -> Result<PathBuf, StoreError> {
        check_id(session)?;
        let folder = self.inner.root.join("outputs").join(session.as_str());
        place::private_folder(&folder)?;
        Ok(folder)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic inside a transaction rolled it back, so what is behind the lock is whole.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads in one consistent view.
    pub(crate) fn read<T>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let state = self.state();
        let transaction = state.connection.unchecked_transaction().map_err(StoreError::from);
        let result = transaction.and_then(|transaction| act(&transaction));
        result.map_err(|error| error.at(&self.inner.path))
    }

    /// Writes in one transaction, which is undone when `act` fails. The list takes the content files that were written.
    pub(crate) fn write<T>(
        &self,
        durability: Durability,
        act: impl FnOnce(&Connection, &RefCell<Vec<PathBuf>>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut state = self.state();
        self.write_in(&mut state, durability, act).map_err(|error| error.at(&self.inner.path))
    }

    fn write_in<T>(
        &self,
        state: &mut State,
        durability: Durability,
        act: impl FnOnce(&Connection, &RefCell<Vec<PathBuf>>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if place::identity(&self.inner.path) != state.identity {
            return Err(StoreError::Moved { path: self.inner.path.clone() });
        }
        if state.durability != durability {
            // SQLite takes this only between transactions.
            state.connection.execute_batch(match durability {
                Durability::Synced => "PRAGMA synchronous = FULL",
                Durability::Unsynced => "PRAGMA synchronous = NORMAL",
            })?;
            state.durability = durability;
        }
        let State { connection, unsynced, .. } = state;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let written = RefCell::new(Vec::new());
        let result = act(&transaction, &written)?;
        unsynced.append(&mut written.into_inner());
        if durability == Durability::Synced && !unsynced.is_empty() {
            self.inner.blobs.sync(unsynced)?;
            unsynced.clear();
        }
        transaction.commit()?;
        Ok(result)
    }

    /// Empties the log into the database, as far as other processes let it; nothing depends on the outcome.
    pub(crate) fn checkpoint(&self) {
        let _ = self.state().connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// Runs `act` while freed space is overwritten, so that what is deleted can't be read from the file.
    pub(crate) fn overwriting<T>(
        &self,
        act: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let set = |on: bool| {
            let set = self.state().connection.pragma_update(None, "secure_delete", on);
            set.map_err(|error| StoreError::from(error).at(&self.inner.path))
        };
        set(true)?;
        let result = act();
        set(false)?;
        result
    }
}

fn connect(path: &Path, root: &Path, is_new: bool) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_LIMIT)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Without this a statement whose values could matter to its plan is compiled anew for each of them.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    if is_new || !is_prepared(&connection)? {
        prepare(&mut connection, path, root)?;
    }
    // An odd row must not end a write; foreign keys are there so that deleting a session takes what belongs to it.
    connection.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 16777216;",
    )?;
    migrations::migrate(&mut connection, path)?;
    Ok(connection)
}

fn is_prepared(connection: &Connection) -> Result<bool, StoreError> {
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(mode == "wal" && application == migrations::APPLICATION_ID)
}

/// Makes a new file a database in WAL mode with tables. One process at a time: SQLite does not wait for others here.
///
/// Nothing is synced on the way but the file itself at the end. A loss of power in between leaves an empty database,
/// which is made anew.
fn prepare(connection: &mut Connection, path: &Path, root: &Path) -> Result<(), StoreError> {
    let _alone = lock::wait(&root.join("locks"), ".open", BUSY_LIMIT)?
        .ok_or_else(|| StoreError::Busy { path: path.to_owned() })?;
    migrations::version(connection, path)?;
    if is_prepared(connection)? {
        return Ok(());
    }
    connection.execute_batch("PRAGMA synchronous = OFF")?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    migrations::migrate(connection, path)?;
    for place in [path, root] {
        File::open(place).and_then(|file| file.sync_all()).map_err(|error| StoreError::file(place, error))?;
    }
    Ok(())
}

/// Makes sure that an id can be the name of a file.
pub(crate) fn check_id(session: &SessionId) -> Result<(), StoreError> {
    let text = session.as_str();
    let is_fit = (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if is_fit { Ok(()) } else { Err(StoreError::BadId(text.to_owned())) }
}
