//! What a dollar sign or a backtick begins.

use super::word::push_plain;
use super::{Item, Parsed, Parser, Piece, Word, is_name_byte, is_name_start};

impl Parser<'_> {
    /// Parses at `$`. `None`: the sign stands for itself, and nothing was taken.
    pub(super) fn dollar(&mut self, quoted: bool) -> Parsed<Option<Piece>> {
        let Some(next) = self.peek_at(1) else { return Ok(None) };
        match next {
            b'(' if self.peek_at(2) == Some(b'(') => {
                self.at += 3;
                let arithmetic = self.deeper(|parser| parser.arithmetic(b')'))?;
                Ok(Some(Piece::Arithmetic { arithmetic, quoted }))
            }
            b'(' => {
                self.at += 2;
                let items = self.nested()?;
                Ok(Some(Piece::Command { items, quoted }))
            }
            b'{' => {
                self.at += 2;
                self.deeper(|parser| parser.braced(quoted)).map(Some)
            }
            b'[' => self.stop("an old arithmetic expression"),
            b'\\' if self.peek_at(2) == Some(b'\n') => self.stop("a joined line inside an expansion"),
            b'\'' if !quoted => {
                self.at += 1;
                let text = self.ansi_quoted()?;
                Ok(Some(Piece::Quoted(text)))
            }
            b'"' if !quoted => self.stop("a translated string"),
            byte if is_name_start(byte) => {
                self.at += 1;
                let from = self.at;
                while self.peek().is_some_and(is_name_byte) {
                    self.at += 1;
                }
                let name = self.text[from..self.at].to_owned();
                Ok(Some(variable(name, quoted)))
            }
            byte if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.at += 2;
                Ok(Some(variable(char::from(byte).to_string(), quoted)))
            }
            _ => Ok(None),
        }
    }

    /// Parses commands up to the closing parenthesis.
    pub(super) fn nested(&mut self) -> Parsed<Vec<Item>> {
        let outer = std::mem::take(&mut self.pending);
        let from = self.at;
        let mut items = Vec::new();
        self.deeper(|parser| parser.list(&mut items))?;
        if self.peek() != Some(b')') {
            return self.stop("a substitution that does not end");
        }
        if !self.pending.is_empty() {
            return self.stop("a here-document that begins in a substitution and does not end in it");
        }
        if !outer.is_empty() && self.bytes[from..self.at].contains(&b'\n') {
            return self.stop("a substitution of several lines before a here-document");
        }
        self.pending = outer;
        self.at += 1;
        Ok(items)
    }

    /// Parses at a backtick: the text up to the next one is a script of its own.
    pub(super) fn backticks(&mut self, quoted: bool) -> Parsed<Piece> {
        self.at += 1;
        let from = self.at;
        let mut script = String::new();
        loop {
            let Some(c) = self.text.get(self.at..).and_then(|rest| rest.chars().next()) else {
                return self.stop("a substitution that does not end");
            };
            self.at += c.len_utf8();
            match c {
                '`' => break,
                '\\' => match self.peek() {
                    Some(byte @ (b'`' | b'\\' | b'$')) => {
                        self.at += 1;
                        script.push(char::from(byte));
                    }
                    Some(b'"') if quoted => return self.stop("an escaped quote inside backticks"),
                    _ => script.push('\\'),
                },
                c => script.push(c),
            }
        }
        if self.depth == 0 {
            return self.stop("too many nested levels");
        }
        if script.contains('\n') && !self.pending.is_empty() {
            return self.stop("a substitution of several lines before a here-document");
        }
        let (items, stop) = super::parse(&script, self.depth - 1);
        match stop {
            None => Ok(Piece::Command { items, quoted }),
            Some(stop) => Err(super::Stop { at: from, ..stop }),
        }
    }

    /// Parses after `${`.
    fn braced(&mut self, quoted: bool) -> Parsed<Piece> {
        let length = self.peek() == Some(b'#') && self.peek_at(1) != Some(b'}');
        if length {
            self.at += 1;
        }
        let from = self.at;
        match self.peek() {
            Some(byte) if is_name_start(byte) => {
                while self.peek().is_some_and(is_name_byte) {
                    self.at += 1;
                }
            }
            Some(byte) if byte.is_ascii_digit() => {
                while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    self.at += 1;
                }
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$') => self.at += 1,
            Some(b'!') => return self.stop("a variable named by another one"),
            _ => return self.stop("an odd expansion"),
        }
        let mut name = self.text[from..self.at].to_owned();
        if self.peek() == Some(b'[') {
            let end = self.bytes[self.at..].iter().position(|byte| *byte == b']');
            let Some(end) = end else { return self.stop("an expansion that does not end") };
            let subscript = &self.bytes[self.at + 1..self.at + end];
            match subscript {
                b"@" | b"*" => name = String::from("@"),
                digits if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {}
                _ => return self.stop("an array subscript that may be evaluated"),
            }
            self.at += end + 1;
        }
        let mut piece = variable(name, quoted);
        let Piece::Variable { number, altered, words, assigns, arithmetic, .. } = &mut piece else {
            return self.stop("an odd expansion");
        };
        if length {
            *number = true;
            if self.peek() != Some(b'}') {
                return self.stop("an odd expansion");
            }
        }
        let colon = self.peek() == Some(b':') && matches!(self.peek_at(1), Some(b'-' | b'=' | b'?' | b'+'));
        if colon {
            self.at += 1;
        }
        match self.peek() {
            Some(b'}') => {}
            Some(operator @ (b'-' | b'=' | b'?' | b'+')) => {
                self.at += 1;
                *altered = true;
                *assigns = operator == b'=';
                words.push(self.braced_word(quoted)?);
            }
            Some(b'#' | b'%' | b'^' | b',') => {
                self.at += 1;
                *altered = true;
                words.push(self.braced_word(quoted)?);
            }
            Some(b'/') => {
                self.at += 1;
                if self.peek() == Some(b'/') {
                    self.at += 1;
                }
                *altered = true;
                words.push(self.braced_word(quoted)?);
            }
            Some(b':') => {
                self.at += 1;
                *altered = true;
                *arithmetic = Some(self.slice_arithmetic()?);
            }
            Some(b'@') if matches!(self.peek_at(1), Some(b'Q' | b'U' | b'u' | b'L')) => {
                self.at += 2;
                *altered = true;
            }
            Some(b'@') => return self.stop("an expansion whose value is expanded again"),
            _ => return self.stop("an odd expansion"),
        }
        if self.peek() != Some(b'}') {
            return self.stop("an expansion that does not end");
        }
        self.at += 1;
        Ok(piece)
    }

    /// A word inside `${…}` up to the brace, which stays. Where bash's quoting is a puzzle, it stops.
    fn braced_word(&mut self, quoted: bool) -> Parsed<Word> {
        let from = self.at;
        let mut word = Word::default();
        loop {
            match self.peek() {
                None | Some(b'\n') => return self.stop("an expansion that does not end"),
                Some(b'}') => break,
                Some(b'\'' | b'"') if quoted => return self.stop("quotes inside an expansion inside quotes"),
                Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => {
                    return self.stop("a process substitution in an odd place");
                }
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => {
                    return self.stop("a joined line inside an expansion");
                }
                Some(b'$') if quoted => match self.dollar(true)? {
                    Some(piece) => word.pieces.push(piece),
                    None => {
                        self.at += 1;
                        push_plain(&mut word, '$');
                    }
                },
                Some(b'`') if quoted => {
                    let piece = self.backticks(true)?;
                    word.pieces.push(piece);
                }
                Some(_) => self.piece(&mut word)?,
            }
        }
        word.text = self.text[from..self.at].to_owned();
        Ok(word)
    }
}

fn variable(name: String, quoted: bool) -> Piece {
    let number = matches!(name.as_str(), "#" | "?" | "$" | "!");
    Piece::Variable {
        name,
        quoted,
        number,
        altered: false,
        words: Vec::new(),
        assigns: false,
        arithmetic: None,
    }
}
