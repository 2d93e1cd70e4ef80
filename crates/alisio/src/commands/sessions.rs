//! `alisio sessions`: lists, shows, exports, repairs and deletes kept sessions.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use alisio_engine::Clock;
use alisio_protocol::{Message, SessionId};
use alisio_store::{ListFilter, RunStatus, Store, StoreError};
use serde_json::json;

use crate::app::{App, confirm};
use crate::args::SessionsCommand;
use crate::error::{CommandError, Exit};
use crate::output::{count, harmless, summarize};

/// Runs the command.
pub fn run(app: &App, command: SessionsCommand) -> Result<Exit, CommandError> {
    let store = app.store()?;
    match command {
        SessionsCommand::List { limit, offset, all } => list(app, &store, limit, offset, all),
        SessionsCommand::Show { session } => show(app, &store, &store.find(&session)?),
        SessionsCommand::Export { session } => {
            let id = store.find(&session)?;
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            store.export(&id, &mut out)?;
            out.flush()?;
            Ok(Exit::Done)
        }
        SessionsCommand::Delete { sessions, yes } => delete(&store, &sessions, yes),
        SessionsCommand::Recover { session, acknowledge } => {
            recover(&store, &store.find(&session)?, acknowledge)
        }
        SessionsCommand::Gc { older_than_days, yes } => gc(&store, older_than_days, yes),
    }
}

fn list(app: &App, store: &Store, limit: usize, offset: usize, all: bool) -> Result<Exit, CommandError> {
    let workspace = (!all).then_some(app.workspace.as_path());
    let sessions = store.list(&ListFilter { workspace, limit, offset })?;
    let mut out = anstream::stdout().lock();
    if app.global.json {
        for session in sessions {
            let line = json!({
                "id": session.id, "title": session.title, "workspace": session.workspace, "model": session.model,
                "status": session.status, "createdAt": session.created_at, "updatedAt": session.updated_at,
                "messages": session.messages, "runs": session.runs,
            });
            writeln!(out, "{line}")?;
        }
        return Ok(Exit::Done);
    }
    if sessions.is_empty() {
        let hint = if all { "" } else { " of this directory (`--all` lists those of every directory)" };
        writeln!(out, "no session{hint}")?;
    }
    for session in sessions {
        let status = session.status.map_or("empty", RunStatus::as_str);
        let updated = session.updated_at.get(..16).unwrap_or(&session.updated_at).replace('T', " ") + "Z";
        let title = harmless(&session.title);
        write!(out, "{}  {updated}  {status:<14} {title}", session.id)?;
        if all {
            write!(out, "  \x1b[2m{}\x1b[0m", session.workspace.display())?;
        }
        writeln!(out)?;
    }
    Ok(Exit::Done)
}

/// Says how a session stands and how to go on with it.
pub fn state_lines(store: &Store, id: &SessionId) -> Result<Vec<String>, CommandError> {
    let row = store.session(id)?.ok_or_else(|| StoreError::NoSession(id.to_string()))?;
    let mut lines = vec![
        format!("session {id}: {}", harmless(&row.title)),
        format!("  workspace {}", row.workspace.display()),
        format!("  model {} at {}", row.model, row.provider),
    ];
    let mut next = format!("go on with: alisio resume {id} \"…\"");
    lines.push(format!("  last run: {}", row.status.map_or("none yet", RunStatus::as_str)));
    if row.status == Some(RunStatus::Running) {
        // A run whose process is gone counts as interrupted, so somebody is at work.
        lines.push("another process is working on it: wait until that run ends".to_owned());
        return Ok(lines);
    }
    let view = store.view(id)?;
    lines.push(format!("  {}", count(view.messages.len() as u64, "message")));
    for repair in &view.repairs {
        lines.push(format!("  note: {}", harmless(repair)));
    }
    if !view.uncertain.is_empty() {
        lines.push("  cut while these calls were running; nobody knows how they ended:".to_owned());
        for call in &view.uncertain {
            let about = harmless(&call.arguments);
            lines.push(format!("    {} {} (begun {}): {about}", call.effect, call.tool, call.started_at));
        }
        next = format!(
            "look at what they may have done, then: alisio sessions recover {id} --acknowledge\nthen {next}"
        );
    }
    lines.push(next);
    Ok(lines)
}

fn show(app: &App, store: &Store, id: &SessionId) -> Result<Exit, CommandError> {
    let messages = store.view(id)?.messages;
    let mut out = anstream::stdout().lock();
    if app.global.json {
        for message in &messages {
            serde_json::to_writer(&mut out, message).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        return Ok(Exit::Done);
    }
    for line in state_lines(store, id)? {
        writeln!(out, "{line}")?;
    }
    for message in &messages {
        writeln!(out)?;
        match message {
            Message::User(user) => {
                let text = user.display.as_ref().unwrap_or(&user.text);
                writeln!(out, "\x1b[1m> {}\x1b[0m", harmless(text))?;
                if !user.attachments.is_empty() {
                    writeln!(out, "  [{}]", count(user.attachments.len() as u64, "image"))?;
                }
            }
            Message::Assistant(answer) => {
                if !answer.text.is_empty() {
                    writeln!(out, "{}", harmless(&answer.text))?;
                }
                for call in &answer.calls {
                    writeln!(out, "\x1b[2m* {} {}\x1b[0m", call.name, harmless(&summarize(&call.arguments)))?;
                }
            }
            Message::Tool(answer) => {
                let text = answer.result.text_projection();
                let mark = if answer.result.is_error { "x" } else { "|" };
                for line in text.lines().take(8) {
                    writeln!(out, "\x1b[2m  {mark} {}\x1b[0m", harmless(line))?;
                }
                let n_more = text.lines().count().saturating_sub(8);
                if n_more > 0 {
                    writeln!(
                        out,
                        "\x1b[2m  {mark} … {} (`alisio sessions export {id}`)\x1b[0m",
                        count(n_more as u64, "more line")
                    )?;
                }
            }
        }
    }
    Ok(Exit::Done)
}

fn delete(store: &Store, sessions: &[String], yes: bool) -> Result<Exit, CommandError> {
    let ids = sessions.iter().map(|prefix| store.find(prefix)).collect::<Result<Vec<_>, _>>()?;
    let question = format!("delete the contents of {} for good?", count(ids.len() as u64, "session"));
    if !yes && !agreed(&question)? {
        return Ok(Exit::Done);
    }
    for id in &ids {
        store.delete(store.lock(id)?)?;
        writeln!(anstream::stderr(), "deleted session {id}; its entries in the ledger stay")?;
    }
    Ok(Exit::Done)
}

fn recover(store: &Store, id: &SessionId, acknowledge: bool) -> Result<Exit, CommandError> {
    let writer = store.lock(id)?;
    let uncertain = writer.load()?.uncertain;
    let mut out = anstream::stdout().lock();
    if uncertain.is_empty() {
        writeln!(out, "nothing is uncertain in session {id}; go on with: alisio resume {id} \"…\"")?;
        return Ok(Exit::Done);
    }
    for call in &uncertain {
        let about = harmless(&call.arguments);
        writeln!(out, "{} {} (begun {}): {about}", call.effect, call.tool, call.started_at)?;
    }
    if !acknowledge {
        writeln!(
            out,
            "nobody knows how these calls ended. Look at what they may have done, then pass --acknowledge"
        )?;
        return Ok(Exit::Done);
    }
    let closed = writer.acknowledge_uncertain(&Clock::System.stamp())?;
    writeln!(
        out,
        "closed {} as uncertain; nothing was checked, finished or undone. Go on with: alisio resume {id} \"…\"",
        count(closed.len() as u64, "call")
    )?;
    Ok(Exit::Done)
}

/// Asks before something is deleted; where nobody can answer, that is an error.
fn agreed(question: &str) -> Result<bool, CommandError> {
    if !std::io::stdin().is_terminal() {
        return Err(CommandError::usage("deleting asks first, and nobody can answer").hint("pass --yes"));
    }
    confirm(question)
}

fn gc(store: &Store, older_than_days: Option<u32>, yes: bool) -> Result<Exit, CommandError> {
    if let Some(days) = older_than_days
        && !yes
    {
        let days = count(u64::from(days), "day");
        if !agreed(&format!("delete every session, of every directory, that nobody touched for {days}?"))? {
            return Ok(Exit::Done);
        }
    }
    let keep_for = older_than_days.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60));
    let removed = store.gc(&Clock::System.stamp(), keep_for)?;
    writeln!(
        anstream::stdout(),
        "removed {}, {} ({}), {}, {}",
        count(removed.sessions.len() as u64, "session"),
        count(removed.blobs, "stored content"),
        count(removed.bytes, "byte"),
        count(removed.spill_folders, "output folder"),
        count(removed.lock_files, "lock file")
    )?;
    Ok(Exit::Done)
}
