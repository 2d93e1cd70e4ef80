//! Two witnesses that know nothing of this crate: bash itself, which runs changed lines that were judged to be reads in
//! a folder where nothing but a canary can be touched, and another parser, which must not see a program that was missed.

#![expect(clippy::disallowed_methods, reason = "the witness is a process of its own in a folder of its own")]

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use alisio_shell::{Budget, Class, understand};

use crate::corpus::{HARDER, READ, lines};

/// A small generator of numbers, the same on every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % n.max(1)
    }
}

/// What is put into lines: each of these touches the canary if the shell takes it for a command or a redirection.
const CANARIES: &[&str] = &[
    "$(canary)",
    "`canary`",
    ";canary;",
    "|canary ",
    "&canary&",
    "\ncanary\n",
    ">canary.txt ",
    "<(canary)",
    "${x:-$(canary)}",
    "$((a[$(canary)]))",
    "\"$(canary)\"",
    "'$(canary)'",
    "\\$(canary)",
    "$'\\x24(canary)'",
    "[$(canary)]",
    "\\\ncanary ",
    "#\ncanary\n",
    "{canary,}",
    " canary ",
    "&>canary.txt",
    "<<E\n$(canary)\nE\n",
    "<<'E'\n$(canary)\nE\ncanary\n",
    "x=`canary`",
];

/// What is put in or taken away beside them, so that quotes and brackets no longer meet their partners.
const NOISE: &[&str] = &[
    "'", "\"", "\\", "`", "$", "(", ")", "{", "}", "#", "\n", " ", "!", "<<E\n", "$'", "\\'", "]]", "[[ ",
    "))",
];

fn mutated(dice: &mut Dice, line: &str) -> String {
    let mut text = line.to_owned();
    let at = |dice: &mut Dice, text: &str| {
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        starts[dice.below(starts.len())]
    };
    for _ in 0..=dice.below(3) {
        let place = at(dice, &text);
        if dice.below(3) == 0 {
            if place < text.len() {
                text.remove(place);
            }
        } else {
            text.insert_str(place, NOISE[dice.below(NOISE.len())]);
        }
    }
    let place = at(dice, &text);
    text.insert_str(place, CANARIES[dice.below(CANARIES.len())]);
    text
}

/// Programs of the corpus as shims that do nothing, so that only what the shell itself does is seen.
fn shims(folder: &Path) {
    let mut names = HashSet::new();
    for line in lines(READ).iter().chain(&lines(HARDER)) {
        for part in understand(line, &Budget::default()).parts {
            names.extend(part.program);
        }
    }
    for name in names
        .iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'))
    {
        std::os::unix::fs::symlink("/bin/true", folder.join(name)).expect("shims are new");
    }
    let canary = folder.join("canary");
    std::fs::write(&canary, "#!/bin/sh\n: > canary.txt\n").expect("the folder is ours");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&canary, mode).expect("the folder is ours");
}

#[test]
fn bash_touches_no_canary_in_a_line_judged_read() {
    if !Path::new("/bin/bash").exists() {
        return;
    }
    let root = tempfile::tempdir().expect("a temporary folder");
    let (programs, work) = (root.path().join("bin"), root.path().join("work"));
    std::fs::create_dir(&programs).expect("the folder is new");
    std::fs::create_dir(&work).expect("the folder is new");
    shims(&programs);
    // Loops that wait for something are left out, and so is what would run a real program by its path.
    let sources: Vec<String> = lines(READ)
        .into_iter()
        .chain(lines(HARDER))
        .filter(|line| {
            !line.contains("while")
                && !line.contains("until")
                && !line.contains("/bin/")
                && !line.contains("cd ")
        })
        .collect();
    let mut dice = Dice(20_24);
    let mut n_run = 0;
    for _ in 0..6_000 {
        let source = sources[dice.below(sources.len())].clone();
        let script = mutated(&mut dice, &source);
        let calls = script.contains("while") || script.contains("/bin/") || script.contains("cd ");
        if calls || understand(&script, &Budget::default()).class != Class::Read {
            continue;
        }
        n_run += 1;
        let mut child = Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c", &script])
            .env_clear()
            .env("PATH", &programs)
            .env("HOME", &work)
            .current_dir(&work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("bash starts");
        let begun = Instant::now();
        while child.try_wait().expect("it is our child").is_none() {
            if begun.elapsed() > Duration::from_secs(5) {
                child.kill().expect("it is our child");
                child.wait().expect("it is our child");
                break;
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        let touched: Vec<_> =
            std::fs::read_dir(&work).expect("the folder is there").flatten().map(|e| e.file_name()).collect();
        assert!(touched.is_empty(), "judged a read, but it made {touched:?}:\n{script}");
    }
    assert!(n_run > 150, "only {n_run} changed lines were judged to be reads");
}

#[test]
fn another_parser_sees_no_program_that_was_missed() {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).expect("the versions fit");
    let sources: Vec<String> = lines(READ).into_iter().chain(lines(HARDER)).collect();
    let mut dice = Dice(7);
    let mut n_compared = 0;
    for round in 0..6_000 {
        let source = &sources[dice.below(sources.len())].clone();
        let script = if round < 500 { source.clone() } else { mutated(&mut dice, source) };
        let facts = understand(&script, &Budget::default());
        if facts.class != Class::Read {
            continue;
        }
        let Some(tree) = parser.parse(&script, None) else { continue };
        if tree.root_node().has_error() {
            continue;
        }
        n_compared += 1;
        let mut nodes = vec![tree.root_node()];
        while let Some(node) = nodes.pop() {
            let mut cursor = node.walk();
            nodes.extend(node.children(&mut cursor));
            if node.kind() == "command_name" {
                let name = &script[node.byte_range()];
                assert!(!name.contains("canary"), "{name:?} is a command in {script:?}");
            }
        }
    }
    assert!(n_compared > 500, "only {n_compared} lines could be compared");
}
