//! Changes a configuration file: checked before anything is written, whole or not at all, and with everything else in the file as it
//! was, order and spelling included.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::problem::ConfigError;
use super::read;

/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whose file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOwner {
    /// The user's: folder `0700`, file `0600`; a link is followed, as people keep such files elsewhere.
    User,
    /// The project's: it keeps its mode, and a link is refused, since it may lead anywhere.
    Project,
}

/// Applies a merge patch (RFC 7396: objects merge, `null` takes out, anything else replaces) to the file at `path`, which need not
/// exist. The result is checked as [`super::load`] checks it.
///
/// # Errors
/// When the file is wrong before or after the change, or cannot be written. The file is then as it was.
pub fn write(path: &Path, owner: FileOwner, patch: &Value) -> Result<(), ConfigError> {
    let target = target_of(path, owner)?;
    let folder = target.parent().unwrap_or(Path::new(".")).to_owned();
    let failed = |error: std::io::Error| failed(path, error);
    let mode = if owner == FileOwner::User { 0o700 } else { 0o755 };
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(&folder).map_err(failed)?;
    let folder_handle = File::open(&folder).map_err(failed)?;
    lock(&folder_handle).map_err(failed)?;
    let old = read::file_if_present(&target)?.unwrap_or_else(|| b"{}\n".to_vec());
    read::layer(path, &old)?;
    let text = patched(&old, patch).map_err(|error| failed(error.into()))?;
    read::layer(path, text.as_bytes())?;
    let mode = match std::fs::metadata(&target) {
        Ok(metadata) if owner == FileOwner::Project => metadata.permissions(),
        _ => Permissions::from_mode(if owner == FileOwner::User { 0o600 } else { 0o644 }),
    };
    replace(&target, &folder_handle, text.as_bytes(), mode).map_err(failed)
}

fn failed(path: &Path, error: std::io::Error) -> ConfigError {
    ConfigError::Write { file: path.to_owned(), reason: error.to_string() }
}

fn target_of(path: &Path, owner: FileOwner) -> Result<PathBuf, ConfigError> {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    match owner {
        FileOwner::User if is_link(path) => std::fs::canonicalize(path).map_err(|error| failed(path, error)),
        FileOwner::Project if is_link(path) || path.parent().is_some_and(is_link) => {
            Err(failed(path, std::io::Error::other("it is a link, or its folder is one")))
        }
        FileOwner::User | FileOwner::Project => Ok(path.to_owned()),
    }
}

/// Locks a folder against other writers. The lock ends with the handle, also when the process dies.
pub(crate) fn lock(folder: &File) -> std::io::Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        match flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(std::io::Error::other("another process holds the lock on its folder"));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Puts `bytes` in the place of a file: written beside it, synced, renamed, and the folder synced.
pub(crate) fn replace(target: &Path, folder: &File, bytes: &[u8], mode: Permissions) -> std::io::Result<()> {
    let beside = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".alisio-").tempfile_in(beside)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(mode)?;
    file.as_file().sync_all()?;
    file.persist(target).map_err(|error| error.error)?;
    folder.sync_all()
}

/// Text of the changed file. Every value that the patch does not reach is copied as it was spelled.
fn patched(old: &[u8], patch: &Value) -> Result<String, serde_json::Error> {
    let text = old.strip_prefix(b"\xef\xbb\xbf").unwrap_or(old);
    let Entries(entries) = serde_json::from_slice(text)?;
    let mut written = String::new();
    let empty = serde_json::Map::new();
    write_object(entries, patch.as_object().unwrap_or(&empty), 0, &mut written)?;
    written.push('\n');
    Ok(written)
}

fn write_object(
    mut entries: Vec<(String, Box<RawValue>)>,
    patch: &serde_json::Map<String, Value>,
    depth: usize,
    written: &mut String,
) -> Result<(), serde_json::Error> {
    entries.retain(|(name, _)| patch.get(name) != Some(&Value::Null));
    for (name, value) in patch.iter().filter(|(_, value)| !value.is_null()) {
        if entries.iter().all(|(known, _)| known != name) {
            // Stands for "nothing yet"; what is written comes from the patch.
            let nothing = if value.is_object() { "{}" } else { "null" };
            entries.push((name.clone(), RawValue::from_string(nothing.to_owned())?));
        }
    }
    if entries.is_empty() {
        written.push_str("{}");
        return Ok(());
    }
    written.push('{');
    let indent = "  ".repeat(depth + 1);
    for (index, (name, old)) in entries.into_iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        written.push_str(&format!("{comma}\n{indent}{}: ", serde_json::to_string(&name)?));
        match patch.get(&name) {
            None => written.push_str(old.get()),
            Some(Value::Object(inner)) => {
                let Entries(entries) = serde_json::from_str(old.get()).unwrap_or_default();
                write_object(entries, inner, depth + 1, written)?;
            }
            Some(value) => {
                let pretty = serde_json::to_string_pretty(value)?;
                written.push_str(&pretty.replace('\n', &format!("\n{indent}")));
            }
        }
    }
    written.push_str(&format!("\n{}}}", "  ".repeat(depth)));
    Ok(())
}

/// The entries of an object in their order, values as they are spelled.
#[derive(Default)]
struct Entries(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
