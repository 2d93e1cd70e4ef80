//! What is sent to Responses. Nothing is stored at the service; its own items go back as they came.

use std::borrow::Cow;
use std::collections::HashSet;

use alisio_protocol::{AssistantMessage, Attachment, Message, ToolCall, ToolSpec, UserMessage};
use alisio_sdk::ModelRequest;
use serde::Serialize;
use serde_json::Value;

use crate::outgoing::{arguments, data_url, name};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    store: bool,
    include: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Message { role: &'static str, content: Content<'a> },
    Call { r#type: &'static str, call_id: &'a str, name: Cow<'a, str>, arguments: &'a str },
    Result { r#type: &'static str, call_id: &'a str, output: String },
    Opaque(&'a Value),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String },
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

/// Writes the body of a request.
pub(crate) fn body(request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
    let mut input = Vec::with_capacity(request.messages.len() + 1);
    for message in request.messages.iter() {
        match message {
            Message::User(message) => input.push(Entry::Message { role: "user", content: user(message) }),
            Message::Assistant(message) => assistant(message, &mut input),
            Message::Tool(message) => input.push(Entry::Result {
                r#type: "function_call_output",
                call_id: message.call_id.as_str(),
                output: message.result.text_projection(),
            }),
        }
    }
    if !request.notice.is_empty() {
        input.push(Entry::Message { role: "developer", content: Content::Text(&request.notice) });
    }
    serde_json::to_vec(&Body {
        model: &request.model,
        instructions: &request.instructions,
        input,
        tools: request.tools.iter().map(tool).collect(),
        stream: true,
        store: false,
        include: ["reasoning.encrypted_content"],
        max_output_tokens: request.max_output_tokens,
    })
}

fn user(message: &UserMessage) -> Content<'_> {
    if message.attachments.is_empty() {
        return Content::Text(&message.text);
    }
    let text = (!message.text.is_empty()).then_some(Part::InputText { text: &message.text });
    let image = |image: &Attachment| Part::InputImage { image_url: data_url(image) };
    Content::Parts(text.into_iter().chain(message.attachments.iter().map(image)).collect())
}

/// Adds an answer: the service's own items in their order, then what the message holds beyond them.
///
/// The message is what counts. A call that was taken out of it (cut off, say) leaves with the reasoning right before
/// it, since the service refuses reasoning that leads to nothing and calls that were never answered.
fn assistant<'a>(message: &'a AssistantMessage, input: &mut Vec<Entry<'a>>) {
    let mut sent: HashSet<&str> = HashSet::new();
    let mut text_sent = message.text.is_empty();
    let mut waiting: Vec<&Value> = Vec::new();
    for item in &message.items {
        let field = |key: &str| item.get(key).and_then(Value::as_str);
        match field("type") {
            Some("message") if message.text.is_empty() => waiting.clear(),
            Some("message") => {
                text_sent = true;
                input.extend(waiting.drain(..).chain([item]).map(Entry::Opaque));
            }
            Some("function_call") => {
                let found = message.calls.iter().find(|call| Some(call.id.as_str()) == field("call_id"));
                let Some(found) = found.filter(|call| sent.insert(call.id.as_str())) else {
                    waiting.clear();
                    continue;
                };
                input.extend(waiting.drain(..).map(Entry::Opaque));
                let unchanged = field("arguments") == Some(arguments(&found.arguments))
                    && field("name") == Some(name(&found.name).as_ref());
                input.push(if unchanged { Entry::Opaque(item) } else { call(found) });
            }
            _ => waiting.push(item),
        }
    }
    if !text_sent {
        input.extend(waiting.drain(..).map(Entry::Opaque));
        input.push(Entry::Message { role: "assistant", content: Content::Text(&message.text) });
    }
    for left in message.calls.iter().filter(|call| !sent.contains(call.id.as_str())) {
        input.extend(waiting.drain(..).map(Entry::Opaque));
        input.push(call(left));
    }
}

fn call(call: &ToolCall) -> Entry<'_> {
    Entry::Call {
        r#type: "function_call",
        call_id: call.id.as_str(),
        name: name(&call.name),
        arguments: arguments(&call.arguments),
    }
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    Tool {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.input_schema,
        strict: false,
    }
}
