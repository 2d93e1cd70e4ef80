//! `alisio resume`: goes on with a session; without a prompt, says how it stands.

use std::io::Write;

use crate::app::App;
use crate::args::ResumeArgs;
use crate::commands::run::{Target, prompt_text, work};
use crate::commands::sessions::state_lines;
use crate::error::{CommandError, Exit};

/// Runs the command.
pub fn run(app: &App, args: ResumeArgs) -> Result<Exit, CommandError> {
    if let Some(prompt) = args.prompt {
        let prompt = prompt_text(Some(&prompt))?;
        let target = args.session.map_or(Target::Latest, Target::Named);
        return work(app, target, prompt, &args.permissions);
    }
    let store = app.store()?;
    let id = match &args.session {
        Some(prefix) => store.find(prefix).map_err(|error| {
            let error = CommandError::from(error);
            // No id holds a blank, so this was meant as a prompt.
            if prefix.contains(char::is_whitespace) {
                return error
                    .hint("go on with the newest session of this directory: `alisio run --continue PROMPT`");
            }
            error
        })?,
        None => store.latest(&app.workspace)?.ok_or_else(|| {
            CommandError::usage(format!("no session of `{}` is kept", app.workspace.display()))
                .hint("begin one with `alisio run PROMPT`")
        })?,
    };
    let mut out = anstream::stdout();
    for line in state_lines(&store, &id)? {
        writeln!(out, "{line}")?;
    }
    Ok(Exit::Done)
}
