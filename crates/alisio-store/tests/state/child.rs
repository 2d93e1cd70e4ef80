//! The same test executable as another process: `entry` does what the environment says and is empty without it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use alisio_protocol::{EventKind, RunId, SessionId};
use alisio_store::{Durability, LedgerEntry, Store};

use crate::{event, run};

const ROLE: &str = "ALISIO_STORE_TEST_ROLE";
const DATABASE: &str = "ALISIO_STORE_TEST_DATABASE";

/// A command that starts this executable in a role on a database.
pub(crate) fn command(role: &str, database: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    configure(&mut command, role, database);
    command.args(["--exact", "child::entry", "--nocapture", "--test-threads=1"]);
    command
}

pub(crate) fn configure(command: &mut Command, role: &str, database: &Path) {
    command.env(ROLE, role).env(DATABASE, database).stdin(Stdio::null()).stdout(Stdio::piped());
}

#[test]
fn entry() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let database = PathBuf::from(std::env::var_os(DATABASE).unwrap());
    match role.as_str() {
        "hold" => hold(&database),
        "append" => append(&database),
        "write" => write_events(&database),
        "ask" => crate::asking::ask_and_run(&database),
        "sit" => crate::asking::ask_and_sit(&database),
        "answer" => crate::asking::answer(&database),
        "listen" => crate::ringing::listen(&database),
        "place" => crate::opening::in_a_bad_place(&database),
        other => panic!("no role {other}"),
    }
}

fn hold(database: &Path) {
    let store = Store::open(database).unwrap();
    let writer = store.lock(&SessionId::new("s")).unwrap();
    writer.commit(Durability::Unsynced, |tx| tx.run_started(&run("r", 1))).unwrap();
    println!("\nheld");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

fn append(database: &Path) {
    let store = Store::open(database).unwrap();
    let session = SessionId::new(format!("own-{}", std::process::id()));
    crate::new_session(&store, session.as_str(), "/w", 1);
    let writer = store.lock(&session).unwrap();
    for _ in 0..40 {
        writer.commit(Durability::Unsynced, |tx| tx.ledger(&entry_of(&session))).unwrap();
    }
}

fn write_events(database: &Path) {
    let store = Store::open(database).unwrap();
    let session = SessionId::new("s");
    let writer = store.lock(&session).unwrap();
    println!();
    for seq in 1.. {
        let mut event =
            event(&session, &RunId::new("r"), seq, EventKind::RunStarted { model: "x".repeat(900) });
        let durability = if seq % 8 == 0 { Durability::Synced } else { Durability::Unsynced };
        writer.commit(durability, |tx| tx.event(&mut event)).unwrap();
        println!("id {}", event.event_id.unwrap());
    }
}

pub(crate) fn entry_of(session: &SessionId) -> LedgerEntry {
    let verdict = alisio_policy::Verdict {
        request: alisio_policy::Request {
            call: alisio_protocol::CallId::new("c"),
            tool: "write_file".into(),
            effect: alisio_protocol::Effect::Write,
            scope: alisio_policy::Scope {
                reads: vec!["/w/a".into(), "/w".into()],
                writes: vec!["/w/a".into(), "/elsewhere/b".into()],
                spawns_in: None,
            },
            outside: Vec::new(),
            digest: alisio_protocol::Sha256::of(b"x"),
            subject: alisio_policy::Subject::default(),
        },
        word: alisio_protocol::VerdictWord::Allow,
        basis: alisio_policy::Basis {
            source: alisio_protocol::VerdictSource::Flag,
            reason: "--allow-write was given".into(),
        },
    };
    LedgerEntry::of_verdict(crate::time(1), session.clone(), RunId::new("r"), Path::new("/w"), &verdict)
}
