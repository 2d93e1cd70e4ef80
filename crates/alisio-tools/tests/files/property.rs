//! The rule of edits: every byte outside the edited span stays, or the edit is refused for a reason from the list.
//!
//! `ALISIO_PROPTEST_CASES` says how many cases to try.

use alisio_host::workspace::Reason;
use proptest::prelude::*;
use serde_json::json;

use crate::bench::{Bench, reason};

#[derive(Clone, Copy, Debug)]
enum Form {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
    EightBit,
    Junk,
}

/// A file as a list of characters, each with the bytes that stand for it and the text that the model sees for it.
#[derive(Clone, Debug)]
struct Generated {
    form: Form,
    mark: Vec<u8>,
    units: Vec<(Vec<u8>, String)>,
    /// Bytes after the last whole unit.
    tail: Vec<u8>,
}

impl Generated {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.mark.clone();
        self.units.iter().for_each(|(unit, _)| bytes.extend_from_slice(unit));
        bytes.extend_from_slice(&self.tail);
        bytes
    }

    fn text(&self, from: usize, to: usize) -> String {
        self.units[from..to].iter().map(|(_, text)| text.as_str()).collect()
    }

    fn length(&self, to: usize) -> usize {
        self.units[..to].iter().map(|(unit, _)| unit.len()).sum()
    }
}

fn encode(form: Form, text: &str) -> Vec<u8> {
    match form {
        Form::Utf8 | Form::Utf8Bom => text.as_bytes().to_vec(),
        Form::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Form::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        Form::EightBit | Form::Junk => {
            text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
        }
    }
}

/// What a result's bytes read as, by this test's own decoding; the model's view of it.
fn seen(form: Form, bytes: &[u8]) -> String {
    let text = match form {
        Form::Utf8 | Form::Utf8Bom => String::from_utf8(bytes.to_vec()).expect("the file stays UTF-8"),
        Form::Utf16Le | Form::Utf16Be => {
            let read = |pair: &[u8]| match form {
                Form::Utf16Le => u16::from_le_bytes([pair[0], pair[1]]),
                _ => u16::from_be_bytes([pair[0], pair[1]]),
            };
            assert_eq!(bytes.len() % 2, 0, "the span has whole units");
            String::from_utf16(&bytes.chunks(2).map(read).collect::<Vec<_>>()).expect("the span stays UTF-16")
        }
        Form::EightBit | Form::Junk => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    text.replace("\r\n", "\n")
}

fn piece() -> impl Strategy<Value = &'static str> {
    // Few different pieces, so that text repeats and matches are sometimes not unique.
    prop::sample::select(vec![
        "a", "b", "ab", " ", "\t", "word", "{", "}", "é", "ü", "\n", "\n", "\r\n", "\r\n", "\r", "0", "Ω",
        "𝄞", "~",
    ])
}

fn generated() -> impl Strategy<Value = Generated> {
    let form = prop::sample::select(vec![
        Form::Utf8,
        Form::Utf8,
        Form::Utf8Bom,
        Form::Utf16Le,
        Form::Utf16Be,
        Form::EightBit,
        Form::Junk,
    ]);
    let ends = prop::sample::select(vec!["\n", "\r\n", ""]);
    (
        form,
        ends,
        prop::collection::vec(piece(), 0..60),
        any::<bool>(),
        prop::collection::vec(128_u8..=255, 0..6),
    )
        .prop_map(|(form, ends, pieces, last_end, junk)| {
            let mut units = Vec::new();
            for piece in pieces {
                // A whole-file line end now and then; mixed ones else.
                let piece = match piece {
                    "\n" | "\r\n" if !ends.is_empty() => ends,
                    other => other,
                };
                let shown = if piece == "\r\n" { "\n" } else { piece };
                units.push((encode(form, piece), shown.to_owned()));
            }
            if last_end && !ends.is_empty() {
                units.push((encode(form, ends), "\n".to_owned()));
            }
            if matches!(form, Form::EightBit | Form::Junk) {
                // A byte that stands nowhere in UTF-8, whatever comes beside it, so that the file is not taken for it.
                units.push((vec![0xc0], "\u{c0}".to_owned()));
                units.push((vec![b'.'], ".".to_owned()));
            }
            // The two halves of a line end are one for the model, however they came together.
            let mut joined: Vec<(Vec<u8>, String)> = Vec::new();
            for (bytes, shown) in units {
                match joined.last_mut() {
                    Some(last) if last.1 == "\r" && bytes == encode(form, "\n") => {
                        *last = (encode(form, "\r\n"), "\n".to_owned());
                    }
                    _ => joined.push((bytes, shown)),
                }
            }
            let mut units = joined;
            let mut tail = Vec::new();
            match form {
                Form::Junk => {
                    for byte in junk {
                        units.insert(units.len() / 2, (vec![byte], char::from(byte).to_string()));
                    }
                }
                Form::Utf16Le | Form::Utf16Be if last_end => tail.push(b'x'),
                _ => {}
            }
            let mark: &[u8] = match form {
                Form::Utf8Bom => b"\xef\xbb\xbf",
                Form::Utf16Le => b"\xff\xfe",
                Form::Utf16Be => b"\xfe\xff",
                Form::Utf8 | Form::EightBit | Form::Junk => b"",
            };
            Generated { form, mark: mark.to_vec(), units, tail }
        })
}

#[derive(Clone, Debug)]
struct Edit {
    from: prop::sample::Index,
    length: usize,
    new: String,
    /// Text that the model made up instead of what stands there.
    invented: Option<String>,
    stale: bool,
}

fn edit() -> impl Strategy<Value = Edit> {
    let text = |most| prop::collection::vec(piece(), 0..most).prop_map(|pieces| pieces.concat());
    (
        any::<prop::sample::Index>(),
        1_usize..30,
        text(12),
        prop::option::weighted(0.1, text(6)),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(from, length, new, invented, stale)| Edit { from, length, new, invented, stale })
}

fn cases() -> u32 {
    std::env::var("ALISIO_PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1000)
}

#[test]
fn bytes_outside_the_span_stay_or_the_edit_is_refused() {
    let bench = Bench::new::<&str, &str>(&[]);
    let (mut done, mut refused) = (0_u32, 0_u32);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let counts = std::cell::RefCell::new((&mut done, &mut refused));
    runner
        .run(&(generated(), edit()), |(file, edit)| {
            let before = file.bytes();
            bench.write("f", &before);
            let from = if file.units.is_empty() { 0 } else { edit.from.index(file.units.len()) };
            let to = file.units.len().min(from + edit.length);
            let old = edit.invented.clone().unwrap_or_else(|| file.text(from, to));
            let hash = if edit.stale { "0".repeat(64) } else { bench.sha256("f") };
            let result = bench.call(
                "edit_file",
                &json!({"path": "f", "oldText": old, "newText": edit.new, "expectedHash": hash}),
            );
            let after = bench.read("f");
            let (done, refused) = &mut *counts.borrow_mut();
            if result.is_error {
                prop_assert_eq!(&after, &before);
                let text = result.text_projection();
                let said_of_input = ["`oldText` is empty", "`oldText` and `newText` are the same"];
                if !said_of_input.iter().any(|said| text.starts_with(said)) {
                    let word = reason(&result).expect("an error is a refusal");
                    prop_assert!(Reason::ALL.iter().any(|reason| reason.as_str() == word), "{}", text);
                    let stands = edit.invented.is_none() && !edit.stale;
                    prop_assert!(!(stands && word == "no-match"), "it stands there: {}", text);
                }
                **refused += 1;
                return Ok(());
            }
            prop_assert!(!edit.stale);
            **done += 1;
            if edit.invented.is_some() {
                // Where it stands is not known here; the seen text must be the old one with one replacement.
                let start = file.mark.len();
                let end = |bytes: &[u8]| bytes.len() - file.tail.len();
                let was = seen(file.form, &before[start..end(&before)]);
                let is = seen(file.form, &after[start..end(&after)]);
                let (old, new) = (old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n"));
                // A lone `\r` before the place and a `\n` put there read as one line end afterwards.
                if was.contains('\r') || new.contains('\r') {
                    return Ok(());
                }
                let fits = was
                    .match_indices(&old)
                    .any(|(at, _)| is == format!("{}{new}{}", &was[..at], &was[at + old.len()..]));
                prop_assert!(fits, "{:?} {:?}", was, is);
                return Ok(());
            }
            let start = file.mark.len() + file.length(from);
            let end = file.mark.len() + file.length(to);
            let rest = before.len() - end;
            prop_assert!(after.len() >= start + rest);
            prop_assert_eq!(&after[..start], &before[..start]);
            prop_assert_eq!(&after[after.len() - rest..], &before[end..]);
            let span = seen(file.form, &after[start..after.len() - rest]);
            prop_assert_eq!(span, edit.new.replace("\r\n", "\n"));
            Ok(())
        })
        .unwrap();
    // Neither side of the rule may be tried by accident only.
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
}
