//! `alisio policy`: asks a permission policy, checks it and tries it out. Nothing runs, and nothing is recorded.
//!
//! `check` is the policy alone: paths go by their text, counted from `--cwd`, and no file is touched unless `--resolve`
//! is given. `explain` adds what a run would add: roots, flags, and whether anybody can answer.

mod batch;
mod replay;

use std::io::Write;
use std::path::{Path, PathBuf};

use alisio_policy::{
    Answering, Authority, Call, CommandText, Decision, Judgement, Moment, Outcome, OutsidePath, Policy,
    PolicySet, Request, Ruling, Scope, Source, Subject, TargetKind, absolute, effect_of, rule_on,
    target_kind,
};
use alisio_protocol::{CallId, Effect, Facts, Sha256};
use alisio_shell::{Budget, understand, understand_argv};
use serde_json::{Value, json};

use crate::app::App;
use crate::args::{Global, Permissions, PolicyCall, PolicyCommand, PolicySource};
use crate::error::{CommandError, Exit};
use crate::output::harmless;

/// Runs the command.
pub fn run(global: Global, command: PolicyCommand) -> Result<Exit, CommandError> {
    match command {
        PolicyCommand::Check { batch: true, source, .. } => batch::check(Desk::new(global, &source)?),
        PolicyCommand::Check { call, source, .. } => check(&mut Desk::new(global, &source)?, &call),
        PolicyCommand::Classify { batch: true, .. } => batch::classify(),
        PolicyCommand::Classify { command, .. } => classify(&global, &command.unwrap_or_default()),
        PolicyCommand::Explain {
            call,
            source,
            allow_write,
            allow_process,
            allow_external,
            read_only,
            headless,
        } => {
            let flags = [
                (Effect::Write, allow_write),
                (Effect::Process, allow_process),
                (Effect::External, allow_external),
            ];
            let mut authority = Authority::headless();
            authority.read_only = read_only;
            authority.flags =
                flags.into_iter().filter_map(|(effect, given)| given.then_some(effect)).collect();
            authority.answering = if headless { Answering::Nobody } else { Answering::Person };
            explain(&mut Desk::new(global, &source)?, &call, authority)
        }
        PolicyCommand::Lint { source } => lint(&mut Desk::new(global, &source)?),
        PolicyCommand::Test { source } => test(&mut Desk::new(global, &source)?),
        PolicyCommand::Replay { session, source } => replay::run(Desk::new(global, &source)?, &session),
    }
}

/// Where policies are asked: which policy, and where paths count from.
struct Desk {
    global: Global,
    /// The directory that paths count from, absolute, by its text.
    directory: String,
    resolve: bool,
    file: Option<PathBuf>,
    /// The policy that holds where a call brings none; looked for when it is first needed.
    standing: Option<Option<Standing>>,
}

/// The policies in force.
#[derive(Clone)]
struct Standing {
    policies: PolicySet,
    /// Whether it is one policy that was named, and judges alone.
    is_alone: bool,
    shown: String,
}

impl Standing {
    /// One policy that judges alone.
    fn alone(policy: Policy) -> Self {
        Self { policies: PolicySet::of(Source::Flag, policy), is_alone: true, shown: String::new() }
    }

    /// Judges a call: by the one policy, or by all of them together as a run would.
    fn judge(&self, tool: &str, subject: &Subject, moment: Moment<'_>) -> Judgement {
        match self.policies.iter().next() {
            Some((_, policy)) if self.is_alone => judge_alone(policy, tool, subject, moment),
            _ => judge_together(&self.policies, tool, subject, moment),
        }
    }
}

impl Desk {
    fn new(global: Global, source: &PolicySource) -> Result<Self, CommandError> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let here = match &global.cwd {
            Some(cwd) if cwd.is_absolute() => String::new(),
            _ => text(&std::env::current_dir()?),
        };
        let mut directory = absolute(&here, &global.cwd.as_deref().map(text).unwrap_or_default());
        if source.resolve {
            directory = resolved(&directory);
        }
        let mut desk =
            Self { global, directory, resolve: source.resolve, file: source.policy.clone(), standing: None };
        if desk.file.is_some() {
            // A file that can't be used stops the command before anything is judged.
            desk.standing()?;
        }
        Ok(desk)
    }

    /// The policy in force: the file that was named, else the configuration's; `None` where neither says anything.
    fn standing(&mut self) -> Result<Option<Standing>, CommandError> {
        if let Some(standing) = &self.standing {
            return Ok(standing.clone());
        }
        let standing = match &self.file {
            Some(file) => {
                Some(Standing { shown: file.display().to_string(), ..Standing::alone(read_policy(file)?) })
            }
            None => self.configured()?,
        };
        self.standing = Some(standing.clone());
        Ok(standing)
    }

    fn configured(&self) -> Result<Option<Standing>, CommandError> {
        let app = App::new(self.global.clone())?;
        let loaded = app.configuration(&Permissions::default())?.loaded;
        let policies = app.policies(&Permissions::default(), &loaded)?;
        let shown = "the configuration".to_owned();
        Ok((!policies.is_empty()).then_some(Standing { policies, is_alone: false, shown }))
    }

    /// What rules see of a call.
    fn subject(&self, tool: &str, call: &CallText<'_>) -> Result<Subject, String> {
        let mut subject = match call {
            CallText::Target(target) => Subject::of_target(tool, target, &self.directory),
            CallText::Input(input) => Subject::of_input(tool, input, &self.directory)
                .map_err(|error| format!("`input`: {error}"))?,
        };
        if self.resolve {
            subject.paths.iter_mut().for_each(|path| *path = resolved(path));
        }
        subject.understand(tool, &facts);
        Ok(subject)
    }

    fn call(&self, call: &PolicyCall) -> Result<(String, Subject), CommandError> {
        let usage = || {
            CommandError::usage("which call?")
                .hint("alisio policy check bash \"git status\"")
                .hint("alisio policy check write --input '{\"path\": \"a.txt\", \"content\": \"\"}'")
        };
        let tool = call.tool.clone().ok_or_else(usage)?;
        let text = match (&call.target, &call.input) {
            (Some(target), _) => CallText::Target(target),
            (None, Some(input)) => CallText::Input(input),
            (None, None) => return Err(usage()),
        };
        let subject = self.subject(&tool, &text).map_err(CommandError::usage)?;
        Ok((tool, subject))
    }
}

/// How a call is given.
enum CallText<'c> {
    /// By the text that patterns see.
    Target(&'c str),
    /// By its input.
    Input(&'c str),
}

/// Says what a command would do.
fn facts(command: CommandText<'_>) -> Facts {
    match command {
        CommandText::Script(script) => understand(script, &Budget::default()),
        CommandText::Argv(argv) => understand_argv(argv),
    }
}

/// Follows the links of a path as far as it exists.
fn resolved(path: &str) -> String {
    let path = Path::new(path);
    for ancestor in path.ancestors() {
        if let (Ok(found), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return absolute("/", &found.join(rest).to_string_lossy());
        }
    }
    path.to_string_lossy().into_owned()
}

/// Reads a policy file: the policy itself, or an object with `permissions`.
pub fn read_policy(file: &Path) -> Result<Policy, CommandError> {
    let shown = file.display();
    let bytes = std::fs::read(file)
        .map_err(|error| CommandError::usage(format!("`{shown}` can't be read: {error}")))?;
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| CommandError::usage(format!("`{shown}` is no JSON: {error}")))?;
    parse_policy(value.get("permissions").unwrap_or(&value), &shown.to_string())
}

/// Reads a policy, its examples included, and tells all that is wrong with it.
pub fn parse_policy(value: &Value, place: &str) -> Result<Policy, CommandError> {
    let problems = match Policy::parse(value) {
        Ok(policy) => match policy.check_examples("/workspace", &facts) {
            problems if problems.is_empty() => return Ok(policy),
            problems => problems,
        },
        Err(problems) => problems,
    };
    let n = problems.len();
    let what = if n == 1 { "1 problem".to_owned() } else { format!("{n} problems") };
    let error = CommandError::usage(format!("the permission policy of {place} has {what}"));
    Err(problems.into_iter().fold(error, |error, problem| error.hint(problem.to_string())))
}

/// Judges a call by one policy.
fn judge_alone(policy: &Policy, tool: &str, subject: &Subject, moment: Moment<'_>) -> Judgement {
    policy.judge(Call { tool, effect: effect_of(tool), subject }, moment)
}

/// Judges a call by all policies of a run, and by the table of effects where none lets more through.
fn judge_together(policies: &PolicySet, tool: &str, subject: &Subject, moment: Moment<'_>) -> Judgement {
    let authority =
        Authority { answering: Answering::Person, policies: policies.clone(), ..Authority::headless() };
    let ruling = rule_on(&authority, &request(tool, effect_of(tool), subject, Vec::new()), moment);
    let (rule, part, parts) = match ruling.said {
        Some(said) => (said.judgement.rule, said.judgement.part, said.judgement.parts),
        None => (None, None, Vec::new()),
    };
    Judgement {
        outcome: outcome(&ruling.decision),
        source: ruling.basis.source,
        rule,
        part,
        reason: ruling.basis.reason,
        parts,
        uses: ruling.uses,
    }
}

/// Judges a call by what is in force, or by the table of effects where nothing is.
fn judge(standing: Option<&Standing>, tool: &str, subject: &Subject, moment: Moment<'_>) -> Judgement {
    match standing {
        Some(standing) => standing.judge(tool, subject, moment),
        None => judge_together(&PolicySet::default(), tool, subject, moment),
    }
}

fn outcome(decision: &Decision) -> Outcome {
    match decision {
        Decision::Allow(_) => Outcome::Allow,
        Decision::Ask(_) => Outcome::Ask,
        Decision::Deny(_) => Outcome::Deny,
    }
}

fn request(tool: &str, effect: Effect, subject: &Subject, outside: Vec<OutsidePath>) -> Request {
    Request {
        call: CallId::new("asked"),
        tool: tool.to_owned(),
        effect,
        scope: Scope::default(),
        outside,
        digest: Sha256::of(subject.target.as_bytes()),
        subject: subject.clone(),
    }
}

/// The answer as JSON.
fn as_json(judgement: &Judgement) -> Value {
    let parts: Vec<Value> = judgement
        .parts
        .iter()
        .map(|part| {
            json!({"text": part.text, "action": part.outcome.as_str(), "rule": part.rule, "reason": part.reason})
        })
        .collect();
    json!({
        "action": judgement.outcome.as_str(),
        "source": judgement.source,
        "rule": judgement.rule,
        "parts": parts,
        "reason": judgement.reason,
    })
}

fn check(desk: &mut Desk, call: &PolicyCall) -> Result<Exit, CommandError> {
    let (tool, subject) = desk.call(call)?;
    let standing = desk.standing()?;
    let uses = alisio_policy::RecordedUses::default();
    let moment = Moment { uses: &uses, ..Moment::UNKNOWN };
    let judgement = judge(standing.as_ref(), &tool, &subject, moment);
    let mut out = anstream::stdout();
    if desk.global.json {
        writeln!(out, "{}", as_json(&judgement))?;
        return Ok(Exit::Done);
    }
    writeln!(out, "{}: {}", judgement.outcome, harmless(&judgement.reason))?;
    if judgement.parts.len() > 1 {
        for part in &judgement.parts {
            writeln!(
                out,
                "  {:<5} {}  \x1b[2m{}\x1b[0m",
                part.outcome,
                harmless(&part.text),
                harmless(&part.reason)
            )?;
        }
    }
    Ok(Exit::Done)
}

fn classify(global: &Global, command: &str) -> Result<Exit, CommandError> {
    let facts = facts(CommandText::Script(command));
    let mut out = anstream::stdout();
    if global.json {
        writeln!(out, "{}", json!({"class": facts.class, "facts": facts, "reason": facts.reason}))?;
        return Ok(Exit::Done);
    }
    let word = serde_json::to_value(facts.class).unwrap_or_default();
    writeln!(out, "{}: {}", word.as_str().unwrap_or_default(), harmless(&facts.reason))?;
    for part in &facts.parts {
        writeln!(out, "  {}  \x1b[2m{}\x1b[0m", harmless(&part.text), harmless(&part.why))?;
    }
    Ok(Exit::Done)
}

/// Shows the whole way to the verdict: roots, policies, mode, flags, and who can answer.
fn explain(desk: &mut Desk, call: &PolicyCall, mut authority: Authority) -> Result<Exit, CommandError> {
    let (tool, subject) = desk.call(call)?;
    let app = App::new(desk.global.clone())?;
    let permissions = Permissions { policy: desk.file.clone(), ..Permissions::default() };
    let loaded = app.configuration(&permissions)?.loaded;
    authority.opened.clone_from(&loaded.config.additional_directories);
    authority.policies = app.policies(&permissions, &loaded)?;
    let effect = effect_of(&tool);
    let outside: Vec<OutsidePath> = subject
        .paths
        .iter()
        .map(PathBuf::from)
        .filter(|path| !path.starts_with(&desk.directory))
        .map(|path| OutsidePath { directory: path.parent().unwrap_or(Path::new("/")).to_owned(), path })
        .collect();
    let uses = alisio_policy::RecordedUses::default();
    let moment = Moment { uses: &uses, ..Moment::UNKNOWN };
    let ruling = rule_on(&authority, &request(&tool, effect, &subject, outside), moment);
    // Of several policies the one that decided, else the one that was added last.
    let decided = ruling.said.as_ref().map(|said| said.source);
    let shown =
        authority.policies.iter().filter(|(source, _)| decided.is_none_or(|decided| *source == decided));
    let explained = shown.last().map(|(source, policy)| {
        (source, policy.explain(Call { tool: &tool, effect, subject: &subject }, moment))
    });
    let mut out = anstream::stdout();
    let action = outcome(&ruling.decision);
    if desk.global.json {
        let policy = explained.as_ref().map(|(source, explained)| {
            let mut value = as_json(&explained.judgement);
            value["from"] = json!(source.to_string());
            value["matched"] = json!(explained.rule);
            value["word"] = json!(explained.word);
            value["stricter"] = json!(explained.stricter);
            value["looser"] = json!(explained.looser);
            value
        });
        let value = json!({
            "action": action.as_str(), "source": ruling.basis.source, "reason": ruling.basis.reason,
            "remedy": remedy(&ruling), "effect": effect, "paths": subject.paths, "facts": subject.facts,
            "policy": policy,
        });
        writeln!(out, "{value}")?;
        return Ok(Exit::Done);
    }
    writeln!(out, "{action}: {}", harmless(&ruling.basis.reason))?;
    if let Some(remedy) = remedy(&ruling) {
        writeln!(out, "  remedy    {}", harmless(remedy))?;
    }
    writeln!(out, "  effect    {effect}")?;
    for path in &subject.paths {
        let place =
            if Path::new(path).starts_with(&desk.directory) { "in the workspace" } else { "outside of it" };
        writeln!(out, "  path      {} ({place})", harmless(path))?;
    }
    if let (Some(facts), true) = (&subject.facts, is_command(&tool)) {
        writeln!(out, "  command   {}", harmless(&facts.reason))?;
    }
    match &explained {
        Some((source, explained)) => {
            let judgement = &explained.judgement;
            writeln!(out, "  policy    that of the {source} says {}", judgement.outcome)?;
            match (&explained.rule, judgement.rule) {
                (Some(rule), Some(index)) => writeln!(out, "  rule      rules[{index}]: {}", harmless(rule))?,
                _ => writeln!(out, "  rule      none; {}", harmless(&judgement.reason))?,
            }
            writeln!(out, "  word      {}", harmless(&explained.word))?;
            for part in &judgement.parts {
                writeln!(out, "  part      {:<5} {}", part.outcome, harmless(&part.text))?;
            }
            if let Some(stricter) = &explained.stricter {
                writeln!(out, "  stricter  {}", harmless(stricter))?;
            }
            if let Some(looser) = &explained.looser {
                writeln!(out, "  looser    {}", harmless(looser))?;
            }
        }
        None => writeln!(out, "  policy    none is set: effect, mode and flags decide")?,
    }
    Ok(Exit::Done)
}

fn remedy(ruling: &Ruling) -> Option<&str> {
    match &ruling.decision {
        Decision::Deny(denial) if !denial.remedy.is_empty() => Some(&denial.remedy),
        _ => None,
    }
}

fn is_command(tool: &str) -> bool {
    matches!(target_kind(tool), TargetKind::Command | TargetKind::Program)
}

fn the_policy(desk: &mut Desk) -> Result<Standing, CommandError> {
    desk.standing()?.ok_or_else(|| {
        CommandError::usage("no permission policy is set")
            .hint("name one with --policy FILE, or set `permissions`")
    })
}

fn lint(desk: &mut Desk) -> Result<Exit, CommandError> {
    let standing = the_policy(desk)?;
    let lints: Vec<_> = standing.policies.iter().flat_map(|(_, policy)| policy.lint()).collect();
    let mut out = anstream::stdout();
    for lint in &lints {
        if desk.global.json {
            let value = json!({"path": lint.path, "code": lint.code.as_str(), "warning": lint.code.is_warning(), "message": lint.message});
            writeln!(out, "{value}")?;
        } else {
            let word = if lint.code.is_warning() { "warning" } else { "note" };
            writeln!(out, "{word}: {}", harmless(&lint.to_string()))?;
        }
    }
    if lints.is_empty() && !desk.global.json {
        writeln!(out, "nothing to say about {}", harmless(&standing.shown))?;
    }
    Ok(if lints.iter().any(|lint| lint.code.is_warning()) { Exit::Failed } else { Exit::Done })
}

fn test(desk: &mut Desk) -> Result<Exit, CommandError> {
    // Whoever reads a policy checks its examples; one that gets here holds what it promises.
    let standing = the_policy(desk)?;
    let rules = || standing.policies.iter().flat_map(|(_, policy)| &policy.rules);
    let n_rules = rules().count();
    let n_examples: usize = rules().map(|rule| rule.examples.len()).sum();
    let mut out = anstream::stdout();
    if desk.global.json {
        writeln!(out, "{}", json!({"rules": n_rules, "examples": n_examples, "failed": 0}))?;
    } else {
        writeln!(out, "{}: {n_examples} examples of {n_rules} rules hold", harmless(&standing.shown))?;
    }
    Ok(Exit::Done)
}
