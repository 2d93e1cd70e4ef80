//! What is sent.

use std::sync::Arc;

use alisio_protocol::{
    AssistantMessage, Attachment, CallId, Effect, Message, ToolCall, ToolMessage, ToolResult, ToolSpec,
    UiBlock, UserMessage,
};
use alisio_providers::{ApiMode, Auth, OpenAiCompatible, Secret, Settings, TokenParameter};
use alisio_sdk::{ModelRequest, Provider};
use serde_json::{Value, json};

use crate::server::{Script, Seen, ask, chunked, outcome, plain, request, settings};

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: CallId::new(id), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn answer(text: &str, calls: Vec<ToolCall>, items: Vec<Value>) -> Message {
    Message::Assistant(AssistantMessage { text: text.to_owned(), calls, items, truncated: false })
}

fn result(id: &str, result: ToolResult) -> Message {
    Message::Tool(ToolMessage { call_id: CallId::new(id), result })
}

/// A conversation with a bit of everything.
fn conversation() -> ModelRequest {
    let image = Attachment { mime_type: "image/png".to_owned(), data: "iVBORw0=".to_owned() };
    let block = UiBlock::Diff { patch: "-a\n+b".to_owned(), path: "x".to_owned(), lang: None, caption: None };
    let spec = ToolSpec {
        name: "read_file".to_owned(),
        description: "Reads a file.".to_owned(),
        input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
        effect: Effect::Read,
    };
    ModelRequest {
        instructions: "Be brief.".to_owned(),
        notice: "You were cut off.".to_owned(),
        tools: Arc::new(vec![spec]),
        max_output_tokens: Some(100),
        ..request(vec![
            Message::User(UserMessage {
                text: "look".to_owned(),
                display: Some("/look".to_owned()),
                attachments: vec![image],
            }),
            answer(
                "",
                vec![call("a", "read_file", r#"{"path":"x"}"#), call("b", "odd name!", r#"{"path":"#)],
                vec![],
            ),
            result("a", ToolResult::text("text").with_block(block)),
            result("b", ToolResult::error("not JSON")),
            answer("Done.", vec![], vec![]),
            answer("", vec![], vec![]),
            Message::User(UserMessage { text: "thanks".to_owned(), ..UserMessage::default() }),
        ])
    }
}

async fn sent(settings_of: impl Fn(&str) -> Settings, request: ModelRequest) -> Seen {
    let script = Script::new(vec![chunked(&[b"data: [DONE]\n\n"])]);
    let address = script.listen().await;
    outcome(&OpenAiCompatible::new(settings_of(&address)).unwrap(), request).await;
    script.seen().remove(0)
}

#[tokio::test]
async fn chat_gets_the_conversation_in_its_form() {
    let seen = sent(|address| settings(address, ApiMode::Chat), conversation()).await;
    assert!(seen.head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{}", seen.head);
    assert_eq!(
        seen.json(),
        json!({
            "model": "scripted",
            "stream": true,
            "max_tokens": 100,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"x\"}"}},
                    {"id": "b", "type": "function", "function": {"name": "odd_name_", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "text"},
                {"role": "tool", "tool_call_id": "b", "content": "not JSON"},
                {"role": "assistant", "content": "Done."},
                {"role": "user", "content": "thanks"},
                {"role": "system", "content": "You were cut off."},
            ],
            "tools": [{"type": "function", "function": {
                "name": "read_file", "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {}, "additionalProperties": false},
            }}],
        })
    );
}

#[tokio::test]
async fn responses_get_the_conversation_in_their_form() {
    let seen = sent(|address| settings(address, ApiMode::Responses), conversation()).await;
    assert!(seen.head.starts_with("post /v1/responses http/1.1\r\n"), "{}", seen.head);
    assert_eq!(
        seen.json(),
        json!({
            "model": "scripted",
            "instructions": "Be brief.",
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 100,
            "input": [
                {"role": "user", "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0="},
                ]},
                {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": "{\"path\":\"x\"}"},
                {"type": "function_call", "call_id": "b", "name": "odd_name_", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": "text"},
                {"type": "function_call_output", "call_id": "b", "output": "not JSON"},
                {"role": "assistant", "content": "Done."},
                {"role": "user", "content": "thanks"},
                {"role": "developer", "content": "You were cut off."},
            ],
            "tools": [{
                "type": "function", "name": "read_file", "description": "Reads a file.", "strict": false,
                "parameters": {"type": "object", "properties": {}, "additionalProperties": false},
            }],
        })
    );
}

#[tokio::test]
async fn items_go_back_unchanged_as_far_as_the_message_still_holds_them() {
    let reasoning = |n: u32| json!({"type": "reasoning", "id": format!("rs_{n}"), "encrypted_content": "…", "summary": []});
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Hm.", "annotations": []}]});
    let called = |id: &str, arguments: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "f", "arguments": arguments, "status": "completed"});
    let cases = [
        (
            "whole",
            answer(
                "Hm.",
                vec![call("a", "f", "{}"), call("b", "f", "{}")],
                vec![reasoning(1), said.clone(), called("a", "{}"), reasoning(2), called("b", "{}")],
            ),
            vec![reasoning(1), said.clone(), called("a", "{}"), reasoning(2), called("b", "{}")],
        ),
        (
            "a call was dropped",
            answer(
                "Hm.",
                vec![call("a", "f", "{}")],
                vec![reasoning(1), said.clone(), called("a", "{}"), reasoning(2), called("b", "{\"x")],
            ),
            vec![reasoning(1), said.clone(), called("a", "{}")],
        ),
        (
            "arguments are no object",
            answer("", vec![call("a", "f", "[1]")], vec![reasoning(1), called("a", "[1]")]),
            vec![
                reasoning(1),
                json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}),
            ],
        ),
        ("reasoning alone", answer("", vec![], vec![reasoning(1)]), vec![]),
        (
            "text without its item",
            answer("Hm.", vec![], vec![reasoning(1)]),
            vec![reasoning(1), json!({"role": "assistant", "content": "Hm."})],
        ),
    ];
    for (name, message, expected) in cases {
        let seen = sent(|address| settings(address, ApiMode::Responses), request(vec![message])).await;
        assert_eq!(seen.json()["input"], Value::Array(expected), "{name}");
    }
}

#[tokio::test]
async fn settings_decide_what_else_is_sent() {
    let limited = || ModelRequest { max_output_tokens: Some(9), ..ask("x") };
    for (parameter, max_tokens, max_completion_tokens) in [
        (TokenParameter::MaxTokens, json!(9), Value::Null),
        (TokenParameter::MaxCompletionTokens, Value::Null, json!(9)),
        (TokenParameter::Omit, Value::Null, Value::Null),
    ] {
        let with =
            |address: &str| Settings { token_parameter: parameter, ..settings(address, ApiMode::Chat) };
        let body = sent(with, limited()).await.json();
        assert_eq!(
            (&body["max_tokens"], &body["max_completion_tokens"]),
            (&max_tokens, &max_completion_tokens)
        );
        assert_eq!(body["stream_options"], Value::Null);
    }
    let with = |address: &str| Settings { stream_usage: true, ..settings(address, ApiMode::Chat) };
    assert_eq!(sent(with, ask("x")).await.json()["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn headers_name_the_client_and_carry_the_key() {
    let version = env!("CARGO_PKG_VERSION");
    for (key, auth, expected) in [
        (Some("sk-secret\n"), Auth::Bearer, Some("authorization: bearer sk-secret")),
        (Some("sk-secret"), Auth::None, None),
        (Some(""), Auth::Bearer, None),
        (None, Auth::Bearer, None),
    ] {
        let with = |address: &str| Settings {
            api_key: key.map(Secret::new),
            auth,
            extra_headers: vec![("X-Team".to_owned(), Secret::new("blue"))],
            ..settings(address, ApiMode::Chat)
        };
        let head = sent(with, ask("x")).await.head;
        let line = head.lines().find(|line| line.starts_with("authorization"));
        assert_eq!(line, expected, "{key:?} {auth:?}");
        for line in [
            &format!("user-agent: alisio/{version}"),
            "x-team: blue",
            "accept: text/event-stream",
            "content-type: application/json",
        ] {
            assert!(head.lines().any(|other| other == line), "{line} in {head}");
        }
    }
}

#[tokio::test]
async fn a_key_is_never_shown() {
    let key = "sk-very-secret-key";
    let body = format!(r#"{{"error": {{"message": "Incorrect API key provided: {key}."}}}}"#);
    let address = Script::new(vec![plain("401 Unauthorized", "", &body)]).listen().await;
    let settings = Settings { api_key: Some(Secret::new(key)), ..settings(&address, ApiMode::Chat) };
    assert!(!format!("{settings:?}").contains(key));
    let service = OpenAiCompatible::new(settings).unwrap();
    assert!(!format!("{service:?}").contains(key));
    assert_eq!(service.id(), format!("openai-compatible:chat:http://{address}/v1"));
    let outcome = outcome(&service, ask("x")).await;
    assert_eq!(
        outcome.error().message,
        "the service answered 401 Unauthorized: Incorrect API key provided: ***."
    );
    let listed = service.list_models().await.unwrap_err();
    assert_eq!(listed.message, "the service answered 401 Unauthorized: Incorrect API key provided: ***.");
    assert_eq!(listed.hint, "check the key in the environment variable that `apiKeyEnv` names");
}
