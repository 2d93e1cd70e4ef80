//! Learns what happens to children, in a process with one thread.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;

use crate::process::Exit;

/// A descriptor that is readable when a child changed.
pub(super) struct ChildSignals(OwnedFd);

/// What `waitpid` said.
pub(super) enum Change {
    /// A child is gone.
    Gone(i32, Exit),
    /// A child was stopped.
    Stopped(i32),
    /// Children live, nothing new.
    Nothing,
    /// There is no child.
    NoChildren,
}

impl ChildSignals {
    /// Takes SIGCHLD for this process. After a fork the child needs its own.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: the set is a plain value that sigemptyset fills; the calls only read it.
        let descriptor = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Waits until a child changed, one of `others` is readable or at its end, or `limit` is over. Says which of
    /// `others` are.
    pub(super) fn wait<const N: usize>(
        &self,
        others: [Option<BorrowedFd<'_>>; N],
        limit: Option<Duration>,
    ) -> [bool; N] {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative descriptor is skipped by poll(2).
        let mut entries = others.map(|other| entry(other.map_or(-1, |other| other.as_raw_fd()))).to_vec();
        entries.push(entry(self.0.as_raw_fd()));
        let milliseconds = limit.map_or(-1, |limit| i32::try_from(limit.as_millis() + 1).unwrap_or(i32::MAX));
        // SAFETY: the pointer and length are those of a live vector.
        let n_ready =
            unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, milliseconds) };
        if n_ready <= 0 {
            return [false; N];
        }
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        while rustix::io::read(&self.0, &mut info).is_ok_and(|n_bytes| n_bytes > 0) {}
        std::array::from_fn(|index| entries[index].revents != 0)
    }
}

/// Takes the next change of a child.
pub(super) fn next_change() -> Change {
    let mut status = 0;
    // SAFETY: the status is a live integer.
    match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) } {
        0 => Change::Nothing,
        pid if pid > 0 && libc::WIFEXITED(status) => Change::Gone(pid, Exit::Code(libc::WEXITSTATUS(status))),
        pid if pid > 0 && libc::WIFSIGNALED(status) => {
            Change::Gone(pid, Exit::Signal(libc::WTERMSIG(status)))
        }
        pid if pid > 0 => Change::Stopped(pid),
        _ => Change::NoChildren,
    }
}
