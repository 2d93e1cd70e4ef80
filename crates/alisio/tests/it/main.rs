//! The binary as people and scripts meet it: real repositories, files, processes and signals; only the model is scripted.

#![allow(clippy::disallowed_methods, reason = "tests make their own files and start the binary under test")]

mod approvals;
mod commands;
mod configuration;
mod exits;
mod faults;
mod gate;
mod instructions;
mod output;
mod policies;
mod prompts;
mod rig;
mod sessions;
mod state;
mod tools;
mod trust;
