//! The command line. Help, completions and the man page all come from these definitions.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A coding agent for the command line; whatever it does to your machine passes one gate.
#[derive(Debug, Parser)]
#[command(
    name = "alisio",
    version,
    propagate_version = true,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = "Start with `alisio demo` (no key, no network), then `alisio setup`, then:\n  \
    alisio run \"what does this repository do?\"\n  \
    alisio run --allow-write --allow-process \"make the failing test pass\"\n\n\
    Exit codes: 0 done, 1 run failed, 2 usage or configuration, 3 stopped by a limit,\n\
    4 something needed approval and nobody could answer, 130 interrupted.")]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command understands.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Works in this directory instead of the current one.
    #[arg(long, global = true, value_name = "DIR", help_heading = "Where")]
    pub cwd: Option<PathBuf>,
    /// Reads this configuration file instead of the project's `.alisio/config.json`; it is trusted for this run.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Where")]
    pub config: Option<PathBuf>,
    /// Keeps sessions in this SQLite file.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Where")]
    pub db: Option<PathBuf>,
    /// Trusts the project's `.alisio` folder for this run only.
    #[arg(long, global = true, help_heading = "Where")]
    pub trust_project: bool,

    /// Asks this model.
    #[arg(long, global = true, value_name = "ID", help_heading = "Model")]
    pub model: Option<String>,
    /// Asks the service at this address (an OpenAI-compatible `/v1`).
    #[arg(long, global = true, value_name = "URL", help_heading = "Model")]
    pub base_url: Option<String>,
    /// Speaks this wire format.
    #[arg(long, global = true, value_name = "MODE", value_enum, help_heading = "Model")]
    pub api_mode: Option<ApiMode>,

    /// Prints machine-readable JSON on standard output, and nothing else there.
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// Prints no hints and no summary.
    #[arg(long, global = true, help_heading = "Output")]
    pub quiet: bool,
}

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ApiMode {
    /// Chat Completions.
    Chat,
    /// Responses.
    Responses,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Works on one prompt and ends.
    Run(RunArgs),
    /// Goes on with a session; without a prompt, says how it stands.
    Resume(ResumeArgs),
    /// Shows the whole loop on a scratch repository, with a scripted model: no key, no network, no server.
    Demo(DemoArgs),
    /// Finds a model service, checks it with a real request and writes the configuration (never a key).
    Setup(SetupArgs),
    /// Says what Alisio found on this machine and what is missing.
    Doctor,
    /// Lists the tools, their effects, and what the given flags make of them.
    Tools(ToolsArgs),
    /// Lists, shows, exports, repairs and deletes kept sessions.
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Says which directories may bring their own configuration.
    #[command(subcommand)]
    Trust(TrustCommand),
    /// Shows the effective configuration and its schema.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Explains which instruction files apply to a path.
    #[command(subcommand)]
    Context(ContextCommand),
    /// Asks, checks and tries out permission policies.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Shows calls that wait for approval, and answers them from another terminal.
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Lists remembered answers and takes them back.
    #[command(subcommand)]
    Grants(GrantsCommand),
    /// Checks and exports the trail of verdicts.
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Shows what the gate decided in a session.
    Logs {
        /// The session, or the beginning of its id.
        session: String,
        /// Goes on as new entries come, until interrupted.
        #[arg(long)]
        follow: bool,
    },
    /// Prints the completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Prints the manual page (roff).
    #[command(hide = true)]
    Man,
}

/// A shell that completions exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

/// What a run may do and use.
#[derive(Clone, Debug, Default, Args)]
pub struct Permissions {
    /// Lets the model write files of the workspace.
    #[arg(long, help_heading = "Permissions")]
    pub allow_write: bool,
    /// Lets the model run programs, with your rights: there is no sandbox yet.
    #[arg(long, help_heading = "Permissions")]
    pub allow_process: bool,
    /// Lets the model use tools that reach the network or other programs.
    #[arg(long, help_heading = "Permissions")]
    pub allow_external: bool,
    /// Rules out writes, programs, the network and every path outside the workspace, whatever else is given.
    #[arg(long, help_heading = "Permissions")]
    pub read_only: bool,
    /// Opens other directories to the tools, for this run; it takes every word up to the next flag.
    #[arg(long, value_name = "DIR", num_args = 1.., help_heading = "Permissions")]
    pub add_dir: Vec<PathBuf>,
    /// Works even though the workspace is the home directory or `/`.
    #[arg(long, help_heading = "Permissions")]
    pub allow_broad_workspace: bool,
    /// Uses this agent: `build` (the default) or `plan`, which only reads.
    #[arg(long, value_name = "NAME", help_heading = "Permissions")]
    pub agent: Option<String>,
    /// Judges every call by this permission policy (JSON), beside the configured ones; the stricter word counts.
    #[arg(long, value_name = "FILE", help_heading = "Permissions")]
    pub policy: Option<PathBuf>,
    /// Says what runs without asking where no policy is set.
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Permissions")]
    pub mode: Option<ModeWord>,
    /// Says who answers what needs approval: `deny` (nobody), `wait[=TIME]` (`alisio approvals` in another terminal) or
    /// `stdio` (JSON Lines on standard input; with --json).
    #[arg(long, value_name = "WHO", value_parser = approvals_mode, help_heading = "Permissions")]
    pub approvals: Option<ApprovalsMode>,
    /// Stops after this many responses of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "Limits")]
    pub max_turns: Option<u32>,
    /// Stops after this much active time, as `90s`, `5m` or `1h30m`; a bare number counts seconds.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    pub timeout: Option<Duration>,
    /// Shows an image to the model (PNG, JPEG, GIF or WebP; at most four images, 5 MB each).
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What to do; read from standard input when it is left out or `-`.
    pub prompt: Option<String>,
    /// Goes on with the newest session of this directory.
    #[arg(long = "continue")]
    pub continue_latest: bool,
    #[command(flatten)]
    pub permissions: Permissions,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The session, or the beginning of its id; the newest one of this directory when it is left out.
    pub session: Option<String>,
    /// What to do next; `-` reads it from standard input.
    pub prompt: Option<String>,
    #[command(flatten)]
    pub permissions: Permissions,
}

/// Arguments of `tools`.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// Prints the page of the documentation instead (Markdown).
    #[arg(long, hide = true)]
    pub markdown: bool,
    #[command(flatten)]
    pub permissions: Permissions,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Makes the scratch repository here instead of in the temporary folder. The directory must not exist.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// Arguments of `setup`.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Writes the project's `.alisio/config.json` instead of the user's file.
    #[arg(long)]
    pub project: bool,
    /// The environment variable that holds the key.
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// Sends no key.
    #[arg(long)]
    pub no_key: bool,
    /// Asks nothing: what is not given or found is an error.
    #[arg(long)]
    pub yes: bool,
    /// Writes without asking the service first.
    #[arg(long)]
    pub no_check: bool,
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// Lists sessions, newest first.
    List {
        /// How many to list.
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// How many to leave out first.
        #[arg(long, default_value_t = 0)]
        offset: usize,
        /// Lists those of every directory.
        #[arg(long)]
        all: bool,
    },
    /// Shows one session: what was said, what ran, how it ended.
    Show {
        /// The session, or the beginning of its id.
        session: String,
    },
    /// Writes a session as JSON Lines: its events, then its messages.
    Export {
        /// The session, or the beginning of its id.
        session: String,
    },
    /// Deletes the contents of a session. Its entries in the ledger stay.
    Delete {
        /// The sessions, or the beginnings of their ids.
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Does it without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Shows calls of which nobody knows how they ended, and closes them.
    Recover {
        /// The session, or the beginning of its id.
        session: String,
        /// Records that their outcome is unknown, so that the session can go on.
        #[arg(long)]
        acknowledge: bool,
    },
    /// Removes stored contents that no session needs.
    Gc {
        /// Also deletes sessions, of every directory, that nobody touched for this many days.
        #[arg(long, value_name = "N")]
        older_than_days: Option<u32>,
        /// Does it without asking.
        #[arg(long)]
        yes: bool,
    },
}

/// What to do about trust.
#[derive(Debug, Subcommand)]
pub enum TrustCommand {
    /// Shows what the directory would load, and trusts it as it is now.
    Add {
        /// The directory.
        #[arg(default_value = ".")]
        path: PathBuf,
        /// Does it without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Lists decisions.
    List,
    /// Forgets a decision.
    Revoke {
        /// The directory.
        path: PathBuf,
    },
}

/// What to do about waiting calls.
#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// Lists the calls that wait.
    List,
    /// Shows calls as they begin to wait and as they are answered, until interrupted.
    Watch,
    /// Answers one.
    Resolve {
        /// The request, or the beginning of its id.
        request: String,
        /// The answer.
        #[arg(value_enum)]
        answer: AnswerWord,
        /// How wide an `always` is; the tool when it is left out.
        #[arg(long, value_enum, value_name = "WIDTH")]
        width: Option<WidthWord>,
        /// Keeps an `always` for every session of the workspace, not only for this one.
        #[arg(long)]
        keep: bool,
        /// Ends an `always` after this long.
        #[arg(long, value_name = "TIME", value_parser = duration)]
        expires: Option<Duration>,
        /// Says why, for the model to read.
        #[arg(long, value_name = "TEXT")]
        feedback: Option<String>,
    },
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AnswerWord {
    /// Runs this call.
    Once,
    /// Runs this call and what the width covers.
    Always,
    /// Refuses this call and every other waiting one of the same tool.
    Reject,
}

/// How wide an `always` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WidthWord {
    /// Exactly this call.
    Call,
    /// This program with any arguments.
    Program,
    /// This directory.
    Directory,
    /// This host.
    Host,
    /// This tool.
    Tool,
    /// This effect, whatever the tool.
    Effect,
}

/// What to do about remembered answers.
#[derive(Debug, Subcommand)]
pub enum GrantsCommand {
    /// Lists them.
    List,
    /// Takes one back.
    Revoke {
        /// The grant, or the beginning of its id.
        grant: String,
    },
}

/// What to do with the ledger.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Checks the whole chain and names the first entry that was changed or is missing.
    Verify {
        /// Also checks that this entry is in it, as a run printed it (`SEQ:HASH`): finds a cut tail or a chain that was
        /// written anew.
        #[arg(long, value_name = "SEQ:HASH")]
        head: Option<String>,
    },
    /// Prints all entries as JSON Lines.
    Export,
}

/// What runs without asking where no policy is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeWord {
    /// Writes, programs and the network ask.
    Ask,
    /// Writes run; programs and the network ask.
    Auto,
    /// Everything runs.
    Full,
}

/// Who answers what a run would have to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalsMode {
    /// Nobody: what needs approval is refused.
    Deny,
    /// Somebody in another terminal, by `alisio approvals`; for as long as it takes, or for so long.
    Wait(Option<Duration>),
    /// The program that reads standard output, by lines on standard input.
    Stdio,
}

fn approvals_mode(text: &str) -> Result<ApprovalsMode, String> {
    match text.split_once('=') {
        None if text == "deny" => Ok(ApprovalsMode::Deny),
        None if text == "wait" => Ok(ApprovalsMode::Wait(None)),
        None if text == "stdio" => Ok(ApprovalsMode::Stdio),
        Some(("wait", limit)) => duration(limit).map(|limit| ApprovalsMode::Wait(Some(limit))),
        _ => Err("expected `deny`, `wait`, `wait=TIME` or `stdio`".to_owned()),
    }
}

/// What to show of the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Shows every key with its value and where it comes from; never a secret.
    Show,
    /// Prints the JSON Schema of the configuration files.
    Schema,
}

/// What to show of the instruction files.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Lists the files that apply to a path, closest last.
    Explain {
        /// The path.
        path: PathBuf,
    },
}

/// What to ask a permission policy.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Says what a policy makes of a call: the policy alone, without flags and approvals.
    Check {
        #[command(flatten)]
        call: PolicyCall,
        /// Reads calls as JSON Lines from standard input: {"id", "policy"?, "call": {"tool", "target" or "input"},
        /// "prior"?: [{"tool", "target", "agoMs"}]}.
        #[arg(long, conflicts_with_all = ["tool", "target", "input"])]
        batch: bool,
        #[command(flatten)]
        source: PolicySource,
    },
    /// Says whether a shell command only looks.
    Classify {
        /// The command.
        #[arg(required_unless_present = "batch")]
        command: Option<String>,
        /// Reads commands as JSON Lines from standard input: {"id", "cmd"}.
        #[arg(long, conflicts_with = "command")]
        batch: bool,
    },
    /// Says which rule and which word decide on a call, and what would make it stricter or looser.
    Explain {
        #[command(flatten)]
        call: PolicyCall,
        #[command(flatten)]
        source: PolicySource,
        /// As for `run`.
        #[arg(long, help_heading = "As if the run had")]
        allow_write: bool,
        /// As for `run`.
        #[arg(long, help_heading = "As if the run had")]
        allow_process: bool,
        /// As for `run`.
        #[arg(long, help_heading = "As if the run had")]
        allow_external: bool,
        /// As for `run`.
        #[arg(long, help_heading = "As if the run had")]
        read_only: bool,
        /// As if nobody could answer.
        #[arg(long, help_heading = "As if the run had")]
        headless: bool,
    },
    /// Finds rules that never match, are hidden by a later one, or take the force from an earlier refusal.
    Lint {
        #[command(flatten)]
        source: PolicySource,
    },
    /// Checks the examples that rules carry (`match`, `notMatch`).
    Test {
        #[command(flatten)]
        source: PolicySource,
    },
    /// Judges the calls of a kept session by another policy, and prints every verdict that would change.
    Replay {
        /// The session, or the beginning of its id.
        session: String,
        #[command(flatten)]
        source: PolicySource,
    },
}

/// Which policy to ask.
#[derive(Clone, Debug, Args)]
pub struct PolicySource {
    /// Reads the policy from this JSON file: the policy itself, or an object with `permissions`.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Looks paths up on this machine and follows links, instead of going by their text.
    #[arg(long)]
    pub resolve: bool,
}

/// A call to ask about.
#[derive(Clone, Debug, Args)]
pub struct PolicyCall {
    /// The tool, as `bash` or `read`.
    pub tool: Option<String>,
    /// The text that patterns see: the command, the path, the query.
    pub target: Option<String>,
    /// The whole input as JSON, instead of the text.
    #[arg(long, value_name = "JSON", conflicts_with = "target")]
    pub input: Option<String>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("`{text}` is no length of time: write `90s`, `5m`, `1h30m` or a number of seconds");
    let duration = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            text.parse::<jiff::SignedDuration>().ok().and_then(|d| d.try_into().ok()).ok_or_else(wrong)?
        }
    };
    if duration < Duration::from_millis(100) {
        return Err("the limit must be at least 100 ms".into());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn lengths_of_time() {
        for (text, seconds) in
            [("90", Some(90.0)), ("90s", Some(90.0)), ("1h30m", Some(5400.0)), ("100ms", Some(0.1))]
        {
            assert_eq!(duration(text).ok().map(|d| d.as_secs_f64()), seconds, "{text}");
        }
        for text in ["", "soon", "-3s", "0", "10ms", "5 parsecs"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
