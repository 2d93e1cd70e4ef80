//! `awk`: its options, then its program, token by token. Whatever could start a command or write a file is refused by
//! its mere presence; only `>` and `|` need a second look, since they also compare and stand in patterns.

use super::{Case, Verdict};
use crate::options::Table;

const OPTIONS: Table = Table { short: "F:v:", long: "field-separator= assign= version", numbers: false };

pub(super) fn judge(case: &mut Case<'_>) -> Verdict {
    let split = match leading(case.args) {
        Ok(rest) => rest,
        Err(why) => return case.unknown(why),
    };
    let Some((program, files)) = split.split_first() else {
        return if case.args.is_empty() { case.unknown("it has no program") } else { case.read() };
    };
    let Some(text) = program.exact.as_deref() else {
        return case.unknown("its program is only known when it runs");
    };
    for file in files {
        let head = file.exact.as_deref().unwrap_or(&file.head);
        if !head.is_empty()
            && (head.starts_with("/inet") || (file.exact.is_none() && "/inet".starts_with(head)))
        {
            return case.unknown(format!("`{}` may be a connection", file.source));
        }
        if !file.is_operand() {
            return case.unknown(format!("`{}` is or may become an option", file.source));
        }
    }
    case.reads.extend(files.iter().map(super::shown));
    match check(text) {
        Ok(()) => case.read(),
        Err(why) => case.unknown(why),
    }
}

/// Checks the options in front of the program and returns what is left.
fn leading(args: &[crate::value::Arg]) -> Result<&[crate::value::Arg], String> {
    let mut n = 0;
    while let Some(arg) = args.get(n) {
        let text = arg.exact.as_deref().unwrap_or(&arg.head);
        if arg.exact.is_none() && (arg.free || arg.many) {
            return Err(format!("`{}` may become an option", arg.source));
        }
        if text == "--" {
            return Ok(&args[n + 1..]);
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        if arg.exact.is_none() && !matches!(text.get(..2), Some("-F" | "-v")) {
            return Err(crate::options::unknown(&arg.source));
        }
        if matches!(text, "-F" | "-v" | "--field-separator" | "--assign") {
            if args.get(n + 1).is_none_or(|value| value.many) {
                return Err(format!("the value of `{text}` is not one word"));
            }
            n += 2;
            continue;
        }
        OPTIONS.split(&args[n..=n]).map_err(|_| crate::options::unknown(&arg.source))?;
        n += 1;
    }
    Ok(&args[n..])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A slash after it begins a pattern.
    Operator,
    /// A slash after it divides.
    Value,
    /// A slash after it may do either.
    Either,
}

fn check(program: &str) -> Result<(), String> {
    for word in ["system", "getline", "/inet", "ARGV", "@load", "@include"] {
        if program.contains(word) {
            return Err(format!("its program contains `{word}`"));
        }
    }
    let chars: Vec<char> = program.chars().collect();
    let mut at = 0;
    let mut before = Before::Operator;
    let mut printing: Option<usize> = None;
    let mut open = 0_usize;
    let mut hidden = false;
    let mut doubtful = false;
    while let Some(&c) = chars.get(at) {
        at += 1;
        match c {
            ' ' | '\t' | '\n' | '\r' => {}
            '#' => {
                while chars.get(at).is_some_and(|c| *c != '\n') {
                    hidden |= matches!(chars[at], '|' | '>' | '@');
                    at += 1;
                }
            }
            '\\' => {}
            '"' => {
                loop {
                    match chars.get(at) {
                        None | Some('\n') => return Err(String::from("its program is not complete")),
                        Some('"') => break,
                        Some('\\') => at += 1,
                        Some('|' | '>' | '@') => hidden = true,
                        Some(_) => {}
                    }
                    at += 1;
                }
                at += 1;
                before = Before::Value;
            }
            '/' if before == Before::Operator => {
                let mut bracket = false;
                loop {
                    match chars.get(at) {
                        None | Some('\n') => return Err(String::from("its program is not complete")),
                        Some('/') if bracket => return Err(String::from("a bracket in its program is odd")),
                        Some('[')
                            if chars.get(at + 1) == Some(&']')
                                || (chars.get(at + 1) == Some(&'^') && chars.get(at + 2) == Some(&']')) =>
                        {
                            return Err(String::from("a bracket in its program is odd"));
                        }
                        Some('[') if bracket && chars.get(at + 1) == Some(&':') => {
                            while chars.get(at + 1).is_some_and(|c| !matches!(c, ']' | '/' | '\n')) {
                                at += 1;
                            }
                            at += 1;
                        }
                        Some('/') => break,
                        Some('\\') => at += 1,
                        Some('[') => bracket = true,
                        Some(']') => bracket = false,
                        Some('|' | '>' | '@') => hidden = true,
                        Some(_) => {}
                    }
                    at += 1;
                }
                at += 1;
                before = Before::Value;
            }
            '/' => {
                doubtful |= before == Before::Either;
                before = Before::Operator;
            }
            '|' => {
                if chars.get(at) != Some(&'|') {
                    return Err(String::from("its program has a pipe"));
                }
                at += 1;
                before = Before::Operator;
            }
            '>' => {
                // Deeper inside parentheses it can only compare.
                if printing.is_some_and(|base| open <= base) || chars.get(at) == Some(&'>') {
                    return Err(String::from("its program may write a file"));
                }
                before = Before::Operator;
            }
            ';' | '{' | '}' => {
                printing = None;
                before = Before::Operator;
            }
            '@' => return Err(String::from("its program has an indirect call or directive")),
            '(' => {
                open += 1;
                before = Before::Operator;
            }
            ')' => {
                open = open.saturating_sub(1);
                before = Before::Either;
            }
            ']' | '$' => before = if c == ']' { Before::Value } else { Before::Operator },
            '+' | '-' if chars.get(at) == Some(&c) => {
                at += 1;
                before = Before::Either;
            }
            c if c.is_alphanumeric() || c == '_' || c == '.' => {
                let from = at - 1;
                while chars.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_' || *c == '.') {
                    at += 1;
                }
                let word: String = chars[from..at].iter().collect();
                before = match word.as_str() {
                    "print" | "printf" => {
                        printing = Some(open);
                        Before::Operator
                    }
                    "return" | "in" | "else" | "do" | "delete" | "exit" => Before::Operator,
                    "load" | "include" | "namespace" | "extension" => {
                        return Err(format!("its program contains `{word}`"));
                    }
                    _ => Before::Value,
                };
            }
            _ => before = Before::Operator,
        }
    }
    if doubtful && hidden {
        return Err(String::from("a slash in its program may divide or begin a pattern"));
    }
    Ok(())
}
