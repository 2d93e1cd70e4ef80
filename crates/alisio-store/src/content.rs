//! Content by hash: long strings of a row (results, attachments, inputs) are files named by their SHA-256, so that
//! the same text in an event, a message and the journal is kept once.
//!
//! A row then holds its JSON with those strings emptied, and beside it the list `[[JSON pointer, hash], …]`. Reading
//! checks the hash; content that is gone or damaged is told, never guessed.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use alisio_protocol::Sha256;
use rusqlite::{Connection, params};
use serde::Serialize;
use serde_json::Value;

use crate::{StoreError, place};

/// Strings longer than this many bytes become files.
const INLINE_LIMIT: usize = 8 * 1024;

/// The folder of content files.
pub(crate) struct Blobs {
    pub(crate) folder: PathBuf,
}

/// A value as it goes into a row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) body: String,
    pub(crate) refs: Option<String>,
}

/// A value as it came out of a row; `missing` are the pointers whose content is gone or damaged.
pub(crate) struct Unpacked {
    pub(crate) value: Value,
    pub(crate) missing: Vec<String>,
}

impl Blobs {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Says where content lies.
    pub(crate) fn path(&self, hash: &str) -> PathBuf {
        self.folder.join(hash.get(..2).unwrap_or("__")).join(hash)
    }

    /// Keeps `bytes`; gives the path back when a file was written. Called inside a write transaction only, which is
    /// why one name for the temporary file is enough and cleaning can't come in between.
    fn put(&self, bytes: &[u8]) -> Result<(Sha256, Option<PathBuf>), StoreError> {
        let hash = Sha256::of(bytes);
        let path = self.path(&hash.to_string());
        if fs::metadata(&path).is_ok_and(|metadata| metadata.len() == bytes.len() as u64) {
            return Ok((hash, None));
        }
        let folder = path.parent().unwrap_or(&self.folder);
        place::private_folder(folder)?;
        let temporary = path.with_extension("tmp");
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(bytes)?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            StoreError::file(&path, error)
        })?;
        Ok((hash, Some(path)))
    }

    /// Reads content, if it is there and is what its name says.
    fn get(&self, hash: &str) -> Option<String> {
        let bytes = fs::read(self.path(hash)).ok()?;
        (Sha256::of(&bytes).to_string() == hash).then(|| String::from_utf8(bytes).ok()).flatten()
    }

    /// Waits until the files and their names are on the disk.
    pub(crate) fn sync(&self, paths: &[PathBuf]) -> Result<(), StoreError> {
        let sync = |path: &Path| match File::open(path).and_then(|file| file.sync_all()) {
            // Cleaned away in the meantime: its session is gone.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(|error| StoreError::file(path, error)),
        };
        // The state folder, `blobs` and `sha256`: one of them may be as new as the file.
        let mut folders: Vec<&Path> = self.folder.ancestors().take(3).collect();
        folders.reverse();
        for path in paths {
            sync(path)?;
            if let Some(folder) = path.parent().filter(|folder| !folders.contains(folder)) {
                folders.push(folder);
            }
        }
        folders.into_iter().rev().try_for_each(sync)
    }

    /// Puts the strings of a row back into it.
    ///
    /// # Errors
    /// When the row is not JSON, or its list is none.
    pub(crate) fn unpack(&self, body: &str, refs: Option<&str>) -> Result<Unpacked, serde_json::Error> {
        let mut value: Value = serde_json::from_str(body)?;
        let mut missing = Vec::new();
        let refs: Vec<(String, String)> = refs.map(serde_json::from_str).transpose()?.unwrap_or_default();
        for (pointer, hash) in refs {
            let Some(place) = value.pointer_mut(&pointer) else { continue };
            match self.get(&hash) {
                Some(text) => *place = Value::String(text),
                None => {
                    *place = Value::String("[this content was kept apart and is gone or damaged]".to_owned());
                    missing.push(pointer);
                }
            }
        }
        Ok(Unpacked { value, missing })
    }
}

/// Turns values into rows of one session, within one transaction.
pub(crate) struct Packer<'a> {
    pub(crate) blobs: &'a Blobs,
    pub(crate) connection: &'a Connection,
    pub(crate) session: i64,
    pub(crate) written: &'a RefCell<Vec<PathBuf>>,
}

impl Packer<'_> {
    /// Packs `value`. The same value always gives the same row.
    pub(crate) fn pack(&self, value: &impl Serialize) -> Result<Packed, StoreError> {
        let body = serde_json::to_string(value)?;
        if body.len() <= INLINE_LIMIT {
            return Ok(Packed { body, refs: None });
        }
        let mut value = serde_json::from_str(&body)?;
        let mut refs = Vec::new();
        self.take_out(&mut value, &mut String::new(), &mut refs)?;
        if refs.is_empty() {
            return Ok(Packed { body, refs: None });
        }
        Ok(Packed { body: serde_json::to_string(&value)?, refs: Some(serde_json::to_string(&refs)?) })
    }

    fn take_out(
        &self,
        value: &mut Value,
        pointer: &mut String,
        refs: &mut Vec<(String, String)>,
    ) -> Result<(), StoreError> {
        let length = pointer.len();
        match value {
            Value::String(text) if text.len() > INLINE_LIMIT => {
                refs.push((pointer.clone(), self.keep(text)?));
                text.clear();
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    self.take_out(item, pointer, refs)?;
                    pointer.truncate(length);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    self.take_out(member, pointer, refs)?;
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keep(&self, text: &str) -> Result<String, StoreError> {
        let (hash, written) = self.blobs.put(text.as_bytes())?;
        self.written.borrow_mut().extend(written);
        let hash = hash.to_string();
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO blob_uses (session, hash, bytes) VALUES (?1, ?2, ?3)")?
            .execute(params![self.session, hash, text.len() as i64])?;
        Ok(hash)
    }
}
