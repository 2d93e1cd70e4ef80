//! The one process that spawns every other one and ends them all.
