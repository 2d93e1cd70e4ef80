//! What a call would do, in parts, as far as its text tells.

use serde::{Deserialize, Serialize};

/// Whether a command only looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It only looks.
    Read,
    /// It changes something, or nobody can tell.
    WriteOrUnknown,
}

/// What a command would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// The simple commands in it, in the order of the text, nested ones included.
    pub parts: Vec<Part>,
    /// The strictest class of a part, or stricter where the whole could not be read.
    pub class: Class,
    /// One sentence: which word decided.
    pub reason: String,
}

/// One simple command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Its text as it stands.
    pub text: String,
    /// Its words without quotes; `None` when one of them is only known when it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// The program, without its folder; `None` when it is only known when it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether it only looks.
    pub class: Class,
    /// Files it reads, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// Files it writes, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// Hosts it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Why it is classed so, in one sentence.
    pub why: String,
}
