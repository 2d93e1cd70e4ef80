//! Sessions, runs and turns: streams a model and sends every call through the gate.
//!
//! A run is one prompt worked on until idle ([`Engine::run`]); a turn is one response of the model (`turn.rs`) with the
//! calls it asks for (`calls.rs`). Everything that happens is an event that is stored before it is shown
//! (`recorder.rs`). The engine knows no tool, no model service and no machine: they are handed to it.

mod active_time;
mod approvals;
mod calls;
mod cancel;
mod clock;
mod context;
mod conversation;
mod limits;
mod operator;
mod recorder;
mod registry;
mod run;
mod subject;
mod telling;
mod turn;

pub use active_time::{ActiveTime, PersonWait};
pub use approvals::{Approvals, Detacher};
pub use cancel::Cancel;
pub use clock::{Clock, Stopwatch};
pub use limits::{Limits, OutputLimit, OutputLimitSource, RetryPolicy};
pub use operator::Operator;
pub use registry::Registry;
pub use run::{Engine, OpenSession, Outcome, Prompt, RunError};
