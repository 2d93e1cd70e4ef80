//! The environment of a child: a list of what is passed, so that nothing else is.

use std::ffi::OsString;

/// Tells an Alisio that was started by a tool which effects the run above it had: their words, joined by commas.
pub const CEILING_VARIABLE: &str = "ALISIO_CEILING";

/// Passed where set. None of these holds a key or a token by custom; proxies are missing because their addresses do.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "HOSTNAME",
    // What toolchains need to find themselves.
    "ANDROID_HOME",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CONDA_PREFIX",
    "DENO_DIR",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "M2_HOME",
    "MAVEN_HOME",
    "NVM_BIN",
    "NVM_DIR",
    "PKG_CONFIG_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYTHONPATH",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "UV_CACHE_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    // Certificates by path, and the folders of the desktop's standard.
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Set for every child: nobody sits at a terminal.
const SET: &[(&str, &str)] =
    &[("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// Makes the environment of children out of `own`, this process's. `ceiling` becomes [`CEILING_VARIABLE`].
pub fn environment(
    own: impl IntoIterator<Item = (OsString, OsString)>,
    ceiling: Option<&str>,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = own
        .into_iter()
        .filter(|(name, _)| {
            name.to_str().is_some_and(|name| PASSED.contains(&name) || name.starts_with("LC_"))
        })
        .collect();
    variables.extend(SET.iter().map(|(name, value)| (name.into(), value.into())));
    variables.extend(ceiling.map(|ceiling| (CEILING_VARIABLE.into(), ceiling.into())));
    variables
}
