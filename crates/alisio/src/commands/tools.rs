//! `alisio tools`: the tools, their effects, and what the given flags make of them.

use std::io::Write;
use std::sync::Arc;

use alisio_host::workspace::Workspace;
use alisio_policy::{Answering, Authority, offers_tool};
use alisio_protocol::ToolSpec;
use alisio_sdk::Tool;
use serde_json::{Value, json};

use crate::app::{Agent, App, tools};
use crate::args::{ApprovalsMode, ToolsArgs};
use crate::error::{CommandError, Exit};

/// Runs the command.
pub fn run(app: &App, args: &ToolsArgs) -> Result<Exit, CommandError> {
    let loaded = app.configuration(&args.permissions)?.loaded;
    let config = &loaded.config;
    let agent = Agent::resolve(args.permissions.agent.as_deref(), &config.agents.active)?;
    let mut authority = app.authority(&args.permissions, &loaded, agent)?;
    if args.permissions.approvals.is_some_and(|mode| mode != ApprovalsMode::Deny) {
        authority.answering = Answering::Person;
    }
    let workspace = Workspace::open(&app.workspace).map_err(CommandError::usage)?;
    let tools = tools(workspace, &authority, app.instructions(config))?;
    let mut out = anstream::stdout().lock();
    if args.markdown {
        write!(out, "{}", markdown(&tools))?;
        return Ok(Exit::Done);
    }
    for tool in &tools {
        let spec = tool.spec();
        let state = state(&authority, spec);
        if app.global.json {
            let line = json!({
                "name": spec.name, "effect": spec.effect, "state": state, "description": spec.description,
                "inputSchema": spec.input_schema,
            });
            writeln!(out, "{line}")?;
        } else {
            let first = spec.description.split_inclusive(". ").next().unwrap_or_default().trim_end();
            writeln!(out, "{:<16} {:<9} {state:<9} \x1b[2m{first}\x1b[0m", spec.name, spec.effect.as_str())?;
        }
    }
    Ok(Exit::Done)
}

/// What becomes of a tool in a run: it can be called, a person is asked first, or the model does not hear of it.
fn state(authority: &Authority, spec: &ToolSpec) -> &'static str {
    let alone = Authority { answering: Answering::Nobody, ..authority.clone() };
    if offers_tool(&alone, &spec.name, spec.effect) {
        "enabled"
    } else if offers_tool(authority, &spec.name, spec.effect) {
        "asks"
    } else {
        "disabled"
    }
}

/// The page of the documentation.
fn markdown(tools: &[Arc<dyn Tool>]) -> String {
    let mut page = String::from(
        "# Tools\n\nWhat the model can call. The effect decides whether a call runs: see the table in \
         [README](../README.md#what-the-model-may-do). Paths count from the workspace; links are not followed. This page \
         is made by `alisio tools --markdown`.\n",
    );
    for tool in tools {
        let spec = tool.spec();
        page.push_str(&format!("\n## `{}`\n\nEffect: {}. {}\n", spec.name, spec.effect, spec.description));
        let required: Vec<_> = spec.input_schema["required"].as_array().into_iter().flatten().collect();
        let Some(properties) =
            spec.input_schema["properties"].as_object().filter(|fields| !fields.is_empty())
        else {
            page.push_str("\nTakes no input.\n");
            continue;
        };
        page.push_str("\n| input | type | meaning |\n| --- | --- | --- |\n");
        for (name, schema) in properties {
            let mark = if required.iter().any(|key| key.as_str() == Some(name)) { "" } else { "?" };
            let meaning = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
            page.push_str(&format!("| `{name}{mark}` | {} | {meaning} |\n", type_of(schema)));
        }
    }
    page
}

/// Says the type of an input in a word or two.
fn type_of(schema: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("any").to_owned();
    match &schema["type"] {
        Value::Array(types) => {
            types.iter().map(word).filter(|name| name != "null").collect::<Vec<_>>().join(" or ")
        }
        Value::String(name) if name == "array" => format!("list of {}", type_of(&schema["items"])),
        other => word(other),
    }
}
