//! `write_file`: writes a whole file.

use std::sync::Arc;

use alisio_host::workspace::{Access, EDIT_LIMIT, FileError, Kind, Located, Reason, Workspace};
use alisio_policy::Permit;
use alisio_protocol::{Effect, Sha256, ToolCall, ToolResult, ToolSpec};
use alisio_sdk::{InputError, Prepared, Tool};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::call::{file_refusal, parse, plan, refusal, resolve, spec};
use crate::diff;
use crate::example::{Example, Expected};
use crate::text::{Encoding, LineEnds, with_lf};

/// Writes a whole file.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The file: relative to the workspace, or absolute. Missing directories are made.
    path: String,
    /// The whole new content.
    content: String,
    /// null for a new file, which must not exist yet. For an existing one the sha256 that read_file showed; the write
    /// is refused if the file has changed since.
    #[serde(deserialize_with = "ExpectedHash::said")]
    expected_hash: ExpectedHash,
}

/// A fingerprint, or `null` that must be said.
struct ExpectedHash(Option<Sha256>);

impl ExpectedHash {
    /// Reads it. A missing `Option` would pass for `null`; a field with a function of its own must be there.
    fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for ExpectedHash {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExpectedHash".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "null"], "pattern": "^[0-9a-f]{64}$" })
    }
}

pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        tool: "write_file",
        title: "write a new file",
        files: &[],
        input: r#"{"path": "notes/today.md", "content": "Today\n", "expectedHash": null}"#,
        expected: Expected::Text("wrote `notes/today.md`: new, 1 line, 6 bytes, sha256 "),
    },
    Example {
        tool: "write_file",
        title: "a file that exists needs its fingerprint",
        files: &[("a.txt", "old\n")],
        input: r#"{"path": "a.txt", "content": "new\n", "expectedHash": null}"#,
        expected: Expected::Refused(Reason::Exists),
    },
];

pub(crate) struct WriteFile {
    workspace: Arc<Workspace>,
    spec: ToolSpec,
}

impl WriteFile {
    pub(crate) fn new(workspace: Arc<Workspace>) -> Self {
        let spec = spec::<Input>(
            "write_file",
            Effect::Write,
            "Writes a whole text file, new or existing. To change a part of an existing file use edit_file. An \
             existing file keeps its encoding, byte-order mark, CRLF line ends, mode and owner. At most 1 MiB.",
        );
        Self { workspace, spec }
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let Input { path, content, expected_hash: ExpectedHash(expected) } = parse(&self.spec, call)?;
        let target = resolve(&self.workspace, &path, Access::Write)?;
        if content.len() as u64 > EDIT_LIMIT {
            let size = content.len() as u64;
            return Err(InputError(file_refusal(&FileError::TooLarge { path, size, limit: EDIT_LIMIT })));
        }
        let (paths, outside) = (vec![target.absolute().to_owned()], target.outside());
        Ok(plan(&self.spec, call, paths, outside, move |permit, _| {
            let located = match target.locate() {
                Ok(located) => located,
                Err(error) => return ToolResult::error(file_refusal(&error)),
            };
            let written = match expected {
                None => create(&located, &permit, &content),
                Some(expected) => overwrite(&located, &permit, &content, &expected),
            };
            written.unwrap_or_else(ToolResult::error)
        }))
    }
}

fn create(located: &Located, permit: &Permit, content: &str) -> Result<ToolResult, String> {
    located.write_new(permit, content.as_bytes()).map_err(|error| match (&error, located.kind()) {
        (FileError::Exists(path), Ok(Kind::Directory)) => file_refusal(&FileError::IsDirectory(path.clone())),
        _ => file_refusal(&error),
    })?;
    let result = ToolResult::text(said(located, content.as_bytes(), content, "new, "));
    let block = diff::block(located.display(), None, content);
    Ok(block.into_iter().fold(result, ToolResult::with_block))
}

fn overwrite(
    located: &Located,
    permit: &Permit,
    content: &str,
    expected: &Sha256,
) -> Result<ToolResult, String> {
    let old = match located.read(EDIT_LIMIT) {
        Ok(old) => old,
        Err(error @ FileError::NotFound(_)) => {
            return Err(refusal(
                error.reason(),
                &error.to_string(),
                "pass expectedHash: null to make a new file",
            ));
        }
        Err(error) => return Err(file_refusal(&error)),
    };
    let actual = Sha256::of(&old);
    if actual != *expected {
        let path = located.display().to_owned();
        return Err(file_refusal(&FileError::Stale { path, actual }));
    }
    let path = located.display();
    let encoding = Encoding::detect(&old).ok_or_else(|| {
        refusal(Reason::Binary, &format!("`{path}` is not a text file"), "it is not overwritten with text")
    })?;
    let before = encoding.decode(&old);
    let mut content =
        content.strip_prefix('\u{feff}').filter(|_| !encoding.mark().is_empty()).unwrap_or(content);
    let crlf;
    let keeps_crlf = LineEnds::of(&before) == LineEnds::Crlf && LineEnds::of(content) == LineEnds::Lf;
    if keeps_crlf {
        crlf = with_lf(content).replace('\n', "\r\n");
        content = &crlf;
    }
    let body = encoding.encode(content).ok_or_else(|| {
        let message =
            format!("`{path}` is in an unknown 8-bit encoding, and the new content is not plain ASCII");
        refusal(Reason::Encoding, &message, "keep to ASCII, or convert the file with a process first")
    })?;
    let mut bytes = encoding.mark().to_vec();
    bytes.extend_from_slice(&body);
    if bytes.len() as u64 > EDIT_LIMIT {
        let size = bytes.len() as u64;
        return Err(file_refusal(&FileError::TooLarge { path: path.to_owned(), size, limit: EDIT_LIMIT }));
    }
    if bytes == old {
        return Ok(ToolResult::text(format!(
            "`{path}` has this content already; nothing was written, sha256 {actual}"
        )));
    }
    located.replace(permit, expected, &bytes).map_err(|error| file_refusal(&error))?;
    let mut kept = String::new();
    if encoding != Encoding::Utf8 {
        kept = format!("{} kept, ", encoding.name());
    }
    if keeps_crlf {
        kept.push_str("CRLF line ends kept, ");
    }
    let result = ToolResult::text(said(located, &bytes, content, &kept));
    let block = diff::block(path, Some(&before), content);
    Ok(block.into_iter().fold(result, ToolResult::with_block))
}

fn said(located: &Located, bytes: &[u8], content: &str, what: &str) -> String {
    let lines = content.lines().count();
    format!(
        "wrote `{}`: {what}{lines} line{}, {} byte{}, sha256 {}",
        located.display(),
        if lines == 1 { "" } else { "s" },
        bytes.len(),
        if bytes.len() == 1 { "" } else { "s" },
        Sha256::of(bytes)
    )
}
