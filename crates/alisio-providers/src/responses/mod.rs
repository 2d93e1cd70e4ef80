//! Responses.

mod answer;
mod request;

pub(crate) use answer::ResponsesAnswer;
pub(crate) use request::body;
