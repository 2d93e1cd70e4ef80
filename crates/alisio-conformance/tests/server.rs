//! The wire, seen through plain sockets and an HTTP client.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use alisio_conformance::{Api, Scenario, Server, faults};
use serde_json::{Value, json};

fn scenario(text: &str) -> Scenario {
    text.parse().expect("a valid scenario")
}

fn path(api: Api) -> &'static str {
    match api {
        Api::Chat => "/v1/chat/completions",
        Api::Responses => "/v1/responses",
    }
}

fn question(api: Api) -> Value {
    match api {
        Api::Chat => {
            json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}]})
        }
        Api::Responses => {
            json!({"model": "m", "stream": true, "input": [{"role": "user", "content": "hello"}]})
        }
    }
}

/// What a socket gave: the bytes, and the error that ended it.
struct Heard {
    bytes: Vec<u8>,
    end: Option<ErrorKind>,
}

impl Heard {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The head, and the body with its chunks told apart.
    fn chunks(&self) -> (String, Vec<Vec<u8>>) {
        let at = self.bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let head = String::from_utf8_lossy(&self.bytes[..at]).to_lowercase();
        let mut rest = &self.bytes[at..];
        if !head.contains("transfer-encoding: chunked") {
            return (head, vec![rest.to_vec()]);
        }
        let mut chunks = Vec::new();
        while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
            let size = std::str::from_utf8(&rest[..line]).expect("a size");
            let size = usize::from_str_radix(size, 16).expect("hexadecimal");
            let start = line + 2;
            if size == 0 {
                break;
            }
            chunks.push(rest[start..start + size].to_vec());
            rest = &rest[start + size + 2..];
        }
        (head, chunks)
    }

    fn body(&self) -> String {
        String::from_utf8_lossy(&self.chunks().1.concat()).into_owned()
    }
}

/// Sends a request over HTTP/1.1 and reads until the server closes or is silent for `patience`.
fn post(server: &Server, api: Api, body: &Value, patience: Duration) -> Heard {
    let mut socket = TcpStream::connect(server.address()).expect("it listens");
    socket.set_read_timeout(Some(patience)).expect("a timeout");
    let body = body.to_string();
    write!(
        socket,
        "POST {} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        path(api),
        body.len(),
    )
    .expect("it reads");
    let mut heard = Heard { bytes: Vec::new(), end: None };
    let mut buffer = vec![0; 1 << 16];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => heard.bytes.extend_from_slice(&buffer[..count]),
            Err(error) => {
                heard.end = Some(error.kind());
                break;
            }
        }
    }
    heard
}

const PATIENCE: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(300);

fn ask(server: &Server, api: Api) -> Heard {
    post(server, api, &question(api), PATIENCE)
}

/// Reads the events of a well-formed stream.
fn events(body: &str) -> Vec<Value> {
    body.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

fn chat_text(body: &str) -> String {
    events(body)
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect()
}

fn play(name: &str, api: Api) -> (Server, Heard) {
    let fault = faults::find(name).unwrap_or_else(|| panic!("no fault `{name}`"));
    let server = Server::start_blocking(fault.scenario(api)).expect("loopback");
    let heard = ask(&server, api);
    (server, heard)
}

#[test]
fn a_plain_chat_stream() {
    let server = Server::start_blocking(scenario(
        r#"{"turns": [{"text": "Hi there", "reasoning": "Hm", "calls": [{"id": "c1", "name": "t", "arguments": {"a": 1}}],
            "usage": {"input": 7, "output": 3, "cachedInput": 5}}]}"#,
    ))
    .expect("loopback");
    let mut body = question(Api::Chat);
    body["stream_options"] = json!({"include_usage": true});
    let heard = post(&server, Api::Chat, &body, PATIENCE);
    let (head, _) = heard.chunks();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    insta::assert_snapshot!(heard.body(), @r#"
    data: {"choices":[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}],"created":1700000000,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"reasoning_content":"Hm"},"finish_reason":null,"index":0}],"created":1700000000,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"content":"Hi there"},"finish_reason":null,"index":0}],"created":1700000000,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"","name":"t"},"id":"c1","index":0,"type":"function"}]},"finish_reason":null,"index":0}],"created":1700000000,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"a\":1}"},"index":0}]},"finish_reason":null,"index":0}],"created":1700000000,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{},"finish_reason":"tool_calls","index":0}],"created":1700000000,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[],"created":1700000000,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk","usage":{"completion_tokens":3,"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":5},"total_tokens":10}}

    data: [DONE]
    "#);
}

#[test]
fn a_plain_responses_stream_has_its_events_in_order() {
    let (_server, heard) = play("resp-encrypted-reasoning", Api::Responses);
    let mut kinds: Vec<String> =
        events(&heard.body()).iter().map(|event| event["type"].as_str().unwrap_or("").to_owned()).collect();
    kinds.dedup();
    insta::assert_snapshot!(kinds.join("\n"), @r"
    response.created
    response.in_progress
    response.output_item.added
    response.reasoning_summary_part.added
    response.reasoning_summary_text.delta
    response.reasoning_summary_text.done
    response.reasoning_summary_part.done
    response.output_item.done
    response.output_item.added
    response.content_part.added
    response.output_text.delta
    response.output_text.done
    response.content_part.done
    response.output_item.done
    response.output_item.added
    response.function_call_arguments.delta
    response.function_call_arguments.done
    response.output_item.done
    response.completed
    ");
}

#[test]
fn without_stream_there_is_one_body() {
    let server = Server::start_blocking(scenario(r#"{"turns": [{"text": "one"}], "then": "last"}"#))
        .expect("loopback");
    for api in Api::ALL {
        let mut body = question(api);
        body["stream"] = false.into();
        let whole: Value = serde_json::from_str(&post(&server, api, &body, PATIENCE).body()).expect("JSON");
        let text = match api {
            Api::Chat => &whole["choices"][0]["message"]["content"],
            Api::Responses => &whole["output"][0]["content"][0]["text"],
        };
        assert_eq!(text, "one");
    }
}

#[test]
fn frames_are_dressed_as_named() {
    for (name, expected) in [
        ("sse-crlf", "\r\n\r\ndata: "),
        ("sse-lone-cr", "\r\rdata: "),
        ("sse-byte-order-mark", "\u{feff}data: "),
        ("sse-no-space", "data:{"),
        ("sse-comments", ": OPENROUTER PROCESSING\n\n:\n:inside\ndata: {"),
        ("sse-data-over-lines", "data: {\ndata:   \"choices\""),
        ("sse-extra-fields", "id: 7\nretry: 100\nunknown: field\n"),
        ("call-arguments-object", r#""arguments":{"path":"notes.txt"}"#),
        ("call-without-index", r#"{"arguments":"","name":"read_file"},"id":"call_1_0","type":"function"}"#),
        ("call-index-from-one", r#""index":2"#),
        (
            "calls-in-one-delta",
            r#""index":0,"type":"function"},{"function":{"arguments":"{\"path\":\"notes.txt\"}","#,
        ),
        ("text-in-final-chunk", r#""delta":{"content":"s 42."},"finish_reason":"stop""#),
        ("fields-null", r#""refusal":null,"tool_calls":[]}"#),
        ("error-beside-choices", r#""error":{"code":502,"message":"The upstream went away."}"#),
        ("call-legacy-function", r#""finish_reason":"function_call""#),
        ("content-as-parts", r#""content":[{"text":"The answer i","type":"text"}]"#),
        ("usage-odd-types", r#""completion_tokens":"10""#),
        ("reasoning-as-reasoning", r#""reasoning":"Let me think""#),
        ("finish-unknown-word", r#""finish_reason":"eos_token""#),
        ("done-then-more", "[DONE]\n\ndata: {"),
        ("error-in-stream-midway", "The upstream went away."),
        ("html-with-200", "<!DOCTYPE html>"),
    ] {
        let (_server, heard) = play(name, Api::Chat);
        assert!(heard.body().contains(expected), "{name}: no `{expected}` in\n{}", heard.body());
        assert!(heard.end.is_none(), "{name}");
    }
}

#[test]
fn responses_events_are_bent_as_named() {
    let kinds = |heard: &Heard| -> Vec<String> {
        let name = |event: &Value| {
            let kind = event["type"].as_str().unwrap_or("").trim_start_matches("response.").to_owned();
            event["output_index"].as_u64().map_or(kind.clone(), |index| format!("{kind}@{index}"))
        };
        let mut kinds: Vec<String> = events(&heard.body()).iter().map(name).collect();
        kinds.dedup();
        kinds
    };
    for (name, expected) in [
        ("resp-failed", "created in_progress failed"),
        ("resp-only-completed", "completed"),
        (
            "resp-items-without-deltas",
            "created in_progress reasoning_summary_part.added@0 reasoning_summary_text.delta@0 \
             reasoning_summary_text.done@0 reasoning_summary_part.done@0 output_item.done@0 output_item.done@1 \
             output_item.done@2 completed",
        ),
        ("error-in-stream-first", "error"),
    ] {
        let (_server, heard) = play(name, Api::Responses);
        assert_eq!(kinds(&heard).join(" "), expected, "{name}");
    }
    let (_server, heard) = play("resp-index-out-of-order", Api::Responses);
    let kinds = kinds(&heard);
    let at = |kind: &str| kinds.iter().position(|known| known == kind);
    assert!(at("output_item.added@3") < at("output_item.added@2"), "{kinds:?}");
    assert!(at("output_item.added@2") < at("output_item.done@3"), "{kinds:?}");
    let (_server, heard) = play("resp-arguments-only-in-done", Api::Responses);
    assert_eq!(heard.body().matches("notes.txt").count(), 1, "{}", heard.body());
    let (_server, heard) = play("resp-item-ids-missing", Api::Responses);
    assert!(!heard.body().contains("item_id"));
    let (_server, heard) = play("finish-content-filter", Api::Responses);
    assert!(heard.body().contains(r#""incomplete_details":{"reason":"content_filter"}"#));
}

#[test]
fn chunks_are_cut_as_named() {
    let (_server, heard) = play("cut-every-byte", Api::Chat);
    assert!(heard.chunks().1.iter().all(|chunk| chunk.len() == 1));
    assert!(chat_text(&heard.body()).contains("größer als 東京 🙂"));
    let (_server, heard) = play("cut-utf8", Api::Responses);
    assert!(heard.chunks().1.iter().any(|chunk| std::str::from_utf8(chunk).is_err()));
    assert!(heard.body().contains("東京"));
    let (_server, heard) = play("cut-nowhere", Api::Chat);
    assert_eq!(heard.chunks().1.len(), 1);
    let (_server, heard) = play("line-huge", Api::Chat);
    assert!(heard.body().lines().any(|line| line.len() > 2 << 20));
    let (_server, heard) = play("done-missing", Api::Chat);
    assert!(!heard.body().contains("[DONE]"));
    let (_server, heard) = play("calls-interleaved", Api::Chat);
    let order: Vec<u64> = events(&heard.body())
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["tool_calls"][0]["index"].as_u64())
        .collect();
    assert_eq!(order[..4], [0, 1, 0, 1]);
}

#[test]
fn statuses_and_headers() {
    for (name, status, header) in [
        ("http-401", 401, ""),
        ("http-413", 413, ""),
        ("http-429", 429, ""),
        ("http-429-retry-after-seconds", 429, "retry-after: 1\r\n"),
        ("http-429-retry-after-date", 429, " gmt\r\n"),
        ("http-503", 503, ""),
        ("http-529", 529, ""),
        ("html-with-502", 502, "text/html"),
        ("redirect-elsewhere", 307, "location: http://localhost:"),
        ("context-length-code", 400, ""),
    ] {
        for api in Api::ALL {
            let (_server, heard) = play(name, api);
            let (head, _) = heard.chunks();
            assert!(head.starts_with(&format!("http/1.1 {status}")), "{name}: {head}");
            assert!(head.contains(header), "{name}: {head}");
        }
    }
}

#[test]
fn a_fault_that_passes_is_followed_by_the_answer() {
    for name in
        ["http-503", "close-before-headers", "reset-before-headers", "drop-before-first-delta", "not-http"]
    {
        let (server, _) = play(name, Api::Chat);
        let heard = ask(&server, Api::Chat);
        assert_eq!(chat_text(&heard.body()), faults::ANSWER, "{name}");
        assert_eq!(server.request_count(), 2);
        assert!(server.failures().is_empty());
    }
}

#[test]
fn connections_break_as_named() {
    let (_server, heard) = play("close-before-headers", Api::Chat);
    assert!(heard.bytes.is_empty() && heard.end.is_none());
    let (_server, heard) = play("reset-before-headers", Api::Chat);
    assert!(heard.bytes.is_empty());
    assert_eq!(heard.end, Some(ErrorKind::ConnectionReset));
    let (_server, heard) = play("drop-after-text", Api::Chat);
    assert!(heard.text().contains("The answer i"), "{}", heard.text());
    assert!(!heard.text().ends_with("0\r\n\r\n") && heard.end.is_none());
    let (_server, heard) = play("reset-after-text", Api::Responses);
    assert_eq!(heard.end, Some(ErrorKind::ConnectionReset));
    let (_server, heard) = play("not-http", Api::Chat);
    assert!(heard.text().starts_with("SSH-2.0"));
    let (_server, heard) = play("http1-early-hints", Api::Chat);
    assert!(heard.text().starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 "));
    assert!(heard.text().ends_with("data: [DONE]\n\n"));
    let (_server, heard) = play("http1-chunk-broken", Api::Chat);
    assert!(heard.text().ends_with("\r\nnonsense\r\n"));
}

#[test]
fn silence_lasts() {
    for (name, begins) in [
        ("stall-after-text", "HTTP/1.1 200"),
        ("silence-after-headers", "HTTP/1.1 200"),
        ("silence-before-headers", ""),
    ] {
        let fault = faults::find(name).expect("it is in the list");
        let server = Server::start_blocking(fault.scenario(Api::Chat)).expect("loopback");
        let heard = post(&server, Api::Chat, &question(Api::Chat), SHORT);
        assert!(
            matches!(heard.end, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut)),
            "{name}: {:?}",
            heard.end
        );
        assert!(heard.text().starts_with(begins), "{name}");
        assert_eq!(heard.text().is_empty(), begins.is_empty(), "{name}");
    }
}

/// Every case is asked once, so that none panics or hangs where it should not.
#[test]
fn every_case_answers_something() {
    std::thread::scope(|scope| {
        for api in Api::ALL {
            scope.spawn(move || {
                for (fault, _) in faults::cases().filter(|(_, of)| *of == api) {
                    if fault.name == "line-endless" {
                        continue;
                    }
                    let server = Server::start_blocking(fault.scenario(api)).expect("loopback");
                    let silent = ["stall", "silence", "done-without-close"]
                        .iter()
                        .any(|word| fault.name.contains(word));
                    let patience =
                        if silent && !fault.name.starts_with("keep-alive") { SHORT } else { PATIENCE };
                    let heard = post(&server, api, &question(api), patience);
                    let timed_out = matches!(heard.end, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut));
                    assert_eq!(timed_out, patience == SHORT, "{} {api:?}", fault.name);
                    assert!(server.failures().is_empty(), "{}: {:?}", fault.name, server.failures());
                }
            });
        }
    });
}

#[test]
fn turns_are_matched_so_that_clients_may_mix() {
    let server = Server::start_blocking(scenario(
        r#"{"turns": [
            {"match": {"user": "first"}, "text": "to the first"},
            {"match": {"user": "second"}, "text": "to the second", "repeat": 2},
            {"match": {"user": "first"}, "text": "again to the first"}]}"#,
    ))
    .expect("loopback");
    let say = |text: &str| {
        let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]});
        chat_text(&post(&server, Api::Chat, &body, PATIENCE).body())
    };
    assert_eq!(say("I am the second"), "to the second");
    assert_eq!(say("I am the first"), "to the first");
    assert_eq!(say("I am the second"), "to the second");
    assert_eq!(say("I am the first"), "again to the first");
    assert!(server.failures().is_empty());
    say("I am the second");
    assert_eq!(server.failures(), ["request 5: no turn of the scenario is left for it"]);
}

#[test]
fn values_are_captured_from_results_and_expectations_are_checked() {
    let text = r#"{"turns": [
        {"calls": [{"id": "c", "name": "read_file", "arguments": {"path": "a"}}], "expect": {"tools": ["read_file"], "images": 1}},
        {"captures": [{"name": "sum", "from": "tool", "after": "sha256 ", "kind": "hex"},
                      {"name": "who", "from": "user", "after": "for <", "until": ">"}],
         "expect": {"toolContains": "sha256", "lastRole": "tool"},
         "calls": [{"name": "edit_file", "arguments": {"sha256": "{{capture:sum}}", "note": ["for {{capture:who}}!"]}}]},
        {"text": "never", "expect": {"toolContains": "changed"}}]}"#;
    let server = Server::start_blocking(scenario(text)).expect("loopback");
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let user =
        json!({"role": "user", "content": [{"type": "text", "text": "change it for <A \"B\">"}, image]});
    let mut body = json!({"model": "m", "stream": true, "messages": [user],
        "tools": [{"type": "function", "function": {"name": "read_file"}}]});
    let arguments = |heard: &Heard| -> String {
        let piece = |event: &Value| {
            let call = &event["choices"][0]["delta"]["tool_calls"][0];
            call["function"]["arguments"].as_str().map(str::to_owned)
        };
        events(&heard.body()).iter().filter_map(piece).collect()
    };
    let turn = |body: &mut Value, id: &str, arguments: &str, result: &str| {
        let call = json!({"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}});
        let messages = body["messages"].as_array_mut().expect("an array");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    };
    let first = arguments(&post(&server, Api::Chat, &body, PATIENCE));
    turn(&mut body, "c", &first, "a file, sha256 00ffAB, 3 lines");
    let second = arguments(&post(&server, Api::Chat, &body, PATIENCE));
    assert_eq!(second, r#"{"note":["for A \"B\"!"],"sha256":"00ffAB"}"#);
    turn(&mut body, "d", &second, "nothing was done");
    let heard = post(&server, Api::Chat, &body, PATIENCE);
    assert!(heard.text().starts_with("HTTP/1.1 400"), "{}", heard.text());
    let failure = "request 3: turn 2 expected otherwise: `changed` is missing in the tool results, which begins `nothing was done`";
    assert_eq!(server.failures(), [failure]);
    assert!(heard.body().contains("`changed` is missing in the tool results"));
}

#[test]
fn unbalanced_conversations_are_refused() {
    let call = |arguments: &str| json!({"id": "c", "type": "function", "function": {"name": "t", "arguments": arguments}});
    let assistant =
        |arguments: &str| json!({"role": "assistant", "content": null, "tool_calls": [call(arguments)]});
    let item = json!({"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"});
    for (api, body, expected) in [
        (Api::Chat, json!({"messages": [assistant("{}")]}), "the call `c` has no result"),
        (
            Api::Chat,
            json!({"messages": [assistant("{}"), {"role": "user", "content": "x"}]}),
            "no result before",
        ),
        (
            Api::Chat,
            json!({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}),
            "no open call",
        ),
        (
            Api::Chat,
            json!({"messages": [assistant("{oops"), {"role": "tool", "tool_call_id": "c", "content": ""}]}),
            "not the text of a JSON object",
        ),
        (
            Api::Chat,
            json!({"messages": [{"role": "assistant", "content": null}]}),
            "neither content nor calls",
        ),
        (Api::Chat, json!({}), "`messages` is missing"),
        (Api::Responses, json!({"input": [item]}), "the call `c` has no result"),
        (
            Api::Responses,
            json!({"input": [{"type": "function_call_output", "call_id": "x", "output": ""}]}),
            "no open call",
        ),
    ] {
        let server = Server::start_blocking(scenario(r#"{"turns": [{"text": "x"}]}"#)).expect("loopback");
        let heard = post(&server, api, &body, PATIENCE);
        assert!(heard.text().starts_with("HTTP/1.1 400"), "{body}");
        assert!(heard.body().contains(expected), "{body}: {}", heard.body());
        assert_eq!(server.failures().len(), 1);
        let lenient = Server::start_blocking(scenario(r#"{"turns": [{"text": "x"}], "strict": false}"#))
            .expect("loopback");
        assert!(post(&lenient, api, &body, PATIENCE).text().starts_with("HTTP/1.1 200"), "{body}");
    }
}

#[test]
fn then_restart_plays_from_the_start() {
    let text = r#"{"turns": [{"text": "a"}, {"text": "b"}], "then": "restart"}"#;
    let server = Server::start_blocking(scenario(text)).expect("loopback");
    let heard: Vec<String> = (0..5).map(|_| chat_text(&ask(&server, Api::Chat).body())).collect();
    assert_eq!(heard, ["a", "b", "a", "b", "a"]);
}

#[test]
fn a_big_stream_is_whole() {
    let text = r#"{"turns": [{"deltas": {"count": 20000, "text": "word ", "perWrite": 7}}], "then": "last"}"#;
    let server = Server::start_blocking(scenario(text)).expect("loopback");
    assert_eq!(chat_text(&ask(&server, Api::Chat).body()), "word ".repeat(20000));
    let heard = ask(&server, Api::Responses);
    let deltas = events(&heard.body());
    assert_eq!(deltas.iter().filter(|event| event["type"] == "response.output_text.delta").count(), 20000);
}

#[tokio::test]
async fn models_other_paths_and_both_protocols() {
    // A second start finds the provider installed, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let text = r#"{"models": [{"id": "big", "contextWindow": 42}], "turns": [{"text": "over two"}], "then": "last"}"#;
    let server = Server::start(scenario(text)).await.expect("loopback");
    let two = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let one = reqwest::Client::builder().no_proxy().build().expect("a client");
    for (client, version) in [(&one, "HTTP/1.1"), (&two, "HTTP/2.0")] {
        let models: Value =
            client.get(format!("{}/models", server.base_url())).send().await.unwrap().json().await.unwrap();
        assert_eq!(models["data"][0]["id"], "big");
        assert_eq!(models["data"][0]["context_window"], 42);
        let lost = client.get(format!("{}/lost", server.base_url())).send().await.unwrap();
        assert_eq!(lost.status(), 404);
        let answer = client
            .post(format!("{}/chat/completions", server.base_url()))
            .header("authorization", "Bearer k")
            .json(&question(Api::Chat))
            .send()
            .await
            .unwrap();
        assert_eq!(chat_text(&answer.text().await.unwrap()), "over two");
        let requests = server.requests();
        let last = requests.last().unwrap();
        assert_eq!((last.version.as_str(), last.path.as_str()), (version, "/v1/chat/completions"));
        assert_eq!(last.header("authorization"), Some("Bearer k"));
        assert_eq!(last.body["messages"][0]["content"], "hello");
    }
    assert_eq!(server.request_count(), 6);
    let address = server.address();
    drop(server);
    // The listener goes with its task, which has to be scheduled first.
    let mut left = 100;
    while tokio::net::TcpStream::connect(address).await.is_ok() && left > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        left -= 1;
    }
    assert!(left > 0, "it still listens");
}

#[tokio::test]
async fn faults_break_http_two_as_well() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    for (name, survives) in [
        ("drop-after-text", false),
        ("reset-after-text", false),
        ("cut-every-byte", true),
        ("keep-alive-silence", true),
    ] {
        let fault = faults::find(name).expect("it is in the list");
        let server = Server::start(fault.scenario(Api::Chat)).await.expect("loopback");
        let url = format!("{}/chat/completions", server.base_url());
        let answer = client.post(url).json(&question(Api::Chat)).send().await.expect("headers");
        assert_eq!(answer.text().await.is_ok(), survives, "{name}");
    }
}
