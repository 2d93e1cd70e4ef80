//! Small rules for the sources, where no lint holds them.
//!
//! Formatting is rustfmt's and most habits are clippy's; this looks at what neither can see: files that grew too long,
//! tests that nobody runs, crates that don't say what they are, `unsafe` outside the one crate that may.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Longer files are warned about: split them by noun.
const LONG_FILE: usize = 1000;

/// The one crate with `unsafe` code. Tests are not shipped, and may need a system call that has no safe form.
const UNSAFE_CRATE: &str = "crates/alisio-host/";

/// Folders that hold nothing of ours.
const SKIPPED: &[&str] = &[".git", "dist", "node_modules", "target"];

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Worth a look.
    pub(crate) warnings: Vec<String>,
    /// Broken rules.
    pub(crate) errors: Vec<String>,
}

/// Looks at every Rust file below `root`.
pub(crate) fn look(root: &Path) -> Result<Findings> {
    let mut findings = Findings::default();
    for path in files(root, "rs")? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        look_at(&name, &text, &mut findings);
        forgotten_modules(&path, &name, &text, &mut findings)?;
    }
    Ok(findings)
}

fn look_at(name: &str, text: &str, findings: &mut Findings) {
    let n_lines = text.lines().count();
    if n_lines > LONG_FILE {
        findings
            .warnings
            .push(format!("{name} has {n_lines} lines; more than {LONG_FILE} is a sign to split it by noun"));
    }
    if is_crate_root(name) && !text.starts_with("//!") {
        findings.errors.push(format!("{name} does not open with what the crate does (`//!`)"));
    }
    for (index, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default().trim();
        let mut broken = |rule: &str| findings.errors.push(format!("{name}:{}: {rule}", index + 1));
        if code.starts_with("#[ignore") {
            broken("a test that nobody runs proves nothing: run it or remove it");
        }
        if code.starts_with("todo!") || code.starts_with("unimplemented!") {
            broken("unfinished code");
        }
        let is_unsafe = ["unsafe {", "unsafe fn ", "unsafe impl ", "unsafe extern "]
            .iter()
            .any(|word| code.find(word).is_some_and(|at| !code[..at].contains('"')));
        if is_unsafe && !name.starts_with(UNSAFE_CRATE) && !name.contains("/tests/") {
            broken("`unsafe` belongs into alisio-host");
        }
    }
}

fn is_crate_root(name: &str) -> bool {
    name.ends_with("src/lib.rs") || name.ends_with("src/main.rs")
}

/// A test file that its executable does not name is silently not run.
fn forgotten_modules(path: &Path, name: &str, text: &str, findings: &mut Findings) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    let is_test_root = path.file_name().is_some_and(|file| file == "main.rs")
        && folder.parent().and_then(Path::file_name).is_some_and(|parent| parent == "tests");
    if !is_test_root {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let sibling = entry?.path();
        let is_rust = sibling.extension().is_some_and(|extension| extension == "rs");
        let Some(stem) =
            sibling.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_rust && *stem != "main")
        else {
            continue;
        };
        if !text.lines().any(|line| line.trim() == format!("mod {stem};")) {
            findings
                .errors
                .push(format!("{name} does not name `mod {stem};`, so the tests in {stem}.rs never run"));
        }
    }
    Ok(())
}

/// Lists files below `root` by extension, sorted. Links are not followed.
pub(crate) fn files(root: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let skipped = SKIPPED.iter().any(|name| entry.file_name() == *name);
            if kind.is_dir() && !skipped {
                waiting.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        assert_eq!(look(&crate::root()).unwrap().errors, Vec::<String>::new());
    }

    #[test]
    fn broken_rules_are_found() {
        let cases: &[(&str, &str, &[&str])] = &[
            ("crates/a/src/lib.rs", "//! Says what it does.\nfn main() {}\n", &[]),
            (
                "crates/a/src/lib.rs",
                "fn main() {}\n",
                &["crates/a/src/lib.rs does not open with what the crate does (`//!`)"],
            ),
            (
                "crates/a/src/b.rs",
                "#[test]\n#[ignore = \"slow\"]\nfn f() { }\n",
                &["crates/a/src/b.rs:2: a test that nobody runs proves nothing: run it or remove it"],
            ),
            (
                "crates/a/src/b.rs",
                "    todo!()\n// todo! is a word\n",
                &["crates/a/src/b.rs:1: unfinished code"],
            ),
            (
                "crates/a/src/b.rs",
                "let x = unsafe { f() };\nlet y = \"unsafe { no }\";\n",
                &["crates/a/src/b.rs:1: `unsafe` belongs into alisio-host"],
            ),
            ("crates/alisio-host/src/b.rs", "let x = unsafe { f() };\n", &[]),
            ("crates/a/tests/b.rs", "let x = unsafe { f() };\n", &[]),
        ];
        for (name, text, expected) in cases {
            let mut findings = Findings::default();
            look_at(name, text, &mut findings);
            assert_eq!(findings.errors, *expected, "{text}");
        }
        let mut findings = Findings::default();
        look_at("a.rs", &"\n".repeat(LONG_FILE + 1), &mut findings);
        assert_eq!(findings.warnings.len(), 1);
    }

    #[test]
    fn a_forgotten_test_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let tests = folder.path().join("tests/it");
        fs::create_dir_all(tests.join("data")).unwrap();
        fs::write(tests.join("main.rs"), "mod kept;\n").unwrap();
        for name in ["kept.rs", "lost.rs", "data/no_module.rs"] {
            fs::write(tests.join(name), "").unwrap();
        }
        let errors = look(folder.path()).unwrap().errors;
        assert_eq!(errors, ["tests/it/main.rs does not name `mod lost;`, so the tests in lost.rs never run"]);
    }
}
