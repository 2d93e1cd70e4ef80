//! Repositories that want to run something, or to show something that is not theirs.

use std::time::{Duration, Instant};

use crate::{Bench, gits};

/// A repository with one commit and one change; `$EVIL` is a program that leaves a mark and passes its input on.
const BASE: &str =
    "git init -q . ; printf 'one\\n' > a.txt; git add a.txt; git commit -qm one; printf 'two\\n' > a.txt\n";

/// What a repository does, and whether plain git falls for it: such a case would show a hole.
const CASES: &[(&str, &str, bool)] = &[
    ("file system monitor", "git config core.fsmonitor $EVIL", true),
    ("external diff", "git config diff.external $EVIL", true),
    (
        "external diff of a driver",
        "echo '*.txt diff=x' > .gitattributes; git config diff.x.command $EVIL",
        true,
    ),
    ("text conversion", "echo '*.txt diff=x' > .gitattributes; git config diff.x.textconv $EVIL", true),
    ("clean filter", "echo '*.txt filter=x' > .gitattributes; git config filter.x.clean $EVIL", true),
    ("filter process", "echo '*.txt filter=x' > .gitattributes; git config filter.x.process $EVIL", true),
    (
        "filter with a sign in its name",
        "echo '*.txt filter=a=b' > .gitattributes; git config filter.a=b.clean $EVIL",
        true,
    ),
    (
        "filter with dots and blanks",
        "echo '*.txt filter=a.b.c' > .gitattributes; git config 'filter.a.b.c.clean' $EVIL",
        true,
    ),
    (
        "filter named in the git directory",
        "mkdir -p .git/info; echo '*.txt filter=x' > .git/info/attributes; git config filter.x.clean $EVIL",
        true,
    ),
    (
        "included file",
        "printf '[core]\\nfsmonitor = %s\\n' $EVIL > .git/more; git config include.path more",
        true,
    ),
    (
        "included file on a condition",
        "printf '[core]\\nfsmonitor = %s\\n' $EVIL > more; git config includeIf.gitdir:/.path $PWD/more",
        true,
    ),
    (
        "configuration of a working tree",
        "git config core.repositoryformatversion 1; git config extensions.worktreeConfig true; printf '[core]\\nfsmonitor = %s\\n' $EVIL > .git/config.worktree",
        true,
    ),
    (
        "hook",
        "mkdir -p .git/hooks; cp $EVIL .git/hooks/post-index-change; touch b; git add b; touch -d 2001-01-01 b; rm -f $CANARY",
        true,
    ),
    (
        "hooks elsewhere",
        "mkdir h; cp $EVIL h/post-index-change; git config core.hooksPath h; touch b; git add b; touch -d 2001-01-01 b; rm -f $CANARY",
        true,
    ),
    (
        "submodule",
        "git init -q sub; git -C sub commit -q --allow-empty -m s; git add sub 2>/dev/null; git -C sub config core.fsmonitor $EVIL; rm -f $CANARY",
        true,
    ),
    (
        "submodule with a filter",
        "git init -q sub; cd sub; echo '* filter=x' > .gitattributes; echo a > f; git add .; git commit -qm s; git config filter.x.clean $EVIL; echo bb > f; cd ..; git add sub 2>/dev/null; rm -f $CANARY",
        true,
    ),
    (
        "lazy fetch",
        "rm .git/objects/$(git rev-parse HEAD:a.txt | sed 's,^..,&/,'); git config core.repositoryformatversion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url \"ext::$EVIL\"; git config protocol.ext.allow always",
        true,
    ),
    (
        "lazy fetch by ssh",
        "rm .git/objects/$(git rev-parse HEAD:a.txt | sed 's,^..,&/,'); git config core.repositoryformatversion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url ssh://h/x; git config core.sshCommand $EVIL",
        true,
    ),
    (
        "pager",
        "git config core.pager $EVIL; git config pager.status $EVIL; git config pager.diff $EVIL",
        false,
    ),
    ("alias", "git config alias.status \"!$EVIL\"; git config alias.diff \"!$EVIL\"", false),
    (
        "signature program",
        "git config gpg.program $EVIL; git config log.showSignature true; git config commit.gpgSign true",
        false,
    ),
    (
        "credentials and editor",
        "git config credential.helper $EVIL; git config core.editor $EVIL; git config core.askPass $EVIL; git config core.gitProxy $EVIL",
        false,
    ),
    (
        "value that would open a section",
        "git config diff.algorithm $'myers\\n[core]\\n\\tfsmonitor = '$EVIL || true; git config core.eol \"lf] fsmonitor=$EVIL\"",
        false,
    ),
];

fn evil(bench: &Bench) -> (std::path::PathBuf, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let (canary, evil) = (bench.outside().join("canary"), bench.outside().join("evil"));
    let script = format!(
        "#!/bin/sh\n: > {}\n[ -z \"$GIT_EXT_SERVICE\" ] || exit 1\nexec cat \"$@\" 2>/dev/null\n",
        canary.display()
    );
    std::fs::write(&evil, script).expect("a new file");
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    (canary, evil.display().to_string())
}

pub(crate) fn no_code_of_a_repository_runs() {
    for folder in gits() {
        for (name, script, is_hole) in CASES {
            let path = format!("{folder}:/usr/bin:/bin");
            let bench = Bench::with_path(&path);
            let (canary, evil) = evil(&bench);
            let variables =
                [("PATH", path.as_str()), ("EVIL", &evil), ("CANARY", canary.to_str().expect("UTF-8"))];
            let output = bench.make(&format!("{BASE}{script}"), &variables);
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            let _ = std::fs::remove_file(&canary);
            let status = bench.call("git_status", "{}");
            assert!(!canary.exists(), "{name}: git_status of {folder} ran it");
            let diff = bench.call("git_diff", "{}");
            assert!(!canary.exists(), "{name}: git_diff of {folder} ran it");
            bench.call("git_diff", r#"{"staged": true}"#);
            bench.call("git_diff", r#"{"path": "a.txt"}"#);
            assert!(!canary.exists(), "{name}: git_diff of {folder} ran it");
            assert!(status.text_projection().contains(" M a.txt"), "{name}: {status:?}");
            if name.starts_with("lazy") {
                assert!(diff.is_error, "{name}: {diff:?}");
            } else {
                assert!(diff.text_projection().contains("-one\n+two\n"), "{name}: {diff:?}");
            }
            if *is_hole {
                // A plain git that waits for an answer of the program has fallen for it already.
                let plain = "for c in status diff 'diff --cached'; do timeout -k 1 2 git $c || true; done";
                bench.make(plain, &variables);
                assert!(
                    canary.exists(),
                    "{name}: plain git of {folder} does not fall for it, so the case proves nothing"
                );
            }
        }
    }
}

pub(crate) fn nothing_of_another_repository_shows() {
    let secret = Bench::new();
    secret.make(&BASE.replace("one", "secret"), &[]);
    let there = secret.workspace.display().to_string();
    for (name, script, expected) in [
        ("working tree elsewhere", "git init -q .; git config core.worktree $THERE; touch mine", "?? mine\n"),
        ("git file", "echo \"gitdir: $THERE/.git\" > .git", "which does not belong to it"),
        (
            "git file to a common one",
            "mkdir g; echo $THERE/.git > g/commondir; echo $PWD/.git > g/gitdir; echo 'ref: refs/heads/master' > g/HEAD; echo 'gitdir: g' > .git",
            "which does not belong to it",
        ),
        ("git link", "ln -s $THERE/.git .git", "is a symbolic link"),
        (
            "index and objects through links",
            "git init -q .; rm -r .git/objects; ln -s $THERE/.git/objects $THERE/.git/index .git",
            "through a symbolic link",
        ),
        (
            "index through a link, objects as alternates",
            "git init -q .; echo $THERE/.git/objects > .git/objects/info/alternates; ln -s $THERE/.git/index .git",
            "through a symbolic link",
        ),
        (
            "branches through links",
            "git init -q .; echo $THERE/.git/objects > .git/objects/info/alternates; rm -r .git/refs .git/HEAD; ln -s $THERE/.git/refs $THERE/.git/HEAD .git",
            "through a symbolic link",
        ),
        (
            "one branch through a link",
            "git init -q .; echo $THERE/.git/objects > .git/objects/info/alternates; head=$(git symbolic-ref HEAD); ln -s $THERE/.git/$head .git/$head",
            "through a symbolic link",
        ),
        (
            "packed branches through a link",
            "git init -q .; echo $THERE/.git/objects > .git/objects/info/alternates; (cd $THERE && git pack-refs --all); ln -s $THERE/.git/packed-refs .git",
            "through a symbolic link",
        ),
        (
            "shared index through a link",
            "git init -q .; echo $THERE/.git/objects > .git/objects/info/alternates; (cd $THERE && git update-index --split-index); cp $THERE/.git/index .git; ln -s $THERE/.git/sharedindex.* .git",
            "through a symbolic link",
        ),
        (
            "head outside",
            "git init -q .; echo \"ref: refs/../../../x\" > .git/HEAD",
            "a HEAD that names no branch",
        ),
        (
            "extension from the future",
            "git init -q .; git config core.repositoryformatversion 1; git config extensions.magic x",
            "the extension `magic`",
        ),
        (
            "format from the future",
            "git init -q .; git config core.repositoryformatversion 9",
            "format version `9`",
        ),
    ] {
        let bench = Bench::new();
        let output = bench.make(script, &[("THERE", &there)]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let text = bench.text("git_status", "{}");
        assert!(text.contains(expected), "{name}: {text}");
        for input in ["{}", r#"{"staged": true}"#] {
            let text = bench.text("git_diff", input);
            assert!(!text.contains("secret"), "{name}: {text}");
        }
    }
}

pub(crate) fn a_pipe_holds_nobody_up() {
    for file in [".git/config", ".git/HEAD", ".git/index", ".git/packed-refs"] {
        let bench = Bench::new();
        bench.make(&format!("{BASE}git pack-refs --all; rm -f {file}; mkfifo {file}"), &[]);
        let begin = Instant::now();
        assert!(bench.call("git_status", "{}").is_error, "{file}");
        assert!(begin.elapsed() < Duration::from_secs(30), "{file}");
    }
}

pub(crate) fn a_device_takes_no_memory() {
    for script in [
        "ln -s /dev/zero .git/objects/info/alternates",
        "mkdir -p more/info; echo $PWD/more > .git/objects/info/alternates; ln -s /dev/zero more/info/alternates",
        "mkfifo .git/objects/info/alternates",
        "echo ../objects > .git/objects/info/alternates",
        "rm .git/info/exclude; ln -s /dev/zero .git/info/exclude",
        "truncate -s 2G .git/index",
    ] {
        let bench = Bench::new();
        let output = bench.make(&format!("{BASE}{script}"), &[]);
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        let begin = Instant::now();
        let result = bench.call("git_status", "{}");
        let is_device_ignored = script.contains("exclude");
        assert!(result.is_error || is_device_ignored, "{script}: {result:?}");
        assert!(begin.elapsed() < Duration::from_secs(30), "{script}");
    }
    // One that is in order goes on working.
    let bench = Bench::new();
    bench.make(&format!("{BASE}mkdir -p more/info; echo $PWD/more > .git/objects/info/alternates"), &[]);
    assert!(bench.text("git_status", "{}").starts_with(" M a.txt"));
}

pub(crate) fn git_is_never_taken_from_the_workspace() {
    let bench = Bench::with_path("$WORKSPACE/bin:bin:.:");
    let (canary, evil) = evil(&bench);
    bench.make(&format!("{BASE}mkdir bin; cp $EVIL bin/git; cp $EVIL git"), &[("EVIL", &evil)]);
    let result = bench.call("git_status", "{}");
    assert!(result.is_error && result.text_projection().contains("`git` was not found"), "{result:?}");
    assert!(!canary.exists());
}
