//! What a request asks, read from either wire format or from a model request in process.
//!
//! It reads leniently (a test double should see what came) and says apart from that whether a strict service would
//! have taken the conversation.

use std::collections::BTreeSet;

use alisio_protocol::Message;
use alisio_sdk::ModelRequest;
use serde_json::Value;

use crate::scenario::Role;

/// A request, whatever its wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) tools: Vec<String>,
    pub(crate) images: usize,
    /// The body as sent.
    pub(crate) raw: String,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    /// Why a strict service would refuse it.
    pub(crate) objection: Option<String>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) role: Role,
    pub(crate) text: String,
}

impl Asked {
    /// The last text of a role.
    pub(crate) fn last(&self, role: Role) -> Option<&str> {
        self.entries.iter().rev().find(|entry| entry.role == role).map(|entry| entry.text.as_str())
    }

    /// The last message that is no system message.
    pub(crate) fn newest(&self) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.role != Role::System)
    }

    fn push(&mut self, role: Role, text: impl Into<String>) {
        self.entries.push(Entry { role, text: text.into() });
    }

    /// Reads a Chat Completions request.
    pub(crate) fn chat(body: &Value, raw: String) -> Self {
        let mut asked = Self::head(body, raw);
        asked.include_usage = body["stream_options"]["include_usage"].as_bool().unwrap_or(false);
        asked.tools = names(&body["tools"], |tool| &tool["function"]["name"]);
        let mut open: BTreeSet<String> = BTreeSet::new();
        let Some(messages) = body["messages"].as_array() else {
            asked.objection = Some("`messages` is missing or no array".into());
            return asked;
        };
        for (index, message) in messages.iter().enumerate() {
            let place = format!("messages[{index}]");
            let (text, images) = content(&message["content"]);
            asked.images += images;
            let role = match message["role"].as_str() {
                Some("system" | "developer") => Role::System,
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                Some("tool") => Role::Tool,
                _ => {
                    asked.object(format!("`{place}.role` is unknown"));
                    continue;
                }
            };
            if role == Role::Tool {
                let id = message["tool_call_id"].as_str().unwrap_or("");
                if !open.remove(id) {
                    asked.object(format!("`{place}` answers `{id}`, which is no open call"));
                }
            } else if let Some(id) = open.pop_first() {
                asked.object(format!("the call `{id}` has no result before `{place}`"));
                open.clear();
            }
            if role == Role::Assistant {
                let calls = message["tool_calls"].as_array();
                for call in calls.into_iter().flatten() {
                    asked.check_call(&place, &call["function"]["name"], &call["function"]["arguments"]);
                    if !open.insert(call["id"].as_str().unwrap_or("").to_owned()) {
                        asked.object(format!("`{place}` has two calls of one id"));
                    }
                }
                if calls.is_some_and(Vec::is_empty) {
                    asked.object(format!("`{place}.tool_calls` is empty"));
                }
                if calls.is_none() && message["content"].is_null() {
                    asked.object(format!("`{place}` has neither content nor calls"));
                }
            }
            asked.push(role, text);
        }
        if let Some(id) = open.pop_first() {
            asked.object(format!("the call `{id}` has no result"));
        }
        asked
    }

    /// Reads a Responses request.
    pub(crate) fn responses(body: &Value, raw: String) -> Self {
        let mut asked = Self::head(body, raw);
        asked.include_usage = true;
        asked.tools = names(&body["tools"], |tool| &tool["name"]);
        if let Some(instructions) = body["instructions"].as_str() {
            asked.push(Role::System, instructions);
        }
        if let Some(text) = body["input"].as_str() {
            asked.push(Role::User, text);
            return asked;
        }
        let Some(items) = body["input"].as_array() else {
            asked.objection = Some("`input` is missing or neither text nor array".into());
            return asked;
        };
        let mut open: BTreeSet<String> = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let place = format!("input[{index}]");
            let id = || item["call_id"].as_str().unwrap_or("").to_owned();
            match item["type"].as_str().unwrap_or("message") {
                "message" => {
                    let (text, images) = content(&item["content"]);
                    asked.images += images;
                    match item["role"].as_str() {
                        Some("system" | "developer") => asked.push(Role::System, text),
                        Some("user") => asked.push(Role::User, text),
                        Some("assistant") => asked.push(Role::Assistant, text),
                        _ => asked.object(format!("`{place}.role` is unknown")),
                    }
                }
                "function_call" => {
                    asked.check_call(&place, &item["name"], &item["arguments"]);
                    if !open.insert(id()) {
                        asked.object(format!("`{place}` repeats the id of an open call"));
                    }
                    asked.push(Role::Assistant, "");
                }
                "function_call_output" => {
                    if !open.remove(&id()) {
                        asked.object(format!("`{place}` answers `{}`, which is no open call", id()));
                    }
                    let (text, _) = content(&item["output"]);
                    asked.push(Role::Tool, text);
                }
                "reasoning" => {}
                other => asked.object(format!("`{place}.type` is `{other}`, which is unknown")),
            }
        }
        if let Some(id) = open.pop_first() {
            asked.object(format!("the call `{id}` has no result"));
        }
        asked
    }

    /// Reads a request that did not cross a wire. `raw` is filled only on demand, since it costs.
    pub(crate) fn in_process(request: &ModelRequest, with_raw: bool) -> Self {
        let mut asked = Self {
            model: request.model.clone(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            ..Self::default()
        };
        if !request.instructions.is_empty() {
            asked.push(Role::System, request.instructions.as_str());
        }
        let mut open: BTreeSet<String> = BTreeSet::new();
        for (index, message) in request.messages.iter().enumerate() {
            let place = format!("messages[{index}]");
            match message {
                Message::Tool(tool) => {
                    if !open.remove(tool.call_id.as_str()) {
                        let id = &tool.call_id;
                        asked.object(format!("`{place}` answers `{id}`, which is no open call"));
                    }
                    asked.push(Role::Tool, tool.result.text_projection());
                    continue;
                }
                Message::User(user) => {
                    asked.images += user.attachments.len();
                    asked.push(Role::User, user.text.as_str());
                }
                Message::Assistant(assistant) => asked.push(Role::Assistant, assistant.text.as_str()),
            }
            if let Some(id) = open.pop_first() {
                asked.object(format!("the call `{id}` has no result before `{place}`"));
                open.clear();
            }
            if let Message::Assistant(assistant) = message {
                for call in &assistant.calls {
                    asked.check_call(
                        &place,
                        &Value::from(call.name.as_str()),
                        &Value::from(call.arguments.as_str()),
                    );
                    if !open.insert(call.id.as_str().to_owned()) {
                        asked.object(format!("`{place}` has two calls of one id"));
                    }
                }
            }
        }
        if let Some(id) = open.pop_first() {
            asked.object(format!("the call `{id}` has no result"));
        }
        if !request.notice.is_empty() {
            asked.push(Role::System, request.notice.as_str());
        }
        if with_raw {
            asked.raw = serde_json::to_string(request.messages.as_ref()).unwrap_or_default();
        }
        asked
    }

    fn head(body: &Value, raw: String) -> Self {
        Self {
            model: body["model"].as_str().unwrap_or("").to_owned(),
            stream: body["stream"].as_bool().unwrap_or(false),
            raw,
            ..Self::default()
        }
    }

    fn check_call(&mut self, place: &str, name: &Value, arguments: &Value) {
        if name.as_str().is_none_or(str::is_empty) {
            self.object(format!("`{place}` has a call without a name"));
        }
        let object = arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if !object.is_some_and(|value| value.is_object()) {
            self.object(format!("`{place}` has a call whose arguments are not the text of a JSON object"));
        }
    }

    /// Keeps the first objection.
    fn object(&mut self, why: String) {
        self.objection.get_or_insert(why);
    }
}

fn names<'a>(tools: &'a Value, name: impl Fn(&'a Value) -> &'a Value) -> Vec<String> {
    tools.as_array().into_iter().flatten().filter_map(|tool| name(tool).as_str().map(str::to_owned)).collect()
}

/// Returns the text of a content value, be it a string, null or a list of parts, and how many images it holds.
fn content(value: &Value) -> (String, usize) {
    match value {
        Value::String(text) => (text.clone(), 0),
        Value::Array(parts) => {
            let mut text = String::new();
            let mut images = 0;
            for part in parts {
                match part["type"].as_str() {
                    Some("image_url" | "input_image") => images += 1,
                    _ => text.push_str(part["text"].as_str().unwrap_or("")),
                }
            }
            (text, images)
        }
        _ => (String::new(), 0),
    }
}
