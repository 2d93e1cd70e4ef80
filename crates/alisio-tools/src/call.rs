//! What every tool does alike: its schema from its input type, reading the input, and carrying what was decided on
//! from the question to the act.

use std::path::PathBuf;

use alisio_host::workspace::{Access, FileError, Reason, Resolved, Workspace};
use alisio_policy::{OutsidePath, Permit, Request, Scope};
use alisio_protocol::{Effect, Sha256, ToolCall, ToolResult, ToolSpec};
use alisio_sdk::{BoxFuture, InputError, Prepared, ToolContext};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Text in one result: about 16,000 tokens.
pub(crate) const OUTPUT_LIMIT: usize = 64 * 1024;

/// Makes the spec of a tool whose input is `T`.
pub(crate) fn spec<T: JsonSchema>(name: &str, effect: Effect, description: &str) -> ToolSpec {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(root) = &mut schema {
        root.remove("title");
        root.remove("description");
    }
    strip_formats(&mut schema);
    ToolSpec { name: name.to_owned(), description: description.to_owned(), input_schema: schema, effect }
}

/// Widths of integers mean nothing to a model, and some services refuse a schema that names them.
fn strip_formats(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object
                .get("format")
                .is_some_and(|format| format.as_str().is_some_and(|f| f.starts_with("uint")))
            {
                object.remove("format");
            }
            object.values_mut().for_each(strip_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_formats),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reads the input of a call.
pub(crate) fn parse<T: DeserializeOwned>(spec: &ToolSpec, call: &ToolCall) -> Result<T, InputError> {
    let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    serde_json::from_str(arguments).map_err(|error| {
        let mut said = error.to_string();
        // The place in the JSON text helps nobody who did not write it by hand.
        if let Some(place) = said.rfind(" at line ") {
            said.truncate(place);
        }
        InputError(format!("bad input for `{}`: {said}; expected {}", spec.name, usage(&spec.input_schema)))
    })
}

/// Says the shape of an input in a line: `{"path": string, "limit"?: integer}`.
fn usage(schema: &Value) -> String {
    let Some(properties) = schema["properties"].as_object() else { return "{}".to_owned() };
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
    let mut fields: Vec<_> = properties.iter().collect();
    fields.sort_by_key(|(name, _)| !is_required(name));
    let fields: Vec<String> = fields
        .into_iter()
        .map(|(name, field)| {
            let kind = match &field["type"] {
                Value::String(kind) => kind.clone(),
                Value::Array(kinds) if is_required(name) => {
                    kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|")
                }
                Value::Array(kinds) => kinds.first().and_then(Value::as_str).unwrap_or("value").to_owned(),
                _ => "value".to_owned(),
            };
            format!("\"{name}\"{}: {kind}", if is_required(name) { "" } else { "?" })
        })
        .collect();
    format!("{{{}}}", fields.join(", "))
}

/// Says a refusal: the word, what is the matter, and how to go on.
pub(crate) fn refusal(reason: Reason, message: &str, hint: &str) -> String {
    let mut text = format!("refused ({}): {message}", reason.as_str());
    if !hint.is_empty() {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    text
}

/// Says why a file was not touched.
pub(crate) fn file_refusal(error: &FileError) -> String {
    let hint = match error.reason() {
        Reason::NotFound => "list_files shows what there is",
        Reason::Stale => "read it again, then repeat the change with that sha256",
        Reason::Exists => "read it with read_file, then pass its sha256 as expectedHash",
        Reason::TooLarge => "larger files can be read by page with offset, but not changed by this tool",
        _ => "",
    };
    refusal(error.reason(), &error.to_string(), hint)
}

/// Resolves a path of the input.
pub(crate) fn resolve(workspace: &Workspace, input: &str, access: Access) -> Result<Resolved, InputError> {
    workspace.resolve(input, access).map_err(|error| InputError(file_refusal(&error)))
}

/// A call that is understood: what is to be decided on, and what happens then.
pub(crate) struct Planned<A> {
    request: Request,
    act: A,
}

/// Binds a call on one path to its act. The digest covers the tool, the resolved path and the whole input, so that
/// what runs is what was shown, to the byte.
pub(crate) fn plan<A>(
    spec: &ToolSpec,
    call: &ToolCall,
    paths: Vec<PathBuf>,
    outside: Vec<OutsidePath>,
    act: A,
) -> Box<dyn Prepared>
where
    A: FnOnce(Permit, ToolContext) -> ToolResult + Send + 'static,
{
    let mut fields = vec![spec.name.as_bytes(), call.arguments.as_bytes()];
    fields.extend(paths.iter().map(|path| path.as_os_str().as_encoded_bytes()));
    let digest = Sha256::of_fields(fields);
    let writes = if spec.effect == Effect::Write { paths.clone() } else { Vec::new() };
    let request = Request {
        call: call.id.clone(),
        tool: spec.name.clone(),
        effect: spec.effect,
        scope: Scope { reads: paths, writes, spawns_in: None },
        outside,
        digest,
        subject: alisio_policy::Subject::default(),
    };
    Box::new(Planned { request, act })
}

impl<A> Prepared for Planned<A>
where
    A: FnOnce(Permit, ToolContext) -> ToolResult + Send + 'static,
{
    fn request(&self) -> Request {
        self.request.clone()
    }

    fn run(self: Box<Self>, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolResult> {
        let Self { request, act } = *self;
        Box::pin(async move {
            if let Err(error) = permit.check_digest(&request.digest) {
                return ToolResult::error(refusal(Reason::Permit, &error.to_string(), ""));
            }
            match tokio::task::spawn_blocking(move || act(permit, context)).await {
                Ok(result) => result,
                Err(error) => ToolResult::error(format!("the tool `{}` broke off: {error}", request.tool)),
            }
        })
    }
}
