//! The supervisor's loop.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use super::children::{Change, ChildSignals, next_change};
use super::descendants::{self, Ended};
use super::nanny::{self, Given};
use super::wire::{self, Ask, Program, Reply, Stage};

/// How long the nannies get when Alisio is gone, before the supervisor ends everything itself.
const LAST_GRACE: Duration = Duration::from_secs(6);
/// How long ending may take before what is left counts as surviving.
const ENDING_LIMIT: Duration = Duration::from_secs(3);

struct Nanny {
    /// Its other end is the nanny's; when it is dropped, the nanny ends its call.
    lifeline: Option<OwnedFd>,
    /// The nanny's end of the call socket, kept to speak in its place.
    call: OwnedFd,
}

pub(super) fn serve() -> io::Result<()> {
    let stdin = io::stdin();
    let socket = stdin.as_fd();
    if rustix::net::sockopt::socket_type(socket).ok() != Some(rustix::net::SocketType::SEQPACKET) {
        return Err(io::Error::other("standard input is not its socket"));
    }
    // Both the forks and the way in which SIGCHLD arrives need this.
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this process has several threads"));
    }
    // SAFETY: nothing was opened yet, so no descriptor above the standard ones is anybody's in this process.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    let null: OwnedFd = File::options().read(true).write(true).open("/dev/null")?.into();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let signals = ChildSignals::new()?;
    let mut nannies = HashMap::new();
    loop {
        let [is_ready] = signals.wait([Some(socket)], None);
        look_after(&mut nannies);
        if is_ready {
            match wire::receive(socket) {
                Ok((bytes, _)) if bytes.is_empty() => break,
                Ok((bytes, descriptors)) => match Ask::decode(&bytes) {
                    Some(Ask::Spawn) => spawn(descriptors, &null, &mut nannies),
                    Some(Ask::Abandon(pid)) if nannies.contains_key(&pid) => {
                        descendants::signal(pid, libc::SIGKILL);
                    }
                    Some(Ask::Abandon(_)) | None => {}
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
    }
    nannies.values_mut().for_each(|nanny| nanny.lifeline = None);
    let end = Instant::now() + LAST_GRACE;
    while !nannies.is_empty() && Instant::now() < end {
        signals.wait::<0>([], Some(Duration::from_millis(100)));
        look_after(&mut nannies);
    }
    descendants::end_all(&[], ENDING_LIMIT, descendants::wait_for);
    Ok(())
}

fn spawn(descriptors: Vec<OwnedFd>, null: &OwnedFd, nannies: &mut HashMap<i32, Nanny>) {
    let Ok([request, call, stdout, stderr]) = <[OwnedFd; 4]>::try_from(descriptors) else { return };
    let fail = |call: &OwnedFd, error: &io::Error| {
        let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
        // When Alisio does not listen any more, it does not need to know.
        let _ = wire::send(call, &Reply::Failed { stage: Stage::Fork, errno }.encode(), &[]);
    };
    let program = match Program::read(request) {
        Ok(program) => program,
        Err(error) => return fail(&call, &error),
    };
    let (lifeline_end, lifeline) = match rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) {
        Ok(ends) => ends,
        Err(error) => return fail(&call, &error.into()),
    };
    // SAFETY: this process has one thread, so the child may do anything.
    match unsafe { libc::fork() } {
        -1 => fail(&call, &io::Error::last_os_error()),
        0 => nanny::watch(
            &program,
            &Given {
                call: call.as_raw_fd(),
                lifeline: lifeline_end.as_raw_fd(),
                stdout: stdout.as_raw_fd(),
                stderr: stderr.as_raw_fd(),
                null: null.as_raw_fd(),
            },
        ),
        pid => {
            nannies.insert(pid, Nanny { lifeline: Some(lifeline), call });
        }
    }
}

/// Reaps, wakes stopped nannies, and ends what dead ones left.
fn look_after(nannies: &mut HashMap<i32, Nanny>) {
    loop {
        match next_change() {
            Change::Gone(pid, exit) => {
                let Some(nanny) = nannies.remove(&pid) else { continue };
                if exit != nanny::DONE {
                    let kept: Vec<i32> = nannies.keys().copied().collect();
                    let Ended { survivors, .. } =
                        descendants::end_all(&kept, ENDING_LIMIT, descendants::wait_for);
                    let _ = wire::send(&nanny.call, &Reply::Lost { survivors }.encode(), &[]);
                }
            }
            Change::Stopped(pid) => {
                descendants::signal(pid, libc::SIGCONT);
            }
            Change::Nothing | Change::NoChildren => return,
        }
    }
}
