//! What lines of shell are understood to do: corpora, laws, facts, and other parsers as witnesses.

#[path = "shell/corpus.rs"]
mod corpus;
#[path = "shell/facts.rs"]
mod facts;
#[path = "shell/laws.rs"]
mod laws;
#[path = "shell/witness.rs"]
mod witness;
