//! Option tables: which options of a program are known to have no effect, and how its arguments are read.
//!
//! Long options must be spelled out; GNU's abbreviations are not resolved, since the table holds only the harmless half
//! of the names and could take one for another.

use crate::value::Arg;

/// The harmless options of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// Letters; `:` after one means that it takes a value, `?` that a value may be glued to it.
    pub short: &'static str,
    /// Names without dashes, separated by blanks; `=` at the end means that it takes a value, `?` that it may.
    pub long: &'static str,
    /// `-12` is a number.
    pub numbers: bool,
}

/// Arguments taken apart.
#[derive(Debug, Default)]
pub(crate) struct Split<'a> {
    /// Names with their dashes, and values.
    pub options: Vec<(String, Option<String>)>,
    pub operands: Vec<&'a Arg>,
}

impl Split<'_> {
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    Maybe,
}

impl Table {
    fn short(&self, letter: char) -> Option<Takes> {
        let at = self.short.find(letter)?;
        Some(match self.short[at + letter.len_utf8()..].chars().next() {
            Some(':') => Takes::Value,
            Some('?') => Takes::Maybe,
            _ => Takes::Nothing,
        })
    }

    fn long(&self, name: &str) -> Option<Takes> {
        if name.is_empty() {
            return None;
        }
        self.long.split_ascii_whitespace().find_map(|known| {
            let rest = known.strip_prefix(name)?;
            match rest {
                "" => Some(Takes::Nothing),
                "=" => Some(Takes::Value),
                "?" => Some(Takes::Maybe),
                _ => None,
            }
        })
    }

    /// Takes arguments apart, options and operands in any order. The error names the word that is not known.
    pub(crate) fn split<'a>(&self, args: &'a [Arg]) -> Result<Split<'a>, String> {
        let mut split = Split::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let Some(text) = &arg.exact else {
                if arg.is_operand() {
                    split.operands.push(arg);
                    continue;
                }
                let name =
                    arg.head.strip_prefix("--").and_then(|text| text.split_once('=')).map(|(name, _)| name);
                match name.map(|name| self.long(name)) {
                    Some(Some(Takes::Value | Takes::Maybe)) if !arg.many => {
                        split.options.push((format!("--{}", name.unwrap_or_default()), None));
                        continue;
                    }
                    _ => return Err(format!("`{}` may become an option", arg.source)),
                }
            };
            if text == "--" {
                split.operands.extend(rest.by_ref());
                break;
            }
            if let Some(name) = text.strip_prefix("--") {
                let (name, value) = match name.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (name, None),
                };
                let value = match (self.long(name), value) {
                    (None, _) | (Some(Takes::Nothing), Some(_)) => return Err(unknown(text)),
                    (Some(Takes::Value), None) => next_value(rest.next(), text)?,
                    (_, value) => value,
                };
                split.options.push((format!("--{name}"), value));
                continue;
            }
            let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
                split.operands.push(arg);
                continue;
            };
            if self.numbers && cluster.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let mut letters = cluster.chars();
            while let Some(letter) = letters.next() {
                let name = format!("-{letter}");
                match self
                    .short(letter)
                    .filter(|_| letter.is_ascii_alphanumeric() || "@.,?#".contains(letter))
                {
                    None => return Err(unknown(text)),
                    Some(Takes::Nothing) => split.options.push((name, None)),
                    Some(takes) => {
                        let glued = letters.as_str();
                        let value = if glued.is_empty() && takes == Takes::Value {
                            next_value(rest.next(), text)?
                        } else {
                            Some(glued.to_owned())
                        };
                        split.options.push((name, value));
                        break;
                    }
                }
            }
        }
        Ok(split)
    }
}

/// The value in the next word; `None` inside if it is only known when it runs.
fn next_value(arg: Option<&Arg>, option: &str) -> Result<Option<String>, String> {
    match arg {
        None => Err(format!("`{option}` has no value")),
        Some(arg) if arg.many => Err(format!("`{}` may become several words", arg.source)),
        Some(arg) => Ok(arg.exact.clone()),
    }
}

pub(crate) fn unknown(option: &str) -> String {
    format!("its option `{option}` is not known to be harmless")
}
