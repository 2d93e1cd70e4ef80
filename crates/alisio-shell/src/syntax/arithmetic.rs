//! Arithmetic: numbers, names, operators and expansions. Everything else, subscripts first of all, is not judged,
//! since bash evaluates the text of what it finds there once more.

use super::{Arithmetic, Parsed, Parser, is_name_byte, is_name_start};

impl Parser<'_> {
    /// Parses after `((` up to the closing pair.
    pub(super) fn arithmetic(&mut self, close: u8) -> Parsed<Arithmetic> {
        let mut arithmetic = Arithmetic::default();
        let mut open = 0_usize;
        loop {
            let Some(byte) = self.peek() else {
                return self.stop("an arithmetic expression that does not end");
            };
            match byte {
                b'(' => open += 1,
                byte if byte == close && open == 0 => {
                    if self.peek_at(1) != Some(close) {
                        return self.stop("an arithmetic expression that does not end");
                    }
                    self.at += 2;
                    return Ok(arithmetic);
                }
                b')' if open == 0 => return self.stop("an arithmetic expression that does not end"),
                b')' => open -= 1,
                byte if byte.is_ascii_digit() => {
                    while self.peek().is_some_and(|byte| is_name_byte(byte) || byte == b'#' || byte == b'@') {
                        self.at += 1;
                    }
                    continue;
                }
                byte if is_name_start(byte) => {
                    let from = self.at;
                    while self.peek().is_some_and(is_name_byte) {
                        self.at += 1;
                    }
                    let name = self.text[from..self.at].to_owned();
                    let rest = self.text[self.at..].trim_start_matches([' ', '\t']);
                    if rest.starts_with('=') && !rest.starts_with("==") {
                        arithmetic.set.push(name.clone());
                    }
                    arithmetic.names.push(name);
                    continue;
                }
                b'$' => {
                    match self.dollar(true)? {
                        Some(piece) => arithmetic.pieces.push(piece),
                        None => return self.stop("an odd character in an arithmetic expression"),
                    }
                    continue;
                }
                b'=' => {
                    let before = self.bytes[self.at - 1];
                    if self.peek_at(1) == Some(b'=') {
                        self.at += 1;
                    } else if !b"=!<>".contains(&before)
                        || matches!(&self.bytes[self.at - 2..self.at], b"<<" | b">>")
                    {
                        arithmetic.assigns = true;
                    }
                }
                b'+' | b'-' if self.peek_at(1) == Some(byte) => arithmetic.assigns = true,
                b' ' | b'\t' | b'\n' if byte != b'\n' || self.pending.is_empty() => {}
                b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'!' | b'&' | b'|' | b'^' | b'~' | b'?'
                | b':' | b',' | b';' => {}
                _ => return self.stop("an odd character in an arithmetic expression"),
            }
            self.at += 1;
        }
    }

    /// Parses the text of `${x:offset:length}` up to the brace, which stays.
    pub(super) fn slice_arithmetic(&mut self) -> Parsed<Arithmetic> {
        let mut arithmetic = Arithmetic::default();
        loop {
            match self.peek() {
                Some(b'}') => return Ok(arithmetic),
                Some(byte) if byte.is_ascii_digit() || b" :-+*()".contains(&byte) => self.at += 1,
                Some(byte) if is_name_start(byte) => {
                    let from = self.at;
                    while self.peek().is_some_and(is_name_byte) {
                        self.at += 1;
                    }
                    arithmetic.names.push(self.text[from..self.at].to_owned());
                }
                Some(b'$') => match self.dollar(true)? {
                    Some(piece) => arithmetic.pieces.push(piece),
                    None => return self.stop("an odd character in an arithmetic expression"),
                },
                _ => return self.stop("an odd character in an arithmetic expression"),
            }
        }
    }
}
