//! What the gate decides, as tables, laws and programs that must not compile.

mod forgery;
mod laws;
mod truth_table;
