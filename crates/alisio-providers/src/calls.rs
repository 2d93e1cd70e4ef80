//! Tool calls, put together from pieces.
//!
//! Servers leave out the index, the id or both, send arguments whole, in pieces or as an object, give every parallel
//! call index 0, or repeat an id. Each rule below answers one of these habits. Whether the arguments are any good is
//! not judged here: the run loop does that.

use std::collections::HashSet;

use alisio_protocol::{CallId, Message, ToolCall};
use alisio_sdk::StopReason;
use serde_json::Value;

use crate::loose::{Loose, is_object};

/// Calls that grow.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    drafts: Vec<Draft>,
}

#[derive(Debug, Default)]
struct Draft {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// What one event says about one call.
#[derive(Debug)]
pub(crate) struct CallPiece<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) arguments: &'a Loose<'a>,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// Adds a piece to the call that it belongs to, or begins one.
    pub(crate) fn grow(&mut self, piece: &CallPiece<'_>) {
        let at = self.find(piece).unwrap_or_else(|| {
            self.drafts.push(Draft { index: piece.index, ..Draft::default() });
            self.drafts.len() - 1
        });
        let draft = &mut self.drafts[at];
        if let Some(id) = piece.id
            && draft.id.is_empty()
        {
            draft.id.push_str(id);
        }
        // A name that comes again is a repetition; a different one before any argument is its second half.
        if let Some(name) = piece.name
            && draft.name != name
            && (draft.name.is_empty() || draft.arguments.is_empty())
        {
            draft.name.push_str(name);
        }
        match piece.arguments {
            Loose::Null => {}
            Loose::Text(text) => draft.arguments.push_str(text),
            Loose::Other(value) => draft.arguments = value.to_string(),
        }
    }

    /// Sets the arguments of the call at `index`, told at its end once more.
    pub(crate) fn settle(&mut self, index: Option<u64>, arguments: &Loose<'_>) {
        let text = arguments.to_text();
        match self.drafts.iter_mut().rfind(|draft| index.is_none() || draft.index == index) {
            Some(draft) if !text.is_empty() => draft.arguments = text.into_owned(),
            _ => {}
        }
    }

    /// Returns the arguments that came in pieces for the call at `index` or with `id`.
    pub(crate) fn arguments(&self, index: u64, id: &str) -> Option<&str> {
        let found = self.drafts.iter().find(|draft| !id.is_empty() && draft.id == id);
        let found = found.or_else(|| self.drafts.iter().find(|draft| draft.index == Some(index)));
        found.map(|draft| draft.arguments.as_str())
    }

    fn find(&self, piece: &CallPiece<'_>) -> Option<usize> {
        let last = self.drafts.len().checked_sub(1);
        let at = match (piece.index, piece.id, piece.name) {
            (Some(index), ..) => self.drafts.iter().rposition(|draft| draft.index == Some(index))?,
            (None, Some(id), name) => match self.drafts.iter().rposition(|draft| draft.id == id) {
                Some(at) => at,
                None if name.is_none() => last?,
                None => {
                    last.filter(|at| self.drafts[*at].name.is_empty() && self.drafts[*at].id.is_empty())?
                }
            },
            (None, None, Some(name)) => last.filter(|at| {
                let draft = &self.drafts[*at];
                draft.name.is_empty() || draft.name == name && !is_object(&draft.arguments)
            })?,
            (None, None, None) => last?,
        };
        (!self.begins_another(at, piece)).then_some(at)
    }

    /// Says whether the piece begins a new call although it carries the index or id of draft `at`.
    fn begins_another(&self, at: usize, piece: &CallPiece<'_>) -> bool {
        let draft = &self.drafts[at];
        if piece.name.is_none() || draft.name.is_empty() {
            return false;
        }
        let other_id = piece.id.is_some_and(|id| !draft.id.is_empty() && draft.id != id);
        let more_arguments = !piece.arguments.to_text().is_empty();
        other_id || more_arguments && is_object(&draft.arguments)
    }

    /// Returns the calls, each with a name and an id of its own.
    pub(crate) fn finish(self, ids: &mut Ids, stop: StopReason) -> Vec<ToolCall> {
        let begun = self
            .drafts
            .into_iter()
            .filter(|draft| !draft.name.is_empty() || !draft.arguments.trim().is_empty());
        begun.map(|draft| tool_call(&draft.id, &draft.name, draft.arguments, ids, stop)).collect()
    }
}

/// Makes a call of what a server sent for one.
pub(crate) fn tool_call(
    id: &str,
    name: &str,
    arguments: String,
    ids: &mut Ids,
    stop: StopReason,
) -> ToolCall {
    let name = if name.trim().is_empty() { "unnamed" } else { name.trim() };
    ToolCall { id: CallId::new(ids.unique(id)), name: name.to_owned(), arguments: settled(arguments, stop) }
}

/// Repairs two habits: no text at all for a call without arguments, and an object written as a JSON string.
fn settled(arguments: String, stop: StopReason) -> String {
    let text = arguments.trim();
    if (text.is_empty() || text == "null") && stop != StopReason::OutputLimit {
        return "{}".to_owned();
    }
    if text.starts_with('"')
        && let Ok(Value::String(inner)) = serde_json::from_str(text)
        && is_object(&inner)
    {
        return inner;
    }
    arguments
}

/// The call ids of a conversation; every new one is made different from them.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    taken: HashSet<String>,
}

impl Ids {
    /// Collects the ids that the conversation holds.
    pub(crate) fn of(messages: &[Message]) -> Self {
        let calls = messages.iter().filter_map(|message| match message {
            Message::Assistant(message) => Some(&message.calls),
            Message::User(_) | Message::Tool(_) => None,
        });
        Self { taken: calls.flatten().map(|call| call.id.as_str().to_owned()).collect() }
    }

    /// Returns `wanted`, or what is nearest to it and not taken.
    fn unique(&mut self, wanted: &str) -> String {
        let wanted = wanted.trim();
        let stem = if wanted.is_empty() { "call" } else { wanted };
        let first = (!wanted.is_empty()).then(|| wanted.to_owned());
        let id = first
            .into_iter()
            .chain((1u64..).map(|n| format!("{stem}_{n}")))
            .find(|id| !self.taken.contains(id))
            .expect("the numbers do not run out before the memory does");
        self.taken.insert(id.clone());
        id
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Plays deltas as they stand in `tool_calls` and returns `id name arguments` of each call.
    fn assembled(deltas: Value) -> Vec<String> {
        let mut calls = Calls::default();
        for delta in deltas.as_array().unwrap() {
            let text = |key: &str| delta.get(key).and_then(Value::as_str);
            let arguments = delta.get("arguments").cloned().unwrap_or_default().to_string();
            calls.grow(&CallPiece {
                index: delta.get("index").and_then(Value::as_u64),
                id: text("id"),
                name: text("name"),
                arguments: &serde_json::from_str(&arguments).unwrap(),
            });
        }
        let calls = calls.finish(&mut Ids::default(), StopReason::Done);
        calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect()
    }

    #[test]
    fn calls_are_told_apart_by_whatever_there_is() {
        let cases = [
            (
                "as documented",
                json!([{"index": 0, "id": "a", "name": "f", "arguments": ""}, {"index": 0, "arguments": "{\"x\""}, {"index": 0, "arguments": ":1}"}]),
                vec!["a f {\"x\":1}"],
            ),
            (
                "parallel, interleaved",
                json!([{"index": 0, "id": "a", "name": "f"}, {"index": 1, "id": "b", "name": "g"}, {"index": 1, "arguments": "{\"y\":2}"}, {"index": 0, "arguments": "{\"x\":1}"}]),
                vec!["a f {\"x\":1}", "b g {\"y\":2}"],
            ),
            (
                "no index, ids",
                json!([{"id": "a", "name": "f", "arguments": "{"}, {"id": "a", "arguments": "}"}, {"id": "b", "name": "f", "arguments": "{}"}]),
                vec!["a f {}", "b f {}"],
            ),
            (
                "no index, id once",
                json!([{"id": "a", "name": "f", "arguments": "{"}, {"arguments": "}"}, {"id": "b", "name": "f"}, {"arguments": "{}"}]),
                vec!["a f {}", "b f {}"],
            ),
            (
                "no id",
                json!([{"index": 0, "name": "f", "arguments": "{}"}, {"index": 1, "name": "g", "arguments": "{}"}]),
                vec!["call_1 f {}", "call_2 g {}"],
            ),
            (
                "neither, whole",
                json!([{"name": "f", "arguments": "{}"}, {"name": "f", "arguments": "{}"}]),
                vec!["call_1 f {}", "call_2 f {}"],
            ),
            (
                "neither, pieces",
                json!([{"name": "f"}, {"arguments": "{\"a\""}, {"arguments": ":1}"}, {"name": "g", "arguments": "{}"}]),
                vec!["call_1 f {\"a\":1}", "call_2 g {}"],
            ),
            (
                "arguments as an object",
                json!([{"index": 0, "id": "a", "name": "f", "arguments": {"x": 1}}]),
                vec!["a f {\"x\":1}"],
            ),
            (
                "arguments as a string of JSON",
                json!([{"index": 0, "id": "a", "name": "f", "arguments": "\"{\\\"x\\\":1}\""}]),
                vec!["a f {\"x\":1}"],
            ),
            ("no arguments", json!([{"index": 0, "id": "a", "name": "f"}]), vec!["a f {}"]),
            (
                "null arguments",
                json!([{"index": 0, "id": "a", "name": "f", "arguments": null}]),
                vec!["a f {}"],
            ),
            (
                "every call is index 0",
                json!([{"index": 0, "id": "a", "name": "f", "arguments": "{}"}, {"index": 0, "id": "b", "name": "g", "arguments": "{}"}]),
                vec!["a f {}", "b g {}"],
            ),
            (
                "same id twice",
                json!([{"index": 0, "id": "a", "name": "f", "arguments": "{}"}, {"index": 1, "id": "a", "name": "g", "arguments": "{}"}]),
                vec!["a f {}", "a_1 g {}"],
            ),
            (
                "same id and no index",
                json!([{"id": "a", "name": "f", "arguments": "{}"}, {"id": "a", "name": "g", "arguments": "{}"}]),
                vec!["a f {}", "a_1 g {}"],
            ),
            (
                "name repeated",
                json!([{"index": 0, "id": "a", "name": "f", "arguments": "{"}, {"index": 0, "id": "a", "name": "f", "arguments": "}"}]),
                vec!["a f {}"],
            ),
            (
                "name in halves",
                json!([{"index": 0, "id": "a", "name": "read_"}, {"index": 0, "name": "file"}, {"index": 0, "arguments": "{}"}]),
                vec!["a read_file {}"],
            ),
            (
                "id of each piece is new",
                json!([{"index": 0, "id": "a", "name": "f", "arguments": "{"}, {"index": 0, "id": "b", "arguments": "}"}]),
                vec!["a f {}"],
            ),
            ("no name", json!([{"index": 0, "id": "a", "arguments": "{}"}]), vec!["a unnamed {}"]),
            ("nothing", json!([{"index": 0, "id": "a"}]), vec![]),
            ("broken", json!([{"index": 0, "id": "a", "name": "f", "arguments": "{\"x"}]), vec!["a f {\"x"]),
        ];
        for (name, deltas, expected) in cases {
            assert_eq!(assembled(deltas), expected, "{name}");
        }
    }
}
