//! The price of a verdict.

use alisio_shell::{Budget, understand};

fn main() {
    divan::main();
}

#[divan::bench(args = [
    "ls -la",
    "git status --short && git diff --stat | head -20",
    "for f in src/*.rs; do wc -l \"$f\"; done 2>/dev/null",
    "find . -name '*.rs' -type f | xargs grep -n 'fn main' | sort | uniq -c | sort -rn | head",
])]
fn typical(bencher: divan::Bencher<'_, '_>, line: &str) {
    let budget = Budget::default();
    bencher.bench(|| understand(divan::black_box(line), &budget));
}

/// The worst texts of the largest size.
#[divan::bench(args = ["a|", "(", "$(", "{a,b}", "\"$(", "x=$y;", "[[ a =~ [", "echo a;"])]
fn worst(bencher: divan::Bencher<'_, '_>, piece: &str) {
    let budget = Budget::default();
    let line = piece.repeat(16 * 1024 / piece.len());
    bencher.bench(|| understand(divan::black_box(&line), &budget));
}
