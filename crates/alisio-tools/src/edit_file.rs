//! `edit_file`: replaces one exact, unique piece of a text file.

use std::sync::Arc;

use alisio_host::workspace::{Access, EDIT_LIMIT, FileError, Located, Reason, Workspace};
use alisio_policy::Permit;
use alisio_protocol::{Effect, Sha256, ToolCall, ToolResult, ToolSpec};
use alisio_sdk::{InputError, Prepared, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::{file_refusal, parse, plan, refusal, resolve, spec};
use crate::diff;
use crate::edit::{EditError, MOST_MATCHES, nearest, replace_one};
use crate::example::{Example, Expected};
use crate::text::Encoding;

/// Replaces a piece of a file.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The file: relative to the workspace, or absolute.
    path: String,
    /// The text to replace, exactly as read_file shows it, white space included. It must stand in the file once: take
    /// enough lines around it.
    old_text: String,
    /// The text to put there; empty to remove it.
    new_text: String,
    /// The sha256 that read_file showed, or the one from your last change of this file.
    #[schemars(with = "String", regex(pattern = r"^[0-9a-f]{64}$"))]
    expected_hash: Sha256,
}

pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        tool: "edit_file",
        title: "replace a line",
        files: &[("a.txt", "one\ntwo\n")],
        input: r#"{"path": "a.txt", "oldText": "two", "newText": "three", "expectedHash": "SHA256(a.txt)"}"#,
        expected: Expected::Text("edited `a.txt` at line 2, sha256 "),
    },
    Example {
        tool: "edit_file",
        title: "a fingerprint of another content is refused",
        files: &[("a.txt", "one\ntwo\n")],
        input: r#"{"path": "a.txt", "oldText": "two", "newText": "three", "expectedHash": "0000000000000000000000000000000000000000000000000000000000000000"}"#,
        expected: Expected::Refused(Reason::Stale),
    },
    Example {
        tool: "edit_file",
        title: "text that stands in the file twice is not replaced",
        files: &[("a.txt", "one\none\n")],
        input: r#"{"path": "a.txt", "oldText": "one", "newText": "two", "expectedHash": "SHA256(a.txt)"}"#,
        expected: Expected::Refused(Reason::NotUnique),
    },
];

pub(crate) struct EditFile {
    workspace: Arc<Workspace>,
    spec: ToolSpec,
}

impl EditFile {
    pub(crate) fn new(workspace: Arc<Workspace>) -> Self {
        let spec = spec::<Input>(
            "edit_file",
            Effect::Write,
            "Replaces one exact, unique piece of a text file; everything else in it stays as it is, byte for byte. \
             Line ends count as LF: the file's own are kept. Read the file first and pass its sha256. At most 1 MiB.",
        );
        Self { workspace, spec }
    }
}

impl Tool for EditFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let input: Input = parse(&self.spec, call)?;
        if input.old_text.is_empty() {
            return Err(InputError(
                "`oldText` is empty: give the text to replace, or use write_file for a whole file".to_owned(),
            ));
        }
        if input.old_text == input.new_text {
            return Err(InputError(
                "`oldText` and `newText` are the same: there is nothing to change".to_owned(),
            ));
        }
        let target = resolve(&self.workspace, &input.path, Access::Write)?;
        let (paths, outside) = (vec![target.absolute().to_owned()], target.outside());
        Ok(plan(&self.spec, call, paths, outside, move |permit, _| {
            target
                .locate()
                .map_err(|error| file_refusal(&error))
                .and_then(|located| edit(&located, &permit, &input))
                .unwrap_or_else(ToolResult::error)
        }))
    }
}

fn edit(located: &Located, permit: &Permit, input: &Input) -> Result<ToolResult, String> {
    let path = located.display();
    let old = located.read(EDIT_LIMIT).map_err(|error| file_refusal(&error))?;
    let actual = Sha256::of(&old);
    if actual != input.expected_hash {
        return Err(file_refusal(&FileError::Stale { path: path.to_owned(), actual }));
    }
    let encoding = Encoding::detect(&old)
        .ok_or_else(|| refusal(Reason::Binary, &format!("`{path}` is not a text file"), ""))?;
    let edited = replace_one(&old, encoding, &input.old_text, &input.new_text)
        .map_err(|error| edit_refusal(located, &error, encoding, &old, input))?;
    if edited.bytes.len() as u64 > EDIT_LIMIT {
        let size = edited.bytes.len() as u64;
        return Err(file_refusal(&FileError::TooLarge { path: path.to_owned(), size, limit: EDIT_LIMIT }));
    }
    if edited.bytes == old {
        return Ok(ToolResult::text(format!(
            "`{path}` has this content already; nothing was written, sha256 {actual}"
        )));
    }
    located.replace(permit, &input.expected_hash, &edited.bytes).map_err(|error| file_refusal(&error))?;
    let fingerprint = Sha256::of(&edited.bytes);
    let result = ToolResult::text(format!("edited `{path}` at line {}, sha256 {fingerprint}", edited.line));
    let block = diff::block(path, Some(&encoding.decode(&old)), &encoding.decode(&edited.bytes));
    Ok(block.into_iter().fold(result, ToolResult::with_block))
}

fn edit_refusal(
    located: &Located,
    error: &EditError,
    encoding: Encoding,
    old: &[u8],
    input: &Input,
) -> String {
    let path = located.display();
    match error {
        EditError::Encoding => refusal(
            Reason::Encoding,
            &format!("`{path}` is in an unknown 8-bit encoding; only plain ASCII text can be replaced in it"),
            "choose an ASCII piece of the line, or convert the file with a process first",
        ),
        EditError::NoMatch => {
            let hint = nearest(&encoding.decode(old), &input.old_text)
                .unwrap_or_else(|| "read the file again and copy the text exactly".to_owned());
            let message = format!("`oldText` is not in `{path}`; sha256 is still {}", input.expected_hash);
            refusal(Reason::NoMatch, &message, &hint)
        }
        EditError::NotUnique { lines } => {
            const SHOWN: usize = 20;
            let more = if lines.len() == MOST_MATCHES { "at least " } else { "" };
            let mut listed = lines.iter().take(SHOWN).map(usize::to_string).collect::<Vec<_>>().join(", ");
            if lines.len() > SHOWN {
                listed.push_str(", …");
            }
            let message =
                format!("`oldText` stands in `{path}` {more}{} times, at lines {listed}", lines.len());
            refusal(Reason::NotUnique, &message, "take more lines around it, so that it stands there once")
        }
    }
}
