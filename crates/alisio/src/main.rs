//! The binary: arguments, startup configuration and trust, headless text and JSON Lines. It is the only place where
//! everything is put together.

#![allow(unreachable_pub, reason = "a binary has no outside; `pub` says what a module offers to the others")]

mod app;
mod args;
mod commands;
mod drive;
mod error;
mod output;
mod services;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::app::App;
use crate::args::{Cli, Command};
use crate::error::{CommandError, Exit};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == alisio_host::supervisor::ARGUMENT) {
        return alisio_host::supervisor::main();
    }
    let cli = Cli::parse();
    match dispatch(cli) {
        Ok(exit) => ExitCode::from(exit as u8),
        // Whoever read the output (`head`, a pager) has seen enough: nothing to tell.
        Err(CommandError { reader_left: true, exit, .. }) => ExitCode::from(exit as u8),
        Err(CommandError { exit, error, hints, .. }) => {
            let mut err = anstream::stderr();
            // Where even standard error is gone the exit code has to do.
            let _ = writeln!(err, "\x1b[31merror\x1b[0m: {}", output::harmless(&error));
            for hint in hints {
                let _ = writeln!(err, "  hint: {}", output::harmless(&hint));
            }
            ExitCode::from(exit as u8)
        }
    }
}

fn dispatch(cli: Cli) -> Result<Exit, CommandError> {
    let Cli { global, command } = cli;
    let app = || App::new(global.clone());
    match command {
        Command::Run(args) => commands::run::run(&app()?, args),
        Command::Resume(args) => commands::resume::run(&app()?, args),
        Command::Demo(args) => commands::demo::run(app()?, args),
        Command::Setup(args) => commands::setup::run(&app()?, &args),
        Command::Doctor => commands::doctor::run(&app()?),
        Command::Tools(args) => commands::tools::run(&app()?, &args),
        Command::Sessions(command) => commands::sessions::run(&app()?, command),
        Command::Trust(command) => commands::trust::run(&app()?, command),
        Command::Config(command) => commands::config::run(&app()?, command),
        Command::Context(command) => commands::context::run(&app()?, command),
        Command::Policy(command) => commands::policy::run(global, command),
        Command::Approvals(command) => commands::approvals::run(&app()?, command),
        Command::Grants(command) => commands::approvals::grants(&app()?, command),
        Command::Ledger(command) => commands::ledger::run(&app()?, command),
        Command::Logs { session, follow } => commands::ledger::logs(&app()?, &session, follow),
        Command::Completions { shell } => Ok(commands::completions::completions(shell)),
        Command::Man => commands::completions::man(),
    }
}
