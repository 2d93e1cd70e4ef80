//! The built-in tools, one file each, and the one list of them.
//!
//! A tool reads its input, resolves its paths and says what the call would do; it never decides whether that may
//! happen. What runs is the value that was shown to the gate. Files are touched only through
//! [`Workspace`].

mod call;
mod command;
mod context_explain;
mod diff;
mod edit;
mod edit_file;
mod example;
mod git;
mod git_diff;
mod git_status;
mod list_files;
mod output;
mod read_file;
mod run_process;
mod search_text;
mod shell;
mod text;
mod walk;
mod write_file;

use std::sync::Arc;

use alisio_host::process::Processes;
use alisio_host::workspace::Workspace;
use alisio_sdk::{InstructionSource, Tool};

pub use example::{Example, Expected, examples};

/// What the built-in tools work with.
#[derive(Clone)]
pub struct ToolHost {
    /// The directories that may be touched.
    pub workspace: Arc<Workspace>,
    /// The instruction files of directories.
    pub instructions: Arc<dyn InstructionSource>,
    /// What starts processes.
    pub processes: Processes,
}

/// Makes every built-in tool. A new one is a file and a line here, or in [`files`].
pub fn builtin(host: ToolHost) -> Vec<Arc<dyn Tool>> {
    let ToolHost { workspace, instructions, processes } = host;
    let mut tools = files(&workspace, &instructions);
    tools.extend(commands(&workspace, &processes));
    tools
}

/// Makes the tools that start processes: git's, which only read, and those that run anything.
pub fn commands(workspace: &Arc<Workspace>, processes: &Processes) -> Vec<Arc<dyn Tool>> {
    let both = || (Arc::clone(workspace), processes.clone());
    let (git_status, git_diff, run_process, shell) = (both(), both(), both(), both());
    vec![
        Arc::new(git_status::GitStatus::new(git_status.0, git_status.1)),
        Arc::new(git_diff::GitDiff::new(git_diff.0, git_diff.1)),
        Arc::new(run_process::RunProcess::new(run_process.0, run_process.1)),
        Arc::new(shell::Shell::new(shell.0, shell.1)),
    ]
}

/// Makes the tools that work on files alone and start no process.
pub fn files(workspace: &Arc<Workspace>, instructions: &Arc<dyn InstructionSource>) -> Vec<Arc<dyn Tool>> {
    let workspace = || Arc::clone(workspace);
    vec![
        Arc::new(read_file::ReadFile::new(workspace())),
        Arc::new(list_files::ListFiles::new(workspace())),
        Arc::new(search_text::SearchText::new(workspace())),
        Arc::new(context_explain::ContextExplain::new(workspace(), Arc::clone(instructions))),
        Arc::new(write_file::WriteFile::new(workspace())),
        Arc::new(edit_file::EditFile::new(workspace())),
    ]
}
