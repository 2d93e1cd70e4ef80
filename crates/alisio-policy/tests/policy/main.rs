//! What the gate decides, as tables, laws and programs that must not compile.

mod bench;
mod cases;
mod forgery;
mod globs;
mod laws;
mod lints;
mod rule_laws;
mod seed;
mod truth_table;
