//! What rules see of a call: its text, its paths, its hosts, and the facts about a command.
//!
//! Everything here is words: no path is looked up, no link followed. Whoever makes a [`Subject`] may put the paths as the
//! machine resolved them in the place of the ones that were worked out here from their text alone.

use alisio_protocol::Facts;
use serde_json::Value;

use crate::alias::{TargetKind, path_fields, target_fields, target_kind};
use crate::ordered::Ordered;

/// What rules see of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The text that patterns match: the command, the path as given, the query, or the input as JSON.
    pub target: String,
    /// The words of a call that names its program and arguments.
    pub argv: Option<Vec<String>>,
    /// Further texts that a pattern which denies or asks also looks at.
    pub also: Vec<String>,
    /// What a command would do; `None` when nobody looked, which counts as not understood.
    pub facts: Option<Facts>,
    /// Paths that the input names, absolute.
    pub paths: Vec<String>,
    /// Hosts that the input names.
    pub hosts: Vec<String>,
    /// The agent that calls; empty for the main one.
    pub agent: String,
    /// The directory that relative paths count from, absolute.
    pub directory: String,
}

impl Subject {
    /// Reads the input of a call, as the model wrote it.
    ///
    /// A field that is missing or no text gives an empty text. For a tool that is not known here the text is the input
    /// itself, as JSON without blanks, its keys in the model's order.
    ///
    /// # Errors
    /// When `input` is not JSON.
    pub fn of_input(tool: &str, input: &str, directory: &str) -> Result<Self, serde_json::Error> {
        let ordered: Ordered = serde_json::from_str(if input.trim().is_empty() { "{}" } else { input })?;
        let value = ordered.to_value();
        let field = |name: &str| value.get(name).and_then(Value::as_str);
        let mut subject = Self { directory: directory.to_owned(), ..Self::default() };
        if let Some(cwd) = field("cwd") {
            subject.directory = absolute(directory, cwd);
        }
        let kind = target_kind(tool);
        if kind == TargetKind::Json {
            subject.target = ordered.to_string();
            let sorted = value.to_string();
            if sorted != subject.target {
                subject.also.push(sorted);
            }
        } else {
            let fields = target_fields(tool);
            let first = fields.iter().find_map(|name| value.get(*name).filter(|value| !value.is_null()));
            subject.target = first.and_then(Value::as_str).unwrap_or_default().to_owned();
        }
        match kind {
            TargetKind::Program => {
                let arguments = value.get("args").and_then(Value::as_array).into_iter().flatten();
                let arguments = arguments.map(|argument| argument.as_str().unwrap_or_default().to_owned());
                let argv: Vec<String> = std::iter::once(subject.target.clone()).chain(arguments).collect();
                subject.target = quoted(&argv);
                subject.argv = Some(argv);
            }
            TargetKind::Path if tool == "list_files" => subject.also.extend(field("glob").map(str::to_owned)),
            TargetKind::Text => subject.hosts.extend(host_of(tool, &subject.target)),
            _ => {}
        }
        for name in path_fields(tool) {
            let path = field(name).unwrap_or(".");
            subject.paths.push(absolute(&subject.directory, path));
        }
        Ok(subject)
    }

    /// Takes the text of a call as it is.
    pub fn of_target(tool: &str, target: &str, directory: &str) -> Self {
        let mut subject =
            Self { target: target.to_owned(), directory: directory.to_owned(), ..Self::default() };
        match target_kind(tool) {
            TargetKind::Path => subject.paths.push(absolute(directory, target)),
            TargetKind::Text => subject.hosts.extend(host_of(tool, target)),
            _ => {}
        }
        subject
    }
}

/// The host of an address, for tools whose text is one.
fn host_of(tool: &str, target: &str) -> Option<String> {
    if !matches!(tool, "network" | "webfetch") || target.is_empty() {
        return None;
    }
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    Some(host.trim_end_matches('.').to_lowercase())
}

/// Works out an absolute path from its text: `.`, `..` and doubled slashes are gone; links are not looked at.
pub fn absolute(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { directory };
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Writes words so that a shell would read them back as they are.
pub(crate) fn quoted(argv: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}
