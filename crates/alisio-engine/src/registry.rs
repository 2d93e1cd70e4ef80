//! The tools of a run, by name.

use std::sync::Arc;

use alisio_policy::{Authority, offers_tool};
use alisio_protocol::ToolSpec;
use alisio_sdk::Tool;

/// The tools of a run.
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
}

impl Registry {
    /// Takes the tools; of two with one name the first counts.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools }
    }

    /// Finds a tool by the name that the model wrote.
    pub fn find(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().map(AsRef::as_ref).find(|tool| tool.spec().name == name)
    }

    /// Lists what the model is offered: the tools that could run, or about which somebody could be asked.
    pub fn offered(&self, authority: &Authority) -> Vec<ToolSpec> {
        self.tools
            .iter()
            .map(|tool| tool.spec())
            .filter(|spec| offers_tool(authority, &spec.name, spec.effect))
            .cloned()
            .collect()
    }

    /// Says to the model that there is no such tool.
    pub fn unknown(&self, name: &str) -> String {
        let names: Vec<_> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        format!("there is no tool `{name}`; the tools are {}", names.join(", "))
    }
}
