//! Walks over the tree and judges each simple command.

use alisio_protocol::{Class, Facts, Part};

use crate::Budget;
use crate::programs::{self, Case, Nested, Verdict};
use crate::syntax::{
    self, Arithmetic, Assignment, Condition, Direction, Item, Piece, Redirect, Simple, Word,
};
use crate::value::{Arg, Variables};

/// Folders whose programs are the ones that are known by name.
const SYSTEM_FOLDERS: &[&str] =
    &["/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Variables that may be set for a program without changing what it runs or writes.
const HARMLESS_SETTINGS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "NO_COLOR",
    "TERM",
    "COLUMNS",
    "LINES",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
    "GREP_COLOR",
    "GREP_COLORS",
    "LS_COLORS",
    "TREE_COLORS",
    "JQ_COLORS",
    "BLOCKSIZE",
    "BLOCK_SIZE",
    "QUOTING_STYLE",
    "TIME_STYLE",
    "TABSIZE",
    "POSIXLY_CORRECT",
    "COLORTERM",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
];

/// Names in capitals that scripts use for themselves and no program looks for.
const OWN_NAMES: &[&str] = &[
    "FILE", "FILES", "DIR", "DIRS", "NAME", "NAMES", "COUNT", "PATTERN", "RESULT", "OUTPUT", "INPUT", "LINE",
    "ITEM", "KEY", "VALUE", "VAR", "MSG", "MESSAGE", "TOTAL", "SUM", "NUM", "INDEX", "BRANCH", "COMMIT",
    "REV", "SHA", "HASH", "VERSION", "ROOT", "SRC", "DEST", "TARGET", "START", "END", "SIZE", "LIMIT", "MAX",
    "MIN", "FOO", "BAR", "BASE",
];

pub(crate) fn script(text: &str, budget: &Budget) -> Facts {
    let mut judge = Judge { budget, parts: Vec::new(), variables: Variables::default(), level: 0 };
    if text.len() > budget.n_bytes {
        let shown: String = text.chars().take(200).collect();
        judge.unknown(&shown, format!("it is longer than {} bytes", budget.n_bytes));
    } else {
        judge.text(text);
    }
    judge.facts()
}

pub(crate) fn argv(argv: &[String], budget: &Budget) -> Facts {
    let mut judge = Judge { budget, parts: Vec::new(), variables: Variables::default(), level: 0 };
    let args: Vec<Arg> = argv.iter().map(Arg::constant).collect();
    let text = argv.join(" ");
    if text.len() > budget.n_bytes {
        judge.unknown(
            &text.chars().take(200).collect::<String>(),
            format!("it is longer than {} bytes", budget.n_bytes),
        );
    } else if !args.is_empty() {
        judge.command(&text, args, &[], &[]);
    }
    judge.facts()
}

struct Judge<'b> {
    budget: &'b Budget,
    parts: Vec<Part>,
    variables: Variables,
    /// Scripts inside scripts.
    level: usize,
}

impl Judge<'_> {
    fn facts(self) -> Facts {
        let worst = self.parts.iter().find(|part| part.class != Class::Read);
        let (class, reason) = match worst {
            Some(part) => {
                let text: String = part.text.chars().take(80).collect();
                (Class::WriteOrUnknown, format!("`{}`: {}", text.trim(), part.why))
            }
            None if self.parts.is_empty() => {
                (Class::WriteOrUnknown, String::from("there is no command in it"))
            }
            None => (Class::Read, String::from("every part only looks")),
        };
        Facts { parts: self.parts, class, reason }
    }

    fn text(&mut self, text: &str) {
        let (items, stop) = syntax::parse(text, self.budget.depth.saturating_sub(self.level));
        let outer = std::mem::take(&mut self.variables);
        self.variables.blind = self.level > 0;
        for round in 0.. {
            self.variables.changed = false;
            self.learn(&items);
            if !self.variables.changed {
                break;
            }
            if round > 30 {
                self.unknown(text, String::from("its variables depend on each other too deeply"));
                break;
            }
        }
        self.items(&items);
        if let Some(stop) = stop {
            let rest = text.get(stop.at..).unwrap_or_default().lines().next().unwrap_or_default();
            let near: String = rest.chars().take(40).collect();
            let near = if near.is_empty() { String::from("at the end") } else { format!("at `{near}`") };
            self.unknown(text, format!("it has {} {near}", stop.why));
        }
        self.variables = outer;
    }

    fn unknown(&mut self, text: &str, why: String) {
        self.part(text, Err(why));
    }

    fn part(&mut self, text: &str, verdict: Result<String, String>) -> &mut Part {
        let (class, why) = match verdict {
            Ok(why) => (Class::Read, why),
            Err(why) => (Class::WriteOrUnknown, why),
        };
        self.parts.push(Part {
            text: text.to_owned(),
            argv: None,
            program: None,
            class,
            reads: Vec::new(),
            writes: Vec::new(),
            hosts: Vec::new(),
            why,
        });
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    /// Gathers what the script's own assignments tell about its variables, wherever they stand.
    fn learn(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Simple(simple) => {
                    for assignment in &simple.assignments {
                        if assignment.partial || assignment.array {
                            self.variables.forget(&assignment.name);
                        } else if let Some(word) = assignment.values.first() {
                            let value = self.variables.value(word);
                            self.variables.add(&assignment.name, value);
                        }
                        self.learn_words(&assignment.values);
                    }
                    let builtin = simple.words.iter().any(|word| {
                        matches!(
                            word.text.as_str(),
                            "read" | "mapfile" | "readarray" | "getopts" | "export" | "local"
                        )
                    });
                    if builtin {
                        for word in &simple.words {
                            let name = word.text.split('=').next().unwrap_or_default();
                            self.variables.forget(name.trim_matches(['"', '\'']));
                        }
                    }
                    self.learn_words(&simple.words);
                    simple
                        .redirects
                        .iter()
                        .for_each(|redirect| self.learn_words(std::slice::from_ref(&redirect.target)));
                }
                Item::Redirects { redirects, .. } => {
                    redirects
                        .iter()
                        .for_each(|redirect| self.learn_words(std::slice::from_ref(&redirect.target)));
                }
                Item::Loop { name, values, .. } => match values {
                    None => self.variables.forget(name),
                    Some(words) => {
                        for word in words {
                            let value = self.variables.loop_value(word);
                            self.variables.add(name, value);
                        }
                        self.learn_words(words);
                    }
                },
                Item::Words(words) => self.learn_words(words),
                Item::Arithmetic { arithmetic, .. } => self.learn_arithmetic(arithmetic),
                Item::Condition(condition) => {
                    self.learn_words(&condition.operands);
                    self.learn_words(&condition.numbers);
                }
                Item::Opaque { .. } => {}
            }
        }
    }

    fn learn_words(&mut self, words: &[Word]) {
        words.iter().for_each(|word| self.learn_pieces(&word.pieces));
    }

    fn learn_pieces(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match piece {
                Piece::Plain(_) | Piece::Quoted(_) => {}
                Piece::Variable { name, words, assigns, arithmetic, .. } => {
                    if *assigns {
                        self.variables.forget(name);
                    }
                    self.learn_words(words);
                    if let Some(arithmetic) = arithmetic {
                        self.learn_arithmetic(arithmetic);
                    }
                }
                Piece::Command { items, .. } | Piece::Process { items } => self.learn(items),
                Piece::Arithmetic { arithmetic, .. } => self.learn_arithmetic(arithmetic),
            }
        }
    }

    fn learn_arithmetic(&mut self, arithmetic: &Arithmetic) {
        arithmetic.set.iter().for_each(|name| self.variables.number(name));
        self.learn_pieces(&arithmetic.pieces);
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            if self.parts.len() >= self.budget.n_parts {
                if self.parts.len() == self.budget.n_parts {
                    self.unknown("", String::from("it has too many parts"));
                }
                return;
            }
            match item {
                Item::Simple(simple) => self.simple(simple),
                Item::Redirects { text, redirects } => {
                    let (reads, writes, verdict) = self.redirects(redirects);
                    let part = self.part(text, verdict.map(|()| String::from("it only redirects")));
                    part.reads = reads;
                    part.writes = writes;
                    self.nested_redirects(redirects);
                }
                Item::Loop { text, name, values } => {
                    if !is_settable(name) {
                        self.unknown(text, format!("it sets `{name}`, which may change what programs do"));
                    }
                    self.words(values.as_deref().unwrap_or_default());
                }
                Item::Words(words) => self.words(words),
                Item::Arithmetic { text, arithmetic } => {
                    let verdict = self.arithmetic(arithmetic).map(|()| String::from("it only calculates"));
                    self.part(text, verdict);
                    self.pieces(&arithmetic.pieces);
                }
                Item::Condition(condition) => self.condition(condition),
                Item::Opaque { text, why } => self.unknown(text, format!("it {why}")),
            }
        }
    }

    fn condition(&mut self, condition: &Condition) {
        let mut verdict = Ok(String::from("it only tests"));
        if let Some(why) = condition.opaque {
            verdict = Err(format!("it {why}"));
        }
        for word in &condition.numbers {
            let args = self.variables.expand(word);
            if !args.iter().all(|arg| arg.number) && !self.is_number_name(&word.text) {
                verdict = Err(format!("`{}` is evaluated as arithmetic and may run a command", word.text));
            }
        }
        self.part(&condition.text, verdict).program = Some(String::from("[["));
        self.words(&condition.operands);
        self.words(&condition.numbers);
    }

    fn is_number_name(&self, name: &str) -> bool {
        matches!(
            name,
            "RANDOM"
                | "SECONDS"
                | "LINENO"
                | "UID"
                | "EUID"
                | "PPID"
                | "BASHPID"
                | "EPOCHSECONDS"
                | "COLUMNS"
                | "LINES"
        ) || self.variables.get(name).number
    }

    /// Bash evaluates the value of each name once more, so all of them must be numbers.
    fn arithmetic(&self, arithmetic: &Arithmetic) -> Result<(), String> {
        for name in &arithmetic.names {
            if !self.is_number_name(name) {
                return Err(format!(
                    "the value of `{name}` is evaluated as arithmetic and may run a command"
                ));
            }
            if arithmetic.assigns && !is_settable(name) {
                return Err(format!("it sets `{name}`, which may change what programs do"));
            }
        }
        for piece in &arithmetic.pieces {
            let word = Word { text: String::new(), pieces: vec![piece.clone()] };
            if !matches!(piece, Piece::Arithmetic { .. })
                && !self.variables.expand(&word).iter().all(|arg| arg.number)
            {
                return Err(String::from("an expansion in its arithmetic is not known to be a number"));
            }
        }
        Ok(())
    }

    /// Judges what is run inside words.
    fn words(&mut self, words: &[Word]) {
        words.iter().for_each(|word| self.pieces(&word.pieces));
    }

    fn pieces(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match piece {
                Piece::Plain(_) | Piece::Quoted(_) => {}
                Piece::Variable { name, words, assigns, arithmetic, .. } => {
                    if *assigns && !is_settable(name) {
                        self.unknown(name, format!("it sets `{name}`, which may change what programs do"));
                    }
                    self.words(words);
                    if let Some(arithmetic) = arithmetic {
                        if let Err(why) = self.arithmetic(arithmetic) {
                            self.unknown(name, why);
                        }
                        self.pieces(&arithmetic.pieces);
                    }
                }
                Piece::Command { items, .. } | Piece::Process { items } => self.items(items),
                Piece::Arithmetic { arithmetic, .. } => {
                    if let Err(why) = self.arithmetic(arithmetic) {
                        self.unknown("$((…))", why);
                    }
                    self.pieces(&arithmetic.pieces);
                }
            }
        }
    }

    fn simple(&mut self, simple: &Simple) {
        let args: Vec<Arg> = simple.words.iter().flat_map(|word| self.variables.expand(word)).collect();
        self.command(&simple.text, args, &simple.assignments, &simple.redirects);
        for assignment in &simple.assignments {
            self.words(&assignment.values);
        }
        self.words(&simple.words);
        self.nested_redirects(&simple.redirects);
    }

    fn nested_redirects(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            self.pieces(&redirect.target.pieces);
        }
    }

    /// Judges one command with its assignments and redirections, and what it starts in turn.
    fn command(
        &mut self,
        text: &str,
        mut args: Vec<Arg>,
        assignments: &[Assignment],
        redirects: &[Redirect],
    ) {
        let (mut reads, mut writes, mut verdict) = self.redirects(redirects);
        let reader = args.first().is_some_and(|arg| arg.text() == "read");
        for assignment in assignments {
            let name = assignment.name.as_str();
            let fine = if args.is_empty() {
                is_settable(name)
            } else {
                is_harmless(name) || (reader && name == "IFS")
            };
            if !fine && verdict.is_ok() {
                verdict = Err(format!("it sets `{name}`, which may change what programs do"));
            }
        }
        let mut hosts = Vec::new();
        let mut nested = Vec::new();
        let mut why = String::from("it only sets or redirects");
        while !args.is_empty() {
            let Some(word) = &args[0].exact else {
                verdict =
                    verdict.and(Err(format!("the program `{}` is only known when it runs", args[0].source)));
                break;
            };
            let name = match program_name(word) {
                Ok(name) => name,
                Err(problem) => {
                    verdict = verdict.and(Err(problem));
                    break;
                }
            };
            let mut case = Case::new(name, &args[1..]);
            let judged = programs::judge(&mut case);
            let Case { reads: more_reads, writes: more_writes, hosts: more_hosts, nested: more, .. } = case;
            reads.extend(more_reads);
            writes.extend(more_writes);
            hosts.extend(more_hosts);
            nested.extend(more);
            match judged {
                Verdict::Read(reason) => why = reason,
                Verdict::Unknown(problem) => verdict = verdict.and(Err(problem)),
                Verdict::Inner(inner) => {
                    args = inner;
                    continue;
                }
            }
            break;
        }
        let constant: Option<Vec<String>> = args.iter().map(|arg| arg.exact.clone()).collect();
        let program = args
            .first()
            .and_then(|arg| arg.exact.as_deref())
            .map(|word| word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word).to_owned());
        let part = self.part(text, verdict.map(|()| why));
        part.argv = constant.filter(|words| !words.is_empty());
        part.program = program;
        part.reads = reads;
        part.writes = writes;
        part.hosts = hosts;
        for nested in nested {
            self.started(text, nested);
        }
    }

    /// Judges what a command starts.
    fn started(&mut self, text: &str, nested: Nested) {
        if self.level >= 8 || self.parts.len() >= self.budget.n_parts {
            self.unknown(text, String::from("it has too many commands inside commands"));
            return;
        }
        self.level += 1;
        match nested {
            Nested::Command(args) => self.command(text, args, &[], &[]),
            Nested::Script(script) => self.text(&script),
        }
        self.level -= 1;
    }

    fn redirects(&self, redirects: &[Redirect]) -> (Vec<String>, Vec<String>, Result<(), String>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut verdict = Ok(());
        let mut own = vec![String::from("0"), String::from("1"), String::from("2")];
        for redirect in redirects {
            let args = self.variables.expand(&redirect.target);
            let [arg] = args.as_slice() else {
                verdict = verdict.and(Err(format!("`{}` has several targets", redirect.text)));
                continue;
            };
            let target = arg.exact.clone().unwrap_or_else(|| arg.source.clone());
            let problem = match redirect.direction {
                Direction::Text => None,
                Direction::Input => {
                    reads.push(target);
                    input_problem(arg)
                }
                Direction::Duplicate if is_descriptor(arg) => {
                    let number = arg.text().trim_end_matches('-').to_owned();
                    let known = number.is_empty() || own.contains(&number);
                    own.extend(redirect.descriptor.clone());
                    (!known).then(|| {
                        format!("`{}` uses a descriptor that something else has opened", redirect.text)
                    })
                }
                Direction::Output | Direction::Duplicate | Direction::Both => {
                    let harmless = matches!(arg.text(), "/dev/null" | "/dev/stdout" | "/dev/stderr")
                        && redirect.direction == Direction::Output
                        || arg.text() == "/dev/null";
                    own.extend(redirect.descriptor.clone());
                    if harmless {
                        None
                    } else {
                        writes.push(target);
                        Some(format!("`{}` writes", redirect.text))
                    }
                }
            };
            if let Some(problem) = problem {
                verdict = verdict.and(Err(problem));
            }
        }
        (reads, writes, verdict)
    }
}

/// A number, a dash, or a number that is moved.
fn is_descriptor(arg: &Arg) -> bool {
    let text = arg.text();
    let digits = text.strip_suffix('-').unwrap_or(text);
    !text.is_empty() && digits.len() < 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Bash makes connections where the name of a file looks like one.
fn input_problem(arg: &Arg) -> Option<String> {
    let path = arg.exact.as_deref().unwrap_or(&arg.head);
    if path.starts_with("/dev/") {
        let fine = matches!(
            path,
            "/dev/null" | "/dev/stdin" | "/dev/zero" | "/dev/random" | "/dev/urandom" | "/dev/tty"
        ) && arg.exact.is_some();
        return (!fine).then(|| format!("`{path}` may be a connection or a device"));
    }
    let may_be_device = arg.exact.is_none() && !arg.source.starts_with("<(") && {
        arg.head.is_empty() && arg.free || (!arg.head.is_empty() && "/dev/".starts_with(&arg.head))
    };
    may_be_device.then(|| format!("the file `{}` is only known when it runs", arg.source))
}

/// The name of the program, where its folder is one of the system's.
fn program_name(word: &str) -> Result<&str, String> {
    match word.rsplit_once('/') {
        None if word.is_empty() => Err(String::from("the program has no name")),
        None => Ok(word),
        Some((folder, name)) if SYSTEM_FOLDERS.contains(&folder) && !name.is_empty() => Ok(name),
        Some(_) => Err(format!("`{word}` is a program in a folder that anybody may have filled")),
    }
}

/// It may be set in front of a program.
pub(crate) fn is_harmless(name: &str) -> bool {
    HARMLESS_SETTINGS.contains(&name)
        || (name.starts_with("LC_") && is_identifier(name))
        || (is_own(name) && !OWN_NAMES.contains(&name))
}

/// It may be set in the shell.
pub(crate) fn is_settable(name: &str) -> bool {
    is_harmless(name) || is_own(name)
}

/// A name that only the script itself uses: no shell and no reader looks for it.
fn is_own(name: &str) -> bool {
    // `env` takes any text for a name, and bash takes some of them for functions.
    let lower = is_identifier(name) && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let low = name.to_ascii_lowercase();
    let reserved = low.ends_with("_proxy")
        || low.starts_with("npm_config")
        || matches!(low.as_str(), "histchars" | "auto_resume");
    let single = name.len() == 1;
    (lower && !reserved) || single || OWN_NAMES.contains(&name)
}

fn is_identifier(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
