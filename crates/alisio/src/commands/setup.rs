//! `alisio setup`: finds a model service, checks it with a real request, and writes the configuration without a key.

use std::io::{BufRead, IsTerminal, Write};

use alisio_providers::{Auth, ModelInfo, OpenAiCompatible, Secret, Settings};
use serde_json::{Value, json};

use alisio_store::config::{self, FileOwner};

use crate::app::App;
use crate::args::{ApiMode, SetupArgs};
use crate::error::{CommandError, Exit};
use crate::services::{self, Service};

/// Models that a list shows before it is cut.
const SHOWN_MODELS: usize = 30;

/// Runs the command.
pub fn run(app: &App, args: &SetupArgs) -> Result<Exit, CommandError> {
    let asks = !args.yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let service = choose_service(app, args, asks)?;
    let settings = settings(app, &service)?;
    let provider = OpenAiCompatible::new(settings.clone()).map_err(CommandError::usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let models =
        if app.global.model.is_some() { Ok(Vec::new()) } else { runtime.block_on(provider.list_models()) };
    let model = choose_model(app, models.map_err(|error| explain(&service, &error)), asks)?;
    let mut out = anstream::stdout();
    let mut counts_tokens = false;
    if !args.no_check {
        writeln!(out, "asking {} for one word from {model} …", service.name)?;
        // Most services count tokens while streaming when they are asked to; a few refuse the question.
        let counting = Settings { stream_usage: true, ..settings };
        let counting = OpenAiCompatible::new(counting).map_err(CommandError::usage)?;
        let answer = runtime.block_on(counting.check(&model));
        counts_tokens = answer.is_ok();
        if answer.as_ref().is_err_and(|error| matches!(error.status, Some(400 | 422))) {
            runtime.block_on(provider.check(&model)).map_err(|error| explain(&service, &error))?;
        } else {
            answer.map_err(|error| explain(&service, &error))?;
        }
        writeln!(out, "it answers")?;
    }
    let (path, owner) = if args.project {
        (app.workspace.join(".alisio/config.json"), FileOwner::Project)
    } else {
        (app.dirs.config_file(), FileOwner::User)
    };
    config::write(&path, owner, &patch(app, &service, &model, counts_tokens)).map_err(CommandError::usage)?;
    writeln!(out, "wrote {} (no key is in it)", path.display())?;
    if args.project {
        writeln!(out, "it is read once you trust this directory: alisio trust add")?;
    }
    if let Some(variable) = &service.api_key_env {
        writeln!(out, "the key is read from {variable} at each start")?;
    }
    writeln!(out, "try: alisio run \"what does this repository do?\"")?;
    Ok(Exit::Done)
}

fn choose_service(app: &App, args: &SetupArgs, asks: bool) -> Result<Service, CommandError> {
    let key =
        |fallback: Option<String>| if args.no_key { None } else { args.api_key_env.clone().or(fallback) };
    if let Some(base_url) = &app.global.base_url {
        // The key of one service must not go to another.
        let variable = services::key_of(base_url).unwrap_or("OPENAI_API_KEY");
        let fallback = app.env.get(variable).map(|_| variable.to_owned());
        return Ok(Service {
            name: base_url.clone(),
            base_url: base_url.clone(),
            api_key_env: key(fallback),
        });
    }
    let mut found = services::find(&app.env);
    match (found.len(), asks) {
        (0, _) => Err(CommandError::usage(format!(
            "no model service was found: looked at {}",
            services::looked_at()
        ))
        .hint("put a key into the environment: export OPENAI_API_KEY=…")
        .hint("or start a local server (for example Ollama) and run `alisio setup` again")
        .hint("or name one: alisio setup --base-url URL --model ID [--api-key-env NAME]")),
        (1, _) => {
            let service = found.remove(0);
            Ok(Service { api_key_env: key(service.api_key_env.clone()), ..service })
        }
        (_, false) => {
            let mut error =
                CommandError::usage("several model services were found; name one with --base-url");
            for service in &found {
                error = error.hint(format!("{}: --base-url {}", service.name, service.base_url));
            }
            Err(error)
        }
        (n, true) => {
            let names: Vec<_> =
                found.iter().map(|service| format!("{} ({})", service.name, service.base_url)).collect();
            let index = choose("which service?", &names, n)?;
            let service = found.swap_remove(index);
            Ok(Service { api_key_env: key(service.api_key_env.clone()), ..service })
        }
    }
}

fn settings(app: &App, service: &Service) -> Result<Settings, CommandError> {
    let mut settings = Settings::new(&service.base_url);
    if app.global.api_mode == Some(ApiMode::Responses) {
        settings.api_mode = alisio_providers::ApiMode::Responses;
    }
    match &service.api_key_env {
        None => settings.auth = Auth::None,
        Some(variable) => {
            let key = app.env.get(variable).ok_or_else(|| {
                CommandError::usage(format!("the variable `{variable}` is not set"))
                    .hint(format!("export {variable}=… and run `alisio setup` again"))
                    .hint("or pass --no-key for a service that wants none")
            })?;
            settings.api_key = Some(Secret::new(key));
        }
    }
    Ok(settings)
}

fn choose_model(
    app: &App,
    models: Result<Vec<ModelInfo>, CommandError>,
    asks: bool,
) -> Result<String, CommandError> {
    if let Some(model) = &app.global.model {
        return Ok(model.clone());
    }
    let mut models: Vec<_> = models?.into_iter().map(|model| model.id).collect();
    models.sort();
    match (models.len(), asks) {
        (0, _) => Err(CommandError::usage("the service lists no model").hint("name one with --model ID")),
        (1, _) => Ok(models.remove(0)),
        (_, false) => {
            let shown = models.iter().take(SHOWN_MODELS).cloned().collect::<Vec<_>>().join(", ");
            Err(CommandError::usage("the service has several models; name one with --model ID")
                .hint(format!("it lists: {shown}{}", if models.len() > SHOWN_MODELS { ", …" } else { "" })))
        }
        (n, true) => {
            let index = choose("which model?", &models, n)?;
            Ok(models.swap_remove(index))
        }
    }
}

/// Lets a person pick from a numbered list, by number or by name.
fn choose(question: &str, options: &[String], n: usize) -> Result<usize, CommandError> {
    let mut err = anstream::stderr();
    for (number, option) in options.iter().enumerate().take(SHOWN_MODELS) {
        writeln!(err, "  {:>2}  {option}", number + 1)?;
    }
    if n > SHOWN_MODELS {
        writeln!(err, "      … and {} more; any of them can be typed by name", n - SHOWN_MODELS)?;
    }
    for line in std::iter::once(Ok(String::new())).chain(std::io::stdin().lock().lines()) {
        let line = line?;
        let answer = line.trim();
        if let Some(index) = options.iter().position(|option| option == answer) {
            return Ok(index);
        }
        match answer.parse::<usize>() {
            Ok(number) if (1..=n).contains(&number) => return Ok(number - 1),
            _ if answer.is_empty() => {}
            _ => writeln!(err, "`{answer}` is not in the list")?,
        }
        write!(err, "{question} (1 to {n}) ")?;
        err.flush()?;
    }
    Err(CommandError::usage("no answer: standard input ended"))
}

fn patch(app: &App, service: &Service, model: &str, counts_tokens: bool) -> Value {
    let mut provider = json!({ "baseURL": service.base_url, "model": model });
    match &service.api_key_env {
        Some(variable) => provider["apiKeyEnv"] = json!(variable),
        None => provider["auth"] = json!("none"),
    }
    if let Some(mode) = app.global.api_mode {
        provider["apiMode"] = json!(format!("{mode:?}").to_lowercase());
    }
    if counts_tokens && app.global.api_mode != Some(ApiMode::Responses) {
        provider["streamUsage"] = json!(true);
    }
    json!({ "provider": provider })
}

/// Says what a failed request most likely means.
fn explain(service: &Service, error: &alisio_sdk::ProviderError) -> CommandError {
    let mut explained = CommandError::failed(format!("{} could not be used: {error}", service.name));
    // Here the name of the variable is known, so the general hint would say the same with fewer words.
    if !error.hint.is_empty() && !matches!(error.status, Some(401 | 403)) {
        explained = explained.hint(error.hint.clone());
    }
    match (error.status, &service.api_key_env) {
        (Some(401 | 403), Some(variable)) => {
            explained.hint(format!("check the key in {variable}: the service does not take it"))
        }
        (Some(401 | 403), None) => explained.hint("the service wants a key: pass --api-key-env NAME"),
        (Some(404), _) => explained.hint("check the address (most end in /v1) and the name of the model"),
        (None, _) if explained.hints.is_empty() => {
            explained.hint(format!("check that {} can be reached from here", service.base_url))
        }
        _ => explained,
    }
}
