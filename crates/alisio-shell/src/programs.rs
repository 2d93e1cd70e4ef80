//! What each program does with its arguments. One file for each family; a program that is in none is unknown.

mod archive;
mod awk;
mod builtins;
mod data;
mod developer;
mod effects;
mod files;
mod find;
mod git;
mod search;
mod sed;
mod system;
mod text;
mod wrappers;

use crate::options::Table;
use crate::value::Arg;

/// One command to be judged, and what is found out about it.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub name: &'a str,
    pub args: &'a [Arg],
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    pub hosts: Vec<String>,
    pub nested: Vec<Nested>,
}

/// What a command starts, to be judged as a part of its own.
#[derive(Debug)]
pub(crate) enum Nested {
    Command(Vec<Arg>),
    Script(String),
}

/// How a command is judged.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It only looks, and why.
    Read(String),
    /// It does more, or nobody can tell, and why.
    Unknown(String),
    /// It is nothing but the command with these words.
    Inner(Vec<Arg>),
}

impl<'a> Case<'a> {
    pub(crate) fn new(name: &'a str, args: &'a [Arg]) -> Self {
        Self { name, args, reads: Vec::new(), writes: Vec::new(), hosts: Vec::new(), nested: Vec::new() }
    }

    fn read(&self) -> Verdict {
        Verdict::Read(format!("`{}` only reads", self.name))
    }

    fn unknown(&self, why: impl AsRef<str>) -> Verdict {
        Verdict::Unknown(format!("`{}`: {}", self.name, why.as_ref()))
    }

    /// Every option of it is harmless, so its words need not be known. Operands after the first `skip` are files.
    fn harmless(&mut self, skip: usize) -> Verdict {
        let files =
            self.args.iter().filter_map(|arg| arg.exact.as_deref()).filter(|text| !text.starts_with('-'));
        self.reads.extend(files.skip(skip).map(str::to_owned));
        self.read()
    }

    /// Its options must be in the table; operands are files.
    fn table(&mut self, table: &Table) -> Verdict {
        self.table_skip(table, 0)
    }

    /// As [`Self::table`], the first `skip` operands not being files.
    fn table_skip(&mut self, table: &Table, skip: usize) -> Verdict {
        match table.split(self.args) {
            Ok(split) => {
                self.reads.extend(split.operands.iter().skip(skip).map(|arg| shown(arg)));
                self.read()
            }
            Err(why) => self.unknown(why),
        }
    }

    /// The first words are exactly these.
    fn begins(&self, words: &[&str]) -> bool {
        self.args.len() >= words.len() && self.args.iter().zip(words).all(|(arg, word)| arg.text() == *word)
    }

    /// All the words are exactly these.
    fn is(&self, words: &[&str]) -> bool {
        self.args.len() == words.len() && self.begins(words)
    }

    /// All words are known not to be options.
    fn operands_only(&mut self, args: &'a [Arg]) -> Verdict {
        match args.iter().find(|arg| !arg.is_operand()) {
            Some(arg) => self.unknown(format!("`{}` is or may become an option", arg.source)),
            None => {
                self.reads.extend(args.iter().map(shown));
                self.read()
            }
        }
    }
}

fn shown(arg: &Arg) -> String {
    arg.exact.clone().unwrap_or_else(|| arg.source.clone())
}

/// Judges one command whose program is known.
pub(crate) fn judge(case: &mut Case<'_>) -> Verdict {
    const FAMILIES: &[fn(&mut Case<'_>) -> Option<Verdict>] = &[
        text::judge,
        files::judge,
        builtins::judge,
        search::judge,
        data::judge,
        wrappers::judge,
        system::judge,
        developer::judge,
        archive::judge,
    ];
    match case.name {
        "git" => return git::judge(case),
        "find" => return find::judge(case),
        "sed" => return sed::judge(case),
        "awk" | "gawk" | "mawk" | "nawk" => return awk::judge(case),
        _ => {}
    }
    for family in FAMILIES {
        if let Some(verdict) = family(case) {
            return verdict;
        }
    }
    effects::judge(case)
}
