//! What `run_process` and `shell` share: the working directory, the call itself, and how its end is told.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alisio_host::process::{Captured, Exit, Finished, ProcessSpec, Processes, Program, Spill};
use alisio_host::workspace::{Access, Workspace};
use alisio_policy::{Permit, Request, Scope};
use alisio_protocol::{Sha256, ToolCall, ToolResult, ToolSpec, UiBlock};
use alisio_sdk::{BoxFuture, InputError, Prepared, ToolContext};

use crate::call::{OUTPUT_LIMIT, resolve};
use crate::output::{Live, bounded, spill_name};

/// Wall time of a call that asks for none.
const DEFAULT_LIMIT: u64 = 120_000;
/// The longest wall time that a call may ask for.
const LONGEST_LIMIT: u64 = 3_600_000;
/// Bytes of a command line that are worth passing on; more is refused before the system would.
const LONGEST_COMMAND: usize = 1024 * 1024;
/// Bytes that a terminal block shows.
const BLOCK_LIMIT: usize = 256 * 1024;

/// A command that is understood and waits for its permit.
pub(crate) struct Command {
    request: Request,
    processes: Processes,
    program: Program,
    directory: PathBuf,
    shown_directory: String,
    limit: Duration,
}

/// Makes the call of `program` ready.
pub(crate) fn prepare(
    spec: &ToolSpec,
    call: &ToolCall,
    workspace: &Arc<Workspace>,
    processes: &Processes,
    program: Program,
    cwd: Option<&str>,
    timeout_ms: Option<u64>,
) -> Result<Box<dyn Prepared>, InputError> {
    let argv = program.argv();
    if argv.iter().map(|argument| argument.len() + 1).sum::<usize>() > LONGEST_COMMAND {
        return Err(InputError("the command is longer than 1 MiB; put the data into a file".into()));
    }
    if argv.iter().any(|argument| argument.as_encoded_bytes().contains(&0)) {
        return Err(InputError("the command holds a NUL character, which no program can be given".into()));
    }
    let limit = timeout_ms.unwrap_or(DEFAULT_LIMIT);
    if !(1..=LONGEST_LIMIT).contains(&limit) {
        return Err(InputError(format!("`timeoutMs` must be from 1 to {LONGEST_LIMIT}")));
    }
    let (directory, outside) = match cwd {
        None => (workspace.root().to_owned(), Vec::new()),
        Some(cwd) => {
            let absolute = workspace.root().join(cwd);
            let fail = |reason: &str| InputError(format!("`cwd`: `{cwd}` {reason}"));
            let directory =
                absolute.canonicalize().map_err(|error| fail(&format!("can't be entered: {error}")))?;
            if !directory.is_dir() {
                return Err(fail("is not a directory"));
            }
            let text = directory.to_str().ok_or_else(|| fail("is not valid UTF-8"))?;
            let outside = resolve(workspace, text, Access::Read)?.outside();
            (directory, outside)
        }
    };
    let count = argv.len().to_string();
    let limit_text = limit.to_string();
    let mut fields = vec![spec.name.as_bytes(), count.as_bytes()];
    fields.extend(argv.iter().map(|argument| argument.as_encoded_bytes()));
    fields.extend([directory.as_os_str().as_encoded_bytes(), limit_text.as_bytes()]);
    let request = Request {
        call: call.id.clone(),
        tool: spec.name.clone(),
        effect: spec.effect,
        scope: Scope { spawns_in: Some(directory.clone()), ..Scope::default() },
        outside,
        digest: Sha256::of_fields(fields),
        subject: alisio_policy::Subject::default(),
    };
    Ok(Box::new(Command {
        request,
        processes: processes.clone(),
        program,
        shown_directory: workspace.display(&directory),
        directory,
        limit: Duration::from_millis(limit),
    }))
}

impl Prepared for Command {
    fn request(&self) -> Request {
        self.request.clone()
    }

    fn run(self: Box<Self>, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolResult> {
        Box::pin(async move {
            if let Err(error) = permit.check_digest(&self.request.digest) {
                return ToolResult::error(error.to_string());
            }
            let mut spec = ProcessSpec::new(self.program.clone(), &self.directory, self.limit);
            spec.spill =
                Some(Spill { folder: context.spill_folder.clone(), name: spill_name(&context.call) });
            let mut live = Live::new(context.progress.clone());
            let finished =
                self.processes.run(&permit, spec, |stream, bytes| live.show(stream, bytes), context.cancel);
            match finished.await {
                Ok(finished) => {
                    live.finish();
                    self.tell(&finished)
                }
                Err(error) => ToolResult::error(error.to_string()),
            }
        })
    }
}

impl Command {
    fn tell(&self, finished: &Finished) -> ToolResult {
        let mut text = match finished.exit {
            Exit::Code(code) => format!("exit code {code}"),
            Exit::Signal(signal) => format!("ended by signal {signal}"),
        };
        if finished.timed_out {
            let _ = write!(text, "; it was ended after its limit of {} ms", self.limit.as_millis());
        } else if finished.cancelled {
            text.push_str("; it was ended because the run was stopped");
        }
        if finished.leftovers > 0 {
            let _ =
                write!(text, "\nnote: {} still running at its exit: ended", processes(finished.leftovers));
        }
        if finished.survivors > 0 {
            let _ = write!(text, "\nwarning: {} could not be ended", processes(finished.survivors));
        }
        let (stdout, stderr) = shares(&finished.stdout, &finished.stderr);
        for (name, captured, share) in
            [("stdout", &finished.stdout, stdout), ("stderr", &finished.stderr, stderr)]
        {
            if captured.total() > 0 {
                let _ = write!(text, "\n{name}:\n{}", bounded(captured, share));
            }
        }
        if finished.stdout.total() + finished.stderr.total() == 0 {
            text.push_str("\n(no output)");
        }
        let is_error = finished.exit != Exit::Code(0) || finished.timed_out || finished.cancelled;
        let result = if is_error { ToolResult::error(text) } else { ToolResult::text(text) };
        result.with_block(self.block(finished))
    }

    fn block(&self, finished: &Finished) -> UiBlock {
        let mut output = finished.stdout.last(BLOCK_LIMIT);
        output.extend(finished.stderr.last(BLOCK_LIMIT));
        let output = output.split_off(output.len().saturating_sub(BLOCK_LIMIT));
        let mut output = String::from_utf8_lossy(&output).into_owned();
        // A replacement character is longer than the byte that it stands for.
        output.drain(..output.ceil_char_boundary(output.len().saturating_sub(BLOCK_LIMIT)));
        UiBlock::Terminal {
            output,
            command: match &self.program {
                Program::Shell(script) => script.clone(),
                Program::Argv(argv) => argv
                    .iter()
                    .map(|argument| quoted(&argument.to_string_lossy()))
                    .collect::<Vec<_>>()
                    .join(" "),
            },
            cwd: Some(self.shown_directory.clone()),
            exit_code: match finished.exit {
                Exit::Code(code) => Some(code),
                Exit::Signal(_) => None,
            },
            duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
            truncated: finished.stdout.total() + finished.stderr.total() > BLOCK_LIMIT as u64,
        }
    }
}

fn processes(count: u32) -> String {
    if count == 1 { "1 process".into() } else { format!("{count} processes") }
}

/// Divides the room of a result: half for each stream, and what one does not need for the other.
fn shares(stdout: &Captured, stderr: &Captured) -> (usize, usize) {
    let half = OUTPUT_LIMIT / 2;
    let needs = |captured: &Captured| usize::try_from(captured.total()).unwrap_or(usize::MAX);
    let stdout_share = half.max(OUTPUT_LIMIT.saturating_sub(needs(stderr)));
    (stdout_share, OUTPUT_LIMIT - needs(stdout).min(stdout_share))
}

/// Writes an argument as a shell would take it, for people to read.
fn quoted(argument: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte);
    if !argument.is_empty() && argument.bytes().all(is_plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}
