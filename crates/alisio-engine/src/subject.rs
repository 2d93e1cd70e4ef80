//! What rules, people and the ledger see of a call, made in one place and not by the tool that is judged.

use std::path::Path;

use alisio_policy::{Request, Subject, TargetKind, target_kind};
use alisio_protocol::ToolCall;
use alisio_sdk::BASH;
use alisio_shell::{Budget, understand, understand_argv};

/// Reads the input of a call and puts the paths as the machine resolved them in the place of their text.
pub(crate) fn subject_of(call: &ToolCall, request: &Request, workspace: &Path) -> Subject {
    let tool = request.tool.as_str();
    let directory = workspace.to_string_lossy();
    let mut subject = Subject::of_input(tool, &call.arguments, &directory)
        .unwrap_or_else(|_| Subject::of_target(tool, &call.arguments, &directory));
    if let Some(directory) = &request.scope.spawns_in {
        subject.directory = directory.to_string_lossy().into_owned();
    }
    match target_kind(tool) {
        TargetKind::Command if BASH.iter().any(|bash| Path::new(bash).exists()) => {
            subject.facts = Some(understand(&subject.target, &Budget::default()));
        }
        // Another shell reads it differently, so nobody looked.
        TargetKind::Command => {}
        TargetKind::Program => subject.facts = subject.argv.as_deref().map(understand_argv),
        _ => {
            let scope = &request.scope;
            let resolved: Vec<_> = scope
                .reads
                .iter()
                .chain(&scope.writes)
                .map(|path| path.to_string_lossy().into_owned())
                .collect();
            if !resolved.is_empty() {
                subject.paths = resolved;
            }
        }
    }
    subject
}

/// Words of a call that are shorter say nothing, and would take the sentence apart.
const SHORTEST_SECRET: usize = 4;

/// Says a reason without the words of the call: the ledger holds metadata, never commands or contents. What is quoted
/// goes as a whole, since a quoted command may hold quotes itself; what was woven into the sentence goes word by word.
pub(crate) fn without_words(reason: &str, subject: &Subject) -> String {
    let mut told = reason.to_owned();
    if let (Some(first), Some(last)) = (told.find('`'), told.rfind('`'))
        && first < last
    {
        told.replace_range(first..=last, "…");
    }
    let texts = std::iter::once(&subject.target).chain(&subject.also).chain(subject.argv.iter().flatten());
    for word in texts.flat_map(|text| text.split(|c: char| c.is_whitespace() || "'\"();|&<>$`".contains(c))) {
        if word.len() >= SHORTEST_SECRET && told.contains(word) {
            told = told.replace(word, "…");
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_without_the_words_of_the_call() {
        for (target, reason, told) in [
            (
                "echo hush",
                "no rule is about the part `echo hush`, and the default is ask",
                "no rule is about the part …, and the default is ask",
            ),
            ("echo `hush`", "rules[1] (deny) matches `echo `hush``: no", "rules[1] (deny) matches …: no"),
            ("curl http://x/hush", "curl reaches http://x/hush, which writes", "… reaches …, which writes"),
            ("ls", "the process effect needs approval", "the process effect needs approval"),
        ] {
            let subject = Subject { target: target.to_owned(), ..Subject::default() };
            assert_eq!(without_words(reason, &subject), told);
        }
    }
}
