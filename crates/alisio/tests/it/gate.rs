//! The truth table of flags, effects and surfaces, and paths outside the workspace.

use std::fs;

use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

/// What happens to an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    /// The model is offered it, and a call runs.
    Allowed,
    /// It is not offered: nobody could be asked. A call of it anyway is refused; the person could have allowed it.
    Unavailable,
    /// It is never offered, and a call of it anyway is refused whatever else was given.
    Denied,
}
use Is::{Allowed, Denied, Unavailable};

#[rustfmt::skip]
const TABLE: &[(&[&str], Is, Is)] = &[
    // flags                                                            write        process
    (&[],                                                               Unavailable, Unavailable),
    (&["--allow-write"],                                                Allowed,     Unavailable),
    (&["--allow-process"],                                              Unavailable, Allowed),
    (&["--allow-external"],                                             Unavailable, Unavailable),
    (&["--allow-write", "--allow-process"],                             Allowed,     Allowed),
    (&["--read-only"],                                                  Denied,      Denied),
    (&["--read-only", "--allow-write"],                                 Denied,      Denied),
    (&["--read-only", "--allow-process", "--allow-external"],           Denied,      Denied),
    (&["--agent", "plan", "--allow-write", "--allow-process"],          Denied,      Denied),
];

const READS: [&str; 6] =
    ["read_file", "list_files", "search_text", "git_status", "git_diff", "context_explain"];

#[derive(Clone, Copy, Debug)]
enum Surface {
    Run,
    RunJson,
    Resume,
    ResumeJson,
}

impl Surface {
    fn work(self, rig: &Rig, flags: &[&str]) -> Ran {
        let session;
        let mut args = match self {
            Self::Run => vec!["run", "do it"],
            Self::RunJson => vec!["run", "--json", "do it"],
            Self::Resume | Self::ResumeJson => {
                session = rig.session("hello");
                vec!["resume", &session, "do it"]
            }
        };
        if matches!(self, Self::ResumeJson) {
            args.push("--json");
        }
        args.extend(flags);
        rig.alisio(&args)
    }
}

fn script(calls: Value) -> Value {
    json!([
        {"match": {"user": "hello"}, "text": "hello"},
        {"match": {"user": "do it", "lastRole": "user"}, "calls": calls},
        {"match": {"lastRole": "tool"}, "text": "that was it"},
    ])
}

#[test]
fn flags_effects_and_surfaces() {
    let acts = [
        (
            "write",
            "write_file",
            json!({"path": "written", "content": "x\n", "expectedHash": null}),
            "edit_file",
        ),
        ("process", "shell", json!({"command": "echo x > ran"}), "run_process"),
    ];
    for (flags, write, process) in TABLE {
        for surface in [Surface::Run, Surface::RunJson, Surface::Resume, Surface::ResumeJson] {
            for ((effect, tool, arguments, sibling), is) in acts.iter().zip([write, process]) {
                let case = format!("{flags:?} {effect} {surface:?}");
                let rig = Rig::new(script(json!([{"name": tool, "arguments": arguments}])));
                let ran = surface.work(&rig, flags);
                let n = rig.server.request_count();
                let offered = rig.offered(n - 1);
                for name in [tool, sibling] {
                    assert_eq!(
                        offered.iter().any(|o| o == name),
                        *is == Allowed,
                        "{case}: {name} in {offered:?}"
                    );
                }
                for name in READS {
                    assert!(offered.iter().any(|o| o == name), "{case}: {name} in {offered:?}");
                }
                let done = rig.workspace().join("written").exists() || rig.workspace().join("ran").exists();
                assert_eq!(done, *is == Allowed, "{case}");
                let result = rig.results().pop().unwrap_or_default();
                let (code, refused) = match is {
                    Allowed => (0, None),
                    Unavailable => (4, Some(format!("run again with --allow-{effect}"))),
                    Denied => (0, Some("refused: ".to_owned())),
                };
                assert_eq!(ran.code, code, "{case}: {result}\n{}", ran.stderr);
                match refused {
                    Some(words) => assert!(result.contains(&words), "{case}: {result}"),
                    None => assert!(!result.starts_with("refused"), "{case}: {result}"),
                }
                assert!(ran.stdout.contains("that was it"), "{case}: the run goes on");
            }
        }
    }
}

#[test]
fn every_verdict_is_an_event_with_its_source() {
    for (flags, verdict, source) in [
        (vec![], "deny", "nobody-to-ask"),
        (vec!["--allow-write"], "allow", "flag"),
        (vec!["--read-only"], "deny", "read-only"),
    ] {
        let arguments = json!({"path": "written", "content": "x\n", "expectedHash": null});
        let rig = Rig::calling("write_file", arguments);
        let ran = rig.alisio(&[&["run", "--json", "do it"][..], &flags].concat());
        let decided = ran.events_of("tool_decided");
        assert_eq!(decided.len(), 1, "{}", ran.stdout);
        let text = decided[0]["data"].to_string();
        assert!(text.contains(verdict) && text.contains(source), "{flags:?}: {text}");
    }
}

#[test]
fn a_path_outside_is_refused_with_the_resolved_path_and_the_remedies() {
    for given in ["../outside/secret.txt", "./../workspace/../outside/secret.txt"] {
        let rig = Rig::calling("read_file", json!({"path": given}));
        let secret = rig.path("outside").join("secret.txt");
        fs::write(&secret, "the word is quince\n").expect("the folder is there");
        let ran = rig.alisio(&["run", "read it"]).expect(4);
        let result = rig.results().remove(0);
        let outside = rig.path("outside");
        for words in [
            secret.display().to_string(),
            format!("--add-dir {}", outside.display()),
            format!("add \"{}\" to `additionalDirectories`", outside.display()),
        ] {
            assert!(result.contains(&words), "{words}: {result}");
        }
        assert!(!result.contains("quince"));
        ran.says(&[
            "refused, and nobody could be asked",
            &secret.display().to_string(),
            &format!("--add-dir {}", outside.display()),
        ]);
    }
}

#[test]
fn declared_directories_open_and_read_only_closes_them() {
    let opened = |configure: bool, flags: &[&str]| {
        let rig = Rig::calling("read_file", json!({"path": "../outside/secret.txt"}));
        fs::write(rig.path("outside").join("secret.txt"), "the word is quince\n")
            .expect("the folder is there");
        if configure {
            // Relative to the file that says it, not to the workspace.
            rig.configure(json!({"additionalDirectories": ["../outside"]}));
        }
        let ran = rig.alisio(&[&["run", "read it"][..], flags].concat());
        (ran.code, rig.results().remove(0).contains("quince"))
    };
    for (configure, flags, expected) in [
        (false, &[][..], (4, false)),
        (false, &["--add-dir", "../outside"], (0, true)),
        (true, &[], (0, true)),
        (true, &["--read-only"], (0, false)),
        (false, &["--read-only", "--add-dir", "../outside"], (0, false)),
    ] {
        assert_eq!(opened(configure, flags), expected, "configured {configure}, {flags:?}");
    }
}

#[test]
fn an_opened_directory_does_not_allow_to_write_there() {
    for (flags, code) in
        [(&["--add-dir", "../outside"][..], 4), (&["--add-dir", "../outside", "--allow-write"], 0)]
    {
        let rig = Rig::calling(
            "write_file",
            json!({"path": "../outside/new", "content": "x", "expectedHash": null}),
        );
        rig.alisio(&[&["run", "do it"][..], flags].concat()).expect(code);
        assert_eq!(rig.path("outside").join("new").exists(), code == 0);
    }
}

#[test]
fn an_alisio_that_a_tool_starts_may_do_no_more_than_the_run_above_it() {
    let rig = Rig::calling("write_file", json!({"path": "written", "content": "x", "expectedHash": null}));
    let child = rig
        .command(&["run", "--allow-write", "--allow-process", "do it"])
        .env("ALISIO_CEILING", "read,internal,process")
        .spawn()
        .expect("the binary starts");
    crate::rig::finish(child).expect(0);
    assert!(!rig.workspace().join("written").exists());
    let offered = rig.offered(0);
    assert!(
        offered.iter().any(|name| name == "shell") && !offered.iter().any(|name| name == "write_file"),
        "{offered:?}"
    );
}
