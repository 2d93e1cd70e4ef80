//! What is sent to Chat Completions. Borrows the conversation: nothing is copied but into the body itself.

use std::borrow::Cow;

use alisio_protocol::{AssistantMessage, Attachment, Message, ToolSpec, UserMessage};
use alisio_sdk::ModelRequest;
use serde::Serialize;
use serde_json::Value;

use crate::outgoing::{arguments, data_url, name};
use crate::settings::{Settings, TokenParameter};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Entry<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// Writes the body of a request.
pub(crate) fn body(request: &ModelRequest, settings: &Settings) -> serde_json::Result<Vec<u8>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 2);
    if !request.instructions.is_empty() {
        messages.push(Entry::System { content: &request.instructions });
    }
    messages.extend(request.messages.iter().filter_map(entry));
    if !request.notice.is_empty() {
        messages.push(Entry::System { content: &request.notice });
    }
    let limit = |parameter| request.max_output_tokens.filter(|_| settings.token_parameter == parameter);
    serde_json::to_vec(&Body {
        model: &request.model,
        messages,
        tools: request.tools.iter().map(tool).collect(),
        stream: true,
        stream_options: settings.stream_usage.then_some(StreamOptions { include_usage: true }),
        max_tokens: limit(TokenParameter::MaxTokens),
        max_completion_tokens: limit(TokenParameter::MaxCompletionTokens),
    })
}

fn entry(message: &Message) -> Option<Entry<'_>> {
    match message {
        Message::User(message) => Some(Entry::User { content: user(message) }),
        Message::Assistant(message) => assistant(message),
        Message::Tool(message) => Some(Entry::Tool {
            tool_call_id: message.call_id.as_str(),
            content: message.result.text_projection(),
        }),
    }
}

fn user(message: &UserMessage) -> UserContent<'_> {
    if message.attachments.is_empty() {
        return UserContent::Text(&message.text);
    }
    let text = (!message.text.is_empty()).then_some(Part::Text { text: &message.text });
    let image = |image: &Attachment| Part::ImageUrl { image_url: ImageUrl { url: data_url(image) } };
    UserContent::Parts(text.into_iter().chain(message.attachments.iter().map(image)).collect())
}

/// An answer without text and calls is left out: services refuse it.
fn assistant(message: &AssistantMessage) -> Option<Entry<'_>> {
    let content = (!message.text.is_empty()).then_some(message.text.as_str());
    if content.is_none() && message.calls.is_empty() {
        return None;
    }
    let tool_calls = message.calls.iter().map(|call| Call {
        id: call.id.as_str(),
        r#type: "function",
        function: CalledFunction { name: name(&call.name), arguments: arguments(&call.arguments) },
    });
    Some(Entry::Assistant { content, tool_calls: tool_calls.collect() })
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    let function =
        Function { name: &tool.name, description: &tool.description, parameters: &tool.input_schema };
    Tool { r#type: "function", function }
}
