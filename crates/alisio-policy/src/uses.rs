//! How often rules were used: what `rate_limit` counts. Times come in as arguments, in milliseconds from any fixed point.

use std::collections::HashMap;

use crate::rule::{Limit, RuleId};

/// Knows when rules let calls through.
pub trait Uses {
    /// Returns the times at which the rule let a call through, in any order; older ones than its window may be left out.
    /// `None` when nobody knows, which asks.
    fn times(&self, rule: &RuleId) -> Option<Vec<i64>>;
}

/// Knows nothing: what is limited asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownUses;

impl Uses for UnknownUses {
    fn times(&self, _: &RuleId) -> Option<Vec<i64>> {
        None
    }
}

/// Uses that are held in memory.
#[derive(Clone, Debug, Default)]
pub struct RecordedUses(HashMap<RuleId, Vec<i64>>);

impl RecordedUses {
    /// Adds one use of each rule.
    pub fn record(&mut self, rules: &[RuleId], now: i64) {
        for rule in rules {
            self.0.entry(rule.clone()).or_default().push(now);
        }
    }
}

impl Uses for RecordedUses {
    fn times(&self, rule: &RuleId) -> Option<Vec<i64>> {
        Some(self.0.get(rule).cloned().unwrap_or_default())
    }
}

/// Returns how many milliseconds are left until one more call may run; `None` when it may now.
///
/// A use that is exactly as old as the window still counts, and so does one from the future: a clock that was set back frees
/// nothing.
pub(crate) fn time_left(limit: Limit, times: &[i64], now: i64) -> Option<u64> {
    let window = i64::try_from(limit.window_ms).unwrap_or(i64::MAX);
    let mut counted: Vec<i64> =
        times.iter().copied().filter(|time| now.saturating_sub(*time) <= window).collect();
    let count = usize::try_from(limit.count).unwrap_or(usize::MAX);
    if counted.len() < count {
        return None;
    }
    counted.sort_unstable();
    // Once this one is too old there is room.
    let freeing = counted.get(counted.len() - count).copied().unwrap_or(now);
    let left = freeing.saturating_add(window).saturating_sub(now).saturating_add(1);
    Some(u64::try_from(left).unwrap_or(1))
}

/// Says a length of time, rounded up.
pub(crate) fn span(milliseconds: u64) -> String {
    let (minute, hour, day) = (60_000, 3_600_000, 86_400_000);
    match milliseconds {
        ms if ms < 1000 => format!("{ms} ms"),
        ms if ms <= 2 * minute => format!("{} s", ms.div_ceil(1000)),
        ms if ms <= 2 * hour => format!("{} min", ms.div_ceil(minute)),
        ms if ms <= 2 * day => format!("{} h", ms.div_ceil(hour)),
        ms => format!("{} days", ms.div_ceil(day)),
    }
}
