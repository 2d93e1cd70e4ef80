//! What rules and people see of a call, made in one place and not by the tool that is judged.

use std::path::Path;

use alisio_policy::{Request, Subject, TargetKind, target_kind};
use alisio_protocol::ToolCall;
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
        TargetKind::Command => subject.facts = Some(understand(&subject.target, &Budget::default())),
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
