//! One answer with every value filled in, before it takes the form of a wire.

use std::time::Duration;

use crate::scenario::{Deltas, Finish, UsageStep};

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    /// Numbers the request that is answered, from 1; goes into ids.
    pub(crate) number: usize,
    pub(crate) model: String,
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) encrypted_reasoning: Option<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: UsageStep,
    pub(crate) finish: Finish,
    pub(crate) deltas: Deltas,
    pub(crate) delay: Duration,
}

/// A tool call; the arguments are text, which need not be JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Reply {
    /// Splits a text into its deltas.
    pub(crate) fn split<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let size = match (self.deltas.size, self.deltas.count) {
            (Some(size), _) => size,
            (None, Some(count)) => text.chars().count().div_ceil(count),
            (None, None) => 12,
        };
        pieces(text, size.max(1))
    }

    /// The delta of a big stream and how often it is sent.
    pub(crate) fn big(&self) -> Option<(&str, usize)> {
        self.deltas.text.as_deref().zip(self.deltas.count)
    }

    /// The whole visible text.
    pub(crate) fn whole_text(&self) -> String {
        match self.big() {
            Some((text, count)) => text.repeat(count),
            None => self.text.clone(),
        }
    }
}

/// Splits a text into pieces of `size` characters.
fn pieces(text: &str, size: usize) -> Vec<&str> {
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (piece, tail) = rest.split_at(end);
        pieces.push(piece);
        rest = tail;
    }
    pieces
}
