//! Checks the examples that rules carry: a call under `match` must be decided by the rule when it stands alone, one under
//! `notMatch` must not.

use alisio_protocol::Facts;

use crate::alias::{TargetKind, effect_of, target_kind};
use crate::judge::{Call, Moment};
use crate::parse::PolicyProblem;
use crate::rule::{ExampleCall, Policy};
use crate::subject::Subject;
use crate::uses::RecordedUses;

/// A command in the form in which it would be started.
#[derive(Clone, Copy, Debug)]
pub enum CommandText<'c> {
    /// A line that a shell reads.
    Script(&'c str),
    /// A program with its arguments.
    Argv(&'c [String]),
}

impl Policy {
    /// Checks every example; `understand` says what a command would do, relative paths count from `directory`.
    pub fn check_examples(
        &self,
        directory: &str,
        understand: &dyn Fn(CommandText<'_>) -> Facts,
    ) -> Vec<PolicyProblem> {
        let mut problems = Vec::new();
        for rule in &self.rules {
            // Beside a default of the other kind it shows whether the rule decides.
            let base = if rule.action.can_allow() { Self::ask() } else { Self::auto() };
            let alone = Self { rules: vec![rule.clone()], ..base };
            for example in &rule.examples {
                let mut say = |message| {
                    problems.push(PolicyProblem { path: example.path.clone(), code: "example", message });
                };
                let mut subject = match &example.call {
                    ExampleCall::Target(text) => Subject::of_target(&example.tool, text, directory),
                    ExampleCall::Input(input) => match Subject::of_input(&example.tool, input, directory) {
                        Ok(subject) => subject,
                        Err(error) => {
                            say(format!("the input is no JSON: {error}"));
                            continue;
                        }
                    },
                };
                subject.understand(&example.tool, understand);
                let effect = match rule.effects.and_then(|effects| effects.iter().next()) {
                    // A rule for an effect is tried with a tool that has it, unless the name says more.
                    Some(effect) if target_kind(&example.tool) == TargetKind::Json => effect,
                    _ => effect_of(&example.tool),
                };
                if let Some(agent) = rule.agent.as_ref().filter(|agent| agent.is_literal()) {
                    subject.agent = agent.as_str().to_owned();
                }
                let call = Call { tool: &example.tool, effect, subject: &subject };
                let uses = RecordedUses::default();
                let judgement = alone.judge(call, Moment { uses: &uses, ..Moment::UNKNOWN });
                let decided = judgement.rule == Some(0);
                if decided != example.matches {
                    let word = if decided { "decides" } else { "does not decide" };
                    say(format!("the rule {word} this call: {}", judgement.reason));
                }
            }
        }
        problems
    }
}

impl Subject {
    /// Adds the facts about a command; calls that are none stay as they are.
    pub fn understand(&mut self, tool: &str, understand: &dyn Fn(CommandText<'_>) -> Facts) {
        match (target_kind(tool), &self.argv) {
            (TargetKind::Program, Some(argv)) => self.facts = Some(understand(CommandText::Argv(argv))),
            (TargetKind::Command | TargetKind::Program, _) => {
                self.facts = Some(understand(CommandText::Script(&self.target)));
            }
            _ => {}
        }
    }
}
