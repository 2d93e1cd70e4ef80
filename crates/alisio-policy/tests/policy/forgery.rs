//! A permit can't be made up, copied or stored. Each program in `forged/` tries one way and must fail to compile for the
//! reason that its first line names; `honest.rs` must compile, so that the others don't fail for some other cause.
//!
//! The compiler is asked directly, with the library that this very test was linked with: a second build of it, as the
//! usual crates for such tests make, would take longer than all other tests of this crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy/forged")
}

/// The folder with the compiled libraries: that of this test.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Builds of the library, newest first. There may be old ones beside the one that we were linked with.
fn builds() -> Vec<PathBuf> {
    let mut builds: Vec<(SystemTime, PathBuf)> = fs::read_dir(libraries())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| {
            let name = entry.file_name().into_string().unwrap_or_default();
            name.starts_with("libalisio_policy-") && name.ends_with(".rlib")
        })
        .map(|entry| (entry.metadata().unwrap().modified().unwrap(), entry.path()))
        .collect();
    builds.sort();
    builds.into_iter().rev().map(|(_, path)| path).collect()
}

#[expect(clippy::disallowed_methods, reason = "starts the compiler; nothing of the product runs")]
fn compile(program: &Path, library: &Path) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut crate_ = std::ffi::OsString::from("alisio_policy=");
    crate_.push(library);
    Command::new(option_env!("RUSTC").unwrap_or("rustc"))
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "--error-format",
            "short",
            "--out-dir",
        ])
        .arg(folder.path())
        .arg("-L")
        .arg(format!("dependency={}", libraries().display()))
        .arg("--extern")
        .arg(crate_)
        .arg(program)
        .output()
        .unwrap()
}

#[test]
fn forged_permits_do_not_compile() {
    let honest = programs().join("honest.rs");
    let mut told = String::from("no build of the library was found beside this test");
    let library = builds().into_iter().find(|library| {
        let output = compile(&honest, library);
        told = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success()
    });
    let library = library.unwrap_or_else(|| panic!("honest.rs must compile:\n{told}"));

    let mut n_programs = 0;
    for entry in fs::read_dir(programs()).unwrap() {
        let program = entry.unwrap().path();
        if program == honest {
            continue;
        }
        let text = fs::read_to_string(&program).unwrap();
        let code = text.lines().next().and_then(|line| line.strip_prefix("// error: ")).unwrap();
        let output = compile(&program, &library);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{} compiles", program.display());
        assert!(errors.contains(&format!("error[{code}]")), "{}:\n{errors}", program.display());
        n_programs += 1;
    }
    assert_eq!(n_programs, 6, "a program is missing from {}", programs().display());
}
