//! One call: the pipes, the clock, the cancellation and the nanny's replies in one loop.

use std::future::pending;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

use super::capture::Capture;
use super::{Finished, ProcessError, ProcessSpec, Shared, Spill, Stream};
use crate::supervisor::wire::{self, Reply, Stage};

/// What a nanny may take beyond the grace: its own limit for killing, and a loaded machine.
const PATIENCE: Duration = Duration::from_secs(6);
/// How much is read of the pipes once everything is gone; more can only come from a survivor.
const LAST_READS: usize = 64;

pub(super) async fn run(
    shared: &Shared,
    spec: ProcessSpec,
    mut show: impl FnMut(Stream, &[u8]) + Send,
    cancel: CancellationToken,
) -> Result<Finished, ProcessError> {
    let begin = Instant::now();
    let arguments = spec.program.argv();
    let name = arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut environment =
        if spec.is_environment_whole { Vec::new() } else { shared.options.environment.clone() };
    environment.retain(|(name, _)| spec.environment.iter().all(|(other, _)| other != name));
    environment.extend(spec.environment.iter().cloned());
    let request = wire::Program { directory: spec.directory.clone().into(), arguments, environment };

    let (call, mut stdout, mut stderr) = {
        let (stdout, stdout_end) =
            Pipe::new(Stream::Stdout, spec.spill.clone()).map_err(ProcessError::Output)?;
        let (stderr, stderr_end) =
            Pipe::new(Stream::Stderr, spec.spill.clone()).map_err(ProcessError::Output)?;
        let (call, call_end) = wire::pair().map_err(ProcessError::Supervisor)?;
        let request = request.write().map_err(ProcessError::Supervisor)?;
        shared.spawn([request.as_fd(), call_end.as_fd(), stdout_end.as_fd(), stderr_end.as_fd()]).await?;
        (watch(call).map_err(ProcessError::Supervisor)?, stdout, stderr)
    };

    let mut state = State::Running { until: begin + spec.limit };
    let mut nanny = None;
    let (mut timed_out, mut cancelled) = (false, false);
    let (exit, leftovers, survivors) = loop {
        let is_running = matches!(state, State::Running { .. });
        let until = match state {
            State::Running { until } | State::Ending { until } | State::Abandoned { until } => until,
        };
        tokio::select! {
            biased;
            reply = next_reply(&call) => match reply {
                Some(Reply::Started { nanny: pid }) => nanny = Some(pid),
                Some(Reply::Failed { stage, errno }) => {
                    let source = io::Error::from_raw_os_error(errno);
                    return Err(match stage {
                        Stage::Directory => ProcessError::Directory { directory: spec.directory, source },
                        Stage::Fork | Stage::Execute => ProcessError::Start { program: name, source },
                    });
                }
                Some(Reply::Ended { supervisor_ended: true, .. }) | None => {
                    shared.clear().await;
                    return Err(ProcessError::SupervisorEnded);
                }
                Some(Reply::Lost { survivors: 0 }) => return Err(ProcessError::NannyEnded),
                Some(Reply::Lost { .. }) => return Err(ProcessError::Stuck),
                Some(Reply::Ended { exit, leftovers, survivors, .. }) => break (exit, leftovers, survivors),
            },
            () = cancel.cancelled(), if is_running => {
                cancelled = true;
                state = end(shared, &call, spec.grace);
            }
            () = tokio::time::sleep_until(until.into()) => match state {
                State::Running { .. } => {
                    timed_out = true;
                    state = end(shared, &call, spec.grace);
                }
                State::Ending { .. } if let Some(pid) = nanny => {
                    shared.wake();
                    shared.abandon(pid);
                    state = State::Abandoned { until: Instant::now() + PATIENCE };
                }
                State::Ending { .. } | State::Abandoned { .. } => {
                    shared.replace().await;
                    return Err(ProcessError::Stuck);
                }
            },
            read = stdout.fill() => stdout.take(read, &mut show).map_err(ProcessError::Output)?,
            read = stderr.fill() => stderr.take(read, &mut show).map_err(ProcessError::Output)?,
        }
    };
    for pipe in [&mut stdout, &mut stderr] {
        pipe.drain(&mut show);
    }
    Ok(Finished {
        exit,
        timed_out,
        cancelled,
        duration: begin.elapsed(),
        leftovers,
        survivors,
        stdout: stdout.capture.finish(),
        stderr: stderr.capture.finish(),
    })
}

#[derive(Clone, Copy)]
enum State {
    Running { until: Instant },
    Ending { until: Instant },
    Abandoned { until: Instant },
}

/// Tells the nanny to end the call.
fn end(shared: &Shared, call: &AsyncFd<OwnedFd>, grace: Duration) -> State {
    shared.wake();
    let milliseconds = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
    // A nanny that is gone shows at the other end of this socket.
    let _ = wire::send(call.get_ref(), &milliseconds.to_le_bytes(), &[]);
    State::Ending { until: Instant::now() + grace + PATIENCE }
}

/// Waits for the next reply; `None` when nobody is left to give one.
async fn next_reply(call: &AsyncFd<OwnedFd>) -> Option<Reply> {
    loop {
        let mut guard = call.readable().await.ok()?;
        match guard.try_io(|call| wire::receive(call.get_ref())) {
            Ok(result) => return Reply::decode(&result.ok()?.0),
            Err(_would_block) => {}
        }
    }
}

/// Makes a descriptor that can be awaited.
fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is the same one until it is dropped, which `AsyncFd` does after unregistering it.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}

/// The end of one output that we read.
struct Pipe {
    stream: Stream,
    /// `None` once it is at its end.
    descriptor: Option<AsyncFd<OwnedFd>>,
    buffer: Vec<u8>,
    capture: Capture,
}

impl Pipe {
    fn new(stream: Stream, spill: Option<Spill>) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let descriptor = Some(watch(ours)?);
        let capture = Capture::new(spill, stream.as_str());
        Ok((Self { stream, descriptor, buffer: vec![0; 32 * 1024], capture }, theirs))
    }

    /// Reads once; never comes back at the end. Nothing is lost when it is dropped.
    async fn fill(&mut self) -> io::Result<usize> {
        let Some(descriptor) = &self.descriptor else { return pending().await };
        loop {
            let mut guard = descriptor.readable().await?;
            match guard.try_io(|descriptor| Ok(rustix::io::read(descriptor.get_ref(), &mut self.buffer)?)) {
                Ok(result) => return result,
                Err(_would_block) => {}
            }
        }
    }

    fn take(&mut self, read: io::Result<usize>, show: &mut impl FnMut(Stream, &[u8])) -> io::Result<()> {
        let bytes = &self.buffer[..read?];
        if bytes.is_empty() {
            self.descriptor = None;
        } else {
            self.capture.take(bytes);
            show(self.stream, bytes);
        }
        Ok(())
    }

    /// Takes what is in the pipe, without waiting.
    fn drain(&mut self, show: &mut impl FnMut(Stream, &[u8])) {
        for _ in 0..LAST_READS {
            let Some(descriptor) = &self.descriptor else { return };
            let Ok(n_bytes) = rustix::io::read(descriptor.get_ref(), &mut self.buffer) else { return };
            let _ = self.take(Ok(n_bytes), show);
        }
    }
}
