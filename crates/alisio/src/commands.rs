//! One file a command.

pub mod approvals;
pub mod completions;
pub mod config;
pub mod context;
pub mod demo;
pub mod doctor;
pub mod ledger;
pub mod policy;
pub mod resume;
pub mod run;
pub mod sessions;
pub mod setup;
pub mod stdio;
pub mod tools;
pub mod trust;
