//! Reads and checks one file: JSON without repeated keys, then every key, type and range.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess};
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::keys::{Config, McpServer, McpTransport};
use super::problem::{ConfigError, Problem};
use super::schema::{KnownKeys, join};

/// Bytes of a configuration file at most.
pub(crate) const LARGEST_FILE: u64 = 1 << 20;
/// Problems that are looked for in a file; past this a person has enough to do.
const MOST_PROBLEMS: usize = 100;

/// A file that passed every check.
pub(super) struct Layer {
    pub(super) file: PathBuf,
    pub(super) value: Map<String, Value>,
}

/// Reads a file that must exist.
pub(super) fn file(path: &Path) -> Result<Vec<u8>, ConfigError> {
    file_if_present(path)?.ok_or_else(|| unreadable(path, "there is no such file"))
}

/// Reads a file; `None` when there is none.
pub(super) fn file_if_present(path: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, error)),
    };
    let mut bytes = Vec::new();
    match file.take(LARGEST_FILE + 1).read_to_end(&mut bytes) {
        Ok(length) if length as u64 > LARGEST_FILE => {
            Err(unreadable(path, format_args!("it is larger than {LARGEST_FILE} bytes")))
        }
        Ok(_) => Ok(Some(bytes)),
        Err(error) => Err(unreadable(path, error)),
    }
}

fn unreadable(path: &Path, reason: impl std::fmt::Display) -> ConfigError {
    ConfigError::Read { file: path.to_owned(), reason: reason.to_string() }
}

/// Parses and checks a file.
pub(super) fn layer(file: &Path, bytes: &[u8]) -> Result<Layer, ConfigError> {
    let value = parse(file, bytes)?;
    check(file, &value)?;
    match value {
        Value::Object(value) => Ok(Layer { file: file.to_owned(), value }),
        _ => Err(ConfigError::Invalid {
            file: file.to_owned(),
            problems: vec![Problem { path: String::new(), message: "allowed is one object".to_owned() }],
        }),
    }
}

/// Parses JSON, and refuses a key that appears twice.
fn parse(file: &Path, bytes: &[u8]) -> Result<Value, ConfigError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match serde_json::from_slice::<Unique>(bytes) {
        Ok(Unique(value)) => Ok(value),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let text = error.to_string();
            let text = if error.is_eof() { "the file ends too early".to_owned() } else { text };
            let place = format!(" at line {line} column {column}");
            Err(ConfigError::Syntax {
                file: file.to_owned(),
                line,
                column,
                reason: super::problem::printable(text.strip_suffix(&place).unwrap_or(&text)),
            })
        }
    }
}

/// A JSON value in which no object has a key twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Unique;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<Unique, E> {
                Ok(Unique(Value::Null))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Unique, A::Error> {
                let mut values = Vec::new();
                while let Some(Unique(value)) = list.next_element()? {
                    values.push(value);
                }
                Ok(Unique(Value::Array(values)))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unique, A::Error> {
                let mut object = Map::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if object.contains_key(&key) {
                        return Err(de::Error::custom(format_args!("the key `{key}` appears twice")));
                    }
                    let Unique(value) = entries.next_value()?;
                    object.insert(key, value);
                }
                Ok(Unique(Value::Object(object)))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Checks keys, types, ranges, and what must agree inside one file.
pub(super) fn check(file: &Path, value: &Value) -> Result<(), ConfigError> {
    let mut has_unknown = false;
    let typed: Result<Config, _> = serde_ignored::deserialize(value, |_| has_unknown = true);
    let problems = match typed {
        Ok(config) if !has_unknown => disagreements(&config),
        _ => all_problems(value),
    };
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { file: file.to_owned(), problems }) }
}

/// Looks for everything that is wrong: takes out each wrong value once it is noted and looks again.
fn all_problems(value: &Value) -> Vec<Problem> {
    let known = KnownKeys::new();
    let mut problems: Vec<Problem> = known
        .unknown_in(value)
        .into_iter()
        .map(|path| {
            let message = match known.nearest(&path) {
                Some(nearest) => format!("this key is not known; the nearest one is `{nearest}`"),
                None => "this key is not known".to_owned(),
            };
            Problem { path, message }
        })
        .collect();
    let mut rest = value.clone();
    while problems.len() < MOST_PROBLEMS {
        let error = match serde_path_to_error::deserialize::<_, Config>(&rest) {
            Ok(config) => {
                problems.extend(disagreements(&config));
                break;
            }
            Err(error) => error,
        };
        let (path, steps) = path_of(error.path());
        problems.push(Problem { message: message_of(&path, &error.inner().to_string()), path });
        if !remove(&mut rest, &steps) {
            break;
        }
    }
    problems
}

enum Step {
    Key(String),
    Index(usize),
}

fn path_of(path: &serde_path_to_error::Path) -> (String, Vec<Step>) {
    let mut text = String::new();
    let mut steps = Vec::new();
    for segment in path {
        match segment {
            Segment::Map { key } => {
                text = join(&text, key);
                steps.push(Step::Key(key.clone()));
            }
            Segment::Seq { index } => {
                text = format!("{text}[{index}]");
                steps.push(Step::Index(*index));
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    (text, steps)
}

/// Takes out the value at `steps`; `false` when there is nothing to take.
fn remove(value: &mut Value, steps: &[Step]) -> bool {
    let Some((last, parents)) = steps.split_last() else { return false };
    let parent = parents.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    });
    match (parent, last) {
        (Some(Value::Object(object)), Step::Key(key)) => object.remove(key).is_some(),
        (Some(Value::Array(list)), Step::Index(index)) if *index < list.len() => {
            list.remove(*index);
            true
        }
        _ => false,
    }
}

/// Turns serde's sentence into ours.
fn message_of(path: &str, text: &str) -> String {
    let told = ["invalid type: ", "invalid value: ", "unknown variant "]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .and_then(|rest| rest.rsplit_once(", expected "));
    let Some((found, allowed)) = told else {
        return text.replace("missing field", "there is no");
    };
    let allowed = match allowed {
        "a map" => "an object",
        "a sequence" => "a list",
        "a string" | "path string" | "string" => "a text",
        structure if structure.starts_with("struct ") => "an object",
        other => other,
    };
    // Values of environment variables are secrets; a long value helps nobody.
    let found = if path.contains(".env.") || path.contains(".options.") {
        "a value that is not shown".to_owned()
    } else if found.chars().count() > 80 {
        format!("{}…", found.chars().take(80).collect::<String>())
    } else {
        match found {
            "sequence" => "a list",
            "map" => "an object",
            other => other,
        }
        .to_owned()
    };
    format!("found {found}, allowed is {allowed}")
}

/// Finds what is well formed alone and wrong together.
fn disagreements(config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut note = |path: String, message: &str| problems.push(Problem { path, message: message.to_owned() });
    if config.websearch.searxng_url.as_ref().is_some_and(|url| !url.is_https_or_loopback()) {
        note("websearch.searxngUrl".to_owned(), "found an http URL of another machine, allowed is https");
    }
    for (section, servers) in [("mcp.servers", &config.mcp.servers), ("mcpServers", &config.mcp_servers)] {
        for (name, server) in servers {
            if let Some(message) = server_problem(name, server) {
                note(join(section, name), message);
            }
        }
    }
    for name in config.mcp_servers.keys().filter(|name| config.mcp.servers.contains_key(*name)) {
        note(join("mcpServers", name), "the same server is also in `mcp.servers`; allowed is one of the two");
    }
    for (id, plugin) in &config.plugin_overrides {
        let path = || format!("pluginOverrides.{id}.options");
        if serde_json::to_vec(&plugin.options).map_or(true, |bytes| bytes.len() > 8192) {
            note(path(), "found more than 8192 bytes of options");
        }
        for name in plugin.options.keys() {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_plain) {
                note(
                    join(&path(), name),
                    "an option's name is a letter, then letters, digits, `.`, `_` and `-`",
                );
            }
        }
    }
    problems
}

fn server_problem(name: &str, server: &McpServer) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        return Some("a server's name is 1 to 64 letters, digits, `_`, `-` and `.`");
    }
    let transport = match (server.transport, &server.command, &server.url) {
        (_, Some(_), Some(_)) => return Some("found both `command` and `url`, allowed is one of the two"),
        (_, None, None) => return Some("found neither `command` nor `url`"),
        (Some(McpTransport::Http), Some(_), None) => {
            return Some("the transport `http` needs `url`, not `command`");
        }
        (Some(McpTransport::Stdio), None, Some(_)) => {
            return Some("the transport `stdio` needs `command`, not `url`");
        }
        (_, Some(_), None) => McpTransport::Stdio,
        (_, None, Some(_)) => McpTransport::Http,
    };
    let has_nul = |text: &String| text.contains('\0');
    let is_variable = |name: &String| super::values::VariableName::new(name.as_str()).is_ok();
    match transport {
        McpTransport::Stdio if server.bearer_token_env.is_some() => {
            Some("`bearerTokenEnv` belongs to a server with `url`")
        }
        McpTransport::Stdio if server.command.as_ref().is_some_and(|command| command.trim().is_empty()) => {
            Some("`command` is empty")
        }
        McpTransport::Stdio
            if server.command.iter().chain(&server.args).chain(server.env.values()).any(has_nul) =>
        {
            Some("`command`, `args` and `env` cannot hold a NUL character")
        }
        McpTransport::Stdio if !server.env.keys().all(is_variable) => {
            Some("a name in `env` is not the name of an environment variable")
        }
        McpTransport::Http
            if !server.args.is_empty() || !server.env.is_empty() || !server.env_allow.is_empty() =>
        {
            Some("`args`, `env` and `envAllow` belong to a server with `command`")
        }
        McpTransport::Stdio | McpTransport::Http => None,
    }
}
