//! Deleting a session, and cleaning up what nothing refers to. Ledger entries are never taken, and nothing that is in
//! use: a session with a writer stays, content is looked up in a write transaction right before it goes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use alisio_protocol::SessionId;
use rusqlite::{Connection, params};

use crate::sessions::session_key;
use crate::store::check_id;
use crate::{Durability, Removed, SessionWriter, Store, StoreError, lock};

impl Store {
    /// Deletes a session with its contents: messages, events, runs, journal, content files that no other session uses,
    /// long outputs. What the ledger says of it stays.
    ///
    /// # Errors
    /// When the database fails. Files that could not be removed are left to [`Store::gc`].
    pub fn delete(&self, writer: SessionWriter) -> Result<(), StoreError> {
        let hashes: Vec<String> = self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT hash FROM blob_uses WHERE session = ?1")?;
            let hashes = statement.query_map([writer.key], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok(hashes)
        })?;
        self.overwriting(|| {
            self.write(Durability::Synced, |connection, _| {
                connection.execute("DELETE FROM sessions WHERE key = ?1", [writer.key])?;
                Ok(())
            })
        })?;
        self.checkpoint();
        self.write(Durability::Unsynced, |connection, _| {
            for hash in &hashes {
                if !is_used(connection, hash)? {
                    let _ = fs::remove_file(self.inner.blobs.path(hash));
                }
            }
            Ok(())
        })?;
        remove_spill_folder(&self.inner.root.join("outputs").join(writer.session().as_str()));
        Ok(())
    }

    /// Removes content files and long outputs that belong to no session and lock files that nobody holds, and, where `keep_for` is given,
    /// first deletes the sessions that nobody worked on for so long before `now`.
    ///
    /// # Errors
    /// When the database fails, or `now` is no time.
    pub fn gc(&self, now: &str, keep_for: Option<Duration>) -> Result<Removed, StoreError> {
        let mut removed = Removed::default();
        if let Some(keep_for) = keep_for {
            self.delete_older(&before(now, keep_for)?, &mut removed)?;
        }
        for folder in entries(&self.inner.blobs.folder) {
            self.remove_orphans(&folder, &mut removed)?;
        }
        for path in entries(&self.inner.root.join("outputs")) {
            if self.is_gone(&path)? && remove_spill_folder(&path) {
                removed.spill_folders += 1;
            }
        }
        let locks = self.inner.root.join("locks");
        for path in entries(&locks) {
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            // Dropping the lock takes its file away.
            if check_id(&SessionId::new(name)).is_ok() && lock::take(&locks, name)?.is_ok() {
                removed.lock_files += 1;
            }
        }
        Ok(removed)
    }

    fn delete_older(&self, limit: &str, removed: &mut Removed) -> Result<(), StoreError> {
        let old: Vec<String> = self.read(|connection| {
            let mut statement = connection.prepare("SELECT id FROM sessions WHERE updated_at < ?1")?;
            let old = statement.query_map([limit], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok(old)
        })?;
        for id in old.into_iter().map(SessionId::new) {
            let writer = match self.lock(&id) {
                Ok(writer) => writer,
                Err(StoreError::Locked { .. } | StoreError::NoSession(_)) => continue,
                Err(error) => return Err(error),
            };
            // Somebody may have worked on it between the look and the lock.
            if self.session(&id)?.is_some_and(|session| session.updated_at.as_str() < limit) {
                self.delete(writer)?;
                removed.sessions.push(id);
            }
        }
        Ok(())
    }

    /// Removes what nothing uses from one folder of content files. The write transaction keeps others from keeping the
    /// same content anew at that moment.
    fn remove_orphans(&self, folder: &Path, removed: &mut Removed) -> Result<(), StoreError> {
        self.write(Durability::Unsynced, |connection, _| {
            for path in entries(folder) {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
                if !is_used(connection, name)? && fs::remove_file(&path).is_ok() {
                    removed.blobs += 1;
                    removed.bytes += bytes;
                }
            }
            Ok(())
        })
    }

    /// Says whether a file or folder is named for a session that is not there; names that no session can have stay. It was made after its session, so one
    /// that was listed before this look and has no session has lost it.
    fn is_gone(&self, path: &Path) -> Result<bool, StoreError> {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { return Ok(false) };
        let session = SessionId::new(name);
        if check_id(&session).is_err() {
            return Ok(false);
        }
        self.read(|connection| Ok(session_key(connection, &session)?.is_none()))
    }
}

fn is_used(connection: &Connection, hash: &str) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM blob_uses WHERE hash = ?1)";
    Ok(connection.prepare_cached(sql)?.query_row(params![hash], |row| row.get(0))?)
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the folder holds only outputs that Alisio wrote for this session"
)]
fn remove_spill_folder(folder: &Path) -> bool {
    fs::remove_dir_all(folder).is_ok()
}

/// Reckons the time `span` before `now`, in the form that is stored.
fn before(now: &str, span: Duration) -> Result<String, StoreError> {
    let fail = || StoreError::Time(now.to_owned());
    let now: jiff::Timestamp = now.parse().map_err(|_| fail())?;
    let then = now.checked_sub(span).unwrap_or(jiff::Timestamp::MIN);
    Ok(then.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}
