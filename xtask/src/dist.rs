//! The release archive: binary, completions, manual page, texts and checksums.
//!
//! The same sources, toolchain and target give the same bytes: entries are sorted, owned by nobody, and dated by the
//! commit (or `SOURCE_DATE_EPOCH`).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// Completions of each shell and where they go in the archive.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "completions/alisio.bash"),
    ("fish", "completions/alisio.fish"),
    ("zsh", "completions/_alisio"),
];

/// Texts at the root that go along.
const TEXTS: &[&str] = &["CHANGELOG.md", "LICENSE", "README.md"];

/// One file of the archive.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    /// Its path below the archive's folder.
    path: String,
    bytes: Vec<u8>,
    executable: bool,
}

/// Builds the binary and packs it.
pub(crate) fn run(target: Option<&str>) -> Result<()> {
    let host = host_target()?;
    let target = target.unwrap_or(&host);
    let binary = build((target != host).then_some(target))?;
    let entries = entries(&binary, target == host)?;

    let name = format!("alisio-{}-{target}", env!("CARGO_PKG_VERSION"));
    let folder = crate::root().join("dist");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let path = folder.join(format!("{name}.tar.gz"));
    let archive = archive(&name, entries, source_time()?)?;
    fs::write(&path, &archive).with_context(|| path.display().to_string())?;
    let sums = checksums(&folder)?;
    fs::write(folder.join("SHA256SUMS"), &sums).context("`SHA256SUMS` could not be written")?;

    let size = fs::metadata(&binary)?.len();
    println!("{}: {} bytes, the binary alone {size}", path.display(), archive.len());
    print!("{sums}");
    Ok(())
}

/// Says what this machine's compiler builds for.
pub(crate) fn host_target() -> Result<String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.arg("-vV");
    let text = String::from_utf8(crate::output_of(rustc)?).context("`rustc -vV` did not print text")?;
    let host =
        text.lines().find_map(|line| line.strip_prefix("host: ")).context("`rustc -vV` names no host")?;
    Ok(host.to_owned())
}

/// Builds the binary; `target` only where it is not this machine's, so that no second folder is filled.
fn build(target: Option<&str>) -> Result<PathBuf> {
    let mut cargo = crate::cargo();
    cargo.args(["build", "--locked", "--profile", "dist", "--package", "alisio", "--bin", "alisio"]);
    cargo.args(target.map(|target| ["--target", target]).into_iter().flatten());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rustflags());
    // Cargo says itself where the binary went; a target folder may be set in several ways.
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let messages = String::from_utf8(crate::output_of(cargo)?).context("cargo did not print text")?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "alisio")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo built no binary `alisio`")
}

/// Keeps the folders of the machine that builds out of the binary. Flags of the environment stay.
fn rustflags() -> String {
    let given = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut flags: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let packages = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let folders = [(Some(crate::root()), "alisio"), (packages, "cargo")];
    for (folder, name) in folders.into_iter().filter_map(|(folder, name)| Some((folder?, name))) {
        flags.push(format!("--remap-path-prefix={}={name}", folder.display()));
    }
    flags.join("\u{1f}")
}

/// Collects what goes into the archive. Completions and the manual page come from the binary itself, so they are left
/// out, and said so, where it cannot run.
fn entries(binary: &Path, runs_here: bool) -> Result<Vec<Entry>> {
    let read = |path: &Path| fs::read(path).with_context(|| path.display().to_string());
    let mut entries = vec![Entry { path: "alisio".into(), bytes: read(binary)?, executable: true }];
    for text in TEXTS {
        entries.push(Entry {
            path: (*text).into(),
            bytes: read(&crate::root().join(text))?,
            executable: false,
        });
    }
    if !runs_here {
        eprintln!(
            "warning: a binary for another machine cannot print its completions and manual page: left out"
        );
        return Ok(entries);
    }
    let printed = |arguments: &[&str]| {
        let mut command = Command::new(binary);
        command.args(arguments);
        let bytes = crate::output_of(command)?;
        if bytes.is_empty() {
            bail!("`alisio {}` printed nothing", arguments.join(" "));
        }
        Ok(bytes)
    };
    for (shell, path) in COMPLETIONS {
        let bytes = printed(&["completions", shell])?;
        entries.push(Entry { path: (*path).into(), bytes, executable: false });
    }
    entries.push(Entry { path: "man/alisio.1".into(), bytes: printed(&["man"])?, executable: false });
    Ok(entries)
}

/// Packs `entries` below the folder `name`, all dated `seconds` after the epoch.
fn archive(name: &str, mut entries: Vec<Entry>, seconds: u64) -> Result<Vec<u8>> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    // Neither a name nor a time of its own in the gzip header.
    let gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let mut tar = tar::Builder::new(gzip);
    for entry in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(entry.bytes.len() as u64);
        header.set_mode(if entry.executable { 0o755 } else { 0o644 });
        header.set_mtime(seconds);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, format!("{name}/{}", entry.path), entry.bytes.as_slice())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Sums of every archive in the folder, as `sha256sum --check` reads them.
fn checksums(folder: &Path) -> Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok().filter(|name| name.ends_with(".tar.gz")));
    }
    names.sort();
    let mut text = Vec::new();
    for name in names {
        let digest = Sha256::digest(fs::read(folder.join(&name))?);
        for byte in digest {
            write!(text, "{byte:02x}")?;
        }
        writeln!(text, "  {name}")?;
    }
    Ok(String::from_utf8(text)?)
}

/// When the sources were made: `SOURCE_DATE_EPOCH`, else the commit's time, else the epoch.
fn source_time() -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text
            .parse()
            .with_context(|| format!("`SOURCE_DATE_EPOCH` is `{text}`, not a number of seconds"));
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(crate::root());
    let Ok(bytes) = crate::output_of(git) else { return Ok(0) };
    Ok(String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn entry(path: &str, text: &str, executable: bool) -> Entry {
        Entry { path: path.into(), bytes: text.into(), executable }
    }

    #[test]
    fn the_same_files_give_the_same_archive_in_any_order() {
        let files = || vec![entry("man/a.1", "page", false), entry("alisio", "binary", true)];
        let one = archive("alisio-1", files(), 1_700_000_000).unwrap();
        let other = archive("alisio-1", files().into_iter().rev().collect(), 1_700_000_000).unwrap();
        assert_eq!(one, other);

        let mut unpacked = tar::Archive::new(flate2::read::GzDecoder::new(one.as_slice()));
        let found: Vec<_> = unpacked
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                let header = entry.header();
                let path = entry.path().unwrap().display().to_string();
                (path, text, header.mode().unwrap(), header.mtime().unwrap())
            })
            .collect();
        assert_eq!(
            found,
            [
                ("alisio-1/alisio".into(), "binary".into(), 0o755, 1_700_000_000),
                ("alisio-1/man/a.1".into(), "page".into(), 0o644, 1_700_000_000),
            ]
        );
    }

    #[test]
    fn checksums_are_those_of_the_archives() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("b.tar.gz", ""), ("a.tar.gz", "a"), ("notes", "x")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(
            checksums(folder.path()).unwrap(),
            "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a.tar.gz\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b.tar.gz\n"
        );
    }
}
