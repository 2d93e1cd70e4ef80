//! Finds and ends everything that descends from this process.
//!
//! The only source is `/proc/PID/stat`, which every kernel has. One look is not atomic, so nobody relies on a single
//! one: ending goes on until there is nothing left.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// One process as `/proc` shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) is_zombie: bool,
}

/// Lists what descends from this process, without `kept` and what descends from those.
pub(crate) fn list(kept: &[i32]) -> Vec<Process> {
    let mut by_parent: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all() {
        by_parent.entry(process.parent).or_default().push(process);
    }
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![std::process::id().cast_signed()];
    while let Some(parent) = parents.pop() {
        for process in by_parent.remove(&parent).unwrap_or_default() {
            if !kept.contains(&process.pid) {
                parents.push(process.pid);
                found.push(process);
            }
        }
    }
    found
}

/// Sends `signal`; says whether there was somebody to receive it and we may.
pub(crate) fn signal(pid: i32, signal: i32) -> bool {
    // SAFETY: kill(2) takes two numbers. 0, 1 and negative numbers, which mean others, never come from `list`.
    pid > 1 && unsafe { libc::kill(pid, signal) } == 0
}

/// What ending came to.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Processes that were alive when they were found.
    pub(crate) found: HashSet<i32>,
    /// Processes that could not be ended.
    pub(crate) survivors: u32,
}

/// Ends every descendant but `kept` and what descends from those, and gives up after `limit`. Each direct child that
/// is gone goes to `reap`, which must wait for it.
///
/// Everything found is stopped before anything is killed, and looked for again until a look finds nothing new: a
/// process that forks faster than we kill would otherwise win.
pub(crate) fn end_all(kept: &[i32], limit: Duration, mut reap: impl FnMut(i32)) -> Ended {
    let own = std::process::id().cast_signed();
    let begin = Instant::now();
    let mut ended = Ended::default();
    let mut n_empty_looks = 0;
    loop {
        let mut stopped = HashSet::new();
        let mut processes = list(kept);
        for _ in 0..100 {
            let mut is_new = false;
            for process in processes.iter().filter(|process| !process.is_zombie) {
                if stopped.insert(process.pid) {
                    ended.found.insert(process.pid);
                    is_new |= signal(process.pid, libc::SIGSTOP);
                }
            }
            if !is_new {
                break;
            }
            processes = list(kept);
        }
        for pid in &stopped {
            signal(*pid, libc::SIGKILL);
        }
        for process in processes.iter().filter(|process| process.parent == own) {
            reap(process.pid);
        }
        // An orphan on its way to us can be missed once, hence two looks.
        n_empty_looks = if processes.is_empty() { n_empty_looks + 1 } else { 0 };
        if n_empty_looks == 2 {
            return ended;
        }
        if begin.elapsed() > limit {
            ended.survivors = u32::try_from(stopped.len()).unwrap_or(u32::MAX);
            return ended;
        }
        if n_empty_looks == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Waits for one child that is gone or about to be; does nothing while it lives.
pub(crate) fn wait_for(pid: i32) {
    // SAFETY: waitpid(2) accepts a null status.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
}

fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| parse(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// Reads state and parent, which stand behind the last parenthesis: a name may hold anything.
fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    Some(Process { pid, parent: fields.next()?.parse().ok()?, is_zombie: matches!(state, "Z" | "X") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_parent() {
        let process = parse(5, b"5 (a) S 1 (\xff) Z 42 5 5 0").expect("a line");
        assert_eq!((process.pid, process.parent, process.is_zombie), (5, 42, true));
        assert!(parse(5, b"").is_none());
    }
}
