//! Every fault of the conformance server, over both APIs, with the smallest run loop that a client needs.

use std::sync::Arc;
use std::time::Duration;

use alisio_conformance::faults::{self, Expectation, Fault};
use alisio_conformance::{Api, Server};
use alisio_protocol::{Effect, Message, ToolMessage, ToolResult, ToolSpec, UserMessage};
use alisio_providers::{ApiMode, OpenAiCompatible, Secret, Settings};
use alisio_sdk::{ModelRequest, Provider, ProviderErrorKind as Kind, StopReason, StreamEvent};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

const KEY: &str = "sk-conformance-secret";

/// How long silence is allowed: shortly where it is the fault, else for ever as far as a busy machine is concerned.
fn patience(fault: &Fault) -> Duration {
    let is_silent = fault.name.starts_with("silence") || fault.name.starts_with("stall");
    if is_silent { Duration::from_millis(400) } else { Duration::from_secs(25) }
}

/// Plays one case to its end and returns the final text or the sentence of the error.
async fn play(
    service: &OpenAiCompatible,
    retries: u32,
    patience: Duration,
) -> Result<String, (Kind, String)> {
    let mut messages = vec![Message::User(UserMessage {
        text: "What is in the notes?".to_owned(),
        ..UserMessage::default()
    })];
    let mut n_retries = 0;
    for _ in 0..8 {
        let request = ModelRequest {
            model: "scripted".to_owned(),
            instructions: "Answer.".to_owned(),
            messages: Arc::new(messages.clone()),
            notice: String::new(),
            tools: Arc::new(vec![ToolSpec {
                name: faults::TOOL.to_owned(),
                description: "Reads a file.".to_owned(),
                input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
                effect: Effect::Read,
            }]),
            max_output_tokens: Some(1000),
            idle_timeout: patience,
        };
        let mut events = service.stream(request);
        let (mut shown, mut begun) = (String::new(), false);
        let ended = loop {
            let next = if begun { Ok(events.next().await) } else { timeout(patience, events.next()).await };
            match next {
                Err(_) => break Err((true, Kind::Idle, "nothing came".to_owned())),
                Ok(None) => panic!("the stream ended without a word"),
                Ok(Some(Ok(StreamEvent::Completed { message, stop, .. }))) => break Ok((message, stop)),
                Ok(Some(Ok(event))) => {
                    begun = true;
                    if let StreamEvent::Text(text) = event {
                        shown.push_str(&text);
                    }
                }
                Ok(Some(Err(error))) => {
                    assert!(!format!("{error:?}").contains(KEY), "the key is shown: {error:?}");
                    break Err((!begun && error.kind.retry_reason().is_some(), error.kind, error.message));
                }
            }
        };
        match ended {
            Err((true, _, _)) if n_retries < retries => n_retries += 1,
            Err((_, kind, message)) => return Err((kind, message)),
            Ok((message, StopReason::ContentFilter)) if message.text.is_empty() => {
                return Err((Kind::Rejected, "the service withheld the answer (content filter)".to_owned()));
            }
            Ok((mut message, stop)) => {
                assert_eq!(shown, message.text, "what was shown is what was said");
                let is_whole = |arguments: &str| serde_json::from_str::<Value>(arguments).is_ok();
                if stop == StopReason::OutputLimit {
                    message.calls.retain(|call| is_whole(&call.arguments));
                }
                let cut = stop == StopReason::OutputLimit && message.calls.is_empty();
                if message.calls.is_empty() && !cut {
                    return Ok(message.text);
                }
                if cut && message.text == faults::ANSWER {
                    return Ok(message.text);
                }
                let results: Vec<Message> = message
                    .calls
                    .iter()
                    .map(|call| {
                        let good = serde_json::from_str(&call.arguments)
                            .is_ok_and(|value: Value| value["path"] == faults::FILE);
                        let result = if good && call.name == faults::TOOL {
                            ToolResult::text("42")
                        } else {
                            ToolResult::error("no such call")
                        };
                        Message::Tool(ToolMessage { call_id: call.id.clone(), result })
                    })
                    .collect();
                if !message.text.is_empty() || !message.calls.is_empty() {
                    messages.push(Message::Assistant(message));
                }
                messages.extend(results);
            }
        }
    }
    panic!("no end in sight");
}

async fn judge(fault: &Fault, api: Api) -> Result<(), String> {
    let server = Server::start(fault.scenario(api)).await.map_err(|error| error.to_string())?;
    let api_mode = match api {
        Api::Chat => ApiMode::Chat,
        Api::Responses => ApiMode::Responses,
    };
    let service = OpenAiCompatible::new(Settings {
        api_mode,
        api_key: Some(Secret::new(KEY)),
        stream_usage: true,
        ..Settings::new(server.base_url())
    })
    .map_err(|error| error.to_string())?;
    let played = timeout(Duration::from_secs(30), play(&service, fault.retries, patience(fault)))
        .await
        .map_err(|_| "it hangs".to_owned())?;
    let failures = server.failures();
    if !failures.is_empty() {
        return Err(format!("the server complains: {failures:?} ({played:?})"));
    }
    match (&fault.expectation, played) {
        (Expectation::Answer, Ok(text)) if text == faults::ANSWER => Ok(()),
        (Expectation::Error { .. }, Err((_, sentence))) if fault.expectation.accepts_error(&sentence) => {
            Ok(())
        }
        (expectation, played) => Err(format!("expected {expectation:?}, got {played:?}")),
    }
}

#[tokio::test]
async fn every_fault_is_survived_or_named() {
    let cases: Vec<(&Fault, Api)> = faults::cases().collect();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let wrong: Vec<String> = futures_util::stream::iter(cases)
        .map(|(fault, api)| async move {
            let judged = tokio::spawn(judge(fault, api)).await.unwrap_or_else(|error| Err(error.to_string()));
            judged.err().map(|why| format!("{} ({}): {why}", fault.name, api.as_str()))
        })
        .buffer_unordered(16)
        .filter_map(std::future::ready)
        .collect()
        .await;
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}
