//! Where configuration and state live.
