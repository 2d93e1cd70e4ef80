//! Runs `git` to look at a repository whose configuration nobody has vouched for.
//!
//! A repository's own configuration can name programs in more places than anybody can list: file system monitors,
//! external diffs, text conversion, filters of any name, hooks, pagers, aliases, credential helpers, transports,
//! included files, configuration of submodules. Turning each off by name is a race against the next version of git.
//! So git never reads that configuration. For each call we make a [`mirror`]: a private git directory with a `config`
//! of our own, into which only keys of a list are copied, their values checked. The objects are the real ones; the
//! index is a copy, so that nothing of the user's is ever written.
//!
//! What differs from plain git, on purpose: filters (among them LFS) do not run, so a filtered file whose time stamp
//! changed can show as modified; changes inside submodules do not show, only a submodule at another commit; objects
//! that a partial clone left out are not fetched, which is an error; a `.git` file must name a git directory that
//! names it back or belongs to a repository around it.

mod mirror;
mod repository;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alisio_host::process::{Exit, Finished, ProcessError, ProcessSpec, Processes, Program, Spill};
use alisio_host::workspace::Workspace;
use alisio_policy::{Permit, Request, Scope};
use alisio_protocol::{Sha256, ToolCall, ToolResult, ToolSpec};
use alisio_sdk::{BoxFuture, Prepared, ToolContext};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::call::OUTPUT_LIMIT;
use crate::output::{bounded, spill_name};

use mirror::Mirror;
pub(crate) use repository::RepositoryError;

/// Wall time of one git command.
const LIMIT: Duration = Duration::from_secs(60);

/// Says why git could not answer.
#[derive(Debug, Error)]
pub(crate) enum GitError {
    #[error("`git` was not found in an absolute entry of PATH outside the workspace")]
    NoGit,
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("git could not read the repository's configuration: {0}")]
    Configuration(String),
    #[error("the call broke off: {0}")]
    Broken(String),
}

/// A git command that is understood and waits for its permit.
pub(crate) struct GitCall {
    request: Request,
    processes: Processes,
    root: PathBuf,
    git: Option<PathBuf>,
    arguments: Vec<OsString>,
    when_empty: &'static str,
}

impl GitCall {
    /// Makes `git` with these arguments ready, for the workspace.
    pub(crate) fn new(
        spec: &ToolSpec,
        call: &ToolCall,
        workspace: &Workspace,
        processes: &Processes,
        arguments: Vec<OsString>,
        when_empty: &'static str,
    ) -> Self {
        let root = workspace.root().to_owned();
        let mut fields = vec![spec.name.as_bytes()];
        fields.extend(arguments.iter().map(|argument| argument.as_encoded_bytes()));
        fields.push(root.as_os_str().as_encoded_bytes());
        let request = Request {
            call: call.id.clone(),
            tool: spec.name.clone(),
            effect: spec.effect,
            scope: Scope { reads: vec![root.clone()], writes: Vec::new(), spawns_in: Some(root.clone()) },
            outside: Vec::new(),
            digest: Sha256::of_fields(fields),
            subject: alisio_policy::Subject::default(),
        };
        let git = find_git(processes, workspace);
        Self { request, processes: processes.clone(), root, git, arguments, when_empty }
    }
}

impl Prepared for GitCall {
    fn request(&self) -> Request {
        self.request.clone()
    }

    fn run(self: Box<Self>, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolResult> {
        Box::pin(async move {
            if let Err(error) = permit.check_digest(&self.request.digest) {
                return ToolResult::error(error.to_string());
            }
            match self.ask(&permit, &context).await {
                Ok(result) => result,
                Err(error) => ToolResult::error(error.to_string()),
            }
        })
    }
}

impl GitCall {
    async fn ask(&self, permit: &Permit, context: &ToolContext) -> Result<ToolResult, GitError> {
        let git = Git {
            program: self.git.as_deref().ok_or(GitError::NoGit)?,
            processes: &self.processes,
            permit,
            root: &self.root,
            cancel: &context.cancel,
        };
        let mirror = Mirror::make(&git).await?;
        let spill = Spill { folder: context.spill_folder.clone(), name: spill_name(&context.call) };
        let finished = git.run(&mirror, &self.arguments, Some(spill)).await?;
        if finished.exit != Exit::Code(0) {
            let said = mirror.unmask(&bounded(&finished.stderr, OUTPUT_LIMIT / 2));
            let ending = match finished.exit {
                _ if finished.timed_out => format!("did not end within {} s", LIMIT.as_secs()),
                _ if finished.cancelled => "was stopped".to_owned(),
                Exit::Code(code) => format!("failed with exit code {code}"),
                Exit::Signal(signal) => format!("was ended by signal {signal}"),
            };
            return Ok(ToolResult::error(format!("git {ending}\n{said}")));
        }
        Ok(ToolResult::text(if finished.stdout.total() == 0 {
            self.when_empty.to_owned()
        } else {
            bounded(&finished.stdout, OUTPUT_LIMIT)
        }))
    }
}

/// What it takes to run git in the workspace.
struct Git<'a> {
    program: &'a Path,
    processes: &'a Processes,
    permit: &'a Permit,
    root: &'a Path,
    cancel: &'a CancellationToken,
}

impl Git<'_> {
    async fn run(
        &self,
        mirror: &Mirror,
        arguments: &[OsString],
        spill: Option<Spill>,
    ) -> Result<Finished, GitError> {
        let argv =
            [self.program.as_os_str().to_owned()].into_iter().chain(arguments.iter().cloned()).collect();
        let mut spec = ProcessSpec::new(Program::Argv(argv), self.root, LIMIT);
        spec.is_environment_whole = true;
        spec.environment = mirror.environment();
        spec.spill = spill;
        Ok(self.processes.run(self.permit, spec, |_, _| (), self.cancel.clone()).await?)
    }
}

/// Finds git where the workspace has no say: a checked-out `git` must not be what we run.
fn find_git(processes: &Processes, workspace: &Workspace) -> Option<PathBuf> {
    let path = processes.environment().iter().find(|(name, _)| name == "PATH").map(|(_, path)| path)?;
    std::env::split_paths(path).filter(|directory| directory.is_absolute()).find_map(|directory| {
        let program = directory.join("git").canonicalize().ok()?;
        let is_ours = program.is_file() && workspace.roots().all(|root| !program.starts_with(root));
        is_ours.then_some(program)
    })
}
