//! Kills the commands that repair and clean.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use alisio_conformance::{Scenario, Server, Turn};
use alisio_protocol::SessionId;
use alisio_store::LedgerCheck;
use serde_json::{Value, json};

use crate::rig::{Place, Running};
use crate::{Failed, Random, check, each_seed};

/// One state that every run starts from: a session that was cut at work, and three that hold large content.
struct Start {
    place: Place,
    cut: String,
    whole: Vec<String>,
    /// What `sessions export` says of each session.
    exports: Vec<(String, String)>,
    n_ledger: u64,
    /// How long each command takes when nobody kills it.
    lengths: [Duration; 3],
}

/// The commands.
#[derive(Clone, Copy, Debug)]
enum Chore {
    Recover,
    Delete,
    Collect,
}

const CHORES: [Chore; 3] = [Chore::Recover, Chore::Delete, Chore::Collect];

#[test]
fn a_crash_of_a_chore_loses_nothing_else() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let mut start = Start::new(&folder.path().join("start")).expect("the state to start from is made");
    for chore in CHORES {
        let place =
            start.copy(&folder.path().join(format!("whole-{chore:?}"))).expect("the state can be copied");
        let clock = Instant::now();
        place.expect(0, "", &start.arguments(chore)).expect("the command works where nobody kills it");
        start.lengths[chore as usize] = clock.elapsed();
        start.check(&place, chore, Some(true)).expect("and does what it says");
    }
    let figures = Mutex::new((0, 0));
    let number = std::sync::atomic::AtomicU64::new(0);
    each_seed("crash of recover, delete and gc", |seed| {
        let mut random = Random(seed);
        let chore = CHORES[random.below(3) as usize];
        let span = start.lengths[chore as usize].mul_f64(1.2);
        let at = Duration::from_micros(random.below(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)));
        let root =
            folder.path().join(format!("run-{}", number.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
        let place = start.copy(&root)?;
        let mut running = Running::start(place.alisio("", &start.arguments(chore)));
        std::thread::sleep((running.started + at).saturating_duration_since(Instant::now()));
        let (code, err) = running.kill_unread()?;
        check(code.is_none_or(|code| code == 0), || format!("{chore:?} ended with {code:?}: {err}"))?;
        let done = start
            .check(&place, chore, code.map(|_| true))
            .map_err(|failed| format!("{chore:?}: {failed}"))?;
        place.expect(0, "", &start.arguments_again(&place, chore)?)?;
        start
            .check(&place, chore, Some(true))
            .map_err(|failed| format!("{chore:?}, done again: {failed}"))?;
        let mut figures = figures.lock().expect("no thread panics with it");
        figures.0 += usize::from(code.is_none());
        figures.1 += usize::from(code.is_none() && done);
        let _ = fs::remove_dir_all(&root);
        Ok(())
    });
    let (cut, done) = figures.into_inner().expect("no thread panics with it");
    println!("cut {cut}, of them with the work done all the same {done}");
}

impl Start {
    fn new(root: &Path) -> Result<Self, Failed> {
        let place = Place::new(root, &[("a.txt", "one\n")]);
        let call = |name: &str, arguments: Value| Turn::call(name, arguments);
        let mut whole = Vec::new();
        for index in 0..3 {
            let script = format!("for i in 1 2 3; do seq {index} 20000; done");
            let turns = vec![
                call("shell", json!({"command": script})),
                Turn::text(format!("{index} word ").repeat(4000)),
            ];
            let server = Server::start_blocking(Scenario::new(turns)).map_err(|error| error.to_string())?;
            let prompt = format!("prompt {index}");
            let told = place.expect(0, &server.base_url(), &["run", "--json", "--allow-process", &prompt])?;
            let event: Value =
                serde_json::from_str(told.lines().next().unwrap_or_default()).map_err(|e| e.to_string())?;
            whole.push(event["sessionId"].as_str().unwrap_or_default().to_owned());
        }
        let server =
            Server::start_blocking(Scenario::new(vec![call("shell", json!({"command": "sleep 1000"}))]))
                .map_err(|error| error.to_string())?;
        let mut running =
            Running::start(place.alisio(&server.base_url(), &["run", "--json", "--allow-process", "be cut"]));
        running
            .read_until(Instant::now() + Duration::from_secs(30), |event| event["type"] == "tool_started")?;
        // The look for what lives on would find nothing for ever if it did not know its own.
        let patience = Instant::now() + Duration::from_secs(10);
        while !["alisio", "__supervisor", "sleep 1000"].iter().all(|what| place.lives(&running, what)) {
            check(Instant::now() < patience, || {
                format!("not all is found of what runs: {:?}", place.alive(&running))
            })?;
            std::thread::sleep(Duration::from_millis(10));
        }
        running.kill()?;
        place.wait_for_silence(&running, Duration::from_secs(3))?;
        let cut = running.seen[0]["sessionId"].as_str().unwrap_or_default().to_owned();
        let exports = whole.iter().chain([&cut]);
        let exports = exports.map(|id| Ok((id.clone(), place.expect(0, "", &["sessions", "export", id])?)));
        let exports = exports.collect::<Result<_, Failed>>()?;
        let n_ledger = place.store()?.ledger_head().map_err(|error| error.to_string())?.seq;
        // What no session needs, for `gc`, in the folder for hashes that begin so.
        let folder = place.state.join("blobs/sha256/00");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        for index in 0..40 {
            fs::write(folder.join(format!("{index:064x}")), "nobody's").map_err(|error| error.to_string())?;
        }
        Ok(Self { place, cut, whole, exports, n_ledger, lengths: [Duration::ZERO; 3] })
    }

    /// The same state in another place. The workspace stays where it is: no command looks at it.
    fn copy(&self, root: &Path) -> Result<Place, Failed> {
        let place = Place {
            root: root.to_owned(),
            workspace: self.place.workspace.clone(),
            log: self.place.log.clone(),
            state: root.join("state"),
        };
        copy_folder(&self.place.state, &place.state).map_err(|error| error.to_string())?;
        Ok(place)
    }

    fn arguments(&self, chore: Chore) -> Vec<&str> {
        match chore {
            Chore::Recover => vec!["sessions", "recover", &self.cut, "--acknowledge"],
            Chore::Delete => vec!["sessions", "delete", "--yes", &self.whole[0], &self.whole[1]],
            Chore::Collect => vec!["sessions", "gc"],
        }
    }

    /// The command that finishes what was cut: one that is done for a session can't be asked of it again.
    fn arguments_again(&self, place: &Place, chore: Chore) -> Result<Vec<&str>, Failed> {
        let Chore::Delete = chore else { return Ok(self.arguments(chore)) };
        let mut arguments = vec!["sessions", "delete", "--yes"];
        for id in &self.whole[..2] {
            if self.is_there(place, id)? {
                arguments.push(id);
            }
        }
        Ok(if arguments.len() == 3 { vec!["sessions", "gc"] } else { arguments })
    }

    fn is_there(&self, place: &Place, id: &str) -> Result<bool, Failed> {
        Ok(place.store()?.session(&SessionId::new(id)).map_err(|error| error.to_string())?.is_some())
    }

    /// Looks at a state. `done` says whether the command has to have done its work; returns whether it has.
    fn check(&self, place: &Place, chore: Chore, done: Option<bool>) -> Result<bool, Failed> {
        let listed = place.expect(0, "", &["sessions", "list", "--all", "--json"])?;
        let store = place.store()?;
        let ledger = store.verify_ledger().map_err(|error| error.to_string())?;
        check(matches!(ledger, LedgerCheck::Whole(head) if head.seq == self.n_ledger), || {
            format!("{ledger:?}")
        })?;
        let mut gone = 0;
        for (id, export) in &self.exports {
            if !listed.contains(id.as_str()) {
                gone += 1;
                let may_go = matches!(chore, Chore::Delete) && self.whole[..2].contains(id);
                check(may_go, || format!("session {id} is gone"))?;
                place.expect(2, "", &["sessions", "show", id])?;
                continue;
            }
            let now = place.expect(0, "", &["sessions", "export", id])?;
            check(now == *export || (*id == self.cut && matches!(chore, Chore::Recover)), || {
                format!("session {id} is not what it was:\n{now:.2000}\n---\n{export:.2000}")
            })?;
            let view = store.view(&SessionId::new(id.as_str())).map_err(|error| error.to_string())?;
            let damaged = view.repairs.iter().any(|repair| repair.contains("gone or damaged"));
            check(!damaged, || format!("session {id} lost content: {:?}", view.repairs))?;
        }
        let uncertain = store
            .view(&SessionId::new(self.cut.as_str()))
            .map_err(|error| error.to_string())?
            .uncertain
            .len();
        let is_done = match chore {
            Chore::Recover => uncertain == 0,
            Chore::Delete => gone == 2,
            Chore::Collect => !place.state.join("blobs/sha256/00").join(format!("{:064x}", 39)).exists(),
        };
        check(matches!(chore, Chore::Recover) || uncertain == 1, || {
            "what was uncertain no longer is".into()
        })?;
        check(done.is_none_or(|done| done == is_done), || format!("the work is done: {is_done}"))?;
        Ok(is_done)
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
