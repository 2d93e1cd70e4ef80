//! What a word can become when bash expands it.
//!
//! Values are not computed beyond constants. What matters for a verdict is whether a word may turn into several words
//! and whether one of them may be taken for an option.

use std::collections::HashMap;

use crate::syntax::{Item, Piece, Word};

/// One argument as a program may receive it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arg {
    /// Its exact text, if it is constant.
    pub exact: Option<String>,
    /// How it begins at least.
    pub head: String,
    /// It may be no word, or several.
    pub many: bool,
    /// It, or one of the words it becomes, may begin with anything, a dash included.
    pub free: bool,
    /// It is a number.
    pub number: bool,
    /// As written.
    pub source: String,
}

impl Arg {
    pub(crate) fn constant(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            number: is_number(&text),
            head: text.clone(),
            source: text.clone(),
            exact: Some(text),
            ..Self::default()
        }
    }

    /// The exact text, or what cannot be equal to any word that is looked for.
    pub(crate) fn text(&self) -> &str {
        self.exact.as_deref().unwrap_or("\0")
    }

    /// It is known not to be an option.
    pub(crate) fn is_operand(&self) -> bool {
        match &self.exact {
            Some(text) => !text.starts_with('-') || text == "-",
            None => !self.free && !self.head.starts_with('-'),
        }
    }
}

/// What is known of a variable that the script itself sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Not empty, and it begins neither with a dash nor like a pseudo device.
    pub operand: bool,
    /// It stays one word when it is not quoted.
    pub whole: bool,
    pub number: bool,
}

impl Known {
    const NOTHING: Self = Self { operand: false, whole: false, number: false };
    const NUMBER: Self = Self { operand: false, whole: true, number: true };

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            operand: self.operand && other.operand,
            whole: self.whole && other.whole,
            number: self.number && other.number,
        }
    }

    fn of_text(text: &str) -> Self {
        Self {
            operand: !text.is_empty() && !text.starts_with('-') && !is_pseudo(text),
            whole: is_whole(text),
            number: is_number(text),
        }
    }

    /// What holds for a variable that has this argument as its value.
    pub(crate) fn of_arg(arg: &Arg) -> Self {
        match &arg.exact {
            Some(text) => Self::of_text(text),
            None => Self {
                operand: !arg.free
                    && !arg.head.starts_with('-')
                    && (arg.head.is_empty() || !is_pseudo(&arg.head)),
                whole: arg.number,
                number: arg.number,
            },
        }
    }
}

/// What the script's own assignments tell about its variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    /// Whether anything was learnt since this was last cleared.
    pub changed: bool,
    /// The environment may have been prepared by the line itself, so an assignment that is skipped leaves any value.
    pub blind: bool,
    known: HashMap<String, Known>,
}

impl Variables {
    pub(crate) fn get(&self, name: &str) -> Known {
        if self.blind || name == "_" {
            return Known::NOTHING;
        }
        self.known.get(name).copied().unwrap_or(Known::NOTHING)
    }

    /// Takes one more possible value into account.
    pub(crate) fn add(&mut self, name: &str, value: Known) {
        let old = self.known.get(name).copied();
        let new = old.map_or(value, |old| old.and(value));
        if old != Some(new) {
            self.known.insert(name.to_owned(), new);
            self.changed = true;
        }
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.add(name, Known::NOTHING);
    }

    pub(crate) fn number(&mut self, name: &str) {
        self.add(name, Known::NUMBER);
    }

    /// Expands one word into the arguments it becomes.
    pub(crate) fn expand(&self, word: &Word) -> Vec<Arg> {
        let constant = word.pieces.iter().all(|piece| matches!(piece, Piece::Plain(_) | Piece::Quoted(_)));
        if !constant {
            return vec![self.dynamic(word, true)];
        }
        let mut letters = Vec::new();
        for piece in &word.pieces {
            match piece {
                Piece::Plain(text) => letters.extend(text.chars().map(|c| (c, false))),
                Piece::Quoted(text) => letters.extend(text.chars().map(|c| (c, true))),
                _ => {}
            }
        }
        let mut results = Vec::new();
        if !letters.contains(&('{', false)) {
            return vec![literal(&letters, &word.text)];
        }
        if letters.len() > 300 || !braces(&letters, 0, &mut results) {
            return vec![Arg { many: true, free: true, source: word.text.clone(), ..Arg::default() }];
        }
        results.iter().map(|letters| literal(letters, &word.text)).collect()
    }

    /// What holds for a variable that is set to this word: nothing is split here.
    pub(crate) fn value(&self, word: &Word) -> Known {
        match word.pieces.as_slice() {
            [Piece::Command { items, .. }] => output(items),
            [Piece::Quoted(a), Piece::Quoted(b), Piece::Command { items, .. }, Piece::Quoted(c)]
                if a.is_empty() && b.is_empty() && c.is_empty() =>
            {
                output(items)
            }
            pieces if pieces.iter().all(|piece| matches!(piece, Piece::Plain(_) | Piece::Quoted(_))) => {
                let text: String = pieces
                    .iter()
                    .map(|piece| match piece {
                        Piece::Plain(text) | Piece::Quoted(text) => text.as_str(),
                        _ => "",
                    })
                    .collect();
                Known::of_text(&text)
            }
            _ => Known::of_arg(&self.dynamic(word, false)),
        }
    }

    /// What holds for each word that this one becomes in the head of a loop.
    pub(crate) fn loop_value(&self, word: &Word) -> Known {
        if let [Piece::Command { items, .. }] = word.pieces.as_slice()
            && let [Item::Simple(simple)] = items.as_slice()
            && let Some((program, numbers)) = simple.words.split_first()
            && program.text == "seq"
            && numbers.iter().all(|word| is_number(&word.text) && !word.text.starts_with('-'))
        {
            return Known { operand: true, ..Known::NUMBER };
        }
        self.expand(word).iter().map(Known::of_arg).reduce(Known::and).unwrap_or(Known::NOTHING)
    }

    fn dynamic(&self, word: &Word, splits: bool) -> Arg {
        let mut arg = Arg { source: word.text.clone(), ..Arg::default() };
        let mut constant = true;
        let mut at_start = true;
        let plain = |what: &str| {
            word.pieces.iter().any(|piece| matches!(piece, Piece::Plain(text) if text.contains(what)))
        };
        if plain("{") && (plain(",") || plain(".")) {
            return Arg { many: true, free: true, ..arg };
        }
        for piece in &word.pieces {
            let (known, quoted) = match piece {
                Piece::Plain(text) => {
                    if text.contains(['*', '?', '[']) {
                        arg.many = true;
                        if constant {
                            arg.head.push_str(text.split(['*', '?', '[']).next().unwrap_or_default());
                            constant = false;
                        }
                        if at_start {
                            arg.free |= text.starts_with(['*', '?', '[', '-']);
                        }
                        at_start = false;
                        continue;
                    }
                    if at_start && !constant && text.starts_with('-') {
                        arg.free = true;
                    }
                    at_start = false;
                    if constant {
                        arg.head.push_str(text);
                    }
                    continue;
                }
                Piece::Quoted(text) => {
                    if at_start && !constant && text.starts_with('-') {
                        arg.free = true;
                    }
                    at_start &= text.is_empty();
                    if constant {
                        arg.head.push_str(text);
                    }
                    continue;
                }
                Piece::Variable { name, quoted, number, altered, .. } => {
                    let known = match name.as_str() {
                        "?" | "#" | "$" => Known { operand: true, ..Known::NUMBER },
                        "PWD" if !altered => Known { operand: true, whole: false, number: false },
                        "HOME" if !altered => Known { operand: true, whole: true, number: false },
                        _ if *number => Known { operand: true, ..Known::NUMBER },
                        "@" => {
                            arg.many = true;
                            Known::NOTHING
                        }
                        _ if *altered => Known::NOTHING,
                        "UID" | "EUID" | "RANDOM" | "SECONDS" | "LINENO" | "PPID" | "BASHPID"
                        | "EPOCHSECONDS" => Known { operand: true, ..Known::NUMBER },
                        _ => self.get(name),
                    };
                    (known, *quoted)
                }
                Piece::Command { items, quoted } => {
                    let known = output(items);
                    // It may print nothing: then the next piece is the beginning.
                    if at_start && !known.operand {
                        arg.free = true;
                    }
                    if splits && !quoted {
                        arg.many = true;
                        arg.free |= !known.whole;
                    }
                    arg.number = known.number && word.pieces.len() == 1 || arg.number;
                    constant = false;
                    continue;
                }
                Piece::Process { .. } => (Known { operand: true, whole: true, number: false }, true),
                Piece::Arithmetic { quoted, .. } => (Known::NUMBER, *quoted),
            };
            constant = false;
            if at_start && !known.operand {
                arg.free = true;
            }
            at_start = false;
            if splits && !quoted && !known.whole {
                arg.many = true;
                arg.free = true;
            }
            arg.number = known.number;
        }
        let quotes_only = |piece: &Piece| matches!(piece, Piece::Quoted(text) if text.is_empty());
        arg.number &= word.pieces.iter().filter(|piece| !quotes_only(piece)).count() == 1;
        arg
    }
}

/// What is known of the output of a substitution.
fn output(items: &[Item]) -> Known {
    let Some((Item::Simple(last), before)) = items.split_last() else { return Known::NOTHING };
    let feeds = |item: &Item| matches!(item, Item::Simple(simple) if simple.piped);
    if last.piped || !before.iter().all(feeds) {
        return Known::NOTHING;
    }
    let words: Vec<&str> = last
        .words
        .iter()
        .map(|word| match word.pieces.as_slice() {
            [Piece::Plain(text)] => text.as_str(),
            _ => "\0",
        })
        .collect();
    let number = Known { operand: true, whole: true, number: true };
    let path = Known { operand: true, whole: false, number: false };
    let hash = Known { operand: true, whole: true, number: false };
    let alone = items.len() == 1;
    match words.as_slice() {
        // Only where it reads its input: with a file it prints the name too, as one more word.
        ["wc", "-l" | "-c" | "-w"] | ["nproc"] => number,
        ["id", "-u" | "-g"] | ["date", "+%s" | "+%Y"] if alone => number,
        ["grep", "-c", pattern]
            if (!alone || !last.redirects.is_empty()) && !pattern.starts_with(['-', '\0']) =>
        {
            number
        }
        ["pwd"] | ["git", "rev-parse", "--show-toplevel" | "--git-dir"] if alone => path,
        ["git", "merge-base", rest @ ..]
            if alone && rest.iter().all(|word| !word.starts_with(['-', '\0'])) =>
        {
            hash
        }
        ["git", "rev-parse", "HEAD"] | ["git", "rev-parse", "--short", "HEAD"] if alone => hash,
        ["whoami" | "hostname" | "uname"] if alone => hash,
        _ => Known::NOTHING,
    }
}

/// Makes an argument of letters that are (character, quoted).
fn literal(letters: &[(char, bool)], source: &str) -> Arg {
    let magic = letters.iter().position(|(c, quoted)| !quoted && matches!(c, '*' | '?' | '['));
    let tilde = letters.first() == Some(&('~', false));
    let only_bracket = letters == [('[', false)];
    if let Some(at) = magic
        && !only_bracket
        && (letters[at].0 != '['
            || letters[at..].iter().any(|(c, quoted)| !quoted && matches!(c, ']' | '*' | '?')))
    {
        let head: String = letters[..at].iter().map(|(c, _)| *c).collect();
        let free = (head.is_empty() && !tilde) || head.starts_with('-');
        return Arg { head, many: true, free, source: source.to_owned(), ..Arg::default() };
    }
    let text: String = letters.iter().map(|(c, _)| *c).collect();
    Arg { source: source.to_owned(), ..Arg::constant(text) }
}

/// Expands unquoted braces from `from` on. Returns false where there would be too many words or an odd form.
fn braces(letters: &[(char, bool)], from: usize, out: &mut Vec<Vec<(char, bool)>>) -> bool {
    let Some(open) = letters[from..].iter().position(|letter| *letter == ('{', false)).map(|at| at + from)
    else {
        out.push(letters.to_vec());
        return out.len() <= 64;
    };
    let mut level = 0_usize;
    let mut commas = Vec::new();
    let mut close = None;
    for (at, letter) in letters.iter().enumerate().skip(open) {
        match letter {
            ('{', false) => level += 1,
            ('}', false) => {
                level -= 1;
                if level == 0 {
                    close = Some(at);
                    break;
                }
            }
            (',', false) if level == 1 => commas.push(at),
            _ => {}
        }
    }
    let Some(close) = close else {
        // Bash looks for another pair further inside: only plain text is certain.
        if letters[open + 1..].contains(&('{', false)) || letters[open..].contains(&('}', false)) {
            return false;
        }
        out.push(letters.to_vec());
        return out.len() <= 64;
    };
    let inner = &letters[open + 1..close];
    let build = |middle: &[(char, bool)]| -> Vec<(char, bool)> {
        [&letters[..open], middle, &letters[close + 1..]].concat()
    };
    if commas.is_empty() {
        let text: String = inner.iter().map(|(c, _)| *c).collect();
        if text.contains("..") {
            return range(&text).is_some_and(|words| {
                words.iter().all(|word| {
                    let middle: Vec<(char, bool)> = word.chars().map(|c| (c, true)).collect();
                    braces(&build(&middle), open, out)
                })
            });
        }
        return if inner.contains(&('{', false)) { false } else { braces(letters, close, out) };
    }
    let mut start = open + 1;
    commas.push(close);
    for comma in commas {
        if !braces(&build(&letters[start..comma]), open, out) {
            return false;
        }
        start = comma + 1;
    }
    true
}

/// `1..5` or `a..e`, short ones only.
fn range(text: &str) -> Option<Vec<String>> {
    let (from, to) = text.split_once("..")?;
    if let (Ok(from), Ok(to)) = (from.parse::<i32>(), to.parse::<i32>()) {
        let n = from.abs_diff(to);
        let words = (from.min(to)..=from.max(to)).map(|n| n.to_string());
        return (n < 60).then(|| words.collect());
    }
    match (from.as_bytes(), to.as_bytes()) {
        ([from], [to]) if from.is_ascii_alphabetic() && to.is_ascii_alphabetic() => {
            if from.is_ascii_lowercase() != to.is_ascii_lowercase() {
                return None;
            }
            Some((*from.min(to)..=*from.max(to)).map(|byte| char::from(byte).to_string()).collect())
        }
        _ => None,
    }
}

/// It may be, or begin, a path that a shell or an awk takes for a connection.
fn is_pseudo(text: &str) -> bool {
    ["/dev/", "/inet"].iter().any(|pseudo| text.starts_with(pseudo) || pseudo.starts_with(text))
}

fn is_number(text: &str) -> bool {
    !text.is_empty()
        && text.len() < 19
        && text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit())
        && text != "-"
}

/// It stays one word when it is expanded without quotes.
fn is_whole(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '\t', '\n', '*', '?', '[', '\\'])
}
