//! `alisio trust`: which directories may bring their own configuration, agents, skills and plugins.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use alisio_store::trust::{self, Answer, Status};
use serde_json::json;

use crate::app::{App, confirm};
use crate::args::TrustCommand;
use crate::error::{CommandError, Exit};

/// Runs the command.
pub fn run(app: &App, command: TrustCommand) -> Result<Exit, CommandError> {
    let mut decisions = trust::Store::open(&app.dirs.state_home);
    if let Some(problem) = decisions.problem() {
        writeln!(anstream::stderr(), "note: {problem}")?;
    }
    match command {
        TrustCommand::Add { path, yes } => add(&mut decisions, &below(&app.workspace, &path), yes),
        TrustCommand::List => list(app, &decisions),
        TrustCommand::Revoke { path } => {
            let path = below(&app.workspace, &path);
            let forgotten = decisions.revoke(&path).map_err(CommandError::failed)?;
            let mut out = anstream::stdout();
            if !forgotten {
                return Err(CommandError::usage(format!("nothing was decided about `{}`", path.display())));
            }
            writeln!(out, "forgot the decision about {}; it will be asked again", path.display())?;
            Ok(Exit::Done)
        }
    }
}

/// Joins two paths without leaving a `.` in between, so that they read well.
fn below(workspace: &Path, path: &Path) -> PathBuf {
    workspace.join(path).components().collect()
}

fn add(decisions: &mut trust::Store, path: &Path, yes: bool) -> Result<Exit, CommandError> {
    let checked = decisions.check(path).map_err(CommandError::usage)?;
    let mut out = anstream::stdout();
    let directory = path.display();
    let Some(snapshot) = checked.snapshot else {
        let reason = match checked.status {
            Status::CannotTrust { reason } => reason,
            _ => "not everything in it could be read".to_owned(),
        };
        return Err(CommandError::usage(format!("`{directory}` can't be trusted: {reason}")));
    };
    if snapshot.is_empty() {
        writeln!(out, "{directory} brings nothing that would need trust")?;
        return Ok(Exit::Done);
    }
    let inventory = snapshot.inventory();
    writeln!(out, "{directory} would load:")?;
    for item in &inventory.items {
        let note = item.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        writeln!(out, "  {:<8} {}{note}", format!("{:?}", item.kind).to_lowercase(), item.path)?;
    }
    for (key, value) in &inventory.settings {
        writeln!(out, "  sets     {key} = {value}")?;
    }
    writeln!(
        out,
        "trusting it lets these files choose where your key is sent and what is started. Any change of them asks again."
    )?;
    if checked.status == Status::Trusted {
        writeln!(out, "it is trusted already, exactly as it is now")?;
        return Ok(Exit::Done);
    }
    let answer = if yes {
        Answer::Trusted
    } else if !std::io::stdin().is_terminal() {
        return Err(CommandError::usage("trusting asks first, and nobody can answer").hint("pass --yes"));
    } else if confirm("trust it?")? {
        Answer::Trusted
    } else {
        Answer::Declined
    };
    // What is stored is bound to what was shown, not to what lies there by now.
    decisions.add(&snapshot, answer).map_err(CommandError::failed)?;
    let word = if answer == Answer::Trusted { "trusted" } else { "declined" };
    writeln!(out, "{word}: {directory}; undo with `alisio trust revoke {directory}`")?;
    Ok(Exit::Done)
}

fn list(app: &App, decisions: &trust::Store) -> Result<Exit, CommandError> {
    let mut out = anstream::stdout();
    let remembered = decisions.list();
    if remembered.is_empty() && !app.global.json {
        writeln!(out, "nothing was decided yet")?;
    }
    for entry in remembered {
        let answer = if entry.answer == Answer::Trusted { "trusted" } else { "declined" };
        if app.global.json {
            let line =
                json!({"workspace": entry.workspace, "decision": answer, "decidedAt": entry.decided_at});
            writeln!(out, "{line}")?;
            continue;
        }
        let now = match decisions.check(&entry.workspace).map(|checked| checked.status) {
            Ok(Status::Changed { .. }) => ", changed since: not in force",
            Ok(Status::CannotTrust { .. }) => ", can't be read whole: not in force",
            Ok(_) => "",
            Err(_) => ", gone",
        };
        let decided = entry.decided_at.get(..16).unwrap_or(&entry.decided_at).replace('T', " ") + "Z";
        writeln!(out, "{answer:<8}  {decided}  {}{now}", entry.workspace.display())?;
    }
    Ok(Exit::Done)
}
