//! Programs that start another one. Those that change nothing are taken off; the others stand as parts of their own
//! beside what they start.

use super::{Case, Nested, Verdict};
use crate::judge::is_harmless;
use crate::options::{Table, unknown};
use crate::value::Arg;

pub(super) fn judge(case: &mut Case<'_>) -> Option<Verdict> {
    Some(match case.name {
        "env" => env(case),
        "timeout" | "gtimeout" => wrapped(
            case,
            &Table {
                short: "vk:s:",
                long: "foreground preserve-status kill-after= signal= verbose",
                numbers: false,
            },
            1,
        ),
        "nice" => wrapped(case, &Table { short: "n:", long: "adjustment=", numbers: true }, 0),
        "ionice" => {
            wrapped(case, &Table { short: "c:n:t", long: "class= classdata= ignore", numbers: false }, 0)
        }
        "stdbuf" => {
            wrapped(case, &Table { short: "i:o:e:", long: "input= output= error=", numbers: false }, 0)
        }
        "time" => wrapped(
            case,
            &Table { short: "pvqf:", long: "portability verbose quiet format=", numbers: false },
            0,
        ),
        "setsid" => wrapped(case, &Table { short: "w", long: "wait", numbers: false }, 0),
        "nohup" => {
            case.writes.push(String::from("nohup.out"));
            privileged(
                case,
                &Table { short: "", long: "", numbers: false },
                "it may write `nohup.out` and outlives the shell",
            )
        }
        "sudo" | "doas" => privileged(
            case,
            &Table {
                short: "nEHkSu:g:p:C:",
                long: "user= group= non-interactive preserve-env?",
                numbers: false,
            },
            "it takes other rights",
        ),
        "sh" | "bash" | "dash" => shell(case),
        _ => return None,
    })
}

/// Splits off the options and `skip` operands in front of the command.
fn after_options<'a>(args: &'a [Arg], table: &Table, skip: usize) -> Result<&'a [Arg], String> {
    let mut n = 0;
    while let Some(arg) = args.get(n) {
        let Some(text) = &arg.exact else { break };
        if text == "--" {
            n += 1;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        // Alone it lacks a value where it needs one: then the value is the next word.
        let alone = table.split(&args[n..=n]);
        let length = if alone.is_ok() { 1 } else { 2 };
        let split = table.split(&args[n..(n + length).min(args.len())])?;
        if !split.operands.is_empty() {
            return Err(unknown(text));
        }
        n += length;
    }
    for arg in &args[n.min(args.len())..(n + skip).min(args.len())] {
        if arg.many || !arg.is_operand() {
            return Err(format!("`{}` may become several words or an option", arg.source));
        }
    }
    Ok(&args[(n + skip).min(args.len())..])
}

fn wrapped(case: &Case<'_>, table: &Table, skip: usize) -> Verdict {
    match after_options(case.args, table, skip) {
        Err(why) => case.unknown(why),
        Ok([]) => case.read(),
        Ok(command) => Verdict::Inner(command.to_vec()),
    }
}

fn privileged(case: &mut Case<'_>, table: &Table, why: &str) -> Verdict {
    if let Ok(command) = after_options(case.args, table, 0)
        && !command.is_empty()
    {
        case.nested.push(Nested::Command(command.to_vec()));
    }
    case.unknown(why)
}

/// `env` alone shows the environment; with a command it starts it.
fn env(case: &Case<'_>) -> Verdict {
    let mut args = case.args;
    while let Some((first, rest)) = args.split_first() {
        let text = first.exact.as_deref().unwrap_or(&first.head);
        match text {
            "-i" | "--ignore-environment" | "-" | "-0" | "--null" if first.exact.is_some() => args = rest,
            "-u" | "--unset" => {
                let Some((name, rest)) = rest.split_first() else { return case.unknown("`-u` has no name") };
                if !is_harmless(name.text()) {
                    return case.unknown(format!("without `{}` programs may do something else", name.source));
                }
                args = rest;
            }
            "--" => {
                args = rest;
                break;
            }
            text if text.starts_with('-') => return case.unknown(unknown(text)),
            text => match text.split_once('=') {
                Some((name, _)) if is_harmless(name) && !first.many => args = rest,
                Some((name, _)) => {
                    return case.unknown(format!("it sets `{name}`, which may change what programs do"));
                }
                None => break,
            },
        }
    }
    match args.first() {
        None => Verdict::Read(String::from("`env` shows the environment")),
        Some(first) if first.text().contains('=') => case.unknown("an assignment is in an odd place"),
        Some(_) => Verdict::Inner(args.to_vec()),
    }
}

/// A shell with its script in the text: the script is judged as this one is.
fn shell(case: &mut Case<'_>) -> Verdict {
    if case.is(&["--version"]) {
        return case.read();
    }
    let mut args = case.args;
    while let Some((first, rest)) = args.split_first() {
        let letters = first.text().strip_prefix('-').unwrap_or_default();
        if letters.is_empty() || !letters.chars().all(|c| "ceux".contains(c)) {
            break;
        }
        args = rest;
        if !letters.contains('c') {
            continue;
        }
        let Some(script) = args.first().and_then(|arg| arg.exact.clone()) else {
            return case.unknown("its script is only known when it runs");
        };
        if script.starts_with(['-', '+']) {
            return case.unknown("its script looks like an option");
        }
        // Shells other than bash read these differently, and `sh` may be one.
        if case.name != "bash" && (script.contains("$'") || script.contains("&>")) {
            return case.unknown("its script means something else in other shells");
        }
        case.nested.push(Nested::Script(script));
        return Verdict::Read(format!("`{}` does what its script does", case.name));
    }
    case.unknown("it runs a script that is not in the text")
}
