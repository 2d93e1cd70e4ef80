//! What kind of text a file holds: its encoding and its line ends. Nothing is guessed that can't be written back: an
//! 8-bit file without a valid UTF-8 reading is "unknown 8-bit", shown as Latin-1 and kept byte by byte.

use memchr::memchr;

/// The encoding of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
    EightBit,
}

impl Encoding {
    /// Tells the encoding from the bytes; `None` for what is not text.
    pub(crate) fn detect(bytes: &[u8]) -> Option<Self> {
        let utf16 = if bytes.starts_with(b"\xff\xfe") {
            Some(Self::Utf16Le)
        } else if bytes.starts_with(b"\xfe\xff") {
            Some(Self::Utf16Be)
        } else {
            None
        };
        if let Some(utf16) = utf16 {
            // A NUL character is in no text; a UTF-32 file begins with one after what looks like this mark.
            return (!utf16.units(&bytes[2..]).any(|unit| unit == 0)).then_some(utf16);
        }
        if memchr(0, bytes).is_some() {
            return None;
        }
        match std::str::from_utf8(bytes) {
            Ok(_) if bytes.starts_with(b"\xef\xbb\xbf") => Some(Self::Utf8Bom),
            Ok(_) => Some(Self::Utf8),
            Err(_) => Some(Self::EightBit),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf8Bom => "UTF-8 with BOM",
            Self::Utf16Le => "UTF-16 LE",
            Self::Utf16Be => "UTF-16 BE",
            Self::EightBit => "unknown 8-bit, shown as Latin-1",
        }
    }

    /// The byte-order mark that stands before the text.
    pub(crate) fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8 | Self::EightBit => b"",
            Self::Utf8Bom => b"\xef\xbb\xbf",
            Self::Utf16Le => b"\xff\xfe",
            Self::Utf16Be => b"\xfe\xff",
        }
    }

    /// Bytes of a code unit.
    pub(crate) fn unit(self) -> usize {
        match self {
            Self::Utf8 | Self::Utf8Bom | Self::EightBit => 1,
            Self::Utf16Le | Self::Utf16Be => 2,
        }
    }

    /// Reads the code units of UTF-16 bytes; half a unit at the end is left out.
    fn units(self, bytes: &[u8]) -> impl Iterator<Item = u16> {
        bytes.chunks_exact(2).map(move |pair| match self {
            Self::Utf16Be => u16::from_be_bytes([pair[0], pair[1]]),
            _ => u16::from_le_bytes([pair[0], pair[1]]),
        })
    }

    /// Decodes a whole file for showing; what can't be decoded becomes U+FFFD.
    pub(crate) fn decode(self, bytes: &[u8]) -> String {
        let body = &bytes[self.mark().len()..];
        match self {
            Self::Utf8 | Self::Utf8Bom => String::from_utf8_lossy(body).into_owned(),
            Self::EightBit => body.iter().map(|byte| char::from(*byte)).collect(),
            Self::Utf16Le | Self::Utf16Be => {
                let mut text: String = char::decode_utf16(self.units(body))
                    .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect();
                if body.len() % 2 == 1 {
                    text.push(char::REPLACEMENT_CHARACTER);
                }
                text
            }
        }
    }

    /// Writes text in this encoding, without a mark; `None` where it can't be told how.
    pub(crate) fn encode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Utf8 | Self::Utf8Bom => Some(text.as_bytes().to_vec()),
            Self::EightBit => text.is_ascii().then(|| text.as_bytes().to_vec()),
            Self::Utf16Le => Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        }
    }
}

/// How the lines of a file end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnds {
    None,
    Lf,
    Crlf,
    Mixed,
}

impl LineEnds {
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (mut lf, mut crlf) = (false, false);
        for end in memchr::memchr_iter(b'\n', bytes) {
            if end > 0 && bytes[end - 1] == b'\r' {
                crlf = true
            } else {
                lf = true
            }
            if lf && crlf {
                return Self::Mixed;
            }
        }
        match (lf, crlf) {
            (false, false) => Self::None,
            (true, false) => Self::Lf,
            (false, true) => Self::Crlf,
            (true, true) => Self::Mixed,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "no line ends",
            Self::Lf => "LF",
            Self::Crlf => "CRLF",
            Self::Mixed => "mixed LF and CRLF",
        }
    }
}

/// Shows text with LF line ends.
pub(crate) fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Cuts text at a character, at most `limit` bytes long.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}
