//! Chat Completions.

mod answer;
mod request;

pub(crate) use answer::ChatAnswer;
pub(crate) use request::body;
