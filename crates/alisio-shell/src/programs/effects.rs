//! Programs that are known to do more than look: what they write and which hosts they name, for prompts and rules.
//! None of them is ever a read.

use super::{Case, Nested, Verdict};

pub(super) fn judge(case: &mut Case<'_>) -> Verdict {
    let operands = || case.args.iter().filter(|arg| arg.is_operand()).map(super::shown);
    match case.name {
        "rm" | "rmdir" | "unlink" | "touch" | "mkdir" | "tee" | "truncate" | "shred" | "mkfifo" | "mknod" => {
            case.writes = operands().collect();
            case.unknown("it writes or removes files")
        }
        "chmod" | "chown" | "chgrp" => {
            case.writes = operands().skip(1).collect();
            case.unknown("it changes the rights of files")
        }
        "cp" | "install" | "ln" | "rsync" => {
            let mut all: Vec<String> = operands().collect();
            case.hosts = all.iter().filter_map(|text| host_of(text)).collect();
            case.writes.extend(all.pop());
            case.reads = all;
            case.unknown("it writes files")
        }
        "mv" => {
            case.writes = operands().collect();
            case.unknown("it moves files")
        }
        "dd" => {
            for arg in case.args {
                match arg.text().split_once('=') {
                    Some(("of", file)) => case.writes.push(file.to_owned()),
                    Some(("if", file)) => case.reads.push(file.to_owned()),
                    _ => {}
                }
            }
            case.unknown("it writes where it is told")
        }
        "curl" | "wget" | "http" | "https" | "nc" | "ncat" | "netcat" | "telnet" | "ssh" | "scp" | "sftp"
        | "ftp" | "ping" | "dig" | "nslookup" | "host" | "traceroute" | "whois" => {
            let bare = !matches!(case.name, "scp");
            let mut hosts: Vec<String> = operands().filter_map(|text| host_of(&text)).collect();
            if hosts.is_empty() && bare {
                hosts.extend(operands().find(|text| text.contains('.') || text == "localhost"));
            }
            case.hosts = hosts;
            let outputs = ["-o", "-O", "--output"];
            let pairs = case.args.windows(2).filter(|pair| outputs.contains(&pair[0].text()));
            case.writes = pairs.map(|pair| super::shown(&pair[1])).collect();
            case.unknown("it uses the network")
        }
        "eval" => {
            let words: Option<Vec<&str>> = case.args.iter().map(|arg| arg.exact.as_deref()).collect();
            if let Some(words) = words.filter(|words| !words.is_empty()) {
                case.nested.push(Nested::Script(words.join(" ")));
            }
            case.unknown("it runs the text that it is given")
        }
        "exec" | "su" | "watch" | "parallel" | "chroot" | "unshare" | "nsenter" | "strace" | "ltrace" => {
            let mut rest = case.args;
            while let Some((first, after)) = rest.split_first().filter(|(first, _)| !first.is_operand()) {
                let _ = first;
                rest = after;
            }
            if !rest.is_empty() {
                case.nested.push(Nested::Command(rest.to_vec()));
            }
            case.unknown("it starts another program")
        }
        "source" | "." | "trap" | "enable" | "bind" | "complete" | "declare" | "typeset" | "local"
        | "readonly" | "let" | "mapfile" | "readarray" | "getopts" | "coproc" | "fc" | "kill" | "disown" => {
            case.unknown("it changes the state of the shell or runs what it is given")
        }
        "powershell" | "pwsh" | "cmd" | "cmd.exe" | "powershell.exe" | "pwsh.exe" => {
            case.unknown("its language is not understood here")
        }
        _ => case.unknown("it is not among the programs that are known only to read"),
    }
}

/// The host in an address: `scheme://user@host:port/…` or `user@host:path`.
pub(super) fn host_of(text: &str) -> Option<String> {
    let rest = match text.split_once("://") {
        Some((scheme, rest))
            if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) =>
        {
            rest
        }
        Some(_) => return None,
        None => {
            let (host, _) = text.split_once(':').or_else(|| text.split_once('@').map(|_| (text, "")))?;
            if host.contains('/') || (!host.contains('@') && !host.contains('.')) {
                return None;
            }
            let host = host.rsplit('@').next().unwrap_or(host);
            return (!host.is_empty()).then(|| host.to_ascii_lowercase());
        }
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}
