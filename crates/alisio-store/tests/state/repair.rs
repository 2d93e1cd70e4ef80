//! Whatever stands in the rows, what is loaded is a conversation that can be sent.

use std::collections::VecDeque;

use alisio_protocol::{CallId, Effect, Message, RunId, ToolResult};
use alisio_store::{Durability, Loaded, SessionWriter};
use proptest::prelude::*;

use crate::{Scratch, answer, asking, call, new_session, time, user};

/// Plays a script on a session. The words: `user`, `ask:a,b`, `start:a:read`, `end:a`, `tell:a` (the message with the
/// result), `other:a` (one with another result), `odd` (a row nobody can read), `foreign:a` (an assistant message whose
/// input is no object), `empty`, `spoil:a` (the journal's result becomes unreadable), `run` (the next run).
fn play(scratch: &Scratch, writer: &SessionWriter, script: &str) {
    let mut run = RunId::new("r0");
    let sql = scratch.sql();
    sql.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    let row = |role: &str, body: &str| {
        let key: i64 = sql
            .query_row("SELECT key FROM sessions WHERE id = ?1", [writer.session().as_str()], |row| {
                row.get(0)
            })
            .unwrap();
        let insert = "INSERT INTO messages (session, run, role, body) VALUES (?1, 'r0', ?2, ?3)";
        sql.execute(insert, rusqlite::params![key, role, body]).unwrap();
    };
    for (number, word) in script.split_whitespace().enumerate() {
        let parts: Vec<&str> = word.split(':').collect();
        let ok = |id: &str| ToolResult::text(format!("ok {id}"));
        match parts.as_slice() {
            ["odd"] => row("user", "{\"role\":\"user\",\"te"),
            ["empty"] => row("assistant", "{\"role\":\"assistant\",\"text\":\"\"}"),
            ["foreign", id] => row(
                "assistant",
                &format!(
                    "{{\"role\":\"assistant\",\"text\":\"\",\"calls\":[{{\"id\":\"{id}\",\"name\":\"tool\",\"arguments\":\"[1\"}}]}}"
                ),
            ),
            ["spoil", id] => {
                sql.execute(
                    "UPDATE calls SET result = 'broken' WHERE call = ?1 AND result IS NOT NULL",
                    [id],
                )
                .unwrap();
            }
            ["run"] => run = RunId::new(format!("r{number}")),
            _ => {
                // A result that nobody waits for is refused; the script goes on.
                let _ = writer.commit(Durability::Unsynced, |tx| match parts.as_slice() {
                    ["user"] => tx.message(&run, &user("do")),
                    ["ask", ids] => tx.message(&run, &asking(&ids.split(',').collect::<Vec<_>>())),
                    ["start", id, effect] => {
                        let effect = Effect::ALL.into_iter().find(|known| known.as_str() == *effect).unwrap();
                        tx.call_started(&call(&run, id, effect))
                    }
                    ["end", id] => tx.call_ended(&CallId::new(*id), &ok(id), &time(2)),
                    ["tell", id] => tx.message(&run, &answer(id, ok(id))),
                    ["other", id] => tx.message(&run, &answer(id, ToolResult::text("other"))),
                    _ => panic!("{word}"),
                });
            }
        }
    }
}

/// Says what was loaded, in one line a message, then notes and uncertain calls.
fn tell(loaded: &Loaded) -> String {
    let mut lines = Vec::new();
    for message in &loaded.messages {
        lines.push(match message {
            Message::User(_) => "user".to_owned(),
            Message::Assistant(answer) => {
                let ids: Vec<_> = answer.calls.iter().map(|call| call.id.as_str()).collect();
                format!("ask {}", ids.join(","))
            }
            Message::Tool(answer) => {
                let text = answer.result.text_projection();
                let first = text.split([':', ';']).next().unwrap_or_default().to_owned();
                format!("{} {first}{}", answer.call_id, if answer.result.is_error { " !" } else { "" })
            }
        });
    }
    lines.extend(loaded.repairs.iter().map(|note| format!("- {note}")));
    lines.extend(loaded.uncertain.iter().map(|call| format!("? {} {}", call.call, call.effect)));
    lines.join("\n")
}

pub(crate) fn assert_balanced(messages: &[Message]) {
    let mut waiting = VecDeque::new();
    for message in messages {
        match message {
            Message::Tool(answer) => {
                assert_eq!(waiting.pop_front().as_ref(), Some(&answer.call_id), "{messages:#?}")
            }
            other => {
                assert!(waiting.is_empty(), "{messages:#?}");
                if let Message::Assistant(answer) = other {
                    waiting = answer.calls.iter().map(|call| call.id.clone()).collect();
                    assert!(answer.calls.iter().all(|call| {
                        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&call.arguments)
                            .is_ok()
                    }));
                }
            }
        }
    }
    assert!(waiting.is_empty(), "{messages:#?}");
}

#[test]
fn each_kind_of_repair() {
    let cases = [
        ("whole", "user ask:a start:a:read end:a tell:a", "user\nask a\na ok a"),
        ("results out of order", "ask:a,b tell:b tell:a", "ask a,b\na ok a\nb ok b"),
        ("another result than the journal's", "ask:a start:a:read end:a other:a", "ask a\na other"),
        (
            "nobody asked",
            "user tell:a",
            "user\n- a result for call `a` was left out: no call is waiting for it",
        ),
        (
            "told twice",
            "ask:a tell:a tell:a",
            "ask a\na ok a\n- a result for call `a` was left out: no call is waiting for it",
        ),
        (
            "told too late",
            "ask:a,b user tell:b tell:a",
            "ask a,b\na ok a\nb ok b\nuser\n- the result of call `a` stood in the wrong place\n\
             - the result of call `b` stood in the wrong place",
        ),
        (
            "told behind the next call of that id",
            "ask:a ask:a tell:a",
            "ask a\na not run !\nask a\na ok a\n- call `a` of `tool` was not run: the run ended before it",
        ),
        ("not run", "ask:a", "ask a\na not run !\n- call `a` of `tool` was not run: the run ended before it"),
        (
            "result only in the journal",
            "ask:a,b start:a:write end:a",
            "ask a,b\na ok a\nb not run !\n- the result of call `a` of `tool` came from the journal\n\
             - call `b` of `tool` was not run: the run ended before it",
        ),
        (
            "read cut",
            "ask:a start:a:read",
            "ask a\na interrupted !\n- call `a` of `tool` was interrupted; it left nothing behind",
        ),
        (
            "internal cut",
            "ask:a start:a:internal",
            "ask a\na interrupted !\n- call `a` of `tool` was interrupted; it left nothing behind",
        ),
        (
            "write cut",
            "ask:a start:a:write",
            "ask a\na outcome unknown !\n- the outcome of call `a` of `tool` is unknown\n? a write",
        ),
        (
            "process cut",
            "ask:a start:a:process",
            "ask a\na outcome unknown !\n- the outcome of call `a` of `tool` is unknown\n? a process",
        ),
        (
            "external cut",
            "ask:a start:a:external",
            "ask a\na outcome unknown !\n- the outcome of call `a` of `tool` is unknown\n? a external",
        ),
        ("uncertain without its message", "user start:a:write", "user\n? a write"),
        (
            "a repeated id",
            "ask:a start:a:write end:a tell:a ask:a start:a:write end:a user",
            "ask a\na ok a\nask a\na ok a\nuser\n- the result of call `a` of `tool` came from the journal",
        ),
        ("a repeated id in one answer", "ask:a,a tell:a other:a", "ask a,a\na ok a\na other"),
        (
            "a repeated id in another run",
            "ask:a start:a:write end:a tell:a run ask:a",
            "ask a\na ok a\nask a\na not run !\n- call `a` of `tool` was not run: the run ended before it",
        ),
        (
            "an odd row among results",
            "ask:a odd tell:a user",
            "ask a\na ok a\nuser\n- a message can't be read and was left out: EOF while parsing a string at line 1 column 18",
        ),
        ("an empty answer", "user empty user", "user\nuser\n- an empty answer of the model was left out"),
        (
            "input that is no object",
            "foreign:a tell:a",
            "ask a\na ok a\n- the input of call `a` can't be read and was left out",
        ),
        (
            "an unreadable result that was told",
            "ask:a start:a:read end:a tell:a spoil:a",
            "ask a\na the stored result of this call can't be read !\n\
             - the result of call `a` can't be read: expected value at line 1 column 1",
        ),
    ];
    let scratch = Scratch::new();
    for (index, (name, script, expected)) in cases.into_iter().enumerate() {
        let session = new_session(&scratch.store, &format!("s{index}"), "/w", 1);
        let writer = scratch.store.lock(&session).unwrap();
        play(&scratch, &writer, script);
        let viewed = scratch.store.view(&session).unwrap();
        let loaded = writer.load().unwrap();
        assert_eq!(tell(&loaded), expected, "{name}");
        assert_eq!(viewed, loaded, "{name}");
        assert_balanced(&loaded.messages);
        // `spoil` goes by the id alone: later cases must not see these calls.
        scratch.store.delete(writer).unwrap();
    }
}

#[test]
fn an_uncertain_call_stays_so_until_it_is_acknowledged_and_is_told_once() {
    let scratch = Scratch::new();
    let session = new_session(&scratch.store, "s", "/w", 1);
    let writer = scratch.store.lock(&session).unwrap();
    play(&scratch, &writer, "user ask:a,b start:a:read start:b:write");
    for _ in 0..2 {
        assert_eq!(writer.load().unwrap().uncertain.len(), 1);
    }
    assert_eq!(writer.acknowledge_uncertain(&time(5)).unwrap(), [CallId::new("b")]);
    assert_eq!(writer.acknowledge_uncertain(&time(6)).unwrap(), []);
    let late = writer.commit(Durability::Unsynced, |tx| {
        tx.call_ended(&CallId::new("b"), &ToolResult::text("late"), &time(7))
    });
    assert!(late.is_err(), "a result is never replaced");
    let expected =
        "user\nask a,b\na interrupted !\nb outcome unknown !\n- the outcome of call `b` of `tool` is unknown";
    assert_eq!(tell(&writer.load().unwrap()), expected);
    writer.commit(Durability::Unsynced, |tx| tx.repairs_told()).unwrap();
    play(&scratch, &writer, "run user ask:c");
    let expected = "user\nask a,b\na interrupted !\nb outcome unknown !\nuser\nask c\nc not run !\n\
                    - call `c` of `tool` was not run: the run ended before it";
    assert_eq!(tell(&writer.load().unwrap()), expected);
}

fn word() -> impl Strategy<Value = String> {
    let id = prop::sample::select(vec!["a", "b", "c"]);
    let effect = prop::sample::select(vec!["read", "write", "process", "external", "internal"]);
    prop_oneof![
        2 => Just("user".to_owned()),
        1 => prop::sample::select(vec!["odd", "empty", "run"]).prop_map(str::to_owned),
        4 => prop::collection::vec(id.clone(), 1..4).prop_map(|ids| format!("ask:{}", ids.join(","))),
        3 => (id.clone(), effect).prop_map(|(id, effect)| format!("start:{id}:{effect}")),
        5 => (prop::sample::select(vec!["end", "tell", "other", "foreign", "spoil"]), id)
            .prop_map(|(word, id)| format!("{word}:{id}")),
    ]
}

#[test]
fn any_rows_give_a_balanced_conversation() {
    let scratch = Scratch::new();
    let number = std::cell::Cell::new(0);
    let config = ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(words in prop::collection::vec(word(), 0..24))| {
        number.set(number.get() + 1);
        let session = new_session(&scratch.store, &format!("s{}", number.get()), "/w", 1);
        let writer = scratch.store.lock(&session).unwrap();
        play(&scratch, &writer, &words.join(" "));
        let first = writer.load().unwrap();
        assert_balanced(&first.messages);
        let second = writer.load().unwrap();
        prop_assert_eq!(&first.messages, &second.messages);
        prop_assert_eq!(&first.uncertain, &second.uncertain);
        let acknowledged = writer.acknowledge_uncertain(&time(9)).unwrap();
        prop_assert_eq!(acknowledged.len(), first.uncertain.len());
        let third = writer.load().unwrap();
        prop_assert_eq!(&first.messages, &third.messages);
        prop_assert!(third.uncertain.is_empty());
    });
}
