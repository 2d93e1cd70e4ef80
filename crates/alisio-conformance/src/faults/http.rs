//! Error responses, and responses that are not what was asked for.

use alisio_sdk::ProviderErrorKind as Kind;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Act, BOTH, CHAT, Fault, Plot};
use crate::wire::chat::chunk;
use crate::wire::{Answer, Api, Event, Piece, error_object, whole};

const HTML: &str = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\
    <body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx</center></body></html>\n";
const SIGN_IN: &str = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\
    <body><form action=\"/login\">Please sign in to continue.</form></body></html>\n";

fn overloaded(status: u16) -> Answer {
    Answer::error(status, "server_error", None, "The service is overloaded, try again later.")
}

fn too_many() -> Answer {
    Answer::error(429, "rate_limit_error", Some("rate_limit_exceeded"), "Rate limit reached for requests.")
}

fn too_long(status: u16, kind: &str, code: Option<&str>, message: &str) -> Answer {
    Answer::error(status, kind, code, message)
}

/// Makes the event with which a stream tells an error.
fn stream_error(api: Api, kind: &str, code: Option<&str>, message: &str) -> Event {
    match api {
        Api::Chat => Event::chat(error_object(kind, code, message)),
        Api::Responses => Event::typed(
            json!({"type": "error", "code": code.unwrap_or(kind), "message": message, "param": null}),
        ),
    }
}

fn with_type(answer: Answer, content_type: Option<&str>) -> Answer {
    match answer {
        Answer::Http { status, mut headers, body } => {
            headers.retain(|(name, _)| *name != "content-type");
            headers.extend(content_type.map(|content_type| ("content-type", content_type.to_owned())));
            Answer::Http { status, headers, body }
        }
        other => other,
    }
}

pub(super) static FAULTS: &[Fault] = &[
    Fault::new(
        "html-with-200",
        BOTH,
        "A page of HTML comes with status 200 (a sign-in page, a captive portal).",
        Act::Answer(|_, _| Answer::body(200, "text/html; charset=utf-8", SIGN_IN)),
    )
    .fails(Kind::Protocol, &["HTML"]),
    Fault::new(
        "html-with-502",
        BOTH,
        "A gateway answers 502 with a page of HTML, then the service is back.",
        Act::Answer(|_, _| Answer::body(502, "text/html", HTML)),
    )
    .again(Kind::Server),
    Fault::new(
        "html-as-event-stream",
        BOTH,
        "A page of HTML is declared as an event stream.",
        Act::Answer(|_, _| Answer::body(200, "text/event-stream", SIGN_IN)),
    )
    .fails(Kind::Protocol, &["HTML", "no event", "empty", "ended", "event stream", "without"]),
    Fault::new(
        "body-empty",
        BOTH,
        "The status is 200 and the body is empty.",
        Act::Answer(|_, _| Answer::stream(Vec::new())),
    )
    .fails(Kind::Protocol, &["empty", "ended", "without", "no event", "nothing"]),
    Fault::new(
        "body-json",
        BOTH,
        "One JSON body comes though a stream was asked for.",
        Act::Answer(|reply, given| Answer::json(200, &whole(given.api, reply))),
    ),
    Fault::new(
        "error-with-200",
        BOTH,
        "The body is an error object, the status 200.",
        Act::Answer(|_, _| {
            Answer::error(200, "invalid_request_error", Some("model_not_loaded"), "The model is not loaded.")
        }),
    )
    .fails(Kind::Rejected, &["not loaded"]),
    Fault::new(
        "error-in-stream-first",
        BOTH,
        "The first event is an error.",
        Act::Events(|events, _, given| {
            let message = "The model produced an invalid state.";
            *events = vec![stream_error(given.api, "invalid_request_error", None, message)];
        }),
    )
    .fails(Kind::Rejected, &["invalid state"]),
    Fault::new(
        "error-in-stream-midway",
        BOTH,
        "An error event comes after the first text.",
        Act::Events(|events, _, given| {
            let at = super::after_first_text(events);
            events.truncate(at);
            events.push(stream_error(given.api, "server_error", None, "The upstream went away."));
        }),
    )
    .midway(Kind::Server, &["upstream went away"]),
    Fault::new(
        "error-beside-choices",
        CHAT,
        "After the first text a chunk has an `error` beside a choice whose `finish_reason` is `error`.",
        Act::Events(|events, reply, _| {
            events.truncate(super::after_first_text(events));
            let choices = json!([{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]);
            let mut last = chunk(reply, choices);
            last["error"] = json!({"code": 502, "message": "The upstream went away."});
            events.push(Event::chat(last));
            events.push(Event::Text("[DONE]".into()));
        }),
    )
    .midway(Kind::Server, &["upstream went away"]),
    Fault::new(
        "error-as-text",
        BOTH,
        "The status is 400 and `error` is a plain string.",
        Act::Answer(|_, _| Answer::json(400, &json!({"error": "the template of the model is broken"}))),
    )
    .fails(Kind::Rejected, &["template of the model"]),
    Fault::new(
        "error-as-detail",
        BOTH,
        "The status is 422 and the reason stands in a `detail` list.",
        Act::Answer(|_, _| {
            let detail = json!([{"loc": ["body", "tools"], "msg": "extra fields not permitted", "type": "value_error"}]);
            Answer::json(422, &json!({ "detail": detail }))
        }),
    )
    .fails(Kind::Rejected, &["422", "extra fields"]),
    Fault::new(
        "error-not-json",
        BOTH,
        "The status is 400 and the body plain text.",
        Act::Answer(|_, _| Answer::body(400, "text/plain", "request body has an unknown parameter")),
    )
    .fails(Kind::Rejected, &["400", "unknown parameter"]),
    Fault::new(
        "error-echoes-key",
        BOTH,
        "The status is 401 and the message repeats the key; a client must not show it.",
        Act::Answer(|_, _| {
            let message = "Incorrect API key provided: sk-scripted-0123456789abcdef.";
            Answer::error(401, "invalid_request_error", Some("invalid_api_key"), message)
        }),
    )
    .fails(Kind::Authentication, &["401", "key"]),
    Fault::new(
        "http-400",
        BOTH,
        "The request is refused with 400.",
        Act::Answer(|_, _| {
            Answer::error(400, "invalid_request_error", None, "Unsupported parameter: 'tools'.")
        }),
    )
    .fails(Kind::Rejected, &["400", "unsupported parameter"]),
    Fault::new(
        "http-401",
        BOTH,
        "The key is refused with 401.",
        Act::Answer(|_, _| {
            Answer::error(401, "authentication_error", Some("invalid_api_key"), "No valid key was given.")
        }),
    )
    .fails(Kind::Authentication, &["401", "key"]),
    Fault::new(
        "http-402",
        BOTH,
        "The account has no credit (402).",
        Act::Answer(|_, _| Answer::error(402, "billing_error", None, "Insufficient credits.")),
    )
    .fails(Kind::Rejected, &["402", "credit"]),
    Fault::new(
        "http-403",
        BOTH,
        "The key may not use the model (403).",
        Act::Answer(|_, _| Answer::error(403, "permission_error", None, "No access to this model.")),
    )
    .fails(Kind::Authentication, &["403", "access"]),
    Fault::new(
        "http-404",
        BOTH,
        "There is no such model or path (404).",
        Act::Answer(|_, _| {
            Answer::error(404, "invalid_request_error", Some("model_not_found"), "The model does not exist.")
        }),
    )
    .fails(Kind::Rejected, &["404", "not exist", "not found"]),
    Fault::new(
        "http-413",
        BOTH,
        "The request is too large for the gateway (413, without a body).",
        Act::Answer(|_, _| Answer::Http { status: 413, headers: Vec::new(), body: Vec::new() }),
    )
    .fails(Kind::Rejected, &["413", "large"]),
    Fault::new(
        "http-422",
        BOTH,
        "The request is refused with 422.",
        Act::Answer(|_, _| Answer::error(422, "invalid_request_error", None, "Validation failed.")),
    )
    .fails(Kind::Rejected, &["422", "validation"]),
    Fault::new(
        "http-429",
        BOTH,
        "429 without `Retry-After`, then the answer.",
        Act::Answer(|_, _| too_many()),
    )
    .again(Kind::RateLimited),
    Fault::new(
        "http-429-retry-after-seconds",
        BOTH,
        "429 with `Retry-After` in seconds (`retryAfter`, 1), then the answer.",
        Act::Answer(|_, given| {
            let seconds = given.parameters.retry_after.unwrap_or(1);
            too_many().with_header("retry-after", seconds.to_string())
        }),
    )
    .again(Kind::RateLimited),
    Fault::new(
        "http-429-retry-after-date",
        BOTH,
        "429 with `Retry-After` as a date (`retryAfter` seconds ahead, 1), then the answer.",
        Act::Answer(|_, given| {
            let seconds = i64::try_from(given.parameters.retry_after.unwrap_or(1)).unwrap_or(1);
            let then = Timestamp::now().saturating_add(SignedDuration::from_secs(seconds));
            let date = then.map_or_else(
                |_| "0".to_owned(),
                |then| then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
            );
            too_many().with_header("retry-after", date)
        }),
    )
    .again(Kind::RateLimited),
    Fault::new(
        "http-429-retry-after-odd",
        BOTH,
        "429 with a `Retry-After` that is neither seconds nor a date, then the answer.",
        Act::Answer(|_, _| too_many().with_header("retry-after", "soon")),
    )
    .again(Kind::RateLimited),
    Fault::new(
        "http-429-forever",
        BOTH,
        "429 on every request; retries need a bound.",
        Act::Answer(|_, _| too_many()),
    )
    .fails(Kind::RateLimited, &["429", "rate limit"]),
    Fault::new(
        "http-429-quota",
        BOTH,
        "429 that means an empty account and will not go away.",
        Act::Answer(|_, _| {
            let message = "You exceeded your current quota, please check your plan and billing details.";
            Answer::error(429, "insufficient_quota", Some("insufficient_quota"), message)
        }),
    )
    .fails(Kind::RateLimited, &["quota", "429"]),
    Fault::new("http-500", BOTH, "500, then the answer.", Act::Answer(|_, _| overloaded(500)))
        .again(Kind::Server),
    Fault::new("http-502", BOTH, "502, then the answer.", Act::Answer(|_, _| overloaded(502)))
        .again(Kind::Server),
    Fault::new("http-503", BOTH, "503, then the answer.", Act::Answer(|_, _| overloaded(503)))
        .again(Kind::Server),
    Fault::new(
        "http-503-retry-after-seconds",
        BOTH,
        "503 with `Retry-After` in seconds (`retryAfter`, 1), then the answer.",
        Act::Answer(|_, given| {
            let seconds = given.parameters.retry_after.unwrap_or(1);
            overloaded(503).with_header("retry-after", seconds.to_string())
        }),
    )
    .again(Kind::Server),
    Fault::new(
        "http-504",
        BOTH,
        "504 without a body, then the answer.",
        Act::Answer(|_, _| Answer::Http { status: 504, headers: Vec::new(), body: Vec::new() }),
    )
    .again(Kind::Server),
    Fault::new("http-529", BOTH, "529 (overloaded), then the answer.", Act::Answer(|_, _| overloaded(529)))
        .again(Kind::Server),
    Fault::new("http-500-forever", BOTH, "500 on every request.", Act::Answer(|_, _| overloaded(500)))
        .fails(Kind::Server, &["500", "overloaded"]),
    Fault::new(
        "context-length-code",
        BOTH,
        "The conversation is too long: 400 with the code `context_length_exceeded`.",
        Act::Answer(|_, _| {
            let message = "This model's maximum context length is 8192 tokens. However, your messages resulted in \
                9001 tokens. Please reduce the length of the messages.";
            too_long(400, "invalid_request_error", Some("context_length_exceeded"), message)
        }),
    )
    .fails(Kind::ContextLength, &["context"]),
    Fault::new(
        "context-length-words",
        BOTH,
        "The conversation is too long: 400 that says so in words alone, with a number as its code.",
        Act::Answer(|_, _| {
            let body = json!({"object": "error", "type": "BadRequestError", "param": null, "code": 400, "message":
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."});
            Answer::json(400, &body)
        }),
    )
    .fails(Kind::ContextLength, &["context"]),
    Fault::new(
        "context-length-type",
        BOTH,
        "The conversation is too long: 400 with the type `exceed_context_size_error`.",
        Act::Answer(|_, _| {
            let message = "the request exceeds the available context size, try increasing it";
            Answer::json(400, &json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": message,
                "n_prompt_tokens": 9001, "n_ctx": 8192}}))
        }),
    )
    .fails(Kind::ContextLength, &["context"]),
    Fault::new(
        "context-length-prompt-too-long",
        BOTH,
        "The conversation is too long: 400 with `prompt is too long`.",
        Act::Answer(|_, _| {
            let message = "prompt is too long: 9001 tokens > 8192 maximum";
            too_long(400, "invalid_request_error", None, message)
        }),
    )
    .fails(Kind::ContextLength, &["context", "too long"]),
    Fault::new(
        "context-length-with-500",
        BOTH,
        "The conversation is too long, but the status is 500; sending it again does not help.",
        Act::Answer(|_, _| {
            too_long(500, "api_error", None, "the input length exceeds the context length")
        }),
    )
    .fails(Kind::ContextLength, &["context"]),
    Fault::new(
        "context-length-in-stream",
        BOTH,
        "The conversation is too long, and an event of the stream says so.",
        Act::Events(|events, _, given| {
            let message = "Your input exceeds the context window of this model.";
            let error = stream_error(given.api, "invalid_request_error", Some("context_length_exceeded"), message);
            events.truncate(1);
            events.push(error);
        }),
    )
    .fails(Kind::ContextLength, &["context"]),
    Fault::new(
        "content-type-wrong",
        BOTH,
        "The stream is declared as `text/plain`.",
        Act::Around(|answer| with_type(answer, Some("text/plain"))),
    )
    .plot(Plot::Call),
    Fault::new(
        "content-type-json",
        BOTH,
        "The stream is declared as `application/json`.",
        Act::Around(|answer| with_type(answer, Some("application/json"))),
    )
    .plot(Plot::Call),
    Fault::new(
        "content-type-missing",
        BOTH,
        "The stream has no `Content-Type`.",
        Act::Around(|answer| with_type(answer, None)),
    )
    .plot(Plot::Call),
    Fault::new(
        "redirect-elsewhere",
        BOTH,
        "307 to another host; the key and the conversation must not follow.",
        Act::Answer(|_, given| {
            let path = match given.api {
                Api::Chat => "chat/completions",
                Api::Responses => "responses",
            };
            let location = format!("http://localhost:{}/redirected/{path}", given.port);
            Answer::Http { status: 307, headers: vec![("location", location)], body: Vec::<Piece>::new() }
        }),
    )
    .fails(Kind::Rejected, &["redirect", "307"]),
    Fault::new(
        "json-null",
        BOTH,
        "The body is the JSON value `null`.",
        Act::Answer(|_, _| Answer::json(200, &Value::Null)),
    )
    .fails(Kind::Protocol, &[]),
];
