//! Groups, loops, branches and conditions.

use super::{Condition, Item, Parsed, Parser, Piece, Word, is_name_byte, is_name_start};

impl Parser<'_> {
    pub(super) fn command(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        self.blanks()?;
        match self.keyword() {
            Some("{") => {
                self.at += 1;
                self.body(out, "}")?;
            }
            Some("if") => self.branches(out)?,
            Some(word @ ("while" | "until")) => {
                self.at += word.len();
                self.body(out, "do")?;
                self.body(out, "done")?;
            }
            Some("for") => self.for_loop(out)?,
            Some("case") => self.case(out)?,
            Some("[[") => self.condition(out)?,
            Some("function") => return self.stop("a function definition"),
            Some("coproc") => return self.stop("a coprocess"),
            Some("select") => return self.stop("a menu"),
            Some("then" | "do" | "done" | "fi" | "elif" | "else" | "esac" | "}" | "!" | "time") => {
                return self.stop("a reserved word in an odd place");
            }
            _ if self.looking_at("((") => {
                let from = self.at;
                self.at += 2;
                let arithmetic = self.arithmetic(b')')?;
                out.push(Item::Arithmetic { text: self.slice(from), arithmetic });
            }
            _ if self.peek() == Some(b'(') => {
                self.at += 1;
                if self.deeper(|parser| parser.list(out))? == 0 {
                    return self.stop("an empty group");
                }
                if self.peek() != Some(b')') {
                    return self.stop("a group that does not end");
                }
                self.at += 1;
            }
            _ => return self.simple(out),
        }
        self.trailing_redirects(out)
    }

    /// At least one command, then the word that ends them.
    fn body(&mut self, out: &mut Vec<Item>, end: &str) -> Parsed<()> {
        if self.deeper(|parser| parser.list(out))? == 0 {
            return self.stop("an empty group or branch");
        }
        self.expect_keyword(end)
    }

    fn branches(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        self.at += 2;
        self.body(out, "then")?;
        loop {
            if self.deeper(|parser| parser.list(out))? == 0 {
                return self.stop("an empty group or branch");
            }
            match self.keyword() {
                Some("elif") => {
                    self.at += 4;
                    self.body(out, "then")?;
                }
                Some("else") => {
                    self.at += 4;
                    return self.body(out, "fi");
                }
                _ => return self.expect_keyword("fi"),
            }
        }
    }

    fn for_loop(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        let from = self.at;
        self.at += 3;
        self.blanks()?;
        if self.looking_at("((") {
            self.at += 2;
            let arithmetic = self.arithmetic(b')')?;
            out.push(Item::Arithmetic { text: self.slice(from), arithmetic });
            self.blanks()?;
            if self.peek() == Some(b';') {
                self.at += 1;
            }
        } else {
            let name = self.name()?;
            self.blanks_and_newlines(out)?;
            let values = if self.keyword() == Some("in") {
                self.at += 2;
                let mut values = Vec::new();
                loop {
                    self.blanks()?;
                    match self.peek() {
                        Some(b';' | b'\n') => break,
                        Some(byte) if !b"&|()".contains(&byte) => values.push(self.word()?),
                        _ => return self.stop("a loop that is not complete"),
                    }
                }
                Some(values)
            } else {
                None
            };
            out.push(Item::Loop { text: self.slice(from), name, values });
            if self.peek() == Some(b';') {
                self.at += 1;
            }
        }
        self.blanks_and_newlines(out)?;
        self.expect_keyword("do")?;
        self.body(out, "done")
    }

    fn name(&mut self) -> Parsed<String> {
        let from = self.at;
        if self.peek().is_some_and(is_name_start) {
            while self.peek().is_some_and(is_name_byte) {
                self.at += 1;
            }
        }
        if self.at == from || !matches!(self.peek(), None | Some(b' ' | b'\t' | b'\n' | b';')) {
            return self.stop("a loop without a plain variable");
        }
        Ok(self.text[from..self.at].to_owned())
    }

    fn case(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        self.at += 4;
        self.blanks()?;
        let mut words = vec![self.word()?];
        self.blanks_and_newlines(out)?;
        self.expect_keyword("in")?;
        loop {
            self.blanks_and_newlines(out)?;
            if self.keyword() == Some("esac") {
                self.at += 4;
                break;
            }
            if self.peek() == Some(b'(') {
                self.at += 1;
                self.blanks()?;
            }
            loop {
                match self.peek() {
                    None | Some(b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>') => {
                        return self.stop("a case pattern that is not plain");
                    }
                    Some(_) => words.push(self.word()?),
                }
                self.blanks()?;
                match self.peek() {
                    Some(b'|') => self.at += 1,
                    Some(b')') => break,
                    _ => return self.stop("a case pattern that is not plain"),
                }
                self.blanks()?;
            }
            self.at += 1;
            self.deeper(|parser| parser.list(out))?;
            if self.keyword() == Some("esac") {
                self.at += 4;
                break;
            }
            if self.looking_at(";;&") {
                self.at += 3;
            } else if self.looking_at(";;") || self.looking_at(";&") {
                self.at += 2;
            } else {
                return self.stop("a case that does not end");
            }
        }
        out.push(Item::Words(words));
        Ok(())
    }

    /// `[[ … ]]`, read as a row of operands and operators; whether it is complete is left to bash.
    fn condition(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        let from = self.at;
        self.at += 2;
        let mut condition = Condition::default();
        let mut numeric = false;
        let mut last_plain = false;
        loop {
            self.blanks()?;
            while self.peek() == Some(b'\n') && self.pending.is_empty() {
                self.at += 1;
                self.blanks()?;
            }
            if self.keyword() == Some("]]") {
                self.at += 2;
                break;
            }
            match self.peek() {
                None | Some(b';' | b'\n') => return self.stop("a condition that does not end"),
                Some(b'(' | b')') => {
                    self.at += 1;
                    last_plain = false;
                    continue;
                }
                Some(b'&' | b'|') => {
                    if !(self.looking_at("&&") || self.looking_at("||")) {
                        return self.stop("a condition with an odd operator");
                    }
                    self.at += 2;
                    last_plain = false;
                    continue;
                }
                Some(b'<' | b'>') => {
                    if self.peek_at(1) != Some(b' ') {
                        return self.stop("a condition with an odd operator");
                    }
                    self.at += 1;
                    continue;
                }
                Some(_) => {}
            }
            if self.looking_at("=~ ") && last_plain {
                self.at += 3;
                self.blanks()?;
                let word = self.regex()?;
                condition.operands.push(word);
                last_plain = false;
                continue;
            }
            let word = self.word()?;
            let plain = match word.pieces.as_slice() {
                [Piece::Plain(text)] => text.as_str(),
                _ => "",
            };
            match plain {
                "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" if last_plain => {
                    if let Some(left) = condition.operands.pop() {
                        condition.numbers.push(left);
                    }
                    numeric = true;
                }
                "-v" | "-R" => condition.opaque = Some("asks for a variable by a name that may be evaluated"),
                "!" => last_plain = false,
                _ => {
                    if std::mem::take(&mut numeric) {
                        condition.numbers.push(word);
                    } else {
                        condition.operands.push(word);
                    }
                    last_plain = true;
                }
            }
        }
        condition.text = self.slice(from);
        out.push(Item::Condition(condition));
        Ok(())
    }

    /// The right side of `=~`: parentheses and bars belong to it.
    fn regex(&mut self) -> Parsed<Word> {
        let from = self.at;
        let mut word = Word::default();
        let mut open = 0_usize;
        loop {
            match self.peek() {
                None | Some(b'\n') => return self.stop("a condition that does not end"),
                Some(b' ' | b'\t') if open == 0 => break,
                Some(b'(') => open += 1,
                Some(b')') if open == 0 => return self.stop("a condition with an odd pattern"),
                Some(b')') => open -= 1,
                Some(b';' | b'&' | b'<' | b'>' | b'#' | b'[') if !self.is_bracket() => {
                    return self.stop("a condition with an odd pattern");
                }
                Some(b' ' | b'\t' | b'|') => {}
                Some(_) => {
                    self.piece(&mut word)?;
                    continue;
                }
            }
            self.at += 1;
        }
        word.text = self.slice(from);
        Ok(word)
    }

    /// A bracket expression of letters and ranges, where nothing is expanded or quoted.
    fn is_bracket(&self) -> bool {
        let rest = &self.bytes[self.at..];
        rest.first() == Some(&b'[')
            && rest.iter().take(64).position(|byte| *byte == b']').is_some_and(|end| {
                rest[1..end].iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_^:[.+".contains(byte))
            })
    }
}
