//! The scripted model: one scenario format, played as a server and as an in-process provider.
//!
//! [`Server`] speaks the Chat Completions and the Responses API on loopback and misbehaves on demand: every fault has a
//! name and stands in the catalogue ([`faults::all`]). [`ScriptedProvider`] plays the same scenarios without a socket.
//! The binary `alisio-conformance` offers the server to any other harness. It is no emulator: it never judges what a
//! model would say, keeps no state beyond its script, and listens on the loopback interface.

mod asked;
pub mod faults;
mod provider;
mod reply;
mod scenario;
mod script;
mod server;
mod socket;
mod wire;

pub use provider::ScriptedProvider;
pub use scenario::{
    CallStep, Capture, CaptureFrom, CaptureKind, Deltas, Expect, FaultParameters, FaultUse, Finish, Match,
    Model, Role, Scenario, ScenarioError, Texts, Then, Turn, UsageStep,
};
pub use server::{Observer, RecordedRequest, Server, StartError};
pub use wire::Api;
