//! Puts a run together: where it works, what is configured, who is asked, what it may do.
//!
//! Every command starts from an [`App`]; each takes from it no more than it needs, so that `sessions list` opens no
//! workspace and `doctor` no session.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alisio_engine::{Clock, Engine, Limits, OutputLimit, OutputLimitSource, Registry};
use alisio_host::instructions::InstructionFiles;
use alisio_host::process::{CEILING_VARIABLE, Options, Processes, environment};
use alisio_host::supervisor;
use alisio_host::workspace::{Workspace, is_broad};
use alisio_policy::{Authority, Issuer, Mode, Policy, PolicySet, Source};
use alisio_protocol::{Effect, EffectSet};
use alisio_providers::{OpenAiCompatible, Secret, Settings};
use alisio_sdk::{InstructionSource, Provider, Tool};
use alisio_store::Store;
use alisio_store::config::{self, Loaded, Overrides, Sources};
use alisio_store::dirs::{Dirs, Env};
use alisio_store::trust::{self, Status};

use crate::args::{Global, ModeWord, Permissions};
use crate::commands::policy::{parse_policy, read_policy};
use crate::error::CommandError;

/// The administrator's policy: it binds every user of the machine and can't be loosened.
const ADMINISTRATORS_POLICY: &str = "/etc/alisio/policy.json";

/// Output limit of a request where nobody set one.
const DEFAULT_OUTPUT_TOKENS: u64 = 16_384;

/// What every command starts from.
pub struct App {
    /// The flags that every command understands.
    pub global: Global,
    /// The environment.
    pub env: Env,
    /// Where configuration and state live.
    pub dirs: Dirs,
    /// The directory to work in, canonical.
    pub workspace: PathBuf,
}

/// The configuration in force, and how it came to be.
pub struct Configured {
    /// The values.
    pub loaded: Loaded,
    /// What a person should know about trust; `None` when there is nothing to say.
    pub trust_note: Option<String>,
}

impl App {
    /// Finds out where to work.
    pub fn new(global: Global) -> Result<Self, CommandError> {
        let env = Env::of_process();
        let dirs = Dirs::resolve(&env).map_err(CommandError::usage)?;
        let directory = global.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        let workspace = directory.canonicalize().map_err(|error| {
            CommandError::usage(format!("`{}` can't be worked in: {error}", directory.display()))
        })?;
        if !workspace.is_dir() {
            return Err(CommandError::usage(format!("`{}` is not a directory", workspace.display())));
        }
        Ok(Self { global, env, dirs, workspace })
    }

    /// Reads the configuration: the user's, then the project's if it is trusted (or the one that `--config` names).
    pub fn configuration(&self, permissions: &Permissions) -> Result<Configured, CommandError> {
        let (project, trust_note) = self.project_file()?;
        let sources = Sources {
            global: self.dirs.config_file(),
            project,
            explicit: self.global.config.clone(),
            env: &self.env,
            flags: Overrides {
                model: self.global.model.clone(),
                base_url: self.global.base_url.clone(),
                api_mode: self.global.api_mode.map(|mode| format!("{mode:?}").to_lowercase()),
                max_turns: permissions.max_turns.map(u64::from),
                timeout_ms: permissions
                    .timeout
                    .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
                add_directories: permissions.add_dir.clone(),
                read_only: permissions.read_only,
            },
        };
        let loaded = config::load(&sources).map_err(CommandError::usage)?;
        Ok(Configured { loaded, trust_note })
    }

    /// The project's configuration, read once and only when it is trusted as it is now.
    fn project_file(&self) -> Result<(Option<config::ProjectFile>, Option<String>), CommandError> {
        if self.global.config.is_some() {
            return Ok((None, None));
        }
        if self.global.trust_project {
            let snapshot = trust::snapshot(&self.workspace).map_err(CommandError::usage)?;
            return Ok((snapshot.project_file(), None));
        }
        let decisions = trust::Store::open(&self.dirs.state_home);
        let checked = decisions.check(&self.workspace).map_err(CommandError::usage)?;
        let directory = self.workspace.display();
        let note = match &checked.status {
            Status::Trusted | Status::NothingToTrust | Status::Declined => None,
            Status::Undecided => Some(format!(
                "this directory brings its own Alisio files, which are not read: see them with `alisio trust add \
                 {directory}`, or pass --trust-project once"
            )),
            Status::Changed { changes, .. } => {
                let mut what: Vec<_> = changes.iter().take(5).map(ToString::to_string).collect();
                if changes.len() > 5 {
                    what.push(format!("{} more", changes.len() - 5));
                }
                Some(format!(
                    "the Alisio files of this directory changed since they were decided on ({}), so they are not read: \
                     look at them with `alisio trust add {directory}`",
                    what.join(", ")
                ))
            }
            Status::CannotTrust { reason } => Some(format!(
                "the Alisio files of this directory are not read, since they can't be trusted: {reason}"
            )),
        };
        let note = decisions.problem().map(ToOwned::to_owned).or(note);
        Ok((checked.project_file(), note))
    }

    /// Opens the session database.
    pub fn store(&self) -> Result<Store, CommandError> {
        Ok(Store::open(&self.database())?)
    }

    /// Where sessions are kept.
    pub fn database(&self) -> PathBuf {
        self.global.db.clone().unwrap_or_else(|| self.dirs.database())
    }

    /// Alisio's own files and folders: configuration, trust, and the database with what lies beside it.
    fn own_paths(&self) -> Result<Vec<PathBuf>, CommandError> {
        let database = std::path::absolute(self.database())?;
        let beside = |ending: &str| {
            let mut path = database.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        };
        let root = database.parent().unwrap_or(Path::new("/"));
        let folders = ["blobs", "locks", "outputs", "run"].map(|name| root.join(name));
        let mut own = vec![self.dirs.config_home.clone(), self.dirs.state_home.clone()];
        own.extend([beside(""), beside("-wal"), beside("-shm")]);
        own.extend(folders);
        Ok(own)
    }

    /// Makes the model service that the configuration names.
    pub fn provider(&self, config: &config::Config) -> Result<OpenAiCompatible, CommandError> {
        OpenAiCompatible::new(self.provider_settings(&config.provider)?).map_err(CommandError::usage)
    }

    /// Turns the `provider` section into settings, the key included.
    pub fn provider_settings(&self, section: &config::Provider) -> Result<Settings, CommandError> {
        let mut settings = Settings::new(section.base_url.as_str());
        settings.api_mode = match section.api_mode {
            config::ApiMode::Chat => alisio_providers::ApiMode::Chat,
            config::ApiMode::Responses => alisio_providers::ApiMode::Responses,
        };
        settings.auth = match section.auth {
            config::Auth::Bearer => alisio_providers::Auth::Bearer,
            config::Auth::None => alisio_providers::Auth::None,
        };
        settings.token_parameter = match section.token_parameter {
            config::TokenParameter::MaxTokens => alisio_providers::TokenParameter::MaxTokens,
            config::TokenParameter::MaxCompletionTokens => {
                alisio_providers::TokenParameter::MaxCompletionTokens
            }
            config::TokenParameter::Omit => alisio_providers::TokenParameter::Omit,
        };
        settings.stream_usage = section.stream_usage;
        if section.auth == config::Auth::Bearer {
            settings.api_key = self.env.get(section.api_key_env.as_str()).map(Secret::new);
        }
        Ok(settings)
    }

    /// Says what a run may do at most.
    pub fn authority(
        &self,
        permissions: &Permissions,
        loaded: &Loaded,
        agent: Agent,
    ) -> Result<Authority, CommandError> {
        let mut authority = Authority::headless();
        authority.policies = self.policies(permissions, loaded)?;
        authority.mode = match permissions.mode {
            None | Some(ModeWord::Ask) => Mode::Ask,
            Some(ModeWord::Auto) => Mode::Auto,
            Some(ModeWord::Full) => Mode::Full,
        };
        authority.read_only = permissions.read_only;
        authority.flags = [
            (Effect::Write, permissions.allow_write),
            (Effect::Process, permissions.allow_process),
            (Effect::External, permissions.allow_external),
        ]
        .into_iter()
        .filter_map(|(effect, given)| given.then_some(effect))
        .collect();
        if let Some(inherited) = self.env.get(CEILING_VARIABLE) {
            authority.ceiling = authority.ceiling.intersection(parse_ceiling(&inherited)?);
        }
        if agent == Agent::Plan {
            authority.ceiling =
                authority.ceiling.intersection([Effect::Read, Effect::Internal].into_iter().collect());
        }
        Ok(authority)
    }

    /// Collects the permission policies in force. One that can't be read stops the start.
    pub fn policies(&self, permissions: &Permissions, loaded: &Loaded) -> Result<PolicySet, CommandError> {
        let mut policies = PolicySet::default();
        if let Some(policy) = administrators_policy(Path::new(ADMINISTRATORS_POLICY))? {
            policies.add(Source::Administrator, policy);
        }
        for (file, value) in &loaded.permissions {
            let source = if *file == self.dirs.config_file() {
                Source::User
            } else if self.global.config.is_some() {
                Source::Flag
            } else {
                Source::Project
            };
            policies.add(source, parse_policy(value, &file.display().to_string())?);
        }
        if let Some(file) = &permissions.policy {
            policies.add(Source::Flag, read_policy(file)?);
        }
        Ok(policies)
    }

    /// Warns about a workspace that is the home directory or `/`, and has it confirmed before anything could be changed.
    pub fn confirm_workspace(
        &self,
        permissions: &Permissions,
        authority: &Authority,
    ) -> Result<(), CommandError> {
        let home = self.env.get_os("HOME").map(PathBuf::from);
        if permissions.allow_broad_workspace || !is_broad(&self.workspace, home.as_deref()) {
            return Ok(());
        }
        let directory = self.workspace.display();
        let warning =
            format!("the workspace is `{directory}`: everything in it could be read and sent to the model");
        if authority.flags == EffectSet::EMPTY || permissions.read_only {
            let _ = writeln!(anstream::stderr(), "warning: {warning}");
            return Ok(());
        }
        let refusal = CommandError::usage(format!("{warning}, and changed"))
            .hint("work in the directory of one project, with --cwd DIR")
            .hint("or pass --allow-broad-workspace if this is really meant");
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            return if confirm(&format!("{warning}, and changed. Go on?"))? { Ok(()) } else { Err(refusal) };
        }
        Err(refusal)
    }

    /// Finds the instruction files of this workspace.
    pub fn instructions(&self, config: &config::Config) -> Arc<dyn InstructionSource> {
        Arc::new(InstructionFiles::new(
            &self.dirs.config_home,
            &self.workspace,
            usize::try_from(config.context.max_bytes.get()).unwrap_or(usize::MAX),
            config.context.claude_md_fallback,
        ))
    }

    /// Puts the engine of a run together.
    pub fn engine(&self, parts: EngineParts<'_>) -> Result<Engine, CommandError> {
        let EngineParts { config, provider, authority, spill_folder } = parts;
        let mut workspace = Workspace::open(&self.workspace).map_err(CommandError::usage)?;
        if !authority.read_only {
            for directory in &config.additional_directories {
                workspace = workspace.with_root(directory).map_err(CommandError::usage)?;
            }
        }
        workspace = workspace.with_read_only(spill_folder).map_err(CommandError::failed)?;
        // The model must not write what decides about it, wherever the workspace lies.
        for own in self.own_paths()? {
            workspace = workspace.guarding(&own);
        }
        let instructions = self.instructions(config);
        let tools = tools(workspace, authority, instructions.clone())?;
        Ok(Engine {
            provider,
            registry: Registry::new(tools),
            instructions,
            issuer: Issuer::new(),
            approvals: None,
            clock: Clock::System,
        })
    }
}

/// Makes the built-in tools of a run.
pub fn tools(
    workspace: Workspace,
    authority: &Authority,
    instructions: Arc<dyn InstructionSource>,
) -> Result<Vec<Arc<dyn Tool>>, CommandError> {
    Ok(alisio_tools::builtin(alisio_tools::ToolHost {
        workspace: Arc::new(workspace),
        processes: Processes::new(process_options(authority)?),
        instructions,
    }))
}

/// What the engine of a run is made of.
pub struct EngineParts<'a> {
    /// The configuration.
    pub config: &'a config::Config,
    /// The model service.
    pub provider: Arc<dyn Provider>,
    /// What the run may do at most.
    pub authority: &'a Authority,
    /// Owner-only folder of the session for outputs too long for a result.
    pub spill_folder: &'a Path,
}

/// The agents there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Does the work.
    Build,
    /// Only reads.
    Plan,
}

impl Agent {
    /// Finds an agent: the flag is strict, the configuration falls back to `build`.
    pub fn resolve(flag: Option<&str>, configured: &str) -> Result<Self, CommandError> {
        match flag {
            None => Ok(if configured == "plan" { Self::Plan } else { Self::Build }),
            Some("build") => Ok(Self::Build),
            Some("plan") => Ok(Self::Plan),
            Some(other) => {
                Err(CommandError::usage(format!("there is no agent `{other}`; the agents are build, plan")))
            }
        }
    }
}

/// Turns the configuration into the limits of a run.
pub fn limits(config: &config::Config) -> Limits {
    let given = &config.limits;
    let window = config.provider.context_window.map(|window| window.get());
    let output = given.max_output_tokens.map_or(
        OutputLimit { tokens: DEFAULT_OUTPUT_TOKENS, source: OutputLimitSource::Default },
        |tokens| OutputLimit { tokens: tokens.get(), source: OutputLimitSource::User },
    );
    Limits {
        max_turns: u32::try_from(given.max_turns.get()).unwrap_or(u32::MAX),
        timeout: Duration::from_millis(given.timeout_ms.get()),
        first_token_timeout: Duration::from_millis(given.first_token_timeout_ms.get()),
        first_token_retries: u32::try_from(given.first_token_retries.get()).unwrap_or(u32::MAX),
        truncation_recoveries: u32::try_from(given.truncation_recoveries.get()).unwrap_or(u32::MAX),
        max_output_tokens: Some(output),
        max_tokens: given.max_tokens.map_or_else(|| default_token_budget(window), |tokens| tokens.get()),
        max_context_chars: usize::try_from(given.max_context_chars.get()).unwrap_or(usize::MAX),
        ..Limits::default()
    }
}

/// The token budget of a run where nobody set one: eight windows within bounds, or a million where the window is
/// unknown.
fn default_token_budget(window: Option<u64>) -> u64 {
    window.map_or(1_000_000, |window| (8 * window).clamp(400_000, 8_000_000))
}

/// Reads the administrator's policy, if there is one. It counts only when nobody but root could have written it; a file
/// that others can write would be a way around it, so that is an error and not a reason to go on without.
fn administrators_policy(file: &Path) -> Result<Option<Policy>, CommandError> {
    use std::os::unix::fs::MetadataExt;
    let metadata = match std::fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(CommandError::usage(format!("`{}` can't be read: {error}", file.display())));
        }
    };
    if metadata.uid() != 0 || metadata.mode() & 0o022 != 0 {
        return Err(CommandError::usage(format!(
            "`{}` must belong to root and be writable by root alone",
            file.display()
        )));
    }
    read_policy(file).map(Some)
}

/// How processes of a run are started: by a copy of this very binary, with a small environment.
fn process_options(authority: &Authority) -> Result<Options, CommandError> {
    // The running file itself, also when the one on the disk was replaced meanwhile.
    let program =
        if cfg!(target_os = "linux") { PathBuf::from("/proc/self/exe") } else { std::env::current_exe()? };
    let effects: Vec<_> = Effect::ALL
        .into_iter()
        .filter(|effect| alisio_policy::offers(authority, *effect))
        .map(Effect::as_str)
        .collect();
    Ok(Options {
        supervisor: vec![program.into(), supervisor::ARGUMENT.into()],
        environment: environment(std::env::vars_os(), Some(&effects.join(","))),
        adopt_strays: true,
    })
}

fn parse_ceiling(text: &str) -> Result<EffectSet, CommandError> {
    text.split(',')
        .map(|word| {
            Effect::ALL.into_iter().find(|effect| effect.as_str() == word.trim()).ok_or_else(|| {
                CommandError::usage(format!("`{CEILING_VARIABLE}` holds `{word}`, which is no effect"))
                    .hint("an Alisio that a tool started may do no more than the run that started it")
            })
        })
        .collect()
}

/// Asks a yes-or-no question at the terminal; Enter is no.
pub fn confirm(question: &str) -> Result<bool, CommandError> {
    let mut err = anstream::stderr();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
