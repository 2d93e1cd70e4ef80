//! Reads what is in a session: events, and everything as JSON Lines. Needs no lock and changes nothing.

use std::io::Write;

use alisio_protocol::{Event, EventId, SessionId};
use rusqlite::{Row, params};
use serde_json::{Value, json};

use crate::content::Blobs;
use crate::sessions::existing_key;
use crate::{Store, StoreError, load};

const EVENT_COLUMNS: &str =
    "SELECT seq, run, run_seq, version, type, data, refs, timestamp, correlation_id FROM events";
/// How many events an export reads at once.
const PAGE: usize = 500;

impl Store {
    /// Returns events of a session in order, from the one after `after`, at most `limit`. Events of kinds that this
    /// version does not know are left out.
    ///
    /// # Errors
    /// [`StoreError::NoSession`], or when the database fails.
    pub fn events(
        &self,
        session: &SessionId,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let (lines, _) = self.event_lines(session, after.map_or(0, |id| id.0), limit)?;
        Ok(lines.into_iter().filter_map(|line| serde_json::from_value(line).ok()).collect())
    }

    /// Writes a session as JSON Lines: its durable events in order, then a line a message as stored.
    ///
    /// # Errors
    /// [`StoreError::NoSession`], or when the database or `out` fails.
    pub fn export(&self, session: &SessionId, out: &mut dyn Write) -> Result<(), StoreError> {
        let mut after = 0;
        loop {
            let (lines, last) = self.event_lines(session, after, PAGE)?;
            for line in lines {
                write_line(out, &line)?;
            }
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
        for stored in self.stored_messages(session)? {
            let line = match stored.message {
                Ok(message) => serde_json::to_value(message)?,
                Err(why) => json!({"role": "unreadable", "reason": why}),
            };
            write_line(out, &line)?;
        }
        Ok(())
    }

    fn stored_messages(&self, session: &SessionId) -> Result<Vec<load::StoredMessage>, StoreError> {
        self.read(|connection| {
            let key = existing_key(connection, session)?;
            load::stored_messages(connection, &self.inner.blobs, key)
        })
    }

    fn event_lines(
        &self,
        session: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<Value>, Option<u64>), StoreError> {
        self.read(|connection| {
            let key = existing_key(connection, session)?;
            let sql = format!("{EVENT_COLUMNS} WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows =
                statement.query(params![key, after as i64, limit.min(i64::MAX as usize) as i64])?;
            let (mut lines, mut last) = (Vec::new(), None);
            while let Some(row) = rows.next()? {
                last = Some(row.get::<_, i64>(0)? as u64);
                lines.push(event_line(&self.inner.blobs, session, row)?);
            }
            Ok((lines, last))
        })
    }
}

fn event_line(blobs: &Blobs, session: &SessionId, row: &Row<'_>) -> Result<Value, StoreError> {
    let (data, refs): (String, Option<String>) = (row.get(5)?, row.get(6)?);
    let data = blobs.unpack(&data, refs.as_deref()).map_or(Value::Null, |unpacked| unpacked.value);
    let mut line = json!({
        "schemaVersion": row.get::<_, i64>(3)?,
        "runId": row.get::<_, String>(1)?,
        "sessionId": session,
        "seq": row.get::<_, i64>(2)?,
        "type": row.get::<_, String>(4)?,
        "timestamp": row.get::<_, String>(7)?,
        "eventId": row.get::<_, i64>(0)?.to_string(),
        "data": data,
    });
    if let Some(correlation) = row.get::<_, Option<String>>(8)? {
        line["correlationId"] = Value::String(correlation);
    }
    Ok(line)
}

fn write_line(out: &mut dyn Write, line: &Value) -> Result<(), StoreError> {
    out.write_all(format!("{line}\n").as_bytes()).map_err(StoreError::Output)
}
