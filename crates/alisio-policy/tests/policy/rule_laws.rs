//! What holds for every policy: rules that do not match, grants, sources, children.

use alisio_policy::{
    Answering, Authority, Decision, Moment, Outcome, Policy, PolicySet, RecordedUses, Request, Scope, Source,
    decide, effect_of, offers_tool, rule_on,
};
use alisio_protocol::{CallId, Effect, EffectSet, Sha256, VerdictSource};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bench::{judge, judge_at, policy, subject};

const COMMANDS: [&str; 8] = [
    "git status",
    "git push",
    "ls; rm -rf x",
    "rm  -fr x",
    "make test",
    "echo a > f",
    "ls | wc -l",
    "git $X",
];

fn call() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![
        3 => proptest::sample::select(COMMANDS.as_slice()).prop_map(|command| ("bash", command)),
        1 => proptest::sample::select(["src/a.rs", "../x", "/etc/passwd", "package.json"].as_slice()).prop_map(|path| ("write", path)),
        1 => Just(("read", "src/a.rs")),
    ]
}

fn rule() -> impl Strategy<Value = Value> {
    let tools = proptest::sample::select(["bash", "write", "read", "*", "w*"].as_slice());
    let patterns = proptest::sample::select(
        [
            None,
            Some("git *"),
            Some("*rm*"),
            Some("*rm -rf*"),
            Some("ls*"),
            Some("src/*"),
            Some("*"),
            Some("*&&*"),
        ]
        .as_slice(),
    );
    let actions = proptest::sample::select(["allow", "ask", "deny", "classify", "sandbox"].as_slice());
    (tools, patterns, actions)
        .prop_map(|(tool, pattern, action)| json!({"tool": tool, "pattern": pattern, "action": action}))
}

fn rules() -> impl Strategy<Value = Vec<Value>> {
    proptest::collection::vec(rule(), 0..5)
}

fn word() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(["allow", "ask", "deny", "classify"].as_slice())
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let lists = proptest::sample::select(vec![vec![], vec!["bash"], vec!["read", "bash"]]);
    (rules(), word(), lists).prop_map(|(rules, default, restrict)| {
        policy(&json!({"default": default, "rules": rules, "restrictToTools": restrict}))
    })
}

/// Rules that no call of these tests meets.
fn idle() -> impl Strategy<Value = Value> {
    let tools = proptest::sample::select(["bash", "write", "*"].as_slice());
    let actions = proptest::sample::select(["allow", "ask", "deny"].as_slice());
    (tools, actions)
        .prop_map(|(tool, action)| json!({"tool": tool, "pattern": "no such text", "action": action}))
}

fn request(tool: &str, target: &str) -> Request {
    Request {
        call: CallId::new("c"),
        tool: tool.to_owned(),
        effect: effect_of(tool),
        scope: Scope::default(),
        outside: Vec::new(),
        digest: Sha256::of(b""),
        subject: subject(tool, target),
    }
}

fn rank(decision: &Decision) -> u8 {
    match decision {
        Decision::Allow(_) => 0,
        Decision::Ask(_) => 1,
        Decision::Deny(_) => 2,
    }
}

fn person() -> Authority {
    Authority { answering: Answering::Person, ..Authority::headless() }
}

fn every_flag() -> EffectSet {
    [Effect::Write, Effect::Process, Effect::External].into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A rule that does not match changes nothing, wherever it stands, and neither does the order of such rules.
    #[test]
    fn idle_rules_change_nothing(rules in rules(), default in word(), idle in proptest::collection::vec((idle(), any::<proptest::sample::Index>()), 0..5), (tool, target) in call()) {
        let before = judge(&policy(&json!({"default": default, "rules": rules})), tool, target);
        let mut more = rules;
        for (rule, place) in idle {
            more.insert(place.index(more.len() + 1), rule);
        }
        let after = judge(&policy(&json!({"default": default, "rules": more})), tool, target);
        prop_assert_eq!(before.outcome, after.outcome, "{:?}", more);
    }

    /// A last rule that refuses is never made up for by what else stands there.
    #[test]
    fn a_last_deny_for_all_denies_all(rules in rules(), default in word(), (tool, target) in call()) {
        let mut rules = rules;
        rules.push(json!({"tool": "*", "action": "deny"}));
        let judgement = judge(&policy(&json!({"default": default, "rules": rules})), tool, target);
        prop_assert_eq!(judgement.outcome, Outcome::Deny);
    }

    /// A command is never judged more mildly than one of its parts alone would be.
    #[test]
    fn more_parts_are_never_milder(policy in any_policy(), first in proptest::sample::select(COMMANDS.as_slice()), second in proptest::sample::select(COMMANDS.as_slice())) {
        let both = judge(&policy, "bash", &format!("{first}\n{second}")).outcome;
        for one in [first, second] {
            let alone = judge(&policy, "bash", one).outcome;
            // What a rule that spells a chain out lets through is another matter; there is none among these.
            prop_assert!(both >= alone, "{one}: {alone} alone, {both} together");
        }
    }

    /// Flags turn questions into a yes and touch no refusal.
    #[test]
    fn a_flag_never_lifts_a_deny(policy in any_policy(), (tool, target) in call()) {
        let request = request(tool, target);
        let without = Authority { policies: PolicySet::of(Source::User, policy), ..person() };
        let with = Authority { flags: every_flag(), ..without.clone() };
        let (before, after) = (decide(&without, &request), decide(&with, &request));
        match before {
            Decision::Deny(_) => prop_assert!(matches!(after, Decision::Deny(_))),
            Decision::Allow(_) => prop_assert!(matches!(after, Decision::Allow(_))),
            Decision::Ask(_) => prop_assert_eq!(rank(&after), u8::from(!request.effect.leaves_traces())),
        }
    }

    /// A project, and the administrator, may only tighten.
    #[test]
    fn a_project_never_loosens(own in proptest::option::of(any_policy()), project in any_policy(), (tool, target) in call(), source in proptest::sample::select([Source::Project, Source::Administrator].as_slice())) {
        let request = request(tool, target);
        let mut policies = PolicySet::default();
        own.into_iter().for_each(|own| policies.add(Source::User, own));
        let without = Authority { policies: policies.clone(), ..person() };
        policies.add(source, project);
        let with = Authority { policies, ..person() };
        prop_assert!(rank(&decide(&with, &request)) >= rank(&decide(&without, &request)));
    }

    /// Of two policies of the user the stricter wins.
    #[test]
    fn the_stricter_source_wins(one in any_policy(), other in any_policy(), (tool, target) in call()) {
        let request = request(tool, target);
        let of = |policies| rank(&decide(&Authority { policies, ..person() }, &request));
        let mut both = PolicySet::of(Source::User, one.clone());
        both.add(Source::Flag, other.clone());
        let expected = of(PolicySet::of(Source::User, one)).max(of(PolicySet::of(Source::Flag, other)));
        prop_assert_eq!(of(both), expected);
    }

    /// Whatever policies a child brings, it exceeds neither its parent nor what it asked for.
    #[test]
    fn a_child_never_exceeds_its_parent(parents in proptest::collection::vec((any_policy(), source()), 0..3), wanted in proptest::collection::vec((any_policy(), source()), 0..3), flags in (any::<bool>(), any::<bool>()), (tool, target) in call()) {
        let set = |policies: Vec<(Policy, Source)>| {
            let mut set = PolicySet::default();
            policies.into_iter().for_each(|(policy, source)| set.add(source, policy));
            set
        };
        let flags_of = |given| if given { every_flag() } else { EffectSet::EMPTY };
        let parent = Authority { policies: set(parents), flags: flags_of(flags.0), ..person() };
        let wanted = Authority { policies: set(wanted), flags: flags_of(flags.1), ..person() };
        let child = parent.narrow(&wanted);
        let request = request(tool, target);
        prop_assert!(rank(&decide(&child, &request)) >= rank(&decide(&parent, &request)));
        prop_assert!(rank(&decide(&child, &request)) >= rank(&decide(&wanted, &request)));
        prop_assert_eq!(&parent.narrow(&child), &child);
        prop_assert_eq!(&parent.narrow(&parent), &parent);
    }

    /// Read-only stays what it is under every policy.
    #[test]
    fn no_policy_lifts_read_only(policy in any_policy(), (tool, target) in call()) {
        let authority = Authority { read_only: true, policies: PolicySet::of(Source::Flag, policy), ..person() };
        let request = request(tool, target);
        if request.effect.leaves_traces() {
            prop_assert!(matches!(decide(&authority, &request), Decision::Deny(_)));
        }
    }

    /// What is not offered does not run.
    #[test]
    fn what_runs_was_offered(policy in any_policy(), (tool, target) in call()) {
        let authority = Authority { policies: PolicySet::of(Source::User, policy), ..Authority::headless() };
        if matches!(decide(&authority, &request(tool, target)), Decision::Allow(_)) {
            prop_assert!(offers_tool(&authority, tool, effect_of(tool)));
        }
    }

    /// A proposal of `explain` does what it says.
    #[test]
    fn proposals_hold(policy in any_policy(), (tool, target) in call()) {
        let subject = subject(tool, target);
        let call = alisio_policy::Call { tool, effect: effect_of(tool), subject: &subject };
        let uses = RecordedUses::default();
        let moment = Moment { uses: &uses, ..Moment::UNKNOWN };
        let explained = policy.explain(call, moment);
        let outcome = explained.judgement.outcome;
        let check = |proposal: Option<String>, wanted: Outcome| {
            if let Some((_, rule)) = proposal.as_deref().and_then(|text| text.split_once("at the end: ")) {
                let mut changed = policy.clone();
                let added: Value = serde_json::from_str(rule).unwrap();
                changed.rules.extend(self::policy(&json!({"rules": [added]})).rules);
                assert_eq!(changed.judge(call, moment).outcome, wanted, "{rule}");
            }
        };
        match outcome {
            Outcome::Allow => check(explained.stricter, Outcome::Ask),
            Outcome::Ask => {
                check(explained.stricter, Outcome::Deny);
                check(explained.looser, Outcome::Allow);
            }
            Outcome::Deny => check(explained.looser, Outcome::Ask),
        }
    }
}

fn source() -> impl Strategy<Value = Source> {
    proptest::sample::select([Source::Administrator, Source::User, Source::Flag, Source::Project].as_slice())
}

/// The table of flags, policies and surfaces.
#[test]
fn the_lattice() {
    let allow = || policy(&json!("auto"));
    let deny_git = || {
        policy(
            &json!({"default": "allow", "rules": [{"tool": "bash", "pattern": "git *", "action": "deny"}]}),
        )
    };
    let ask = || policy(&json!("ask"));
    let headless = Authority::headless;
    #[rustfmt::skip]
    let table: Vec<(&str, Authority, &str, VerdictSource, bool)> = vec![
        // what is set                                    authority                                                                                  tool    what decides                   runs
        ("the user's own allow lifts an unset flag",      Authority { policies: PolicySet::of(Source::User, allow()), ..headless() },                "bash", VerdictSource::PolicyDefault,  true),
        ("a project's does not",                          Authority { policies: PolicySet::of(Source::Project, allow()), ..headless() },             "bash", VerdictSource::NobodyToAsk,    false),
        ("it never lifts --read-only",                    Authority { read_only: true, policies: PolicySet::of(Source::User, allow()), ..headless() }, "bash", VerdictSource::ReadOnly,     false),
        ("a deny stands against a flag",                  Authority { flags: every_flag(), policies: PolicySet::of(Source::User, deny_git()), ..headless() }, "bash", VerdictSource::Rule,  false),
        ("a flag answers a question",                     Authority { flags: every_flag(), policies: PolicySet::of(Source::User, ask()), ..headless() }, "bash", VerdictSource::Flag,       true),
        ("`ask` pauses readers too",                      Authority { policies: PolicySet::of(Source::User, ask()), ..headless() },                  "read", VerdictSource::NobodyToAsk,    false),
        ("a project's deny binds under every flag",       Authority { flags: every_flag(), policies: PolicySet::of(Source::Project, deny_git()), ..headless() }, "bash", VerdictSource::Rule, false),
        ("without a policy the table of effects holds",   headless(),                                                                                "read", VerdictSource::Effect,         true),
    ];
    for (what, authority, tool, source, runs) in table {
        let ruling = rule_on(&authority, &request(tool, "git status"), Moment::UNKNOWN);
        assert_eq!(ruling.basis.source, source, "{what}: {ruling:?}");
        assert_eq!(matches!(ruling.decision, Decision::Allow(_)), runs, "{what}: {ruling:?}");
    }
}

/// A limit of which nobody knows how far it is used asks.
#[test]
fn unknown_uses_ask() {
    let limited = policy(
        &json!({"rules": [{"tool": "bash", "action": "rate_limit", "limit": {"count": 1, "windowMs": 1}}]}),
    );
    let authority = Authority { policies: PolicySet::of(Source::User, limited), ..person() };
    let request = request("bash", "ls");
    assert!(matches!(decide(&authority, &request), Decision::Ask(_)));
    let uses = RecordedUses::default();
    let ruling = rule_on(&authority, &request, Moment { uses: &uses, ..Moment::UNKNOWN });
    assert!(matches!(ruling.decision, Decision::Allow(_)));
    assert_eq!(ruling.uses.len(), 1);
}

/// A refusal that nobody could answer names both ways out.
#[test]
fn refusals_in_words() {
    let authority =
        Authority { policies: PolicySet::of(Source::User, policy(&json!("ask"))), ..Authority::headless() };
    let said: Vec<String> = [("bash", "make"), ("read", "a")]
        .into_iter()
        .map(|(tool, target)| match decide(&authority, &request(tool, target)) {
            Decision::Deny(denial) => denial.message(),
            other => panic!("{other:?}"),
        })
        .collect();
    insta::assert_snapshot!(said.join("\n\n"), @r"
    refused: no rule is about it, and the default is ask, and nobody can answer in this run
    remedy for the person running Alisio: allow it in the permission policy, or run again with --allow-process

    refused: no rule is about it, and the default is ask, and nobody can answer in this run
    remedy for the person running Alisio: allow it in the permission policy, or run it where a person can answer
    ");
}

/// A rule that limits or confines is not slipped past by a spelling for which it lets nothing through itself.
#[test]
fn limits_and_sandboxes_are_not_slipped() {
    let with = |rule: Value| policy(&json!({"rules": [{"tool": "bash", "action": "allow"}, rule]}));
    let limited = with(
        json!({"tool": "bash", "pattern": "curl *", "action": "rate_limit", "limit": {"count": 1, "windowMs": 1000}}),
    );
    for spelling in ["curl a", "/usr/bin/curl a", "curl a > f", "'curl' a", "ls; curl a"] {
        let mut uses = RecordedUses::default();
        let first = judge_at(&limited, "bash", &subject("bash", spelling), 0, &uses);
        assert_eq!(first.outcome, Outcome::Allow, "{spelling}: {}", first.reason);
        uses.record(&first.uses, 0);
        let second = judge_at(&limited, "bash", &subject("bash", spelling), 1, &uses);
        assert_eq!(second.outcome, Outcome::Deny, "{spelling}: {}", second.reason);
    }
    let confined = with(json!({"tool": "bash", "pattern": "make*", "action": "sandbox"}));
    for spelling in ["make", "/usr/bin/make", "make > f", "ls; make"] {
        assert_eq!(judge(&confined, "bash", spelling).outcome, Outcome::Ask, "{spelling}");
    }
}
