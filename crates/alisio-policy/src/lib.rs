//! The pure decision: who may do what, and the only maker of permits.
//!
//! [`decide`] is a function of its arguments and acts on nothing. A [`Permit`] comes into being in one place,
//! [`Issuer::record`], and only after the verdict stands in the ledger; it can be neither copied, stored nor made up.

mod authority;
mod decide;
mod permit;
mod request;

pub use authority::{Answering, Authority, Mode};
pub use decide::{Ask, Basis, Decision, Denial, decide, offers};
pub use permit::{Issuer, LedgerSink, Permit, PermitError, RecordError, Verdict};
pub use request::{OutsidePath, Request, Scope};
