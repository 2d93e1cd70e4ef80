//! What a run shows: text for people, JSON Lines for programs.
//!
//! With `--json` standard output carries event objects and nothing else. Otherwise it carries what the model says, and
//! standard error the rest, so that a pipe gets the answer alone.

mod harmless;
mod json;
mod text;

use std::io;

use alisio_engine::Outcome;
use alisio_protocol::Event;

pub use harmless::harmless;
pub use json::JsonLines;
pub use text::{Terminal, Text, count, span, summarize};

/// Shows the events of a run.
pub trait Surface {
    /// Shows one event.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// Everything shown so far reaches the reader.
    fn flush(&mut self) -> io::Result<()>;

    /// Shows how the run ended, in lines that are ready to print.
    fn end(&mut self, outcome: &Outcome, lines: &[String]) -> io::Result<()>;
}
