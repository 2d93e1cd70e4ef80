//! When rules with a ceiling let calls through. A row a use, counted by rule across sessions and restarts.

use rusqlite::params;

use crate::{Store, StoreError, Tx};

impl Tx<'_> {
    /// Notes that a rule let a call through: to be done in the transaction that records the verdict. `rule` is its id,
    /// the same for as long as it says the same.
    ///
    /// # Errors
    /// When the database fails.
    pub fn rule_used(&self, rule: &str, now_ms: i64) -> Result<(), StoreError> {
        self.connection()
            .prepare_cached("INSERT INTO rule_uses (rule, at) VALUES (?1, ?2)")?
            .execute(params![rule, now_ms])?;
        Ok(())
    }
}

impl Store {
    /// Returns when the rule let calls through, from `since` on, in milliseconds since 1970, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub fn rule_uses(&self, rule: &str, since_ms: i64) -> Result<Vec<i64>, StoreError> {
        self.read(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT at FROM rule_uses WHERE rule = ?1 AND at >= ?2 ORDER BY at")?;
            let times = statement.query_map(params![rule, since_ms], |row| row.get(0))?;
            Ok(times.collect::<Result<_, _>>()?)
        })
    }
}
