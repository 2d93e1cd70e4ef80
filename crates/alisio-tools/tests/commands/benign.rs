//! Ordinary repositories of every kind: what the tools say is what plain git says.

use crate::{Bench, gits};

const BASE: &str = "git init -q . ; mkdir -p d; for f in a b c d/e 'd/f g'; do echo \"$f\" > \"$f\"; done; git add .; git commit -qm one\n";

/// How the repository is made, and in which directory below it the tools work.
const CASES: &[(&str, &str, &str)] = &[
    ("clean", "", ""),
    (
        "changes of every kind",
        "echo x >> a; rm b; git mv c c2; echo y > d/e; git add d/e; echo z >> d/e; touch new; echo new > .gitignore; chmod +x 'd/f g'",
        "",
    ),
    ("staged", "echo x >> a; git add a; git rm -q b; cp a a2; git add a2", ""),
    ("no commit yet", "rm -rf .git; git init -q .; git add a; echo x > a", ""),
    ("detached", "git checkout -q --detach; echo x > a", ""),
    ("packed references", "git pack-refs --all; git gc -q; echo x > a; git add a", ""),
    (
        "branch in a folder",
        "git checkout -qb team/one/two; git pack-refs --all; echo x > a; git add a; git commit -qm two; echo y > b",
        "",
    ),
    (
        "conflict",
        "git checkout -qb o; echo o > a; git commit -qam o; git checkout -q -; echo m > a; git commit -qam m; git merge o || true",
        "",
    ),
    ("same second, same size", "for i in 1 2 3; do echo $i > a; git add a; echo 9 > a; done", ""),
    ("only a time stamp", "touch -d 2001-01-01 a b; echo x > c", ""),
    (
        "odd names",
        "printf x > $'tab\\t\\n\"quote'; printf x > é; git add .; printf y > é; mkdir ' '; touch ' /x'",
        "",
    ),
    ("binary", "printf 'a\\0b' > bin; git add bin; git commit -qm b; printf 'a\\0c' > bin", ""),
    ("links", "ln -s a l; git add l; git commit -qm l; ln -sf b l; ln -s /nowhere m", ""),
    (
        "line ends",
        "git config core.autocrlf true; printf 'a\\r\\nb\\r\\n' > w; git add w; git commit -qm w; printf 'a\\r\\nc\\r\\n' > w",
        "",
    ),
    (
        "attributes",
        "printf '*.t text eol=crlf\\nb -diff\\n' > .gitattributes; printf 'x\\n' > x.t; git add .; git commit -qm t; printf 'x\\r\\n' > x.t; echo y > b",
        "",
    ),
    ("mode ignored", "git config core.fileMode false; chmod +x a", ""),
    ("untracked hidden", "git config status.showUntrackedFiles no; touch new; echo x > a", ""),
    ("untracked all", "git config status.showUntrackedFiles all; mkdir -p u/v; touch u/v/w u/x", ""),
    (
        "excluded in the git directory",
        "mkdir -p .git/info; echo '*.log' > .git/info/exclude; touch a.log b.txt",
        "",
    ),
    ("prefixes", "git config diff.noprefix true; echo x > a", ""),
    ("intent to add", "echo n > n; git add -N n", ""),
    ("assumed unchanged", "git update-index --assume-unchanged a; echo x > a; echo x > b", ""),
    ("split index", "git update-index --split-index; echo x > a; git add a; echo y > b", ""),
    ("index version 4", "git update-index --index-version 4; echo x > a", ""),
    (
        "untracked cache",
        "git update-index --untracked-cache; git status >/dev/null; touch new; echo x > a",
        "",
    ),
    ("sparse checkout", "git sparse-checkout set --cone d; echo x > d/e", ""),
    ("sparse index", "git sparse-checkout set --cone --sparse-index d; echo x > d/e; echo y > a", ""),
    (
        "sha256",
        "rm -rf .git; git init -q --object-format=sha256 .; git add .; git commit -qm one; echo x > a; git add a; echo y > b",
        "",
    ),
    (
        "reference tables",
        "rm -rf .git; git init -q --ref-format=reftable . 2>/dev/null || git init -q .; git add .; git commit -qm one; echo x > a; git add a; echo y > b",
        "",
    ),
    (
        "working tree of another",
        "git worktree add -q w -b w; echo x > w/a; touch w/new; cd w; git add a; echo y > b",
        "w",
    ),
    (
        "relative working tree",
        "git worktree add -q w -b w; (cd w; echo 'gitdir: ../.git/worktrees/w' > .git; echo x > a)",
        "w",
    ),
    (
        "submodule, and its commit",
        "git init -q ../lib; git -C ../lib commit -q --allow-empty -m s; git -c protocol.file.allow=always submodule -q add ../lib lib; git commit -qm s; git -C lib commit -q --allow-empty -m t",
        "",
    ),
    (
        "inside a submodule",
        "git init -q ../lib; echo s > ../lib/s; git -C ../lib add s; git -C ../lib commit -q -m s; git -c protocol.file.allow=always submodule -q add ../lib lib; echo x > lib/s; touch lib/new",
        "lib",
    ),
    ("repository inside", "git init -q inner; touch inner/x; git init -q empty", ""),
    ("below the top", "echo x > d/e; echo x > a; touch d/new new", "d"),
    (
        "shallow",
        "git commit -q --allow-empty -m two; git clone -q --depth 1 file://$PWD s; echo x > s/a",
        "s",
    ),
    ("borrowed objects", "git clone -q -s . s; echo x > s/a; touch s/n", "s"),
];

pub(crate) fn answers_equal_those_of_plain_git() {
    for folder in gits() {
        for (name, script, below) in CASES {
            let path = format!("{folder}:/usr/bin:/bin");
            let top = Bench::with_path(&path);
            let output = top.make(&format!("{BASE}{script}"), &[("PATH", &path)]);
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            let bench = top.at(&top.workspace.join(below));
            let before = indexes(&top);
            let ours = [
                bench.call("git_status", "{}"),
                bench.call("git_diff", "{}"),
                bench.call("git_diff", r#"{"staged": true}"#),
            ];
            assert!(before == indexes(&top), "{name}: the index was written");
            let plain = [
                "git status --porcelain=v1 -- .",
                "git diff --no-ext-diff --no-textconv -- .",
                "git diff --no-ext-diff --no-textconv --cached -- .",
            ];
            for (ours, plain) in ours.iter().zip(plain) {
                let output = bench.make(plain, &[("PATH", &path)]);
                let expected = String::from_utf8_lossy(&output.stdout).into_owned();
                let expected =
                    match (expected.is_empty(), plain.contains("status"), plain.contains("--cached")) {
                        (false, ..) => expected,
                        (true, true, _) => "nothing changed: the working tree is clean".to_owned(),
                        (true, false, true) => "nothing is staged".to_owned(),
                        (true, false, false) => "no tracked file has changes that are not staged".to_owned(),
                    };
                assert_eq!(ours.text_projection(), expected, "{name}, {folder}/{plain}");
            }
        }
    }
}

/// The bytes of every index there is.
fn indexes(bench: &Bench) -> Vec<u8> {
    bench.make("find . -name index -path '*.git*' -exec cat {} +", &[]).stdout
}

pub(crate) fn what_is_no_working_tree_is_named() {
    for (script, expected) in [
        ("true", "is not in a git repository"),
        ("git init -q --bare .", "is a bare repository"),
        ("git init -q .; git config core.bare true", "it has no working tree"),
        ("mkdir .git", "is not in a git repository"),
        ("echo nonsense > .git", "does not belong to it"),
    ] {
        let bench = Bench::new();
        bench.make(script, &[]);
        let result = bench.call("git_status", "{}");
        assert!(result.is_error && result.text_projection().contains(expected), "{script}: {result:?}");
    }
}

pub(crate) fn paths_limit_a_diff() {
    let bench = Bench::new();
    bench.make(
        &format!("{BASE}echo x > a; echo x > d/e; echo '*' > ':(top)a'; git add ':(literal):(top)a'"),
        &[],
    );
    let files = |input: &str| {
        let text = bench.text("git_diff", input);
        text.lines().filter_map(|line| line.strip_prefix("+++ b/")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(files("{}"), ["a", "d/e"]);
    assert_eq!(files(r#"{"path": "d"}"#), ["d/e"]);
    assert_eq!(files(&format!(r#"{{"path": "{}/a"}}"#, bench.workspace.display())), ["a"]);
    assert_eq!(files(r#"{"path": ":(top)a", "staged": true}"#), [":(top)a"]);
    assert_eq!(files(r#"{"path": ":(top)a"}"#), Vec::<String>::new());
}
