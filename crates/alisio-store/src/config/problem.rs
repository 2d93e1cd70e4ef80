//! What can be wrong with a configuration, in words that name the file, the key, what was found and what is allowed.

use std::fmt;
use std::path::PathBuf;

/// One thing that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The key, dotted; empty for the file as a whole.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", printable(&self.path))?;
        }
        f.write_str(&printable(&self.message))
    }
}

/// Says why there is no configuration. Every case is a mistake of usage.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {reason}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file is not JSON, or a key appears twice.
    #[error("`{}` is not valid at line {line}, column {column}: {reason}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The file is JSON and says something that Alisio does not know or allow.
    #[error("{}", list(file, problems))]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
    /// An environment variable or a flag has a wrong value.
    #[error("`{name}`: {reason}")]
    Override {
        /// The variable or flag.
        name: &'static str,
        /// What was found and what is allowed.
        reason: String,
    },
    /// The file cannot be written.
    #[error("cannot write `{}`: {reason}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
}

impl ConfigError {
    /// Says what a person can do next.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Invalid { .. } => {
                vec!["`alisio config schema` prints every key with its type, range and default".to_owned()]
            }
            Self::Syntax { .. } => {
                vec!["the file is plain JSON: no comments, no comma after the last entry".to_owned()]
            }
            Self::Read { .. } | Self::Override { .. } | Self::Write { .. } => Vec::new(),
        }
    }
}

fn list(file: &std::path::Path, problems: &[Problem]) -> String {
    match problems {
        [problem] => format!("`{}`: {problem}", file.display()),
        _ => {
            let lines: String = problems.iter().map(|problem| format!("\n  {problem}")).collect();
            format!("`{}` has {} problems:{lines}", file.display(), problems.len())
        }
    }
}

/// Shows what could move a terminal's cursor, or the order of its letters, as an escape.
pub(crate) fn printable(text: &str) -> String {
    let is_bidirectional =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if c.is_control() || is_bidirectional(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    })
}
