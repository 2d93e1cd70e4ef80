//! The names that a tool answers to, the effect that a name stands for, and which field of the input rules see.
//!
//! Policies are written with the names `bash`, `read`, `write`, `edit`, `grep`, `find`, `ls`, `network`, or with ours. A
//! rule that spells a name out reaches the tool under either; a rule with a star or a question mark reaches the name that
//! was called and, for a tool of ours, its older names: so such a rule means for the older names what it always meant.

use alisio_protocol::Effect;

use crate::Glob;
use crate::glob::hash_of;

/// What the text of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A command line as a shell reads it.
    Command,
    /// A program with its arguments.
    Program,
    /// A command line that no parser here understands.
    OpaqueCommand,
    /// A path.
    Path,
    /// Plain text: a query, an address.
    Text,
    /// The whole input as JSON.
    Json,
}

/// A tool that is known by name.
struct Known {
    name: &'static str,
    /// Older names that rules may use for it.
    older: &'static [&'static str],
    /// Newer names of ours that rules may use for an older one.
    newer: &'static [&'static str],
    effect: Effect,
    kind: TargetKind,
    /// The fields of the input that hold the text: the first that is there.
    fields: &'static [&'static str],
    /// Fields that hold paths.
    paths: &'static [&'static str],
}

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    Known { name: "bash", older: &[], newer: &["shell"], effect: Effect::Process, kind: TargetKind::Command, fields: &["command"], paths: &[] },
    Known { name: "shell", older: &["bash"], newer: &[], effect: Effect::Process, kind: TargetKind::Command, fields: &["command"], paths: &[] },
    Known { name: "bg_run", older: &["bash"], newer: &[], effect: Effect::Process, kind: TargetKind::Command, fields: &["command"], paths: &[] },
    Known { name: "run_process", older: &["bash"], newer: &[], effect: Effect::Process, kind: TargetKind::Program, fields: &["command"], paths: &[] },
    Known { name: "powershell", older: &[], newer: &[], effect: Effect::Process, kind: TargetKind::OpaqueCommand, fields: &["command"], paths: &[] },
    Known { name: "bg_list", older: &[], newer: &[], effect: Effect::Process, kind: TargetKind::Json, fields: &[], paths: &[] },
    Known { name: "bg_output", older: &[], newer: &[], effect: Effect::Process, kind: TargetKind::Json, fields: &[], paths: &[] },
    Known { name: "bg_stop", older: &[], newer: &[], effect: Effect::Process, kind: TargetKind::Json, fields: &[], paths: &[] },
    Known { name: "execute", older: &[], newer: &[], effect: Effect::Process, kind: TargetKind::Json, fields: &[], paths: &[] },
    Known { name: "read", older: &[], newer: &["read_file"], effect: Effect::Read, kind: TargetKind::Path, fields: &["path"], paths: &["path"] },
    Known { name: "read_file", older: &["read"], newer: &[], effect: Effect::Read, kind: TargetKind::Path, fields: &["path"], paths: &["path"] },
    Known { name: "write", older: &[], newer: &["write_file"], effect: Effect::Write, kind: TargetKind::Path, fields: &["path"], paths: &["path"] },
    Known { name: "write_file", older: &["write"], newer: &[], effect: Effect::Write, kind: TargetKind::Path, fields: &["path"], paths: &["path"] },
    Known { name: "edit", older: &[], newer: &["edit_file"], effect: Effect::Write, kind: TargetKind::Path, fields: &["path"], paths: &["path"] },
    Known { name: "edit_file", older: &["edit"], newer: &[], effect: Effect::Write, kind: TargetKind::Path, fields: &["path"], paths: &["path"] },
    Known { name: "ls", older: &[], newer: &["list_files"], effect: Effect::Read, kind: TargetKind::Path, fields: &["path"], paths: &["path"] },
    Known { name: "list_files", older: &["find", "ls"], newer: &[], effect: Effect::Read, kind: TargetKind::Path, fields: &["path"], paths: &["path"] },
    Known { name: "find", older: &[], newer: &["list_files"], effect: Effect::Read, kind: TargetKind::Text, fields: &["pattern", "name"], paths: &["path"] },
    Known { name: "grep", older: &[], newer: &["search_text"], effect: Effect::Read, kind: TargetKind::Text, fields: &["pattern", "query"], paths: &["path"] },
    Known { name: "search_text", older: &["grep"], newer: &[], effect: Effect::Read, kind: TargetKind::Text, fields: &["pattern"], paths: &["path"] },
    Known { name: "git_status", older: &[], newer: &[], effect: Effect::Read, kind: TargetKind::Json, fields: &[], paths: &[] },
    Known { name: "git_diff", older: &[], newer: &[], effect: Effect::Read, kind: TargetKind::Json, fields: &[], paths: &["path"] },
    Known { name: "context_explain", older: &[], newer: &[], effect: Effect::Read, kind: TargetKind::Path, fields: &["path"], paths: &["path"] },
    Known { name: "network", older: &[], newer: &[], effect: Effect::External, kind: TargetKind::Text, fields: &["host", "url"], paths: &[] },
    Known { name: "webfetch", older: &["network"], newer: &[], effect: Effect::External, kind: TargetKind::Text, fields: &["url"], paths: &[] },
    Known { name: "websearch", older: &["network"], newer: &[], effect: Effect::External, kind: TargetKind::Text, fields: &["query"], paths: &[] },
];

fn known(tool: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == tool)
}

/// Returns the names that are known here, older ones and ours.
pub fn known_tools() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}

/// Says what the text of a call of `tool` is.
pub fn target_kind(tool: &str) -> TargetKind {
    known(tool).map_or(TargetKind::Json, |known| known.kind)
}

/// Says which effect a tool of this name has; one that is not known here counts as external.
pub fn effect_of(tool: &str) -> Effect {
    known(tool).map_or(Effect::External, |known| known.effect)
}

pub(crate) fn target_fields(tool: &str) -> &'static [&'static str] {
    known(tool).map_or(&[], |known| known.fields)
}

pub(crate) fn path_fields(tool: &str) -> &'static [&'static str] {
    known(tool).map_or(&[], |known| known.paths)
}

/// Says whether `name`, spelled out in a rule or a list, is a name of `tool`.
pub fn is_name_of(name: &str, tool: &str) -> bool {
    name == tool
        || known(tool).is_some_and(|known| known.older.contains(&name) || known.newer.contains(&name))
}

/// Says whether the `tool` glob of a rule reaches a call of `tool`.
pub fn reaches(glob: &Glob, tool: &str) -> bool {
    Names::of(tool).are_reached_by(glob)
}

/// The names of one tool, looked up once for many rules.
pub(crate) struct Names<'t> {
    tool: &'t str,
    known: Option<&'static Known>,
    /// Numbers of all names that a rule may spell out.
    hashes: [u32; 4],
}

impl<'t> Names<'t> {
    pub(crate) fn of(tool: &'t str) -> Self {
        let known = known(tool);
        // Unused places hold the number of the name itself.
        let mut hashes = [hash_of(tool); 4];
        let others = known.into_iter().flat_map(|known| known.older.iter().chain(known.newer));
        for (place, name) in hashes[1..].iter_mut().zip(others) {
            *place = hash_of(name);
        }
        Self { tool, known, hashes }
    }

    pub(crate) fn are_reached_by(&self, glob: &Glob) -> bool {
        if glob.is_universal() {
            return true;
        }
        if glob.is_literal() {
            let name = glob.as_str();
            return self.hashes.iter().any(|hash| glob.has_hash(*hash))
                && (name == self.tool
                    || self
                        .known
                        .is_some_and(|known| known.older.contains(&name) || known.newer.contains(&name)));
        }
        glob.matches(self.tool)
            || self.known.is_some_and(|known| known.older.iter().any(|name| glob.matches(name)))
    }
}
