//! Server-sent events, cut out of bytes as they come.
//!
//! Follows the WHATWG rules (three kinds of line end, comments, a byte-order mark, fields) and is lenient where
//! model servers are careless: an event may lack its blank line, a line may be bare JSON without `data:`, the last
//! event may end with the stream. It works on bytes, so a character cut between two reads is no case of its own, and
//! allocates nothing per line. Characters and JSON are the reader's business, not ours.

use memchr::memchr2;

/// The longest line or event that is taken, in bytes.
pub(crate) const LIMIT: usize = 32 << 20;

/// Whether the stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// More is wanted.
    More,
    /// Nothing that follows matters.
    End,
}

/// Says that a line or event passes [`LIMIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// The state between two reads.
#[derive(Debug, Default)]
pub(crate) struct Sse {
    /// The line that has begun.
    line: Vec<u8>,
    /// The data of the event that has begun.
    data: Vec<u8>,
    has_data: bool,
    /// Its `event` field.
    name: Vec<u8>,
    /// The last byte was a carriage return: a line feed right after it belongs to it.
    after_return: bool,
    /// The first line, which may begin with a byte-order mark, is over.
    begun: bool,
}

impl Sse {
    /// Takes the next bytes and hands every complete event to `sink` as (name, data).
    pub(crate) fn feed<E: From<TooLong>>(
        &mut self,
        mut bytes: &[u8],
        sink: &mut impl FnMut(&[u8], &[u8]) -> Result<Flow, E>,
    ) -> Result<Flow, E> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                if self.line.len() + bytes.len() > LIMIT {
                    return Err(TooLong.into());
                }
                self.line.extend_from_slice(bytes);
                break;
            };
            self.after_return = bytes[end] == b'\r';
            let flow = if self.line.is_empty() {
                self.line(&bytes[..end], sink)?
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                let flow = self.line(&line, sink)?;
                line.clear();
                self.line = line;
                flow
            };
            if flow == Flow::End {
                return Ok(Flow::End);
            }
            bytes = &bytes[end + 1..];
        }
        Ok(Flow::More)
    }

    /// Takes what stands there when the stream is over: a line without its end, an event without its blank line.
    pub(crate) fn finish<E: From<TooLong>>(
        &mut self,
        sink: &mut impl FnMut(&[u8], &[u8]) -> Result<Flow, E>,
    ) -> Result<Flow, E> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() && self.line(&line, sink)? == Flow::End {
            return Ok(Flow::End);
        }
        self.dispatch(sink)
    }

    fn line<E: From<TooLong>>(
        &mut self,
        mut line: &[u8],
        sink: &mut impl FnMut(&[u8], &[u8]) -> Result<Flow, E>,
    ) -> Result<Flow, E> {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        let line = line.trim_ascii_start();
        match line.first() {
            None => return self.dispatch(sink),
            Some(b':') => return Ok(Flow::More),
            Some(b'{') => return self.data(line, sink),
            Some(_) => {}
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.data(value, sink),
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
                Ok(Flow::More)
            }
            // Some gateways write `error: {…}` as if it were a field.
            b"error" => {
                self.name.clear();
                self.name.extend_from_slice(b"error");
                self.data(value, sink)
            }
            _ => Ok(Flow::More),
        }
    }

    fn data<E: From<TooLong>>(
        &mut self,
        value: &[u8],
        sink: &mut impl FnMut(&[u8], &[u8]) -> Result<Flow, E>,
    ) -> Result<Flow, E> {
        // `}` followed by `{` or `[` on a new line never stands inside one JSON value: the blank line was forgotten.
        if self.has_data
            && self.data.trim_ascii_end().last() == Some(&b'}')
            && matches!(value.first(), Some(b'{' | b'['))
            && self.dispatch(sink)? == Flow::End
        {
            return Ok(Flow::End);
        }
        if self.data.len() + value.len() >= LIMIT {
            return Err(TooLong.into());
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        if value.trim_ascii_end() == b"[DONE]" { self.dispatch(sink) } else { Ok(Flow::More) }
    }

    fn dispatch<E>(&mut self, sink: &mut impl FnMut(&[u8], &[u8]) -> Result<Flow, E>) -> Result<Flow, E> {
        let flow =
            if std::mem::take(&mut self.has_data) { sink(&self.name, &self.data)? } else { Flow::More };
        self.data.clear();
        self.name.clear();
        Ok(flow)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds `pieces` and returns the events as `name|data`.
    fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut sse = Sse::default();
        let mut seen = Vec::new();
        let mut sink = |name: &[u8], data: &[u8]| {
            seen.push(format!("{}|{}", String::from_utf8_lossy(name), String::from_utf8_lossy(data)));
            Ok::<_, TooLong>(Flow::More)
        };
        for piece in pieces {
            sse.feed(piece, &mut sink).unwrap();
        }
        sse.finish(&mut sink).unwrap();
        seen
    }

    const CASES: &[(&str, &str, &[&str])] = &[
        ("plain", "data: a\n\ndata: b\n\n", &["|a", "|b"]),
        ("CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", &["|a", "|b"]),
        ("lone CR", "data: a\r\rdata: b\r\r", &["|a", "|b"]),
        ("mixed ends", "data: a\r\n\ndata: b\r\r\ndata: c\n\r", &["|a", "|b", "|c"]),
        ("byte-order mark", "\u{feff}data: a\n\n", &["|a"]),
        ("comments and blank lines", "\n\n: hi\n\n:\ndata: a\n: between\n\n\n\n", &["|a"]),
        ("no space, two spaces", "data:a\n\ndata:  b\n\n", &["|a", "| b"]),
        ("several lines", "data: a\ndata: b\n\n", &["|a\nb"]),
        ("one value over lines", "data: {\ndata: \"a\": [{}\ndata: ]}\n\n", &["|{\n\"a\": [{}\n]}"]),
        ("names", "event: x\ndata: a\n\ndata: b\n\n", &["x|a", "|b"]),
        ("other fields", "id: 7\nretry: 10\nnonsense\ndata: a\n\n", &["|a"]),
        ("event without data", "event: ping\n\ndata: a\n\n", &["|a"]),
        (
            "no blank lines",
            "data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n",
            &["|{\"a\":1}", "|{\"a\":2}", "|[DONE]"],
        ),
        ("end without blank line", "data: a\n\ndata: b", &["|a", "|b"]),
        ("bare JSON", "data: {}\n\n{\"error\":1}\n", &["|{}", "|{\"error\":1}"]),
        ("error as a field", "error: {\"message\":1}\n\n", &["error|{\"message\":1}"]),
        ("characters", "data: Grüße, 世界 🦀\n\n", &["|Grüße, 世界 🦀"]),
    ];

    #[test]
    fn events_are_cut_out_wherever_the_bytes_are_cut() {
        for (name, text, expected) in CASES {
            let bytes = text.as_bytes();
            assert_eq!(events([bytes]), *expected, "{name}: whole");
            assert_eq!(events(bytes.chunks(1)), *expected, "{name}: byte by byte");
            for cut in 0..=bytes.len() {
                assert_eq!(events([&bytes[..cut], &bytes[cut..]]), *expected, "{name}: cut at {cut}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_cut_anywhere_give_the_same_events(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just("data: ".to_owned()), Just("\n".to_owned()), Just("\r".to_owned()), Just("\r\n".to_owned()),
                    Just(":".to_owned()), Just("event: e".to_owned()), Just("\u{feff}".to_owned()), Just("{}".to_owned()),
                    Just("[DONE]".to_owned()), "[a-z é]{0,4}",
                ],
                0..40,
            ),
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let text = pieces.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(0);
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let cut = events(cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]));
            prop_assert_eq!(cut, events([bytes]));
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut sse = Sse::default();
        let mut sink = |_: &[u8], _: &[u8]| Ok::<_, TooLong>(Flow::More);
        let block = vec![b'x'; 1 << 20];
        let refused = (0..40).position(|_| sse.feed(&block, &mut sink).is_err());
        assert_eq!(refused, Some(32));
    }
}
