//! Child processes, each with its permit.
//!
//! [`Processes::run`] starts one program through the [supervisor](crate::supervisor), streams what it prints and
//! comes back when the program and everything that it started are gone. A program gets an argument array (or a shell
//! and a script), `/dev/null` as its input, a small environment and nothing else of ours: no key, no descriptor.
//!
//! It does not confine what a program does while it runs; that is what a sandbox is for.

mod capture;
mod environment;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod run;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alisio_policy::{Permit, PermitError};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

pub use capture::{Captured, Spill, SpillFile};
pub use environment::{CEILING_VARIABLE, environment};

/// Starts processes. Cheap to clone; clones share one supervisor, which is started at the first call and ends, with
/// everything below it, when the last clone is dropped.
#[derive(Clone)]
pub struct Processes {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    #[cfg(target_os = "linux")]
    link: std::sync::Mutex<Option<link::Link>>,
}

/// How processes are started.
#[derive(Clone, Debug)]
pub struct Options {
    /// The supervisor's command: a program (absolute) that calls [`crate::supervisor::main`], and its arguments.
    pub supervisor: Vec<OsString>,
    /// The whole environment of every child, as [`environment`] makes it.
    pub environment: Vec<(OsString, OsString)>,
    /// Makes this process a subreaper that ends its unknown children when the supervisor was killed. Only for a
    /// program that starts processes in no other way.
    pub adopt_strays: bool,
}

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments; a name without `/` is searched in the absolute entries of `PATH`.
    Argv(Vec<OsString>),
    /// A script for `bash`, or for `sh` where there is none.
    Shell(String),
}

impl Program {
    /// The argument array that is executed.
    pub fn argv(&self) -> Vec<OsString> {
        match self {
            Self::Argv(arguments) => arguments.clone(),
            Self::Shell(script) => {
                let bash = ["/bin/bash", "/usr/bin/bash"]
                    .into_iter()
                    .find(|path| std::path::Path::new(path).exists());
                vec![bash.unwrap_or("/bin/sh").into(), "-c".into(), script.into()]
            }
        }
    }
}

/// One process to run.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// What to start.
    pub program: Program,
    /// The working directory, canonical: the permit must name it, and a link that was put in its way is refused.
    pub directory: PathBuf,
    /// Variables on top of the environment of [`Options`].
    pub environment: Vec<(OsString, OsString)>,
    /// Replaces the environment of [`Options`] altogether by `environment`.
    pub is_environment_whole: bool,
    /// Wall time after which it is ended.
    pub limit: Duration,
    /// Time between SIGTERM and SIGKILL when it is ended by limit or cancellation.
    pub grace: Duration,
    /// Where the full output goes once it is too long; `None` to keep only its head and tail.
    pub spill: Option<Spill>,
}

impl ProcessSpec {
    /// Makes a specification with 5 s of grace, no variables of its own and no spilling.
    pub fn new(program: Program, directory: impl Into<PathBuf>, limit: Duration) -> Self {
        Self {
            program,
            directory: directory.into(),
            environment: Vec::new(),
            is_environment_whole: false,
            limit,
            grace: Duration::from_secs(5),
            spill: None,
        }
    }
}

/// One of the two outputs of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A process that is gone.
#[derive(Debug)]
pub struct Finished {
    /// How the program ended.
    pub exit: Exit,
    /// Whether it was ended because its limit was over.
    pub timed_out: bool,
    /// Whether it was ended because the caller cancelled.
    pub cancelled: bool,
    /// Wall time.
    pub duration: Duration,
    /// How many processes the program had left running; they were ended.
    pub leftovers: u32,
    /// How many processes could not be ended (another user's, or stuck in the kernel).
    pub survivors: u32,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
}

/// Says why a process could not be run to its end.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// The permit does not cover it.
    #[error(transparent)]
    Permit(#[from] PermitError),
    /// The program could not be executed.
    #[error("`{program}` could not be started: {source}")]
    Start {
        /// The program as it was asked for.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The working directory could not be entered.
    #[error("the working directory `{directory}` could not be entered: {source}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The supervisor could not be started or reached.
    #[error("the process supervisor could not be started: {0}")]
    Supervisor(#[source] io::Error),
    /// The supervisor was killed while the process ran; the process was ended with it.
    #[error("the process supervisor was ended while the command ran; the command was ended with it")]
    SupervisorEnded,
    /// The process that watched over this one was killed; what it watched over was ended.
    #[error("the process that watches over the command was ended; the command was ended with it")]
    NannyEnded,
    /// It could not be ended in time.
    #[error("the command did not end although it was killed; it may still run")]
    Stuck,
    /// The output could not be read.
    #[error("the output of the command could not be read: {0}")]
    Output(#[source] io::Error),
    /// There is no supervisor for this system.
    #[error("processes are supported on Linux only")]
    Unsupported,
}

impl Processes {
    /// Makes a handle; nothing is started yet.
    pub fn new(options: Options) -> Self {
        Self {
            shared: Arc::new(Shared {
                options,
                #[cfg(target_os = "linux")]
                link: std::sync::Mutex::new(None),
            }),
        }
    }

    /// The environment that children get, without the variables of a specification.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.shared.options.environment
    }

    /// Runs one process to its end. `show` gets what it prints, as it comes. When the returned future is dropped, the
    /// process and everything that it started are ended.
    ///
    /// # Errors
    /// [`ProcessError`]; a program that exits with a failure is not one.
    pub async fn run(
        &self,
        permit: &Permit,
        spec: ProcessSpec,
        show: impl FnMut(Stream, &[u8]) + Send,
        cancel: CancellationToken,
    ) -> Result<Finished, ProcessError> {
        permit.check_spawn(&spec.directory)?;
        #[cfg(target_os = "linux")]
        return run::run(&self.shared, spec, show, cancel).await;
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (show, cancel);
            Err(ProcessError::Unsupported)
        }
    }
}
