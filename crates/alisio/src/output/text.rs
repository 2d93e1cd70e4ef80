//! A run as a person reads it.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};

use alisio_engine::Outcome;
use alisio_protocol::{CallId, Effect, Event, EventKind, RetryReason};
use alisio_store::RunStatus;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Surface, harmless};

/// Columns where the terminal does not say.
const DEFAULT_COLUMNS: usize = 100;
/// Columns of a failed call that stay, so that the reason has room behind them.
const LEAST_OF_A_CALL: usize = 16;

/// What the terminal at standard error can show.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Marks beyond ASCII.
    pub unicode: bool,
    /// Its width.
    pub columns: usize,
}

impl Terminal {
    /// Asks the environment and the terminal.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| variable(name).filter(|v| !v.is_empty()));
        let utf8 = locale.is_none_or(|locale| locale.to_lowercase().replace('-', "").contains("utf8"));
        let dumb = variable("TERM").is_some_and(|term| term == "dumb");
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        Self { unicode: utf8 && !dumb, columns: if columns == 0 { DEFAULT_COLUMNS } else { columns } }
    }
}

/// Shows a run as text.
pub struct Text {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    /// Whether what the model says goes to a screen, where it must not be able to steer it.
    screen: bool,
    terminal: Terminal,
    quiet: bool,
    /// Whether the model's text stands in the middle of a line.
    in_line: bool,
    /// What started calls show, by id.
    started: HashMap<CallId, String>,
}

impl Text {
    /// Starts with standard output and standard error; colours only where they can be shown and are wanted.
    pub fn new(terminal: Terminal, quiet: bool) -> Self {
        let screen = io::stdout().is_terminal();
        Self {
            out: Box::new(io::BufWriter::new(io::stdout())),
            err: Box::new(anstream::stderr()),
            screen,
            terminal,
            quiet,
            in_line: false,
            started: HashMap::new(),
        }
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.screen {
            self.out.write_all(harmless(text).as_bytes())?;
        } else {
            self.out.write_all(text.as_bytes())?;
        }
        self.in_line = !text.ends_with('\n');
        Ok(())
    }

    fn finish_line(&mut self) -> io::Result<()> {
        if self.in_line {
            self.out.write_all(b"\n")?;
            self.in_line = false;
        }
        self.out.flush()
    }

    /// Prints a line about the run, cut to the width.
    fn note(&mut self, style: &str, mark: (&str, &str), text: &str) -> io::Result<()> {
        self.finish_line()?;
        let mark = if self.terminal.unicode { mark.0 } else { mark.1 };
        let text = one_line(&harmless(text), self.terminal.columns.saturating_sub(mark.width() + 1));
        writeln!(self.err, "{style}{mark} {text}\x1b[0m")
    }
}

/// Lines of a failed call that are shown below it.
const LINES_OF_A_FAILURE: usize = 8;

const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const BULLET: (&str, &str) = ("●", "*");
const RUNNING: (&str, &str) = ("▸", ">");
const CROSS: (&str, &str) = ("✗", "x");
const WAIT: (&str, &str) = ("↻", "~");

impl Surface for Text {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.kind {
            EventKind::TextDelta { delta } => self.say(delta),
            EventKind::TurnCompleted { .. } => self.finish_line(),
            EventKind::ToolStarted { id, name, arguments, effect } => {
                let line = format!("{name} {}", summarize(arguments)).trim_end().to_owned();
                if matches!(effect, Effect::Process | Effect::External) {
                    self.note(DIM, RUNNING, &line)?;
                }
                self.started.insert(id.clone(), line);
                Ok(())
            }
            EventKind::ToolCompleted { id, name, is_error, duration_ms, preview } => {
                let line = self.started.remove(id).unwrap_or_else(|| name.clone());
                if *is_error {
                    let first = preview.lines().next().unwrap_or_default();
                    let line = one_line(&line, (self.terminal.columns / 2).max(LEAST_OF_A_CALL));
                    self.note(RED, CROSS, &format!("{line} · {first}"))?;
                    // What a failing program said is what a person looks for.
                    for more in preview.lines().skip(1).take(LINES_OF_A_FAILURE) {
                        let more = one_line(&harmless(more), self.terminal.columns.saturating_sub(4));
                        writeln!(self.err, "{DIM}    {more}\x1b[0m")?;
                    }
                    Ok(())
                } else {
                    self.note(DIM, BULLET, &format!("{line} · {}", span(*duration_ms)))
                }
            }
            EventKind::ApprovalRequested { name, request_id, reason, .. } => {
                self.note(YELLOW, WAIT, &format!("{name} waits for approval: {reason}"))?;
                let answer = format!(
                    "  see it: alisio approvals list\n  answer: alisio approvals resolve {request_id} once|always|reject"
                );
                writeln!(self.err, "{DIM}{answer}\x1b[0m")
            }
            EventKind::ApprovalResolved { name, resolution, .. } => {
                self.note(DIM, BULLET, &format!("{name}: {}", resolution.word()))
            }
            EventKind::RequestRetry { attempt, of, reason, after_ms, status } => {
                let status = status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
                let reason = why_again(*reason);
                let wait = span(*after_ms);
                self.note(
                    YELLOW,
                    WAIT,
                    &format!("{reason}{status}; trying again in {wait} ({attempt} of {of})"),
                )
            }
            EventKind::TruncationRecovery { attempt, of, .. } => self.note(
                YELLOW,
                WAIT,
                &format!("the answer was cut: asking again in smaller steps ({attempt} of {of})"),
            ),
            EventKind::ContextReduced { messages } => self.note(
                YELLOW,
                WAIT,
                &format!("shortened {} to make room", count(u64::from(*messages), "old tool result")),
            ),
            EventKind::ResponseTruncated { .. } => {
                self.note(YELLOW, CROSS, "the output limit cut the answer")
            }
            EventKind::ReasoningDelta { .. }
            | EventKind::RunStarted { .. }
            | EventKind::ToolDecided { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ModelChanged { .. }
            | EventKind::RunCompleted { .. }
            | EventKind::RunTurnsExceeded { .. }
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. } => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn end(&mut self, outcome: &Outcome, lines: &[String]) -> io::Result<()> {
        self.finish_line()?;
        if let Some(error) = &outcome.error {
            let style = if outcome.status == RunStatus::Cancelled { YELLOW } else { RED };
            // An error is shown whole: its end says what to do.
            writeln!(self.err, "{style}{}: {}\x1b[0m", outcome.status, harmless(error))?;
        }
        if !self.quiet {
            for line in lines {
                writeln!(self.err, "{DIM}{}\x1b[0m", harmless(line))?;
            }
        }
        self.err.flush()
    }
}

/// Says why a request is sent again.
fn why_again(reason: RetryReason) -> &'static str {
    match reason {
        RetryReason::FirstTokenTimeout => "the service is silent",
        RetryReason::RateLimited => "the service asks to slow down",
        RetryReason::ServerError => "the service has a fault",
        RetryReason::Connection => "no connection, or it broke",
    }
}

/// Writes a number with its noun, in the plural where there is not exactly one.
pub fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Names what a call is about, from its arguments.
pub fn summarize(arguments: &str) -> String {
    let Ok(Value::Object(input)) = serde_json::from_str::<Value>(arguments) else { return String::new() };
    if let (Some(Value::String(command)), Some(Value::Array(words))) =
        (input.get("command"), input.get("args"))
    {
        let words = words.iter().filter_map(Value::as_str);
        return std::iter::once(command.as_str()).chain(words).collect::<Vec<_>>().join(" ");
    }
    let named =
        ["path", "command", "pattern", "url", "query"].into_iter().find_map(|key| input.get(key)?.as_str());
    named.or_else(|| input.values().find_map(Value::as_str)).unwrap_or_default().to_owned()
}

/// Cuts a text to one line of at most `columns`.
fn one_line(text: &str, columns: usize) -> String {
    let text = text.replace(['\n', '\t'], " ");
    if text.width() <= columns {
        return text;
    }
    let mut width = 0;
    let kept: String = text
        .chars()
        .take_while(|c| {
            width += c.width().unwrap_or(0);
            width < columns
        })
        .collect();
    format!("{kept}…")
}

/// Says a length of time as people do.
pub fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1_000.0),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns_not_by_bytes() {
        for (text, columns, cut) in [
            ("short", 10, "short"),
            ("0123456789ab", 10, "012345678…"),
            ("日本語日本語", 7, "日本語…"),
            ("two\nlines", 20, "two lines"),
        ] {
            assert_eq!(one_line(text, columns), cut);
        }
    }

    #[test]
    fn one_thing_is_no_plural() {
        for (n, text) in [(0, "0 calls"), (1, "1 call"), (2, "2 calls")] {
            assert_eq!(count(n, "call"), text);
        }
    }

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        for (arguments, named) in [
            (r#"{"path":"src/a.rs","limit":3}"#, "src/a.rs"),
            (r#"{"command":"cargo","args":["test","-q"]}"#, "cargo test -q"),
            (r#"{"command":"ls -l | wc"}"#, "ls -l | wc"),
            (r#"{"other":"x"}"#, "x"),
            ("{}", ""),
            ("nonsense", ""),
        ] {
            assert_eq!(summarize(arguments), named);
        }
    }
}
