//! `alisio completions` and `alisio man`: both from the definitions of the command line.

use std::io;

use clap::CommandFactory;

use crate::args::{Cli, Shell};
use crate::error::{CommandError, Exit};

/// Prints the completion script of a shell.
pub fn completions(shell: Shell) -> Exit {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(shell, &mut Cli::command(), "alisio", &mut io::stdout());
    Exit::Done
}

/// Prints the manual page.
pub fn man() -> Result<Exit, CommandError> {
    clap_mangen::Man::new(Cli::command()).render(&mut io::stdout())?;
    Ok(Exit::Done)
}
