//! Time, as an argument.

use std::time::Duration;

use jiff::Timestamp;

/// Tells the time. Tests fix it, so that the list of events is the same each time.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// Stands still.
    Fixed(Timestamp),
}

impl Clock {
    /// Now.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Fixed(at) => *at,
        }
    }

    /// Now, as it stands in events and rows: RFC 3339, UTC, milliseconds.
    pub fn stamp(&self) -> String {
        format!("{:.3}", self.now())
    }

    /// Measures from here on.
    pub fn start(&self) -> Stopwatch {
        match self {
            Self::System => Stopwatch(Some(std::time::Instant::now())),
            Self::Fixed(_) => Stopwatch(None),
        }
    }
}

/// Measures a span; always zero under a fixed clock.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Option<std::time::Instant>);

impl Stopwatch {
    /// How long it has run.
    pub fn elapsed(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How long it has run, in whole milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
