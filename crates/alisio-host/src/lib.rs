//! The user's machine: workspace files and child processes.

pub mod instructions;
pub mod process;
pub mod supervisor;
pub mod workspace;
