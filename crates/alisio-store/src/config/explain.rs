//! Says of every key what it is and who set it, for `config show`. Values that may be secrets are masked here, so that no caller can
//! forget to.

use serde_json::Value;

use super::ProjectFile;
use super::keys::Config;
use super::merge::{Origin, Origins};
use super::schema::join;

/// What stands in the place of a value that is not shown.
const HIDDEN: &str = "(hidden)";

/// One key of the configuration in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The key, dotted; entries of a list by index.
    pub path: String,
    /// Its value; masked where it may be a secret. `null` is unset.
    pub value: Value,
    /// Who set it.
    pub origin: Origin,
}

pub(super) fn explain(config: &Config, origins: &Origins) -> Vec<Explained> {
    // A configuration is plain data with text keys, which always turns into JSON.
    let Ok(value) = serde_json::to_value(config) else { return Vec::new() };
    let mut all = Vec::new();
    leaves(&value, "", &mut |path, value| {
        if path == "$schema" || path == "mcpServers" {
            return;
        }
        let origin = origins.get(path).cloned().unwrap_or(Origin::Default);
        all.push(Explained { path: path.to_owned(), value: masked(path, value), origin });
    });
    all
}

/// Sections of a project's file that redirect, start or open something.
const TELLING: &[&str] = &[
    "provider",
    "additionalDirectories",
    "builtinPlugins",
    "mcp",
    "mcpServers",
    "permissions",
    "pluginOverrides",
    "plugins",
    "sandbox",
    "skills",
    "websearch",
];

/// Returns what a person should see of a project's file before they trust it: key and value, secrets masked.
pub(crate) fn settings_to_show(file: &ProjectFile) -> Vec<(String, String)> {
    let layer = match super::read::layer(&file.path, &file.bytes) {
        Ok(layer) => layer,
        Err(error) => return vec![("config.json".to_owned(), format!("cannot be used: {error}"))],
    };
    let mut settings = Vec::new();
    for section in TELLING {
        let Some(value) = layer.value.get(*section) else { continue };
        leaves(value, section, &mut |path, value| {
            let value = masked(path, value);
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            settings.push((path.to_owned(), text));
        });
    }
    settings
}

/// Calls `visit` for every value that is no filled object or list.
pub(super) fn leaves(value: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (name, value) in object {
                leaves(value, &join(path, name), visit);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, value) in list.iter().enumerate() {
                leaves(value, &format!("{path}[{index}]"), visit);
            }
        }
        _ => visit(path, value),
    }
}

fn masked(path: &str, value: &Value) -> Value {
    let is_server = path.starts_with("mcp.servers.") || path.starts_with("mcpServers.");
    let hide = (is_server && path.contains(".env."))
        // Programs are often given a token as an argument, and plugins as an option.
        || (is_server && path.contains(".args[") && value.as_str().is_some_and(may_be_secret))
        || (path.starts_with("pluginOverrides.") && path.contains(".options") && !is_empty(value));
    if hide {
        return HIDDEN.into();
    }
    match value.as_str() {
        Some(url) if url.contains("://") => match url.split_once('?') {
            Some((address, _)) => format!("{address}?{HIDDEN}").into(),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Says whether an argument looks like a token: it names one, or is one long run of letters and digits.
fn may_be_secret(argument: &str) -> bool {
    let lower = argument.to_ascii_lowercase();
    let names_one = ["key", "token", "secret", "password", "bearer", "authorization"]
        .iter()
        .any(|word| lower.contains(word));
    let is_one = argument.len() >= 20
        && argument.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.=+".contains(&byte))
        && argument.bytes().any(|byte| byte.is_ascii_digit());
    names_one || is_one
}
