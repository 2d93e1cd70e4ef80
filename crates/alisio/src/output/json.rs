//! One JSON object a line.

use std::io::{self, BufWriter, Stdout, Write};

use alisio_engine::Outcome;
use alisio_protocol::Event;

use super::{Surface, harmless};

/// Writes events as JSON Lines to standard output.
pub struct JsonLines {
    out: BufWriter<Stdout>,
}

impl JsonLines {
    /// Starts with standard output.
    pub fn new() -> Self {
        Self { out: BufWriter::new(io::stdout()) }
    }
}

impl Surface for JsonLines {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, event)?;
        self.out.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn end(&mut self, outcome: &Outcome, lines: &[String]) -> io::Result<()> {
        let mut err = io::stderr().lock();
        if let Some(error) = &outcome.error {
            writeln!(err, "{}: {}", outcome.status, harmless(error))?;
        }
        lines.iter().try_for_each(|line| writeln!(err, "{line}"))
    }
}
