//! `alisio ledger` and `alisio logs`: the trail of verdicts.

use std::io::Write;

use alisio_protocol::VerdictWord;
use alisio_store::{Doorbell, LedgerCheck, LedgerEntry, Store};

use crate::app::App;
use crate::args::LedgerCommand;
use crate::commands::approvals::wait;
use crate::error::{CommandError, Exit};
use crate::output::harmless;

/// Entries that are read at once.
const PAGE: usize = 1_000;
/// Digits of a hash that make a head worth comparing.
const MIN_HASH_DIGITS: usize = 8;

/// Runs `alisio ledger`.
pub fn run(app: &App, command: LedgerCommand) -> Result<Exit, CommandError> {
    let store = app.store()?;
    match command {
        LedgerCommand::Verify { head } => verify(&store, head.as_deref()),
        LedgerCommand::Export => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            let mut after = 0;
            loop {
                let entries = store.ledger(after, PAGE)?;
                if entries.is_empty() {
                    out.flush()?;
                    return Ok(Exit::Done);
                }
                after += entries.len() as u64;
                for entry in entries {
                    serde_json::to_writer(&mut out, &entry).map_err(std::io::Error::from)?;
                    writeln!(out)?;
                }
            }
        }
    }
}

fn verify(store: &Store, head: Option<&str>) -> Result<Exit, CommandError> {
    let whole = match store.verify_ledger()? {
        LedgerCheck::Whole(head) => head,
        LedgerCheck::Broken { seq, reason } => {
            return Err(CommandError::failed(format!("the ledger is broken at entry {seq}: {reason}"))
                .hint("what stands before it is as it was written; keep a copy of the database"));
        }
    };
    if let Some(text) = head {
        let (seq, digits) = parse_head(text)?;
        match store.ledger_hash(seq)? {
            Some(hash) if hash.to_string().starts_with(&digits) => {}
            Some(_) => {
                return Err(CommandError::failed(format!(
                    "entry {seq} is not the one that was recorded: the chain was written anew"
                )));
            }
            None => {
                return Err(CommandError::failed(format!(
                    "entry {seq} is missing: the ledger ends at {}, so its tail was cut off",
                    whole.seq
                )));
            }
        }
    }
    writeln!(anstream::stdout(), "the ledger is whole: {}:{}", whole.seq, whole.hash)?;
    Ok(Exit::Done)
}

fn parse_head(text: &str) -> Result<(u64, String), CommandError> {
    let wrong = || {
        CommandError::usage(format!("`{text}` is no head: write it as a run printed it, `SEQ:HASH`"))
            .hint(format!("at least {MIN_HASH_DIGITS} digits of the hash are needed"))
    };
    let (seq, hash) = text.split_once(':').ok_or_else(wrong)?;
    let hash = hash.to_lowercase();
    let seq = seq.parse().map_err(|_| wrong())?;
    let good =
        (MIN_HASH_DIGITS..=64).contains(&hash.len()) && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
    if seq == 0 || !good {
        return Err(wrong());
    }
    Ok((seq, hash))
}

/// Runs `alisio logs`.
pub fn logs(app: &App, session: &str, follow: bool) -> Result<Exit, CommandError> {
    let store = app.store()?;
    let id = store.find(session)?;
    let bell = if follow { Some(Doorbell::listen(&store)?) } else { None };
    let mut after = 0;
    let mut out = anstream::stdout();
    loop {
        loop {
            let entries = store.ledger(after, PAGE)?;
            if entries.is_empty() {
                break;
            }
            after += entries.len() as u64;
            for entry in entries.iter().filter(|entry| entry.session == id) {
                if app.global.json {
                    serde_json::to_writer(&mut out, entry).map_err(std::io::Error::from)?;
                    writeln!(out)?;
                } else {
                    writeln!(out, "{}", line(entry))?;
                }
            }
        }
        out.flush()?;
        match &bell {
            Some(bell) => wait(bell)?,
            None => return Ok(Exit::Done),
        }
    }
}

fn line(entry: &LedgerEntry) -> String {
    let word = match entry.verdict {
        Some(VerdictWord::Allow) => "allow",
        Some(VerdictWord::Deny) => "deny",
        None => entry.kind.trim_start_matches("permission."),
    };
    let paths = entry.paths.join(" ");
    let text = format!("{}  {word:<9} {:<14} {paths}  {}", entry.at, entry.tool, entry.reason);
    harmless(&text).into_owned()
}
