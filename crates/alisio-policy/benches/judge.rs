//! How long one verdict takes, without reading the command, and how long a hard pattern takes on a long text.

use alisio_policy::{Call, CommandText, Glob, Moment, Policy, RecordedUses, Subject, effect_of, no_rung};
use alisio_shell::{Budget, understand, understand_argv};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn rules(pattern: impl Fn(usize) -> String) -> Policy {
    let mut rules: Vec<Value> = (0..1000)
        .map(|index| {
            let action = ["allow", "ask", "deny"][index % 3];
            json!({"tool": "bash", "pattern": pattern(index), "action": action})
        })
        .collect();
    rules[0] = json!({"tool": "bash", "action": "allow"});
    Policy::parse(&json!({"rules": rules})).expect("a policy")
}

fn subject(command: &str) -> Subject {
    let mut subject = Subject::of_target("bash", command, "/srv/repo");
    subject.understand("bash", &|command| match command {
        CommandText::Script(script) => understand(script, &Budget::default()),
        CommandText::Argv(argv) => understand_argv(argv),
    });
    subject
}

#[divan::bench(args = ["git status --short", "cd web && npm run build | tail -20", "rm -r $DIR"])]
fn floating_patterns(bencher: divan::Bencher<'_, '_>, command: &str) {
    judge(bencher, &rules(|index| format!("*word{index} in the middle*")), command);
}

#[divan::bench(args = ["git status --short", "cd web && npm run build | tail -20", "rm -r $DIR"])]
fn anchored_patterns(bencher: divan::Bencher<'_, '_>, command: &str) {
    judge(bencher, &rules(|index| format!("git sub{index} *")), command);
}

fn judge(bencher: divan::Bencher<'_, '_>, policy: &Policy, command: &str) {
    let subject = subject(command);
    let uses = RecordedUses::default();
    let moment = Moment { now: 0, uses: &uses, has_rung: &no_rung };
    let call = Call { tool: "bash", effect: effect_of("bash"), subject: &subject };
    bencher.bench_local(|| policy.judge(call, moment));
}

#[divan::bench]
fn forty_stars(bencher: divan::Bencher<'_, '_>) {
    let glob = Glob::new(&("*a".repeat(40) + "*b*"));
    let text = "a".repeat(100_000);
    bencher.bench_local(|| glob.matches(&text));
}
