//! Examples of calls: data that the documentation shows and one test runs.

use alisio_host::workspace::Reason;

/// A call of a tool and what comes back.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The tool.
    pub tool: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Files of the workspace before the call, with their content.
    pub files: &'static [(&'static str, &'static str)],
    /// The input. `SHA256(path)` in it stands for the fingerprint of that file.
    pub input: &'static str,
    /// What comes back.
    pub expected: Expected,
}

/// What a call of an example gives back.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// A result whose text begins so.
    Text(&'static str),
    /// A result that holds this text.
    Holds(&'static str),
    /// A refusal for this reason.
    Refused(Reason),
}

/// All examples, tool by tool.
pub fn examples() -> impl Iterator<Item = &'static Example> {
    [
        crate::read_file::EXAMPLES,
        crate::list_files::EXAMPLES,
        crate::search_text::EXAMPLES,
        crate::context_explain::EXAMPLES,
        crate::write_file::EXAMPLES,
        crate::edit_file::EXAMPLES,
    ]
    .into_iter()
    .flatten()
}
