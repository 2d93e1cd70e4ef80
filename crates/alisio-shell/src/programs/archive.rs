//! Archives and compressed files: only what lists or shows them.

use super::{Case, Verdict};

pub(super) fn judge(case: &mut Case<'_>) -> Option<Verdict> {
    Some(match case.name {
        "tar" | "bsdtar" | "gtar" => tar(case),
        "unzip"
            if matches!(case.args.first().map(|arg| arg.text()), Some("-l" | "-v" | "-t" | "-Z" | "-Z1")) =>
        {
            let args = &case.args[1..];
            case.operands_only(args)
        }
        "zipinfo" | "zcat" | "bzcat" | "xzcat" | "zstdcat" | "lzcat" | "gzcat" => {
            let args = case.args;
            case.operands_only(args)
        }
        "gzip" | "xz" | "zstd" | "bzip2"
            if matches!(
                case.args.first().map(|arg| arg.text()),
                Some("-l" | "-lv" | "-t" | "--list" | "--test")
            ) && (case.name != "bzip2" || case.begins(&["-t"])) =>
        {
            let args = &case.args[1..];
            case.operands_only(args)
        }
        _ => return None,
    })
}

/// Listing only, and no option that could start a program: a name with a colon is a host.
fn tar(case: &mut Case<'_>) -> Verdict {
    let mut lists = false;
    let mut args = case.args.iter().enumerate();
    while let Some((at, arg)) = args.next() {
        let Some(text) = arg.exact.as_deref() else {
            if arg.is_operand() && at > 0 && !arg.many && !arg.head.is_empty() {
                continue;
            }
            return case.unknown(format!("`{}` is only known when it runs", arg.source));
        };
        let file = match text {
            "--list" => {
                lists = true;
                continue;
            }
            "--verbose" | "--gzip" | "--bzip2" | "--xz" | "--zstd" | "--numeric-owner" | "--full-time" => {
                continue;
            }
            "--file" => args.next().and_then(|(_, file)| file.exact.clone()),
            _ if text.starts_with("--file=") => Some(text["--file=".len()..].to_owned()),
            _ if text.starts_with("--") => return case.unknown(crate::options::unknown(text)),
            _ if text.starts_with('-') || at == 0 => {
                let letters = text.strip_prefix('-').unwrap_or(text);
                let (flags, glued) = letters.split_at(letters.find('f').map_or(letters.len(), |at| at + 1));
                if !flags.chars().all(|c| "tvzjJfa".contains(c)) {
                    return case.unknown(crate::options::unknown(text));
                }
                lists |= flags.contains('t');
                match (flags.ends_with('f'), glued) {
                    (false, _) => continue,
                    (true, "") => args.next().and_then(|(_, file)| file.exact.clone()),
                    // Without a dash the letters after it are flags too.
                    (true, _) if !text.starts_with('-') => {
                        return case.unknown(crate::options::unknown(text));
                    }
                    (true, glued) => Some(glued.to_owned()),
                }
            }
            _ => {
                case.reads.push(text.to_owned());
                continue;
            }
        };
        match file {
            Some(file) if !file.contains(':') => case.reads.push(file),
            _ => return case.unknown("its archive may be on another host"),
        }
    }
    if lists { case.read() } else { case.unknown("it does not only list") }
}
