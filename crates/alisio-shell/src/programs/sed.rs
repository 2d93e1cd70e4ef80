//! `sed`: its options, then its script, command by command.

use super::{Case, Verdict};
use crate::options::Table;

const OPTIONS: Table = Table {
    short: "nErsuze:",
    long: "quiet silent regexp-extended separate unbuffered null-data expression= posix debug sandbox version \
        help",
    numbers: false,
};

pub(super) fn judge(case: &mut Case<'_>) -> Verdict {
    let split = match OPTIONS.split(case.args) {
        Ok(split) => split,
        Err(why) => return case.unknown(why),
    };
    let given: Vec<Option<&str>> = split
        .options
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "-e" | "--expression"))
        .map(|(_, value)| value.as_deref())
        .collect();
    let mut files = split.operands.as_slice();
    let script = if given.is_empty() {
        match files.split_first() {
            None if split.has(&["--version", "--help"]) => return case.read(),
            None => return case.unknown("it has no script"),
            Some((first, rest)) => {
                files = rest;
                first.exact.clone()
            }
        }
    } else {
        given.into_iter().collect::<Option<Vec<&str>>>().map(|parts| parts.join("\n"))
    };
    let Some(script) = script else { return case.unknown("its script is only known when it runs") };
    case.reads.extend(files.iter().map(|arg| super::shown(arg)));
    match check(&script) {
        Ok(()) => case.read(),
        Err(why) => case.unknown(why),
    }
}

struct Script<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
}

fn check(script: &str) -> Result<(), String> {
    let mut script = Script { chars: script.chars().peekable() };
    loop {
        script.skip(|c| c.is_ascii_whitespace() || c == ';');
        if script.chars.peek().is_none() {
            return Ok(());
        }
        script.addresses()?;
        script.command()?;
    }
}

impl Script<'_> {
    fn skip(&mut self, what: impl Fn(char) -> bool) {
        while self.chars.next_if(|c| what(*c)).is_some() {}
    }

    fn blanks(&mut self) {
        self.skip(|c| c == ' ' || c == '\t');
    }

    fn addresses(&mut self) -> Result<(), String> {
        loop {
            self.blanks();
            match self.chars.peek().copied() {
                Some(c) if c.is_ascii_digit() || matches!(c, '$' | '+' | '~' | ',') => {
                    self.chars.next();
                }
                Some('/') => {
                    self.chars.next();
                    self.until('/')?;
                    self.skip(|c| c == 'I' || c == 'M');
                }
                Some('\\') => {
                    self.chars.next();
                    match self.chars.next() {
                        Some(c) if c.is_ascii_punctuation() && c != '\\' => self.until(c)?,
                        _ => return Err(String::from("an address in its script is odd")),
                    }
                    self.skip(|c| c == 'I' || c == 'M');
                }
                Some('!') => {
                    self.chars.next();
                }
                _ => return Ok(()),
            }
        }
    }

    /// Takes text up to a delimiter, which is taken too. A bracket expression that may hide one is not judged.
    fn until(&mut self, delimiter: char) -> Result<(), String> {
        loop {
            match self.chars.next() {
                None => return Err(String::from("its script is not complete")),
                Some('\\') => {
                    if self.chars.next().is_none() {
                        return Err(String::from("its script is not complete"));
                    }
                }
                Some(c) if c == delimiter => return Ok(()),
                Some('\n') => return Err(String::from("a newline in its script is odd")),
                Some('[') => self.bracket(delimiter)?,
                Some(_) => {}
            }
        }
    }

    /// Takes a bracket expression. Some programs let it hide the delimiter and some do not, so it must not have one.
    fn bracket(&mut self, delimiter: char) -> Result<(), String> {
        let odd = || Err(String::from("a bracket in its script is odd"));
        let _ = self.chars.next_if_eq(&'^');
        if self.chars.peek() == Some(&']') {
            return odd();
        }
        while let Some(c) = self.chars.next() {
            match c {
                ']' => return Ok(()),
                '\n' => return odd(),
                c if c == delimiter => return odd(),
                '[' if matches!(self.chars.peek(), Some(':' | '.' | '=')) => {
                    while self.chars.next_if(|c| *c != ']' && *c != delimiter && *c != '\n').is_some() {}
                    if self.chars.next() != Some(']') {
                        return odd();
                    }
                }
                // Whether it escapes depends on the program.
                '\\' if matches!(self.chars.peek(), Some(']' | '\\')) => return odd(),
                _ => {}
            }
        }
        odd()
    }

    /// Takes the replacement, where brackets mean nothing.
    fn replacement(&mut self, delimiter: char) -> Result<(), String> {
        loop {
            match self.chars.next() {
                None => return Err(String::from("its script is not complete")),
                Some('\\') => {
                    self.chars.next();
                }
                Some(c) if c == delimiter => return Ok(()),
                Some(_) => {}
            }
        }
    }

    fn end(&mut self) -> Result<(), String> {
        self.blanks();
        match self.chars.peek() {
            None | Some(';' | '\n' | '}' | '#') => Ok(()),
            Some(c) => Err(format!("`{c}` in its script is odd")),
        }
    }

    fn line(&mut self) {
        self.skip(|c| c != '\n');
    }

    fn command(&mut self) -> Result<(), String> {
        let Some(command) = self.chars.next() else { return Err(String::from("its script is not complete")) };
        match command {
            '{' => Ok(()),
            '#' => {
                self.line();
                Ok(())
            }
            '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'x' | 'n' | 'N' | 'p' | 'P' | 'z' | 'F' => {
                self.end()
            }
            'q' | 'Q' | 'l' | 'L' => {
                self.blanks();
                self.skip(|c| c.is_ascii_digit());
                self.end()
            }
            'b' | 't' | 'T' | ':' => {
                self.blanks();
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                self.end()
            }
            // The rest of the line is a file to be read.
            'r' | 'R' => {
                self.line();
                Ok(())
            }
            // Text up to the end of a line that does not end in an odd number of backslashes.
            'a' | 'i' | 'c' => {
                let mut backslashes = 0_usize;
                for c in self.chars.by_ref() {
                    match c {
                        '\\' => backslashes += 1,
                        '\n' if backslashes.is_multiple_of(2) => break,
                        _ => backslashes = 0,
                    }
                }
                Ok(())
            }
            'y' | 's' => {
                let Some(delimiter) = self.chars.next().filter(|c| *c != '\\' && *c != '\n') else {
                    return Err(String::from("its script is not complete"));
                };
                self.until(delimiter)?;
                self.replacement(delimiter)?;
                if command == 's' {
                    self.skip(|c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M'));
                }
                self.end()
            }
            'w' | 'W' => Err(String::from("its script writes a file")),
            'e' => Err(String::from("its script runs a command")),
            c => Err(format!("the command `{c}` in its script is not known to be harmless")),
        }
    }
}
