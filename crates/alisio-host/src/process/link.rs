//! Alisio's end of the supervisor.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::{Child, Stdio};
use std::sync::PoisonError;
use std::time::Duration;

use super::{Options, ProcessError, Shared};
use crate::supervisor::descendants;
use crate::supervisor::wire::{self, Ask};

/// A running supervisor.
pub(super) struct Link {
    socket: Option<OwnedFd>,
    child: Option<Child>,
}

impl Link {
    fn start(options: &Options) -> io::Result<Self> {
        let Some((program, arguments)) = options.supervisor.split_first() else {
            return Err(io::Error::other("no supervisor is configured"));
        };
        hide_own_memory();
        if options.adopt_strays {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        }
        let (socket, theirs) = wire::pair()?;
        let child = command(program, arguments, theirs).spawn()?;
        Ok(Self { socket: Some(socket), child: Some(child) })
    }

    fn pid(&self) -> Option<i32> {
        self.child.as_ref().map(|child| child.id().cast_signed())
    }

    /// Kills it and waits for it.
    fn kill(mut self) {
        if let Some(mut child) = self.child.take() {
            // It may be gone already; the wait is what counts.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.socket = None;
        if let Some(mut child) = self.child.take() {
            // It ends what is left and then itself; where this process goes on, somebody must wait for it.
            let _ = std::thread::Builder::new().spawn(move || child.wait());
        }
    }
}

/// Keeps what we start from reading this process's environment, in which the keys are, and from tracing it. A program
/// with rights over every process (root with all its capabilities) can't be kept from it.
fn hide_own_memory() {
    // It can only fail for values that the kernel does not know.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

// `posix_spawn` is what std uses as long as there is neither `pre_exec` nor a change of user.
#[expect(clippy::disallowed_methods, reason = "the one place where the supervisor is started")]
fn command(program: &OsString, arguments: &[OsString], socket: OwnedFd) -> std::process::Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = std::process::Command::new(program);
    // Its environment is readable by every process of the user, so it has none. A group of its own keeps Ctrl-C away.
    command.args(arguments).env_clear().current_dir("/").process_group(0);
    command.stdin(socket).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Shared {
    /// Sends a spawn to the supervisor, which is started where there is none or where the last one is gone.
    pub(super) async fn spawn(&self, descriptors: [BorrowedFd<'_>; 4]) -> Result<(), ProcessError> {
        let mut n_starts = 0;
        let mut n_waits = 0;
        loop {
            let result = {
                let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
                if link.is_none() {
                    n_starts += 1;
                    *link = Some(Link::start(&self.options).map_err(ProcessError::Supervisor)?);
                }
                let socket = link.as_ref().and_then(|link| link.socket.as_ref());
                let socket = socket.expect("a link has its socket until it is dropped");
                wire::send(socket.as_fd(), &Ask::Spawn.encode(), &descriptors)
            };
            match result {
                Ok(()) => return Ok(()),
                // Its queue is full: it has much to do, or somebody stopped it.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && n_waits < 1000 => {
                    n_waits += 1;
                    self.wake();
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) if n_starts == 2 => return Err(ProcessError::Supervisor(error)),
                Err(_) => self.clear().await,
            }
        }
    }

    /// Continues a supervisor that somebody stopped.
    pub(super) fn wake(&self) {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = link.as_ref().and_then(Link::pid) {
            descendants::signal(pid, libc::SIGCONT);
        }
    }

    /// Tells the supervisor to end a nanny that does not answer.
    pub(super) fn abandon(&self, nanny: i32) {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = link.as_ref().and_then(|link| link.socket.as_ref()) {
            // A supervisor that cannot be reached is about to be replaced.
            let _ = wire::send(socket.as_fd(), &Ask::Abandon(nanny).encode(), &[]);
        }
    }

    /// Drops a supervisor that is gone, and ends what fell to this process with it.
    pub(super) async fn clear(&self) {
        let kept = {
            let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
            let is_gone = link.as_mut().is_some_and(|link| {
                link.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
            });
            if is_gone && let Some(link) = link.take() {
                link.kill();
            }
            link.as_ref().and_then(Link::pid)
        };
        if self.options.adopt_strays {
            let kept: Vec<i32> = kept.into_iter().collect();
            let limit = Duration::from_secs(3);
            let ending = tokio::task::spawn_blocking(move || {
                descendants::end_all(&kept, limit, descendants::wait_for)
            });
            let _ = ending.await;
        }
    }

    /// Replaces a supervisor that answers nobody.
    pub(super) async fn replace(&self) {
        if let Some(link) = self.link.lock().unwrap_or_else(PoisonError::into_inner).take() {
            link.kill();
        }
        self.clear().await;
    }
}
