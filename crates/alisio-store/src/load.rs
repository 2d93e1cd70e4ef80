//! Reads a conversation and makes it fit to be sent, whatever state its rows are in.
//!
//! What comes out is balanced: the calls of an assistant message are followed by exactly one result each, in call
//! order. What is missing comes from the journal; what the journal does not know either was not run. No row is changed
//! but for calls without traces and without result, which are closed. Nothing is ever run from here.

use std::collections::VecDeque;

use alisio_protocol::{AssistantMessage, CallId, Effect, Message, ToolCall, ToolMessage, ToolResult};
use rusqlite::{Connection, params};
use serde::de::DeserializeOwned;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::content::{Blobs, Unpacked};
use crate::sessions::existing_key;
use crate::{Loaded, Store, StoreError, UncertainCall};

const NOT_RUN: &str = "not run: the run ended before it";
const INTERRUPTED: &str = "interrupted: the run ended before this call gave a result; it can be repeated";
const UNKNOWN: &str = "outcome unknown: the run ended while this call was at work, so it may have been done in full, \
                       in part or not at all; look at the state of things before repeating it";
const UNREADABLE: &str = "the stored result of this call can't be read";
const PREVIEW_LIMIT: usize = 200;

impl Store {
    /// Reads a conversation as [`SessionWriter::load`](crate::SessionWriter::load) does, without being its writer and
    /// without changing anything. For showing; a session that another process works on looks interrupted.
    ///
    /// # Errors
    /// [`StoreError::NoSession`], or when the database fails.
    pub fn view(&self, session: &alisio_protocol::SessionId) -> Result<Loaded, StoreError> {
        self.read(|connection| {
            let key = existing_key(connection, session)?;
            Ok(load(connection, &self.inner.blobs, key)?.0)
        })
    }
}

/// A row of the conversation.
pub(crate) struct StoredMessage {
    pub(crate) key: i64,
    pub(crate) run: String,
    /// The message, or what is wrong with the row.
    pub(crate) message: Result<Message, String>,
    /// What was lost from it.
    pub(crate) notes: Vec<String>,
}

/// A call of the journal that no message tells of.
struct JournalCall {
    key: i64,
    run: String,
    call: CallId,
    tool: String,
    effect: Effect,
    arguments: String,
    started_at: String,
    result: Option<ToolResult>,
}

/// A call to be closed in the journal.
pub(crate) struct Closing {
    key: i64,
    result: String,
    ended_at: String,
}

/// Reads the rows of a conversation, results put back in.
pub(crate) fn stored_messages(
    connection: &Connection,
    blobs: &Blobs,
    session: i64,
) -> Result<Vec<StoredMessage>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT m.key, m.run, m.role, m.call, m.body, m.refs, c.result, c.result_refs
         FROM messages m LEFT JOIN calls c ON c.key = m.call_key WHERE m.session = ?1 ORDER BY m.key",
    )?;
    let mut rows = statement.query([session])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let role: String = row.get(2)?;
        let text = |column| row.get_ref(column).ok().and_then(|value| value.as_str_or_null().ok().flatten());
        let mut notes = Vec::new();
        let message = match (role.as_str(), text(4)) {
            ("tool", body) => {
                let call = text(3).unwrap_or_default();
                let (body, refs) = match body {
                    Some(body) => (body, text(5)),
                    None => (text(6).unwrap_or_default(), text(7)),
                };
                // A call whose result is lost has run all the same, so it keeps its place.
                let result = read_result(blobs, body, refs).unwrap_or_else(|error| {
                    notes.push(format!("the result of call `{call}` can't be read: {error}"));
                    (ToolResult::error(UNREADABLE), false)
                });
                if result.1 {
                    notes.push(format!("a part of the result of call `{call}` is gone or damaged"));
                }
                Ok(Message::Tool(ToolMessage { call_id: CallId::new(call), result: result.0 }))
            }
            (_, Some(body)) => read_message(blobs, body, text(5), &mut notes),
            (_, None) => Err("it is empty".to_owned()),
        };
        messages.push(StoredMessage { key: row.get(0)?, run: row.get(1)?, message, notes });
    }
    Ok(messages)
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn read_result(blobs: &Blobs, body: &str, refs: Option<&str>) -> Result<(ToolResult, bool), String> {
    if refs.is_none() {
        return serde_json::from_str(body).map(|result| (result, false)).map_err(|error| error.to_string());
    }
    let Unpacked { value, missing } = blobs.unpack(body, refs).map_err(|error| error.to_string())?;
    Ok((read(value)?, !missing.is_empty()))
}

fn read_message(
    blobs: &Blobs,
    body: &str,
    refs: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Message, String> {
    if refs.is_none() {
        return serde_json::from_str(body).map_err(|error| error.to_string());
    }
    let Unpacked { value, missing } = blobs.unpack(body, refs).map_err(|error| error.to_string())?;
    let mut message = read(value)?;
    match &mut message {
        Message::User(prompt) => {
            let is_missing = |index: usize| missing.contains(&format!("/attachments/{index}/data"));
            let mut index = 0;
            prompt.attachments.retain(|_| {
                index += 1;
                !is_missing(index - 1)
            });
            if prompt.attachments.len() < index {
                notes.push("an image beside a prompt is gone or damaged; it was left out".to_owned());
            }
        }
        Message::Assistant(answer) => {
            if missing.iter().any(|pointer| pointer.starts_with("/items/")) {
                answer.items.clear();
                notes.push("kept reasoning of the model is gone or damaged; it was left out".to_owned());
            }
        }
        Message::Tool(_) => {}
    }
    if missing.iter().any(|pointer| pointer == "/text" || pointer.starts_with("/calls/")) {
        notes.push("a part of a message is gone or damaged".to_owned());
    }
    Ok(message)
}

fn journal(connection: &Connection, blobs: &Blobs, session: i64) -> Result<Vec<JournalCall>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT key, run, call, tool, effect, arguments, arguments_refs, started_at, result, result_refs FROM calls
         WHERE session = ?1 AND (in_message = 0 OR key NOT IN
             (SELECT call_key FROM messages WHERE session = ?1 AND call_key IS NOT NULL)) ORDER BY key",
    )?;
    let mut rows = statement.query([session])?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column).ok().and_then(|value| value.as_str_or_null().ok().flatten());
        let effect: String = row.get(4)?;
        let arguments = blobs.unpack(text(5).unwrap_or_default(), text(6));
        let result = text(8).map(|body| match read_result(blobs, body, text(9)) {
            Ok((result, _)) => result,
            Err(_) => ToolResult::error(UNREADABLE),
        });
        calls.push(JournalCall {
            key: row.get(0)?,
            run: row.get(1)?,
            call: CallId::new(row.get::<_, String>(2)?),
            tool: row.get(3)?,
            // An unknown word comes from a later version and may mean anything.
            effect: Effect::ALL
                .into_iter()
                .find(|known| known.as_str() == effect)
                .unwrap_or(Effect::External),
            arguments: arguments
                .ok()
                .and_then(|unpacked| unpacked.value[0].as_str().map(preview))
                .unwrap_or_default(),
            started_at: row.get(7)?,
            result,
        });
    }
    Ok(calls)
}

fn preview(text: &str) -> String {
    let line: String = text.chars().take(PREVIEW_LIMIT).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads and repairs; what is to be closed in the journal comes back beside the conversation.
pub(crate) fn load(
    connection: &Connection,
    blobs: &Blobs,
    session: i64,
) -> Result<(Loaded, Vec<Closing>), StoreError> {
    let told_to: i64 = connection
        .prepare_cached("SELECT told_to FROM sessions WHERE key = ?1")?
        .query_row([session], |row| row.get(0))?;
    let stored = stored_messages(connection, blobs, session)?;
    let mut repair = Repair { told_to, journal: journal(connection, blobs, session)?, ..Repair::default() };
    repair.close_and_list();
    repair.conversation(stored);
    Ok((repair.loaded, repair.closings))
}

#[derive(Default)]
struct Repair {
    told_to: i64,
    journal: Vec<JournalCall>,
    loaded: Loaded,
    closings: Vec<Closing>,
}

/// An assistant message whose calls are being answered.
struct Round {
    key: i64,
    run: String,
    calls: VecDeque<ToolCall>,
    answers: Vec<ToolMessage>,
}

impl Repair {
    fn note(&mut self, key: i64, text: String) {
        if key > self.told_to {
            self.loaded.repairs.push(text);
        }
    }

    /// Gives each call without result one: those without traces are interrupted, the others uncertain.
    fn close_and_list(&mut self) {
        for call in self.journal.iter_mut().filter(|call| call.result.is_none()) {
            if call.effect.leaves_traces() {
                call.result = Some(ToolResult::error(UNKNOWN));
                self.loaded.uncertain.push(UncertainCall {
                    call: call.call.clone(),
                    tool: call.tool.clone(),
                    effect: call.effect,
                    arguments: call.arguments.clone(),
                    started_at: call.started_at.clone(),
                });
                continue;
            }
            let result = ToolResult::error(INTERRUPTED);
            self.closings.push(Closing {
                key: call.key,
                result: serde_json::to_string(&result).unwrap_or_default(),
                ended_at: call.started_at.clone(),
            });
            self.loaded.repairs.push(format!(
                "call `{}` of `{}` was interrupted; it left nothing behind",
                call.call, call.tool
            ));
            call.result = Some(result);
        }
    }

    fn conversation(&mut self, stored: Vec<StoredMessage>) {
        let mut rows: Vec<_> = stored.into_iter().map(Some).collect();
        let mut round: Option<Round> = None;
        for index in 0..rows.len() {
            let Some(row) = rows[index].take() else { continue };
            for note in row.notes {
                self.note(row.key, note);
            }
            match row.message {
                Err(why) => self.note(row.key, format!("a message can't be read and was left out: {why}")),
                Ok(Message::Tool(answer)) => match &mut round {
                    Some(open) if open.wants(&answer.call_id) => open.answers.push(answer),
                    _ => self.note(
                        row.key,
                        format!(
                            "a result for call `{}` was left out: no call is waiting for it",
                            answer.call_id
                        ),
                    ),
                },
                Ok(Message::User(prompt)) => {
                    self.finish(round.take(), &mut rows[index + 1..]);
                    self.loaded.messages.push(Message::User(prompt));
                }
                Ok(Message::Assistant(answer)) => {
                    // The calls of this answer, where it has any, are the nearer ones for what follows.
                    let until = if answer.calls.is_empty() { rows.len() } else { index + 1 };
                    self.finish(round.take(), &mut rows[index + 1..until]);
                    round = self.assistant(row.key, row.run, answer);
                }
            }
        }
        self.finish(round, &mut []);
    }

    fn assistant(&mut self, key: i64, run: String, mut answer: AssistantMessage) -> Option<Round> {
        if answer.text.is_empty() && answer.calls.is_empty() && answer.items.is_empty() {
            self.note(key, "an empty answer of the model was left out".to_owned());
            return None;
        }
        for call in &mut answer.calls {
            let is_object = call.arguments.trim_start().starts_with('{')
                && serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok();
            if !is_object {
                call.arguments = "{}".to_owned();
                let text = format!("the input of call `{}` can't be read and was left out", call.id);
                self.note(key, text);
            }
        }
        let calls: VecDeque<_> = answer.calls.iter().cloned().collect();
        self.loaded.messages.push(Message::Assistant(answer));
        (!calls.is_empty()).then_some(Round { key, run, calls, answers: Vec::new() })
    }

    /// Puts one result a call behind the assistant message. One that is missing may stand later, among `rest`.
    fn finish(&mut self, round: Option<Round>, rest: &mut [Option<StoredMessage>]) {
        let Some(Round { key, run, calls, mut answers }) = round else { return };
        for call in calls {
            let answer = answers
                .iter()
                .position(|answer| answer.call_id == call.id)
                .map(|index| answers.remove(index));
            let answer = answer.or_else(|| self.late_answer(key, &call.id, rest));
            let answer = match answer {
                Some(answer) => answer,
                None => ToolMessage { result: self.missing_result(key, &run, &call), call_id: call.id },
            };
            self.loaded.messages.push(Message::Tool(answer));
        }
    }

    /// Takes a result from behind other messages, as far as the next message with calls.
    fn late_answer(
        &mut self,
        key: i64,
        call: &CallId,
        rest: &mut [Option<StoredMessage>],
    ) -> Option<ToolMessage> {
        for row in rest {
            match row.as_ref().map(|row| &row.message) {
                Some(Ok(Message::Assistant(answer))) if !answer.calls.is_empty() => return None,
                Some(Ok(Message::Tool(answer))) if answer.call_id == *call => {
                    self.note(key, format!("the result of call `{call}` stood in the wrong place"));
                    let Some(Ok(Message::Tool(answer))) = row.take().map(|row| row.message) else {
                        return None;
                    };
                    return Some(answer);
                }
                _ => {}
            }
        }
        None
    }

    fn missing_result(&mut self, key: i64, run: &str, call: &ToolCall) -> ToolResult {
        let known = self.journal.iter().position(|known| known.call == call.id && known.run == run);
        let Some(result) = known.and_then(|index| self.journal.remove(index).result) else {
            self.note(
                key,
                format!("call `{}` of `{}` was not run: the run ended before it", call.id, call.name),
            );
            return ToolResult::error(NOT_RUN);
        };
        if result == ToolResult::error(UNKNOWN) {
            self.note(key, format!("the outcome of call `{}` of `{}` is unknown", call.id, call.name));
        } else if result != ToolResult::error(INTERRUPTED) {
            self.note(
                key,
                format!("the result of call `{}` of `{}` came from the journal", call.id, call.name),
            );
        }
        result
    }
}

impl Round {
    fn wants(&self, id: &CallId) -> bool {
        let asked = self.calls.iter().filter(|call| call.id == *id).count();
        asked > self.answers.iter().filter(|answer| answer.call_id == *id).count()
    }
}

/// Closes calls in the journal, unless a result came in between.
pub(crate) fn close(connection: &Connection, closings: &[Closing]) -> Result<(), StoreError> {
    let sql =
        "UPDATE calls SET result = ?2, result_refs = NULL, ended_at = ?3 WHERE key = ?1 AND result IS NULL";
    let mut statement = connection.prepare_cached(sql)?;
    for closing in closings {
        statement.execute(params![closing.key, closing.result, closing.ended_at])?;
    }
    Ok(())
}

/// Records the unknown outcome of every uncertain call.
pub(crate) fn acknowledge(
    connection: &Connection,
    session: i64,
    now: &str,
) -> Result<Vec<CallId>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT key, call, effect FROM calls
         WHERE session = ?1 AND result IS NULL AND (in_message = 0 OR key NOT IN
             (SELECT call_key FROM messages WHERE session = ?1 AND call_key IS NOT NULL)) ORDER BY key",
    )?;
    let open: Vec<(i64, String, String)> = statement
        .query_map([session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let result = serde_json::to_string(&ToolResult::error(UNKNOWN))?;
    let mut acknowledged = Vec::new();
    for (key, call, effect) in open {
        if effect == Effect::Read.as_str() || effect == Effect::Internal.as_str() {
            continue;
        }
        close(connection, &[Closing { key, result: result.clone(), ended_at: now.to_owned() }])?;
        acknowledged.push(CallId::new(call));
    }
    Ok(acknowledged)
}
