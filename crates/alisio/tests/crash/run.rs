//! Kills runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use alisio_conformance::Server;
use alisio_host::workspace::is_leftover;
use alisio_protocol::{SessionId, VerdictWord};
use alisio_store::LedgerCheck;
use serde_json::Value;

use crate::rig::{Place, Running, kill};
use crate::script::{Script, Trace, after};
use crate::{Failed, Random, check, each_seed};

/// How long what a run started may live on.
const SILENCE: Duration = Duration::from_secs(3);
/// What a reading of figures needs, at the end.
#[derive(Default)]
struct Figures {
    cut: usize,
    uncertain: usize,
    without_session: usize,
    leftovers: usize,
    n_events: usize,
    longest_silence: Duration,
}

/// How the run ends.
enum Death {
    /// After this time.
    At(Duration),
    /// Some time after the given occurrence of an event of this type.
    After { kind: &'static str, nth: u64, wait: Duration },
    /// The supervisor first, at this time; Alisio a little later.
    SupervisorFirst { at: Duration, wait: Duration },
    /// Not killed.
    Never,
}

#[test]
fn a_crash_at_any_moment_loses_nothing() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let figures = Mutex::new(Figures::default());
    let start = Instant::now();
    let whole = one(&folder.path().join("whole"), 0, &Death::Never, &Mutex::default());
    whole.expect("the run that nobody kills ends well");
    // The checks take a part of that; a moment behind the end is a run that nobody kills.
    let length = start.elapsed();
    each_seed("crash of a run", |seed| {
        let mut random = Random(seed);
        let root = folder.path().join(format!("run-{:016x}", Random(seed ^ next_number()).next()));
        let result = one(&root, seed, &death(&mut random, length), &figures);
        if result.is_ok() {
            let _ = fs::remove_dir_all(&root);
        }
        result
    });
    let figures = figures.into_inner().expect("no thread panics with it");
    println!(
        "cut {}, of them with an uncertain call {}, before there was a session {}; temporary files left {}; events seen \
         and found again {}; the last process was gone after {:?} at most",
        figures.cut,
        figures.uncertain,
        figures.without_session,
        figures.leftovers,
        figures.n_events,
        figures.longest_silence
    );
}

fn next_number() -> u64 {
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed) << 40
}

fn death(random: &mut Random, length: Duration) -> Death {
    let span = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
    let at = Duration::from_micros(random.below(span));
    match random.below(10) {
        0..=4 => Death::At(at),
        5..=8 => {
            let (kind, most) = [
                ("tool_started", 20),
                ("tool_started", 20),
                ("tool_completed", 20),
                ("turn_completed", 9),
                ("run_started", 1),
            ][random.below(5) as usize];
            let wait = Duration::from_micros(
                [0, random.below(1000), random.below(20_000)][random.below(3) as usize],
            );
            Death::After { kind, nth: 1 + random.below(most), wait }
        }
        _ => Death::SupervisorFirst { at, wait: Duration::from_micros(random.below(30_000)) },
    }
}

/// One run from its start to the end of the session that goes on with it.
fn one(root: &Path, seed: u64, death: &Death, figures: &Mutex<Figures>) -> Result<(), Failed> {
    let marker = format!("{}{:06}", std::process::id(), seed % 1_000_000);
    let script = Script::new(&root.join("effects.log").display().to_string(), &marker);
    let files: Vec<(&str, &str)> = script
        .contents
        .iter()
        .filter_map(|(path, contents)| Some((*path, contents[0].as_deref()?)))
        .collect();
    let place = Place::new(root, &files);
    let server = Server::start_blocking(script.scenario()).map_err(|error| error.to_string())?;
    let arguments = ["run", "--json", "--allow-write", "--allow-process", "do all of it"];
    let mut running = Running::start(place.alisio(&server.base_url(), &arguments));
    let supervisor_died = die(&mut running, death)?;
    let (code, err) = running.kill()?;
    let silence = place.wait_for_silence(&running, SILENCE)?;
    check(code.is_none_or(|code| code == 0), || format!("it ended by itself with {code:?}: {err}"))?;
    check(
        matches!(death, Death::At(_) | Death::After { .. } | Death::SupervisorFirst { .. })
            || code == Some(0),
        || format!("it ended with {code:?}: {err}"),
    )?;
    check(server.failures().is_empty(), || format!("the server did not expect: {:?}", server.failures()))?;

    let session = place.expect(0, "", &["sessions", "list", "--all", "--json"])?;
    let session = session.lines().next().map(|line| -> Result<String, Failed> {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        line["id"].as_str().map(str::to_owned).ok_or_else(|| "a session without id".to_owned())
    });
    let session = session.transpose()?;
    let exported = match &session {
        Some(session) => parsed(&place.expect(0, "", &["sessions", "export", session])?)?,
        None => Vec::new(),
    };
    let n_events = seen_events_are_kept(&running.seen, &exported)?;
    let told = Told::new(&exported);
    if matches!(death, Death::Never) {
        let missing: Vec<_> =
            script.steps().filter(|step| !told.completed.contains(step.id)).map(|step| step.id).collect();
        check(
            told.ended.as_deref() == Some("run_completed") && told.failed.is_empty() && missing.is_empty(),
            || format!("the script fails in {:?} and does not come to {missing:?}", told.failed),
        )?;
    }
    let leftovers = files_are_whole(&place, &script, &told, supervisor_died)?;
    let store = place.store()?;
    ledger_is_whole(&store, &told)?;
    let mut uncertain = Vec::new();
    if let Some(session) = &session {
        uncertain = told.uncertain();
        session_tells_the_truth(&place, &store, session, &told, &uncertain)?;
        drop(store);
        goes_on(&place, session, &uncertain)?;
    }
    let mut figures = figures.lock().expect("no thread panics with it");
    figures.cut += usize::from(code.is_none());
    figures.uncertain += usize::from(!uncertain.is_empty());
    figures.without_session += usize::from(session.is_none());
    figures.leftovers += leftovers;
    figures.n_events += n_events;
    figures.longest_silence = figures.longest_silence.max(silence);
    Ok(())
}

/// Waits for the moment of the kill. Says whether the supervisor was killed.
fn die(running: &mut Running, death: &Death) -> Result<bool, Failed> {
    let start = running.started;
    match death {
        Death::Never => {
            running.finish()?;
        }
        Death::At(time) => {
            running.read_until(start + *time, |_| false)?;
        }
        Death::After { kind, nth, wait } => {
            let mut count = 0;
            let ended = running.read_until(start + Duration::from_secs(60), |event| {
                count += u64::from(event["type"] == *kind);
                count == *nth
            })?;
            if !ended {
                std::thread::sleep(*wait);
            }
        }
        Death::SupervisorFirst { at, wait } => {
            running.read_until(start + *at, |_| false)?;
            let supervisor = running.supervisor();
            if let Some(pid) = supervisor {
                kill(pid);
            }
            running.read_until(Instant::now() + *wait, |_| false)?;
            return Ok(supervisor.is_some());
        }
    }
    Ok(false)
}

fn parsed(lines: &str) -> Result<Vec<Value>, Failed> {
    lines.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))).collect()
}

/// Every durable event that was seen is kept, as it was seen; returns how many there were.
fn seen_events_are_kept(seen: &[Value], exported: &[Value]) -> Result<usize, Failed> {
    let kept: BTreeMap<&str, &Value> =
        exported.iter().filter_map(|line| Some((line.get("eventId")?.as_str()?, line))).collect();
    let mut count = 0;
    for event in seen {
        let Some(id) = event["eventId"].as_str() else { continue };
        check(kept.get(id) == Some(&event), || format!("seen: {event}\nkept: {:?}", kept.get(id)))?;
        count += 1;
    }
    Ok(count)
}

/// What the events of a session tell.
#[derive(Default)]
struct Told {
    /// Call id and effect, in order.
    started: Vec<(String, String)>,
    completed: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// The type of the last event, where it ends the run.
    ended: Option<String>,
    run_started: bool,
}

impl Told {
    fn new(exported: &[Value]) -> Self {
        let mut told = Self::default();
        for event in exported.iter().filter(|line| line.get("eventId").is_some()) {
            let text = |name: &str| event["data"][name].as_str().unwrap_or_default().to_owned();
            match event["type"].as_str().unwrap_or_default() {
                "run_started" => told.run_started = true,
                "tool_started" => told.started.push((text("id"), text("effect"))),
                "tool_completed" => {
                    told.completed.insert(text("id"));
                    if event["data"]["isError"] == true {
                        told.failed.insert(text("id"));
                    }
                }
                kind @ ("run_completed" | "run_failed" | "run_cancelled" | "run_turns_exceeded") => {
                    told.ended = Some(kind.to_owned());
                }
                _ => {}
            }
        }
        told
    }

    fn has_started(&self, id: &str) -> bool {
        self.started.iter().any(|(started, _)| started == id)
    }

    /// Calls with an effect that have begun and not ended.
    fn uncertain(&self) -> Vec<String> {
        let is_open = |(id, effect): &&(String, String)| effect != "read" && !self.completed.contains(id);
        self.started.iter().filter(is_open).map(|(id, _)| id.clone()).collect()
    }
}

/// Each file has exactly one of the contents that it may have after what was told; returns how many temporary files
/// there are, each with a name that says so.
fn files_are_whole(
    place: &Place,
    script: &Script,
    told: &Told,
    supervisor_died: bool,
) -> Result<usize, Failed> {
    for (path, contents) in &script.contents {
        let steps = || script.steps().filter(|step| matches!(step.trace, Trace::File(of) if of == *path));
        let least =
            steps().filter(|step| told.completed.contains(step.id) && !told.failed.contains(step.id)).count();
        let most = steps().filter(|step| told.has_started(step.id)).count();
        let actual = fs::read_to_string(place.workspace.join(path)).ok();
        let index = contents.iter().position(|content| *content == actual);
        check(index.is_some_and(|index| (least..=most).contains(&index)), || {
            let length = actual.map(|text| text.len());
            format!(
                "`{path}` has content {index:?} ({length:?} bytes), which has to be one of {least} to {most}"
            )
        })?;
    }
    let log = fs::read_to_string(&place.log).map_err(|error| error.to_string())?;
    for step in script.steps().filter(|step| matches!(step.trace, Trace::Line)) {
        let count = log.lines().filter(|line| *line == step.id).count();
        let is_done = told.completed.contains(step.id) && !(supervisor_died && told.failed.contains(step.id));
        let (least, most) = (usize::from(is_done), usize::from(told.has_started(step.id)));
        check((least..=most).contains(&count), || {
            format!("`{}` was done {count} times, which has to be {least} to {most}", step.id)
        })?;
    }
    let mut leftovers = 0;
    for path in files(&place.workspace) {
        let known = path.strip_prefix(&place.workspace).ok().and_then(Path::to_str);
        if known.is_some_and(|known| known == "nohup.out" || script.contents.contains_key(known)) {
            continue;
        }
        check(path.file_name().is_some_and(is_leftover), || format!("`{}` was left", path.display()))?;
        leftovers += 1;
    }
    place.git(&["status", "--porcelain"]);
    check(!place.workspace.join(".git/index.lock").exists(), || "git's index is locked".into())?;
    Ok(leftovers)
}

/// All files below, without those of git.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if entry.file_name() != ".git" {
                found.extend(files(&path));
            }
        } else {
            found.push(path);
        }
    }
    found
}

/// The chain is whole, and holds an allowing entry for each call that has begun and no other.
fn ledger_is_whole(store: &alisio_store::Store, told: &Told) -> Result<(), Failed> {
    let found = store.verify_ledger().map_err(|error| error.to_string())?;
    check(matches!(found, LedgerCheck::Whole(_)), || format!("{found:?}"))?;
    let entries = store.ledger(0, 1000).map_err(|error| error.to_string())?;
    let allowed = entries.iter().filter(|entry| entry.verdict == Some(VerdictWord::Allow));
    let allowed: Vec<&str> = allowed.map(|entry| entry.call.as_str()).collect();
    let started: Vec<&str> = told.started.iter().map(|(id, _)| id.as_str()).collect();
    check(allowed == started, || format!("the ledger allowed {allowed:?}, and {started:?} began"))
}

fn session_tells_the_truth(
    place: &Place,
    store: &alisio_store::Store,
    session: &str,
    told: &Told,
    uncertain: &[String],
) -> Result<(), Failed> {
    let text = place.expect(0, "", &["resume", session])?;
    let status = match told.ended.as_deref() {
        Some("run_completed") => "completed",
        Some(other) => return Err(format!("the run ended with {other}")),
        None if told.run_started => "interrupted",
        None => "none yet",
    };
    check(text.contains(&format!("last run: {status}\n")), || {
        format!("the last run is {status}, and it says\n{text}")
    })?;
    let listed = text.lines().filter(|line| line.contains(" (begun ")).count();
    check(listed == uncertain.len(), || format!("{uncertain:?} are uncertain, and it says\n{text}"))?;
    let view = store.view(&SessionId::new(session)).map_err(|error| error.to_string())?;
    let known: Vec<&str> = view.uncertain.iter().map(|call| call.call.as_str()).collect();
    check(known == *uncertain, || format!("{uncertain:?} are uncertain, and the store says {known:?}"))
}

/// The session goes on: not before what is uncertain was acknowledged, and without doing anything again.
fn goes_on(place: &Place, session: &str, uncertain: &[String]) -> Result<(), Failed> {
    let log = place.log.display().to_string();
    let server = Server::start_blocking(after(&log)).map_err(|error| error.to_string())?;
    let url = server.base_url();
    let resume = ["resume", session, "go on", "--allow-write", "--allow-process"];
    if !uncertain.is_empty() {
        place.expect(1, &url, &resume)?;
        check(server.request_count() == 0, || {
            "a session with an uncertain call was sent to the model".into()
        })?;
        place.expect(0, "", &["sessions", "recover", session, "--acknowledge"])?;
    }
    let before = snapshot(place);
    let said = place.expect(0, &url, &resume)?;
    check(server.failures().is_empty(), || format!("the server did not expect: {:?}", server.failures()))?;
    let requests = server.requests();
    let body = requests.first().map(|request| &request.body).ok_or("no request came")?;
    for call in uncertain {
        let answer = body["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|message| message["tool_call_id"] == **call);
        let text = answer.map(|answer| answer["content"].to_string()).unwrap_or_default();
        check(text.contains("outcome unknown"), || {
            format!("the model is not told that `{call}` is uncertain: {text}")
        })?;
    }
    let mut expected = before;
    expected.insert(place.workspace.join("after.txt"), "after\n".into());
    expected.entry(place.log.clone()).or_default().extend_from_slice(b"after-shell\n");
    let after = snapshot(place);
    let differing: Vec<_> =
        expected.keys().chain(after.keys()).filter(|path| expected.get(*path) != after.get(*path)).collect();
    check(differing.is_empty(), || format!("going on left {differing:?} not as it should be:\n{said}"))?;
    let text = place.expect(0, "", &["resume", session])?;
    check(text.contains("last run: completed\n"), || format!("after going on it says\n{text}"))
}

fn snapshot(place: &Place) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut paths = files(&place.workspace);
    paths.push(place.log.clone());
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap_or_default())).collect()
}
