//! `alisio approvals` and `alisio grants`: answers a waiting run from another terminal, and takes answers back.
//!
//! Whoever can read and write the state, the same user, may answer; a program that a tool started may not, or the model
//! could approve its own calls. Without a sandbox that is a hurdle and no wall: such a program can still edit the state.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;

use alisio_host::process::CEILING_VARIABLE;
use alisio_host::supervisor;
use alisio_protocol::{Answer, Approval, Life, Resolution, Width};
use alisio_store::{Doorbell, PendingApproval, Store};
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use crate::app::App;
use crate::args::{AnswerWord, ApprovalsCommand, GrantsCommand, WidthWord};
use crate::error::{CommandError, Exit};
use crate::output::{harmless, span};

/// Runs `alisio approvals`.
pub fn run(app: &App, command: ApprovalsCommand) -> Result<Exit, CommandError> {
    let store = app.store()?;
    match command {
        ApprovalsCommand::List => list(app, &store),
        ApprovalsCommand::Watch => watch(app, &store),
        ApprovalsCommand::Resolve { request, answer, width, keep, expires, feedback } => {
            refuse_tools(app)?;
            let answer = to_answer(answer, width, keep, expires, feedback)?;
            resolve(&store, &request, &answer)
        }
    }
}

/// Runs `alisio grants`.
pub fn grants(app: &App, command: GrantsCommand) -> Result<Exit, CommandError> {
    let store = app.store()?;
    let mut out = anstream::stdout();
    match command {
        GrantsCommand::List => {
            let all = store.all_grants()?;
            if all.is_empty() && !app.global.json {
                writeln!(out, "nothing is granted")?;
            }
            for grant in all {
                if app.global.json {
                    serde_json::to_writer(&mut out, &grant).map_err(std::io::Error::from)?;
                    writeln!(out)?;
                    continue;
                }
                let ends = match grant.expires_at {
                    Some(at) if at <= now_ms() => ", expired".to_owned(),
                    Some(at) => format!(", ends in {}", span(u64::try_from(at - now_ms()).unwrap_or(0))),
                    None => String::new(),
                };
                let what = match grant.width {
                    Width::Call => format!("one exact call of {}", grant.tool),
                    Width::Program => format!("program {}", grant.program.as_deref().unwrap_or("?")),
                    Width::Directory => format!("directory {}", grant.directory.as_deref().unwrap_or("?")),
                    Width::Host => format!("host {}", grant.host.as_deref().unwrap_or("?")),
                    Width::Tool => format!("tool {}", grant.tool),
                    Width::Effect => format!("effect {}", grant.effect),
                };
                let whose = match grant.life {
                    Life::Session => format!("session {}", grant.session_id),
                    Life::Kept => format!("every session of {}", grant.workspace),
                };
                writeln!(out, "{}  {}  {whose}{ends}", grant.id, harmless(&what))?;
            }
        }
        GrantsCommand::Revoke { grant } => {
            refuse_tools(app)?;
            let grant = store.revoke_grant(&grant, now_ms())?;
            writeln!(out, "took back {}; calls that run already go on", grant.id)?;
        }
    }
    Ok(Exit::Done)
}

/// Refuses a caller that a tool started.
fn refuse_tools(app: &App) -> Result<(), CommandError> {
    if app.env.get(CEILING_VARIABLE).is_some() || supervisor::is_above_this_process() {
        return Err(CommandError::usage("a program that a tool started can't answer for a person")
            .hint("answer from a terminal of your own"));
    }
    Ok(())
}

fn to_answer(
    word: AnswerWord,
    width: Option<WidthWord>,
    keep: bool,
    expires: Option<Duration>,
    feedback: Option<String>,
) -> Result<Answer, CommandError> {
    if word != AnswerWord::Always && (width.is_some() || keep || expires.is_some()) {
        return Err(CommandError::usage("--width, --keep and --expires go with `always`"));
    }
    if word != AnswerWord::Reject && feedback.is_some() {
        return Err(CommandError::usage("--feedback goes with `reject`"));
    }
    Ok(match word {
        AnswerWord::Once => Answer::Once,
        AnswerWord::Reject => Answer::Reject { feedback },
        AnswerWord::Always => Answer::Always {
            width: width.map(|width| match width {
                WidthWord::Call => Width::Call,
                WidthWord::Program => Width::Program,
                WidthWord::Directory => Width::Directory,
                WidthWord::Host => Width::Host,
                WidthWord::Tool => Width::Tool,
                WidthWord::Effect => Width::Effect,
            }),
            life: if keep { Life::Kept } else { Life::Session },
            expires_at: expires
                .map(|after| now_ms().saturating_add(i64::try_from(after.as_millis()).unwrap_or(i64::MAX))),
        },
    })
}

fn resolve(store: &Store, request: &str, answer: &Answer) -> Result<Exit, CommandError> {
    let row = store.approval(request)?;
    let resolved = store.resolve(&row.approval.request_id, answer, "terminal", now_ms())?;
    let mut out = anstream::stdout();
    let what = harmless(&row.approval.target).into_owned();
    writeln!(out, "{}: {} {what}", resolved.resolution.word(), row.approval.tool)?;
    for (id, resolution) in resolved.fanned_out {
        writeln!(out, "{}: {id} (the same answer covers it)", resolution.word())?;
    }
    if let Some(grant) = resolved.grant {
        writeln!(out, "remembered as {}; take it back with: alisio grants revoke {}", grant.id, grant.id)?;
    }
    Ok(Exit::Done)
}

fn list(app: &App, store: &Store) -> Result<Exit, CommandError> {
    let pending: Vec<_> =
        store.pending_approvals(None)?.into_iter().filter(|pending| pending.owner_alive).collect();
    let mut out = anstream::stdout();
    if app.global.json {
        for PendingApproval { approval, .. } in pending {
            writeln!(out, "{}", request_line(&approval))?;
        }
        return Ok(Exit::Done);
    }
    if pending.is_empty() {
        writeln!(out, "nothing waits")?;
    }
    for PendingApproval { approval, .. } in &pending {
        show(&mut out, approval)?;
    }
    Ok(Exit::Done)
}

/// Shows one question whole: what would run, where, and why it is asked.
fn show(out: &mut dyn Write, approval: &Approval) -> std::io::Result<()> {
    let waits = span(u64::try_from(now_ms() - approval.since).unwrap_or(0));
    writeln!(
        out,
        "\x1b[1m{}\x1b[0m  {} ({}), waiting {waits}",
        approval.request_id, approval.tool, approval.effect
    )?;
    for line in harmless(&approval.target).lines() {
        writeln!(out, "  {line}")?;
    }
    for (name, value) in approval.shown.as_object().into_iter().flatten() {
        if value.is_null() || value.as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        let mut lines = text.lines();
        writeln!(out, "  \x1b[2m{name}: {}\x1b[0m", harmless(lines.next().unwrap_or_default()))?;
        for line in lines {
            writeln!(out, "  \x1b[2m{}\x1b[0m", harmless(line))?;
        }
    }
    writeln!(out, "  asked because {}", harmless(&approval.reason))?;
    let widths: Vec<_> = approval.widths.iter().map(|width| format!("{width:?}").to_lowercase()).collect();
    writeln!(out, "  session {} · always at: {}", approval.session_id, widths.join(", "))?;
    writeln!(out, "  answer: alisio approvals resolve {} once|always|reject", approval.request_id)
}

fn watch(app: &App, store: &Store) -> Result<Exit, CommandError> {
    let bell = Doorbell::listen(store)?;
    let mut known: Vec<String> = Vec::new();
    let mut out = anstream::stdout();
    loop {
        let pending: Vec<_> =
            store.pending_approvals(None)?.into_iter().filter(|pending| pending.owner_alive).collect();
        for gone in
            known.extract_if(.., |id| !pending.iter().any(|pending| pending.approval.request_id == *id))
        {
            let row = store.approval(&gone)?;
            let resolution = row.resolution.unwrap_or(Resolution::Dropped);
            if app.global.json {
                writeln!(out, "{}", resolved_line(&gone, &resolution))?;
            } else {
                writeln!(out, "{}: {gone}", resolution.word())?;
            }
        }
        for PendingApproval { approval, .. } in &pending {
            if known.contains(&approval.request_id) {
                continue;
            }
            known.push(approval.request_id.clone());
            if app.global.json {
                writeln!(out, "{}", request_line(approval))?;
            } else {
                show(&mut out, approval)?;
            }
        }
        out.flush()?;
        wait(&bell)?;
    }
}

/// Waits until something has changed. Nothing wakes it otherwise.
pub fn wait(bell: &Doorbell) -> Result<(), CommandError> {
    let socket = bell.as_fd();
    let mut sockets = [PollFd::new(&socket, PollFlags::IN)];
    match poll(&mut sockets, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(std::io::Error::from(error).into()),
    }
    bell.try_recv();
    Ok(())
}

/// A question as embedders read it: the fields of the permission protocol, then ours.
pub fn request_line(approval: &Approval) -> Value {
    let mut line = json!({
        "type": "permission_request",
        "requestId": approval.request_id,
        "tool": approval.tool,
        "target": approval.target,
        "since": approval.since,
    });
    if let (Value::Object(line), Ok(Value::Object(rest))) = (&mut line, serde_json::to_value(approval)) {
        for (key, value) in rest {
            line.entry(key).or_insert(value);
        }
    }
    line
}

/// The end of a question as embedders read it.
pub fn resolved_line(request_id: &str, resolution: &Resolution) -> Value {
    json!({ "type": "permission_resolved", "requestId": request_id, "decision": resolution })
}

/// Now, in milliseconds since 1970.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}
