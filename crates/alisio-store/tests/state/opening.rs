//! Opening: what is made, what is refused and in which words.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use alisio_protocol::RunId;
use alisio_store::{Durability, Store, StoreError};

use crate::{Scratch, child, new_session, user};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn everything_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alisio/state.db");
    let store = Store::open(&path).unwrap();
    let session = new_session(&store, "s", "/w", 1);
    let writer = store.lock(&session).unwrap();
    let long = user(&"long ".repeat(4000));
    writer.commit(Durability::Synced, |tx| tx.message(&RunId::new("r"), &long)).unwrap();
    let spill = store.spill_folder(&session).unwrap();
    assert_eq!(spill, folder.path().join("alisio/outputs/s"));
    let mut looked_at = 0;
    let mut folders = vec![store.state_root().to_owned()];
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
                looked_at += 1;
            }
        }
    }
    assert!(looked_at >= 5, "database, log, index, lock, content: {looked_at}");
}

#[test]
fn opening_again_changes_nothing() {
    let scratch = Scratch::new();
    new_session(&scratch.store, "s", "/w", 1);
    let schema = |scratch: &Scratch| -> Vec<String> {
        let sql = scratch.sql();
        let mut statement =
            sql.prepare("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let before = schema(&scratch);
    for _ in 0..3 {
        let store = Store::open(&scratch.path()).unwrap();
        assert!(store.session(&alisio_protocol::SessionId::new("s")).unwrap().is_some());
    }
    assert_eq!(schema(&scratch), before);
    let strict =
        before.iter().filter(|sql| sql.starts_with("CREATE TABLE") && !sql.contains("sqlite_sequence"));
    assert!(strict.clone().count() >= 7 && strict.clone().all(|sql| sql.contains("STRICT")));
}

#[test]
fn what_is_not_ours_is_refused_with_a_sentence_and_left_as_it_is() {
    type Make = fn(&Path);
    let cases: [(&str, Make, &str); 6] = [
        (
            "text",
            |path| std::fs::write(path, "hello, I am no database at all\n".repeat(200)).unwrap(),
            "is not a database of Alisio",
        ),
        ("short text", |path| std::fs::write(path, "hello").unwrap(), "is not a database of Alisio"),
        ("folder", |path| std::fs::create_dir(path).unwrap(), "it is a folder"),
        (
            "other database",
            |path| rusqlite::Connection::open(path).unwrap().execute_batch("CREATE TABLE notes (x)").unwrap(),
            "it is the database of another program",
        ),
        (
            "newer",
            |path| {
                drop(Store::open(path).unwrap());
                rusqlite::Connection::open(path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
            },
            "has schema version 99 and this Alisio knows ",
        ),
        ("socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()), "could not be used"),
    ];
    for (name, make, sentence) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        make(&path);
        let before = std::fs::read(&path).ok();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains(sentence), "{name}: {error}");
        assert!(error.contains("x.db"), "{name}: {error}");
        assert_eq!(std::fs::read(&path).ok(), before, "{name}");
    }
}

#[test]
fn a_full_disk_and_a_read_only_place_are_told() {
    // In a mount namespace of its own, so that nothing is left behind. Ordinary users need user namespaces for it.
    let folder = tempfile::tempdir().unwrap();
    let flags = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
    let mut command = Command::new("unshare");
    command.arg(flags).args(["sh", "-c"]).arg(
        "mount -t tmpfs -o size=1m none \"$1\" || exit 77; \"$2\" --exact child::entry --nocapture || exit 1",
    );
    command.arg("sh").arg(folder.path()).arg(std::env::current_exe().unwrap());
    child::configure(&mut command, "place", &folder.path().join("state.db"));
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains("panicked") => {
            panic!("{}", String::from_utf8_lossy(&output.stderr))
        }
        other => eprintln!("skipped: no file system can be mounted here: {other:?}"),
    }
}

/// Runs in a file system of 1 MiB.
pub(crate) fn in_a_bad_place(path: &Path) {
    let store = Store::open(path).unwrap();
    let session = new_session(&store, "s", "/w", 1);
    let writer = store.lock(&session).unwrap();
    let fill = path.with_file_name("fill");
    // Texts of 7 KB stay in the database; those of 70 KB become files.
    for length in [7_000, 70_000] {
        let mut kept = 0;
        let error = loop {
            let message = user(&format!("{kept} {}", "x".repeat(length)));
            match writer.commit(Durability::Unsynced, |tx| tx.message(&RunId::new("r"), &message)) {
                Ok(()) => kept += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        let before = writer.load().unwrap().messages.len();
        assert!(
            writer
                .commit(Durability::Synced, |tx| tx.message(&RunId::new("r"), &user(&"y".repeat(900_000))))
                .is_err()
        );
        assert_eq!(writer.load().unwrap().messages.len(), before, "what did fit is whole");
    }
    // A new database on a full disk.
    while std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&fill)
        .is_ok_and(|mut file| std::io::Write::write_all(&mut file, &[0; 1024]).is_ok())
    {}
    let error = Store::open(&path.with_file_name("new.db")).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    drop((writer, store));
    std::fs::remove_file(fill).unwrap();

    let folder = path.parent().unwrap();
    let remounted = Command::new("mount").args(["-o", "remount,bind,ro"]).arg(folder).status();
    assert!(remounted.unwrap().success());
    for name in ["state.db", "new folder/state.db"] {
        let error = Store::open(&folder.join(name)).unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
        assert!(error.to_string().contains("--db FILE"), "{error}");
    }
}

#[test]
fn a_folder_without_write_permission_is_told() {
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
    let error = Store::open(&folder.path().join("state.db")).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
}

#[test]
fn a_writer_that_never_ends_is_waited_for_only_so_long() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    let other = scratch.sql();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = writer.commit(Durability::Unsynced, |tx| tx.set_model("big")).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    other.execute_batch("ROLLBACK").unwrap();
    writer.commit(Durability::Unsynced, |tx| tx.set_model("big")).unwrap();
    assert_eq!(scratch.store.session(&session).unwrap().unwrap().model, "big");
}
