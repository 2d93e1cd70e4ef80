//! `alisio context explain`: which instruction files apply to a path.

use std::io::Write;
use std::path::Path;

use crate::app::App;
use crate::args::{ContextCommand, Permissions};
use crate::error::{CommandError, Exit};

/// Runs the command.
pub fn run(app: &App, command: ContextCommand) -> Result<Exit, CommandError> {
    let ContextCommand::Explain { path } = command;
    let config = app.configuration(&Permissions::default())?.loaded.config;
    let files = app.instructions(&config);
    let path = app.workspace.join(Path::new(&path));
    let mut out = anstream::stdout().lock();
    let applying: Vec<_> = files.eager().into_iter().chain(files.nested(&path)).collect();
    if applying.is_empty() {
        writeln!(out, "no instruction file applies to {}", path.display())?;
    }
    for file in applying {
        let kind = format!("{:?}", file.kind).to_lowercase();
        let scope = file.scope.map_or_else(|| "everywhere".to_owned(), |scope| scope.display().to_string());
        let cut = if file.truncated { ", cut at the budget" } else { "" };
        writeln!(out, "{} ({kind}, for {scope}{cut})", file.path.display())?;
    }
    Ok(Exit::Done)
}
