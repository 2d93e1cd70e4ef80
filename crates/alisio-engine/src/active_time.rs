//! The clock of a run that stands still while a person is awaited.
//!
//! Waits may nest: the clock goes on, with what was left, when the last one is over. It measures on tokio's clock, so
//! that a test can move time by hand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Counts the active time of a run.
#[derive(Clone, Debug)]
pub struct ActiveTime {
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<()>>,
}

#[derive(Debug)]
struct State {
    limit: Duration,
    used: Duration,
    running_since: Option<Instant>,
    waits: u32,
}

impl ActiveTime {
    /// Starts the clock.
    pub fn start(limit: Duration) -> Self {
        let state = State { limit, used: Duration::ZERO, running_since: Some(Instant::now()), waits: 0 };
        Self { state: Arc::new(Mutex::new(state)), changed: Arc::new(watch::Sender::new(())) }
    }

    /// How much active time is used up.
    pub fn used(&self) -> Duration {
        self.state().used()
    }

    /// How much is left.
    pub fn left(&self) -> Duration {
        let state = self.state();
        state.limit.saturating_sub(state.used())
    }

    /// Stops the clock for as long as the guard lives.
    #[must_use]
    pub fn wait_for_person(&self) -> PersonWait {
        let mut state = self.state();
        state.waits += 1;
        if let Some(since) = state.running_since.take() {
            state.used += since.elapsed();
        }
        drop(state);
        self.changed.send_replace(());
        PersonWait(self.clone())
    }

    /// Comes back when the limit is used up.
    pub async fn expired(&self) {
        let mut changed = self.changed.subscribe();
        loop {
            let deadline = {
                let state = self.state();
                state.running_since.map(|since| since + state.limit.saturating_sub(state.used))
            };
            match deadline {
                Some(deadline) => tokio::select! {
                    () = tokio::time::sleep_until(deadline) => return,
                    _ = changed.changed() => (),
                },
                // The sender lives in `self`, so this never fails.
                None => drop(changed.changed().await),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn used(&self) -> Duration {
        self.used + self.running_since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// Keeps the clock of a run stopped.
#[derive(Debug)]
pub struct PersonWait(ActiveTime);

impl Drop for PersonWait {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waits -= 1;
        if state.waits == 0 {
            state.running_since = Some(Instant::now());
        }
        drop(state);
        self.0.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_of_a_person_is_not_counted_and_waits_nest() {
        let second = Duration::from_secs(1);
        let clock = ActiveTime::start(10 * second);
        tokio::time::advance(4 * second).await;
        let outer = clock.wait_for_person();
        let inner = clock.wait_for_person();
        tokio::time::advance(100 * second).await;
        drop(outer);
        tokio::time::advance(100 * second).await;
        assert_eq!(clock.left(), 6 * second);
        drop(inner);
        let started = Instant::now();
        clock.expired().await;
        let waited = started.elapsed();
        assert!(waited >= 6 * second && waited < 7 * second, "{waited:?}");
    }
}
