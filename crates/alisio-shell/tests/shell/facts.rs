//! What prompts and rules are told.

use std::fmt::Write;

use alisio_shell::{Budget, Facts, understand};

/// One line for each part: class, program, words, and what it touches.
fn shown(facts: &Facts) -> String {
    let mut text = format!("{:?}: {}\n", facts.class, facts.reason);
    for part in &facts.parts {
        let argv = part.argv.as_ref().map_or_else(|| String::from("?"), |argv| format!("{argv:?}"));
        let _ = write!(text, "- {:?} {} {argv}", part.class, part.program.as_deref().unwrap_or("?"));
        for (name, list) in [("reads", &part.reads), ("writes", &part.writes), ("hosts", &part.hosts)] {
            if !list.is_empty() {
                let _ = write!(text, " {name} {list:?}");
            }
        }
        let _ = writeln!(text, "\n  {}", part.why);
    }
    text
}

#[test]
fn facts_of_some_lines() {
    let scripts = [
        "cat a.txt 'b c' | sort -u > out.txt",
        "sudo rm -rf /var/x && ls",
        "curl -o page.html https://user@Example.org:8443/a?b",
        "timeout 5 env LC_ALL=C sort f",
        "find src -name '*.rs' -exec sed -i s/a/b/ {} +",
        "sh -c 'cat x; touch \"$1\"' _ y",
        "git -C sub status && git push git@host.example:a/b.git",
        "for f in *.txt; do wc -l \"$f\"; done",
        "echo $(rm a) `mv b c`",
        "cp -r a b c/",
        "x=$(cat f); echo $((x))",
        "ls | xargs rm",
        "echo 'unterminated",
        "PATH=/evil ls",
    ];
    let text: String = scripts
        .iter()
        .map(|script| format!("$ {script}\n{}\n", shown(&understand(script, &Budget::default()))))
        .collect();
    insta::assert_snapshot!(text);
}

#[test]
fn facts_are_json_in_camel_case() {
    let facts = understand("cat a > b", &Budget::default());
    insta::assert_snapshot!(serde_json::to_string_pretty(&facts).expect("facts are plain data"));
}
