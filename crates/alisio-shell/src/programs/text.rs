//! Programs that turn text into text.

use super::{Case, Verdict};
use crate::options::Table;

const SORT: Table = Table {
    short: "bdfgiMhnRrVcCmsuzk:t:S:",
    long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort \
        human-numeric-sort numeric-sort random-sort reverse version-sort check? merge stable unique zero-terminated key= \
        field-separator= buffer-size= parallel= sort= batch-size= debug help version",
    numbers: false,
};

const UNIQ: Table = Table {
    short: "cdDuizf:s:w:",
    long: "count repeated all-repeated? unique ignore-case zero-terminated skip-fields= skip-chars= check-chars= group? \
        help version",
    numbers: false,
};

const LESS: Table = Table {
    short: "NSRrXFEesimMnqQuUwIJgGWV",
    long: "quit-if-one-screen no-init RAW-CONTROL-CHARS chop-long-lines LINE-NUMBERS version help",
    numbers: false,
};

const BAT: Table = Table {
    short: "npAPl:r:H:",
    long: "plain number show-all style= color= language= line-range= highlight-line= theme= wrap= tabs= decorations= \
        paging= no-pager file-name= version help",
    numbers: false,
};

const BASE64: Table =
    Table { short: "dDw:", long: "decode wrap= ignore-garbage help version", numbers: false };

const ICONV: Table =
    Table { short: "f:t:cls", long: "from-code= to-code= list silent verbose help version", numbers: false };

const SHUF: Table = Table {
    short: "ei:n:rz",
    long: "echo input-range= head-count= repeat zero-terminated help version",
    numbers: false,
};

pub(super) fn judge(case: &mut Case<'_>) -> Option<Verdict> {
    Some(match case.name {
        "cat" | "head" | "tail" | "wc" | "nl" | "tac" | "rev" | "cut" | "paste" | "join" | "comm" | "cmp"
        | "diff" | "diff3" | "fold" | "fmt" | "expand" | "unexpand" | "column" | "colrm" | "od"
        | "hexdump" | "hd" | "strings" | "md5sum" | "sha1sum" | "sha224sum" | "sha256sum" | "sha384sum"
        | "sha512sum" | "b2sum" | "cksum" | "sum" | "shasum" | "md5" | "tsort" | "pr" | "factor" => {
            case.harmless(0)
        }
        "tr" | "seq" | "echo" | "numfmt" | "look" | "yes" => {
            let verdict = case.harmless(0);
            case.reads.clear();
            verdict
        }
        "sort" => case.table(&SORT),
        "uniq" => uniq(case),
        "xxd" => xxd(case),
        "less" | "more" | "pg" => {
            if case.args.iter().any(|arg| arg.text().starts_with('+') || (arg.exact.is_none() && arg.free)) {
                return Some(case.unknown("a word that begins with `+` is a command of the pager"));
            }
            case.table(&LESS)
        }
        "bat" | "batcat" => {
            let paging = case.args.iter().any(|arg| arg.text().starts_with("--paging=always"));
            if paging { case.unknown("it starts a pager") } else { case.table(&BAT) }
        }
        "base64" | "base32" => case.table(&BASE64),
        "iconv" => case.table(&ICONV),
        "shuf" => case.table(&SHUF),
        _ => return None,
    })
}

/// The second operand is a file to be written.
fn uniq(case: &mut Case<'_>) -> Verdict {
    match UNIQ.split(case.args) {
        Err(why) => case.unknown(why),
        Ok(split) => match split.operands.as_slice() {
            [] => case.read(),
            [input] if !input.many => {
                case.reads.push(super::shown(input));
                case.read()
            }
            [_, output, ..] => {
                case.writes.push(super::shown(output));
                case.unknown("its second file is written")
            }
            [_] => case.unknown("its second file would be written"),
        },
    }
}

/// Options have one dash whatever their length; the second operand is written.
fn xxd(case: &mut Case<'_>) -> Verdict {
    const FLAGS: &[&str] =
        &["-a", "-b", "-e", "-i", "-p", "-ps", "-plain", "-u", "-E", "-autoskip", "-bits", "-include"];
    const VALUES: &[&str] =
        &["-c", "-cols", "-g", "-groupsize", "-l", "-len", "-s", "-seek", "-skip", "-o", "-n", "-name"];
    let mut operands = Vec::new();
    let mut args = case.args.iter();
    while let Some(arg) = args.next() {
        if arg.many {
            return case.unknown(format!("`{}` may become several words", arg.source));
        }
        let Some(text) = &arg.exact else {
            if arg.is_operand() && !arg.head.starts_with('+') {
                operands.push(super::shown(arg));
                continue;
            }
            return case.unknown(format!("`{}` may become an option", arg.source));
        };
        let glued = text.get(2..).is_some_and(|rest| {
            ["-c", "-g", "-l", "-s"].iter().any(|option| text.starts_with(option))
                && !rest.is_empty()
                && rest
                    .trim_start_matches(['+', '-'])
                    .trim_start_matches("0x")
                    .bytes()
                    .all(|b| b.is_ascii_digit())
        });
        if VALUES.contains(&text.as_str()) {
            let _ = args.next().filter(|value| !value.many);
        } else if text.starts_with('-') && text.len() > 1 && !FLAGS.contains(&text.as_str()) && !glued {
            return case.unknown(crate::options::unknown(text));
        } else if !text.starts_with('-') || text == "-" {
            operands.push(text.clone());
        }
    }
    match operands.as_slice() {
        [] => case.read(),
        [_] => {
            case.reads = operands;
            case.read()
        }
        [_, output, ..] => {
            case.writes.push(output.clone());
            case.unknown("its second file is written")
        }
    }
}
