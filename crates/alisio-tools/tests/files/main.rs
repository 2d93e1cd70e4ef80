//! The file tools, called as the engine calls them: input, question, permit, act. Real files throughout.
#![expect(clippy::disallowed_methods, reason = "the tests lay out the files that the tools are tried on")]

mod bench;
mod consent;
mod edits;
mod property;
mod races;
mod reads;
mod searches;
