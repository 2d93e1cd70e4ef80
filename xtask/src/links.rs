//! Links of the Markdown pages: within the repository they are relative and lead somewhere.
//!
//! Pages elsewhere are not asked: a check must not fail because somebody's server is down.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Lists every link that leads nowhere.
pub(crate) fn violations(root: &Path) -> Result<Vec<String>> {
    let mut errors = Vec::new();
    for page in crate::tidy::files(root, "md")? {
        let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
        let name = page.strip_prefix(root).unwrap_or(&page).display();
        for (line, target) in targets(&text) {
            if let Some(problem) = problem(&page, &text, target) {
                errors.push(format!("{name}:{line}: the link to `{target}` {problem}"));
            }
        }
    }
    Ok(errors)
}

/// Lists `(line, target)` of every inline link and image outside code.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, content) in prose(text) {
        // What stands between backticks is code: the odd pieces.
        for piece in content.split('`').step_by(2) {
            let mut rest = piece;
            while let Some(at) = rest.find("](") {
                rest = &rest[at + 2..];
                let end = rest.find([')', ' ']).unwrap_or(rest.len());
                found.push((line, &rest[..end]));
                rest = &rest[end..];
            }
        }
    }
    found
}

/// Lists `(number, line)` of what is no fenced code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

fn problem(page: &Path, text: &str, target: &str) -> Option<&'static str> {
    if ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return None;
    }
    if target.starts_with('/') || target.contains("://") {
        return Some("is not relative");
    }
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let other;
    let there = if path.is_empty() {
        text
    } else {
        let file = page.parent()?.join(path);
        if !file.exists() {
            return Some("leads to nothing");
        }
        if heading.is_none() || file.extension().is_none_or(|extension| extension != "md") {
            return None;
        }
        other = fs::read_to_string(file).unwrap_or_default();
        &other
    };
    let heading = heading?;
    let exists = prose(there).any(|(_, line)| line.starts_with('#') && slug(line) == heading);
    (!exists).then_some("names a heading that is not there")
}

/// The name of a heading's anchor, as code hosts make it.
fn slug(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_this_repository_lead_somewhere() {
        assert_eq!(violations(&crate::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn dead_links_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let page = "# A page, with `code`\n[self](#a-page-with-code) [gone](#gone) [web](https://example.org/x)\n\
                    [there](docs/b.md#second) [`code`](docs/c.md) `[not](a-link)` ![image](a.png \"title\")\n\
                    ```\n[not](a-link-either)\n```\n[root](/etc/passwd) [wrong](docs/b.md#third)\n";
        fs::write(folder.path().join("a.md"), page).unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        fs::write(folder.path().join("docs/b.md"), "# First\n## Second\n").unwrap();
        assert_eq!(
            violations(folder.path()).unwrap(),
            [
                "a.md:2: the link to `#gone` names a heading that is not there",
                "a.md:3: the link to `docs/c.md` leads to nothing",
                "a.md:3: the link to `a.png` leads to nothing",
                "a.md:7: the link to `/etc/passwd` is not relative",
                "a.md:7: the link to `docs/b.md#third` names a heading that is not there",
            ]
        );
    }
}
