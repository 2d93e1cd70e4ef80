//! Finds `AGENTS.md` and its kin.
//!
//! One global file belongs to the person; then each directory from the root of the repository down to the working directory may speak
//! with one file, and directories below it when something in them is touched. Files are read anew each time: their hash tells whether
//! they changed, and no watching is needed.
//!
//! What it deliberately does not do: scan the repository, look above its root, follow a link out of it, open what is not a regular file,
//! or decide anything. A file instructs the model; it grants nothing.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use alisio_protocol::Sha256;
use alisio_sdk::{InstructionFile, InstructionKind, InstructionSource};

/// Names in one directory; the first that is there speaks.
const NAMES: &[(&str, InstructionKind)] = &[
    ("AGENTS.override.md", InstructionKind::Override),
    ("AGENTS.md", InstructionKind::Agents),
    ("AGENT.md", InstructionKind::Legacy),
    ("CLAUDE.md", InstructionKind::Claude),
];
/// Names in the configuration folder.
const GLOBAL_NAMES: &[(&str, InstructionKind)] =
    &[("AGENTS.override.md", InstructionKind::Override), ("AGENTS.md", InstructionKind::Agents)];
/// Bytes of one file that are read and hashed; a budget is far below.
const MOST_READ: u64 = 8 << 20;

/// The instruction files of one person and one workspace.
#[derive(Clone, Debug)]
pub struct InstructionFiles {
    config_home: PathBuf,
    root: PathBuf,
    working_directory: PathBuf,
    max_bytes: usize,
    claude_fallback: bool,
}

impl InstructionFiles {
    /// Looks for the root of the repository around `workspace`; without one, the workspace is the root.
    ///
    /// `max_bytes` bounds the texts of each answer together (`context.maxBytes`); `claude_fallback` lets `CLAUDE.md` speak where a
    /// directory has no other file.
    pub fn new(config_home: &Path, workspace: &Path, max_bytes: usize, claude_fallback: bool) -> Self {
        let working_directory = std::fs::canonicalize(workspace)
            .or_else(|_| std::path::absolute(workspace))
            .unwrap_or_else(|_| workspace.to_owned());
        let root = git_root(&working_directory).unwrap_or(&working_directory).to_owned();
        Self { config_home: config_home.to_owned(), root, working_directory, max_bytes, claude_fallback }
    }

    /// The directory above which nothing is looked at.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn in_directory(&self, directory: &Path) -> Option<InstructionFile> {
        let names = NAMES.iter().filter(|(_, kind)| *kind != InstructionKind::Claude || self.claude_fallback);
        names.copied().find_map(|(name, kind)| {
            let path = directory.join(name);
            // `AGENTS.md` is often a link to `CLAUDE.md` or to a shared file; it may not lead out of the repository.
            let real = std::fs::canonicalize(&path).ok().filter(|real| real.starts_with(&self.root))?;
            read(path, &real, Some(directory.to_owned()), kind)
        })
    }

    fn global(&self) -> Option<InstructionFile> {
        GLOBAL_NAMES.iter().copied().find_map(|(name, kind)| {
            let path = self.config_home.join(name);
            // The person's own file may be a link to anywhere.
            let real = std::fs::canonicalize(&path).ok()?;
            read(path, &real, None, kind)
        })
    }
}

impl InstructionSource for InstructionFiles {
    fn eager(&self) -> Vec<InstructionFile> {
        let mut directories: Vec<&Path> = self
            .working_directory
            .ancestors()
            .take_while(|directory| directory.starts_with(&self.root))
            .collect();
        directories.reverse();
        let local = directories.into_iter().filter_map(|directory| self.in_directory(directory));
        bounded(self.global().into_iter().chain(local).collect(), self.max_bytes)
    }

    fn nested(&self, path: &Path) -> Vec<InstructionFile> {
        let Some(real) = real_path(path) else { return Vec::new() };
        let mut directories: Vec<&Path> = real
            .ancestors()
            .take_while(|directory| directory.starts_with(&self.working_directory))
            .filter(|directory| *directory != self.working_directory && directory.is_dir())
            .collect();
        directories.reverse();
        let files = directories.into_iter().filter_map(|directory| self.in_directory(directory));
        bounded(files.collect(), self.max_bytes)
    }
}

/// Returns the nearest repository root at or above `directory`.
fn git_root(directory: &Path) -> Option<&Path> {
    let owner = directory.metadata().ok()?.uid();
    let user = rustix::process::geteuid().as_raw();
    directory.ancestors().find(|candidate| {
        let mark = candidate.join(".git");
        // In a shared folder anybody can put a `.git` above us, and an `AGENTS.md` beside it.
        let is_ours = mark.symlink_metadata().is_ok_and(|metadata| [owner, user].contains(&metadata.uid()));
        // A worktree and a submodule have a file there.
        is_ours && (mark.is_file() || mark.join("HEAD").symlink_metadata().is_ok())
    })
}

/// Resolves the links of a path whose end need not exist yet.
fn real_path(path: &Path) -> Option<PathBuf> {
    for ancestor in path.ancestors() {
        if let Ok(real) = std::fs::canonicalize(ancestor) {
            // What is not there yet has no links and, being normal names, no way up.
            let rest = path.strip_prefix(ancestor).ok()?;
            let is_plain = rest.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            return is_plain.then(|| if rest.as_os_str().is_empty() { real } else { real.join(rest) });
        }
    }
    None
}

/// Reads a regular file; `real` is where it is, without links.
fn read(
    path: PathBuf,
    real: &Path,
    scope: Option<PathBuf>,
    kind: InstructionKind,
) -> Option<InstructionFile> {
    // A pipe does not hold us, and a link put in the file's place in between is not followed.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(real).ok()?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let (bytes, truncated) = read_bounded(file)?;
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes)).into_owned();
    Some(InstructionFile { path, scope, kind, text, sha256: Sha256::of(&bytes), truncated })
}

fn read_bounded(file: File) -> Option<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    file.take(MOST_READ + 1).read_to_end(&mut bytes).ok()?;
    let truncated = bytes.len() as u64 > MOST_READ;
    bytes.truncate(MOST_READ as usize);
    Some((bytes, truncated))
}

/// Cuts texts so that together they keep to the budget: the closest first, the farther ones cut or emptied.
fn bounded(mut files: Vec<InstructionFile>, max_bytes: usize) -> Vec<InstructionFile> {
    let mut left = max_bytes;
    for file in files.iter_mut().rev() {
        if file.text.len() > left {
            let end = file.text.floor_char_boundary(left);
            // A whole line reads better than half of one, where there is a whole one.
            let end = file.text[..end].rfind('\n').map_or(end, |newline| newline + 1);
            file.text.truncate(end);
            file.truncated = true;
            // What is farther than a file that did not fit is left out, even where a few of its bytes would fit.
            left = 0;
        } else {
            left -= file.text.len();
        }
    }
    files
}

/// Writes the files for the model: who wins, then a block a directory. Empty for no files.
pub fn render(files: &[InstructionFile]) -> String {
    let speaks = |file: &&InstructionFile| file.truncated || !file.text.trim().is_empty();
    if !files.iter().any(|file| speaks(&file)) {
        return String::new();
    }
    let mut text = String::from(
        "Instructions from files of this person and project, the farthest first. Where they disagree, the closest file \
         wins, and what the person says in the conversation wins over every file. No file can grant a permission.\n",
    );
    for file in files.iter().filter(speaks) {
        let scope = match &file.scope {
            Some(directory) => attribute(directory),
            None => "everything".to_owned(),
        };
        let path = attribute(&file.path);
        // Writing into a `String` cannot fail.
        let _ = write!(text, "\n<instructions scope=\"{scope}\" file=\"{path}\">\n");
        // A file cannot end its own block and open another.
        text.push_str(&file.text.replace("</instructions", "<\\/instructions"));
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            text.push('\n');
        }
        if file.truncated {
            let what = if file.text.is_empty() { "left out" } else { "cut here" };
            let _ = writeln!(
                text,
                "[{what}: the instruction files together are larger than `context.maxBytes` allows; read `{path}` for the rest]"
            );
        }
        text.push_str("</instructions>\n");
    }
    text
}

fn attribute(path: &Path) -> String {
    path.display()
        .to_string()
        .chars()
        .flat_map(|c| match c {
            '"' | '<' | '>' => format!("\\{c}").chars().collect::<Vec<_>>(),
            c if c.is_control() => c.escape_unicode().collect(),
            c => vec![c],
        })
        .collect()
}
