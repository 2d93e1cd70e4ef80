//! What went wrong, as a kind for the run loop and a sentence for people.
//!
//! Reads the many shapes in which services report errors. Texts of a service are quoted on one line, bounded and
//! without control characters, since they end up in terminals; secrets are taken out where the error leaves the crate.

use std::error::Error;
use std::time::{Duration, SystemTime};

use alisio_sdk::{ProviderError, ProviderErrorKind as Kind};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::loose::count;

/// The longest text of a service that is quoted, in characters.
const QUOTED: usize = 500;

/// Makes an error.
pub(crate) fn fault(kind: Kind, message: impl Into<String>) -> ProviderError {
    ProviderError { kind, message: message.into(), hint: String::new(), status: None, retry_after: None }
}

/// Makes an error with a hint.
pub(crate) fn hinted(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> ProviderError {
    ProviderError { hint: hint.into(), ..fault(kind, message) }
}

/// What a service says about an error.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) message: String,
    /// `code` and `type`, as far as given, in lower case.
    words: String,
    status: Option<u16>,
}

impl Told {
    /// Reads an error object, or the object or list around it. `None` where nothing looks like an error.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Array(list) => list.iter().find_map(Self::read),
            Value::String(text) => Some(Self { message: text.clone(), ..Self::default() }),
            Value::Object(object) => {
                if let Some(inner) = object.get("error").filter(|inner| !inner.is_null()) {
                    // `{"error": "text", "message": "more"}` is a habit too.
                    if !inner.is_string() || object.get("message").is_none_or(Value::is_null) {
                        return Self::read(inner);
                    }
                }
                let text = |key: &str| match object.get(key)? {
                    Value::String(text) => Some(text.clone()),
                    Value::Null => None,
                    other => Some(other.to_string()),
                };
                let message = text("message")
                    .or_else(|| text("msg"))
                    .or_else(|| match object.get("detail")? {
                        Value::Array(list) => list.iter().find_map(Self::read).map(|told| told.message),
                        Value::Object(_) => Self::read(object.get("detail")?).map(|told| told.message),
                        other => Some(other.as_str().map_or_else(|| other.to_string(), str::to_owned)),
                    })
                    .or_else(|| text("error_description"))
                    .or_else(|| text("code"))
                    .or_else(|| text("type"))
                    .or_else(|| text("error"))?;
                let words =
                    ["code", "type", "status"].into_iter().filter_map(text).collect::<Vec<_>>().join(" ");
                let status = ["code", "status", "status_code"]
                    .into_iter()
                    .filter_map(|key| object.get(key).and_then(count))
                    .find_map(|number| {
                        u16::try_from(number).ok().filter(|number| (400..600).contains(number))
                    });
                Some(Self { message, words: words.to_lowercase(), status })
            }
            _ => None,
        }
    }

    /// Returns the kind of error and a hint. `status` is that of HTTP, where it is an error.
    fn classify(&self, status: Option<u16>) -> (Kind, &'static str) {
        let text = self.message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word) || self.words.contains(word));
        if says(OUTPUT_LIMIT) {
            return (Kind::OutputTruncated, "");
        }
        if status != Some(429) && says(TOO_LONG) {
            return (
                Kind::ContextLength,
                "compact the conversation, start a new session or choose a model with a larger window",
            );
        }
        if says(&["insufficient_quota", "billing_hard_limit", "exceeded your current quota"])
            || status == Some(402)
        {
            return (Kind::Rejected, "the account at the service is out of credit or quota");
        }
        match status.or(self.status) {
            Some(401 | 403) => (Kind::Authentication, KEY_HINT),
            Some(407) => (Kind::Rejected, "the proxy wants a user name and password"),
            Some(429) => (Kind::RateLimited, ""),
            Some(404) => {
                (Kind::Rejected, "check `baseURL` (is `/v1` missing?), the model's name and `apiMode`")
            }
            Some(408 | 409 | 425) => (Kind::Server, ""),
            Some(413) => (Kind::Rejected, "the request is too large for the service"),
            Some(501 | 505) => (Kind::Rejected, ""),
            Some(500..=599) => (Kind::Server, ""),
            Some(_) => (Kind::Rejected, ""),
            None if says(&["rate_limit", "rate limit", "too many requests", "too_many_requests"]) => {
                (Kind::RateLimited, "")
            }
            None if says(&[
                "invalid_api_key",
                "authentication_error",
                "unauthorized",
                "permission_denied",
            ]) =>
            {
                (Kind::Authentication, KEY_HINT)
            }
            None if says(&[
                "server_error",
                "internal",
                "overloaded",
                "unavailable",
                "api_error",
                "timeout",
                "timed out",
            ]) =>
            {
                (Kind::Server, "")
            }
            None => (Kind::Rejected, ""),
        }
    }

    /// Makes the error of a stream that reports one.
    pub(crate) fn in_stream(&self) -> ProviderError {
        let (kind, hint) = self.classify(None);
        let message = format!("the service reported an error in its answer: {}", quoted(&self.message));
        ProviderError { status: self.status, ..hinted(kind, message, hint) }
    }
}

const KEY_HINT: &str = "check the key in the environment variable that `apiKeyEnv` names";

/// How services say that the conversation does not fit.
const TOO_LONG: &[&str] = &[
    "context_length",
    "context length",
    "context window",
    "context size",
    "context_window",
    "exceed_context",
    "maximum context",
    "max context",
    "model_max_prompt",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "input length exceeds",
    "request too large for model",
    "too many tokens",
    "too many input tokens",
    "maximum prompt length",
    "maximum number of tokens",
    "input token count",
    "exceeds the maximum number of input tokens",
    "exceeds the limit of",
    "reduce the length of",
    "string_above_max_length",
    "maximum allowed length",
    "max_prompt_tokens",
    "larger than the model",
    "tokens exceed",
    "exceeds the model's",
    "range of input length",
];

/// How services say that the output limit is reached, as an error.
const OUTPUT_LIMIT: &[&str] =
    &["output_truncated", "max_tokens or model output limit was reached", "output token limit was reached"];

/// Makes the error of an HTTP answer whose status is one.
pub(crate) fn from_status(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ProviderError {
    let name = match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None if status.as_u16() == 529 => "529 (overloaded)".to_owned(),
        None => status.as_u16().to_string(),
    };
    let retry_after = retry_after(headers, SystemTime::now());
    let with_status =
        |error: ProviderError| ProviderError { status: Some(status.as_u16()), retry_after, ..error };
    if status.is_redirection() {
        let target = headers
            .get("location")
            .and_then(|target| target.to_str().ok())
            .map_or("nowhere".to_owned(), quoted);
        return with_status(hinted(
            Kind::Rejected,
            format!(
                "the service answered {name} and points to `{target}`; a request with a conversation is not sent on"
            ),
            "set `baseURL` to the address it points to, if that is the service you mean",
        ));
    }
    let text = String::from_utf8_lossy(body);
    let told = serde_json::from_slice::<Value>(body).ok().and_then(|value| Told::read(&value));
    let (told, detail) = match told {
        Some(told) => {
            let detail = quoted(&told.message);
            (told, detail)
        }
        None if text.trim().is_empty() => (Told::default(), "without a word about it".to_owned()),
        None if text.trim_start().starts_with('<') => (Told::default(), html(&text)),
        None => (Told { message: text.trim().to_owned(), ..Told::default() }, quoted(&text)),
    };
    let (kind, hint) = told.classify(Some(status.as_u16()));
    with_status(hinted(kind, format!("the service answered {name}: {detail}"), hint))
}

/// Describes an HTML page by its title.
pub(crate) fn html(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let inside = |tag: &str| {
        let start = lower.find(&format!("<{tag}"))?;
        let start = start + lower[start..].find('>')? + 1;
        let end = start + lower[start..].find('<')?;
        Some(quoted(&page[start..end])).filter(|title| !title.is_empty())
    };
    match inside("title").or_else(|| inside("h1")) {
        Some(title) => format!("an HTML page (`{title}`)"),
        None => "an HTML page".to_owned(),
    }
}

/// Returns `text` on one line, bounded, without control characters.
pub(crate) fn quoted(text: impl AsRef<str>) -> String {
    let mut line = String::new();
    let mut n_chars = 0;
    for word in
        text.as_ref().split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
            n_chars += 1;
        }
        for c in word.chars() {
            if n_chars == QUOTED {
                line.push('…');
                return line;
            }
            line.push(c);
            n_chars += 1;
        }
    }
    line
}

/// Reads `Retry-After` (seconds or a date) and `retry-after-ms`.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |text: &str, factor: f64| {
        let number = text.parse::<f64>().ok()?;
        Duration::try_from_secs_f64(number * factor).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|text| seconds(text, 0.001)) {
        return Some(wait);
    }
    let text = text("retry-after")?;
    seconds(text, 1.0).or_else(|| {
        let date = httpdate::parse_http_date(text).ok()?;
        Some(date.duration_since(now).unwrap_or_default())
    })
}

/// Makes the error of a request that got no answer, or whose answer broke off (`begun`).
pub(crate) fn from_transport(error: reqwest::Error, host: &str, begun: bool) -> ProviderError {
    let timed_out = error.is_timeout();
    let connecting = error.is_connect();
    let error = error.without_url();
    let mut causes = Vec::new();
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    let mut io = None;
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            io = io.or(Some(error.kind()));
        }
        if let Some(rustls::Error::InvalidCertificate(reason)) = tls(error) {
            return hinted(
                Kind::Rejected,
                format!("the certificate of `{host}` is not trusted: {}", quoted(reason.to_string())),
                "if you trust the authority that signed it, name its certificate in the variable `SSL_CERT_FILE`",
            );
        }
        causes.push(error.to_string());
        cause = error.source();
    }
    let why = quoted(causes.last().cloned().unwrap_or_else(|| error.to_string()));
    if begun {
        return fault(
            Kind::Connection,
            format!("the connection to `{host}` broke in the middle of the answer: {why}"),
        );
    }
    if timed_out {
        return fault(Kind::Connection, format!("no connection to `{host}` within 10 s"));
    }
    if io == Some(std::io::ErrorKind::ConnectionRefused) {
        return hinted(
            Kind::Connection,
            format!("`{host}` refuses the connection"),
            "is the server running, and is the port in `baseURL` right?",
        );
    }
    if causes.iter().any(|cause| cause.contains("dns error") || cause.contains("lookup")) {
        return hinted(
            Kind::Connection,
            format!("the name in `{host}` cannot be resolved: {why}"),
            "check `baseURL` and the network",
        );
    }
    let verb = if connecting { "no connection to" } else { "no answer from" };
    fault(Kind::Connection, format!("{verb} `{host}`: {why}"))
}

/// Finds a TLS error, which input and output errors like to wrap, more than once at times.
fn tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut error = error;
    while let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        error = inner;
    }
    error.downcast_ref()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(status: u16, body: &str) -> (Kind, String) {
        let error = from_status(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes());
        (error.kind, error.message)
    }

    #[test]
    fn statuses_and_bodies_become_kinds_and_sentences() {
        let cases: &[(u16, &str, Kind, &str)] = &[
            (
                400,
                r#"{"error":{"message":"bad","type":"invalid_request_error"}}"#,
                Kind::Rejected,
                "the service answered 400 Bad Request: bad",
            ),
            (
                401,
                r#"{"error":"no key"}"#,
                Kind::Authentication,
                "the service answered 401 Unauthorized: no key",
            ),
            (403, "", Kind::Authentication, "the service answered 403 Forbidden: without a word about it"),
            (
                404,
                r#"{"detail":"Not Found"}"#,
                Kind::Rejected,
                "the service answered 404 Not Found: Not Found",
            ),
            (
                422,
                r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
                Kind::Rejected,
                "the service answered 422 Unprocessable Entity: field required",
            ),
            (
                429,
                r#"[{"error":{"code":429,"message":"slow\ndown","status":"RESOURCE_EXHAUSTED"}}]"#,
                Kind::RateLimited,
                "the service answered 429 Too Many Requests: slow down",
            ),
            (
                429,
                r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#,
                Kind::Rejected,
                "the service answered 429 Too Many Requests: pay",
            ),
            (500, "oops", Kind::Server, "the service answered 500 Internal Server Error: oops"),
            (
                502,
                "<html><head><title>502 Bad Gateway</title>",
                Kind::Server,
                "the service answered 502 Bad Gateway: an HTML page (`502 Bad Gateway`)",
            ),
            (503, "<p>", Kind::Server, "the service answered 503 Service Unavailable: an HTML page"),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Kind::Server,
                "the service answered 529 (overloaded): Overloaded",
            ),
            (501, "no", Kind::Rejected, "the service answered 501 Not Implemented: no"),
            (
                400,
                r#"{"object":"error","message":"\u001b[31mred"}"#,
                Kind::Rejected,
                "the service answered 400 Bad Request: [31mred",
            ),
        ];
        for (status, body, kind, message) in cases {
            assert_eq!(judged(*status, body), (*kind, (*message).to_owned()), "{status} {body}");
        }
    }

    #[test]
    fn context_length_is_known_in_many_spellings() {
        for (status, body) in [
            (
                400,
                json!({"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.", "code": "context_length_exceeded"}}),
            ),
            (400, json!({"error": {"message": "x", "code": "context_length_exceeded"}})),
            (
                400,
                json!({"error": {"message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error"}}),
            ),
            (400, json!({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}})),
            (
                413,
                json!({"error": {"message": "Request too large for model `m`: please reduce the length of the messages"}}),
            ),
            (400, json!({"message": "Input is too long for requested model."})),
            (
                400,
                json!({"error": {"message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}),
            ),
            (422, json!({"error": "input tokens exceed the configured limit"})),
            (500, json!({"error": {"message": "prompt too long; exceeded max context length by 5 tokens"}})),
            (
                400,
                json!({"object": "error", "message": "Your input exceeds the context window of this model."}),
            ),
        ] {
            assert_eq!(judged(status, &body.to_string()).0, Kind::ContextLength, "{body}");
        }
        let limited = json!({"error": {"message": "Rate limit reached: too many tokens per minute"}});
        assert_eq!(judged(429, &limited.to_string()).0, Kind::RateLimited);
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (name, value, expected) in [
            ("retry-after", "7", Some(Duration::from_secs(7))),
            ("retry-after", " 1.5 ", Some(Duration::from_millis(1500))),
            ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT", Some(Duration::from_secs(30))),
            ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(Duration::ZERO)),
            ("retry-after-ms", "250", Some(Duration::from_millis(250))),
            ("retry-after", "-3", None),
            ("retry-after", "soon", None),
            ("retry-after", "inf", None),
            ("x-other", "7", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(retry_after(&headers, now), expected, "{name}: {value}");
        }
    }

    #[test]
    fn quotes_are_bounded() {
        assert_eq!(quoted("a".repeat(2000)).chars().count(), QUOTED + 1);
        assert_eq!(quoted("  a\r\n\t b\0c "), "a b c");
    }
}
