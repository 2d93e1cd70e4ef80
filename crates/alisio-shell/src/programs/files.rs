//! Programs that list files and tell about them.

use super::{Case, Verdict};
use crate::options::Table;
use crate::value::Arg;

const TREE: Table = Table {
    short: "adflpshugDFqNirtcxAJXQCnSvUL:P:I:",
    long: "dirsfirst noreport prune filelimit= gitignore du si filesfirst sort= ignore-case matchdirs metafirst inodes \
        device timefmt= charset= version help",
    numbers: false,
};

const FILE: Table = Table {
    short: "bhiIkLNnrs0EvF:f:m:e:P:",
    long: "brief mime mime-type mime-encoding dereference no-dereference print0 raw keep-going separator= files-from= \
        special-files apple extension no-pad version help",
    numbers: false,
};

const DF: Table = Table {
    short: "aBhHiklPTt:x:vm",
    long: "all block-size= human-readable si inodes local no-sync output? portability type= print-type exclude-type= total \
        help version",
    numbers: false,
};

pub(super) fn judge(case: &mut Case<'_>) -> Option<Verdict> {
    Some(match case.name {
        "ls" | "dir" | "vdir" | "stat" | "realpath" | "readlink" | "eza" | "exa" | "lsd" | "du" | "namei"
        | "lsattr" | "getfacl" => case.harmless(0),
        "basename" | "dirname" | "pathchk" => {
            let verdict = case.harmless(0);
            case.reads.clear();
            verdict
        }
        "tree" => case.table(&TREE),
        "file" => {
            // Everything here is asked for often, and all that a file named like the one bad option does is to make
            // `file` write its own magic file beside it.
            let named: Vec<Arg> = case.args.iter().filter(|arg| arg.source != "*").cloned().collect();
            match FILE.split(&named) {
                Ok(split) => {
                    let reads: Vec<String> = split.operands.iter().map(|arg| super::shown(arg)).collect();
                    case.reads.extend(reads);
                    case.read()
                }
                Err(why) => case.unknown(why),
            }
        }
        "df" => case.table(&DF),
        "locate" | "mlocate" | "plocate" | "whereis" => {
            let args = case.args;
            case.operands_only(args)
        }
        _ => return None,
    })
}
