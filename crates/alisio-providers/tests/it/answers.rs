//! What comes back, and what it is taken for.

use std::time::Duration;

use alisio_protocol::{AssistantMessage, CallId, Message, ToolCall, ToolMessage, ToolResult, Usage};
use alisio_providers::{ApiMode, OpenAiCompatible};
use alisio_sdk::{ModelRequest, ProviderErrorKind as Kind, StopReason};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::{
    Outcome, Script, Step, answered, ask, begun, chunked, outcome, plain, request, settings,
};

/// Writes events as a server does.
fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn chunk(delta: Value, finish: Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn text(text: &str) -> Value {
    chunk(json!({"content": text}), Value::Null)
}

fn finish(word: &str) -> Value {
    chunk(json!({}), json!(word))
}

async fn chat(body: &str) -> Outcome {
    answered(ApiMode::Chat, chunked(&[body.as_bytes()])).await
}

async fn responses(body: &str) -> Outcome {
    answered(ApiMode::Responses, chunked(&[body.as_bytes()])).await
}

#[tokio::test]
async fn a_plain_answer_comes_through_and_what_arrives_together_is_joined() {
    let body = events(&[
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        chunk(json!({"reasoning_content": "Hm"}), Value::Null),
        chunk(json!({"reasoning_content": "m."}), Value::Null),
        text("Hel"),
        text("lo"),
        finish("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}}),
    ]) + "data: [DONE]\n\n";
    let outcome = chat(&body).await;
    assert_eq!((outcome.text.as_str(), outcome.reasoning.as_str(), outcome.n_events), ("Hello", "Hmm.", 3));
    let message = AssistantMessage { text: "Hello".to_owned(), ..AssistantMessage::default() };
    let usage = Usage { input: 9, output: 2, cached_input: Some(4) };
    assert_eq!(outcome.completed, Some((message, Some(usage), StopReason::Done)));
}

#[tokio::test]
async fn odd_chat_streams_are_understood() {
    let call = json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]);
    let cases: Vec<(&str, String, &str, Vec<&str>, StopReason)> = vec![
        ("no [DONE]", events(&[text("x"), finish("stop")]), "x", vec![], StopReason::Done),
        ("no finish reason", events(&[text("x")]) + "data: [DONE]\n\n", "x", vec![], StopReason::Done),
        ("no blank lines", events(&[text("x"), text("y"), finish("stop")]).replace("\n\n", "\n"), "xy", vec![], StopReason::Done),
        ("parts", events(&[chunk(json!({"content": [{"type": "text", "text": "x"}]}), json!("stop"))]), "x", vec![], StopReason::Done),
        ("refusal", events(&[chunk(json!({"refusal": "No."}), json!("stop"))]), "No.", vec![], StopReason::Done),
        ("null everywhere", events(&[chunk(json!({"content": null, "tool_calls": null, "function_call": null, "reasoning": null}), Value::Null), text("x"), finish("stop")]), "x", vec![], StopReason::Done),
        ("stop with calls", events(&[chunk(json!({"tool_calls": call}), json!("stop"))]), "", vec!["f {}"], StopReason::Done),
        ("calls as an object", events(&[chunk(json!({"tool_calls": call[0]}), json!("stop"))]), "", vec!["f {}"], StopReason::Done),
        ("calls without function", events(&[chunk(json!({"tool_calls": [{"name": "f", "arguments": {"a": 1}}]}), json!("tool_calls"))]), "", vec!["f {\"a\":1}"], StopReason::Done),
        ("tool_calls without any", events(&[text("x"), finish("tool_calls")]), "x", vec![], StopReason::Done),
        ("cut text", events(&[text("x"), finish("length")]), "x", vec![], StopReason::OutputLimit),
        ("cut arguments", events(&[chunk(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x"}}]}), Value::Null), finish("length")]), "", vec!["f {\"x"], StopReason::OutputLimit),
        ("filter", events(&[text("x"), finish("content_filter")]), "x", vec![], StopReason::ContentFilter),
        ("legacy call", events(&[chunk(json!({"function_call": {"name": "f", "arguments": ""}}), Value::Null), chunk(json!({"function_call": {"arguments": "{}"}}), json!("function_call"))]), "", vec!["f {}"], StopReason::Done),
        ("half a surrogate pair", "data: {\"choices\":[{\"delta\":{\"content\":\"x\\ud83d\"},\"finish_reason\":\"stop\"}]}\n\n".to_owned(), "x\u{fffd}", vec![], StopReason::Done),
        ("a field twice", "data: {\"choices\":[{\"delta\":{\"content\":\"\",\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n".to_owned(), "x", vec![], StopReason::Done),
        ("whole JSON", json!({"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "x", "tool_calls": call}, "finish_reason": "tool_calls"}]}).to_string(), "x", vec!["f {}"], StopReason::Done),
        ("whole JSON, pretty", serde_json::to_string_pretty(&json!({"choices": [{"message": {"content": "x"}}]})).unwrap(), "x", vec![], StopReason::Done),
        ("a JSON line each", format!("{}\n{}\n", text("x"), finish("stop")), "x", vec![], StopReason::Done),
        ("message after deltas", events(&[text("x"), json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]})]), "x", vec![], StopReason::Done),
    ];
    for (name, body, text, calls, stop) in cases {
        let outcome = chat(&body).await;
        assert_eq!(outcome.message().text, text, "{name}");
        assert_eq!(outcome.text, text, "{name}: as shown");
        assert_eq!(outcome.calls(), calls, "{name}");
        assert_eq!(outcome.completed.as_ref().unwrap().2, stop, "{name}");
        assert_eq!(outcome.message().truncated, stop == StopReason::OutputLimit, "{name}");
    }
}

#[tokio::test]
async fn faults_are_named() {
    let cases: Vec<(&str, Vec<Step>, Kind, &str)> = vec![
        ("nothing", chunked(&[]), Kind::Protocol, "the service answered 200 and sent nothing"),
        ("blank", chunked(&[b"\n\n \n"]), Kind::Protocol, "the service answered 200 and sent nothing"),
        (
            "only [DONE]",
            chunked(&[b"data: [DONE]\n\n"]),
            Kind::Protocol,
            "the service ended its answer before there was anything in it (no `choices`)",
        ),
        (
            "comments only",
            chunked(&[b": hi\n\n"]),
            Kind::Protocol,
            "the service answered 200 with text that is no event stream: `: hi`",
        ),
        (
            "plain text",
            chunked(&[b"upstream timed out"]),
            Kind::Protocol,
            "the service answered 200 with text that is no event stream: `upstream timed out`",
        ),
        (
            "HTML",
            plain(
                "200 OK",
                "content-type: text/html\r\n",
                "<!doctype html><html><head><title>Sign in</title>",
            ),
            Kind::Protocol,
            "the service answered 200 with an HTML page (`Sign in`) instead of a stream",
        ),
        (
            "other JSON",
            chunked(&[b"{\"ok\": true}"]),
            Kind::Protocol,
            "the service answered 200 with JSON that is no answer of the Chat Completions API: `{\"ok\": true}`",
        ),
        (
            "cut JSON",
            chunked(&[b"{\"choices\": ["]),
            Kind::Protocol,
            "the service answered 200 with JSON that is broken (EOF while parsing a list at line 1 column 13): `{\"choices\": [`",
        ),
        (
            "error with 200",
            chunked(&[b"{\"error\": {\"message\": \"no such model\", \"code\": \"model_not_found\"}}"]),
            Kind::Rejected,
            "the service reported an error in its answer: no such model",
        ),
        (
            "error in the stream",
            chunked(&[events(&[
                text("x"),
                json!({"error": {"message": "overloaded", "type": "overloaded_error"}}),
            ])
            .as_bytes()]),
            Kind::Server,
            "the service reported an error in its answer: overloaded",
        ),
        (
            "error event",
            chunked(&[b"event: error\ndata: {\"message\": \"slow down\", \"code\": 429}\n\n"]),
            Kind::RateLimited,
            "the service reported an error in its answer: slow down",
        ),
        (
            "error event with text",
            chunked(&[b"event: error\ndata: went wrong\n\n"]),
            Kind::Rejected,
            "the service reported an error in its answer: went wrong",
        ),
        (
            "context length in the stream",
            chunked(&[events(&[json!({"error": "prompt is too long: 9 tokens > 8 maximum"})]).as_bytes()]),
            Kind::ContextLength,
            "the service reported an error in its answer: prompt is too long: 9 tokens > 8 maximum",
        ),
        (
            "no end after text",
            chunked(&[events(&[text("x")]).as_bytes()]),
            Kind::Protocol,
            "the service ended the stream in the middle of the text, without a finish reason and without `[DONE]`",
        ),
        (
            "cut inside an event",
            chunked(&[events(&[text("x")]).as_bytes(), b"data: {\"choices\": [{\"del"]),
            Kind::Protocol,
            "the service ended the stream in the middle of the text, without a finish reason and without `[DONE]`",
        ),
        (
            "not JSON",
            chunked(&[b"data: oops\n\n"]),
            Kind::Protocol,
            "the service sent an event that is not JSON (expected value at line 1 column 1): `oops`",
        ),
        (
            "finish reason error",
            chunked(&[events(&[text("x"), finish("error")]).as_bytes()]),
            Kind::Server,
            "the service gave up in the middle of the answer (`error`)",
        ),
    ];
    for (name, steps, kind, message) in cases {
        let outcome = answered(ApiMode::Chat, steps).await;
        assert_eq!((outcome.error().kind, outcome.error().message.as_str()), (kind, message), "{name}");
    }
}

#[tokio::test]
async fn a_broken_connection_is_told_from_a_stream_without_end() {
    let half = events(&[text("x")]);
    for (name, close) in [("closed", Step::Close), ("garbage", Step::Send(b"zz\r\n".to_vec()))] {
        let mut steps = begun(&[half.as_bytes()]);
        steps.push(close);
        let outcome = answered(ApiMode::Chat, steps).await;
        assert_eq!(outcome.text, "x", "{name}");
        let error = outcome.error();
        assert_eq!(error.kind, Kind::Connection, "{name}: {error}");
        assert!(error.message.contains("broke in the middle of the answer"), "{name}: {error}");
    }
    let whole = events(&[text("x"), finish("stop")]);
    let mut steps = begun(&[whole.as_bytes()]);
    steps.push(Step::Close);
    assert_eq!(answered(ApiMode::Chat, steps).await.message().text, "x");
}

#[tokio::test]
async fn silence_ends_a_stream_that_has_begun() {
    let half = events(&[text("x")]);
    let comments = vec![Step::Pause(Duration::from_millis(60)), Step::Send(b"5\r\n: hi\n\r\n".to_vec())];
    for (name, rest) in [("still", vec![Step::Hold]), ("comments", vec![comments; 20].concat())] {
        let mut steps = begun(&[half.as_bytes()]);
        steps.extend(rest);
        let address = Script::new(vec![steps]).listen().await;
        let service = OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap();
        let outcome =
            outcome(&service, ModelRequest { idle_timeout: Duration::from_millis(300), ..ask("x") }).await;
        assert_eq!(outcome.text, "x");
        assert_eq!(outcome.error().kind, Kind::Idle, "{name}");
        assert_eq!(
            outcome.error().message,
            format!("the stream from `{address}` stalled: nothing came for 0.3 s")
        );
    }
    // What says that it is finished needs no more.
    let mut steps = begun(&[events(&[text("x"), finish("stop")]).as_bytes()]);
    steps.push(Step::Hold);
    let address = Script::new(vec![steps]).listen().await;
    let service = OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap();
    let outcome =
        outcome(&service, ModelRequest { idle_timeout: Duration::from_millis(100), ..ask("x") }).await;
    assert_eq!(outcome.message().text, "x");
}

#[tokio::test]
async fn comments_keep_a_slow_start_alive() {
    let pause = [Step::Pause(Duration::from_millis(80)), Step::Send(b"5\r\n: hi\n\r\n".to_vec())];
    let mut steps = begun(&[b": hi\n\n"]);
    steps.extend(vec![pause; 4].concat());
    let rest = events(&[text("x"), finish("stop")]);
    steps.push(Step::Send(format!("{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len()).into_bytes()));
    let address = Script::new(vec![steps]).listen().await;
    let service = OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap();
    let outcome =
        outcome(&service, ModelRequest { idle_timeout: Duration::from_millis(50), ..ask("x") }).await;
    assert_eq!(outcome.message().text, "x");
}

#[tokio::test]
async fn ids_are_unique_in_the_whole_conversation() {
    let before = vec![
        Message::Assistant(AssistantMessage {
            calls: vec![ToolCall {
                id: CallId::new("call_1"),
                name: "f".to_owned(),
                arguments: "{}".to_owned(),
            }],
            ..AssistantMessage::default()
        }),
        Message::Tool(ToolMessage { call_id: CallId::new("call_1"), result: ToolResult::text("x") }),
    ];
    let calls = json!([
        {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": "{}"}},
        {"index": 1, "function": {"name": "f", "arguments": "{}"}},
        {"index": 2, "id": "other", "function": {"name": "f", "arguments": "{}"}},
    ]);
    let body = events(&[chunk(json!({"tool_calls": calls}), json!("tool_calls"))]);
    let address = Script::new(vec![chunked(&[body.as_bytes()])]).listen().await;
    let outcome =
        outcome(&OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap(), request(before)).await;
    let ids: Vec<&str> = outcome.message().calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_1_1", "call_2", "other"]);
}

fn responses_events() -> Vec<Value> {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "abc", "summary": []});
    let message = json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Grüße 🦀"}]});
    let call =
        json!({"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": "{\"x\":1}"});
    vec![
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Grüße "}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "🦀"}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": message}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call", "call_id": "a", "name": "f", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"x\""}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": ":1}"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": call}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [reasoning, message, call],
            "usage": {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 3}}}}),
    ]
}

#[tokio::test]
async fn responses_come_through_with_their_items() {
    let outcome = responses(&events(&responses_events())).await;
    assert_eq!((outcome.text.as_str(), outcome.reasoning.as_str()), ("Grüße 🦀", "Hm."));
    let (message, usage, stop) = outcome.completed.as_ref().unwrap();
    assert_eq!(message.text, "Grüße 🦀");
    assert_eq!(outcome.calls(), ["f {\"x\":1}"]);
    assert_eq!(message.calls[0].id.as_str(), "a");
    assert_eq!(message.items[0]["encrypted_content"], "abc");
    assert_eq!(message.items.len(), 3);
    assert_eq!(*usage, Some(Usage { input: 9, output: 2, cached_input: Some(3) }));
    assert_eq!(*stop, StopReason::Done);
}

#[tokio::test]
async fn odd_responses_are_understood_or_named() {
    let whole = responses_events();
    let (last, stream) = whole.split_last().unwrap();
    let without_output =
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
    let only_deltas: Vec<Value> =
        stream.iter().filter(|event| event["type"] != "response.output_item.done").cloned().collect();
    for (name, body) in [
        ("no output at the end", events(stream) + &events(std::slice::from_ref(&without_output))),
        ("deltas alone", events(&only_deltas) + &events(&[without_output])),
        ("the end alone", events(std::slice::from_ref(last))),
        ("whole JSON", {
            let mut response = last["response"].clone();
            response["object"] = json!("response");
            response.to_string()
        }),
        (
            "types as event names",
            whole
                .iter()
                .map(|event| {
                    let mut data = event.clone();
                    data.as_object_mut().unwrap().remove("type");
                    format!("event: {}\ndata: {data}\n\n", event["type"].as_str().unwrap())
                })
                .collect(),
        ),
    ] {
        let outcome = responses(&body).await;
        assert_eq!(outcome.message().text, "Grüße 🦀", "{name}");
        assert_eq!(outcome.text, "Grüße 🦀", "{name}: as shown");
        assert_eq!(outcome.calls(), ["f {\"x\":1}"], "{name}");
    }
    let cut = json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}});
    let outcome = responses(&(events(&stream[..4]) + &events(&[cut]))).await;
    assert_eq!(outcome.completed.as_ref().unwrap().2, StopReason::OutputLimit);
    assert_eq!((outcome.message().text.as_str(), outcome.message().truncated), ("Grüße ", true));

    for (name, body, kind, message) in [
        (
            "no end",
            events(stream),
            Kind::Protocol,
            "the service ended the stream in the middle of a tool call, without `response.completed`",
        ),
        (
            "failed",
            events(&[
                json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "sorry"}}}),
            ]),
            Kind::Server,
            "the service reported an error in its answer: sorry",
        ),
        (
            "error event",
            events(&[json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"})]),
            Kind::RateLimited,
            "the service reported an error in its answer: slow down",
        ),
        (
            "chat instead",
            events(&[text("x"), finish("stop")]),
            Kind::Protocol,
            "the service ended the stream before anything came, without `response.completed`",
        ),
    ] {
        let outcome = responses(&body).await;
        assert_eq!((outcome.error().kind, outcome.error().message.as_str()), (kind, message), "{name}");
    }
}

#[tokio::test]
async fn a_line_without_end_is_refused() {
    let mut steps = begun(&[b"data: {\"x\": \""]);
    let block = [b"100000\r\n".to_vec(), vec![b'x'; 1 << 20], b"\r\n".to_vec()].concat();
    steps.extend(vec![Step::Send(block); 34]);
    let outcome = answered(ApiMode::Chat, steps).await;
    assert_eq!(outcome.error().message, "the service sent a line longer than 32 MiB");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_stream_cut_anywhere_gives_the_same_answer(
        responses in any::<bool>(),
        line_end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let (api, body) = if responses {
            (ApiMode::Responses, events(&responses_events()))
        } else {
            let calls = json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}]);
            let more = json!([{"index": 0, "function": {"arguments": "\"ü\"}"}}]);
            (ApiMode::Chat, events(&[
                chunk(json!({"reasoning": "Hm – 東京"}), Value::Null), text("Grüße "), text("🦀"),
                chunk(json!({"tool_calls": calls}), Value::Null), chunk(json!({"tool_calls": more}), Value::Null),
                finish("tool_calls"), json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
            ]) + "data: [DONE]\n\n")
        };
        let body = body.replace('\n', line_end);
        let bytes = body.as_bytes();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (cut, whole) = runtime.block_on(async {
            (answered(api, chunked(&pieces)).await, answered(api, chunked(&[bytes])).await)
        });
        prop_assert!(whole.completed.is_some());
        prop_assert_eq!(
            (cut.text, cut.reasoning, cut.completed, cut.error),
            (whole.text, whole.reasoning, whole.completed, whole.error)
        );
    }
}
