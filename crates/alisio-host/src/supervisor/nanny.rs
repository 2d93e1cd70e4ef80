//! The process that watches over one call: it starts the program, reaps everything that becomes its own, and ends
//! the whole tree.

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use super::children::{Change, ChildSignals, next_change};
use super::descendants;
use super::wire::{self, Program, Reply, Stage};
use crate::process::Exit;

/// How a nanny exits that has reported and leaves nothing behind.
pub(super) const DONE: Exit = Exit::Code(0);
/// How long what is left at a normal exit, or when nobody waits any more, has between SIGTERM and SIGKILL.
const SHORT_GRACE: Duration = Duration::from_millis(200);
/// How long killing may take before what is left counts as surviving.
const KILLING_LIMIT: Duration = Duration::from_secs(3);
/// Makes the kernel choose a tool before Alisio when memory runs out.
const OOM_SCORE: &str = "300";

/// The descriptors of a call.
pub(super) struct Given {
    pub(super) call: RawFd,
    pub(super) lifeline: RawFd,
    pub(super) stdout: RawFd,
    pub(super) stderr: RawFd,
    pub(super) null: RawFd,
}

/// Is the nanny; runs in the child of a fork.
pub(super) fn watch(program: &Program, given: &Given) -> ! {
    let code = match Nanny::start(program, given) {
        Ok(mut nanny) => {
            let reply = nanny.run();
            let _ = wire::send(nanny.call, &reply.encode(), &[]);
            0
        }
        Err((stage, error)) => {
            let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
            // SAFETY: the supervisor gave this descriptor, and nobody here closes it.
            let call = unsafe { BorrowedFd::borrow_raw(given.call) };
            let _ = wire::send(call, &Reply::Failed { stage, errno }.encode(), &[]);
            0
        }
    };
    // SAFETY: ends the process without running anything of the supervisor's that is still in memory.
    unsafe { libc::_exit(code) }
}

struct Nanny {
    call: BorrowedFd<'static>,
    lifeline: BorrowedFd<'static>,
    signals: ChildSignals,
    program: i32,
    exit: Option<Exit>,
    /// When SIGKILL follows; set once ending has begun.
    deadline: Option<Instant>,
    leftovers: HashSet<i32>,
    supervisor_ended: bool,
}

impl Nanny {
    fn start(program: &Program, given: &Given) -> Result<Self, (Stage, io::Error)> {
        let in_fork = |error: io::Error| (Stage::Fork, error);
        let image = Image::new(program).map_err(|error| (Stage::Execute, error))?;
        // Lifelines and call sockets of others must not live on here, else nobody would see their end.
        close_all_but(&[given.call, given.lifeline, given.stdout, given.stderr, given.null]);
        // SAFETY: standard input is the supervisor's socket, which is no business of ours; the descriptor is given.
        unsafe { libc::dup2(given.null, 0) };
        rustix::process::setpgid(None, None).map_err(|error| in_fork(error.into()))?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| in_fork(error.into()))?;
        let signals = ChildSignals::new().map_err(in_fork)?;
        let (status, status_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| in_fork(error.into()))?;
        let own = std::process::id();
        let pid = Launch { image: &image, given, nanny: own, status: status_end.as_fd() }
            .start()
            .map_err(in_fork)?;
        drop(status_end);
        // The program's own ends must be its alone, so that their end can be seen.
        // SAFETY: nothing uses these numbers after this.
        unsafe {
            libc::close(given.stdout);
            libc::close(given.stderr);
            libc::close(given.null);
        }
        let mut bytes = [0; 5];
        if rustix::io::retry_on_intr(|| rustix::io::read(&status, &mut bytes)) == Ok(5) {
            descendants::wait_for(pid);
            let stage = if bytes[0] == Stage::Directory as u8 { Stage::Directory } else { Stage::Execute };
            let [_, errno @ ..] = bytes;
            return Err((stage, io::Error::from_raw_os_error(i32::from_le_bytes(errno))));
        }
        // SAFETY: given by the supervisor and open until this process ends.
        let (call, lifeline) =
            unsafe { (BorrowedFd::borrow_raw(given.call), BorrowedFd::borrow_raw(given.lifeline)) };
        let _ = wire::send(call, &Reply::Started { nanny: own.cast_signed() }.encode(), &[]);
        Ok(Self {
            call,
            lifeline,
            signals,
            program: pid,
            exit: None,
            deadline: None,
            leftovers: HashSet::new(),
            supervisor_ended: false,
        })
    }

    /// Watches until the program and all that it started are gone.
    fn run(&mut self) -> Reply {
        let (mut is_called, mut has_lifeline) = (true, true);
        loop {
            if self.reap() {
                return self.ended(0);
            }
            let now = Instant::now();
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                let survivors = self.kill();
                return self.ended(survivors);
            }
            let limit = self.deadline.map(|deadline| deadline - now);
            let others = [is_called.then_some(self.call), has_lifeline.then_some(self.lifeline)];
            let [call, lifeline] = self.signals.wait(others, limit);
            if lifeline {
                has_lifeline = false;
                self.supervisor_ended = true;
                self.end(SHORT_GRACE);
            }
            if call {
                match wire::receive(self.call) {
                    Ok((bytes, _)) if bytes.len() == 4 => {
                        let grace = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                        self.end(Duration::from_millis(grace.into()));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Ok(_) | Err(_) => {
                        is_called = false;
                        self.end(SHORT_GRACE);
                    }
                }
            }
        }
    }

    fn ended(&self, survivors: u32) -> Reply {
        Reply::Ended {
            // Only a program that cannot be killed has no exit here.
            exit: self.exit.unwrap_or(Exit::Signal(libc::SIGKILL)),
            leftovers: u32::try_from(self.leftovers.len()).unwrap_or(u32::MAX),
            survivors,
            supervisor_ended: self.supervisor_ended,
        }
    }

    /// Takes what is gone; says whether nothing is left. Begins to end what the program left when it is gone.
    fn reap(&mut self) -> bool {
        loop {
            match next_change() {
                Change::Gone(pid, exit) => {
                    if pid == self.program && self.exit.is_none() {
                        self.exit = Some(exit);
                    }
                }
                Change::Stopped(_) => {}
                Change::NoChildren => return true,
                Change::Nothing => break,
            }
        }
        if self.exit.is_some() && self.leftovers.is_empty() {
            self.leftovers = self.end(SHORT_GRACE);
        }
        false
    }

    /// Asks everything to end and says what was alive; after `grace` it is killed.
    fn end(&mut self, grace: Duration) -> HashSet<i32> {
        let deadline = Instant::now() + grace;
        self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
        let alive = descendants::list(&[]).into_iter().filter(|process| !process.is_zombie);
        alive
            .map(|process| {
                descendants::signal(process.pid, libc::SIGTERM);
                descendants::signal(process.pid, libc::SIGCONT);
                process.pid
            })
            .collect()
    }

    fn kill(&mut self) -> u32 {
        let limit = Instant::now() + KILLING_LIMIT;
        let had_exited = self.exit.is_some();
        loop {
            let (program, exit) = (self.program, &mut self.exit);
            let ended = descendants::end_all(&[], KILLING_LIMIT, |pid| {
                if pid != program {
                    descendants::wait_for(pid);
                } else if exit.is_none() {
                    let mut status = 0;
                    // SAFETY: the status is a live integer.
                    if unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == pid {
                        *exit = Some(if libc::WIFEXITED(status) {
                            Exit::Code(libc::WEXITSTATUS(status))
                        } else {
                            Exit::Signal(libc::WTERMSIG(status))
                        });
                    }
                }
            });
            if had_exited {
                self.leftovers.extend(&ended.found);
            }
            if self.reap() {
                return 0;
            }
            if Instant::now() > limit {
                return ended.survivors.max(1);
            }
        }
    }
}

/// What the process that becomes the program needs to know.
struct Launch<'a> {
    image: &'a Image,
    given: &'a Given,
    nanny: u32,
    /// Takes what went wrong; nothing when the program runs.
    status: BorrowedFd<'a>,
}

impl Launch<'_> {
    /// How much of a stack the few calls before `execve` get; they need a small part of it.
    const STACK: usize = 256 * 1024;

    /// Starts the process and comes back when it is the program or gone. It shares this process's memory until then,
    /// as with vfork(2): copying the memory for the few calls before `execve` would cost more than they do.
    fn start(self) -> io::Result<i32> {
        let mut stack: Vec<u8> = Vec::with_capacity(Self::STACK);
        let end = stack.as_mut_ptr().wrapping_add(Self::STACK);
        let end = end.wrapping_sub(end.addr() % 16).cast();
        let launch = std::ptr::from_ref(&self).cast_mut().cast();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: this process has one thread, which stands still until the other one is done with this memory, so `self`
        // and the stack outlive every use and nobody else is in the allocator. Descriptors, signal handlers, working
        // directory and mask are copies.
        match unsafe { libc::clone(Self::child, end, flags, launch) } {
            -1 => Err(io::Error::last_os_error()),
            pid => Ok(pid),
        }
    }

    extern "C" fn child(launch: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `start` gave a pointer to itself, and waits.
        let launch = unsafe { &*launch.cast::<Launch<'_>>() };
        let (stage, error) = launch.image.execute(launch.given, launch.nanny);
        let [first, second, third, fourth] = error.raw_os_error().unwrap_or(libc::EINVAL).to_le_bytes();
        let _ = rustix::io::write(launch.status, &[stage as u8, first, second, third, fourth]);
        // SAFETY: as in `watch`.
        unsafe { libc::_exit(127) }
    }
}

/// What `execve` takes, made before the process that becomes the program.
struct Image {
    directory: CString,
    /// Where the program may lie, in the order of trying.
    candidates: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    fn new(program: &Program) -> io::Result<Self> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
        let name = program.arguments.first().map(|name| name.as_bytes()).unwrap_or_default();
        let path =
            program.environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
        let candidates = if name.contains(&b'/') {
            vec![text(name)?]
        } else if name.is_empty() {
            Vec::new()
        } else {
            // A relative entry would let the working directory choose the program.
            std::env::split_paths(path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin")))
                .filter(|directory| directory.is_absolute())
                .map(|directory| text(directory.join(OsStr::from_bytes(name)).as_os_str().as_bytes()))
                .collect::<io::Result<_>>()?
        };
        Ok(Self {
            directory: text(program.directory.as_bytes())?,
            candidates,
            arguments: program
                .arguments
                .iter()
                .map(|argument| text(argument.as_bytes()))
                .collect::<io::Result<_>>()?,
            environment: program
                .environment
                .iter()
                .map(|(name, value)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
                .collect::<io::Result<_>>()?,
        })
    }

    /// Becomes the program; comes back only with what went wrong.
    fn execute(&self, given: &Given, nanny: u32) -> (Stage, io::Error) {
        let _ = std::fs::OpenOptions::new()
            .write(true)
            .open("/proc/self/oom_score_adj")
            .and_then(|mut file| io::Write::write_all(&mut file, OOM_SCORE.as_bytes()));
        // SAFETY: all of these take numbers, or pointers to values that live on this stack or in `self`; the process
        // has one thread and ends or becomes another program right after.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid().cast_unsigned() != nanny {
                libc::_exit(127);
            }
            libc::dup2(given.null, 0);
            libc::dup2(given.stdout, 1);
            libc::dup2(given.stderr, 2);
            libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed());
            // Not `signal`, which leaves out the two that the C library keeps for itself.
            let default = [0usize; 4];
            for signal in 1..=64 {
                libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), 0, 8);
            }
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            if libc::chdir(self.directory.as_ptr()) != 0 {
                return (Stage::Directory, io::Error::last_os_error());
            }
        }
        // What was allowed is a place, so a link that was put in its way since must not lead to another.
        if std::env::current_dir()
            .is_ok_and(|entered| entered.as_os_str().as_bytes() != self.directory.as_bytes())
        {
            return (Stage::Directory, io::Error::from_raw_os_error(libc::ELOOP));
        }
        let (arguments, environment) = (pointers(&self.arguments), pointers(&self.environment));
        let mut result = io::Error::from_raw_os_error(libc::ENOENT);
        for candidate in &self.candidates {
            // SAFETY: both lists end with a null pointer and point into `self`.
            unsafe { libc::execve(candidate.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                // Somewhere further on there may be one that we may execute.
                Some(libc::EACCES) => result = error,
                _ => return (Stage::Execute, error),
            }
        }
        (Stage::Execute, result)
    }
}

fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| CStr::as_ptr(text)).chain([std::ptr::null()]).collect()
}

/// Closes every descriptor above the standard ones but these.
fn close_all_but(kept: &[RawFd]) {
    let mut kept: Vec<libc::c_uint> = kept.iter().map(|descriptor| descriptor.cast_unsigned()).collect();
    kept.sort_unstable();
    let mut first = 3;
    for descriptor in kept.into_iter().chain([libc::c_uint::MAX]) {
        if descriptor > first {
            // SAFETY: this process is about to be a nanny and never again drops what the supervisor owned.
            unsafe { libc::close_range(first, descriptor - 1, 0) };
        }
        first = descriptor.saturating_add(1);
    }
}
