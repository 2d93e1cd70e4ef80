//! Other ways to write the same command: blanks, options, folders of programs; and what is left of a text when only the run
//! knows some of its words.
//!
//! It is used on the strict side alone: a form that is missing here makes a refusing pattern miss, never lets more through
//! than the pattern's own text would.

use crate::glob::Symbol;
use crate::subject::quoted;

/// Programs whose options have two spellings: short letter, long word.
const OPTIONS: &[(&str, &[(char, &str)])] = &[
    ("rm", &[('r', "recursive"), ('f', "force"), ('i', "interactive"), ('v', "verbose"), ('d', "dir")]),
    ("cp", &[('r', "recursive"), ('f', "force"), ('a', "archive"), ('v', "verbose")]),
    ("mv", &[('f', "force"), ('n', "no-clobber"), ('v', "verbose")]),
    ("ln", &[('s', "symbolic"), ('f', "force")]),
    ("chmod", &[('R', "recursive"), ('f', "silent"), ('v', "verbose")]),
    ("chown", &[('R', "recursive"), ('f', "silent"), ('v', "verbose")]),
    ("chgrp", &[('R', "recursive"), ('f', "silent"), ('v', "verbose")]),
    ("mkdir", &[('p', "parents"), ('v', "verbose")]),
];

/// Options of `git` itself that take the next word.
const GIT_WITH_VALUE: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"];

/// Subcommands of `git` where `-f` and `--force` are the same.
const GIT_FORCE: &[&str] =
    &["push", "clean", "checkout", "switch", "branch", "tag", "add", "rm", "mv", "fetch", "pull"];

/// Returns other spellings of a simple command, without the one that its words give when joined.
pub(crate) fn spellings(argv: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    let Some((program, rest)) = argv.split_first() else { return all };
    let name = program.rsplit('/').next().unwrap_or_default();
    if name != program && !name.is_empty() {
        let mut plain = vec![name.to_owned()];
        plain.extend_from_slice(rest);
        all.push(plain.join(" "));
        all.push(quoted(&plain));
    }
    if let Some((_, options)) = OPTIONS.iter().find(|(known, _)| *known == name) {
        options_of(name, rest, options, &mut all);
    }
    if name == "git" {
        git(rest, &mut all);
    }
    all
}

fn options_of(name: &str, rest: &[String], options: &[(char, &str)], all: &mut Vec<String>) {
    let (mut letters, mut operands, mut ended) = (Vec::new(), Vec::new(), false);
    for word in rest {
        if ended || !word.starts_with('-') || word == "-" {
            operands.push(word.as_str());
        } else if word == "--" {
            ended = true;
        } else if let Some(long) = word.strip_prefix("--") {
            // Long options may be cut short as long as they are clear.
            match options.iter().find(|(_, known)| !long.is_empty() && known.starts_with(long)) {
                Some((letter, _)) => letters.push(*letter),
                None => operands.push(word.as_str()),
            }
        } else {
            letters.extend(
                word.chars().skip(1).map(|c| if c == 'R' && matches!(name, "rm" | "cp") { 'r' } else { c }),
            );
        }
    }
    letters.sort_unstable();
    letters.dedup();
    if letters.is_empty() {
        return;
    }
    let operands = operands.join(" ");
    let end = if operands.is_empty() { String::new() } else { format!(" {operands}") };
    let long_of = |letter: &char| options.iter().find(|(known, _)| known == letter).map(|(_, long)| *long);
    for order in orders(&letters) {
        let cluster: String = order.iter().collect();
        all.push(format!("{name} -{cluster}{end}"));
        let apart: Vec<String> = order.iter().map(|letter| format!("-{letter}")).collect();
        all.push(format!("{name} {}{end}", apart.join(" ")));
        let long: Option<Vec<String>> =
            order.iter().map(|letter| long_of(letter).map(|long| format!("--{long}"))).collect();
        all.extend(long.map(|long| format!("{name} {}{end}", long.join(" "))));
    }
    if letters.len() > 2 && letters.contains(&'r') && letters.contains(&'f') {
        // The two that people write down, in front.
        let others: String = letters.iter().filter(|letter| !matches!(letter, 'r' | 'f')).collect();
        all.push(format!("{name} -rf -{others}{end}"));
        all.push(format!("{name} -rf{others}{end}"));
        all.push(format!("{name} -fr{others}{end}"));
    }
}

/// All orders of up to three letters; of more, the one that they come in.
fn orders(letters: &[char]) -> Vec<Vec<char>> {
    match letters {
        [a, b] => vec![vec![*a, *b], vec![*b, *a]],
        [a, b, c] => [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]]
            .map(|order| order.map(|letter| *letter).to_vec())
            .to_vec(),
        other => vec![other.to_vec()],
    }
}

fn git(rest: &[String], all: &mut Vec<String>) {
    let mut words = rest;
    while let Some((first, after)) = words.split_first() {
        if !first.starts_with('-') {
            break;
        }
        words =
            if GIT_WITH_VALUE.contains(&first.as_str()) { after.get(1..).unwrap_or_default() } else { after };
    }
    let Some((subcommand, arguments)) = words.split_first() else { return };
    if words.len() != rest.len() {
        all.push(format!("git {}", words.join(" ")));
    }
    if !GIT_FORCE.contains(&subcommand.as_str()) {
        return;
    }
    for (from, to) in [("-f", "--force"), ("--force", "-f")] {
        if arguments.iter().any(|word| word == from) {
            let other: Vec<&str> =
                arguments.iter().map(|word| if word == from { to } else { word.as_str() }).collect();
            all.push(format!("git {subcommand} {}", other.join(" ")));
            let others: Vec<&str> =
                arguments.iter().filter(|word| *word != from).map(String::as_str).collect();
            for flag in [from, to] {
                let end = if others.is_empty() { String::new() } else { format!(" {}", others.join(" ")) };
                all.push(format!("git {subcommand} {flag}{end}"));
            }
        }
    }
}

/// Returns the text with every run of blanks as one, and the shell's own blank (`$IFS`) written out; `None` when that is
/// the text itself.
pub(crate) fn plain_blanks(text: &str) -> Option<String> {
    let mut plain = text.replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ");
    let mut last_blank = false;
    plain = plain
        .chars()
        .filter_map(|c| {
            let blank = matches!(c, ' ' | '\t' | '\n' | '\r');
            let keep = (!(blank && last_blank)).then_some(if blank { ' ' } else { c });
            last_blank = blank;
            keep
        })
        .collect();
    (plain != text).then_some(plain)
}

/// Returns the text without its quotes, with a hole for each expansion.
pub(crate) fn with_holes(text: &str) -> Vec<Symbol> {
    let text = text.replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ");
    let mut shape = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut single = false;
    while let Some(c) = rest.next() {
        match c {
            '\'' => single = !single,
            _ if single => shape.push(Symbol::Char(c)),
            '"' => {}
            '\\' => shape.extend(rest.next().map(Symbol::Char)),
            '*' | '?' | '[' | '{' | '~' => shape.push(Symbol::Hole),
            '`' => {
                while rest.next().is_some_and(|c| c != '`') {}
                shape.push(Symbol::Hole);
            }
            '$' => {
                match rest.peek() {
                    Some('(' | '{') => skip_nested(&mut rest),
                    Some('\'') => {
                        rest.next();
                        while rest.next().is_some_and(|c| c != '\'') {}
                    }
                    Some(c) if c.is_alphanumeric() || *c == '_' => {
                        while rest.peek().is_some_and(|c| c.is_alphanumeric() || *c == '_') {
                            rest.next();
                        }
                    }
                    _ => drop(rest.next()),
                }
                shape.push(Symbol::Hole);
            }
            ' ' | '\t' | '\n' => {
                if shape.last() != Some(&Symbol::Char(' ')) {
                    shape.push(Symbol::Char(' '));
                }
            }
            c => shape.push(Symbol::Char(c)),
        }
    }
    shape
}

fn skip_nested(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let mut depth = 0_u32;
    for c in rest.by_ref() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

/// Says whether a command writes a file by redirection, as far as its quotes tell. The null device is no file.
pub(crate) fn redirects_to_file(text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    let (mut index, mut single, mut double) = (0, false, false);
    while let Some(c) = characters.get(index) {
        match c {
            '\\' if !single => index += 1,
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '>' if !single && !double => {
                let mut next = index + 1;
                while characters.get(next).is_some_and(|c| matches!(c, '>' | '|' | ' ' | '\t')) {
                    next += 1;
                }
                let target: String = characters[next..]
                    .iter()
                    .take_while(|c| !c.is_whitespace() && !";|)".contains(**c))
                    .collect();
                let target = target.trim_end_matches('&');
                let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '-');
                let harmless = matches!(target, "/dev/null" | "/dev/stdout" | "/dev/stderr")
                    || target.strip_prefix('&').is_some_and(|rest| !rest.is_empty() && is_number(rest));
                if !harmless {
                    return true;
                }
                index = next;
            }
            _ => {}
        }
        index += 1;
    }
    false
}

/// Splits a pattern, or a text, where a shell would begin another command.
pub(crate) fn at_operators(text: &str) -> Vec<&str> {
    text.split(['|', ';', '&', '\n']).map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

/// Splits a text whose words are not all known, from `program` on, as well as blanks and quotes tell.
pub(crate) fn loose_words(text: &str, program: &str) -> Vec<String> {
    let plain: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let mut words: Vec<String> = plain.split_whitespace().map(str::to_owned).collect();
    let names_it = |word: &String| word.rsplit('/').next() == Some(program);
    if let Some(start) = words.iter().position(names_it) {
        words.drain(..start);
    }
    words
}

/// Says whether the first word of a text is `program`, quotes aside.
pub(crate) fn begins_with(text: &str, program: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let plain: String = first.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    plain == program
}
