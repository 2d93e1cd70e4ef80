//! `alisio run`: works on one prompt and ends.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;

use alisio_engine::{Approvals, Cancel, Clock, OpenSession, Prompt};
use alisio_policy::Answering;
use alisio_protocol::{Attachment, RunId, SessionId, UserMessage};
use alisio_store::{NewSession, Store};
use base64::Engine as _;

use crate::app::{Agent, App, EngineParts, limits};
use crate::args::{ApprovalsMode, Permissions, RunArgs};
use crate::commands::stdio;
use crate::drive::drive;
use crate::error::{CommandError, Exit};
use crate::output::{JsonLines, Surface, Terminal, Text};

/// Images of one prompt.
const MAX_ATTACHMENTS: usize = 4;
/// Bytes of one image.
const MAX_ATTACHMENT_BYTES: u64 = 5 * 1024 * 1024;

/// Which session a prompt belongs to.
pub enum Target {
    /// A new one.
    New,
    /// The newest of this directory.
    Latest,
    /// The one whose id begins so.
    Named(String),
}

/// Runs the command.
pub fn run(app: &App, args: RunArgs) -> Result<Exit, CommandError> {
    let prompt = prompt_text(args.prompt.as_deref()).map_err(|error| {
        if args.prompt.is_none() && !args.permissions.add_dir.is_empty() {
            return error.hint("--add-dir takes every word up to the next flag: put the prompt before it");
        }
        error
    })?;
    let target = if args.continue_latest { Target::Latest } else { Target::New };
    work(app, target, prompt, &args.permissions)
}

/// Works on a prompt in a session. `resume` does the same with another target.
pub fn work(
    app: &App,
    target: Target,
    text: String,
    permissions: &Permissions,
) -> Result<Exit, CommandError> {
    let configured = app.configuration(permissions)?;
    let config = &configured.loaded.config;
    if !app.global.quiet {
        for notice in configured
            .trust_note
            .iter()
            .cloned()
            .chain(configured.loaded.notices.iter().map(ToString::to_string))
        {
            note(&notice);
        }
    }
    let agent = Agent::resolve(permissions.agent.as_deref(), &config.agents.active)?;
    let mut authority = app.authority(permissions, &configured.loaded, agent)?;
    let mode = permissions.approvals.unwrap_or(ApprovalsMode::Deny);
    if mode != ApprovalsMode::Deny {
        authority.answering = Answering::Person;
    }
    app.confirm_workspace(permissions, &authority)?;
    let attachments =
        permissions.attach.iter().map(|path| attachment(path)).collect::<Result<Vec<_>, _>>()?;
    if attachments.len() > MAX_ATTACHMENTS {
        return Err(CommandError::usage(format!("at most {MAX_ATTACHMENTS} images go with a prompt")));
    }
    let provider = Arc::new(app.provider(config)?);
    let store = app.store()?;
    let opened = open_session(app, &store, &target, alisio_sdk::Provider::id(provider.as_ref()), config)?;
    let model = model_of(app, &opened, config)?;
    let spill_folder = store.spill_folder(opened.writer.session())?;
    let mut engine =
        app.engine(EngineParts { config, provider, authority: &authority, spill_folder: &spill_folder })?;
    engine.approvals = approvals(app, &store, mode)?;
    let prompt = Prompt {
        run_id: RunId::new(uuid::Uuid::now_v7().to_string()),
        request_id: None,
        correlation_id: None,
        message: UserMessage { text, display: None, attachments },
        workspace: app.workspace.clone(),
        spill_folder,
        model,
        authority,
        limits: limits(config),
        cancel: Cancel::new(),
    };
    let mut surface: Box<dyn Surface> = match mode {
        ApprovalsMode::Stdio => Box::new(stdio::WithRequests::new(surface(app), store.clone())),
        _ => surface(app),
    };
    let (_, exit) = drive(&engine, opened, prompt, &store, surface.as_mut())?;
    Ok(exit)
}

/// Begins to listen for answers, where somebody may give them.
fn approvals(app: &App, store: &Store, mode: ApprovalsMode) -> Result<Option<Approvals>, CommandError> {
    let approvals = match mode {
        ApprovalsMode::Deny => return Ok(None),
        ApprovalsMode::Wait(patience) => Approvals::listen(store, patience)?,
        ApprovalsMode::Stdio => {
            if !app.global.json {
                return Err(CommandError::usage("`--approvals stdio` speaks JSON Lines; add --json"));
            }
            let approvals = Approvals::listen(store, None)?;
            stdio::answer_from_stdin(store.clone(), approvals.detacher());
            approvals
        }
    };
    Ok(Some(approvals))
}

/// Makes what the events are shown on.
pub fn surface(app: &App) -> Box<dyn Surface> {
    if app.global.json {
        Box::new(JsonLines::new())
    } else {
        Box::new(Text::new(Terminal::detect(|name| app.env.get(name)), app.global.quiet))
    }
}

/// Opens the session of a prompt for writing, or makes a new one.
fn open_session(
    app: &App,
    store: &Store,
    target: &Target,
    provider: &str,
    config: &alisio_store::config::Config,
) -> Result<OpenSession, CommandError> {
    let id = match target {
        Target::New => None,
        Target::Named(prefix) => Some(store.find(prefix)?),
        Target::Latest => Some(store.latest(&app.workspace)?.ok_or_else(|| {
            CommandError::usage(format!("no session of `{}` is kept", app.workspace.display()))
                .hint("begin one with `alisio run PROMPT`")
        })?),
    };
    let Some(id) = id else {
        let session = NewSession {
            id: SessionId::new(uuid::Uuid::now_v7().to_string()),
            workspace: app.workspace.clone(),
            provider: provider.to_owned(),
            model: configured_model(config)?,
            agent: None,
            created_at: Clock::System.stamp(),
        };
        store.create_session(&session)?;
        let writer = store.lock(&session.id)?;
        return Ok(OpenSession {
            writer,
            loaded: alisio_store::Loaded::default(),
            provider: session.provider,
            model: session.model,
        });
    };
    let writer = store.lock(&id)?;
    let row =
        store.session(&id)?.ok_or_else(|| CommandError::usage(format!("session `{id}` was deleted")))?;
    if row.workspace != app.workspace {
        return Err(CommandError::usage(format!(
            "session `{id}` belongs to `{}`, and this is `{}`",
            row.workspace.display(),
            app.workspace.display()
        ))
        .hint(format!("run again with --cwd {}", row.workspace.display())));
    }
    let loaded = writer.load()?;
    Ok(OpenSession { writer, loaded, provider: row.provider, model: row.model })
}

/// The model of a prompt: a flag wins, then what the session had, which is the configured one for a new session.
fn model_of(
    app: &App,
    session: &OpenSession,
    config: &alisio_store::config::Config,
) -> Result<String, CommandError> {
    match &app.global.model {
        Some(_) => configured_model(config),
        None if session.model.is_empty() => configured_model(config),
        None => Ok(session.model.clone()),
    }
}

fn configured_model(config: &alisio_store::config::Config) -> Result<String, CommandError> {
    config.provider.model().map(str::to_owned).ok_or_else(|| {
        CommandError::usage("no model is configured")
            .hint("`alisio setup` finds a model service and writes the configuration")
            .hint("or name one for this run: `alisio run --base-url URL --model ID PROMPT`")
    })
}

/// Takes the prompt from the command line, or from standard input when it is left out or `-`.
pub fn prompt_text(argument: Option<&str>) -> Result<String, CommandError> {
    let text = match argument {
        Some(text) if text != "-" => text.to_owned(),
        given => {
            let mut stdin = std::io::stdin();
            if given.is_none() && stdin.is_terminal() {
                return Err(CommandError::usage("there is no prompt")
                    .hint("write it as the last argument: `alisio run \"what does this repository do?\"`")
                    .hint("or pipe it in"));
            }
            let mut bytes = Vec::new();
            stdin.read_to_end(&mut bytes)?;
            String::from_utf8(bytes).map_err(|error| {
                CommandError::usage(format!("the prompt on standard input is not UTF-8: {error}"))
            })?
        }
    };
    if text.trim().is_empty() {
        let where_from = if argument.is_some_and(|text| text != "-") { "" } else { " on standard input" };
        return Err(CommandError::usage(format!("the prompt is empty{where_from}"))
            .hint("write it as an argument: `alisio run \"what does this repository do?\"`, or pipe it in"));
    }
    Ok(text)
}

/// Reads an image; its first bytes say what it is, not its name.
fn attachment(path: &Path) -> Result<Attachment, CommandError> {
    let wrong = |what: String| CommandError::usage(format!("`{}` can't be attached: {what}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    if !file.metadata().map_err(|error| wrong(error.to_string()))?.is_file() {
        return Err(wrong("it is not a file".into()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_ATTACHMENT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > MAX_ATTACHMENT_BYTES {
        return Err(wrong("it is larger than 5 MB".into()));
    }
    let mime_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Err(wrong("it is no PNG, JPEG, GIF or WebP image".into())),
    };
    let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
    Ok(Attachment { mime_type: mime_type.to_owned(), data })
}

/// Prints a line that is no error.
pub fn note(text: &str) {
    use std::io::Write;
    let _ = writeln!(anstream::stderr(), "\x1b[2mnote: {}\x1b[0m", crate::output::harmless(text));
}
