//! The doorbell: everybody who listens hears it, and nobody else matters.

use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use alisio_protocol::{Answer, SessionId};
use alisio_store::{Doorbell, Store, StoreError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::asking::{NOW, approval, ask};
use crate::{Scratch, child, new_session};

/// Blocks until somebody rings. The limit is only there to end a test that hangs.
pub(crate) fn wait(bell: &Doorbell) {
    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
    let fd = bell.as_fd();
    while !bell.try_recv() {
        let ready = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).unwrap();
        assert!(ready > 0, "nobody rang");
    }
}

/// A process that listens until it is killed.
pub(crate) fn listen(database: &Path) {
    let store = Store::open(database).unwrap();
    let bell = Doorbell::listen(&store).unwrap();
    store.ring(&SessionId::new("s"));
    assert!(bell.try_recv(), "it hears itself");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn everybody_who_listens_hears_every_change() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    scratch.store.ring(&session);
    let again = Store::open(&scratch.path()).unwrap();
    let bells = [&scratch.store, &again].map(|store| Doorbell::listen(store).unwrap());
    let hear = |what: &str, expected: bool| {
        for bell in &bells {
            assert_eq!(bell.try_recv(), expected, "{what}");
            assert!(!bell.try_recv(), "one call takes all rings");
        }
    };
    hear("what rang before", false);
    let writer = scratch.store.lock(&session).unwrap();
    hear("taking a session without questions", false);
    ask(&writer, &[approval(&session, "a", "x"), approval(&session, "b", "y")]);
    hear("questions", true);
    again.resolve("a", &Answer::Once, "terminal", NOW).unwrap();
    hear("an answer", true);
    again.resolve("a", &Answer::Once, "terminal", NOW).unwrap_err();
    hear("an answer that lost", false);
    scratch.store.expire_approvals(NOW).unwrap();
    hear("nothing ran out", false);
    drop(writer);
    drop(again.lock(&session).unwrap());
    hear("a dropped question", true);
}

#[test]
fn a_full_queue_and_a_dead_listener_hold_nobody_up() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let folder = scratch.folder.path().join("run");
    let bell = Doorbell::listen(&scratch.store).unwrap();
    assert_eq!(sockets(&folder).len(), 1);
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::metadata(&sockets(&folder)[0]).unwrap().permissions().mode() & 0o777, 0o600);
    for _ in 0..3000 {
        scratch.store.ring(&session);
    }
    assert!(bell.try_recv() && !bell.try_recv());

    let mut other = child::command("listen", &scratch.path()).spawn().unwrap();
    // It rings when it listens.
    wait(&bell);
    assert_eq!(sockets(&folder).len(), 2);
    other.kill().unwrap();
    other.wait().unwrap();
    scratch.store.ring(&session);
    assert!(bell.try_recv());
    // The next one who listens takes away what the dead one left.
    let third = Doorbell::listen(&scratch.store).unwrap();
    assert_eq!(sockets(&folder).len(), 2);
    drop((bell, third));
    assert!(sockets(&folder).is_empty());
}

#[test]
fn a_state_that_lies_deep_has_its_bells_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a-long-name/".repeat(12));
    let store = Store::open(&deep.join("state.db")).unwrap();
    let bell = Doorbell::listen(&store).unwrap();
    assert!(!deep.join("run").exists());
    // Another way to the same folder is no other state.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&deep, &link).unwrap();
    let same = Store::open(&link.join("state.db")).unwrap();
    same.ring(&SessionId::new("s"));
    assert!(bell.try_recv());
    drop(bell);
    let user = rustix::process::geteuid().as_raw();
    let metadata = std::fs::metadata(&deep).unwrap();
    let (device, inode) =
        (std::os::unix::fs::MetadataExt::dev(&metadata), std::os::unix::fs::MetadataExt::ino(&metadata));
    let bells = PathBuf::from(format!("/tmp/alisio-{user}-{device:x}-{inode:x}"));
    assert_eq!(std::fs::metadata(&bells).unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::remove_dir(bells).unwrap();
}

#[test]
fn a_folder_that_others_may_look_into_is_refused() {
    let scratch = Scratch::new();
    let folder = scratch.folder.path().join("run");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = Doorbell::listen(&scratch.store).unwrap_err();
    assert!(
        matches!(&error, StoreError::File { path, .. } if *path == std::fs::canonicalize(&folder).unwrap())
    );
    insta::assert_snapshot!(error.to_string().replace(&*folder.to_string_lossy(), "…/run"), @"`…/run` could not be used: it is not a folder of this user alone (mode 0700)");
    std::fs::remove_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/tmp", &folder).unwrap();
    assert!(matches!(Doorbell::listen(&scratch.store), Err(StoreError::File { .. })));
}
