//! Reads a command line as bash does and says what each part would do: programs, files written, hosts, or "unknown".
//!
//! A strict parser of its own (`syntax`) turns the text into a tree. It follows bash exactly for what it accepts and
//! stops at everything else: an error-tolerant grammar would guess, and here a guess is a hole. Each simple command is
//! then judged by the table of its program (`programs`). A program, an option or a construct that is in no table is
//! unknown, so the default is always the stricter side.
//!
//! Deliberately absent: files, clock, environment. The same text gives the same answer on every machine and day, which
//! is what replaying recorded calls needs; the work is bounded by size, nesting and steps instead of by time. What a
//! repository's own configuration makes git run cannot be seen in the text and is not claimed: the boundary is the
//! sandbox, this crate only asks fewer and better questions.

mod judge;
mod options;
mod programs;
mod syntax;
mod value;

pub use alisio_protocol::{Class, Facts, Part};

/// How much work one line may cost. Past it the answer is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Longest text, in bytes.
    pub n_bytes: usize,
    /// Deepest nesting of substitutions, groups and scripts inside scripts.
    pub depth: usize,
    /// Most parts (simple commands) that are judged.
    pub n_parts: usize,
}

impl Default for Budget {
    /// 16 KiB, 60 levels (two or three a bracket) and 1,000 parts: a few milliseconds at worst.
    fn default() -> Self {
        Self { n_bytes: 16 * 1024, depth: 60, n_parts: 1000 }
    }
}

/// Says what a bash script would do. Never panics; what is not understood is [`Class::WriteOrUnknown`].
#[must_use]
pub fn understand(script: &str, budget: &Budget) -> Facts {
    judge::script(script, budget)
}

/// Says what one program with these arguments would do when started without a shell: no word is expanded.
#[must_use]
pub fn understand_argv(argv: &[String]) -> Facts {
    judge::argv(argv, &Budget::default())
}
