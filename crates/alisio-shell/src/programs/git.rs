//! `git`, by subcommand and option.
//!
//! What a repository's own configuration may start (a file-system monitor, an external diff, a text converter) is not in
//! the text. Everyday reads count as reads all the same and say so; only options that ask for such programs are refused.

use super::{Case, Verdict};
use crate::options::{Split, Table};
use crate::value::Arg;

macro_rules! diff_long {
    () => {
        "patch no-patch unified= stat? numstat shortstat dirstat? cumulative summary name-only name-status raw \
            patch-with-stat patch-with-raw minimal patience histogram diff-algorithm= anchored= color? no-color color-moved? \
            no-color-moved color-moved-ws= color-words? word-diff? word-diff-regex= no-renames find-renames? find-copies? \
            find-copies-harder check full-index binary abbrev? no-abbrev break-rewrites? irreversible-delete diff-filter= \
            pickaxe-all pickaxe-regex relative? no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change \
            ignore-all-space ignore-blank-lines ignore-matching-lines= inter-hunk-context= function-context exit-code quiet \
            no-ext-diff no-textconv ignore-submodules? src-prefix= dst-prefix= no-prefix line-prefix= cached staged merge-base \
            no-index compact-summary submodule? rename-empty no-rename-empty indent-heuristic no-indent-heuristic follow \
            ws-error-highlight= cc combined-all-paths skip-to= rotate-to= find-object= base ours theirs stat-width= \
            stat-name-width= stat-count= default-prefix root stdin"
    };
}

const LOG_LONG: &str = concat!(
    diff_long!(),
    " ",
    "oneline graph no-graph decorate? no-decorate decorate-refs= decorate-refs-exclude= all branches? tags? \
        remotes? glob= exclude= since= after= until= before= author= committer= grep= all-match invert-grep regexp-ignore-case \
        basic-regexp extended-regexp fixed-strings perl-regexp merges no-merges min-parents= max-parents= first-parent not \
        max-count= skip= reverse date= format= pretty? abbrev-commit no-abbrev-commit topo-order date-order author-date-order \
        left-right left-only right-only cherry cherry-pick cherry-mark boundary simplify-by-decoration simplify-merges \
        full-history dense sparse ancestry-path? walk-reflogs source log-size full-diff notes? no-notes relative-date parents \
        children use-mailmap mailmap no-mailmap no-walk? do-walk encoding= expand-tabs? no-expand-tabs clear-decorations count \
        objects ignore-missing show-pulls remove-empty grep-reflog= bisect show-linear-break? since-as-filter= summary numbered \
        email group= diff-merges= no-diff-merges remerge-diff header timestamp",
);

const STATUS: Table = Table {
    short: "sbvzu?M?",
    long: "short branch show-stash porcelain? long verbose untracked-files? ignored? ignore-submodules? column? no-column \
        ahead-behind no-ahead-behind renames no-renames find-renames? null",
    numbers: false,
};

const DIFF: Table = Table { short: "puszabRWwDU:M?C?B?l:S:G:O:I:", long: diff_long!(), numbers: true };

const LOG: Table =
    Table { short: "puszabRWwDU:M?C?B?l:S:G:O:I:n:L:iEFPgcmtqe", long: LOG_LONG, numbers: true };

const BRANCH: Table = Table {
    short: "arvli",
    long: "all remotes verbose list show-current contains? no-contains? merged? no-merged? sort= format= points-at= column? \
        no-column color? no-color ignore-case abbrev? no-abbrev omit-empty",
    numbers: false,
};

const TAG: Table = Table {
    short: "ln?i",
    long: "list contains? no-contains? merged? no-merged? sort= format= points-at= column? no-column color? ignore-case \
        omit-empty",
    numbers: false,
};

const CONFIG: Table = Table {
    short: "lzf:",
    long: "get get-all get-regexp get-urlmatch get-color get-colorbool list show-origin show-scope name-only global local \
        system worktree file= blob= type= bool int bool-or-int path expiry-date null includes no-includes default= all \
        regexp value= show-names fixed-value url=",
    numbers: false,
};

const BLAME: Table = Table {
    short: "L:wM?C?sefnpltbcS:",
    long: "porcelain line-porcelain incremental show-email show-name show-number show-stats date= since= root score-debug \
        contents= reverse first-parent color-lines color-by-age abbrev= encoding= ignore-rev= ignore-revs-file= minimal",
    numbers: false,
};

const GREP: Table = Table {
    short: "nilLcwvEFGPIahHqozWpe:f:A:B:C:m:",
    long: "line-number ignore-case files-with-matches name-only files-without-match count word-regexp invert-match \
        extended-regexp fixed-strings basic-regexp perl-regexp text quiet cached untracked no-index recurse-submodules \
        exclude-standard no-exclude-standard show-function function-context heading break color? no-color column no-column \
        only-matching full-name null max-depth= threads= after-context= before-context= context= and or not all-match \
        max-count= recursive no-recursive no-line-number",
    numbers: true,
};

const CAT_FILE: Table = Table {
    short: "pets",
    long: "batch? batch-check? batch-all-objects buffer follow-symlinks allow-unknown-type unordered mailmap use-mailmap \
        no-mailmap",
    numbers: false,
};

const FOR_EACH_REF: Table = Table {
    short: "spqt",
    long: "count= sort= format= points-at= merged? no-merged? contains? no-contains? ignore-case color? shell perl python \
        tcl exclude= omit-empty include-root-refs",
    numbers: false,
};

/// Subcommands none of whose options writes, runs or connects.
const HARMLESS: &[&str] = &[
    "ls-files",
    "ls-tree",
    "rev-parse",
    "merge-base",
    "describe",
    "name-rev",
    "count-objects",
    "check-ignore",
    "check-attr",
    "show-ref",
    "show-branch",
    "var",
    "cherry",
    "version",
    "check-ref-format",
    "check-mailmap",
    "patch-id",
    "stripspace",
    "verify-pack",
    "get-tar-commit-id",
];

/// Settings that `-c` may change: how things look.
const SETTINGS: &[&str] = &[
    "core.quotepath",
    "core.abbrev",
    "log.date",
    "log.decorate",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "diff.algorithm",
    "diff.renames",
    "diff.renamelimit",
    "status.short",
    "status.branch",
    "status.showuntrackedfiles",
    "column.ui",
    "grep.linenumber",
    "log.follow",
    "core.optionallocks",
    "versionsort.suffix",
    "tag.sort",
    "branch.sort",
];

pub(super) fn judge(case: &mut Case<'_>) -> Verdict {
    let mut rest = case.args;
    while let Some((first, after)) = rest.split_first() {
        match first.text() {
            "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--icase-pathspecs"
            | "--noglob-pathspecs"
            | "--no-replace-objects" => rest = after,
            "-C" => {
                let Some((folder, after)) = after.split_first().filter(|(folder, _)| !folder.many) else {
                    return case.unknown("`-C` has no folder");
                };
                case.reads.push(super::shown(folder));
                rest = after;
            }
            "-c" => {
                let Some((setting, after)) = after.split_first() else {
                    return case.unknown("`-c` has no setting");
                };
                if !is_harmless_setting(setting.text()) {
                    return case.unknown(format!("the setting `{}` may start a program", setting.source));
                }
                rest = after;
            }
            "--version" | "-v" | "--exec-path" | "--html-path" | "--man-path" | "--info-path"
                if after.is_empty() =>
            {
                return case.read();
            }
            text if text.starts_with('-') => return case.unknown(crate::options::unknown(text)),
            _ => break,
        }
    }
    let Some((subcommand, args)) = rest.split_first() else { return case.unknown("it has no subcommand") };
    let Some(subcommand) = subcommand.exact.as_deref() else {
        return case.unknown("its subcommand is only known when it runs");
    };
    match check(subcommand, args) {
        Ok(()) => Verdict::Read(format!(
            "`git {subcommand}` only reads, apart from what the repository's own configuration may start"
        )),
        Err(why) => {
            if matches!(
                subcommand,
                "clone" | "fetch" | "push" | "pull" | "ls-remote" | "remote" | "submodule"
            ) {
                case.hosts.extend(args.iter().filter_map(|arg| super::effects::host_of(arg.text())));
            }
            Verdict::Unknown(format!("`git {subcommand}`: {why}"))
        }
    }
}

fn is_harmless_setting(setting: &str) -> bool {
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    let key = key.to_ascii_lowercase();
    key.starts_with("color.")
        || key.starts_with("advice.")
        || SETTINGS.contains(&key.as_str())
        || ((key == "core.pager" || key.starts_with("pager.")) && matches!(value, "cat" | "false" | ""))
        || (key == "core.fsmonitor" && value == "false")
}

fn check(subcommand: &str, args: &[Arg]) -> Result<(), String> {
    if args.iter().any(|arg| arg.text() == "--help") {
        return Err(String::from("the manual is shown by a program that the configuration names"));
    }
    if HARMLESS.contains(&subcommand) {
        return Ok(());
    }
    match subcommand {
        "status" => STATUS.split(args).map(drop),
        "diff" | "diff-tree" | "diff-index" | "diff-files" => {
            let table = if subcommand == "diff" {
                DIFF
            } else {
                Table { short: "puszabRWwDU:M?C?B?l:S:G:O:I:rctmvq", ..DIFF }
            };
            table.split(args).map(drop)
        }
        "log" | "show" | "whatchanged" | "rev-list" | "range-diff" => log(args),
        "shortlog" => Table { short: "snecw?", ..LOG }.split(args).and_then(|split| formats(&split)),
        "blame" | "annotate" => BLAME.split(args).map(drop),
        "grep" => GREP.split(args).map(drop),
        "cat-file" => CAT_FILE.split(args).map(drop),
        "for-each-ref" => FOR_EACH_REF.split(args).and_then(|split| formats(&split)),
        "branch" => listing(&BRANCH, args, &["--list", "-l"]),
        "tag" => listing(&TAG, args, &["--list", "-l"]),
        "remote" => remote(args),
        "config" => config(args),
        "stash" => match first(args) {
            ("list", rest) | ("show", rest) => log(rest),
            _ => Err(String::from("it may change the stash")),
        },
        "reflog" => match first(args) {
            ("show", rest) => log(rest),
            ("exists", rest) => log(rest),
            ("expire" | "delete" | "drop" | "write", _) => Err(String::from("it changes the reflog")),
            _ => log(args),
        },
        "worktree" => match first(args) {
            ("list", rest) => {
                Table { short: "vz", long: "porcelain verbose", numbers: false }.split(rest).map(drop)
            }
            _ => Err(String::from("it may change working trees")),
        },
        "notes" => match first(args) {
            ("list" | "show", rest) => Table { short: "", long: "", numbers: false }.split(rest).map(drop),
            _ if args.is_empty() => Ok(()),
            _ => Err(String::from("it may change notes")),
        },
        "bisect" => match first(args) {
            ("log" | "terms", []) => Ok(()),
            _ => Err(String::from("it moves the working tree")),
        },
        "submodule" => match first(args) {
            ("", []) => Ok(()),
            ("status", rest) => {
                Table { short: "", long: "recursive cached", numbers: false }.split(rest).map(drop)
            }
            _ => Err(String::from("it may change or start something")),
        },
        "symbolic-ref" => {
            let split =
                Table { short: "q", long: "short quiet no-recurse recurse", numbers: false }.split(args)?;
            match split.operands.as_slice() {
                [name] if !name.many => Ok(()),
                _ => Err(String::from("with two names it changes the first")),
            }
        }
        _ => Err(String::from("it is not known to be harmless")),
    }
}

fn first(args: &[Arg]) -> (&str, &[Arg]) {
    match args.split_first() {
        Some((word, rest)) => (word.text(), rest),
        None => ("", args),
    }
}

fn log(args: &[Arg]) -> Result<(), String> {
    LOG.split(args).and_then(|split| formats(&split))
}

/// Formats may ask for signatures, which starts the program that the configuration names.
fn formats(split: &Split<'_>) -> Result<(), String> {
    let known = ["--format", "--pretty", "--sort"];
    for (name, value) in &split.options {
        if known.contains(&name.as_str()) {
            match value {
                Some(value) if value.contains("%G") || value.contains("signature") => {
                    return Err(format!("its format `{value}` checks signatures with a program"));
                }
                Some(_) => {}
                None if name == "--pretty" => {}
                None => return Err(String::from("its format is only known when it runs")),
            }
        }
    }
    Ok(())
}

/// `branch` and `tag`: with a name and without a sign that it lists, they create.
fn listing(table: &Table, args: &[Arg], signs: &[&str]) -> Result<(), String> {
    let split = table.split(args)?;
    formats(&split)?;
    let filters = ["--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
    if split.operands.is_empty() || split.has(signs) || split.has(&filters) {
        Ok(())
    } else {
        Err(format!("with the name `{}` it may create or move something", split.operands[0].source))
    }
}

fn remote(args: &[Arg]) -> Result<(), String> {
    match first(args) {
        ("", []) | ("-v" | "--verbose", []) => Ok(()),
        ("get-url", rest) => Table { short: "", long: "push all", numbers: false }.split(rest).map(drop),
        ("show", rest) if rest.first().is_some_and(|arg| arg.text() == "-n") => {
            Table { short: "n", long: "", numbers: false }.split(rest).map(drop)
        }
        ("show" | "update", _) => Err(String::from("it connects to the remote")),
        _ => Err(String::from("it may change remotes")),
    }
}

fn config(args: &[Arg]) -> Result<(), String> {
    if let ("get" | "list", rest) = first(args) {
        return CONFIG.split(rest).map(drop);
    }
    let split = CONFIG.split(args)?;
    let asks = split.has(&[
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--get-color",
        "--list",
        "-l",
        "--get-colorbool",
    ]);
    match split.operands.as_slice() {
        _ if asks => Ok(()),
        [key] if !key.many && key.exact.as_deref().is_some_and(|key| key.contains('.')) => Ok(()),
        _ => Err(String::from("it may change the configuration")),
    }
}
