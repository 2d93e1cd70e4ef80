//! Programs that query structured text.

use super::{Case, Verdict};
use crate::options::Table;

/// The common half of the two programs of this name. `-i` and `-s` write files.
const YQ: Table = Table {
    short: "rcenMCPNjo:p:I:",
    long: "raw-output compact-output exit-status null-input prettyPrint no-colors colors no-doc tojson output-format= \
        input-format= indent= unwrapScalar? version help arg= tab sort-keys",
    numbers: false,
};

pub(super) fn judge(case: &mut Case<'_>) -> Option<Verdict> {
    Some(match case.name {
        // It has no option that writes and no function that runs anything.
        "jq" => case.harmless(1),
        "yq" => {
            if case.args.iter().any(|arg| arg.text().contains("system(")) {
                return Some(case.unknown("its expression may start a program"));
            }
            case.table_skip(&YQ, 1)
        }
        // No program can be started from it, unlike `dc`.
        "bc" => case.harmless(0),
        _ => return None,
    })
}
