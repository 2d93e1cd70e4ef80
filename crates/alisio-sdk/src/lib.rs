//! The contracts: tools, providers, and what a running tool is given.
//!
//! A tool never decides whether it may run: [`Tool::prepare`] says what a call would do, the gate decides, and
//! [`Prepared::run`] needs the [`Permit`](alisio_policy::Permit) that only the gate can hand out.

mod instructions;
mod provider;
mod tool;

pub use instructions::{InstructionFile, InstructionKind, InstructionSource};
pub use provider::{ModelRequest, Provider, ProviderError, ProviderErrorKind, StopReason, StreamEvent};
pub use tool::{InputError, Prepared, Progress, Tool, ToolContext};

/// A boxed future that may move between threads.
pub type BoxFuture<'a, T> = futures_util::future::BoxFuture<'a, T>;
/// A boxed stream that may move between threads.
pub type BoxStream<'a, T> = futures_util::stream::BoxStream<'a, T>;

/// Where bash is looked for. A script is run by the first that is there, by `sh` where none is; and what a script would do
/// is read as bash reads it, so without bash nobody can tell.
pub const BASH: [&str; 2] = ["/bin/bash", "/usr/bin/bash"];
