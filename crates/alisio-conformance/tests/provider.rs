//! The in-process provider plays the same scenarios.

use std::sync::Arc;
use std::time::Duration;

use alisio_conformance::faults::{self, ANSWER, Expectation};
use alisio_conformance::{Api, Scenario, ScriptedProvider};
use alisio_protocol::{AssistantMessage, Message, ToolMessage, ToolResult, UserMessage};
use alisio_sdk::{ModelRequest, Provider, ProviderError, ProviderErrorKind, StopReason, StreamEvent};
use futures_util::StreamExt;

fn request(messages: &[Message]) -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        instructions: "Be brief.".into(),
        messages: Arc::new(messages.to_vec()),
        notice: String::new(),
        tools: Arc::default(),
        max_output_tokens: None,
        idle_timeout: Duration::from_millis(50),
    }
}

fn user(text: &str) -> Message {
    Message::User(UserMessage { text: text.into(), ..UserMessage::default() })
}

/// Asks once: the text that was streamed, and the end.
async fn ask(
    provider: &ScriptedProvider,
    messages: &[Message],
) -> (String, Result<(AssistantMessage, StopReason), ProviderError>) {
    let mut stream = provider.stream(request(messages));
    let mut text = String::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(StreamEvent::Text(piece)) => text.push_str(&piece),
            Ok(StreamEvent::Reasoning(_) | StreamEvent::CallProgress) => {}
            Ok(StreamEvent::Completed { message, stop, .. }) => {
                assert!(stream.next().await.is_none());
                return (text, Ok((message, stop)));
            }
            Err(error) => {
                assert!(stream.next().await.is_none());
                return (text, Err(error));
            }
        }
    }
    panic!("the stream ended without an end");
}

/// A run loop in small: answers calls, drops cut ones, asks again where the fault says that it passes.
async fn run(provider: &ScriptedProvider, mut retries: u32) -> Result<String, ProviderError> {
    let mut messages = vec![user("hello")];
    loop {
        let (_, end) = match tokio::time::timeout(Duration::from_millis(500), ask(provider, &messages)).await
        {
            Ok(answer) => answer,
            Err(_) if retries > 0 => {
                retries -= 1;
                continue;
            }
            Err(_) => panic!("silence"),
        };
        let (mut message, stop) = match end {
            Err(_) if retries > 0 => {
                retries -= 1;
                continue;
            }
            end => end?,
        };
        let whole = |text: &str| serde_json::from_str::<serde_json::Map<_, _>>(text).is_ok();
        if stop == StopReason::OutputLimit && message.calls.iter().any(|call| !whole(&call.arguments)) {
            continue;
        }
        if message.calls.is_empty() {
            if message.text.is_empty() && stop == StopReason::OutputLimit {
                continue;
            }
            return Ok(message.text);
        }
        for (index, call) in message.calls.iter_mut().enumerate() {
            call.id = alisio_protocol::CallId::new(format!("own_{}_{index}", messages.len()));
            if !whole(&call.arguments) {
                call.arguments = "{}".into();
            }
            if call.name.is_empty() {
                call.name = "unnamed".into();
            }
        }
        let results: Vec<Message> = message
            .calls
            .iter()
            .map(|call| {
                let result = ToolResult::text("notes");
                Message::Tool(ToolMessage { call_id: call.id.clone(), result })
            })
            .collect();
        messages.push(Message::Assistant(message));
        messages.extend(results);
    }
}

#[tokio::test]
async fn every_fault_ends_as_the_catalogue_says() {
    for fault in faults::all() {
        let provider = ScriptedProvider::new(fault.scenario(Api::Chat));
        let end = run(&provider, fault.retries).await;
        match fault.expectation {
            Expectation::Answer => assert_eq!(end.as_deref(), Ok(ANSWER), "{}", fault.name),
            // It is told as a stop reason and not as an error.
            Expectation::Error { .. } if fault.name == "finish-content-filter" => {
                assert_eq!(end.as_deref(), Ok(""))
            }
            Expectation::Error { .. } => {
                let error = end.expect_err(fault.name);
                assert!(fault.expectation.accepts_error(&error.message), "{}: {error}", fault.name);
            }
        }
        assert_eq!(provider.failures(), [""; 0], "{}", fault.name);
    }
}

#[tokio::test]
async fn errors_are_of_the_kind_a_client_would_see() {
    for (name, kind, status, text) in [
        ("http-429-retry-after-seconds", ProviderErrorKind::RateLimited, Some(429), ""),
        ("http-401", ProviderErrorKind::Authentication, Some(401), ""),
        ("context-length-words", ProviderErrorKind::ContextLength, Some(400), ""),
        ("drop-after-text", ProviderErrorKind::Connection, None, "The answer i"),
        ("stall-after-text", ProviderErrorKind::Idle, None, "The answer i"),
    ] {
        let fault = faults::find(name).expect("it is in the list");
        let provider = ScriptedProvider::new(fault.scenario(Api::Chat));
        let (streamed, end) = ask(&provider, &[user("hello")]).await;
        let error = end.expect_err(name);
        assert_eq!((error.kind, error.status, streamed.as_str()), (kind, status, text), "{name}");
        let waits = name.contains("retry-after").then_some(Duration::from_secs(1));
        assert_eq!(error.retry_after, waits, "{name}");
    }
}

#[tokio::test]
async fn expectations_and_balance_are_checked() {
    let text = r#"{"turns": [{"expect": {"systemContains": "brief", "userContains": "hello", "model": "m"}, "text": "ok"}]}"#;
    let provider = ScriptedProvider::new(text.parse::<Scenario>().expect("a scenario"));
    let (_, end) = ask(&provider, &[user("good morning")]).await;
    assert_eq!(end.expect_err("it expected otherwise").kind, ProviderErrorKind::Rejected);
    let lost = ToolMessage { call_id: alisio_protocol::CallId::new("x"), result: ToolResult::text("") };
    let (_, end) = ask(&provider, &[user("hello"), Message::Tool(lost)]).await;
    assert!(end.expect_err("it is not balanced").message.contains("no open call"));
    let (streamed, end) = ask(&provider, &[user("hello")]).await;
    assert_eq!((streamed.as_str(), end.is_ok()), ("ok", true));
    assert_eq!((provider.failures().len(), provider.requests().len()), (2, 3));
}

#[tokio::test]
async fn big_streams_come_in_their_deltas() {
    let text = r#"{"turns": [{"deltas": {"count": 1000, "text": "word "}}]}"#;
    let provider = ScriptedProvider::new(text.parse::<Scenario>().expect("a scenario"));
    let (streamed, end) = ask(&provider, &[user("hello")]).await;
    assert_eq!(streamed, "word ".repeat(1000));
    assert_eq!(end.expect("an answer").0.text, streamed);
}
