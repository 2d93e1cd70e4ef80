//! Compilers, interpreters and package managers: only what tells about them. Whatever might run code of the project is
//! unknown.

use super::{Case, Verdict};
use crate::options::Table;

/// Programs that print their version and end when that is all they are asked.
const VERSIONED: &[&str] = &[
    "cargo",
    "rustc",
    "rustup",
    "rustfmt",
    "node",
    "npm",
    "npx",
    "yarn",
    "pnpm",
    "bun",
    "deno",
    "tsc",
    "python",
    "python2",
    "python3",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "ruby",
    "gem",
    "bundle",
    "go",
    "gofmt",
    "java",
    "javac",
    "mvn",
    "gradle",
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "clang++",
    "make",
    "gmake",
    "cmake",
    "ninja",
    "meson",
    "perl",
    "php",
    "composer",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "terraform",
    "zsh",
    "fish",
    "gh",
    "aws",
    "gcloud",
    "psql",
    "sqlite3",
    "mysql",
    "curl",
    "wget",
    "ssh",
    "rsync",
    "openssl",
    "tar",
    "zip",
    "unzip",
    "gzip",
    "vim",
    "nvim",
    "emacs",
    "code",
    "tmux",
    "ffmpeg",
    "swift",
    "kotlin",
    "scala",
    "ghc",
    "cabal",
    "stack",
    "lua",
    "julia",
    "R",
    "dotnet",
    "mix",
    "elixir",
    "erl",
    "zig",
    "nim",
    "dart",
    "flutter",
    "pytest",
    "ruff",
    "mypy",
    "black",
    "eslint",
    "prettier",
    "shellcheck",
    "systemctl",
    "bc",
    "dc",
    "patch",
    "tee",
    "cp",
    "mv",
    "rm",
    "mkdir",
    "touch",
    "chmod",
    "gdb",
    "strace",
    "protoc",
    "nix",
    "brew",
    "apt",
    "apt-get",
    "dpkg",
    "rpm",
    "nginx",
];

const BINARY: Table = Table { short: "aAbBCdDghlnoprsStuVwWx", long: "help version", numbers: false };

pub(super) fn judge(case: &mut Case<'_>) -> Option<Verdict> {
    if case.is(&["--version"]) && VERSIONED.contains(&case.name) {
        return Some(case.read());
    }
    Some(match case.name {
        "python" | "python3" | "pip" | "pip3" | "cargo" | "rustc" | "perl" if case.is(&["-V"]) => {
            // `perl -V` prints its configuration.
            case.read()
        }
        "node" | "npm" | "yarn" | "pnpm" | "ruby" | "tsc" | "perl" | "php" | "gcc" | "clang" | "bun"
        | "make"
            if case.is(&["-v"]) =>
        {
            if case.name == "ruby" {
                case.unknown("without a script it waits for one")
            } else {
                case.read()
            }
        }
        "cargo" | "rustc" if case.is(&["-vV"]) || case.is(&["-Vv"]) => case.read(),
        "cargo" if case.is(&["--list"]) => case.read(),
        "java" | "javac" if case.is(&["-version"]) => case.read(),
        "go" if case.is(&["version"]) => case.read(),
        "go" if case.begins(&["env"]) => {
            let args = &case.args[1..];
            case.operands_only(args)
        }
        "rustup" if case.is(&["show"]) || case.is(&["toolchain", "list"]) || case.is(&["target", "list"]) => {
            case.read()
        }
        "pip" | "pip3" if case.is(&["list"]) || case.is(&["freeze"]) || case.begins(&["show"]) => {
            let args = case.args;
            case.operands_only(args)
        }
        "npm"
            if case.begins(&["ls"])
                || case.begins(&["list"])
                || case.is(&["root"])
                || case.is(&["prefix"]) =>
        {
            let table =
                Table { short: "g", long: "depth= global all json parseable prod dev", numbers: false };
            match table.split(&case.args[1..]) {
                Ok(_) => case.read(),
                Err(why) => case.unknown(why),
            }
        }
        "openssl" if case.is(&["version"]) => case.read(),
        "readelf" | "size" | "nm" | "objdump" => case.table(&BINARY),
        _ => return None,
    })
}
