//! What is judged on its own: a part of a command, a command as a whole, or the text of any other call, in all the forms in
//! which a pattern may meet it.
//!
//! A pattern that lets through has to hold for every form that says what runs. A pattern that refuses or asks needs one
//! form, and is shown a few more: other spellings of the same options, the path without its detours.

use alisio_protocol::{Class, Part};

use crate::Glob;
use crate::alias::{TargetKind, target_kind};
use crate::glob::{Pairs, Symbol};
use crate::shape;
use crate::subject::{Subject, absolute, quoted};

/// How well a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// It doesn't.
    No,
    /// Nobody can tell before the command runs.
    Could,
    /// In one form of the text.
    Partly,
    /// In every form.
    Fully,
}

/// Something that is judged on its own.
pub(crate) struct Unit<'s> {
    /// The text to show.
    pub(crate) text: &'s str,
    /// Which part of the command it is.
    pub(crate) index: Option<usize>,
    /// The part itself.
    pub(crate) part: Option<&'s Part>,
    /// Whether only a pattern that refuses or asks counts: the parts speak for the rest.
    pub(crate) strict_only: bool,
    /// Whether it was not understood, so that only rules for any text let it through.
    pub(crate) is_unclear: bool,
    /// Forms that a letting pattern must all match.
    exact: Vec<String>,
    /// Forms of which a letting pattern must match one, where there are any.
    canonical: Vec<String>,
    /// Forms that only a refusing pattern looks at.
    also: Vec<String>,
    /// The path from the workspace with a slash before it, for refusing patterns that begin with a star.
    rooted: Option<String>,
    /// The absolute path, for refusing patterns that name the workspace.
    inside: Option<(String, String)>,
    /// The text with holes where only the run knows it, and whether the program itself is one.
    shape: Option<(Vec<Symbol>, bool)>,
    /// Absolute paths, each also as seen from the directory.
    paths: Vec<(String, Option<String>)>,
    /// Whether some path could not be worked out.
    paths_open: bool,
    hosts: &'s [String],
    argv: Option<&'s [String]>,
}

impl<'s> Unit<'s> {
    fn plain(text: &'s str) -> Self {
        Self {
            text,
            index: None,
            part: None,
            strict_only: false,
            is_unclear: false,
            exact: vec![text.to_owned()],
            canonical: Vec::new(),
            also: Vec::new(),
            rooted: None,
            inside: None,
            shape: None,
            paths: Vec::new(),
            paths_open: false,
            hosts: &[],
            argv: None,
        }
    }

    /// Adds every form to the pairs that patterns are first compared with.
    pub(crate) fn add_to(&self, pairs: &mut Pairs) {
        let inside = self.inside.as_ref().map(|(path, _)| path);
        for form in
            self.exact.iter().chain(&self.canonical).chain(&self.also).chain(&self.rooted).chain(inside)
        {
            pairs.add(form);
        }
    }

    /// Says whether something of it is only known when it runs.
    pub(crate) fn has_holes(&self) -> bool {
        self.shape.is_some() || self.is_unclear
    }

    /// Says how well a pattern holds.
    pub(crate) fn fit_pattern(&self, glob: &Glob) -> Fit {
        if glob.is_universal() {
            return Fit::Fully;
        }
        let exact = self.exact.iter().filter(|form| glob.matches(form)).count();
        let canonical = self.canonical.iter().any(|form| glob.matches(form));
        if exact == self.exact.len() && (canonical || self.canonical.is_empty()) {
            return Fit::Fully;
        }
        if exact > 0 || canonical || self.also.iter().any(|form| glob.matches(form)) {
            return Fit::Partly;
        }
        let floats = glob.as_str().starts_with(['*', '?']);
        if self.rooted.as_ref().is_some_and(|form| floats && glob.matches(form)) {
            return Fit::Partly;
        }
        if self
            .inside
            .as_ref()
            .is_some_and(|(form, prefix)| glob.as_str().starts_with(prefix) && glob.matches(form))
        {
            return Fit::Partly;
        }
        match &self.shape {
            Some((shape, any_program)) if glob.could_match(shape, !any_program) => Fit::Could,
            None if self.is_unclear => Fit::Could,
            _ => Fit::No,
        }
    }

    /// Says how well a condition on hosts holds.
    pub(crate) fn fit_host(&self, glob: &Glob) -> Fit {
        let open = self.shape.is_some() || self.is_unclear;
        fit_all(self.hosts.iter().map(|host| glob.matches(&host.to_lowercase())), open)
    }

    /// Says how well a condition on paths holds. That a program touches no other files is known of readers only.
    pub(crate) fn fit_path(&self, glob: &Glob) -> Fit {
        let open = self.shape.is_some() || self.is_unclear || self.paths_open;
        let matches = |(path, relative): &(String, Option<String>)| {
            glob.matches(path) || relative.as_ref().is_some_and(|relative| glob.matches(relative))
        };
        let fit = fit_all(self.paths.iter().map(matches), open);
        let may_touch_more = self.part.is_some_and(|part| part.class != Class::Read);
        if may_touch_more { fit.min(Fit::Partly) } else { fit }
    }

    /// Says how well a condition on the program holds.
    pub(crate) fn fit_program(&self, words: &[String]) -> Fit {
        let Some(part) = self.part else {
            let open = self.is_unclear;
            return match self.argv {
                Some(argv) => fit_argv(argv, words),
                None if open => Fit::Could,
                None => Fit::No,
            };
        };
        match (&part.argv, &part.program) {
            (Some(argv), _) => {
                // With something before the program (a wrapper, a variable for it) it may do something else.
                let is_bare = argv.first().is_some_and(|program| shape::begins_with(&part.text, program));
                let fit = fit_argv(argv, words);
                let fit = if is_bare { fit } else { fit.min(Fit::Partly) };
                let plain = shape::spellings(argv).iter().any(|form| starts_with_words(form, words));
                if fit == Fit::No && plain { Fit::Partly } else { fit }
            }
            (None, Some(program)) if Some(program) == words.first() => {
                if words.len() == 1 {
                    Fit::Partly
                } else {
                    Fit::Could
                }
            }
            (None, Some(_)) => Fit::No,
            (None, None) => Fit::Could,
        }
    }
}

fn fit_all(matches: impl Iterator<Item = bool>, open: bool) -> Fit {
    let (mut n, mut n_matching) = (0, 0);
    for matches in matches {
        n += 1;
        n_matching += usize::from(matches);
    }
    match n_matching {
        0 if open => Fit::Could,
        0 => Fit::No,
        _ if n_matching == n && !open => Fit::Fully,
        _ => Fit::Partly,
    }
}

fn fit_argv(argv: &[String], words: &[String]) -> Fit {
    let (Some(program), Some(wanted)) = (argv.first(), words.first()) else { return Fit::No };
    if argv.len() < words.len() || argv[1..words.len()] != words[1..] {
        return Fit::No;
    }
    if program == wanted {
        Fit::Fully
    } else if program.rsplit('/').next() == Some(wanted) {
        // A file of that name somewhere: it may be the program, and may be anything.
        Fit::Partly
    } else {
        Fit::No
    }
}

fn starts_with_words(text: &str, words: &[String]) -> bool {
    let mut rest = text.split(' ');
    words.iter().all(|word| rest.next() == Some(word))
}

/// Takes a call apart into what is judged on its own.
pub(crate) fn units<'s>(tool: &str, subject: &'s Subject) -> Vec<Unit<'s>> {
    match target_kind(tool) {
        TargetKind::Command | TargetKind::Program => command(subject),
        TargetKind::OpaqueCommand => {
            let is_unclear = subject.target.contains([';', '|', '&', '\n', '$', '(', ')', '{', '}', '`']);
            vec![Unit { is_unclear, ..Unit::plain(&subject.target) }]
        }
        TargetKind::Path => vec![path(subject)],
        TargetKind::Text | TargetKind::Json => {
            let mut unit = Unit::plain(&subject.target);
            unit.also.extend(subject.also.iter().cloned());
            unit.hosts = &subject.hosts;
            unit.paths = seen_from(&subject.directory, &subject.paths);
            vec![unit]
        }
    }
}

fn command(subject: &Subject) -> Vec<Unit<'_>> {
    let parts = subject.facts.as_ref().map_or(&[][..], |facts| &facts.parts);
    // What the parser could not read is a part of its own, without words and without a program.
    let is_unclear = |part: &Part| part.class != Class::Read && part.argv.is_none() && part.program.is_none();
    let understood = subject.facts.is_some();
    let moves = parts
        .iter()
        .any(|part| part.program.as_deref().is_none_or(|program| matches!(program, "cd" | "pushd" | "popd")));
    let mut units = Vec::with_capacity(parts.len() + 1);
    let is_single = parts.len() == 1;
    if !is_single {
        let mut whole = Unit::plain(&subject.target);
        whole.is_unclear = !understood;
        whole.strict_only = understood && !parts.is_empty();
        whole.also.extend(shape::plain_blanks(&subject.target));
        if let Some(argv) = &subject.argv {
            whole.exact.push(argv.join(" "));
            whole.also.extend(shape::spellings(argv));
            whole.argv = Some(argv);
        }
        units.push(whole);
    }
    for (index, part) in parts.iter().enumerate() {
        let mut unit = Unit::plain(&part.text);
        unit.index = Some(index);
        unit.part = Some(part);
        unit.is_unclear = is_unclear(part);
        if is_single {
            match &subject.argv {
                Some(argv) => unit.exact = vec![argv.join(" "), quoted(argv)],
                None if subject.target != part.text => unit.exact.push(subject.target.clone()),
                None => {}
            }
            unit.also.extend(shape::plain_blanks(&subject.target));
        }
        unit.also.extend(shape::plain_blanks(&part.text));
        // What a wrapper starts is shown with the wrapper's text; a rule that lets through must name it itself.
        let is_started = index > 0
            && parts[index - 1].text == part.text
            && (parts[index - 1].program != part.program || parts[index - 1].argv != part.argv);
        match &part.argv {
            Some(argv) => {
                unit.also.push(argv.join(" "));
                unit.also.push(quoted(argv));
                unit.also.extend(shape::spellings(argv));
                if is_started {
                    unit.exact = vec![argv.join(" ")];
                }
            }
            None => {
                if let Some(program) = &part.program {
                    let words = shape::loose_words(&part.text, program);
                    if is_started {
                        unit.exact = vec![words.join(" ")];
                    }
                    unit.also.push(words.join(" "));
                    unit.also.extend(shape::spellings(&words));
                }
                if part.class != Class::Read && part.program.is_some() {
                    unit.shape = Some((shape::with_holes(&part.text), false));
                }
            }
        }
        unit.hosts = &part.hosts;
        let files: Vec<&String> = part.reads.iter().chain(&part.writes).collect();
        unit.paths_open = files.iter().any(|file| {
            file.contains(['$', '`', '*', '?', '[', '{'])
                || file.starts_with('~')
                || (moves && !file.starts_with('/'))
        });
        let files: Vec<String> = files.into_iter().map(|file| absolute(&subject.directory, file)).collect();
        unit.paths = seen_from(&subject.directory, &files);
        units.push(unit);
    }
    units
}

fn path(subject: &Subject) -> Unit<'_> {
    let mut unit = Unit::plain(&subject.target);
    unit.also.extend(subject.also.iter().cloned());
    unit.paths = seen_from(&subject.directory, &subject.paths);
    let given = subject.target.as_str();
    if given.is_empty() {
        return unit;
    }
    if given.starts_with('~') {
        // Whose home it is shows when it runs: what follows is known.
        let (user, rest) = given.split_once('/').unwrap_or((given, ""));
        let rest = absolute("/", rest);
        let plain = if rest == "/" { user.to_owned() } else { format!("{user}{rest}") };
        let shape = std::iter::once(Symbol::Hole).chain(rest.chars().map(Symbol::Char)).collect();
        unit.canonical = with_slash(given, plain);
        unit.shape = Some((shape, true));
        return unit;
    }
    let lexical = absolute(&subject.directory, given);
    // Where the machine resolved the path, a link may have led elsewhere: that is what counts.
    let full = subject.paths.first().cloned().unwrap_or_else(|| lexical.clone());
    let directory = absolute("/", &subject.directory);
    match below(&directory, &full) {
        Some(relative) => {
            unit.rooted = Some(format!("/{relative}"));
            let prefix = if directory == "/" { directory.clone() } else { format!("{directory}/") };
            unit.canonical = with_slash(given, relative.to_owned());
            unit.canonical.push(format!("./{relative}"));
            if given.starts_with('/') {
                unit.canonical.extend(with_slash(given, full.clone()));
            } else {
                unit.inside = Some((full.clone(), prefix));
            }
        }
        None => {
            unit.canonical = with_slash(given, full.clone());
            unit.canonical.extend(with_slash(given, upwards(&directory, &full)));
        }
    }
    if lexical != full {
        unit.also.extend(below(&directory, &lexical).map(str::to_owned));
        unit.also.push(lexical);
    }
    unit
}

/// The path, and once more with the slash at its end that the given one has.
fn with_slash(given: &str, path: String) -> Vec<String> {
    if given.ends_with('/') && !path.ends_with('/') { vec![format!("{path}/"), path] } else { vec![path] }
}

/// The rest of `path` below `directory`; `.` for the directory itself.
fn below<'p>(directory: &str, path: &'p str) -> Option<&'p str> {
    if path == directory {
        return Some(".");
    }
    if directory == "/" {
        return path.strip_prefix('/');
    }
    path.strip_prefix(directory)?.strip_prefix('/')
}

/// The path as seen from `directory`, by way of `..`.
fn upwards(directory: &str, path: &str) -> String {
    let from: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    let to: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let n_common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut parts = vec![".."; from.len() - n_common];
    parts.extend(&to[n_common..]);
    parts.join("/")
}

fn seen_from(directory: &str, paths: &[String]) -> Vec<(String, Option<String>)> {
    let directory = absolute("/", directory);
    paths.iter().map(|path| (path.clone(), below(&directory, path).map(str::to_owned))).collect()
}
