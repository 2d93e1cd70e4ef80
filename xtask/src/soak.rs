//! The tests whose worth grows with their number, with numbers that are too long for every change.
//!
//! Each is an ordinary test that runs in `cargo test` with a small count and reads a larger one from the environment. A
//! line here says which tests and which count. The build is that of `cargo test`, so nothing is compiled twice: what
//! these tests wait for is the disk and other processes. `--release` takes the release build all the same.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// One line of the list.
struct Soak {
    /// What `cargo xtask soak NAME` calls it.
    name: &'static str,
    /// What a success shows.
    shows: &'static str,
    package: &'static str,
    /// Which tests: part of their name.
    filter: &'static str,
    /// Counts, as the tests read them.
    counts: &'static [(&'static str, &'static str)],
}

const LIST: &[Soak] = &[
    Soak {
        name: "crash",
        shows: "killed at random points, every session opens and tells the truth",
        package: "alisio",
        filter: "crash",
        counts: &[("ALISIO_CRASH_RUNS", "300")],
    },
    Soak {
        name: "approvals",
        shows: "kills on either side of an answer lose no decision and run nothing twice",
        package: "alisio",
        filter: "kills_on_either_side",
        counts: &[("ALISIO_CRASH_RUNS", "300")],
    },
    Soak {
        name: "edits",
        shows: "an edit leaves every other byte as it was",
        package: "alisio-tools",
        filter: "property",
        counts: CASES,
    },
    Soak {
        name: "policy",
        shows: "no flag, mode or child gets past the laws of the gate",
        package: "alisio-policy",
        filter: "laws::",
        counts: CASES,
    },
];

/// Proptest reads the second one itself.
const CASES: &[(&str, &str)] = &[("ALISIO_PROPTEST_CASES", "10000"), ("PROPTEST_CASES", "10000")];

/// Runs the named lines of the list, or all, to the end, and sums up.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let release = arguments.contains(&"--release");
    let names: Vec<&str> = arguments.iter().copied().filter(|argument| *argument != "--release").collect();
    if let Some(unknown) = names.iter().find(|name| !LIST.iter().any(|soak| soak.name == **name)) {
        let known: Vec<&str> = LIST.iter().map(|soak| soak.name).collect();
        bail!("there is no soak `{unknown}`; there are {}", known.join(", "));
    }
    let chosen = LIST.iter().filter(|soak| names.is_empty() || names.contains(&soak.name));
    let results: Vec<_> = chosen.map(|soak| Ok((soak, one(soak, release)?))).collect::<Result<_>>()?;

    println!("\n{:<9} {:<8} {:>6} {:>8}  what it shows", "soak", "result", "tests", "time");
    for (soak, result) in &results {
        let word = if result.passed() { "passed" } else { "FAILED" };
        let seconds = result.took.as_secs_f64();
        println!(
            "{:<9} {word:<8} {:>6} {seconds:>7.1}s  {} ({})",
            soak.name,
            result.n_passed,
            soak.shows,
            counts(soak)
        );
    }
    if results.iter().any(|(_, result)| !result.passed()) {
        bail!("not every soak passed");
    }
    Ok(())
}

struct Outcome {
    success: bool,
    n_passed: u64,
    took: Duration,
}

impl Outcome {
    /// A filter that matches no test is a failure too.
    fn passed(&self) -> bool {
        self.success && self.n_passed > 0
    }
}

fn one(soak: &Soak, release: bool) -> Result<Outcome> {
    println!("\n{}: {}", soak.name, counts(soak));
    let mut cargo = crate::cargo();
    cargo.args(["test", "--package", soak.package]);
    if release {
        cargo.arg("--release");
    }
    cargo.args([soak.filter, "--", "--nocapture"]).envs(soak.counts.iter().copied());
    let begin = Instant::now();
    let output = cargo.stderr(Stdio::inherit()).output().context("cargo could not be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    Ok(Outcome { success: output.status.success(), n_passed: n_passed(&text), took: begin.elapsed() })
}

fn counts(soak: &Soak) -> String {
    soak.counts.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Adds up what the test runners say at their ends.
fn n_passed(text: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.strip_prefix("test result: "))
        .filter_map(|line| line.split_once(" passed")?.0.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_added_up() {
        let text = "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out\n\
                    test result: FAILED. 3 passed; 1 failed; 0 ignored\ntest result: ok. 0 passed; 0 failed\n";
        assert_eq!(n_passed(text), 5);
        assert_eq!(n_passed("nothing of the kind"), 0);
    }

    #[test]
    fn names_are_unique_and_packages_exist() {
        for (index, soak) in LIST.iter().enumerate() {
            assert!(LIST[..index].iter().all(|other| other.name != soak.name), "{} stands twice", soak.name);
            assert!(crate::root().join("crates").join(soak.package).is_dir(), "there is no {}", soak.package);
        }
    }

    #[test]
    fn an_unknown_name_is_told() {
        let error = run(&["crsh"]).unwrap_err().to_string();
        assert!(error.starts_with("there is no soak `crsh`; there are crash"), "{error}");
    }
}
