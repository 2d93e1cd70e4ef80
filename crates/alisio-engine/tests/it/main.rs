//! A run without a machine: a scripted model, tools of the test, a real store in a temporary folder, a fixed clock. What
//! is expected is the list of events.

#![allow(unreachable_pub, reason = "the modules of one test executable")]

mod approvals;
mod gate;
mod limits;
mod resume;
mod rig;
mod tools;
mod turns;
