//! Which results of a round the stored conversation can hold.
//!
//! A result goes into the conversation in the transaction that completes its call, so that a call costs one transaction
//! less and a process that dies right after it leaves nothing to repair. Rows stand in call order: a result whose
//! predecessor is still at work waits and goes with that one. What is left when the round is over (calls that were not
//! run, what stands behind one that did not come back) is no business of this module.

use std::sync::{Mutex, PoisonError};

use alisio_protocol::{CallId, Message, ToolMessage};

use crate::conversation::Asked;

/// The results of a round on their way into the conversation.
pub(crate) struct Telling(Mutex<State>);

struct State {
    calls: Vec<CallId>,
    /// One a call; those that wait are there.
    waiting: Vec<Option<Message>>,
    n_told: usize,
}

impl Telling {
    /// Begins a round of these calls, whose ids differ.
    pub(crate) fn of(asked: &[Asked]) -> Self {
        Self(Mutex::new(State {
            calls: asked.iter().map(|asked| asked.call.id.clone()).collect(),
            waiting: asked.iter().map(|_| None).collect(),
            n_told: 0,
        }))
    }

    /// Takes a result and gives `store` what can be stored now, in call order; often nothing. What `store` fails on
    /// does not count as told.
    pub(crate) fn tell<E>(
        &self,
        result: &ToolMessage,
        store: impl FnOnce(&[Message]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        if let Some(index) = state.calls.iter().position(|call| *call == result.call_id) {
            state.waiting[index] = Some(Message::Tool(result.clone()));
        }
        let next = &mut state.waiting[state.n_told..];
        let messages: Vec<Message> = next.iter_mut().map_while(Option::take).collect();
        let stored = store(&messages);
        match &stored {
            Ok(()) => state.n_told += messages.len(),
            // The round ends with this; what it could not store is left to its end.
            Err(_) => next.iter_mut().zip(messages).for_each(|(slot, message)| *slot = Some(message)),
        }
        stored
    }

    /// How many results were stored, from the first call on.
    pub(crate) fn n_told(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).n_told
    }
}

#[cfg(test)]
mod tests {
    use alisio_protocol::{ToolCall, ToolResult};

    use super::*;

    fn round(ids: &[&str]) -> Telling {
        let asked = |id: &&str| Asked {
            call: ToolCall { id: CallId::new(*id), name: "read_file".into(), arguments: "{}".into() },
            malformed: None,
        };
        Telling::of(&ids.iter().map(asked).collect::<Vec<_>>())
    }

    fn tell(telling: &Telling, id: &str, fails: bool) -> Vec<String> {
        let mut seen = Vec::new();
        let result = ToolMessage { call_id: CallId::new(id), result: ToolResult::text("done") };
        let _ = telling.tell(&result, |messages| {
            seen.extend(messages.iter().map(|message| match message {
                Message::Tool(answer) => answer.call_id.to_string(),
                _ => "no result".to_owned(),
            }));
            if fails { Err(()) } else { Ok(()) }
        });
        seen
    }

    #[test]
    fn results_are_told_in_call_order_whatever_ends_first() {
        let telling = round(&["a", "b", "c", "d"]);
        assert_eq!(tell(&telling, "b", false), [""; 0]);
        assert_eq!(tell(&telling, "a", false), ["a", "b"]);
        assert_eq!(tell(&telling, "d", false), [""; 0]);
        assert_eq!(telling.n_told(), 2, "`c` did not come back");
    }

    #[test]
    fn what_could_not_be_stored_is_not_told() {
        let telling = round(&["a", "b"]);
        assert_eq!(tell(&telling, "a", true), ["a"]);
        assert_eq!(telling.n_told(), 0);
        assert_eq!(tell(&telling, "b", false), ["a", "b"]);
        assert_eq!(telling.n_told(), 2);
    }
}
