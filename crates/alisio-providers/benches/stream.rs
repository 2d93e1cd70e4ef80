//! The path from bytes of a response to events, over a real connection on loopback, and the reading of bytes alone.
//!
//! `cargo bench -p alisio-providers`. The server runs on a thread of its own and sends what was made beforehand, so
//! that the figures are those of the client.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use alisio_protocol::{Message, UserMessage};
use alisio_providers::{ApiMode, OpenAiCompatible, Settings};
use alisio_sdk::{ModelRequest, Provider, StreamEvent};
use divan::Bencher;
use futures_util::StreamExt;

fn main() {
    divan::main();
}

/// Deltas of one answer.
const N_DELTAS: usize = 20_000;

/// An answer of [`N_DELTAS`] text deltas; `n_per_chunk` events share an HTTP chunk.
fn response(api: ApiMode, n_per_chunk: usize) -> Vec<u8> {
    let delta = |n: usize| match api {
        ApiMode::Chat => format!(
            "data: {{\"id\":\"chatcmpl-123456789\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\
             \"model\":\"scripted\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word{n} \"}},\
             \"finish_reason\":null}}]}}\n\n"
        ),
        ApiMode::Responses => format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\
             \"sequence_number\":{n},\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\
             \"delta\":\"word{n} \"}}\n\n"
        ),
    };
    let end = match api {
        ApiMode::Chat => {
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        }
        ApiMode::Responses => {
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n"
        }
    };
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let mut chunk = |text: &str| {
        bytes.extend_from_slice(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes());
    };
    let events: Vec<String> = (0..N_DELTAS).map(delta).collect();
    events.chunks(n_per_chunk).for_each(|events| chunk(&events.concat()));
    chunk(end);
    chunk("");
    bytes
}

/// Serves `response` to every request and returns the base URL.
fn serve(response: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { continue };
            let mut buffer = [0; 1 << 16];
            // A request of this benchmark fits into one read.
            while connection.read(&mut buffer).is_ok_and(|n_bytes| n_bytes > 0) {
                if connection.write_all(&response).is_err() {
                    break;
                }
            }
        }
    });
    format!("http://{address}/v1")
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "scripted".to_owned(),
        instructions: String::new(),
        messages: Arc::new(vec![Message::User(UserMessage {
            text: "go on".to_owned(),
            ..UserMessage::default()
        })]),
        notice: String::new(),
        tools: Arc::default(),
        max_output_tokens: None,
        idle_timeout: Duration::from_secs(60),
    }
}

fn whole_answer(bencher: Bencher<'_, '_>, api: ApiMode, n_per_chunk: usize) {
    let base_url = serve(response(api, n_per_chunk));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let service = OpenAiCompatible::new(Settings { api_mode: api, ..Settings::new(base_url) })
        .expect("settings are right");
    bencher.bench_local(|| {
        runtime.block_on(async {
            let mut events = service.stream(request());
            let mut n_events = 0;
            let mut n_bytes = 0;
            while let Some(event) = events.next().await {
                n_events += 1;
                if let StreamEvent::Text(text) = event.expect("the answer is whole") {
                    n_bytes += text.len();
                }
            }
            assert!(n_bytes > N_DELTAS, "{n_events} events");
            n_events
        })
    });
}

/// 20,000 deltas, one HTTP chunk each, as most servers send them.
#[divan::bench(args = [1, 50])]
fn chat(bencher: Bencher<'_, '_>, n_per_chunk: usize) {
    whole_answer(bencher, ApiMode::Chat, n_per_chunk);
}

/// The same over the Responses API.
#[divan::bench(args = [1])]
fn responses(bencher: Bencher<'_, '_>, n_per_chunk: usize) {
    whole_answer(bencher, ApiMode::Responses, n_per_chunk);
}

/// Setting up the client for a server without TLS.
#[divan::bench]
fn set_up_without_tls() -> OpenAiCompatible {
    OpenAiCompatible::new(Settings::new("http://127.0.0.1:9/v1")).expect("settings are right")
}

/// Setting it up with the system's certificates.
#[divan::bench]
fn set_up_with_tls() -> OpenAiCompatible {
    OpenAiCompatible::new(Settings::new("https://example.com/v1")).expect("settings are right")
}
