//! Remembered answers, as rows: making one from a question, finding those that count, taking one back.
//!
//! What a grant covers among the questions that wait is decided here, narrowly: where it can't be told, the question
//! stays open. What a grant means for a later call is for the gate.

use std::path::Path;

use alisio_protocol::{Approval, Effect, Facts, Grant, Life, Part, SessionId, Width};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use crate::approvals::{find, stamp};
use crate::sessions::path_value;
use crate::{Durability, LedgerEntry, Store, StoreError, ledger};

const TAKEN_BACK: &str = "somebody took the grant back";

impl Store {
    /// Returns the grants that count in a session now, oldest first: its own, and those kept for the workspace.
    ///
    /// # Errors
    /// When the database fails.
    pub fn grants(
        &self,
        session: &SessionId,
        workspace: &Path,
        now_ms: i64,
    ) -> Result<Vec<Grant>, StoreError> {
        self.read(|connection| {
            // In two parts, so that each finds its index.
            let own = "life = 'session' AND session = ?1";
            let kept = "life = 'kept' AND workspace = ?1";
            let lives = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)";
            let mut grants = select(
                connection,
                &format!("WHERE {own} AND {lives} ORDER BY key"),
                &[&session.as_str(), &now_ms],
            )?;
            grants.extend(select(
                connection,
                &format!("WHERE {kept} AND {lives} ORDER BY key"),
                &[&path_value(workspace), &now_ms],
            )?);
            grants.sort_by_key(|(key, _)| *key);
            Ok(grants.into_iter().map(|(_, grant)| grant).collect())
        })
    }

    /// Returns all grants that nobody took back, oldest first, also those that have expired.
    ///
    /// # Errors
    /// When the database fails.
    pub fn all_grants(&self) -> Result<Vec<Grant>, StoreError> {
        let grants =
            self.read(|connection| select(connection, "WHERE revoked_at IS NULL ORDER BY key", &[]))?;
        Ok(grants.into_iter().map(|(_, grant)| grant).collect())
    }

    /// Takes back the grant whose id is, or begins with, `prefix`. Calls that it let run are not undone.
    ///
    /// # Errors
    /// [`StoreError::NoGrant`], also for one that was taken back before; [`StoreError::AmbiguousId`].
    pub fn revoke_grant(&self, prefix: &str, now_ms: i64) -> Result<Grant, StoreError> {
        let missing = || StoreError::NoGrant(prefix.to_owned());
        self.write(Durability::Synced, |connection, _| {
            let id = find(connection, "grants", prefix)?.ok_or_else(missing)?;
            let (key, grant) = select(connection, "WHERE id = ?1 AND revoked_at IS NULL", &[&id])?
                .pop()
                .ok_or_else(missing)?;
            connection.execute("UPDATE grants SET revoked_at = ?2 WHERE key = ?1", [key, now_ms])?;
            ledger::append(connection, &entry_of(connection, key, &grant, now_ms)?)?;
            Ok(grant)
        })
    }
}

/// The ledger entry for a grant that is taken back.
fn entry_of(
    connection: &Connection,
    key: i64,
    grant: &Grant,
    now_ms: i64,
) -> Result<LedgerEntry, StoreError> {
    let text = |row: &Row<'_>, column| row.get::<_, String>(column);
    let (run, call, digest) =
        connection.query_row("SELECT run, call, digest FROM grants WHERE key = ?1", [key], |row| {
            Ok((text(row, 0)?, text(row, 1)?, text(row, 2)?))
        })?;
    Ok(LedgerEntry {
        at: stamp(now_ms)?,
        by: None,
        call: alisio_protocol::CallId::new(call),
        decision: None,
        digest: digest.parse().unwrap_or_else(|_| alisio_protocol::Sha256::of(digest.as_bytes())),
        effect: grant.effect,
        grant: Some(grant.id.clone()),
        kind: LedgerEntry::REVOKED.to_owned(),
        life: Some(grant.life),
        paths: Vec::new(),
        reason: TAKEN_BACK.to_owned(),
        request: None,
        run: alisio_protocol::RunId::new(run),
        session: grant.session_id.clone(),
        source: None,
        tool: grant.tool.clone(),
        verdict: None,
        width: Some(grant.width),
    })
}

/// Makes and keeps the grant that an answer to `approval` leaves.
pub(crate) fn create(
    connection: &Connection,
    approval: &Approval,
    width: Width,
    life: Life,
    expires_at: Option<i64>,
    now_ms: i64,
) -> Result<Grant, StoreError> {
    let workspace: Vec<u8> = connection
        .prepare_cached("SELECT CAST(workspace AS BLOB) FROM sessions WHERE id = ?1")?
        .query_row([approval.session_id.as_str()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| StoreError::NoSession(approval.session_id.as_str().to_owned()))?;
    let mut grant = Grant {
        id: format!("grant-{}", approval.request_id),
        session_id: approval.session_id.clone(),
        workspace: String::from_utf8_lossy(&workspace).into_owned(),
        width,
        life,
        tool: approval.tool.clone(),
        effect: approval.effect,
        program: None,
        directory: None,
        host: None,
        digest: None,
        created_at: now_ms,
        expires_at,
    };
    if !approval.widths.contains(&width) || !fill(&mut grant, approval) {
        let is_fit = |width: &Width| fill(&mut Grant { width: *width, ..grant.clone() }, approval);
        return Err(StoreError::WidthNotOffered {
            request_id: approval.request_id.clone(),
            offered: approval.widths.iter().copied().filter(is_fit).collect(),
        });
    }
    connection
        .prepare_cached(
            "INSERT INTO grants (id, session, workspace, life, expires_at, body, run, call, digest)
             SELECT ?2, id, workspace, ?3, ?4, ?5, ?6, ?7, ?8 FROM sessions WHERE id = ?1",
        )?
        .execute(params![
            approval.session_id.as_str(),
            grant.id,
            life_word(life),
            expires_at,
            serde_json::to_string(&grant)?,
            approval.run_id.as_str(),
            approval.call_id.as_str(),
            approval.digest.to_string(),
        ])?;
    Ok(grant)
}

/// Sets what the width speaks of; says whether the question tells it.
fn fill(grant: &mut Grant, approval: &Approval) -> bool {
    match grant.width {
        Width::Call => grant.digest = Some(approval.digest),
        Width::Program => grant.program = program_of(approval).map(str::to_owned),
        Width::Directory => grant.directory = approval.directory.clone().filter(|path| is_plain(path)),
        Width::Host => grant.host = host_of(approval),
        Width::Tool | Width::Effect => return true,
    }
    grant.digest.is_some() || grant.program.is_some() || grant.directory.is_some() || grant.host.is_some()
}

/// Says whether a grant covers a question. No width but [`Width::Effect`] reaches from one effect to all its tools;
/// program, directory and host stay within their effect, call and tool within their tool. Where it can't be told, it
/// does not. Whether the grant counts in the session, and still, is what [`Store::grants`] says.
pub fn covers(grant: &Grant, other: &Approval) -> bool {
    let is_same_tool = other.tool == grant.tool;
    let is_same_effect = other.effect == grant.effect;
    match grant.width {
        Width::Call => is_same_tool && grant.digest == Some(other.digest),
        Width::Program => {
            is_same_effect && grant.program.is_some() && program_of(other) == grant.program.as_deref()
        }
        Width::Directory => {
            is_same_effect
                && grant
                    .directory
                    .as_deref()
                    .zip(other.directory.as_deref())
                    .is_some_and(|(granted, asked)| is_plain(asked) && Path::new(asked).starts_with(granted))
        }
        Width::Host => is_same_effect && grant.host.is_some() && host_of(other) == grant.host,
        Width::Tool => is_same_tool,
        Width::Effect => is_same_effect,
    }
}

/// Whether a path means the same wherever and whenever it is read, links aside.
fn is_plain(path: &str) -> bool {
    Path::new(path).is_absolute() && path.split('/').all(|part| part != "..")
}

/// The one program that every part of the command is: the word as written, so that `./git` is not `git`.
fn program_of(approval: &Approval) -> Option<&str> {
    if approval.effect != Effect::Process {
        return None;
    }
    let Facts { parts, .. } = approval.facts.as_ref()?;
    let word = parts.first()?.argv.as_ref()?.first()?.as_str();
    let is_it = |part: &Part| {
        let first = part.argv.as_ref().and_then(|argv| argv.first());
        // An assignment before the program or a redirection could make more of it than the name says.
        first.is_some_and(|first| first == word)
            && part.program.is_some()
            && part.text.trim_start().starts_with(word)
            && !part.text.contains('>')
    };
    (!word.is_empty() && parts.iter().all(is_it)).then_some(word)
}

/// The one host that the call reaches, in lower case and without a port. Of a command, every part must reach it and
/// no other: what is done beside that is not about the host.
fn host_of(approval: &Approval) -> Option<String> {
    let Some(facts) = &approval.facts else { return host_in(&approval.target) };
    let first = host_in(facts.parts.first()?.hosts.first()?)?;
    let is_it = |host: &String| host_in(host).as_ref() == Some(&first);
    let are_it = |part: &Part| !part.hosts.is_empty() && part.hosts.iter().all(is_it);
    facts.parts.iter().all(are_it).then_some(first)
}

/// The host of a URL, or of a text that is nothing but a host and perhaps a port.
fn host_in(text: &str) -> Option<String> {
    let authority = match text.split_once("://") {
        Some((_, rest)) => rest.split(['/', '?', '#', '\\']).next()?.rsplit('@').next()?,
        None => text,
    };
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        // Several colons are an address of IPv6.
        None => match authority.split_once(':') {
            Some((host, port)) if !port.contains(':') => host,
            _ => authority,
        },
    };
    let is_fit = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'_'));
    is_fit.then(|| host.trim_end_matches('.').to_ascii_lowercase())
}

/// The wire word of a width.
pub(crate) fn width_word(width: Width) -> &'static str {
    match width {
        Width::Call => "call",
        Width::Program => "program",
        Width::Directory => "directory",
        Width::Host => "host",
        Width::Tool => "tool",
        Width::Effect => "effect",
    }
}

fn life_word(life: Life) -> &'static str {
    match life {
        Life::Session => "session",
        Life::Kept => "kept",
    }
}

fn select(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> Result<Vec<(i64, Grant)>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("SELECT key, body FROM grants {condition}"))?;
    let mut rows = statement.query(values)?;
    let mut grants = Vec::new();
    while let Some(row) = rows.next()? {
        let body = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        grants.push((row.get(0)?, serde_json::from_str(body)?));
    }
    Ok(grants)
}
