//! The pure decision: who may do what, and the only maker of permits.
//!
//! [`decide`] is a function of its arguments and acts on nothing. A [`Permit`] comes into being in one place,
//! [`Issuer::record`], and only after the verdict stands in the ledger; it can be neither copied, stored nor made up.
//!
//! A [`Policy`] is the language in which people say what may run; [`Policy::judge`] is what it says of one call, and
//! [`rule_on`] how several of them meet flags, modes and limits. Commands are not parsed here: their parts and facts come
//! with the call, and what they do not tell counts as not understood.

mod alias;
mod authority;
mod decide;
mod examples;
mod explain;
mod glob;
mod judge;
mod lint;
mod ordered;
mod parse;
mod permit;
mod request;
mod rule;
mod set;
mod shape;
mod subject;
mod unit;
mod uses;

pub use alias::{TargetKind, effect_of, is_name_of, known_tools, reaches, target_kind};
pub use authority::{Answering, Authority, Mode};
pub use decide::{Ask, Basis, Decision, Denial, Ruling, decide, offers, offers_tool, rule_on};
pub use examples::CommandText;
pub use explain::Explanation;
pub use glob::Glob;
pub use judge::{Call, Judgement, Moment, Outcome, PartJudgement, no_rung};
pub use lint::{Lint, LintCode};
pub use parse::PolicyProblem;
pub use permit::{Issuer, LedgerSink, Permit, PermitError, RecordError, Verdict};
pub use request::{OutsidePath, Request, Scope};
pub use rule::{Action, Example, ExampleCall, Limit, Policy, Rule, RuleId};
pub use set::{PolicySet, Said, Source};
pub use subject::{Subject, absolute};
pub use uses::{RecordedUses, UnknownUses, Uses};
