//! Globs against a plain reference, and the steps that they take.

use alisio_policy::Glob;
use proptest::prelude::*;

/// What a glob means, written as its definition.
fn reference(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|from| reference(rest, &text[from..])),
        Some(('?', rest)) => !text.is_empty() && reference(rest, &text[1..]),
        Some((c, rest)) => text.first() == Some(c) && reference(rest, &text[1..]),
    }
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_glob_means_what_it_says(pattern in "[ab*?é\n]{0,8}", text in "[abé\n]{0,10}") {
        prop_assert_eq!(Glob::new(&pattern).matches(&text), reference(&chars(&pattern), &chars(&text)));
    }

    /// Pieces longer than a word of bits.
    #[test]
    fn long_pieces(n in 60_usize..200, holes in proptest::collection::vec(0_usize..60, 0..4), shift in 0_usize..3) {
        let mut piece: Vec<char> = "abcdefg".chars().cycle().take(n).collect();
        holes.iter().for_each(|hole| piece[*hole] = '?');
        let pattern: String = format!("*{}*", piece.iter().collect::<String>());
        let text: String = "g".repeat(shift) + &"abcdefg".chars().cycle().take(n + shift).collect::<String>();
        prop_assert!(Glob::new(&pattern).matches(&text));
        let short: String = text.chars().skip(shift).take(n - 1).collect();
        prop_assert!(!Glob::new(&pattern).matches(&short));
    }

    /// What covers another one matches all that the other one matches.
    #[test]
    fn covering_is_inclusion(outer in "[ab*?]{0,5}", inner in "[ab*?]{0,5}", text in "[ab]{0,6}") {
        let (outer, inner) = (Glob::new(&outer), Glob::new(&inner));
        if outer.covers(&inner) && inner.matches(&text) {
            prop_assert!(outer.matches(&text), "{outer:?} {inner:?}");
        }
        if outer.matches(&text) && inner.matches(&text) {
            prop_assert!(outer.meets(&inner), "{outer:?} {inner:?}");
        }
    }
}

/// The steps grow with the text alone, also for the patterns that hang a matcher which goes back.
#[test]
fn steps_are_linear() {
    let many: String = "*a".repeat(40) + "*b";
    let nested = "*a?a?a?a?b*".to_owned();
    let spec = "*rm*rm*rm*rm*x".to_owned();
    let long = format!("*{}b*", "a".repeat(150));
    for pattern in [many, nested, spec, long] {
        let glob = Glob::new(&pattern);
        for text in ["a", "rm", "ab"] {
            let steps: Vec<usize> = [1_000, 100_000]
                .into_iter()
                .map(|n| {
                    let mut steps = 0;
                    glob.matches_counting(&text.repeat(n / text.len()), &mut steps);
                    steps
                })
                .collect();
            let words = pattern.chars().count().div_ceil(64);
            assert!(steps[1] <= 100_000 * words + pattern.len(), "{pattern} on {text}: {steps:?}");
        }
    }
}

#[test]
fn corners() {
    for (pattern, text, expected) in [
        ("", "", true),
        ("", "a", false),
        ("*", "", true),
        ("**", "a/b", true),
        ("a*a", "a", false),
        ("a*a", "aa", true),
        ("*a*", "a", true),
        ("?", "🙂", true),
        ("??", "🙂", false),
        ("[a]", "a", false),
        ("\\*", "\\x", true),
        ("git *", "git", false),
        ("*aab*", "aaaab", true),
    ] {
        assert_eq!(Glob::new(pattern).matches(text), expected, "{pattern} on {text}");
    }
}
