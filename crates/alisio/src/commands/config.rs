//! `alisio config`: the effective configuration, and the schema of its files.

use std::io::Write;

use serde_json::json;

use crate::app::App;
use crate::args::{ConfigCommand, Permissions};
use crate::commands::run::note;
use crate::error::{CommandError, Exit};

/// Runs the command.
pub fn run(app: &App, command: ConfigCommand) -> Result<Exit, CommandError> {
    match command {
        ConfigCommand::Show => show(app),
        ConfigCommand::Schema => {
            let mut out = std::io::stdout().lock();
            serde_json::to_writer_pretty(&mut out, &alisio_store::config::schema())
                .map_err(std::io::Error::from)?;
            writeln!(out)?;
            Ok(Exit::Done)
        }
    }
}

fn show(app: &App) -> Result<Exit, CommandError> {
    let configured = app.configuration(&Permissions::default())?;
    let loaded = &configured.loaded;
    let mut out = anstream::stdout().lock();
    if app.global.json {
        let keys: Vec<_> = loaded
            .explain()
            .into_iter()
            .map(|entry| json!({"key": entry.path, "value": entry.value, "origin": entry.origin.to_string()}))
            .collect();
        let notices: Vec<_> = loaded.notices.iter().map(ToString::to_string).collect();
        serde_json::to_writer_pretty(
            &mut out,
            &json!({"keys": keys, "files": loaded.files, "notices": notices}),
        )
        .map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(Exit::Done);
    }
    for notice in configured.trust_note.iter().cloned().chain(loaded.notices.iter().map(ToString::to_string))
    {
        note(&notice);
    }
    for entry in loaded.explain() {
        writeln!(out, "{} = {}  \x1b[2m# {}\x1b[0m", entry.path, entry.value, entry.origin)?;
    }
    Ok(Exit::Done)
}
