//! Finds `AGENTS.md` and its kin.
