//! Programs that search in files.

use super::{Case, Nested, Verdict};
use crate::options::Table;
use crate::value::Arg;

const RG: Table = Table {
    short: "acFHhiIlLNnoPpqSsUuvwx0VA:B:C:e:f:g:j:M:m:r:t:T:d:E:.",
    long: "after-context= before-context= context= regexp= file= glob= iglob= threads= max-columns= max-count= replace= \
        type= type-not= max-depth= encoding= text count fixed-strings with-filename no-filename ignore-case \
        files-with-matches follow no-line-number line-number only-matching pcre2 pretty quiet smart-case case-sensitive \
        multiline unrestricted invert-match word-regexp line-regexp null version hidden no-ignore no-ignore-vcs \
        no-ignore-parent no-ignore-global no-ignore-dot files files-without-match color= colors= column no-column heading \
        no-heading json stats sort= sortr= trim vimgrep type-list count-matches crlf binary no-messages no-config debug \
        max-filesize= multiline-dotall engine= byte-offset passthru line-buffered block-buffered no-unicode null-data \
        one-file-system no-require-git glob-case-insensitive include-zero max-columns-preview context-separator= \
        field-match-separator= field-context-separator= path-separator= no-mmap mmap ignore-file= no-hidden trace help",
    numbers: false,
};

const AG: Table = Table {
    short: "acDfFgGhHilLnoQrRsSuUvwW:A:B:C:m:p:t0",
    long: "after= before= context= count files-with-matches files-without-matches ignore-case literal hidden nocolor color \
        nogroup group nobreak noheading heading numbers nonumbers column ignore= depth= smart-case case-sensitive stats \
        only-matching invert-match word-regexp unrestricted all-text vimgrep silent follow max-count= version help",
    numbers: false,
};

const ACK: Table = Table {
    short: "chHiIlLnoQrRsvwfgA:B:C:m:",
    long: "after-context= before-context= context= count files-with-matches files-without-matches ignore-case literal nocolor \
        color nogroup group noheading heading column smart-case invert-match word-regexp noenv version help",
    numbers: false,
};

const FD: Table = Table {
    short: "HIuUsigFaLpd:t:e:E:S:j:q1lV0c:",
    long: "hidden no-ignore no-ignore-vcs no-ignore-parent unrestricted case-sensitive ignore-case glob regex fixed-strings \
        absolute-path follow full-path max-depth= min-depth= exact-depth= type= extension= exclude= size= \
        changed-within= changed-before= max-results= print0 color= threads= quiet strip-cwd-prefix base-directory= owner= \
        one-file-system prune and= no-require-git version help",
    numbers: false,
};

const ZGREP: Table = Table { short: "cEFiHhlLnoqvwxe:A:B:C:m:", long: "", numbers: false };

const XARGS: Table = Table {
    short: "0rtxn:P:I:L:d:s:a:E:",
    long: "null no-run-if-empty verbose exit max-args= max-procs= replace? max-lines? delimiter= max-chars= arg-file= \
        show-limits",
    numbers: false,
};

pub(super) fn judge(case: &mut Case<'_>) -> Option<Verdict> {
    Some(match case.name {
        "grep" | "egrep" | "fgrep" => {
            let named =
                case.args.iter().any(|arg| arg.text().starts_with("-e") || arg.text().starts_with("-f"));
            case.harmless(usize::from(!named))
        }
        "zgrep" => case.table_skip(&ZGREP, 1),
        "rg" => case.table_skip(&RG, 1),
        "ag" => case.table_skip(&AG, 1),
        "ack" => case.table_skip(&ACK, 1),
        "fd" | "fdfind" => case.table_skip(&FD, 1),
        "xargs" => xargs(case),
        _ => return None,
    })
}

/// The command gets words from the input, which may be anything.
fn xargs(case: &mut Case<'_>) -> Verdict {
    let args = case.args;
    let mut n = 0;
    let mut replace: Option<String> = None;
    while let Some(arg) = args.get(n) {
        let Some(text) = &arg.exact else { break };
        if text == "--" {
            n += 1;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        // One option at a time, so that its value is not taken for the command.
        let takes_next = !text.starts_with("--")
            && text.ends_with(['n', 'P', 'I', 'L', 'd', 's', 'a', 'E'])
            && !text[1..text.len() - 1].contains(['n', 'P', 'I', 'L', 'd', 's', 'a', 'E'])
            || matches!(
                text.strip_prefix("--"),
                Some("max-args" | "max-procs" | "delimiter" | "max-chars" | "arg-file")
            );
        let end = (n + 1 + usize::from(takes_next)).min(args.len());
        match XARGS.split(&args[n..end]) {
            Err(why) => return case.unknown(why),
            Ok(split) => {
                for (name, value) in &split.options {
                    if matches!(name.as_str(), "-I" | "--replace") {
                        replace = Some(
                            value
                                .clone()
                                .filter(|text| !text.is_empty())
                                .unwrap_or_else(|| String::from("{}")),
                        );
                    }
                }
                if !split.operands.is_empty() {
                    return case.unknown("its options are not clear");
                }
            }
        }
        n = end;
    }
    let mut command = args[n..].to_vec();
    if command.is_empty() {
        return case.read();
    }
    if let Some(mark) = &replace {
        for arg in &mut command {
            if let Some(text) = arg.exact.clone()
                && let Some((head, _)) = text.split_once(mark.as_str())
            {
                *arg = Arg { head: head.to_owned(), free: head.is_empty(), source: text, ..Arg::default() };
            }
        }
    } else {
        command.push(Arg {
            many: true,
            free: true,
            source: String::from("(words from the input)"),
            ..Arg::default()
        });
    }
    case.nested.push(Nested::Command(command));
    Verdict::Read(String::from("`xargs` does what the command after it does"))
}
