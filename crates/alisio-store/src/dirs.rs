//! Where configuration and state live, and the environment that says so.
//!
//! Nothing is created here and nothing is read from disk: the folders are made by whoever first writes into them, so that a
//! look (`--version`, `doctor`) leaves no trace. The environment is an argument, so that a test needs no global variable.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The environment variables that Alisio reads. An empty variable counts as unset.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// `None` stands for the variables of this process, read when asked for.
    fixed: Option<BTreeMap<String, OsString>>,
}

impl Env {
    /// The variables of this process.
    pub fn of_process() -> Self {
        Self { fixed: None }
    }

    /// Exactly these variables.
    pub fn fixed<N: Into<String>, V: Into<OsString>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        Self { fixed: Some(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()) }
    }

    /// Returns the value of a variable as it stands, unless it is empty.
    pub fn get_os(&self, name: &str) -> Option<OsString> {
        let value = match &self.fixed {
            None => std::env::var_os(name),
            Some(variables) => variables.get(name).cloned(),
        };
        value.filter(|value| !value.is_empty())
    }

    /// Returns the value of a variable as text, unless it is empty or not UTF-8.
    pub fn get(&self, name: &str) -> Option<String> {
        self.get_os(name)?.into_string().ok()
    }
}

/// Says why a folder could not be found.
#[derive(Debug, thiserror::Error)]
pub enum DirsError {
    /// No variable tells where the folder is.
    #[error("no place for Alisio's {what}: neither `{own}` nor `{xdg}` nor `HOME` is set")]
    NoHome {
        /// `configuration` or `state`.
        what: &'static str,
        /// Alisio's own variable.
        own: &'static str,
        /// The variable of the XDG base directories.
        xdg: &'static str,
    },
    /// A relative folder cannot be made absolute, since the working directory is gone.
    #[error("`{name}` is relative and the working directory cannot be found: {source}")]
    Relative {
        /// The variable.
        name: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The two folders that belong to the user. Absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// `ALISIO_CONFIG_HOME`, else `$XDG_CONFIG_HOME/alisio`, else `~/.config/alisio`.
    pub config_home: PathBuf,
    /// `ALISIO_STATE_HOME`, else `$XDG_STATE_HOME/alisio`, else `~/.local/state/alisio`.
    pub state_home: PathBuf,
}

impl Dirs {
    /// Finds both folders in the environment.
    ///
    /// # Errors
    /// When no variable names a folder.
    pub fn resolve(env: &Env) -> Result<Self, DirsError> {
        Ok(Self {
            config_home: folder(env, "configuration", "ALISIO_CONFIG_HOME", "XDG_CONFIG_HOME", ".config")?,
            state_home: folder(env, "state", "ALISIO_STATE_HOME", "XDG_STATE_HOME", ".local/state")?,
        })
    }

    /// The user's configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config_home.join("config.json")
    }

    /// The session database, unless `--db` names another.
    pub fn database(&self) -> PathBuf {
        self.state_home.join("sessions.sqlite")
    }
}

fn folder(
    env: &Env,
    what: &'static str,
    own: &'static str,
    xdg: &'static str,
    under_home: &str,
) -> Result<PathBuf, DirsError> {
    if let Some(path) = env.get_os(own) {
        return std::path::absolute(path).map_err(|source| DirsError::Relative { name: own, source });
    }
    // The XDG rules say that a relative path is to be ignored.
    if let Some(path) = env.get_os(xdg).map(PathBuf::from).filter(|path| path.is_absolute()) {
        return Ok(path.join("alisio"));
    }
    let home = env.get_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    match home {
        Some(home) => Ok(home.join(under_home).join("alisio")),
        None => Err(DirsError::NoHome { what, own, xdg }),
    }
}
