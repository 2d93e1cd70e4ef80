//! `alisio doctor`: what Alisio found on this machine, and what is missing. It sends nothing and changes nothing.

use std::io::Write;
use std::path::PathBuf;

use alisio_store::config;

use crate::app::{App, limits};
use crate::args::Permissions;
use crate::error::{CommandError, Exit};
use crate::services;

/// Runs the command.
pub fn run(app: &App) -> Result<Exit, CommandError> {
    let mut report = Report { out: Box::new(anstream::stdout()), problems: 0 };
    report.fact("alisio", env!("CARGO_PKG_VERSION"))?;
    report.fact("platform", &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))?;
    report.fact("workspace", &app.workspace.display().to_string())?;
    let file = app.dirs.config_file();
    let there = if file.exists() { "" } else { " (not there yet)" };
    report.fact("configuration", &format!("{}{there}", file.display()))?;
    state(app, &mut report)?;
    match find_program(app, "git") {
        Some(path) => report.fact("git", &path.display().to_string())?,
        None => report.problem("git", "not found in PATH", "git_status, git_diff and the demo need it")?,
    }
    report.fact("search", "built in (no rg is needed)")?;
    report.fact("sandbox", "none yet: a permitted program runs with your rights")?;
    match app.configuration(&Permissions::default()) {
        Err(error) => report.problem("configuration", &error.error, "run again after mending the file")?,
        Ok(configured) => {
            provider(app, &mut report, &configured.loaded.config)?;
            policies(app, &mut report, &configured.loaded)?;
            if let Some(note) = &configured.trust_note {
                report.fact("trust", note)?;
            }
            for notice in &configured.loaded.notices {
                report.fact("note", &notice.to_string())?;
            }
        }
    }
    if report.problems == 0 {
        writeln!(report.out, "nothing is missing")?;
        return Ok(Exit::Done);
    }
    Ok(Exit::Failed)
}

/// Opens the state where there is some; looking must not make it.
fn state(app: &App, report: &mut Report) -> Result<(), CommandError> {
    let path = app.database();
    if !path.exists() {
        report.fact("state", &format!("{} (made by the first run)", path.display()))?;
        return Ok(());
    }
    match app.store() {
        Ok(_) => report.fact("state", &path.display().to_string())?,
        Err(error) => report.problem("state", &error.error, "choose another place with --db FILE")?,
    }
    Ok(())
}

fn provider(app: &App, report: &mut Report, config: &config::Config) -> Result<(), CommandError> {
    let section = &config.provider;
    let mode = format!("{:?}", section.api_mode).to_lowercase();
    report.fact("provider", &format!("{} ({mode})", section.base_url.as_str()))?;
    match section.model() {
        Some(model) => report.fact("model", model)?,
        None => {
            let found = services::find(&app.env);
            let hint = match found.first() {
                Some(service) => format!("run `alisio setup`: {} was found", service.name),
                None => {
                    "run `alisio setup` once there is a key in the environment or a server on this machine"
                        .to_owned()
                }
            };
            report.problem("model", "none is configured", &hint)?;
        }
    }
    let variable = section.api_key_env.as_str();
    match (section.auth, app.env.get(variable)) {
        (config::Auth::None, _) => report.fact("key", "none is sent")?,
        (config::Auth::Bearer, Some(_)) => report.fact("key", &format!("{variable} is set"))?,
        (config::Auth::Bearer, None) => {
            report.problem(
                "key",
                &format!("{variable} is not set"),
                "export it, or set provider.auth to \"none\"",
            )?;
        }
    }
    if let Some(limit) = limits(config).max_output_tokens {
        report.fact("output limit", &format!("{} tokens ({})", limit.tokens, limit.source.as_str()))?;
    }
    Ok(())
}

fn policies(app: &App, report: &mut Report, loaded: &config::Loaded) -> Result<(), CommandError> {
    match app.policies(&Permissions::default(), loaded) {
        Err(error) => {
            report.problem("permissions", &error.error, "no run starts before it is mended")?;
        }
        Ok(policies) if policies.is_empty() => {
            report.fact("permissions", "no policy: flags and mode decide")?;
        }
        Ok(policies) => {
            for (source, _) in policies.iter() {
                let may = if source.may_loosen() {
                    "its `allow` runs unasked, also without an --allow flag"
                } else {
                    "it can only tighten"
                };
                report.fact("permissions", &format!("policy of the {source}: {may}"))?;
            }
        }
    }
    Ok(())
}

struct Report {
    out: Box<dyn Write>,
    problems: u32,
}

impl Report {
    fn fact(&mut self, name: &str, value: &str) -> std::io::Result<()> {
        writeln!(self.out, "  {name:<14} {value}")
    }

    fn problem(&mut self, name: &str, value: &str, hint: &str) -> std::io::Result<()> {
        self.problems += 1;
        writeln!(self.out, "\x1b[31m! {name:<14} {value}\x1b[0m\n  {:<14} {hint}", "")
    }
}

/// Finds a program in the absolute folders of `PATH`.
pub fn find_program(app: &App, name: &str) -> Option<PathBuf> {
    let path = app.env.get_os("PATH")?;
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(
        |path| {
            use std::os::unix::fs::PermissionsExt;
            path.metadata()
                .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
        },
    )
}
