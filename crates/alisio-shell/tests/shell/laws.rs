//! What holds for every text.

use alisio_shell::{Budget, Class, Facts, understand, understand_argv};
use proptest::prelude::*;

use crate::corpus::{EFFECT, HARDER, READ, lines};

/// A line is a read if and only if it has parts and each of them is one.
fn law(facts: &Facts) {
    let all_read = !facts.parts.is_empty() && facts.parts.iter().all(|part| part.class == Class::Read);
    assert_eq!(facts.class == Class::Read, all_read, "{facts:?}");
    assert!(!facts.reason.is_empty());
}

const EFFECTS: &[&str] =
    &["rm x", "touch y", "./ls", "ls > f", "git push", "find . -delete", "$x", "sort -o f f", "env rm x"];

#[test]
fn an_effect_beside_a_read_is_never_a_read() {
    for line in lines(READ).iter().chain(&lines(HARDER)) {
        for effect in EFFECTS {
            let made = [
                format!("{effect}; {line}"),
                format!("{effect} && {line}"),
                format!("{effect} | {line}"),
                format!("{effect} & {line}"),
                format!("{effect}\n{line}"),
                format!("{line}\n{effect}"),
                format!("echo $({effect}) | {line}"),
                format!("echo \"`{effect}`\"; {line}"),
                format!("cat <({effect}); {line}"),
                format!("if {effect}; then\n{line}\nfi"),
                format!("( {effect}\n{line}\n)"),
            ];
            for script in made {
                let facts = understand(&script, &Budget::default());
                law(&facts);
                assert_eq!(facts.class, Class::WriteOrUnknown, "{script:?}");
            }
            // At the end of a line a comment, a background sign or a here-document decides what is still a command.
            if !line.contains(['#', '\n']) && !line.ends_with('&') {
                for script in [
                    format!("{line}; {effect}"),
                    format!("{line} && {effect}"),
                    format!("{line} | {effect}"),
                    format!("{line} || {effect}"),
                    format!("{line}; echo $({effect})"),
                    format!("{line}; cat <<E\n$({effect})\nE"),
                ] {
                    let facts = understand(&script, &Budget::default());
                    assert_eq!(facts.class, Class::WriteOrUnknown, "{script:?}");
                }
            }
        }
    }
}

#[test]
fn every_prefix_and_suffix_obeys_the_law() {
    for line in lines(EFFECT).iter().chain(&lines(HARDER)) {
        for (at, _) in line.char_indices() {
            law(&understand(&line[..at], &Budget::default()));
            law(&understand(&line[at..], &Budget::default()));
        }
    }
}

#[test]
fn past_the_budget_the_answer_is_unknown() {
    let long = format!("echo {}", "a".repeat(16 * 1024));
    assert_eq!(understand(&long, &Budget::default()).class, Class::WriteOrUnknown);
    assert_eq!(understand(&long, &Budget { n_bytes: 20_000, ..Budget::default() }).class, Class::Read);
    let many = "ls;".repeat(2000);
    assert_eq!(understand(&many, &Budget::default()).class, Class::WriteOrUnknown);
    for piece in [
        "(",
        "$(",
        "{ ",
        "${x:-",
        "`",
        "\"$(",
        "<(",
        "((",
        "[[ ",
        "if ",
        "case x in x) ",
        "! ",
        "sh -c '",
        "xargs ",
        "env ",
    ] {
        let deep = piece.repeat(16 * 1024 / piece.len());
        law(&understand(&deep, &Budget::default()));
    }
    assert_eq!(understand("", &Budget::default()).class, Class::WriteOrUnknown);
}

#[test]
fn an_argument_vector_has_no_syntax() {
    let judge =
        |words: &[&str]| understand_argv(&words.iter().map(ToString::to_string).collect::<Vec<_>>()).class;
    assert_eq!(judge(&["echo", "$(rm x)", ";", "rm", "> f"]), Class::Read);
    assert_eq!(judge(&["git", "log", "--oneline"]), Class::Read);
    assert_eq!(judge(&["git", "log", "--output=f"]), Class::WriteOrUnknown);
    assert_eq!(judge(&["sh", "-c", "ls; rm x"]), Class::WriteOrUnknown);
    assert_eq!(judge(&["./ls"]), Class::WriteOrUnknown);
    assert_eq!(judge(&["[[", "-f", "x", "]]"]), Class::WriteOrUnknown);
    assert_eq!(judge(&[]), Class::WriteOrUnknown);
    assert_eq!(judge(&["", "x"]), Class::WriteOrUnknown);
}

/// Bits of shell that meet in odd ways.
fn fragments() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(vec![
        "ls",
        "rm",
        " ",
        " ",
        "\n",
        "\t",
        ";",
        "&",
        "|",
        "<",
        ">",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "$",
        "`",
        "'",
        "\"",
        "\\",
        "#",
        "!",
        "*",
        "?",
        "~",
        "=",
        "-",
        "--",
        "x",
        "a[0]",
        "$(",
        "$((",
        "))",
        "${",
        "<<EOF",
        "EOF",
        "\nEOF\n",
        "<<<",
        "&&",
        "||",
        "[[",
        "]]",
        "if",
        "then",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "case",
        "esac",
        "while",
        "time",
        "coproc",
        "function",
        "é",
        "\u{a0}",
        "\r",
        "\0",
        "sed",
        "-n",
        "awk",
        "find",
        "-exec",
        "git",
        "log",
        "xargs",
        "env",
        "sh",
        "-c",
        "1",
        "2>&1",
        "/dev/null",
        "$'",
        "\\n",
    ]);
    prop::collection::vec(fragment, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_obeys_the_law(text in any::<String>()) {
        law(&understand(&text, &Budget::default()));
    }

    #[test]
    fn any_mixture_obeys_the_law(text in fragments()) {
        law(&understand(&text, &Budget::default()));
    }

    #[test]
    fn any_argument_vector_obeys_the_law(argv in prop::collection::vec(fragments(), 0..5)) {
        law(&understand_argv(&argv));
    }
}
