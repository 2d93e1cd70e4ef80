//! The syntax tree of a bash script and the parser that makes it.
//!
//! The tree is flat where structure does not change what may happen: lists, pipelines and branches are simply their
//! commands in the order of the text, since every one of them may run.

mod arithmetic;
mod command;
mod compound;
mod expansion;
mod word;

/// Where and why the parser gave up.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    /// Byte offset in the text.
    pub at: usize,
    /// What was met there, as the end of "it has …".
    pub why: &'static str,
}

pub(crate) type Parsed<T> = Result<T, Stop>;

/// One thing a script does.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Simple(Simple),
    /// Redirections of a group, loop or condition.
    Redirects {
        text: String,
        redirects: Vec<Redirect>,
    },
    /// The head of `for NAME in …`; `None` walks over the positional parameters.
    Loop {
        text: String,
        name: String,
        values: Option<Vec<Word>>,
    },
    /// Words that are only expanded, such as those of `case`.
    Words(Vec<Word>),
    Arithmetic {
        text: String,
        arithmetic: Arithmetic,
    },
    /// `[[ … ]]`.
    Condition(Condition),
    /// Something that is never taken for a read.
    Opaque {
        text: String,
        why: &'static str,
    },
}

/// Assignments, words and redirections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Simple {
    pub text: String,
    /// Its output goes to another command.
    pub piped: bool,
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
}

/// `NAME=value` in front of a command or alone.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub name: String,
    /// `NAME+=` or `NAME[1]=`.
    pub partial: bool,
    /// One word, or the elements of an array.
    pub values: Vec<Word>,
    pub array: bool,
}

/// `[[ … ]]`: its operands, apart from those whose text is evaluated as arithmetic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    pub text: String,
    pub operands: Vec<Word>,
    pub numbers: Vec<Word>,
    pub opaque: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// `<`
    Input,
    /// `>`, `>>`, `>|`, `&>`, `&>>`
    Output,
    /// `>&`, `<&`
    Duplicate,
    /// `<>`
    Both,
    /// `<<`, `<<-`, `<<<`: text, expanded.
    Text,
}

#[derive(Clone, Debug)]
pub(crate) struct Redirect {
    pub text: String,
    pub descriptor: Option<String>,
    pub direction: Direction,
    pub target: Word,
}

/// One word as written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pub text: String,
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// Unquoted text, where `*`, `{` and `~` may still mean something.
    Plain(String),
    /// Text that stands for itself.
    Quoted(String),
    Variable {
        name: String,
        quoted: bool,
        /// A length or another certain number.
        number: bool,
        /// The value may be another than the variable's own.
        altered: bool,
        /// Words of the operator, as in `${x:-word}`.
        words: Vec<Word>,
        /// Assigned by `${x:=word}`.
        assigns: bool,
        arithmetic: Option<Arithmetic>,
    },
    Command {
        items: Vec<Item>,
        quoted: bool,
    },
    Process {
        items: Vec<Item>,
    },
    Arithmetic {
        arithmetic: Arithmetic,
        quoted: bool,
    },
}

/// An arithmetic expression: what it names and what is expanded in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arithmetic {
    /// Variables whose value is evaluated.
    pub names: Vec<String>,
    /// Whether it may assign to them.
    pub assigns: bool,
    /// Those that are set by a plain `=`, whatever they were before.
    pub set: Vec<String>,
    /// Expansions in it, whose text is evaluated too.
    pub pieces: Vec<Piece>,
}

/// Parses a whole script. The items found before a stop are kept: they are facts all the same.
pub(crate) fn parse(text: &str, depth: usize) -> (Vec<Item>, Option<Stop>) {
    let mut items = Vec::new();
    let mut parser = Parser::new(text, depth);
    let stop = parser.whole(&mut items).err();
    (items, stop)
}

/// A here-document whose body begins after the line.
struct Pending {
    delimiter: String,
    quoted: bool,
    strip_tabs: bool,
}

/// Walks over the text once, from left to right.
struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    pending: Vec<Pending>,
    /// Items from here-document bodies that were met, to be put after the command.
    bodies: Vec<Word>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, depth: usize) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, depth, pending: Vec::new(), bodies: Vec::new() }
    }

    fn stop<T>(&self, why: &'static str) -> Parsed<T> {
        Err(Stop { at: self.at, why })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn peek_at(&self, offset: usize) -> Option<u8> {
        self.bytes.get(self.at + offset).copied()
    }

    fn looking_at(&self, what: &str) -> bool {
        self.bytes[self.at..].starts_with(what.as_bytes())
    }

    fn slice(&self, from: usize) -> String {
        self.text.get(from..self.at).unwrap_or_default().trim_end().to_owned()
    }

    /// Runs `inner` one level deeper, or stops at the cap.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == 0 {
            return self.stop("too many nested levels");
        }
        self.depth -= 1;
        let result = inner(self);
        self.depth += 1;
        result
    }

    /// The next character, where it may stand outside quotes. Odd blanks and controls are not judged.
    fn plain_char(&self) -> Parsed<char> {
        let Some(c) = self.text.get(self.at..).and_then(|rest| rest.chars().next()) else {
            return self.stop("an unexpected end");
        };
        if is_odd(c) { self.stop("an unusual blank or control character outside quotes") } else { Ok(c) }
    }
}

/// Blanks other than space, tab and newline, controls, and characters that cannot be seen.
fn is_odd(c: char) -> bool {
    match c {
        ' ' | '\t' | '\n' => false,
        '\0'..='\u{7f}' => c.is_control(),
        _ => {
            c.is_whitespace()
                || c.is_control()
                || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                    | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                    | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        }
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
