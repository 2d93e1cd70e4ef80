//! What holds for every authority and every call.

use std::path::PathBuf;

use alisio_policy::{
    Answering, Authority, Decision, Mode, OutsidePath, PolicySet, Request, Scope, Subject, decide, offers,
};
use alisio_protocol::{CallId, Effect, EffectSet, Sha256};
use proptest::prelude::*;

fn effect() -> impl Strategy<Value = Effect> {
    proptest::sample::select(Effect::ALL.as_slice())
}

fn effects() -> impl Strategy<Value = EffectSet> {
    proptest::collection::vec(effect(), 0..6).prop_map(|effects| effects.into_iter().collect())
}

/// Few directories, so that two authorities often share one.
fn directories() -> impl Strategy<Value = Vec<PathBuf>> {
    let names = ["/srv", "/srv/data", "/srv/data/deep", "/opt", "/home/user"].map(PathBuf::from).to_vec();
    proptest::sample::subsequence(names, 0..=5)
}

prop_compose! {
    fn authority()(
        read_only in any::<bool>(),
        flags in effects(),
        mode in proptest::sample::select([Mode::Ask, Mode::Auto, Mode::Full].as_slice()),
        // Mostly whole: a ceiling that denies everything would make the other laws hold for nothing.
        ceiling in prop_oneof![3 => Just(Effect::ALL.into_iter().collect()), 1 => effects()],
        answering in proptest::sample::select([Answering::Person, Answering::Nobody].as_slice()),
        opened in directories(),
    ) -> Authority {
        Authority { read_only, flags, mode, ceiling, answering, opened, policies: PolicySet::default() }
    }
}

prop_compose! {
    fn request()(effect in effect(), outside in directories()) -> Request {
        Request {
            call: CallId::new("call_1"),
            tool: "tool".into(),
            effect,
            scope: Scope::default(),
            outside: outside
                .into_iter()
                .map(|directory| OutsidePath { path: directory.join("file"), directory })
                .collect(),
            digest: Sha256::of(b"{}"),
            subject: Subject::default(),
        }
    }
}

/// How much a decision lets through.
fn rank(decision: &Decision) -> u8 {
    match decision {
        Decision::Deny(_) => 0,
        Decision::Ask(_) => 1,
        Decision::Allow(_) => 2,
    }
}

/// Whether some person's answers could let a call of this effect inside the workspace run.
fn could_run(authority: &Authority, effect: Effect) -> bool {
    let request = Request {
        call: CallId::new("call_1"),
        tool: "tool".into(),
        effect,
        scope: Scope::default(),
        outside: Vec::new(),
        digest: Sha256::of(b"{}"),
        subject: Subject::default(),
    };
    !matches!(decide(authority, &request), Decision::Deny(_))
}

proptest! {
    /// Whatever a child asks for, it is never let through further than its parent would be.
    #[test]
    fn a_child_never_exceeds_its_parent(parent in authority(), wanted in authority(), request in request()) {
        let child = parent.narrow(&wanted);
        let (of_child, of_parent) = (decide(&child, &request), decide(&parent, &request));
        prop_assert!(rank(&of_child) <= rank(&of_parent), "{of_child:?} exceeds {of_parent:?}");
        for effect in Effect::ALL {
            prop_assert!(!offers(&child, effect) || offers(&parent, effect), "{effect} is offered to the child alone");
        }
    }

    /// Nor further than it asked for.
    #[test]
    fn a_child_never_exceeds_what_it_wanted(parent in authority(), wanted in authority(), request in request()) {
        let child = parent.narrow(&wanted);
        prop_assert!(rank(&decide(&child, &request)) <= rank(&decide(&wanted, &request)));
    }

    /// Narrowing by itself changes nothing, and a second time adds nothing.
    #[test]
    fn narrowing_is_stable(parent in authority(), wanted in authority()) {
        prop_assert_eq!(&parent.narrow(&parent), &parent);
        let child = parent.narrow(&wanted);
        prop_assert_eq!(&parent.narrow(&child), &child);
    }

    /// Nothing but reads and internal effects inside the workspace, whoever answers.
    #[test]
    fn read_only_denies_every_effect_but_read_and_internal(authority in authority(), request in request()) {
        let authority = Authority { read_only: true, ..authority };
        if request.effect.leaves_traces() || !request.outside.is_empty() {
            let decision = decide(&authority, &request);
            prop_assert!(matches!(decision, Decision::Deny(ref denial) if !denial.answerable), "{decision:?}");
        }
        prop_assert_eq!(offers(&authority, request.effect), !request.effect.leaves_traces()
            && authority.ceiling.contains(request.effect));
    }

    /// Under read-only a flag, a mode and an open directory change nothing at all.
    #[test]
    fn no_flag_lifts_read_only(authority in authority(), other in authority(), request in request()) {
        let plain = Authority { read_only: true, ..authority };
        let more = Authority { flags: other.flags, mode: other.mode, opened: other.opened, ..plain.clone() };
        prop_assert_eq!(rank(&decide(&more, &request)), rank(&decide(&plain, &request)));
    }

    /// A flag lets through its own effect and no other.
    #[test]
    fn a_flag_speaks_for_its_effect_alone(authority in authority(), flag in effect(), request in request()) {
        if request.effect != flag {
            let more = Authority { flags: authority.flags.with(flag), ..authority.clone() };
            prop_assert_eq!(decide(&more, &request), decide(&authority, &request));
        }
    }

    /// An effect is withheld from the model exactly when no answer could ever let a call of it run.
    #[test]
    fn what_is_offered_is_what_could_run(authority in authority(), effect in effect()) {
        prop_assert_eq!(offers(&authority, effect), could_run(&authority, effect));
    }

    /// Without a person there is never a question; with one, never a denial that a person could have lifted.
    #[test]
    fn questions_need_a_person(authority in authority(), request in request()) {
        match (authority.answering, decide(&authority, &request)) {
            (Answering::Nobody, Decision::Ask(ask)) => prop_assert!(false, "{ask:?} goes to nobody"),
            (Answering::Person, Decision::Deny(denial)) => prop_assert!(!denial.answerable, "{denial:?}"),
            (_, Decision::Deny(denial)) => prop_assert_eq!(denial.answerable, !denial.remedy.is_empty()),
            _ => {}
        }
    }

    /// A path outside every open directory never runs unasked.
    #[test]
    fn outside_is_never_silently_allowed(authority in authority(), request in request()) {
        let closed = request.outside.iter().any(|outside| {
            authority.read_only || !authority.opened.iter().any(|open| outside.path.starts_with(open))
        });
        if closed {
            let decision = decide(&authority, &request);
            prop_assert!(!matches!(decision, Decision::Allow(_)), "{decision:?}");
        }
    }
}
