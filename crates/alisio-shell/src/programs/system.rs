//! Programs that tell about the machine, its processes and users.

use super::{Case, Verdict};
use crate::options::Table;

const DATE: Table = Table {
    short: "uRI?d:r:",
    long: "date= utc universal iso-8601? rfc-3339= rfc-email rfc-2822 reference= debug version help",
    numbers: false,
};

const TOP: Table = Table { short: "bcHiSsE:n:d:p:u:U:o:w?e:1", long: "", numbers: false };

const SS: Table = Table {
    short: "tulnpaexmois460rHOTwxd",
    long: "tcp udp listening numeric processes all extended memory options summary ipv4 ipv6 raw unix no-header oneline info",
    numbers: false,
};

const JOURNALCTL: Table = Table {
    short: "u:n:rxeb?ko:t:p:S:U:g:aq",
    long: "unit= lines= no-pager since= until= output= reverse boot? priority= grep= identifier= catalog dmesg all quiet \
        user system list-boots disk-usage utc",
    numbers: false,
};

const SYSTEMCTL: Table = Table {
    short: "alqt:n:p:",
    long: "no-pager all full type= state= lines= property= user system plain no-legend failed quiet value",
    numbers: false,
};

pub(super) fn judge(case: &mut Case<'_>) -> Option<Verdict> {
    Some(match case.name {
        "whoami" | "id" | "groups" | "uname" | "nproc" | "uptime" | "free" | "vmstat" | "lscpu" | "lsmem"
        | "lsblk" | "lsmod" | "lsusb" | "locale" | "tty" | "printenv" | "ps" | "pgrep" | "pidof"
        | "pstree" | "who" | "w" | "users" | "last" | "cal" | "ncal" | "sleep" | "findmnt" | "whatis"
        | "apropos" | "lsb_release" | "sw_vers" | "hostid" | "dircolors" | "mpstat" | "iostat" => {
            let verdict = case.harmless(0);
            case.reads.clear();
            verdict
        }
        // Where it takes words, it starts them.
        "arch" if case.args.is_empty() => case.read(),
        "getconf" if case.is(&["-a"]) => case.read(),
        "getconf" => {
            let args = case.args;
            case.operands_only(args)
        }
        "date" => date(case),
        "hostname" => match (Table {
            short: "fsiIdAy",
            long: "fqdn short ip-address all-ip-addresses domain long",
            numbers: false,
        })
        .split(case.args)
        {
            Ok(split) if split.operands.is_empty() => case.read(),
            Ok(_) => case.unknown("with a name it sets it"),
            Err(why) => case.unknown(why),
        },
        "top" => match TOP.split(case.args) {
            Ok(split) if split.has(&["-b"]) && split.has(&["-n"]) => case.read(),
            Ok(_) => case.unknown("without `-b` and `-n` it is interactive"),
            Err(why) => case.unknown(why),
        },
        "lsof" => {
            let fine = case.args.iter().all(|arg| {
                let text = arg.text();
                let network = ["-iTCP", "-iUDP", "-sTCP:"].iter().any(|option| text.starts_with(option));
                let valued = network
                    || ["-i", "-s", "-p", "-u", "-c", "-d", "-F"]
                        .iter()
                        .any(|option| text.starts_with(option));
                let flags = text
                    .strip_prefix('-')
                    .is_some_and(|letters| letters.chars().all(|c| "nPlatURwoH".contains(c)));
                (arg.is_operand() && !text.starts_with('+'))
                    || (valued && (network || !text.contains('D')))
                    || flags
                    || matches!(text, "+D" | "+d")
            });
            if fine { case.read() } else { case.unknown("one of its options is not known to be harmless") }
        }
        "ss" => case.table(&SS),
        "netstat" => {
            let table = Table { short: "tulnapersigW46x", long: "", numbers: false };
            match table.split(case.args) {
                Ok(split) if split.operands.is_empty() => case.read(),
                Ok(_) => case.unknown("its operands are not known to be harmless"),
                Err(why) => case.unknown(why),
            }
        }
        "ip" => ip(case),
        "ifconfig" => {
            if case.args.is_empty()
                || case.is(&["-a"])
                || (case.args.len() == 1 && case.args[0].is_operand() && !case.args[0].many)
            {
                case.read()
            } else {
                case.unknown("it may change an interface")
            }
        }
        "journalctl" => match JOURNALCTL.split(case.args) {
            Ok(_) => case.read(),
            Err(why) => case.unknown(why),
        },
        "systemctl" => match SYSTEMCTL.split(case.args) {
            Ok(split) => match split.operands.first() {
                Some(verb)
                    if matches!(
                        verb.text(),
                        "status"
                            | "is-active"
                            | "is-enabled"
                            | "is-failed"
                            | "list-units"
                            | "list-unit-files"
                            | "show"
                            | "list-timers"
                    ) =>
                {
                    case.read()
                }
                None => case.read(),
                Some(_) => case.unknown("its verb may change a unit"),
            },
            Err(why) => case.unknown(why),
        },
        "dmesg" => case.table(&Table {
            short: "HTtxkuLl:f:",
            long: "human ctime level= facility= kernel userspace",
            numbers: false,
        }),
        "sysctl" => {
            let table = Table { short: "anNeq", long: "all names values", numbers: false };
            match table.split(case.args) {
                Ok(split)
                    if split.operands.iter().all(|arg| arg.exact.is_some() && !arg.text().contains('=')) =>
                {
                    case.read()
                }
                Ok(_) => case.unknown("it may set a value"),
                Err(why) => case.unknown(why),
            }
        }
        "mount" => {
            if case.args.is_empty() || case.is(&["-l"]) {
                case.read()
            } else {
                case.unknown("it may mount something")
            }
        }
        "crontab" if case.is(&["-l"]) => case.read(),
        "stty" if case.is(&["-a"]) || case.is(&["size"]) => case.read(),
        "tput" if case.is(&["cols"]) || case.is(&["lines"]) || case.is(&["colors"]) => case.read(),
        "getent" if case.begins(&["passwd"]) || case.begins(&["group"]) => {
            let args = case.args;
            case.operands_only(args)
        }
        "dpkg" if case.args.len() <= 2 => {
            let asks = [
                "-l",
                "-L",
                "-s",
                "-S",
                "--list",
                "--listfiles",
                "--status",
                "--search",
                "--print-architecture",
            ];
            match case.args.split_first() {
                Some((first, rest))
                    if asks.contains(&first.text()) && rest.iter().all(|arg| arg.is_operand()) =>
                {
                    case.read()
                }
                _ => case.unknown("it may change packages"),
            }
        }
        "dpkg-query"
            if case.begins(&["-l"])
                || case.begins(&["-L"])
                || case.begins(&["-s"])
                || case.begins(&["-W"]) =>
        {
            if case.args[1..].iter().all(|arg| arg.is_operand() || arg.text().starts_with("-f=")) {
                case.read()
            } else {
                case.unknown("one of its options is not known to be harmless")
            }
        }
        "rpm"
            if matches!(
                case.args.first().map(|arg| arg.text()),
                Some("-q" | "-qa" | "-qi" | "-ql" | "-qf")
            ) =>
        {
            let args = &case.args[1..];
            case.operands_only(args)
        }
        "apt" if case.is(&["list", "--installed"]) => case.read(),
        "apt-cache" if case.begins(&["policy"]) || case.begins(&["show"]) || case.begins(&["search"]) => {
            let args = case.args;
            case.operands_only(args)
        }
        _ => return None,
    })
}

/// Operands that are not formats set the clock.
fn date(case: &Case<'_>) -> Verdict {
    match DATE.split(case.args) {
        Err(why) => case.unknown(why),
        Ok(split) => match split.operands.iter().find(|arg| !arg.head.starts_with('+') || arg.many) {
            None => case.read(),
            Some(arg) => case.unknown(format!("`{}` may set the clock", arg.source)),
        },
    }
}

/// Objects, with nothing or a listing verb after them.
fn ip(case: &Case<'_>) -> Verdict {
    let mut args = case.args;
    while let Some((first, rest)) = args.split_first() {
        if matches!(
            first.text(),
            "-4" | "-6" | "-br" | "-brief" | "-c" | "-color" | "-o" | "-s" | "-j" | "-p" | "-d"
        ) {
            args = rest;
        } else {
            break;
        }
    }
    let objects = ["a", "addr", "address", "l", "link", "r", "route", "n", "neigh", "rule", "maddr"];
    match args.split_first() {
        Some((object, rest)) if objects.contains(&object.text()) => match rest.split_first() {
            None => case.read(),
            Some((verb, rest))
                if matches!(verb.text(), "show" | "list" | "ls" | "get")
                    && rest.iter().all(|arg| arg.is_operand()) =>
            {
                case.read()
            }
            Some(_) => case.unknown("it may change an interface"),
        },
        _ => case.unknown("its object is not known to be harmless"),
    }
}
