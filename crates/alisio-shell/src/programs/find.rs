//! `find`: tests and actions by name. Commands that it starts are judged as parts of their own.

use super::{Case, Nested, Verdict};
use crate::value::Arg;

/// Tests and actions without a value.
const FLAGS: &[&str] = &[
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-depth",
    "-d",
    "-daystart",
    "-follow",
    "-mount",
    "-xdev",
    "-empty",
    "-executable",
    "-readable",
    "-writable",
    "-nouser",
    "-nogroup",
    "-true",
    "-false",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    "!",
    "(",
    ")",
    ",",
    "-noleaf",
    "-warn",
    "-nowarn",
    "-ignore_readdir_race",
    "-noignore_readdir_race",
    "-H",
    "-L",
    "-P",
    "-X",
    "-E",
    "-x",
    "-s",
];

/// Those with one.
const VALUES: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-newermt",
    "-newerct",
    "-newerat",
    "-newermm",
    "-newercm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-links",
    "-inum",
    "-samefile",
    "-maxdepth",
    "-mindepth",
    "-fstype",
    "-lname",
    "-ilname",
    "-used",
    "-printf",
    "-context",
    "-Bmin",
    "-Btime",
];

pub(super) fn judge(case: &mut Case<'_>) -> Verdict {
    let args = case.args;
    let mut n = 0;
    let mut paths = true;
    let mut dashed_path = false;
    while let Some(arg) = args.get(n) {
        n += 1;
        let Some(text) = arg.exact.as_deref() else {
            if paths && arg.is_operand() && !arg.head.starts_with(['(', '!']) {
                case.reads.push(arg.source.clone());
                continue;
            }
            return case.unknown(format!("`{}` may become a test or an action", arg.source));
        };
        if text.starts_with("-O") && text.len() == 3 && paths {
            continue;
        }
        let is_path = !text.starts_with('-') && !matches!(text, "(" | ")" | "!" | ",");
        if is_path {
            if !paths {
                return case.unknown(format!("`{text}` is in an odd place"));
            }
            case.reads.push(text.to_owned());
            continue;
        }
        if !matches!(text, "-H" | "-L" | "-P" | "-E" | "-X" | "-s" | "-x" | "-d") {
            paths = false;
        }
        if FLAGS.contains(&text) {
            continue;
        }
        if VALUES.contains(&text) {
            match args.get(n) {
                Some(value) if !value.many => n += 1,
                // A pattern without quotes, which matches one file or none as a rule, may become several words.
                _ => return case.unknown(format!("the value of `{text}` is not one word")),
            }
            continue;
        }
        if matches!(text, "-exec" | "-execdir") {
            let Some(end) = args[n..].iter().enumerate().position(|(at, arg)| {
                arg.text() == ";" || (arg.text() == "+" && at > 0 && args[n + at - 1].text() == "{}")
            }) else {
                return case.unknown(format!("`{text}` does not end"));
            };
            dashed_path |= case.reads.iter().any(|path| path.starts_with('$'));
            let command = args[n..n + end].iter().map(|arg| found(arg, dashed_path)).collect();
            case.nested.push(Nested::Command(command));
            n += end + 1;
            continue;
        }
        if matches!(text, "-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls") {
            case.writes.extend(args.get(n).and_then(|arg| arg.exact.clone()));
        }
        return case.unknown(format!("`{text}` is not known to be harmless"));
    }
    case.read()
}

/// The argument with the path that was found in it. Paths begin as the starting point does, so never with a dash.
fn found(arg: &Arg, free: bool) -> Arg {
    match arg.exact.as_deref().and_then(|text| text.split_once("{}")) {
        None => arg.clone(),
        Some((head, _)) => Arg {
            head: head.to_owned(),
            free: free && head.is_empty(),
            many: head.is_empty(),
            source: arg.source.clone(),
            ..Arg::default()
        },
    }
}
