//! The run that is killed: what the model asks for, and what each call may leave behind.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use alisio_conformance::{CallStep, Deltas, Scenario, Turn};
use alisio_protocol::Sha256;
use serde_json::{Value, json};

/// What one call may leave behind.
pub(crate) enum Trace {
    /// Nothing.
    None,
    /// The next content of this file of the workspace.
    File(&'static str),
    /// One line, the call's id, in the side file.
    Line,
}

/// One call of the script.
pub(crate) struct Step {
    pub(crate) id: &'static str,
    tool: &'static str,
    arguments: Value,
    pub(crate) trace: Trace,
}

/// The whole run.
pub(crate) struct Script {
    turns: Vec<Vec<Step>>,
    /// The contents that each file has in turn; `None`: it is not there yet.
    pub(crate) contents: BTreeMap<&'static str, Vec<Option<String>>>,
}

impl Script {
    /// Makes the script. Each process appends its call's id to the file `log` before it does anything else, and
    /// `marker` is a number that stands in the command line of what it leaves running.
    pub(crate) fn new(log: &str, marker: &str) -> Self {
        let mut numbers = String::new();
        for line in 0..12_000 {
            writeln!(numbers, "line {line} of the large file").expect("a string takes all");
        }
        let numbers_after = numbers.replacen("line 6000 of", "line six thousand of", 1);
        let contents = BTreeMap::from([
            ("a.txt", vec![some("one\ntwo\nthree\n"), some("one\n2\nthree\n"), some("one\n2\n3\n")]),
            ("b.txt", vec![some("old\n"), some("new\n"), some("newer\n")]),
            ("large.txt", vec![Some(numbers), Some(numbers_after)]),
            ("fresh.txt", vec![None, some("fresh\n"), some("fresher\n")]),
            ("deep/er/file.txt", vec![None, some("deep\n")]),
        ]);
        let at = |path: &str, index: usize| contents[path][index].clone().unwrap_or_default();
        let hash = |path: &str, index: usize| Sha256::of(at(path, index).as_bytes()).to_string();

        let read = |id, path: &str| step(id, "read_file", json!({"path": path}), Trace::None);
        let edit = |id, path: &'static str, index: usize, old: &str, new: &str| {
            let arguments =
                json!({"path": path, "oldText": old, "newText": new, "expectedHash": hash(path, index)});
            step(id, "edit_file", arguments, Trace::File(path))
        };
        let write = |id, path: &'static str, index: usize| {
            let expected = at(path, index - 1);
            let expected = if expected.is_empty() { Value::Null } else { json!(hash(path, index - 1)) };
            let arguments = json!({"path": path, "content": at(path, index), "expectedHash": expected});
            step(id, "write_file", arguments, Trace::File(path))
        };
        let shell = |id: &'static str, rest: &str| {
            step(id, "shell", json!({"command": format!("echo {id} >> '{log}'; {rest}")}), Trace::Line)
        };

        let turns = vec![
            vec![
                read("read-a", "a.txt"),
                read("read-b", "b.txt"),
                step("list", "list_files", json!({"path": "."}), Trace::None),
                step("search", "search_text", json!({"pattern": "two"}), Trace::None),
                step("status", "git_status", json!({}), Trace::None),
            ],
            vec![edit("edit-a-1", "a.txt", 0, "two", "2"), read("read-a-again", "a.txt")],
            vec![shell("short", "sleep 0.03")],
            vec![
                write("write-b-1", "b.txt", 1),
                edit("edit-large", "large.txt", 0, "line 6000 of", "line six thousand of"),
                write("write-deep", "deep/er/file.txt", 1),
            ],
            vec![shell(
                "background",
                &format!(
                    "sleep 1000.{marker} & (setsid sleep 1000.{marker} &) ; nohup sleep 1000.{marker} & sleep 0.1"
                ),
            )],
            vec![
                write("write-fresh-1", "fresh.txt", 1),
                step(
                    "program",
                    "run_process",
                    json!({"command": "sh", "args": ["-c", format!("echo program >> '{log}'; sleep 0.05")]}),
                    Trace::Line,
                ),
                step("diff", "git_diff", json!({}), Trace::None),
            ],
            vec![
                read("read-b-again", "b.txt"),
                // Deaf to SIGTERM, in a session of its own, with nothing open: a daemon.
                shell(
                    "daemon",
                    &format!(
                        "setsid sh -c 'trap \"\" TERM HUP; sleep 1000.{marker}; sleep 1000.{marker}' \
                         > /dev/null 2>&1 < /dev/null & sleep 0.1"
                    ),
                ),
            ],
            vec![
                edit("edit-a-2", "a.txt", 1, "three", "3"),
                write("write-b-2", "b.txt", 2),
                write("write-fresh-2", "fresh.txt", 2),
                shell("loud", "seq 1 40000"),
            ],
            vec![shell("last", "sleep 0.03"), read("read-large", "large.txt")],
        ];
        Self { turns, contents }
    }

    /// The script as what the model says.
    pub(crate) fn scenario(&self) -> Scenario {
        let mut turns: Vec<Turn> = self
            .turns
            .iter()
            .map(|steps| Turn {
                calls: steps.iter().map(Step::call).collect(),
                deltas: Some(Deltas { size: Some(20), ..Deltas::default() }),
                delay_ms: 5,
                ..Turn::text("I go on with the next thing, a few words at a time.")
            })
            .collect();
        turns.push(Turn::text("Everything is done."));
        Scenario::new(turns)
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.turns.iter().flatten()
    }
}

impl Step {
    fn call(&self) -> CallStep {
        CallStep { id: Some(self.id.into()), name: self.tool.into(), arguments: self.arguments.clone() }
    }
}

/// What the model says when the session goes on: a read, a write and a process, once each.
pub(crate) fn after(log: &str) -> Scenario {
    let steps = [
        step("after-read", "read_file", json!({"path": "a.txt"}), Trace::None),
        step(
            "after-write",
            "write_file",
            json!({"path": "after.txt", "content": "after\n", "expectedHash": null}),
            Trace::File("after.txt"),
        ),
        step("after-shell", "shell", json!({"command": format!("echo after-shell >> '{log}'")}), Trace::Line),
    ];
    let calls = Turn { calls: steps.iter().map(Step::call).collect(), ..Turn::text("") };
    Scenario::new(vec![calls, Turn::text("Gone on.")])
}

fn step(id: &'static str, tool: &'static str, arguments: Value, trace: Trace) -> Step {
    Step { id, tool, arguments, trace }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}
