//! Alisio's own state: the SQLite file, ledger, content by hash, configuration and trust.
//!
//! [`Store`] is a synchronous handle that the run loop calls directly: a commit takes well under a millisecond unless
//! it must be synced. One [`SessionWriter`] a session, across processes, writes; anybody reads. Nothing here reads a
//! clock, decides anything or talks to a model.

mod cleanup;
pub mod config;
mod content;
pub mod dirs;
mod error;
mod export;
mod ledger;
mod load;
mod lock;
mod migrations;
mod place;
mod rows;
mod sessions;
mod store;
pub mod trust;
mod writer;

pub use error::StoreError;
pub use ledger::{LedgerCheck, LedgerEntry, LedgerHead};
pub use rows::{
    CallRow, Durability, ListFilter, Loaded, NewRun, NewSession, Removed, RunRow, RunStatus, SessionRow, SessionSummary,
    UncertainCall,
};
pub use store::Store;
pub use writer::{SessionWriter, Tx};
