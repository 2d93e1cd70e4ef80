//! What the tests of the policy language share: judging a call as `alisio policy check` does.

use alisio_policy::{
    Call, CommandText, Judgement, Moment, Outcome, Policy, RecordedUses, Subject, effect_of, no_rung,
};
use alisio_protocol::Facts;
use alisio_shell::{Budget, understand, understand_argv};
use serde_json::Value;

/// The directory that paths of the tests count from.
pub(crate) const DIRECTORY: &str = "/srv/repo";

pub(crate) fn facts(command: CommandText<'_>) -> Facts {
    match command {
        CommandText::Script(script) => understand(script, &Budget::default()),
        CommandText::Argv(argv) => understand_argv(argv),
    }
}

pub(crate) fn policy(value: &Value) -> Policy {
    Policy::parse(value).unwrap_or_else(|problems| panic!("{value}: {problems:?}"))
}

/// A call by the text that patterns see.
pub(crate) fn subject(tool: &str, target: &str) -> Subject {
    let mut subject = Subject::of_target(tool, target, DIRECTORY);
    subject.understand(tool, &facts);
    subject
}

pub(crate) fn judge_at(
    policy: &Policy,
    tool: &str,
    subject: &Subject,
    now: i64,
    uses: &RecordedUses,
) -> Judgement {
    let call = Call { tool, effect: effect_of(tool), subject };
    policy.judge(call, Moment { now, uses, has_rung: &no_rung })
}

pub(crate) fn judge(policy: &Policy, tool: &str, target: &str) -> Judgement {
    judge_at(policy, tool, &subject(tool, target), 0, &RecordedUses::default())
}

pub(crate) fn outcome(policy: &Value, tool: &str, target: &str) -> Outcome {
    judge(&self::policy(policy), tool, target).outcome
}
