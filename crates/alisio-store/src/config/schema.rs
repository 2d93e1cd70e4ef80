//! The JSON Schema of `config.json`, made from the types, and the questions an error message asks of it: which keys are known,
//! and which is nearest. It is made only when somebody asks or something is wrong, never at an ordinary start.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::keys::Config;

/// Returns the JSON Schema (draft 2020-12) of `config.json`.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Config>();
    schema.insert("title".to_owned(), "Alisio configuration".into());
    schema.to_value()
}

/// The known keys, as a tree without references.
pub(super) struct KnownKeys(Value);

impl KnownKeys {
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        Self(settings.into_generator().into_root_schema_for::<Config>().to_value())
    }

    /// Returns the paths in `document` that no key is known for.
    pub(super) fn unknown_in(&self, document: &Value) -> Vec<String> {
        let mut unknown = Vec::new();
        walk(&self.0, document, "", &mut unknown);
        unknown
    }

    /// Returns the known path that somebody most likely meant by `path`.
    pub(super) fn nearest(&self, path: &str) -> Option<String> {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        let mut schema = &self.0;
        for step in parent.split('.').filter(|step| !step.is_empty()) {
            schema = child(schema, step.split('[').next().unwrap_or(step))?;
        }
        let siblings = properties(schema).map(|properties| properties.keys()).into_iter().flatten();
        let distance = |known: &str| {
            strsim::damerau_levenshtein(&known.to_ascii_lowercase(), &name.to_ascii_lowercase())
        };
        let close = siblings
            .map(|known| (distance(known), known))
            .filter(|(distance, known)| *distance <= (known.len().max(name.len()) / 3).max(1))
            .min();
        if let Some((_, known)) = close {
            return Some(join(parent, known));
        }
        // The right name in the wrong place; a section that is in force is meant rather than one that is not.
        let mut all = Vec::new();
        collect(&self.0, "", &mut all);
        let has_name =
            |known: &String| known.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(name));
        all.into_iter().filter(has_name).min_by_key(|known| {
            let section = known.split('.').next().unwrap_or(known);
            (!super::merge::IN_FORCE.contains(&section), known.matches('.').count())
        })
    }
}

/// Puts a key behind a path.
pub(super) fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

fn properties(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn child<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let named = properties(schema).and_then(|properties| properties.get(name));
    named.or_else(|| schema.get("additionalProperties").filter(|rest| rest.is_object()))
}

fn walk(schema: &Value, document: &Value, path: &str, unknown: &mut Vec<String>) {
    // Values that a part checks itself have neither of the two.
    let is_closed = properties(schema).is_some() || schema.get("additionalProperties").is_some();
    let Some(object) = document.as_object().filter(|_| is_closed) else { return };
    for (name, value) in object {
        let path = join(path, name);
        match child(schema, name) {
            Some(schema) => walk(schema, value, &path, unknown),
            None if schema.get("additionalProperties") == Some(&Value::Bool(true)) => {}
            None => unknown.push(path),
        }
    }
}

fn collect(schema: &Value, path: &str, all: &mut Vec<String>) {
    for (name, schema) in properties(schema).into_iter().flatten() {
        let path = join(path, name);
        collect(schema, &path, all);
        all.push(path);
    }
}
