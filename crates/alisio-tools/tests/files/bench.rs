//! A workspace in a temporary folder and the tools over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alisio_host::workspace::Workspace;
use alisio_policy::{Basis, Issuer, LedgerSink, Permit, RecordError, Request, Verdict};
use alisio_protocol::{CallId, ContentPart, Sha256, ToolCall, ToolResult, UiBlock, VerdictSource};
use alisio_sdk::{
    InputError, InstructionFile, InstructionKind, InstructionSource, Prepared, Progress, Tool, ToolContext,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) struct Bench {
    _folder: TempDir,
    pub(crate) root: PathBuf,
    tools: Vec<Arc<dyn Tool>>,
    runtime: tokio::runtime::Runtime,
    pub(crate) cancel: CancellationToken,
}

struct NoLedger;

impl LedgerSink for NoLedger {
    fn record(&self, _: &Verdict) -> Result<(), RecordError> {
        Ok(())
    }
}

/// One global file, one for `src` and one for `src/deep`.
struct Instructions(PathBuf);

impl Instructions {
    fn file(&self, path: &str, scope: Option<&str>, kind: InstructionKind) -> InstructionFile {
        InstructionFile {
            path: self.0.join(path),
            scope: scope.map(|scope| self.0.join(scope)),
            kind,
            text: String::new(),
            sha256: Sha256::of(b""),
            truncated: scope == Some("src/deep"),
        }
    }
}

impl InstructionSource for Instructions {
    fn eager(&self) -> Vec<InstructionFile> {
        vec![
            self.file("global.md", None, InstructionKind::Agents),
            self.file("src/AGENTS.override.md", Some("src"), InstructionKind::Override),
        ]
        .into_iter()
        .filter(|file| file.path.exists())
        .collect()
    }

    fn nested(&self, path: &Path) -> Vec<InstructionFile> {
        let deep = self.file("src/deep/AGENTS.md", Some("src/deep"), InstructionKind::Agents);
        if path.starts_with(self.0.join("src/deep")) { vec![deep] } else { Vec::new() }
    }
}

pub(crate) fn permit(request: Request) -> Permit {
    let basis = Basis { source: VerdictSource::Flag, reason: String::new() };
    Issuer::new().record(request, Ok(basis), &NoLedger).unwrap().unwrap()
}

impl Bench {
    /// Lays out `ws` with `files`, and beside it an empty `spill` that may be read.
    pub(crate) fn new<P: AsRef<Path>, C: AsRef<[u8]>>(files: &[(P, C)]) -> Self {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("ws")).unwrap();
        fs::create_dir_all(root.join("spill")).unwrap();
        let bench = Self {
            tools: Self::tools(&root),
            _folder: folder,
            root,
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            cancel: CancellationToken::new(),
        };
        for (path, content) in files {
            bench.write(path, content);
        }
        bench
    }

    fn tools(root: &Path) -> Vec<Arc<dyn Tool>> {
        let ws = root.join("ws");
        let workspace = Workspace::open(&ws).unwrap().with_read_only(&root.join("spill")).unwrap();
        alisio_tools::files(&Arc::new(workspace), &(Arc::new(Instructions(ws)) as Arc<dyn InstructionSource>))
    }

    pub(crate) fn all(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.root.join("ws").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.root.join("ws").join(path)).unwrap()
    }

    pub(crate) fn sha256(&self, path: impl AsRef<Path>) -> String {
        Sha256::of(&self.read(path)).to_string()
    }

    pub(crate) fn prepare(&self, tool: &str, input: &str) -> Result<Box<dyn Prepared>, InputError> {
        let call = ToolCall { id: CallId::new("call-1"), name: tool.to_owned(), arguments: input.to_owned() };
        let found = self.tools.iter().find(|candidate| candidate.spec().name == tool);
        found.unwrap_or_else(|| panic!("no tool `{tool}`")).prepare(&call)
    }

    pub(crate) fn run(&self, prepared: Box<dyn Prepared>, permit: Permit) -> ToolResult {
        let context = ToolContext {
            call: CallId::new("call-1"),
            cancel: self.cancel.clone(),
            progress: Progress::silent(),
            spill_folder: self.root.join("spill"),
        };
        self.runtime.block_on(prepared.run(permit, context))
    }

    /// Calls a tool with a permit for what it asks; bad input comes back as the error result that the model reads.
    pub(crate) fn call(&self, tool: &str, input: &Value) -> ToolResult {
        self.call_text(tool, &input.to_string())
    }

    pub(crate) fn call_text(&self, tool: &str, input: &str) -> ToolResult {
        match self.prepare(tool, input) {
            Ok(prepared) => {
                let permit = permit(prepared.request());
                self.run(prepared, permit)
            }
            Err(InputError(said)) => ToolResult::error(said),
        }
    }

    /// Calls a tool and returns what the model reads.
    pub(crate) fn text(&self, tool: &str, input: &Value) -> String {
        self.call(tool, input).text_projection()
    }
}

/// The word of a refusal, or `None` for another result.
pub(crate) fn reason(result: &ToolResult) -> Option<String> {
    let text = result.text_projection();
    let (word, _) = text.strip_prefix("refused (")?.split_once(')')?;
    assert!(result.is_error, "{text}");
    Some(word.to_owned())
}

pub(crate) fn patch(result: &ToolResult) -> Option<(String, Option<String>)> {
    result.content.iter().find_map(|part| match part {
        ContentPart::Ui { block: UiBlock::Diff { patch, caption, .. } } => {
            Some((patch.clone(), caption.clone()))
        }
        _ => None,
    })
}
