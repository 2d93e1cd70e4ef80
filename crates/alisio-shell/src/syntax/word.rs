//! Words: quotes, escapes and the pieces between them.

use super::{Parsed, Parser, Piece, Word};

impl Parser<'_> {
    /// Parses one word; it is never empty.
    pub(super) fn word(&mut self) -> Parsed<Word> {
        let from = self.at;
        let mut word = Word::default();
        loop {
            match self.peek() {
                None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')') => break,
                Some(b'(') if self.at > from => return self.stop("a parenthesis inside a word"),
                Some(b'(') => break,
                Some(byte @ (b'<' | b'>')) => {
                    if self.peek_at(1) != Some(b'(') {
                        break;
                    }
                    if self.at > from || byte == b'>' {
                        return self.stop("a process substitution in an odd place");
                    }
                    self.at += 2;
                    let items = self.nested()?;
                    word.pieces.push(Piece::Process { items });
                }
                Some(_) => self.piece(&mut word)?,
            }
        }
        if self.at == from {
            return self.stop("an operator where a word is needed");
        }
        word.text = self.text[from..self.at].to_owned();
        Ok(word)
    }

    /// Parses the next quoted text, escape, expansion or plain character.
    pub(super) fn piece(&mut self, word: &mut Word) -> Parsed<()> {
        match self.peek() {
            Some(b'\'') => {
                let text = self.single_quoted()?;
                word.pieces.push(Piece::Quoted(text));
            }
            Some(b'"') => self.double_quoted(word)?,
            Some(b'\\') => {
                self.at += 1;
                if self.peek() == Some(b'\n') {
                    return self.stop("a joined line inside a word or operator");
                }
                let c = self.plain_char()?;
                self.at += c.len_utf8();
                word.pieces.push(Piece::Quoted(c.to_string()));
            }
            Some(b'$') => match self.dollar(false)? {
                Some(piece) => word.pieces.push(piece),
                None => {
                    self.at += 1;
                    push_plain(word, '$');
                }
            },
            Some(b'`') => {
                let piece = self.backticks(false)?;
                word.pieces.push(piece);
            }
            _ => {
                let c = self.plain_char()?;
                self.at += c.len_utf8();
                push_plain(word, c);
            }
        }
        Ok(())
    }

    pub(super) fn single_quoted(&mut self) -> Parsed<String> {
        self.at += 1;
        let from = self.at;
        let Some(length) = self.bytes[from..].iter().position(|byte| *byte == b'\'') else {
            return self.stop("a quote that does not end");
        };
        self.at += length + 1;
        let text = self.text[from..from + length].to_owned();
        if !self.pending.is_empty() && text.contains('\n') {
            return self.stop("a quoted newline before a here-document");
        }
        Ok(text)
    }

    fn double_quoted(&mut self, word: &mut Word) -> Parsed<()> {
        self.at += 1;
        let mut text = String::new();
        word.pieces.push(Piece::Quoted(String::new()));
        loop {
            let Some(byte) = self.peek() else { return self.stop("a quote that does not end") };
            match byte {
                b'"' => {
                    self.at += 1;
                    break;
                }
                b'\n' if !self.pending.is_empty() => {
                    return self.stop("a quoted newline before a here-document");
                }
                _ => self.quoted_char(word, &mut text)?,
            }
        }
        word.pieces.push(Piece::Quoted(text));
        Ok(())
    }

    /// One character or expansion inside double quotes or a here-document.
    fn quoted_char(&mut self, word: &mut Word, text: &mut String) -> Parsed<()> {
        let expansion = match self.peek() {
            Some(b'\\') => {
                match self.peek_at(1) {
                    Some(b'\n') => {
                        if self.at > 0 && matches!(self.bytes[self.at - 1], b'$' | b'`' | b'\\') {
                            return self.stop("a joined line inside an expansion");
                        }
                        self.at += 2;
                    }
                    Some(byte @ (b'$' | b'`' | b'"' | b'\\')) => {
                        text.push(char::from(byte));
                        self.at += 2;
                    }
                    _ => {
                        text.push('\\');
                        self.at += 1;
                    }
                }
                return Ok(());
            }
            Some(b'$') => self.dollar(true)?,
            Some(b'`') => Some(self.backticks(true)?),
            _ => None,
        };
        match expansion {
            Some(piece) => {
                word.pieces.push(Piece::Quoted(std::mem::take(text)));
                word.pieces.push(piece);
            }
            None => {
                let Some(c) = self.text[self.at..].chars().next() else {
                    return self.stop("a quote that does not end");
                };
                text.push(c);
                self.at += c.len_utf8();
            }
        }
        Ok(())
    }

    /// Parses this whole text as the body of a here-document whose delimiter is not quoted.
    pub(super) fn here_document_body(&mut self) -> Parsed<Word> {
        let mut word = Word::default();
        let mut text = String::new();
        while self.at < self.bytes.len() {
            self.quoted_char(&mut word, &mut text)?;
        }
        word.pieces.push(Piece::Quoted(text));
        Ok(word)
    }

    /// `$'…'` after the dollar sign, decoded.
    pub(super) fn ansi_quoted(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut text: Vec<u8> = Vec::new();
        loop {
            let Some(byte) = self.peek() else { return self.stop("a quote that does not end") };
            self.at += 1;
            match byte {
                b'\'' => break,
                b'\n' if !self.pending.is_empty() => {
                    return self.stop("a quoted newline before a here-document");
                }
                b'\\' => {
                    let Some(escape) = self.peek() else { return self.stop("a quote that does not end") };
                    self.at += 1;
                    match escape {
                        b'a' => text.push(7),
                        b'b' => text.push(8),
                        b'e' | b'E' => text.push(27),
                        b'f' => text.push(12),
                        b'n' => text.push(b'\n'),
                        b'r' => text.push(b'\r'),
                        b't' => text.push(b'\t'),
                        b'v' => text.push(11),
                        b'\\' | b'\'' | b'"' | b'?' => text.push(escape),
                        b'0'..=b'7' => {
                            self.at -= 1;
                            let value = self.digits(8, 3);
                            text.push(u8::try_from(value & 0xff).unwrap_or_default());
                        }
                        b'x' if self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) => {
                            let value = self.digits(16, 2);
                            text.push(u8::try_from(value & 0xff).unwrap_or_default());
                        }
                        b'u' | b'U' if self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) => {
                            let value = self.digits(16, if escape == b'u' { 4 } else { 8 });
                            let c = char::from_u32(value).unwrap_or('\0');
                            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        _ => return self.stop("an odd escape in `$'…'`"),
                    }
                    if text.last() == Some(&0) {
                        return self.stop("an odd escape in `$'…'`");
                    }
                }
                _ => text.push(byte),
            }
        }
        match String::from_utf8(text) {
            Ok(text) => Ok(text),
            Err(_) => self.stop("an odd escape in `$'…'`"),
        }
    }

    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut value = 0_u32;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(radix)) else { break };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
        }
        value
    }
}

pub(super) fn push_plain(word: &mut Word, c: char) {
    if let Some(Piece::Plain(text)) = word.pieces.last_mut() {
        text.push(c);
    } else {
        word.pieces.push(Piece::Plain(c.to_string()));
    }
}
