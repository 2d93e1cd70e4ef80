//! Chores of the repository, as `cargo xtask NAME`: what a shell script would be elsewhere.
//!
//! The checks here are also the tests of this package, so that `cargo test --workspace` covers them. Nothing here is
//! part of the product.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to whoever started it")]
#![expect(clippy::disallowed_methods, reason = "chores start cargo and write archives; no model is involved")]

mod dist;
mod layout;
mod licences;
mod links;
mod metadata;
mod soak;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::metadata::{Metadata, Platforms};

const USAGE: &str = "\
usage: cargo xtask CHORE

  check                     layout, licences and tidiness
  dist [--target TRIPLE]    the release archive with its checksums, in dist/
  soak [--release] [NAME…]  the tests with random input or timing, with long counts
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["check"] => check(),
        ["dist"] => dist::run(None),
        ["dist", "--target", target] => dist::run(Some(target)),
        ["soak", rest @ ..] => soak::run(rest),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs every check and lists everything that is wrong, not only the first.
fn check() -> Result<()> {
    let metadata = Metadata::load(Platforms::All)?;
    let tidy = tidy::look(&root())?;
    for warning in &tidy.warnings {
        eprintln!("warning: {warning}");
    }
    let mut errors = layout::violations(&metadata);
    errors.extend(licences::violations(&metadata));
    errors.extend(tidy.errors);
    errors.extend(links::violations(&root())?);
    for error in &errors {
        eprintln!("error: {error}");
    }
    if !errors.is_empty() {
        bail!("{} of the repository's rules are broken", errors.len());
    }
    println!("layout, licences of {} packages, tidiness and links are in order", metadata.packages.len());
    Ok(())
}

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// The cargo that started this, in the workspace's folder.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end and returns what it printed; its complaints go to our standard error.
fn output_of(mut command: Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("`{name}` could not be started"))?;
    if !output.status.success() {
        bail!("`{name}` ended with {}", output.status);
    }
    Ok(output.stdout)
}
