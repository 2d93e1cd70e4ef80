//! The one process that spawns every other one and ends them all.
//!
//! Alisio starts its own binary again as a small single-threaded *supervisor* (first argument [`ARGUMENT`]). Alisio
//! itself never forks: a fork of a large process is slow, and one of a process with threads is not safe. For each call
//! the supervisor forks a *nanny*, which forks and executes the program:
//!
//! ```text
//! alisio ── supervisor ──┬─ nanny ── program ── …
//!                        └─ nanny ── program ── …
//! ```
//!
//! Supervisor and nannies are subreapers: whatever a program leaves behind (`setsid`, double forks, `nohup`, daemons)
//! becomes a child of its nanny, so the tree of a call is always known and can be ended as a whole. `waitpid`
//! saying that there is no child is the proof that nothing is left.
//!
//! Who ends what when somebody dies:
//! - the program exits: its nanny ends what it left, then reports; a held pipe does not prolong a call;
//! - Alisio dies, in whatever way: the supervisor reads the end of its standard input and lets go of every nanny's
//!   lifeline; each ends its tree;
//! - the supervisor dies: every lifeline ends, the same follows, and Alisio starts another one at the next call;
//! - a nanny dies: its program gets SIGKILL, the rest falls to the supervisor, which ends it;
//! - a nanny is stopped: the supervisor continues it.
//!
//! What this does not hold, since it is no sandbox: a program may send signals to everything of its user. One that
//! kills its nanny *and* the supervisor *and* Alisio within one moment leaves what it started behind; if Alisio lives
//! and adopts strays (`Options::adopt_strays`), it ends them. A process of another user (`sudo`) cannot be signalled
//! by us and is reported as a survivor. A program may ask another service (a container engine, `systemd`, `cron`, `at`)
//! to start something that is not its descendant. Root can do anything. All this needs namespaces.
//!
//! There is no such thing outside Linux; [`main`] says so there.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod children;
#[cfg(target_os = "linux")]
pub(crate) mod descendants;
#[cfg(target_os = "linux")]
mod nanny;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
pub(crate) mod wire;

/// The hidden first argument with which the binary is started as a supervisor.
pub const ARGUMENT: &str = "__supervisor";

/// Is the supervisor. The binary calls it before anything else when its first argument is [`ARGUMENT`], while the
/// process has a single thread and nothing open. Returns when Alisio is gone and nothing is left to end.
#[cfg(target_os = "linux")]
pub fn main() -> ExitCode {
    match serve::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error.to_string()),
    }
}

/// Is the supervisor on systems that have one; says that this is not such a system.
#[cfg(not(target_os = "linux"))]
pub fn main() -> ExitCode {
    complain("processes are supervised on Linux only")
}

fn complain(reason: &str) -> ExitCode {
    use std::io::Write as _;
    // Nobody reads this when Alisio started the process; it is for a person who tried the argument by hand.
    let _ = writeln!(std::io::stderr(), "error: `{ARGUMENT}` is for Alisio itself: {reason}");
    ExitCode::from(2)
}

/// Says whether this process was started, however indirectly, by a tool of some Alisio: the supervisor or nanny above it
/// can't be left behind by forking or by a new session, since both are subreapers.
#[cfg(target_os = "linux")]
pub fn is_above_this_process() -> bool {
    let mut pid = std::process::id();
    // A chain of parents is short; the bound is for a `/proc` that changes while it is read.
    for _ in 0..1_000 {
        let Some(parent) = parent_of(pid) else { return false };
        if is_supervisor(parent) {
            return true;
        }
        pid = parent;
    }
    false
}

/// Nothing is supervised on other systems.
#[cfg(not(target_os = "linux"))]
pub fn is_above_this_process() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, a closing bracket too; what follows the last one is numbers.
    let rest = &stat[stat.rfind(')')? + 1..];
    rest.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent != 0)
}

#[cfg(target_os = "linux")]
fn is_supervisor(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| line.split(|byte| *byte == 0).nth(1) == Some(ARGUMENT.as_bytes()))
}
