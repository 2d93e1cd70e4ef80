//! What the shell does itself.

use super::{Case, Verdict};
use crate::judge::{is_harmless, is_settable};
use crate::options::Table;

const READ: Table = Table { short: "rsn:N:d:p:t:u:", long: "", numbers: false };

pub(super) fn judge(case: &mut Case<'_>) -> Option<Verdict> {
    Some(match case.name {
        "true" | "false" | ":" | "pwd" | "cd" | "type" | "which" | "times" | "dirs" | "help" => {
            let verdict = case.harmless(0);
            case.reads.clear();
            verdict
        }
        "pushd" | "popd" | "wait" | "exit" | "return" | "break" | "continue" | "shift" | "logname" => {
            let args = case.args;
            let verdict = case.operands_only(args);
            case.reads.clear();
            verdict
        }
        "printf" => printf(case),
        "test" | "[" => test(case),
        "expr" => case.read(),
        "read" => read(case),
        "set" => set(case),
        "unset" => names(case, is_settable),
        "export" => names(case, is_harmless),
        "shopt" => {
            const FINE: &[&str] =
                &["-s", "-u", "-q", "-p", "nullglob", "globstar", "dotglob", "failglob", "nocaseglob"];
            if case.args.iter().all(|arg| FINE.contains(&arg.text())) {
                case.read()
            } else {
                case.unknown("it changes how the shell reads the rest")
            }
        }
        "umask" | "alias" | "jobs" | "history" | "hash" => {
            let number = case.name == "history"
                && case.args.len() == 1
                && case.args[0].exact.is_some()
                && case.args[0].number;
            let listing = case.is(&["-p"]) && matches!(case.name, "alias" | "umask")
                || case.is(&["-S"]) && case.name == "umask";
            let jobs = case.name == "jobs"
                && case.args.iter().all(|arg| matches!(arg.text(), "-l" | "-p" | "-r" | "-s"));
            if case.args.is_empty() || number && !case.args[0].text().starts_with('-') || listing || jobs {
                case.read()
            } else {
                case.unknown("it may change the state of the shell")
            }
        }
        "ulimit" => {
            if case.is(&["-a"]) || case.args.is_empty() || case.is(&["-n"]) {
                case.read()
            } else {
                case.unknown("it may change a limit")
            }
        }
        "command" | "builtin" => command(case),
        _ => return None,
    })
}

/// `-v` assigns to a name whose subscript is evaluated.
fn printf(case: &Case<'_>) -> Verdict {
    match case.args.first() {
        None => case.read(),
        Some(arg) if arg.text() == "--" || arg.is_operand() => case.read(),
        Some(arg) if arg.exact.is_some() => case.unknown(crate::options::unknown(&arg.source)),
        Some(arg) => case.unknown(format!("`{}` may become an option", arg.source)),
    }
}

/// `-v` and `-R` evaluate the subscript in the name that they are given.
fn test(case: &Case<'_>) -> Verdict {
    let mut args = case.args;
    if case.name == "[" {
        match args.split_last() {
            Some((last, rest)) if last.text() == "]" => args = rest,
            _ => return case.unknown("its closing bracket is missing"),
        }
    }
    for arg in args {
        if matches!(arg.text(), "-v" | "-R") {
            return case.unknown(format!("`{}` evaluates the name it is given", arg.source));
        }
        if arg.many {
            return case.unknown(format!("`{}` may become several words", arg.source));
        }
    }
    if args.len() == 3 && args[1].exact.is_none() {
        return case.unknown("a word in it may become an operator that evaluates a name");
    }
    if args.len() != 1 && args.len() != 3 {
        // Only in these lengths can no operand be taken for `-v` or `-R` instead of what it stands for.
        let operator = |arg: &crate::value::Arg| arg.exact.is_some();
        let doubtful = args.iter().enumerate().any(|(at, arg)| {
            let named = at > 0 && operator(&args[at - 1]) && args[at - 1].text().starts_with(['-', '=', '!']);
            let followed = args
                .get(at + 1)
                .is_some_and(|next| operator(next) && next.text().starts_with(['-', '=', '!', '<', '>']));
            arg.exact.is_none() && arg.free && !(named && args[at - 1].text() != "!" || followed)
        });
        if doubtful {
            return case.unknown("a word in it may become an operator that evaluates a name");
        }
    }
    case.read()
}

fn read(case: &Case<'_>) -> Verdict {
    match READ.split(case.args) {
        Err(why) => case.unknown(why),
        Ok(split) => {
            let fine = split.operands.iter().all(|arg| is_identifier(arg.text()) && is_settable(arg.text()));
            if fine {
                case.read()
            } else {
                case.unknown("it sets a variable that may change what programs do")
            }
        }
    }
}

fn set(case: &Case<'_>) -> Verdict {
    let mut args = case.args.iter();
    while let Some(arg) = args.next() {
        let text = arg.text();
        let letters = text.strip_prefix(['-', '+']).unwrap_or_default();
        let plain = letters.strip_suffix('o').unwrap_or(letters);
        if letters.is_empty() || !plain.chars().all(|c| "eufx".contains(c)) {
            return case.unknown(format!("`{}` may change how the shell reads the rest", arg.source));
        }
        if letters.ends_with('o')
            && !args
                .next()
                .is_some_and(|name| matches!(name.text(), "pipefail" | "errexit" | "nounset" | "noglob"))
        {
            return case.unknown("it may change how the shell reads the rest");
        }
    }
    case.read()
}

/// Words that are names or `name=value`.
fn names(case: &Case<'_>, fine: fn(&str) -> bool) -> Verdict {
    for arg in case.args {
        let text = arg.exact.as_deref().unwrap_or(&arg.head);
        let (name, has_value) = match text.split_once('=') {
            Some((name, _)) => (name, true),
            None => (text, false),
        };
        if arg.many || (arg.exact.is_none() && !has_value) || !is_identifier(name) || !fine(name) {
            return case.unknown(format!("`{}` may change what programs do", arg.source));
        }
    }
    if case.args.is_empty() { case.unknown("without names its meaning differs") } else { case.read() }
}

/// `command -v x` looks a name up; `command x` is x.
fn command(case: &Case<'_>) -> Verdict {
    let mut args = case.args;
    while let Some((first, rest)) = args.split_first() {
        match first.text() {
            "-v" | "-V" if case.name == "command" => return case.read(),
            "-p" if case.name == "command" => args = rest,
            "--" => {
                args = rest;
                break;
            }
            text if text.starts_with('-') => return case.unknown(crate::options::unknown(text)),
            _ => break,
        }
    }
    if args.is_empty() { case.read() } else { Verdict::Inner(args.to_vec()) }
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
