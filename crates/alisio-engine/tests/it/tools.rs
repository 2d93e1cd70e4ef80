//! Tools that need no machine.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alisio_policy::{OutsidePath, Permit, Request, Scope};
use alisio_protocol::{Effect, Sha256, ToolCall, ToolResult, ToolSpec};
use alisio_sdk::{BoxFuture, InputError, Prepared, Tool, ToolContext};
use serde_json::json;

/// What the tools of one test did, in order.
pub type Log = Arc<Mutex<Vec<String>>>;

/// What a tool of the test does when it runs.
#[derive(Clone, Copy)]
pub enum Act {
    /// Says `ran NAME PATH`.
    Answer,
    /// Ends when it is told to stop.
    UntilStopped,
    /// Never comes back.
    Forever,
    /// Falls over.
    Panic,
    /// Waits in virtual time, so that reads that run side by side can be told from ones that wait for each other.
    Slow,
}

/// A tool of the test.
pub struct TestTool {
    spec: ToolSpec,
    act: Act,
    log: Log,
}

impl TestTool {
    pub fn make(name: &str, effect: Effect, act: Act, log: &Log) -> Arc<dyn Tool> {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            effect,
        };
        Arc::new(Self { spec, act, log: Arc::clone(log) })
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn Prepared>, InputError> {
        let input: serde_json::Value =
            serde_json::from_str(&call.arguments).expect("the engine sends JSON objects only");
        let path = input["path"].as_str().ok_or_else(|| InputError("`path` is missing".into()))?.to_owned();
        Ok(Box::new(TestCall {
            call: call.clone(),
            effect: self.spec.effect,
            path: PathBuf::from(path),
            act: self.act,
            log: Arc::clone(&self.log),
        }))
    }
}

struct TestCall {
    call: ToolCall,
    effect: Effect,
    path: PathBuf,
    act: Act,
    log: Log,
}

impl TestCall {
    fn digest(&self) -> Sha256 {
        Sha256::of_fields([self.call.name.as_bytes(), self.call.arguments.as_bytes()])
    }
}

impl Prepared for TestCall {
    fn request(&self) -> Request {
        let inside = self.path.starts_with("/ws");
        let paths = vec![self.path.clone()];
        Request {
            call: self.call.id.clone(),
            tool: self.call.name.clone(),
            effect: self.effect,
            scope: match self.effect {
                Effect::Write => Scope { writes: paths, ..Scope::default() },
                Effect::Process => Scope { spawns_in: Some(self.path.clone()), ..Scope::default() },
                _ => Scope { reads: paths, ..Scope::default() },
            },
            outside: (!inside)
                .then(|| OutsidePath { path: self.path.clone(), directory: "/elsewhere".into() })
                .into_iter()
                .collect(),
            digest: self.digest(),
            subject: alisio_policy::Subject::default(),
        }
    }

    fn run(self: Box<Self>, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolResult> {
        Box::pin(async move {
            permit.check_digest(&self.digest()).expect("what runs is what was shown");
            let what = format!("{} {}", self.call.name, self.path.display());
            self.log.lock().unwrap().push(format!("begin {what}"));
            match self.act {
                Act::Answer => {}
                Act::UntilStopped => {
                    context.progress.show(json!({"stream": "stdout", "text": "working"}));
                    context.cancel.cancelled().await;
                    return ToolResult::error("stopped on request");
                }
                Act::Forever => std::future::pending().await,
                Act::Panic => panic!("a tool of the test falls over"),
                Act::Slow => tokio::time::sleep(Duration::from_secs(10)).await,
            }
            self.log.lock().unwrap().push(format!("end {what}"));
            ToolResult::text(format!("ran {what}"))
        })
    }
}
