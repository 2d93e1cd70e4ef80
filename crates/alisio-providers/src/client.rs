//! The HTTP side: one client per service, made once, and the requests that are sent with it.
//!
//! Certificates are read only where TLS can happen: a local server over `http://` starts without them. Redirects are
//! not followed, since that would hand a conversation to somebody else.

use std::sync::Arc;
use std::time::Duration;

use alisio_protocol::{Message, UserMessage};
use alisio_sdk::{BoxStream, ModelRequest, Provider, ProviderError, ProviderErrorKind as Kind, StreamEvent};
use futures_util::{StreamExt, stream};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, NoProxy, Proxy, Response, Url, redirect};
use tokio::time::timeout;

use crate::fault::{fault, from_status, from_transport, html};
use crate::models::{ModelInfo, read_models};
use crate::settings::{self, ApiMode, Auth, ProxySource, Settings, SetupError};
use crate::stream::Exchange;
use crate::{chat, responses};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long the list of models may take.
const LIST: Duration = Duration::from_secs(15);
/// How long the request of [`OpenAiCompatible::check`] may take: a local server may have to load the model.
const CHECK: Duration = Duration::from_secs(120);
/// How long the text of an error is waited for, and how much of it is read.
const ERROR_TEXT: (Duration, usize) = (Duration::from_secs(5), 64 << 10);
/// The largest list of models that is read, in bytes.
const MODELS_LIMIT: usize = 16 << 20;

/// A service that speaks Chat Completions or Responses.
#[derive(Clone)]
pub struct OpenAiCompatible {
    service: Arc<Service>,
}

pub(crate) struct Service {
    client: Client,
    settings: Settings,
    base: Url,
    endpoint: Url,
    host: String,
    id: String,
}

impl OpenAiCompatible {
    /// Sets up a service; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// Fails where a setting can't work: address, key, header, certificates, proxy.
    pub fn new(settings: Settings) -> Result<Self, SetupError> {
        let base = settings::base_url(&settings.base_url)?;
        let client = client(&settings, &base)?;
        let endpoint = settings::endpoint(&base, settings.api_mode.path());
        let host = match (base.host_str().unwrap_or_default(), base.port()) {
            (host, Some(port)) => format!("{host}:{port}"),
            (host, None) => host.to_owned(),
        };
        let id = format!("openai-compatible:{}:{}", settings.api_mode.as_str(), settings::shown(&base));
        Ok(Self { service: Arc::new(Service { client, settings, base, endpoint, host, id }) })
    }

    /// Lists the models that the service offers, in its order.
    ///
    /// # Errors
    ///
    /// Fails where the service can't be reached, refuses, or does not answer with a list.
    pub async fn list_models(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let listed = timeout(LIST, self.service.list_models()).await;
        let listed = listed.unwrap_or_else(|_| {
            let message =
                format!("`{}` did not list its models within {} s", self.service.host, LIST.as_secs());
            Err(fault(Kind::Connection, message))
        });
        listed.map_err(|error| self.service.scrub(error))
    }

    /// Sends one tiny real request, to see whether address, key and model work together.
    ///
    /// # Errors
    ///
    /// Fails with whatever a run would fail with.
    pub async fn check(&self, model: &str) -> Result<(), ProviderError> {
        let request = ModelRequest {
            model: model.to_owned(),
            instructions: String::new(),
            messages: Arc::new(vec![Message::User(UserMessage {
                text: "Reply with the word OK.".to_owned(),
                ..UserMessage::default()
            })]),
            notice: String::new(),
            tools: Arc::default(),
            max_output_tokens: Some(64),
            idle_timeout: CHECK,
        };
        let mut events = self.stream(request);
        let answered = timeout(CHECK, async {
            while let Some(event) = events.next().await {
                match event {
                    Ok(_) => {}
                    Err(error) if error.kind == Kind::OutputTruncated => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        answered.await.unwrap_or_else(|_| {
            let message =
                format!("`{}` did not answer a tiny request within {} s", self.service.host, CHECK.as_secs());
            Err(fault(Kind::Connection, message))
        })
    }
}

impl std::fmt::Debug for OpenAiCompatible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiCompatible").field("id", &self.service.id).finish_non_exhaustive()
    }
}

impl Provider for OpenAiCompatible {
    fn id(&self) -> &str {
        &self.service.id
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
        let exchange = Exchange::new(Arc::clone(&self.service), request);
        stream::unfold(exchange, |mut exchange| async move {
            let item = exchange.next().await?;
            Some((item, exchange))
        })
        .boxed()
    }
}

impl Service {
    pub(crate) fn api_mode(&self) -> ApiMode {
        self.settings.api_mode
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Takes every secret out of an error.
    pub(crate) fn scrub(&self, mut error: ProviderError) -> ProviderError {
        let headers = self.settings.extra_headers.iter().map(|(_, value)| value);
        let proxy = match &self.settings.proxy {
            ProxySource::Fixed(proxy) => Some(proxy),
            ProxySource::Environment | ProxySource::Direct => None,
        };
        for secret in self.settings.api_key.iter().chain(headers).chain(proxy) {
            secret.scrub(&mut error.message);
            secret.scrub(&mut error.hint);
        }
        error
    }

    /// Sends a request and returns the answer once its head is there and says that all is well.
    pub(crate) async fn send(&self, request: &ModelRequest) -> Result<Response, ProviderError> {
        let body = match self.settings.api_mode {
            ApiMode::Chat => chat::body(request, &self.settings),
            ApiMode::Responses => responses::body(request),
        };
        let body =
            body.map_err(|error| fault(Kind::Rejected, format!("the request cannot be written: {error}")))?;
        let post = self.client.post(self.endpoint.clone());
        let post =
            post.header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream").body(body);
        let response = post.send().await.map_err(|error| from_transport(error, &self.host, false))?;
        accepted(response).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let get =
            self.client.get(settings::endpoint(&self.base, "models")).header(ACCEPT, "application/json");
        let response = get.send().await.map_err(|error| from_transport(error, &self.host, false))?;
        let mut response = accepted(response).await?;
        let mut body = Vec::new();
        while let Some(bytes) =
            response.chunk().await.map_err(|error| from_transport(error, &self.host, true))?
        {
            body.extend_from_slice(&bytes);
            if body.len() > MODELS_LIMIT {
                return Err(fault(Kind::Protocol, "the service's list of models has no end"));
            }
        }
        if body.trim_ascii_start().starts_with(b"<") {
            let page = html(&String::from_utf8_lossy(&body));
            return Err(fault(
                Kind::Protocol,
                format!("the service answered with {page} instead of a list of models"),
            ));
        }
        read_models(&body)
    }
}

/// Lets a success through and turns any other status into an error with the service's own words.
async fn accepted(mut response: Response) -> Result<Response, ProviderError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let mut body = Vec::new();
    let read = timeout(ERROR_TEXT.0, async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes);
            if body.len() >= ERROR_TEXT.1 {
                break;
            }
        }
    });
    // What came until then is what there is to say.
    let _ = read.await;
    Err(from_status(status, response.headers(), &body))
}

fn client(settings: &Settings, base: &Url) -> Result<Client, SetupError> {
    // Another part of the program may have installed it before; either way there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("alisio/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers(settings)?)
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .referer(false);
    let mut tls = base.scheme() == "https";
    if settings::is_loopback(base) {
        builder = builder.no_proxy();
    } else {
        match &settings.proxy {
            ProxySource::Environment => tls |= environment_has_tls_proxy(),
            ProxySource::Direct => builder = builder.no_proxy(),
            ProxySource::Fixed(address) => {
                // The reason given by the parser holds no part of the address.
                let proxy = Proxy::all(address.expose())
                    .map_err(|error| SetupError::Proxy { reason: error.without_url().to_string() })?;
                tls |= address.expose().starts_with("https:");
                builder = builder.proxy(proxy.no_proxy(NoProxy::from_env()));
            }
        }
    }
    builder = match (&settings.ca_bundle, tls) {
        (_, false) => builder.tls_certs_only([]),
        (None, true) => builder,
        (Some(path), true) => {
            let wrong = |reason: String| SetupError::CaBundle { path: path.display().to_string(), reason };
            let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
            let certificates =
                Certificate::from_pem_bundle(&text).map_err(|error| wrong(error.to_string()))?;
            if certificates.is_empty() {
                return Err(wrong("there is no certificate in it (PEM is expected)".to_owned()));
            }
            builder.tls_certs_merge(certificates)
        }
    };
    builder.build().map_err(|error| SetupError::Client { reason: chain(&error) })
}

fn headers(settings: &Settings) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    if let (Auth::Bearer, Some(key)) = (settings.auth, &settings.api_key)
        && !key.is_empty()
    {
        let value = HeaderValue::try_from(format!("Bearer {}", key.expose())).map_err(|_| SetupError::Key)?;
        headers.insert(AUTHORIZATION, sensitive(value));
    }
    for (name, value) in &settings.extra_headers {
        let wrong = || SetupError::Header { name: name.clone() };
        let header = HeaderName::try_from(name).map_err(|_| wrong())?;
        let value = HeaderValue::try_from(value.expose()).map_err(|_| wrong())?;
        headers.insert(header, sensitive(value));
    }
    Ok(headers)
}

fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

/// Says whether a proxy of the environment is itself reached by TLS.
fn environment_has_tls_proxy() -> bool {
    let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    names.into_iter().filter_map(std::env::var_os).any(|value| value.to_string_lossy().starts_with("https:"))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
