//! The truth table of flags, effects and surfaces, written as the documentation writes it.

use std::path::PathBuf;

use alisio_policy::{
    Answering, Ask, Authority, Decision, Denial, Mode, OutsidePath, Request, Scope, Subject, decide, offers,
};
use alisio_protocol::{CallId, Effect, EffectSet, Sha256, VerdictSource};

use Effect::{External, Internal, Process, Read, Write};
use Word::{Allowed, Asks, Denied, Refused};

/// What becomes of a call, in the words of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Runs, never asks.
    Allowed,
    /// Asks every time.
    Asks,
    /// Not offered, since there is no one to ask; a call of it anyway is refused and the remedy named.
    Refused,
    /// Never offered, hard denied.
    Denied,
}

fn request(effect: Effect, outside: &[&str]) -> Request {
    Request {
        call: CallId::new("call_1"),
        tool: "tool".into(),
        effect,
        scope: Scope::default(),
        outside: outside.iter().copied().map(outside_path).collect(),
        digest: Sha256::of(b"{}"),
        subject: Subject::default(),
    }
}

fn outside_path(path: &str) -> OutsidePath {
    let path = PathBuf::from(path);
    OutsidePath { directory: path.parent().expect("the tests name files").to_owned(), path }
}

fn flags(effects: &[Effect]) -> EffectSet {
    effects.iter().copied().collect()
}

/// What is decided on a call inside the workspace. That it is offered to the model exactly when it could run is checked
/// along with it.
fn word(authority: &Authority, effect: Effect) -> Word {
    let word = match decide(authority, &request(effect, &[])) {
        Decision::Allow(_) => Allowed,
        Decision::Ask(Ask::Effect(asked)) => {
            assert_eq!(asked, effect);
            Asks
        }
        Decision::Ask(Ask::Directory(outside)) => panic!("asked for {outside:?}, but nothing is outside"),
        Decision::Deny(denial) if denial.answerable => Refused,
        Decision::Deny(_) => Denied,
    };
    assert_eq!(
        offers(authority, effect),
        matches!(word, Allowed | Asks),
        "{effect} is {word:?} under {authority:?}"
    );
    word
}

fn denial(decision: Decision) -> Denial {
    match decision {
        Decision::Deny(denial) => denial,
        other => panic!("expected a denial, got {other:?}"),
    }
}

/// The same authority with a person attached, and without.
fn surfaces(authority: Authority) -> [Authority; 2] {
    [Answering::Person, Answering::Nobody].map(|answering| Authority { answering, ..authority.clone() })
}

#[test]
fn write_process_external() {
    #[rustfmt::skip]
    let table: &[(&str, &[Effect], Effect, Word, Word)] = &[
        // state                 flags         effect     interactive  headless
        ("no flag",              &[],          Write,     Asks,        Refused),
        ("no flag",              &[],          Process,   Asks,        Refused),
        ("no flag",              &[],          External,  Asks,        Refused),
        ("no flag",              &[],          Read,      Allowed,     Allowed),
        ("no flag",              &[],          Internal,  Allowed,     Allowed),

        ("--allow-write",        &[Write],     Write,     Allowed,     Allowed),
        ("--allow-write",        &[Write],     Process,   Asks,        Refused),
        ("--allow-write",        &[Write],     External,  Asks,        Refused),
        ("--allow-write",        &[Write],     Read,      Allowed,     Allowed),
        ("--allow-write",        &[Write],     Internal,  Allowed,     Allowed),

        ("--allow-process",      &[Process],   Write,     Asks,        Refused),
        ("--allow-process",      &[Process],   Process,   Allowed,     Allowed),
        ("--allow-process",      &[Process],   External,  Asks,        Refused),
        ("--allow-process",      &[Process],   Read,      Allowed,     Allowed),
        ("--allow-process",      &[Process],   Internal,  Allowed,     Allowed),

        ("--allow-external",     &[External],  Write,     Asks,        Refused),
        ("--allow-external",     &[External],  Process,   Asks,        Refused),
        ("--allow-external",     &[External],  External,  Allowed,     Allowed),
        ("--allow-external",     &[External],  Read,      Allowed,     Allowed),
        ("--allow-external",     &[External],  Internal,  Allowed,     Allowed),
    ];
    for &(state, given, effect, interactive, headless) in table {
        let [person, nobody] = surfaces(Authority { flags: flags(given), ..Authority::headless() });
        assert_eq!(word(&person, effect), interactive, "{state}, {effect}, interactive");
        assert_eq!(word(&nobody, effect), headless, "{state}, {effect}, headless");
    }
}

#[test]
fn read_only_wins_over_every_flag_and_mode() {
    #[rustfmt::skip]
    let table: &[(Effect, Word, Word)] = &[
        // effect    interactive  headless
        (Write,      Denied,      Denied),
        (Process,    Denied,      Denied),
        (External,   Denied,      Denied),
        (Read,       Allowed,     Allowed),
        (Internal,   Allowed,     Allowed),
    ];
    let given: &[&[Effect]] = &[
        &[],
        &[Write],
        &[Process],
        &[External],
        &[Write, Process],
        &[Write, External],
        &[Process, External],
        &[Write, Process, External],
    ];
    for &(effect, interactive, headless) in table {
        for given in given {
            for mode in [Mode::Ask, Mode::Auto, Mode::Full] {
                let authority =
                    Authority { read_only: true, flags: flags(given), mode, ..Authority::headless() };
                let [person, nobody] = surfaces(authority);
                assert_eq!(word(&person, effect), interactive, "{given:?}, {mode:?}, {effect}, interactive");
                assert_eq!(word(&nobody, effect), headless, "{given:?}, {mode:?}, {effect}, headless");
                if effect.leaves_traces() {
                    let denial = denial(decide(&nobody, &request(effect, &[])));
                    assert_eq!(denial.basis.source, VerdictSource::ReadOnly);
                    assert_eq!(denial.remedy, "", "nothing lifts --read-only");
                }
            }
        }
    }
}

#[test]
fn permission_modes() {
    #[rustfmt::skip]
    let table: &[(Mode, Word, Word, Word)] = &[
        // mode        write     process   external
        (Mode::Ask,    Asks,     Asks,     Asks),
        (Mode::Auto,   Allowed,  Asks,     Asks),
        (Mode::Full,   Allowed,  Allowed,  Allowed),
    ];
    for &(mode, write, process, external) in table {
        let [person, nobody] = surfaces(Authority { mode, ..Authority::headless() });
        for (effect, expected) in [(Write, write), (Process, process), (External, external)] {
            assert_eq!(word(&person, effect), expected, "{mode:?}, {effect}");
            let without_a_person = if expected == Asks { Refused } else { expected };
            assert_eq!(word(&nobody, effect), without_a_person, "{mode:?}, {effect}, headless");
        }
    }
}

#[test]
fn a_ceiling_denies_whatever_else_is_given() {
    for effect in Effect::ALL {
        let ceiling = Effect::ALL.into_iter().filter(|other| *other != effect).collect();
        let authority = Authority {
            ceiling,
            flags: Effect::ALL.into_iter().collect(),
            mode: Mode::Full,
            ..Authority::headless()
        };
        for authority in surfaces(authority) {
            assert_eq!(word(&authority, effect), Denied, "{effect}");
            let denial = denial(decide(&authority, &request(effect, &[])));
            assert_eq!(denial.basis.source, VerdictSource::Ceiling);
        }
    }
}

/// Which sentence a headless model reads, and what a person would have to do.
#[test]
fn refusals_in_words() {
    let words = |authority: &Authority, effect, outside: &[&str]| {
        denial(decide(authority, &request(effect, outside))).message()
    };
    let headless = Authority::headless();
    let read_only = Authority { read_only: true, ..Authority::headless() };
    let child = Authority { ceiling: flags(&[Read]), ..Authority::headless() };
    let said = [
        words(&headless, Write, &[]),
        words(&headless, Process, &[]),
        words(&headless, External, &[]),
        words(&headless, Read, &["/srv/data/a.txt"]),
        words(&read_only, Write, &[]),
        words(&read_only, Read, &["/srv/data/a.txt"]),
        words(&child, Process, &[]),
    ];
    insta::assert_snapshot!(said.join("\n\n"), @r#"
    refused: the write effect needs approval and nobody can answer in this run
    remedy for the person running Alisio: run again with --allow-write

    refused: the process effect needs approval and nobody can answer in this run
    remedy for the person running Alisio: run again with --allow-process

    refused: the external effect needs approval and nobody can answer in this run
    remedy for the person running Alisio: run again with --allow-external

    refused: `/srv/data/a.txt` is outside the workspace and every declared directory
    remedy for the person running Alisio: run again with --add-dir /srv/data, or add "/srv/data" to `additionalDirectories` in the configuration

    refused: --read-only rules out the write effect

    refused: `/srv/data/a.txt` is outside the workspace, and --read-only opens no other directory

    refused: the run that started this one does not have the process effect
    "#);
}

/// The directory check runs first, then the effect check.
#[test]
fn directory_first_then_effect() {
    let outside = outside_path("/srv/data/a.txt");
    let call = request(Write, &["/srv/data/a.txt"]);
    let [person, nobody] = surfaces(Authority { flags: flags(&[Write]), ..Authority::headless() });

    // A flag for the effect says nothing about the directory.
    assert_eq!(decide(&person, &call), Decision::Ask(Ask::Directory(outside.clone())));
    assert_eq!(denial(decide(&nobody, &call)).basis.source, VerdictSource::Directory);
    assert!(denial(decide(&nobody, &call)).answerable);

    // With neither, the directory is what is asked for; once it is open, the effect.
    let nothing = Authority { answering: Answering::Person, ..Authority::headless() };
    assert_eq!(decide(&nothing, &call), Decision::Ask(Ask::Directory(outside.clone())));
    let opened = Authority { opened: vec![outside.directory.clone()], ..nothing };
    assert_eq!(decide(&opened, &call), Decision::Ask(Ask::Effect(Write)));

    // With both, it runs, and it was the flag that said so.
    let both = Authority { opened: vec![outside.directory], ..nobody };
    match decide(&both, &call) {
        Decision::Allow(basis) => assert_eq!(basis.source, VerdictSource::Flag),
        other => panic!("{other:?}"),
    }

    // No mode opens a directory.
    let full = Authority { mode: Mode::Full, ..Authority::headless() };
    assert_eq!(denial(decide(&full, &call)).basis.source, VerdictSource::Directory);

    // Hard denials come before both.
    let read_only = Authority { read_only: true, ..both };
    assert_eq!(denial(decide(&read_only, &call)).basis.source, VerdictSource::ReadOnly);
}

#[test]
fn an_open_directory_covers_what_is_below_it_and_nothing_beside_it() {
    let authority = Authority { opened: vec!["/srv/data".into()], ..Authority::headless() };
    for (path, allowed) in [
        ("/srv/data/a.txt", true),
        ("/srv/data/deep/er/a.txt", true),
        ("/srv/data2/a.txt", false),
        ("/srv/a.txt", false),
    ] {
        let decision = decide(&authority, &request(Read, &[path]));
        assert_eq!(matches!(decision, Decision::Allow(_)), allowed, "{path}");
    }
    // One closed directory among open ones is enough to refuse.
    let mixed = decide(&authority, &request(Read, &["/srv/data/a.txt", "/etc/passwd"]));
    assert!(denial(mixed).basis.reason.contains("`/etc/passwd`"));
}

#[test]
fn read_only_closes_directories_that_were_opened() {
    let authority = Authority { read_only: true, opened: vec!["/srv/data".into()], ..Authority::headless() };
    for authority in surfaces(authority) {
        let denial = denial(decide(&authority, &request(Read, &["/srv/data/a.txt"])));
        assert_eq!((denial.basis.source, denial.answerable), (VerdictSource::ReadOnly, false));
        assert_eq!(denial.remedy, "");
    }
}
