//! Lists, pipelines, simple commands and redirections.

use super::{
    Assignment, Direction, Item, Parsed, Parser, Pending, Piece, Redirect, Simple, Word, is_name_byte,
    is_name_start,
};

/// Words that end a list when they stand where a command could begin.
const CLOSERS: &[&str] = &["then", "do", "done", "fi", "elif", "else", "esac", "}"];

/// Words that mean something where a command could begin.
const OPENERS: &[&str] = &[
    "!", "{", "if", "while", "until", "for", "select", "case", "function", "[[", "coproc", "time", "in", "]]",
];

impl Parser<'_> {
    pub(super) fn whole(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        let n = self.list(out)?;
        if self.at < self.bytes.len() {
            return self.stop("text that does not belong to any command");
        }
        if !self.pending.is_empty() {
            return self.stop("a here-document that does not end");
        }
        if n == 0 {
            return self.stop("no command in it");
        }
        Ok(())
    }

    /// Parses commands up to the end, a closing parenthesis, `;;` or a closing word. Returns how many there were.
    pub(super) fn list(&mut self, out: &mut Vec<Item>) -> Parsed<usize> {
        let mut n = 0;
        loop {
            self.blanks_and_newlines(out)?;
            if self.at_list_end() {
                return Ok(n);
            }
            self.and_or(out)?;
            n += 1;
            self.blanks()?;
            match self.peek() {
                None | Some(b')') => return Ok(n),
                Some(b';') if matches!(self.peek_at(1), Some(b';' | b'&')) => return Ok(n),
                Some(b';' | b'&') => self.at += 1,
                Some(b'\n') => {}
                Some(_) => return self.stop("a word where a separator is needed"),
            }
        }
    }

    fn at_list_end(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.peek_at(1), Some(b';' | b'&')),
            Some(_) => self.keyword().is_some_and(|word| CLOSERS.contains(&word)),
        }
    }

    /// The reserved word here, if it is one, alone and unquoted.
    pub(super) fn keyword(&self) -> Option<&'static str> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| b" \t\n;&|()<>".contains(byte)).unwrap_or(rest.len());
        let word = &rest[..end];
        if word.len() > 8 {
            return None;
        }
        CLOSERS.iter().chain(OPENERS).find(|known| known.as_bytes() == word).copied()
    }

    /// Takes a reserved word that must stand here.
    pub(super) fn expect_keyword(&mut self, word: &str) -> Parsed<()> {
        if self.keyword() == Some(word) {
            self.at += word.len();
            Ok(())
        } else {
            self.stop("a control structure that is not complete")
        }
    }

    fn and_or(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        loop {
            self.pipeline(out)?;
            self.blanks()?;
            if self.looking_at("&&") || self.looking_at("||") {
                self.at += 2;
                self.blanks_and_newlines(out)?;
            } else {
                return Ok(());
            }
        }
    }

    fn pipeline(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        loop {
            self.blanks()?;
            match self.keyword() {
                Some("!") => {
                    self.at += 1;
                    continue;
                }
                Some("time") => {
                    self.at += 4;
                    self.blanks()?;
                    if self.looking_at("-p") && matches!(self.peek_at(2), Some(b' ' | b'\t')) {
                        self.at += 2;
                    }
                    continue;
                }
                _ => {}
            }
            let n = out.len();
            self.deeper(|parser| parser.command(out))?;
            self.blanks()?;
            if self.peek() == Some(b'|') && self.peek_at(1) != Some(b'|') {
                if let [Item::Simple(simple)] = &mut out[n..] {
                    simple.piped = true;
                }
                self.at += if self.peek_at(1) == Some(b'&') { 2 } else { 1 };
                self.blanks_and_newlines(out)?;
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn simple(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        let from = self.at;
        let mut simple = Simple::default();
        loop {
            self.blanks()?;
            let Some(byte) = self.peek() else { break };
            match byte {
                b'\n' | b';' | b'|' | b')' => break,
                b'&' if self.peek_at(1) != Some(b'>') => break,
                b'(' => {
                    if simple.words.len() != 1
                        || !simple.assignments.is_empty()
                        || !simple.redirects.is_empty()
                    {
                        return self.stop("a parenthesis inside a command");
                    }
                    return self.function(from, out);
                }
                _ => {}
            }
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
                continue;
            }
            let word = self.word()?;
            simple.words.push(word);
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty() {
            return self.stop("a separator without a command");
        }
        simple.text = self.slice(from);
        out.push(Item::Simple(simple));
        Ok(())
    }

    /// `name() { … }` after its name.
    fn function(&mut self, from: usize, out: &mut Vec<Item>) -> Parsed<()> {
        self.at += 1;
        self.blanks()?;
        if self.peek() != Some(b')') {
            return self.stop("a parenthesis inside a command");
        }
        self.at += 1;
        out.push(Item::Opaque { text: self.slice(from), why: "defines a function" });
        self.blanks_and_newlines(out)?;
        self.deeper(|parser| parser.command(out))
    }

    /// `NAME=`, `NAME+=` and what follows, if the word is an assignment.
    fn assignment(&mut self) -> Parsed<Option<Assignment>> {
        if !self.peek().is_some_and(is_name_start) {
            return Ok(None);
        }
        let mut end = self.at;
        while self.bytes.get(end).copied().is_some_and(is_name_byte) {
            end += 1;
        }
        let name = self.text[self.at..end].to_owned();
        let mut partial = false;
        if self.bytes.get(end) == Some(&b'[') {
            let digits = self.bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let close = end + 1 + digits;
            if digits == 0 || self.bytes.get(close) != Some(&b']') {
                // Whether this is an assignment depends on what the subscript does: not judged where `=` follows.
                let rest = &self.bytes[end..];
                let stop = rest.iter().position(|byte| b"\n;".contains(byte)).unwrap_or(rest.len());
                if rest[..stop].windows(2).any(|two| two == b"]=" || two == b"]+") {
                    self.at = end;
                    return self.stop("an array subscript that may be evaluated");
                }
                return Ok(None);
            }
            end = close + 1;
            partial = true;
        }
        if self.bytes.get(end) == Some(&b'+') && self.bytes.get(end + 1) == Some(&b'=') {
            end += 1;
            partial = true;
        }
        if self.bytes.get(end) != Some(&b'=') {
            return Ok(None);
        }
        self.at = end + 1;
        if self.peek() == Some(b'(') {
            self.at += 1;
            let mut values = Vec::new();
            loop {
                self.blanks()?;
                match self.peek() {
                    Some(b')') => break,
                    Some(b'\n') if self.pending.is_empty() => self.at += 1,
                    Some(b'[') => return self.stop("an array subscript that may be evaluated"),
                    Some(byte) if !b"\n;&|(<>".contains(&byte) => values.push(self.word()?),
                    _ => return self.stop("an array that does not end"),
                }
            }
            self.at += 1;
            return Ok(Some(Assignment { name, partial, values, array: true }));
        }
        let value = match self.peek() {
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')') => Word::default(),
            Some(b'<' | b'>') if self.peek_at(1) != Some(b'(') => Word::default(),
            Some(_) => self.word()?,
        };
        Ok(Some(Assignment { name, partial, values: vec![value], array: false }))
    }

    /// Redirections after a compound command.
    pub(super) fn trailing_redirects(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        self.blanks()?;
        let from = self.at;
        let mut redirects = Vec::new();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
            self.blanks()?;
        }
        if !redirects.is_empty() {
            out.push(Item::Redirects { text: self.slice(from), redirects });
        }
        Ok(())
    }

    fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let from = self.at;
        let mut at = self.at;
        while self.bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        if self.peek() == Some(b'{') {
            let close = self.bytes[at..].iter().position(|byte| !is_name_byte(*byte) && *byte != b'{');
            if let Some(close) = close
                && self.bytes[at + close] == b'}'
                && matches!(self.bytes.get(at + close + 1), Some(b'<' | b'>'))
            {
                return self.stop("a descriptor kept in a variable");
            }
        }
        let rest = &self.bytes[at..];
        let (operator, direction) = match rest {
            [b'&', b'>', b'>', ..] if at == from => ("&>>", Direction::Output),
            [b'&', b'>', ..] if at == from => ("&>", Direction::Output),
            [b'<' | b'>', b'(', ..] if at == from => return Ok(None),
            [b'<', b'<', b'<', ..] => ("<<<", Direction::Text),
            [b'<', b'<', b'-', ..] => ("<<-", Direction::Text),
            [b'<', b'<', ..] => ("<<", Direction::Text),
            [b'<', b'>', ..] => ("<>", Direction::Both),
            [b'<', b'&', ..] => ("<&", Direction::Duplicate),
            [b'>', b'>', ..] => (">>", Direction::Output),
            [b'>', b'|', ..] => (">|", Direction::Output),
            [b'>', b'&', ..] => (">&", Direction::Duplicate),
            [b'<', ..] => ("<", Direction::Input),
            [b'>', ..] => (">", Direction::Output),
            _ => return Ok(None),
        };
        let descriptor = (at > from).then(|| self.text[from..at].to_owned());
        self.at = at + operator.len();
        self.blanks()?;
        match self.peek() {
            None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'(') => {
                return self.stop("a redirection without a target");
            }
            Some(b'<' | b'>') if self.peek_at(1) != Some(b'(') => {
                return self.stop("a redirection without a target");
            }
            Some(_) => {}
        }
        if self.peek() == Some(b'#') {
            return self.stop("a redirection without a target");
        }
        let target = self.word()?;
        if operator.starts_with("<<") && operator != "<<<" {
            self.pending.push(self.delimiter(&target, operator == "<<-")?);
            // The body is kept apart and judged when it has been read; the delimiter is not expanded.
            let text = self.slice(from);
            return Ok(Some(Redirect { text, descriptor, direction, target: Word::default() }));
        }
        Ok(Some(Redirect { text: self.slice(from), descriptor, direction, target }))
    }

    fn delimiter(&self, word: &Word, strip_tabs: bool) -> Parsed<Pending> {
        let mut delimiter = String::new();
        let mut quoted = false;
        for piece in &word.pieces {
            match piece {
                Piece::Plain(text) => delimiter.push_str(text),
                Piece::Quoted(text) => {
                    quoted = true;
                    delimiter.push_str(text);
                }
                _ => return self.stop("a here-document with an expansion in its delimiter"),
            }
        }
        if delimiter.is_empty() || delimiter.contains('\n') || word.text.contains("$'") {
            return self.stop("a here-document with an odd delimiter");
        }
        Ok(Pending { delimiter, quoted, strip_tabs })
    }

    /// Skips spaces, tabs, joined lines and a comment.
    pub(super) fn blanks(&mut self) -> Parsed<()> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => {
                    let before = self.at.checked_sub(1).map_or(b' ', |at| self.bytes[at]);
                    if !matches!(before, b' ' | b'\t' | b'\n') {
                        return self.stop("a joined line inside a word or operator");
                    }
                    if !self.pending.is_empty() {
                        return self.stop("a joined line before a here-document");
                    }
                    self.at += 2;
                }
                Some(b'#') => {
                    let before = self.at.checked_sub(1).map_or(b' ', |at| self.bytes[at]);
                    if !b" \t\n;&|()".contains(&before) {
                        return Ok(());
                    }
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                _ => return Ok(()),
            }
        }
    }

    pub(super) fn blanks_and_newlines(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        loop {
            self.blanks()?;
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            self.here_documents()?;
            if !self.bodies.is_empty() {
                out.push(Item::Words(std::mem::take(&mut self.bodies)));
            }
        }
    }

    /// Reads the bodies that begin on this line.
    fn here_documents(&mut self) -> Parsed<()> {
        for pending in std::mem::take(&mut self.pending) {
            let body_from = self.at;
            let body_end = loop {
                if self.at >= self.bytes.len() {
                    return self.stop("a here-document that does not end");
                }
                let line_from = self.at;
                let rest = &self.text[line_from..];
                let line = rest.split('\n').next().unwrap_or_default();
                self.at = (line_from + line.len() + 1).min(self.bytes.len());
                let line = if pending.strip_tabs { line.trim_start_matches('\t') } else { line };
                if line == pending.delimiter {
                    break line_from;
                }
                if !pending.quoted && line.ends_with('\\') {
                    return self.stop("a joined line inside a here-document");
                }
            };
            if !pending.quoted {
                let body = self.text[body_from..body_end].to_owned();
                let mut inner = Parser::new(&body, self.depth);
                let word = inner
                    .here_document_body()
                    .map_err(|stop| super::Stop { at: body_from + stop.at, ..stop })?;
                self.bodies.push(word);
            }
            // The newline after the delimiter belongs to it, so a command may follow at once.
        }
        Ok(())
    }
}
