//! Lines of each kind, one a line in `tests/corpus`.

use alisio_shell::{Budget, Class, understand};

pub(crate) const READ: &str = include_str!("../corpus/read.txt");
pub(crate) const HARDER: &str = include_str!("../corpus/harder.txt");
pub(crate) const EFFECT: &str = include_str!("../corpus/effect.txt");

/// The lines of a corpus, with its marks replaced.
pub(crate) fn lines(corpus: &str) -> Vec<String> {
    corpus
        .lines()
        .skip(1)
        .filter(|line| !line.is_empty())
        .map(|line| line.replace('⏎', "\n").replace('⇥', "\t").replace('␍', "\r").replace('␠', "\u{a0}"))
        .collect()
}

fn check(corpus: &str, expected: Class) {
    let misses: Vec<String> = lines(corpus)
        .iter()
        .map(|line| (line, understand(line, &Budget::default())))
        .filter(|(_, facts)| facts.class != expected)
        .map(|(line, facts)| format!("{line:?}\n    {}", facts.reason))
        .collect();
    assert!(misses.is_empty(), "{} lines are not {expected:?}:\n{}", misses.len(), misses.join("\n"));
}

#[test]
fn everyday_reads_are_reads() {
    check(READ, Class::Read);
}

#[test]
fn harder_reads_are_reads() {
    check(HARDER, Class::Read);
}

#[test]
fn nothing_with_an_effect_is_a_read() {
    check(EFFECT, Class::WriteOrUnknown);
}

#[test]
fn corpora_are_large() {
    assert!(lines(READ).len() >= 200 && lines(HARDER).len() >= 60 && lines(EFFECT).len() >= 500);
}
