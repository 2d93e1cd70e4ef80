//! Alisio's own state: the SQLite file, ledger, content by hash, configuration and trust.

pub mod config;
pub mod dirs;
pub mod trust;
