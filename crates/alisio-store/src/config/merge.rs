//! Puts the layers on top of each other and remembers who set what.
//!
//! An ordinary section of a higher layer replaces the lower one as a whole, and keys absent from it take their default, not the lower
//! layer's value: a section then means the same wherever it is read. Lists add up, records merge by key. What only the user's file may
//! say (`USER_ONLY`) is taken out of every other file with a notice, and survives when such a file replaces the section around it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::explain::leaves;
use super::keys::{ApiMode, Config, MODEL_PLACEHOLDER};
use super::problem::{ConfigError, Problem, printable};
use super::read::Layer;
use super::values::{Bounded, HttpUrl};
use super::{Loaded, Sources};

/// Keys that only the user's file may set; `*` is any name.
const USER_ONLY: &[&[&str]] = &[
    &["tasks", "retentionDays"],
    &["decisions", "provider"],
    &["decisions", "telemetry"],
    &["analysis", "runtime"],
    &["analysis", "oci"],
    &["analysis", "retention"],
    &["pluginOverrides", "*", "options"],
    &["mcp", "allow"],
    &["semantic", "embedding"],
    &["semantic", "store"],
];

/// Sections that something acts on today. The others load and give a notice.
pub(super) const IN_FORCE: &[&str] =
    &["$schema", "schemaVersion", "provider", "limits", "context", "additionalDirectories", "permissions"];

/// Whose file a layer is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// The user's.
    Global,
    /// The project's, or the one of `--config`.
    Lower,
}

/// Who set a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: it is the default.
    Default,
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Variable(&'static str),
    /// A flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => path.display().fmt(f),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Origins by dotted path; what is absent is a default.
pub(super) type Origins = BTreeMap<String, Origin>;

/// Something a person should know about the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub kind: NoticeKind,
    /// The key.
    pub path: String,
    /// Who said it.
    pub origin: Origin,
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// A known section that nothing acts on yet.
    NotInForce,
    /// A value that only the user's file may set; it was ignored.
    UserOnly,
    /// A `true` over the user's `false`; it was ignored.
    Sticky,
    /// A provider without a model over one that has a model; it was ignored.
    ProviderWithoutModel,
    /// A directory that is not there; it was ignored.
    NoDirectory,
    /// A directory that `--read-only` keeps closed.
    ReadOnly,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, origin) = (printable(&self.path), &self.origin);
        match self.kind {
            NoticeKind::NotInForce => {
                write!(f, "`{path}` in `{origin}` is read and checked, but nothing acts on it yet")
            }
            NoticeKind::UserOnly => {
                write!(f, "`{path}` in `{origin}` was ignored: only the user's own file may set it")
            }
            NoticeKind::Sticky => {
                write!(f, "`{path}` in `{origin}` was ignored: the user's own file turned it off")
            }
            NoticeKind::ProviderWithoutModel => {
                write!(
                    f,
                    "`{path}` in `{origin}` was ignored: it names no model, and the user's own file does"
                )
            }
            NoticeKind::NoDirectory => {
                write!(f, "`{path}` from `{origin}` was ignored: there is no such directory")
            }
            NoticeKind::ReadOnly => write!(f, "`{path}` from `{origin}` stays closed under `--read-only`"),
        }
    }
}

/// The work of one [`super::load`].
pub(super) struct Merge<'a> {
    sources: &'a Sources<'a>,
    value: Map<String, Value>,
    origins: Origins,
    notices: Vec<Notice>,
    files: Vec<PathBuf>,
    permissions: Vec<(PathBuf, Value)>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(sources: &'a Sources<'a>) -> Self {
        Self {
            sources,
            value: Map::new(),
            origins: Origins::new(),
            notices: Vec::new(),
            files: Vec::new(),
            permissions: Vec::new(),
        }
    }

    /// Puts a layer on top.
    pub(super) fn add(&mut self, layer: Layer, rank: Rank) {
        let Layer { file, value: mut upper } = layer;
        let origin = Origin::File(file.clone());
        self.notice_features(&upper, &origin);
        if let Some(permissions) = upper.get("permissions") {
            self.permissions.push((file.clone(), permissions.clone()));
        }
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        resolve_paths(&mut upper, &folder, self.sources.env.get_os("HOME").map(PathBuf::from).as_deref());
        move_server_alias(&mut upper);
        let mut kept = Vec::new();
        if rank == Rank::Lower {
            for pattern in USER_ONLY {
                for (path, _) in matches(&upper, pattern) {
                    take(&mut upper, &path);
                    self.notice(NoticeKind::UserOnly, path.join("."), &origin);
                }
                kept.extend(matches(&self.value, pattern));
            }
            self.keep_dashboard_off(&mut upper, &origin, &mut kept);
            self.skip_provider_without_model(&mut upper, &origin);
        }
        let kept_origins: Vec<_> =
            kept.iter().flat_map(|(path, _)| entries_under(&self.origins, &path.join("."))).collect();
        for (section, value) in upper {
            self.add_section(&section, value, &origin);
        }
        for (path, value) in kept {
            put(&mut self.value, &path, value);
        }
        self.origins.extend(kept_origins);
        self.files.push(file);
    }

    fn notice(&mut self, kind: NoticeKind, path: String, origin: &Origin) {
        self.notices.push(Notice { kind, path, origin: origin.clone() });
    }

    /// One notice for each feature that is not there yet, however many files or spellings name it.
    fn notice_features(&mut self, upper: &Map<String, Value>, origin: &Origin) {
        for section in upper.keys().filter(|section| !IN_FORCE.contains(&section.as_str())) {
            let feature = feature_of(section);
            let is_known = |notice: &Notice| {
                notice.kind == NoticeKind::NotInForce && feature_of(&notice.path) == feature
            };
            if !self.notices.iter().any(is_known) {
                self.notice(NoticeKind::NotInForce, section.clone(), origin);
            }
        }
    }

    /// A `false` of the user's for `analysis.smartDashboard` stands, whatever replaces the section.
    fn keep_dashboard_off(
        &mut self,
        upper: &mut Map<String, Value>,
        origin: &Origin,
        kept: &mut Vec<(Vec<String>, Value)>,
    ) {
        let path = ["analysis".to_owned(), "smartDashboard".to_owned()];
        let of = |value: &Map<String, Value>| {
            value.get(&path[0]).and_then(|section| section.get(&path[1])).cloned()
        };
        if of(&self.value) == Some(Value::Bool(false)) {
            if of(upper) == Some(Value::Bool(true)) {
                self.notice(NoticeKind::Sticky, path.join("."), origin);
            }
            kept.push((path.to_vec(), Value::Bool(false)));
        }
    }

    /// A provider without a model (as `setup` leaves it to be filled in) does not hide one that works, unless this run names a model.
    fn skip_provider_without_model(&mut self, upper: &mut Map<String, Value>, origin: &Origin) {
        let has_model = |value: &Map<String, Value>| {
            let model =
                value.get("provider").and_then(|provider| provider.get("model")).and_then(Value::as_str);
            model.is_some_and(|model| !model.trim().is_empty() && model.trim() != MODEL_PLACEHOLDER)
        };
        let run_names_model =
            self.sources.flags.model.is_some() || self.sources.env.get("ALISIO_MODEL").is_some();
        if upper.contains_key("provider") && !has_model(upper) && has_model(&self.value) && !run_names_model {
            upper.remove("provider");
            self.notice(NoticeKind::ProviderWithoutModel, "provider".to_owned(), origin);
        }
    }

    fn add_section(&mut self, section: &str, value: Value, origin: &Origin) {
        match (section, value) {
            ("plugins" | "skills" | "additionalDirectories", Value::Array(entries)) => {
                let list = self.value.entry(section).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(list) = list else { return };
                for entry in entries {
                    if !list.contains(&entry) {
                        self.origins.insert(format!("{section}[{}]", list.len()), origin.clone());
                        list.push(entry);
                    }
                }
            }
            ("pluginOverrides" | "skillOverrides" | "builtinPlugins", Value::Object(record)) => {
                for (name, value) in record {
                    self.set(&[section.to_owned(), name], value, origin);
                }
            }
            ("mcp", Value::Object(mcp)) => {
                for (key, value) in mcp {
                    match value {
                        Value::Object(servers) if key == "servers" => {
                            for (name, value) in servers {
                                self.set(&[section.to_owned(), key.clone(), name], value, origin);
                            }
                        }
                        value => self.set(&[section.to_owned(), key], value, origin),
                    }
                }
            }
            (_, value) => self.set(&[section.to_owned()], value, origin),
        }
    }

    /// Replaces the value at `path` and all that was known of where it came from.
    fn set(&mut self, path: &[String], value: Value, origin: &Origin) {
        let dotted = path.join(".");
        for (old, _) in entries_under(&self.origins, &dotted) {
            self.origins.remove(&old);
        }
        leaves(&value, &dotted, &mut |leaf, _| {
            self.origins.insert(leaf.to_owned(), origin.clone());
        });
        put(&mut self.value, path, value);
    }

    fn set_key(&mut self, section: &str, key: &str, value: Value, origin: Origin) {
        self.set(&[section.to_owned(), key.to_owned()], value, &origin);
    }

    /// Adds environment and flags, and gives the typed result.
    pub(super) fn finish(mut self) -> Result<Loaded, ConfigError> {
        let sources = self.sources;
        let (env, flags) = (sources.env, &sources.flags);
        let variable = |name: &'static str| env.get(name).map(|value| (value, Origin::Variable(name)));
        let flag = |value: &Option<String>, name| value.clone().map(|value| (value, Origin::Flag(name)));
        for (value, origin) in
            [variable("OPENAI_BASE_URL"), flag(&flags.base_url, "--base-url")].into_iter().flatten()
        {
            HttpUrl::new(value.as_str()).map_err(|reason| wrong(&origin, reason))?;
            self.set_key("provider", "baseURL", value.into(), origin);
        }
        for (value, origin) in [variable("ALISIO_MODEL"), flag(&flags.model, "--model")].into_iter().flatten()
        {
            self.set_key("provider", "model", value.into(), origin);
        }
        for (value, origin) in
            [variable("ALISIO_API_MODE"), flag(&flags.api_mode, "--api-mode")].into_iter().flatten()
        {
            let value = Value::String(value);
            if ApiMode::deserialize(&value).is_err() {
                return Err(wrong(&origin, format!("found {value}, allowed is `chat` or `responses`")));
            }
            self.set_key("provider", "apiMode", value, origin);
        }
        if let Some(turns) = flags.max_turns {
            let origin = Origin::Flag("--max-turns");
            in_range::<1, 100>(turns, &origin)?;
            self.set_key("limits", "maxTurns", turns.into(), origin);
        }
        if let Some(timeout) = flags.timeout_ms {
            let origin = Origin::Flag("--timeout");
            in_range::<100, { super::LARGEST }>(timeout, &origin)?;
            self.set_key("limits", "timeoutMs", timeout.into(), origin);
        }
        self.open_directories()?;
        let config =
            Config::deserialize(Value::Object(self.value)).map_err(|error| ConfigError::Invalid {
                file: self.files.last().cloned().unwrap_or_default(),
                problems: vec![Problem { path: String::new(), message: error.to_string() }],
            })?;
        Ok(Loaded {
            config,
            notices: self.notices,
            files: self.files,
            permissions: self.permissions,
            origins: self.origins,
        })
    }

    /// Makes the additional directories canonical and leaves out those that are not there or not allowed.
    fn open_directories(&mut self) -> Result<(), ConfigError> {
        const SECTION: &str = "additionalDirectories";
        let mut wanted = Vec::new();
        if let Some(Value::Array(list)) = self.value.remove(SECTION) {
            for (index, entry) in list.into_iter().enumerate() {
                let origin = self.origins.remove(&format!("{SECTION}[{index}]")).unwrap_or(Origin::Default);
                wanted.extend(entry.as_str().map(|path| (PathBuf::from(path), origin)));
            }
        }
        let from_flags = self.sources.flags.add_directories.iter();
        wanted.extend(from_flags.map(|path| (path.clone(), Origin::Flag("--add-dir"))));
        let mut opened: Vec<Value> = Vec::new();
        for (path, origin) in wanted {
            let shown = path.display().to_string();
            if self.sources.flags.read_only {
                self.notice(NoticeKind::ReadOnly, shown, &origin);
                continue;
            }
            let canonical = std::fs::canonicalize(&path).ok().filter(|path| path.is_dir());
            let text = canonical.as_deref().and_then(Path::to_str).map(Value::from);
            match (text, &origin) {
                (Some(text), _) if opened.contains(&text) => {}
                (Some(text), _) => {
                    self.origins.insert(format!("{SECTION}[{}]", opened.len()), origin);
                    opened.push(text);
                }
                (None, Origin::Flag(_)) => {
                    return Err(wrong(&origin, format!("there is no directory `{}`", printable(&shown))));
                }
                (None, _) => self.notice(NoticeKind::NoDirectory, shown, &origin),
            }
        }
        self.value.insert(SECTION.to_owned(), Value::Array(opened));
        Ok(())
    }
}

fn wrong(origin: &Origin, reason: String) -> ConfigError {
    let name = match origin {
        Origin::Variable(name) | Origin::Flag(name) => name,
        Origin::Default | Origin::File(_) => "configuration",
    };
    ConfigError::Override { name, reason }
}

fn in_range<const MIN: u64, const MAX: u64>(value: u64, origin: &Origin) -> Result<(), ConfigError> {
    match Bounded::<MIN, MAX>::new(value) {
        Some(_) => Ok(()),
        None => Err(wrong(origin, format!("found {value}, allowed is {}", Bounded::<MIN, MAX>::allowed()))),
    }
}

/// Sections that are one feature under two names.
fn feature_of(section: &str) -> &str {
    match section {
        "mcpServers" => "mcp",
        "pluginOverrides" => "plugins",
        "skillOverrides" => "skills",
        other => other,
    }
}

/// Moves `mcpServers` to `mcp.servers`. That no name is in both was checked.
fn move_server_alias(layer: &mut Map<String, Value>) {
    let Some(Value::Object(alias)) = layer.remove("mcpServers") else { return };
    for (name, server) in alias {
        put(layer, &["mcp".to_owned(), "servers".to_owned(), name], server);
    }
}

/// Makes the paths of a layer absolute: they belong to the folder of the file that holds them.
fn resolve_paths(layer: &mut Map<String, Value>, folder: &Path, home: Option<&Path>) {
    let is_dotted = |text: &str| text.starts_with("./") || text.starts_with("../") || text.starts_with("~/");
    let resolve = |value: &mut Value, names_allowed: bool| {
        if let Some(text) = value.as_str()
            && (!names_allowed || is_dotted(text))
        {
            let joined = match (text.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => folder.join(text),
            };
            // A file name that is not UTF-8 cannot be written in JSON: only the folder could be such a name.
            if let Some(text) = without_dots(&joined).to_str() {
                *value = text.into();
            }
        }
    };
    for (section, names_allowed) in [("additionalDirectories", false), ("skills", false), ("plugins", true)] {
        if let Some(Value::Array(list)) = layer.get_mut(section) {
            list.iter_mut().for_each(|entry| resolve(entry, names_allowed));
        }
    }
    if let Some(Value::Object(plugins)) = layer.get_mut("builtinPlugins") {
        for (plugin, key) in [("memory", "dbPath"), ("subagents", "worktreeDir")] {
            if let Some(value) = plugins.get_mut(plugin).and_then(|plugin| plugin.get_mut(key)) {
                resolve(value, false);
            }
        }
    }
    let nested = layer.get_mut("mcp").and_then(|mcp| mcp.get_mut("servers")).and_then(Value::as_object_mut);
    nested.into_iter().for_each(|servers| resolve_commands(servers, &resolve));
    let alias = layer.get_mut("mcpServers").and_then(Value::as_object_mut);
    alias.into_iter().for_each(|servers| resolve_commands(servers, &resolve));
}

fn resolve_commands(servers: &mut Map<String, Value>, resolve: &impl Fn(&mut Value, bool)) {
    servers
        .values_mut()
        .filter_map(|server| server.get_mut("command"))
        .for_each(|command| resolve(command, true));
}

/// Takes `.` out of a path; `..` stays, since what it means depends on links.
fn without_dots(path: &Path) -> PathBuf {
    path.components().filter(|component| *component != Component::CurDir).collect()
}

/// Returns what stands at `pattern`, in which `*` is any name.
fn matches(value: &Map<String, Value>, pattern: &[&str]) -> Vec<(Vec<String>, Value)> {
    let Some((first, rest)) = pattern.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in value.iter().filter(|(name, _)| *first == "*" || name == first) {
        if rest.is_empty() {
            found.push((vec![name.clone()], value.clone()));
        } else if let Value::Object(value) = value {
            for (mut path, value) in matches(value, rest) {
                path.insert(0, name.clone());
                found.push((path, value));
            }
        }
    }
    found
}

/// Takes out the value at `path`, and each object that is empty without it: a section that says nothing replaces nothing.
fn take(object: &mut Map<String, Value>, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    let is_done = match object.get_mut(first) {
        Some(Value::Object(inner)) if !rest.is_empty() => {
            take(inner, rest);
            inner.is_empty()
        }
        _ => rest.is_empty(),
    };
    if is_done {
        object.remove(first);
    }
}

/// Puts a value at `path` and makes the objects on the way.
fn put(object: &mut Map<String, Value>, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        object.insert(first.clone(), value);
        return;
    }
    let inner = object.entry(first.clone()).or_insert_with(|| Value::Object(Map::new()));
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        put(inner, rest, value);
    }
}

fn entries_under(origins: &Origins, path: &str) -> Vec<(String, Origin)> {
    let is_under = |entry: &str| {
        entry.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    origins
        .range(path.to_owned()..)
        .take_while(|(entry, _)| entry.starts_with(path))
        .filter(|(entry, _)| is_under(entry))
        .map(|(entry, origin)| (entry.clone(), origin.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_only_key_is_a_key() {
        let known = super::super::schema::KnownKeys::new();
        for pattern in USER_ONLY {
            let mut value = Value::Null;
            for name in pattern.iter().rev() {
                value = Value::Object(Map::from_iter([(name.replace('*', "any"), value)]));
            }
            assert_eq!(known.unknown_in(&value), Vec::<String>::new(), "{pattern:?}");
        }
    }
}
