//! A private git directory that stands for a repository's own: our configuration, its objects, a copy of its index.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{File, FileTimes};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use alisio_host::process::Exit;
use tempfile::TempDir;

use super::repository::{Repository, RepositoryError, open};
use super::{Git, GitError};

/// Keys that only say how files and objects are stored and compared. Their values are words and numbers.
const COPIED: &[&str] = &[
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.ignorestat",
    "core.precomposeunicode",
    "core.protecthfs",
    "core.protectntfs",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.trustctime",
    "diff.algorithm",
    "diff.context",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "diff.suppressblankempty",
    "extensions.objectformat",
    "extensions.refstorage",
    "index.sparse",
    "status.renamelimit",
    "status.renames",
    "status.showuntrackedfiles",
];
/// Extensions that change nothing in what we look at, or that we follow ourselves.
const HARMLESS: &[&str] = &[
    "extensions.compatobjectformat",
    "extensions.noop",
    "extensions.noop-v1",
    "extensions.partialclone",
    "extensions.preciousobjects",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
];
/// Bytes of a configuration file that we let git read.
const LONGEST_CONFIGURATION: u64 = 1024 * 1024;
/// Bytes of an index that we copy; the largest repositories have some hundred megabytes.
const LONGEST_INDEX: u64 = 1024 * 1024 * 1024;

pub(super) struct Mirror {
    folder: TempDir,
    repository: Repository,
}

impl Mirror {
    /// Makes the mirror of the repository that the workspace lies in. Goes away when it is dropped.
    pub(super) async fn make(git: &Git<'_>) -> Result<Self, GitError> {
        let root = git.root.to_owned();
        let mirror = blocking(move || {
            let repository = Repository::discover(&root)?;
            repository.check_own(&repository.common_dir.join("objects"))?;
            repository.check_alternates()?;
            repository.check_own(&repository.common_dir.join("config"))?;
            repository.check_own(&repository.git_dir.join("config.worktree"))?;
            let folder = tempfile::Builder::new()
                .prefix("alisio-git-")
                .tempdir()
                .map_err(|source| RepositoryError::File { path: std::env::temp_dir(), source })?;
            let mirror = Self { folder, repository };
            // Enough for `git config --file`, which looks at nothing else then.
            mirror.write("HEAD", b"ref: refs/heads/unborn\n")?;
            mirror.write("config", b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n")?;
            mirror.make_folder("refs")?;
            mirror.make_folder("info")?;
            mirror.make_folder("home")?;
            Ok::<_, RepositoryError>(mirror)
        })
        .await??;

        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let of_user =
            std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let of_user =
            of_user.or_else(|| Some(home.as_ref()?.join(".config"))).map(|folder| folder.join("git"));
        let mut user = BTreeMap::new();
        for file in [
            of_user.as_ref().map(|folder| folder.join("config")),
            home.as_ref().map(|home| home.join(".gitconfig")),
        ] {
            if let Some(file) = file.filter(|file| file.exists()) {
                user.extend(mirror.read_configuration(git, &file).await?);
            }
        }
        let mut own = mirror.read_configuration(git, &mirror.repository.common_dir.join("config")).await?;
        if own.get("extensions.worktreeconfig").is_some_and(|value| is_true(value)) {
            let file = mirror.repository.git_dir.join("config.worktree");
            if file.exists() {
                own.extend(mirror.read_configuration(git, &file).await?);
            }
        }
        let paths = ["excludesFile", "attributesFile"].into_iter().zip(["ignore", "attributes"]);
        let paths: Vec<(&str, PathBuf)> = paths
            .filter_map(|(key, default)| {
                let configured = user.get(&format!("core.{}", key.to_lowercase())).map(|value| {
                    match value.strip_prefix("~/") {
                        Some(rest) => home.clone().unwrap_or_default().join(rest),
                        None => PathBuf::from(value),
                    }
                });
                let file = configured.or_else(|| Some(of_user.as_ref()?.join(default)))?;
                file.is_file().then_some((key, file))
            })
            .collect();
        user.retain(|key, _| !key.starts_with("extensions.") && key != "core.repositoryformatversion");
        let text = configuration(user, &own, &paths)?;
        let uses_reftable = own.get("extensions.refstorage").is_some_and(|value| value == "reftable");
        blocking(move || {
            mirror.fill(uses_reftable)?;
            mirror.write("config", text.as_bytes())?;
            Ok::<_, RepositoryError>(mirror)
        })
        .await?
        .map_err(Into::into)
    }

    /// The whole environment of a git that sees the mirror and nothing else of this machine's settings.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let folder = self.folder.path();
        let own: [(&str, OsString); 6] = [
            ("GIT_DIR", folder.into()),
            ("GIT_WORK_TREE", self.repository.top.clone().into()),
            ("GIT_INDEX_FILE", folder.join("index").into()),
            ("GIT_OBJECT_DIRECTORY", self.repository.common_dir.join("objects").into()),
            ("HOME", folder.join("home").into()),
            ("XDG_CONFIG_HOME", folder.join("home").into()),
        ];
        let fixed = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_PAGER", "cat"),
        ];
        let fixed = fixed.map(|(name, value)| (name, value.into()));
        own.into_iter().chain(fixed).map(|(name, value)| (name.into(), value)).collect()
    }

    /// Names the repository's own folder where git names ours.
    pub(super) fn unmask(&self, text: &str) -> String {
        let ours = self.folder.path().display().to_string();
        text.replace(&ours, &self.repository.git_dir.display().to_string())
    }

    fn fill(&self, uses_reftable: bool) -> Result<(), RepositoryError> {
        let Repository { git_dir, common_dir, .. } = &self.repository;
        if uses_reftable {
            // Only git reads these tables. A linked working tree has two of them, which no mirror can join.
            if git_dir != common_dir {
                return Err(RepositoryError::Unknown("reference tables in a linked working tree".into()));
            }
            let tables = common_dir.join("reftable");
            self.link(&tables, "reftable")?;
            for table in tables.read_dir().into_iter().flatten().flatten() {
                self.repository.check_own(&table.path())?;
            }
        } else {
            self.write("HEAD", &self.repository.head()?)?;
        }
        self.link(&common_dir.join("info/exclude"), "info/exclude")?;
        self.link(&common_dir.join("info/attributes"), "info/attributes")?;
        self.link(&git_dir.join("info/sparse-checkout"), "info/sparse-checkout")?;
        let fail = |source| RepositoryError::File { path: git_dir.clone(), source };
        for entry in git_dir.read_dir().map_err(fail)?.flatten() {
            if let Some(name) = entry.file_name().to_str().filter(|name| name.starts_with("sharedindex.")) {
                self.link(&entry.path(), name)?;
            }
        }
        let index = git_dir.join("index");
        if index.exists() {
            let fail = |source| RepositoryError::File { path: index.clone(), source };
            self.repository.check_own(&index)?;
            self.copy_index(&index).map_err(fail)?;
        }
        Ok(())
    }

    fn copy_index(&self, index: &Path) -> io::Result<()> {
        let from = open(index)?;
        let mut to = File::options().write(true).create_new(true).open(self.folder.path().join("index"))?;
        if from.metadata()?.len() > LONGEST_INDEX {
            return Err(io::Error::other("it is larger than 1 GiB"));
        }
        io::copy(&mut (&from).take(LONGEST_INDEX), &mut to)?;
        // Git takes a file that is as young as the index for possibly changed, so the copy must not look younger.
        to.set_times(FileTimes::new().set_modified(from.metadata()?.modified()?))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RepositoryError> {
        let path = self.folder.path().join(name);
        let file = File::options().write(true).create(true).truncate(true).open(&path);
        file.and_then(|mut file| file.write_all(bytes))
            .map_err(|source| RepositoryError::File { path, source })
    }

    fn make_folder(&self, name: &str) -> Result<(), RepositoryError> {
        let path = self.folder.path().join(name);
        std::fs::create_dir(&path).map_err(|source| RepositoryError::File { path, source })
    }

    /// Links an ordinary file or folder, where there is one.
    fn link(&self, target: &Path, name: &str) -> Result<(), RepositoryError> {
        if !target.is_file() && !target.is_dir() {
            return Ok(());
        }
        self.repository.check_own(target)?;
        let path = self.folder.path().join(name);
        symlink(target, &path).map_err(|source| RepositoryError::File { path, source })
    }

    /// Lets git read one configuration file, without what it includes. The keys come in lower case as far as git
    /// folds them.
    async fn read_configuration(
        &self,
        git: &Git<'_>,
        file: &Path,
    ) -> Result<BTreeMap<String, String>, GitError> {
        let metadata =
            file.metadata().map_err(|source| RepositoryError::File { path: file.to_owned(), source })?;
        if !metadata.is_file() || metadata.len() > LONGEST_CONFIGURATION {
            return Err(GitError::Configuration(format!(
                "`{}` is no ordinary file up to 1 MiB",
                file.display()
            )));
        }
        let mut arguments: Vec<OsString> =
            ["config", "--no-includes", "--null", "--list", "--file"].map(Into::into).into();
        arguments.push(file.into());
        let finished = git.run(self, &arguments, None).await?;
        let (head, missing, tail) = finished.stdout.kept();
        if finished.exit != Exit::Code(0) || missing > 0 {
            let (said, ..) = finished.stderr.kept();
            return Err(GitError::Configuration(String::from_utf8_lossy(said).trim().to_owned()));
        }
        let text = [head, &tail].concat();
        // A key without a value means true.
        let entries = text.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).filter_map(|entry| {
            let (key, value) = match entry.iter().position(|byte| *byte == b'\n') {
                Some(end) => (&entry[..end], &entry[end + 1..]),
                None => (entry, &b"true"[..]),
            };
            Some((std::str::from_utf8(key).ok()?.to_owned(), std::str::from_utf8(value).ok()?.to_owned()))
        });
        Ok(entries.collect())
    }
}

/// Writes the configuration of the mirror.
fn configuration(
    user: BTreeMap<String, String>,
    own: &BTreeMap<String, String>,
    paths: &[(&str, PathBuf)],
) -> Result<String, GitError> {
    if own.get("core.bare").is_some_and(|value| is_true(value)) {
        return Err(RepositoryError::Unknown("`core.bare`, so that it has no working tree".into()).into());
    }
    match own.get("core.repositoryformatversion").map_or("0", String::as_str) {
        "0" | "1" => {}
        other => return Err(RepositoryError::Unknown(format!("format version `{other}`")).into()),
    }
    for key in own.keys().filter(|key| key.starts_with("extensions.")) {
        if !COPIED.contains(&key.as_str()) && !HARMLESS.contains(&key.as_str()) {
            return Err(
                RepositoryError::Unknown(format!("the extension `{}`", &key["extensions.".len()..])).into()
            );
        }
    }
    let mut text = String::from("[core]\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n");
    for (key, file) in paths {
        if let Some(file) = file.to_str().filter(|file| !file.contains(['\n', '\0'])) {
            let file = file.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "\t{key} = \"{file}\"");
        }
    }
    let mut values = user;
    values.extend(own.iter().map(|(key, value)| (key.clone(), value.clone())));
    for (key, value) in &values {
        let is_word = value.len() <= 64
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if let Some((section, name)) =
            key.split_once('.').filter(|_| COPIED.contains(&key.as_str()) && is_word)
        {
            let _ = writeln!(text, "[{section}]\n\t{name} = {value}");
        }
    }
    Ok(text)
}

fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1")
}

async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T, GitError> {
    tokio::task::spawn_blocking(act).await.map_err(|error| GitError::Broken(error.to_string()))
}
