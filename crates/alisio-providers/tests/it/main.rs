//! The providers as their users meet them: over sockets, against servers that behave and servers that don't.

#![allow(
    clippy::disallowed_methods,
    reason = "tests write their own temporary files and start themselves again"
)]

mod answers;
mod faults;
mod requests;
mod server;
mod transport;
