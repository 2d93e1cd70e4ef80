//! How a service is reached.
//!
//! Everything a person can get wrong in a configuration is found here, before a request is made, and said in a
//! sentence. Nothing here reads a configuration file: the caller brings values.

use std::path::PathBuf;

use reqwest::Url;
use thiserror::Error;

use crate::Secret;

/// How a service is reached and spoken to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the API lies, `/v1` included where it belongs to it; a query is kept (`?api-version=…`).
    pub base_url: String,
    /// Which API is spoken.
    pub api_mode: ApiMode,
    /// The key; `None` sends none.
    pub api_key: Option<Secret>,
    /// How the key is sent.
    pub auth: Auth,
    /// How the output limit is called. Chat Completions only.
    pub token_parameter: TokenParameter,
    /// Whether usage is asked for while streaming. Chat Completions only; Responses always report it.
    pub stream_usage: bool,
    /// Further headers, as (name, value).
    pub extra_headers: Vec<(String, Secret)>,
    /// Certificates (PEM) that are trusted beside the system's. `SSL_CERT_FILE` replaces the system's.
    pub ca_bundle: Option<PathBuf>,
    /// Which proxy is used. Never for a loopback address.
    pub proxy: ProxySource,
}

impl Settings {
    /// Makes the settings that a configuration has where it says nothing but the address.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            api_mode: ApiMode::Chat,
            api_key: None,
            auth: Auth::Bearer,
            token_parameter: TokenParameter::MaxTokens,
            stream_usage: false,
            extra_headers: Vec::new(),
            ca_bundle: None,
            proxy: ProxySource::Environment,
        }
    }
}

/// The API that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiMode {
    /// `POST /chat/completions`.
    #[default]
    Chat,
    /// `POST /responses`, without storing anything at the service.
    Responses,
}

impl ApiMode {
    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Responses => "responses",
        }
    }
}

/// How the key is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer …`, where there is a key.
    #[default]
    Bearer,
    /// No `Authorization` header.
    None,
}

/// How the output limit is called in Chat Completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenParameter {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
    /// No limit is sent.
    Omit,
}

/// Where the proxy comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxySource {
    /// `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in either case.
    #[default]
    Environment,
    /// No proxy.
    Direct,
    /// This one, for everything; the text may hold a password and is never shown.
    Fixed(Secret),
}

/// Says what is wrong with the settings.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "each variant is its message")]
pub enum SetupError {
    #[error("`baseURL` is not a URL: `{text}` ({reason})")]
    NotAUrl { text: String, reason: String },
    #[error("`baseURL` must begin with `http://` or `https://`, not with `{scheme}:`")]
    Scheme { scheme: String },
    #[error("`baseURL` holds a user name or password; put the key into the variable that `apiKeyEnv` names")]
    Credentials,
    #[error("`baseURL` has a fragment (`#{fragment}`), which a server never sees")]
    Fragment { fragment: String },
    #[error("`baseURL` ends in `/{path}`, which is added by itself; leave it out")]
    Endpoint { path: &'static str },
    #[error("the API key holds characters that cannot stand in a header")]
    Key,
    #[error("the header `{name}` has a name or value that cannot be sent")]
    Header { name: String },
    #[error("the certificates in `{path}` cannot be read: {reason}")]
    CaBundle { path: String, reason: String },
    #[error("the proxy address cannot be used: {reason}")]
    Proxy { reason: String },
    #[error("the HTTP client cannot be set up: {reason}")]
    Client { reason: String },
}

/// Reads the base URL: http or https, no credentials, no final slash.
pub(crate) fn base_url(text: &str) -> Result<Url, SetupError> {
    let text = text.trim();
    let mut url = Url::parse(text).map_err(|error| {
        // A text that does not parse may still hold a password: show it only up to there.
        let shown = if text.contains('@') { "…".to_owned() } else { text.to_owned() };
        SetupError::NotAUrl { text: shown, reason: error.to_string() }
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(SetupError::Scheme { scheme: url.scheme().to_owned() });
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SetupError::Credentials);
    }
    if let Some(fragment) = url.fragment() {
        return Err(SetupError::Fragment { fragment: fragment.to_owned() });
    }
    let path = url.path().trim_end_matches('/').to_owned();
    for endpoint in ["chat/completions", "responses", "models"] {
        if path.strip_suffix(endpoint).is_some_and(|rest| rest.ends_with('/')) {
            return Err(SetupError::Endpoint { path: endpoint });
        }
    }
    url.set_path(&path);
    Ok(url)
}

/// Returns the address of one endpoint below the base.
pub(crate) fn endpoint(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// Returns the base as it stands in names: without a final slash, its query left out (it may hold what is private).
pub(crate) fn shown(base: &Url) -> String {
    let mut url = base.clone();
    url.set_query(None);
    url.as_str().trim_end_matches('/').to_owned()
}

/// Says whether the host is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<std::net::IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_takes_what_works_and_names_what_does_not() {
        let cases = [
            ("http://127.0.0.1:8080/v1", Ok("http://127.0.0.1:8080/v1")),
            (" https://API.example.com/v1/// ", Ok("https://api.example.com/v1")),
            ("https://example.com", Ok("https://example.com")),
            ("https://example.com/openai?api-version=1", Ok("https://example.com/openai")),
            ("example.com/v1", Err("`baseURL` is not a URL: `example.com/v1` (relative URL without a base)")),
            (
                "localhost:8080/v1",
                Err("`baseURL` must begin with `http://` or `https://`, not with `localhost:`"),
            ),
            ("ftp://example.com", Err("`baseURL` must begin with `http://` or `https://`, not with `ftp:`")),
            (
                "file:///etc/passwd",
                Err("`baseURL` must begin with `http://` or `https://`, not with `file:`"),
            ),
            (
                "https://me:hush@example.com/v1",
                Err(
                    "`baseURL` holds a user name or password; put the key into the variable that `apiKeyEnv` names",
                ),
            ),
            ("https://me:hush@:99999", Err("`baseURL` is not a URL: `…` (empty host)")),
            ("https://example.com/v1#x", Err("`baseURL` has a fragment (`#x`), which a server never sees")),
            (
                "https://example.com/v1/chat/completions",
                Err("`baseURL` ends in `/chat/completions`, which is added by itself; leave it out"),
            ),
            (
                "https://example.com/v1/responses/",
                Err("`baseURL` ends in `/responses`, which is added by itself; leave it out"),
            ),
        ];
        for (text, expected) in cases {
            let got = base_url(text).map(|url| shown(&url)).map_err(|error| error.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn endpoints_keep_the_query() {
        let base = base_url("https://example.com/openai/?api-version=1").unwrap();
        assert_eq!(endpoint(&base, "models").as_str(), "https://example.com/openai/models?api-version=1");
    }

    #[test]
    fn loopback_is_known_in_every_spelling() {
        for (text, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://localhost:1", true),
            ("http://models.localhost", true),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
            ("http://[::]", false),
        ] {
            assert_eq!(is_loopback(&base_url(text).unwrap()), expected, "{text}");
        }
    }
}
