//! State that can't be used is a sentence and an end, never a hang.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;

use crate::rig::{Rig, finish, until};

#[test]
fn a_home_that_cannot_be_written() {
    let rig = Rig::saying("ok");
    // Works for root too: a file stands where the folder would have to be made.
    fs::write(rig.path("state"), "a file").expect("the folder is writable");
    rig.alisio(&["run", "hello"]).expect(1).says(&[&rig.path("state").display().to_string(), "--db FILE"]);
    assert_eq!(rig.server.request_count(), 0);
    fs::remove_file(rig.path("state")).expect("it is there");
    if rustix::process::geteuid().is_root() {
        return;
    }
    fs::create_dir(rig.path("state")).expect("the folder is writable");
    fs::set_permissions(rig.path("state"), fs::Permissions::from_mode(0o500)).expect("it is ours");
    rig.alisio(&["run", "hello"]).expect(1).says(&["cannot be written", "--db FILE"]);
    fs::set_permissions(rig.path("state"), fs::Permissions::from_mode(0o700)).expect("it is ours");
}

#[test]
fn files_that_are_no_database_of_ours() {
    let rig = Rig::saying("ok");
    rig.session("hello");
    // All of it into the one file, so that it can be copied.
    let database = rusqlite::Connection::open(rig.database()).expect("it is a database");
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("nobody else has it open");
    drop(database);
    let good = fs::read(rig.database()).expect("it is there");
    let mut damaged = good.clone();
    damaged[100..].fill(0x55);
    // The version of the schema stands in the header of the file.
    let mut newer = good;
    newer[60..64].copy_from_slice(&9999_u32.to_be_bytes());
    for (name, content, words) in [
        (
            "text.db",
            b"a diary, not a database, and long enough to be looked at by anyone\n".repeat(20),
            &["not a database of Alisio"][..],
        ),
        ("damaged.db", damaged, &["damaged", "--db FILE"]),
        ("newer.db", newer, &["schema version 9999", "newer Alisio"]),
    ] {
        let path = rig.path(name);
        fs::write(&path, &content).expect("the folder is writable");
        let db = path.to_str().expect("it is UTF-8");
        for args in [&["run", "hello", "--db", db][..], &["sessions", "list", "--db", db]] {
            rig.alisio(args).expect(1).says(words).says(&[db]);
        }
        assert_eq!(fs::read(&path).expect("it is there"), content, "{name} is left as it was");
    }
    assert_eq!(rig.server.request_count(), 1);
    rig.alisio(&["run", "--db", rig.path("outside").to_str().expect("it is UTF-8"), "hello"]).expect(1);
}

/// A small file system in memory, gone with its end.
struct Small(std::path::PathBuf);

impl Small {
    fn mount(path: std::path::PathBuf) -> Option<Self> {
        fs::create_dir(&path).ok()?;
        let mut command = Command::new("mount");
        let mounted = command.args(["-t", "tmpfs", "-o", "size=400k", "tmpfs"]).arg(&path).output().ok()?;
        mounted.status.success().then_some(Self(path))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk() {
    let rig = Rig::new(json!([
        {"calls": [{"name": "shell", "arguments": {"command": "seq 1 200000"}}]},
        {"text": "done"},
    ]));
    // Needs the right to mount, which root mostly has; where it is missing nothing is claimed.
    let Some(small) = Small::mount(rig.path("small")) else { return };
    let filler = small.0.join("filler");
    let _ = fs::write(&filler, vec![b'x'; 4 << 20]);
    let db = small.0.join("sessions.sqlite");
    let db = db.to_str().expect("it is UTF-8");
    rig.alisio(&["run", "--db", db, "hello"]).expect(1).says(&["is full", "free some space"]);
    assert_eq!(rig.server.request_count(), 0);
    let _ = fs::write(&filler, vec![b'x'; 100 << 10]);
    // The output does not fit: the run says so in one way or another and ends.
    let ran = rig.alisio(&["run", "--allow-process", "--db", db, "hello"]);
    assert!(ran.code == 0 || ran.code == 1, "{}", ran.stderr);
    if ran.code == 1 {
        ran.says(&["full"]);
    } else {
        assert!(
            rig.results()[0].contains("could not be stored")
                || rig.results()[0].contains("the beginning of the"),
            "{}",
            rig.results()[0]
        );
    }
}

#[test]
fn a_broad_workspace_is_warned_about_and_confirmed() {
    let rig = Rig::saying("ok");
    let home = rig.home();
    let home = home.to_str().expect("it is UTF-8");
    rig.alisio(&["--cwd", home, "run", "hello"]).expect(0).says(&["warning", "the workspace is"]);
    rig.alisio(&["--cwd", home, "run", "--allow-write", "hello"])
        .expect(2)
        .says(&["--allow-broad-workspace"]);
    rig.alisio(&["--cwd", home, "run", "--allow-write", "--allow-broad-workspace", "hello"]).expect(0);
    assert_eq!(rig.server.request_count(), 2);
}

#[test]
fn the_model_cannot_write_what_decides_about_it() {
    let write = |path: &str| json!({"name": "write_file", "arguments": {"path": path, "content": "{}", "expectedHash": null}});
    let calls = [write("state/trust.json"), write("config/policy.json"), write("elsewhere.json")];
    let rig = Rig::new(json!([{"calls": calls}, {"text": "ok"}]));
    let above = rig.path("");
    let above = above.to_str().expect("text").trim_end_matches('/');
    rig.alisio(&["run", "--cwd", above, "--allow-write", "--allow-broad-workspace", "go"]);
    let results = rig.results();
    assert!(
        results[0].contains("refused (read-only)") && results[1].contains("refused (read-only)"),
        "{results:?}"
    );
    assert!(rig.path("elsewhere.json").exists() && !rig.path("state/trust.json").exists(), "{results:?}");
}

#[test]
fn a_database_that_is_taken_away_while_a_run_uses_it_is_told() {
    let rig = Rig::new(json!([{"delayMs": 1500, "text": "late"}]));
    let child = rig.command(&["run", "go"]).spawn().expect("the binary starts");
    until("the run has begun", || rig.server.request_count() > 0);
    fs::rename(rig.database(), rig.database().with_extension("gone")).expect("it moves");
    finish(child).expect(1).says(&["was moved, removed or replaced"]);
}
