//! What is ready to be handed on, adjacent pieces of one kind joined.

use std::collections::VecDeque;

use alisio_sdk::StreamEvent;

/// Events that wait to be taken. What arrives in one read leaves as few events.
#[derive(Debug, Default)]
pub(crate) struct Pieces(VecDeque<StreamEvent>);

impl Pieces {
    pub(crate) fn text(&mut self, text: &str) {
        match self.0.back_mut() {
            _ if text.is_empty() => {}
            Some(StreamEvent::Text(last)) => last.push_str(text),
            _ => self.0.push_back(StreamEvent::Text(text.to_owned())),
        }
    }

    pub(crate) fn reasoning(&mut self, text: &str) {
        match self.0.back_mut() {
            _ if text.is_empty() => {}
            Some(StreamEvent::Reasoning(last)) => last.push_str(text),
            _ => self.0.push_back(StreamEvent::Reasoning(text.to_owned())),
        }
    }

    pub(crate) fn call_progress(&mut self) {
        if self.0.back() != Some(&StreamEvent::CallProgress) {
            self.0.push_back(StreamEvent::CallProgress);
        }
    }

    pub(crate) fn push(&mut self, event: StreamEvent) {
        self.0.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<StreamEvent> {
        self.0.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
