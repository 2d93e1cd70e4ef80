//! Connections: TLS, HTTP/2, proxies, redirects, and the sentences for those that fail.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alisio_providers::{ApiMode, ModelInfo, OpenAiCompatible, ProxySource, Secret, Settings, SetupError};
use alisio_sdk::{ProviderErrorKind as Kind, StreamEvent};
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::server::{Script, Step, ask, chunked, outcome, plain, settings};

const ANSWER: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn answer() -> Vec<Step> {
    chunked(&[ANSWER.as_bytes()])
}

/// An authority made for one test and a server certificate of its for `localhost` and `127.0.0.1`.
fn authority() -> (String, Arc<rustls::ServerConfig>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config =
        config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (authority.pem(), Arc::new(config))
}

/// Answers over TLS with whatever HTTP the client chose and returns the address and the count of HTTP/2 requests.
async fn tls_server(config: Arc<rustls::ServerConfig>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let n_http2 = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&n_http2);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, counter) = (TlsAcceptor::from(Arc::clone(&config)), Arc::clone(&counter));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service =
                    hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                        if request.version() == hyper::Version::HTTP_2 {
                            counter.fetch_add(1, Ordering::SeqCst);
                        }
                        async {
                            Ok::<_, std::convert::Infallible>(hyper::Response::new(Full::new(Bytes::from(
                                ANSWER,
                            ))))
                        }
                    });
                let http = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (address, n_http2)
}

fn https(address: &str, bundle: Option<&std::path::Path>) -> Settings {
    Settings { ca_bundle: bundle.map(Into::into), ..Settings::new(format!("https://{address}/v1")) }
}

#[tokio::test]
async fn a_custom_authority_is_trusted_and_http2_is_spoken() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.pem");
    let (pem, config) = authority();
    std::fs::write(&bundle, pem).unwrap();
    let (address, n_http2) = tls_server(config).await;
    let service = OpenAiCompatible::new(https(&address, Some(&bundle))).unwrap();
    assert_eq!(outcome(&service, ask("x")).await.message().text, "hi");
    assert_eq!(n_http2.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_unknown_authority_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("other.pem");
    let (other, _) = authority();
    std::fs::write(&bundle, other).unwrap();
    let (_, config) = authority();
    let (address, _) = tls_server(config).await;
    let service = OpenAiCompatible::new(https(&address, Some(&bundle))).unwrap();
    let outcome = outcome(&service, ask("x")).await;
    assert_eq!(outcome.error().kind, Kind::Rejected, "{}", outcome.error());
    let expected = format!("the certificate of `{address}` is not trusted: ");
    assert!(outcome.error().message.starts_with(&expected), "{}", outcome.error());
    assert!(outcome.error().hint.contains("SSL_CERT_FILE"));
}

#[test]
fn certificates_that_are_none_end_the_set_up() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "hello").unwrap();
    let refused = |path: &std::path::Path| {
        OpenAiCompatible::new(https("localhost", Some(path))).unwrap_err().to_string()
    };
    let message = refused(&empty);
    assert!(
        message.starts_with(&format!("the certificates in `{}` cannot be read: ", empty.display())),
        "{message}"
    );
    let missing = folder.path().join("missing.pem");
    let message = refused(&missing);
    assert!(
        message.starts_with(&format!(
            "the certificates in `{}` cannot be read: No such file",
            missing.display()
        )),
        "{message}"
    );
    // Without TLS nobody looks.
    let plain = Settings { ca_bundle: Some(missing), ..Settings::new("http://example.com/v1") };
    assert!(OpenAiCompatible::new(plain).is_ok());
}

#[test]
fn keys_and_headers_that_cannot_be_sent_end_the_set_up() {
    let with = |change: fn(&mut Settings)| {
        let mut settings = Settings::new("http://127.0.0.1:1/v1");
        change(&mut settings);
        OpenAiCompatible::new(settings).unwrap_err()
    };
    let key = with(|settings| settings.api_key = Some(Secret::new("a\nb")));
    assert!(matches!(key, SetupError::Key), "{key}");
    let header = with(|settings| settings.extra_headers = vec![("a b".to_owned(), Secret::new("x"))]);
    assert_eq!(header.to_string(), "the header `a b` has a name or value that cannot be sent");
    let proxy = with(|settings| {
        settings.base_url = "http://example.com".to_owned();
        settings.proxy = ProxySource::Fixed(Secret::new("http://me:hush@"));
    });
    assert!(matches!(proxy, SetupError::Proxy { .. }) && !proxy.to_string().contains("hush"), "{proxy}");
}

/// A proxy that answers CONNECT by a tunnel to `target` and says which names it was asked for.
async fn tunnel(target: String) -> (String, Arc<std::sync::Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let list = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (target, list) = (target.clone(), Arc::clone(&list));
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                list.lock().unwrap().push(head.lines().next().unwrap().to_owned());
                let mut server = TcpStream::connect(target).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (address, asked)
}

#[tokio::test]
async fn a_proxy_is_used_for_others_and_never_for_this_machine() {
    let script = Script::new(vec![answer()]);
    let proxy = script.listen().await;
    let through = |base_url: &str, proxy: &str| Settings {
        proxy: ProxySource::Fixed(Secret::new(format!("http://{proxy}"))),
        ..Settings::new(base_url)
    };
    let service = OpenAiCompatible::new(through("http://model.invalid/v1", &proxy)).unwrap();
    assert_eq!(outcome(&service, ask("x")).await.message().text, "hi");
    assert!(script.seen()[0].head.starts_with("post http://model.invalid/v1/chat/completions http/1.1\r\n"));

    let local = Script::new(vec![answer()]);
    let address = local.listen().await;
    for host in ["127.0.0.1", "localhost"] {
        let address = address.replace("127.0.0.1", host);
        let service = OpenAiCompatible::new(through(&format!("http://{address}/v1"), "127.0.0.1:1")).unwrap();
        assert_eq!(outcome(&service, ask("x")).await.message().text, "hi");
    }
    assert_eq!((script.seen().len(), local.seen().len()), (1, 2));
}

#[tokio::test]
async fn tls_goes_through_a_tunnel() {
    let (_, config) = authority();
    let (server, _) = tls_server(config).await;
    let (proxy, asked) = tunnel(server).await;
    let service = OpenAiCompatible::new(Settings {
        proxy: ProxySource::Fixed(Secret::new(format!("http://{proxy}"))),
        ..https("model.invalid", None)
    });
    // Where the system has no certificates there is nothing to trust, and the set-up says so.
    let Ok(service) = service else { return };
    let outcome = outcome(&service, ask("x")).await;
    assert_eq!(*asked.lock().unwrap(), ["CONNECT model.invalid:443 HTTP/1.1"]);
    assert!(
        outcome.error().message.starts_with("the certificate of `model.invalid` is not trusted"),
        "{}",
        outcome.error()
    );
}

/// Plays a part in a process of its own, whose environment may be set.
const PART: &str = "ALISIO_TEST_PART";

fn in_process_with(part: &str, environment: &[(&str, &str)]) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "transport::part_with_an_environment", "--nocapture"])
        .env(PART, part)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{part}: {text}");
}

#[tokio::test]
async fn the_environment_names_proxies_and_certificates() {
    let script = Script::new(vec![answer()]);
    let proxy = format!("http://{}", script.listen().await);
    let check = |part: &'static str, environment: Vec<(&'static str, String)>| async move {
        let played = tokio::task::spawn_blocking(move || {
            let environment: Vec<(&str, &str)> =
                environment.iter().map(|(key, value)| (*key, value.as_str())).collect();
            in_process_with(part, &environment);
        });
        played.await.unwrap();
    };
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        check("proxied", vec![(name, proxy.clone())]).await;
    }
    assert_eq!(script.seen().len(), 3);
    check("unproxied", vec![("HTTP_PROXY", proxy.clone()), ("NO_PROXY", "model.invalid".to_owned())]).await;
    assert_eq!(script.seen().len(), 3);
    let nowhere = || "/nonexistent/certificates".to_owned();
    check("no certificates", vec![("SSL_CERT_FILE", nowhere()), ("SSL_CERT_DIR", nowhere())]).await;

    let (pem, config) = authority();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.pem");
    std::fs::write(&bundle, pem).unwrap();
    let (address, _) = tls_server(config).await;
    check("certificate file", vec![("SSL_CERT_FILE", bundle.display().to_string()), ("TARGET", address)])
        .await;
}

#[tokio::test]
async fn part_with_an_environment() {
    let Ok(part) = std::env::var(PART) else { return };
    let base = "http://model.invalid/v1";
    match part.as_str() {
        "proxied" => {
            let service = OpenAiCompatible::new(Settings::new(base)).unwrap();
            assert_eq!(outcome(&service, ask("x")).await.message().text, "hi");
        }
        "unproxied" => {
            let service = OpenAiCompatible::new(Settings::new(base)).unwrap();
            assert_eq!(outcome(&service, ask("x")).await.error().kind, Kind::Connection);
        }
        "no certificates" => {
            let error = OpenAiCompatible::new(Settings::new("https://model.invalid/v1")).unwrap_err();
            assert!(matches!(error, SetupError::Client { .. }), "{error}");
            // Without TLS the certificates are not even looked for.
            OpenAiCompatible::new(Settings::new(base)).unwrap();
        }
        "certificate file" => {
            let address = std::env::var("TARGET").unwrap();
            let service = OpenAiCompatible::new(https(&address, None)).unwrap();
            assert_eq!(outcome(&service, ask("x")).await.message().text, "hi");
        }
        other => panic!("no part `{other}`"),
    }
}

#[tokio::test]
async fn redirects_are_not_followed_and_name_their_target() {
    let script =
        Script::new(vec![plain("307 Temporary Redirect", "location: https://elsewhere.example/v1\r\n", "")]);
    let address = script.listen().await;
    let outcome = outcome(&OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap(), ask("x")).await;
    assert_eq!((outcome.error().kind, outcome.error().status), (Kind::Rejected, Some(307)));
    assert_eq!(
        outcome.error().message,
        "the service answered 307 Temporary Redirect and points to `https://elsewhere.example/v1`; \
         a request with a conversation is not sent on"
    );
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test]
async fn refused_and_closed_connections_have_sentences() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let refused = outcome(&OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap(), ask("x")).await;
    assert_eq!(refused.error().kind, Kind::Connection);
    assert_eq!(refused.error().message, format!("`{address}` refuses the connection"));

    let address = Script::new(vec![vec![Step::Close]]).listen().await;
    let closed = outcome(&OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap(), ask("x")).await;
    assert_eq!(closed.error().kind, Kind::Connection);
    assert!(
        closed.error().message.starts_with(&format!("no answer from `{address}`: ")),
        "{}",
        closed.error()
    );
}

#[tokio::test]
async fn statuses_carry_what_the_run_loop_needs() {
    let answers = [
        plain("429 Too Many Requests", "retry-after: 7\r\n", "{\"error\":{\"message\":\"slow down\"}}"),
        plain("503 Service Unavailable", "", ""),
        plain("529 ", "", "{\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}"),
    ];
    let expected = [
        (Kind::RateLimited, Some(429), Some(Duration::from_secs(7))),
        (Kind::Server, Some(503), None),
        (Kind::Server, Some(529), None),
    ];
    let address = Script::new(answers.to_vec()).listen().await;
    let service = OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap();
    for expected in expected {
        let outcome = outcome(&service, ask("x")).await;
        let error = outcome.error();
        assert_eq!((error.kind, error.status, error.retry_after), expected, "{error}");
        assert!(error.kind.retry_reason().is_some());
    }
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let script = Script::new(vec![answer()]);
    let address = script.listen().await;
    let service = OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap();
    for _ in 0..5 {
        outcome(&service, ask("x")).await.message();
    }
    let connections: Vec<usize> = script.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0; 5]);
}

#[tokio::test]
async fn dropping_the_stream_ends_the_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let service = OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap();
    let mut events = alisio_sdk::Provider::stream(&service, ask("x"));
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            stream.read_buf(&mut asked).await.unwrap();
        }
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        stream.write_all(head).await.unwrap();
        stream.write_all(b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n").await.unwrap();
        let mut rest = Vec::new();
        // Ends only when the client closes the connection.
        let _ = stream.read_to_end(&mut rest).await;
    });
    assert_eq!(events.next().await.unwrap().unwrap(), StreamEvent::Text("hi".to_owned()));
    drop(events);
    tokio::time::timeout(Duration::from_secs(20), server).await.expect("the connection is closed").unwrap();
}

#[tokio::test]
async fn models_are_listed_and_a_service_is_checked() {
    let list = "{\"data\":[{\"id\":\"a\",\"context_window\":8192},{\"id\":\"b\"}]}";
    let script = Script::new(vec![plain("200 OK", "", list), answer(), plain("404 Not Found", "", "")]);
    let address = script.listen().await;
    let service = OpenAiCompatible::new(settings(&address, ApiMode::Chat)).unwrap();
    let info =
        |id: &str, context_window| ModelInfo { id: id.to_owned(), context_window, max_output_tokens: None };
    assert_eq!(service.list_models().await.unwrap(), [info("a", Some(8192)), info("b", None)]);
    service.check("a").await.unwrap();
    let error = service.check("c").await.unwrap_err();
    assert_eq!(error.message, "the service answered 404 Not Found: without a word about it");
    assert!(error.hint.contains("`/v1`"));
    let seen = script.seen();
    assert!(seen[0].head.starts_with("get /v1/models http/1.1\r\n"));
    assert_eq!((&seen[1].json()["model"], &seen[2].json()["model"]), (&"a".into(), &"c".into()));
}
