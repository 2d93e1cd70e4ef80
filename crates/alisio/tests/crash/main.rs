//! Killed at any moment, Alisio opens again and tells the truth.
//!
//! Each run is a real one (a git repository, files, processes; only the model is scripted) that gets SIGKILL at a random
//! moment. Then: nothing lives on, every event that was seen is kept, no file is torn, the session opens and says what
//! is uncertain, goes on without repeating anything, and the ledger is whole. The second test kills the commands that
//! repair and clean.
//!
//! `ALISIO_CRASH_RUNS` says how many runs (30), `ALISIO_CRASH_SEED` repeats the one that a failure names. The moment is
//! given by the seed, what the machine does in it is not, so a repetition may need some runs.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests make files and start the binary themselves")]
#![allow(clippy::print_stdout, reason = "seeds and figures are what these tests print")]

mod cleaning;
mod rig;
mod run;
mod script;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a check found wrong.
type Failed = String;

/// Random numbers that a seed gives again (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// Which seeds to run.
fn seeds() -> Vec<u64> {
    let number =
        |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number is asked for"));
    let runs = number("ALISIO_CRASH_RUNS");
    match number("ALISIO_CRASH_SEED") {
        Some(seed) => vec![seed; usize::try_from(runs.unwrap_or(1)).expect("a small number")],
        None => {
            let first = u64::from(uuid::Uuid::now_v7().as_fields().0) << 16 | u64::from(std::process::id());
            (first..).take(usize::try_from(runs.unwrap_or(30)).expect("a small number")).collect()
        }
    }
}

/// Runs every seed, a few at a time, and fails with all that went wrong.
fn each_seed(what: &str, act: impl Fn(u64) -> Result<(), Failed> + Sync) {
    let seeds = seeds();
    println!("{what}: {} runs from seed {}", seeds.len(), seeds[0]);
    let failures = Mutex::new(Vec::new());
    let next = AtomicU64::new(0);
    let n_workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    if let Err(failed) = act(*seed) {
                        println!("seed {seed}: {failed}");
                        failures
                            .lock()
                            .expect("no thread panics with it")
                            .push(format!("seed {seed}: {failed}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no thread panics with it");
    assert!(
        failures.is_empty(),
        "{} of {} runs failed; repeat one with ALISIO_CRASH_SEED=N:\n{}",
        failures.len(),
        seeds.len(),
        failures.join("\n")
    );
}

/// Turns a condition into a finding.
fn check(condition: bool, what: impl FnOnce() -> String) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(what()) }
}
