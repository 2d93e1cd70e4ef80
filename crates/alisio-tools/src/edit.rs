//! Replacing one exact, unique piece of text in a file's bytes. Every byte outside that piece stays as it is.
//!
//! The model sees LF line ends whatever the file has. So a `\n` of the old text stands for `\r\n` where the file has
//! that, what looks the same twice is not unique, and the new text takes the line ends of what it replaces. Old text
//! with a `\r` of its own is taken at its word.

use memchr::memmem::Finder;

use crate::text::{Encoding, with_lf};

/// A changed file.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) bytes: Vec<u8>,
    /// The line where the change begins, from 1.
    pub(crate) line: usize,
}

/// Why there was nothing to change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EditError {
    /// The text can't be written in the file's encoding.
    Encoding,
    NoMatch,
    NotUnique {
        /// The lines where matches begin; at most [`MOST_MATCHES`] are looked for.
        lines: Vec<usize>,
    },
}

/// Matches beyond this are not counted.
pub(crate) const MOST_MATCHES: usize = 100;

/// Replaces the one place where `old` stands by `new`.
pub(crate) fn replace_one(
    bytes: &[u8],
    encoding: Encoding,
    old: &str,
    new: &str,
) -> Result<Edited, EditError> {
    let start = encoding.mark().len();
    let body = Body::new(&bytes[start..], encoding);
    let needle = encoding.encode(old).ok_or(EditError::Encoding)?;
    if encoding.encode(new).is_none() {
        return Err(EditError::Encoding);
    }
    let unit = encoding.unit();
    let (joined, origin) = body.with_lf();
    let in_view = |needle: &[u8]| -> Vec<(usize, usize)> {
        let found = body.matches(&joined, needle, |_| false);
        found.into_iter().map(|at| (origin[at / unit], origin[(at + needle.len()) / unit])).collect()
    };
    // First as the model saw the file, so that what looks the same twice is never taken for unique.
    let mut found = in_view(&needle);
    let mut is_literal = false;
    if found.is_empty() && old.contains('\r') {
        // Then as the bytes are, never half of a line end; then with line ends that the file does not have.
        let splits = |at: usize| body.splits_crlf(at) || body.splits_crlf(at + needle.len());
        let exact = body.matches(body.bytes, &needle, splits);
        found = exact.into_iter().map(|at| (at, at + needle.len())).collect();
        is_literal = !found.is_empty();
        if found.is_empty() {
            found = in_view(&encoding.encode(&with_lf(old)).ok_or(EditError::Encoding)?);
        }
    }
    let (from, to) = match found.as_slice() {
        [place] => *place,
        [] => return Err(EditError::NoMatch),
        many => {
            return Err(EditError::NotUnique { lines: many.iter().map(|(at, _)| body.line(*at)).collect() });
        }
    };
    let ends = if is_literal { Vec::new() } else { body.ends_for(from, to) };
    let new = encoding.encode(&with_ends(new, &ends)).ok_or(EditError::Encoding)?;
    let mut edited = Vec::with_capacity(bytes.len() + new.len());
    edited.extend_from_slice(&bytes[..start + from]);
    edited.extend_from_slice(&new);
    edited.extend_from_slice(&bytes[start + to..]);
    Ok(Edited { bytes: edited, line: body.line(from) })
}

/// The n-th bare `\n` becomes the n-th of `ends`, later ones the last; without `ends` all stay.
fn with_ends(text: &str, ends: &[&'static str]) -> String {
    let mut lines = text.split('\n').peekable();
    let mut written = String::with_capacity(text.len());
    let mut index = 0;
    while let Some(line) = lines.next() {
        written.push_str(line);
        if lines.peek().is_some() {
            let end = ends.get(index).or(ends.last()).copied().unwrap_or("\n");
            written.push_str(if line.ends_with('\r') { "\n" } else { end });
            index += 1;
        }
    }
    written
}

/// The text of a file after its mark, in code units.
struct Body<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
    lf: Vec<u8>,
    cr: Vec<u8>,
}

impl<'a> Body<'a> {
    fn new(bytes: &'a [u8], encoding: Encoding) -> Self {
        let encode = |text| encoding.encode(text).expect("every encoding writes ASCII");
        Self { bytes, encoding, lf: encode("\n"), cr: encode("\r") }
    }

    fn is(&self, at: usize, unit: &[u8]) -> bool {
        self.bytes.get(at..at + unit.len()) == Some(unit)
    }

    /// Whether `at` stands between the two halves of a line end.
    fn splits_crlf(&self, at: usize) -> bool {
        self.is(at, &self.lf) && at >= self.cr.len() && self.is(at - self.cr.len(), &self.cr)
    }

    /// Finds where `needle` begins, overlapping places included, at whole code units.
    fn matches(&self, haystack: &[u8], needle: &[u8], skip: impl Fn(usize) -> bool) -> Vec<usize> {
        let finder = Finder::new(needle);
        let unit = self.encoding.unit();
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = haystack.get(from..).and_then(|rest| finder.find(rest)).map(|at| at + from) {
            from = at + 1;
            if at.is_multiple_of(unit) && !skip(at) {
                found.push(at);
                if found.len() == MOST_MATCHES {
                    break;
                }
            }
        }
        found
    }

    /// The text with every `\r\n` as `\n`, and where each of its units, and its end, stood.
    fn with_lf(&self) -> (Vec<u8>, Vec<usize>) {
        let unit = self.encoding.unit();
        let mut joined = Vec::with_capacity(self.bytes.len());
        let mut origin = Vec::with_capacity(self.bytes.len() / unit + 1);
        let mut at = 0;
        while at + unit <= self.bytes.len() {
            origin.push(at);
            if self.is(at, &self.cr) && self.is(at + unit, &self.lf) {
                at += unit;
            }
            joined.extend_from_slice(&self.bytes[at..at + unit]);
            at += unit;
        }
        origin.push(at);
        (joined, origin)
    }

    /// The line ends between two places.
    fn ends_in(&self, from: usize, to: usize) -> Vec<&'static str> {
        (from..to)
            .step_by(self.encoding.unit())
            .filter(|at| self.is(*at, &self.lf))
            .map(|at| self.end_at(at))
            .collect()
    }

    fn end_at(&self, lf: usize) -> &'static str {
        if self.splits_crlf(lf) { "\r\n" } else { "\n" }
    }

    /// The line ends that new text takes: those of what it replaces, or of the surroundings where that has none.
    fn ends_for(&self, from: usize, to: usize) -> Vec<&'static str> {
        let ends = self.ends_in(from, to);
        if !ends.is_empty() {
            return ends;
        }
        let unit = self.encoding.unit();
        let after = (to..self.bytes.len()).step_by(unit).find(|at| self.is(*at, &self.lf));
        let before = || (0..from).step_by(unit).rfind(|at| self.is(*at, &self.lf));
        after.or_else(before).map(|lf| self.end_at(lf)).into_iter().collect()
    }

    /// The line that holds the unit at `at`, from 1.
    fn line(&self, at: usize) -> usize {
        1 + (0..at).step_by(self.encoding.unit()).filter(|at| self.is(*at, &self.lf)).count()
    }
}

/// Says what comes closest to `old` in `text`, for a model that remembered it wrongly.
pub(crate) fn nearest(text: &str, old: &str) -> Option<String> {
    /// Comparisons before we give up, so that a hostile file can't hold us.
    const BUDGET: usize = 2_000_000;
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.lines().map(squeeze).collect();
    let skipped = wanted.iter().take_while(|line| line.is_empty()).count();
    let wanted = wanted.get(skipped..).filter(|wanted| !wanted.is_empty())?;
    let lines: Vec<String> = text.lines().map(squeeze).collect();
    let mut budget = BUDGET;
    let mut longest: Option<(usize, usize)> = None;
    for start in 0..lines.len() {
        let agree = lines[start..]
            .iter()
            .zip(wanted)
            .take_while(|(line, wanted)| {
                budget = budget.saturating_sub(1);
                line == wanted
            })
            .count();
        if agree == wanted.len() {
            return Some(format!("it differs only in white space from the text at line {}", start + 1));
        }
        if agree > 0 && longest.is_none_or(|(_, most)| agree > most) {
            longest = Some((start, agree));
        }
        if budget == 0 {
            break;
        }
    }
    if let [only] = wanted {
        let at = lines.iter().position(|line| line.contains(only.as_str()))?;
        return Some(format!("it differs only in white space from text in line {}", at + 1));
    }
    let (start, agree) = longest?;
    let lines = if agree == 1 { "line" } else { "lines" };
    Some(format!(
        "its first {agree} {lines} stand at line {}, but line {} is different",
        start + 1,
        start + agree + 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], old: &str, new: &str, expected: Result<&[u8], EditError>) {
        let encoding = Encoding::detect(bytes).expect("the case is text");
        let edited = replace_one(bytes, encoding, old, new).map(|edited| edited.bytes);
        assert_eq!(
            edited.as_deref().map_err(|_| ()),
            expected.as_ref().map(|b| *b).map_err(|_| ()),
            "{old:?}"
        );
        if let (Err(edited), Err(expected)) = (edited, expected) {
            assert_eq!(edited, expected, "{old:?}");
        }
    }

    #[test]
    fn line_ends_follow_the_file() {
        check(b"a\nb\n", "b", "c\nd", Ok(b"a\nc\nd\n"));
        check(b"a\r\nb\r\n", "a\nb", "c\nd\ne", Ok(b"c\r\nd\r\ne\r\n"));
        check(b"a\r\nb", "b", "c\nd", Ok(b"a\r\nc\r\nd"));
        check(b"a\r\nb\r\n", "\nb", "\nx\ny", Ok(b"a\r\nx\r\ny\r\n"));
        check(b"a\r\nb\nc\r\n", "a\nb\nc\n", "a\nB\nc\n", Ok(b"a\r\nB\nc\r\n"));
        check(b"a\nb\r\nc\r\n", "a\nb\n", "x\ny\n", Ok(b"x\ny\r\nc\r\n"));
        check(b"a\r\nb\r\n", "a\r\n", "a\r\nz\n", Ok(b"a\r\nz\nb\r\n"));
        check(b"a\rb", "a\rb", "c", Ok(b"c"));
    }

    #[test]
    fn every_place_counts() {
        check(b"aaa", "aa", "b", Err(EditError::NotUnique { lines: vec![1, 1] }));
        check(b"x\ny\nx\n", "x", "z", Err(EditError::NotUnique { lines: vec![1, 3] }));
        check(b"x\r\ny\r\nx\r\n", "x\n", "z", Err(EditError::NotUnique { lines: vec![1, 3] }));
        // The model sees both alike, whatever their line ends.
        check(b"a\nb\r\na\r\nb", "a\nb", "x", Err(EditError::NotUnique { lines: vec![1, 3] }));
        check(b"x", "y", "z", Err(EditError::NoMatch));
        check(b"a\r\n", "a\r", "z", Err(EditError::NoMatch));
    }

    #[test]
    fn encodings_are_kept() {
        check(b"\xef\xbb\xbfa\n", "a", "\u{e9}", Ok(b"\xef\xbb\xbf\xc3\xa9\n"));
        check(b"\xff\xfea\0\n\0", "a", "\u{e9}", Ok(b"\xff\xfe\xe9\0\n\0"));
        check(b"\xfe\xff\0a\0\r\0\n\0b", "a\nb", "b\na", Ok(b"\xfe\xff\0b\0\r\0\n\0a"));
        // Half a unit at the end stays, and a match must begin at a whole unit.
        check(b"\xff\xfe\x01a\0\x62", "\u{6100}", "x", Err(EditError::NoMatch));
        check(b"\xff\xfea\0b", "a", "x", Ok(b"\xff\xfex\0b"));
        check(b"caf\xe9 a\n", "a\n", "b\n", Ok(b"caf\xe9 b\n"));
        check(b"caf\xe9\n", "caf\u{e9}", "tea", Err(EditError::Encoding));
        check(b"caf\xe9\n", "caf", "th\u{e9}", Err(EditError::Encoding));
    }

    #[test]
    fn nearest_names_the_line() {
        let text = "fn a() {\n    one();\n    two();\n}\n";
        for (old, expected) in [
            ("fn a() {\n\tone();\n", Some("it differs only in white space from the text at line 1")),
            ("two( );", None),
            ("  two();  ", Some("it differs only in white space from the text at line 3")),
            (
                "fn a() {\n    one();\n    three();",
                Some("its first 2 lines stand at line 1, but line 3 is different"),
            ),
            ("\n\n", None),
            ("", None),
        ] {
            assert_eq!(nearest(text, old).as_deref(), expected, "{old:?}");
        }
    }
}
