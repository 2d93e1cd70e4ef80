//! Model services: one folder a wire format, all behind [`alisio_sdk::Provider`].
//!
//! Turns a conversation into a request that a service accepts, and whatever the service sends back into text,
//! reasoning, calls, usage, or an error whose sentence names the fault. It neither retries nor limits the first token
//! nor judges arguments: the run loop does that, with what the error says. It reads no configuration file and, beside
//! the proxy and certificate variables, no environment.
//!
//! Servers that call themselves compatible misbehave in many ways; what they do is taken as they meant it wherever
//! that is clear. `sse` cuts events out of bytes, `loose` reads values that are spelled in more than one way, `calls`
//! puts tool calls together, `fault` makes errors, `stream` drives one exchange.

mod calls;
mod chat;
mod client;
mod fault;
mod loose;
mod models;
mod outgoing;
mod pieces;
mod responses;
mod secret;
mod settings;
mod sse;
mod stream;

pub use client::OpenAiCompatible;
pub use models::ModelInfo;
pub use secret::Secret;
pub use settings::{ApiMode, Auth, ProxySource, Settings, SetupError, TokenParameter};
