//! Shows what a project would load, in printable text. This looks at an untrusted file, and does nothing with what it finds but show it.

use std::collections::BTreeMap;

use super::snapshot::{Found, shown};
use crate::config::{ProjectFile, printable, settings_to_show};

/// What a project would load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The files and links, by path.
    pub items: Vec<Item>,
    /// What its `config.json` says that redirects, starts or opens something: key and value. Secrets are masked.
    pub settings: Vec<(String, String)>,
}

/// One file or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The path in the workspace.
    pub path: String,
    /// What it would be loaded as.
    pub kind: ItemKind,
    /// What is special about it.
    pub note: Option<String>,
}

/// What a file would be loaded as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemKind {
    /// The configuration.
    Config,
    /// Code of a plugin.
    Plugin,
    /// An agent.
    Agent,
    /// A part of a skill.
    Skill,
    /// A prompt template.
    Prompt,
    /// Something else in a folder that counts.
    Other,
}

impl std::fmt::Display for ItemKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Config => "configuration",
            Self::Plugin => "plugin",
            Self::Agent => "agent",
            Self::Skill => "skill",
            Self::Prompt => "prompt",
            Self::Other => "other",
        })
    }
}

pub(super) fn inventory(entries: &BTreeMap<Vec<u8>, Found>, config: Option<&ProjectFile>) -> Inventory {
    let items = entries
        .iter()
        .filter_map(|(path, found)| {
            let note = match found {
                Found::Directory => return None,
                Found::File { .. } => None,
                Found::Link { target, leads_outside: false } => Some(format!("link to {}", shown(target))),
                Found::Link { target, leads_outside: true } => Some(format!(
                    "link to {}, which is not in the workspace and is not loaded",
                    shown(target)
                )),
                Found::Special { kind } => Some(format!("{kind}, not loaded")),
            };
            let path = shown(path);
            Some(Item { kind: kind_of(&path), path, note })
        })
        .collect();
    let settings = config.map(settings_to_show).unwrap_or_default();
    let settings = settings.into_iter().map(|(key, value)| (printable(&key), printable(&value))).collect();
    Inventory { items, settings }
}

fn kind_of(path: &str) -> ItemKind {
    let mut names = path.split('/');
    match (names.next(), names.next(), names.next()) {
        (Some(".alisio"), Some("config.json"), None) => ItemKind::Config,
        (Some(".alisio"), Some("plugins"), _) => ItemKind::Plugin,
        (Some(".alisio"), Some("prompts"), _) => ItemKind::Prompt,
        (Some(".alisio" | ".agents" | ".claude"), Some("skills"), _) => ItemKind::Skill,
        (Some(".alisio" | ".agents" | ".claude" | ".opencode"), Some("agents" | "agent"), _) => {
            ItemKind::Agent
        }
        _ => ItemKind::Other,
    }
}
