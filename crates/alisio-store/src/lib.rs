//! Alisio's own state: the SQLite file, ledger, content by hash, configuration and trust.
//!
//! [`Store`] is a synchronous handle that the run loop calls directly: a commit takes well under a millisecond unless
//! it must be synced. One [`SessionWriter`] a session, across processes, writes; anybody reads, and anybody may
//! answer a question that a session waits with. Nothing here reads a clock (but [`Store::lock`], to date what a dead
//! process left open), decides anything or talks to a model.

mod approvals;
mod cleanup;
pub mod config;
mod content;
pub mod dirs;
mod doorbell;
mod error;
mod export;
mod grants;
mod ledger;
mod load;
mod lock;
mod migrations;
mod place;
mod rows;
mod sessions;
mod store;
pub mod trust;
mod uses;
mod writer;

pub use doorbell::Doorbell;
pub use error::StoreError;
pub use grants::covers;
pub use ledger::{LedgerCheck, LedgerEntry, LedgerHead};
pub use rows::{
    ApprovalRow, CallRow, Durability, ListFilter, Loaded, NewRun, NewSession, PendingApproval, Removed,
    Resolved, RunRow, RunStatus, SessionRow, SessionSummary, UncertainCall,
};
pub use store::Store;
pub use writer::{SessionWriter, Tx};
