//! The conversation as it is sent: always balanced, always within the limit.

use std::collections::HashSet;
use std::sync::Arc;

use alisio_protocol::{AssistantMessage, CallId, ContentPart, Message, ToolCall, ToolMessage, ToolResult};
use serde_json::Value;

/// A tool result is not shortened below this many characters.
const SHORTENED_CHARS: usize = 400;

/// The messages of a session, as they are sent.
pub(crate) struct Conversation {
    messages: Arc<Vec<Message>>,
    call_ids: HashSet<CallId>,
}

/// What a response asked for, sorted into what can be run and what can't.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// The call as it is stored: unique id, arguments that are a JSON object.
    pub(crate) call: ToolCall,
    /// Why it can't be run, in words for the model.
    pub(crate) malformed: Option<String>,
}

impl Conversation {
    /// Takes over loaded messages, which are balanced already.
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        let call_ids = messages
            .iter()
            .filter_map(|message| match message {
                Message::Assistant(answer) => Some(answer.calls.iter().map(|call| call.id.clone())),
                _ => None,
            })
            .flatten()
            .collect();
        Self { messages: Arc::new(messages), call_ids }
    }

    /// The messages, to be sent.
    pub(crate) fn messages(&self) -> Arc<Vec<Message>> {
        Arc::clone(&self.messages)
    }

    /// Adds a message.
    pub(crate) fn push(&mut self, message: Message) {
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Drops opaque items of another provider: they mean nothing elsewhere.
    pub(crate) fn drop_opaque_items(&mut self) {
        for message in Arc::make_mut(&mut self.messages) {
            if let Message::Assistant(answer) = message {
                answer.items.clear();
            }
        }
    }

    /// Makes the calls of a response storable: ids unique in the session, arguments a JSON object each. Returns them in
    /// order with what is wrong with each.
    pub(crate) fn admit(&mut self, answer: &mut AssistantMessage) -> Vec<Asked> {
        let mut asked = Vec::with_capacity(answer.calls.len());
        for call in &mut answer.calls {
            let given = call.id.clone();
            let mut copies = 1;
            while !self.call_ids.insert(call.id.clone()) {
                copies += 1;
                call.id = CallId::new(format!("{given}-{copies}"));
            }
            let malformed = malformed(&call.arguments);
            match &malformed {
                Some(_) => call.arguments = "{}".into(),
                // Some services send nothing at all for a call without arguments.
                None if call.arguments.trim().is_empty() => call.arguments = "{}".into(),
                None => {}
            }
            asked.push(Asked { call: call.clone(), malformed });
        }
        asked
    }

    /// Shortens the oldest tool results until the conversation has at most `limit` characters, the newest round
    /// excepted. Returns how many were shortened.
    pub(crate) fn fit(&mut self, limit: usize) -> u32 {
        let mut size: usize = self.messages.iter().map(chars_of).sum();
        if size <= limit {
            return 0;
        }
        let newest_round = self
            .messages
            .iter()
            .rposition(|message| !matches!(message, Message::Tool(_)))
            .unwrap_or(self.messages.len());
        let mut shortened = 0;
        for message in Arc::make_mut(&mut self.messages).iter_mut().take(newest_round) {
            if size <= limit {
                break;
            }
            if let Message::Tool(answer) = message
                && let Some(saved) = shorten(answer)
            {
                size = size.saturating_sub(saved);
                shortened += 1;
            }
        }
        shortened
    }
}

/// Counts the characters that a message costs, by bytes: near enough for a limit that is a guess itself.
fn chars_of(message: &Message) -> usize {
    match message {
        Message::User(user) => user.text.len(),
        Message::Assistant(answer) => {
            answer.text.len()
                + answer.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
                + answer.items.iter().map(|item| item.to_string().len()).sum::<usize>()
        }
        Message::Tool(answer) => answer
            .result
            .content
            .iter()
            .map(|part| match part {
                ContentPart::Text { text } => text.len(),
                ContentPart::Ui { .. } => 0,
            })
            .sum(),
    }
}

fn shorten(answer: &mut ToolMessage) -> Option<usize> {
    let text = answer.result.text_projection();
    if text.len() <= 2 * SHORTENED_CHARS {
        return None;
    }
    let head = &text[..text.floor_char_boundary(SHORTENED_CHARS)];
    let note =
        format!("{head}\n[the rest of this result was cut to make room; run the tool again if it is needed]");
    let saved = text.len().saturating_sub(note.len());
    answer.result =
        ToolResult { content: vec![ContentPart::Text { text: note }], is_error: answer.result.is_error };
    Some(saved)
}

/// Says what is wrong with the arguments of a call; `None` when they are a JSON object or nothing at all.
pub(crate) fn malformed(arguments: &str) -> Option<String> {
    if arguments.trim().is_empty() {
        return None;
    }
    let problem = match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(_)) => return None,
        Ok(_) => "they are not a JSON object".to_owned(),
        Err(error) => format!("they are not valid JSON: {error}"),
    };
    let excerpt = &arguments[..arguments.floor_char_boundary(200)];
    Some(format!("the arguments of this call could not be read: {problem}. They began: {excerpt}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, arguments: &str) -> ToolCall {
        ToolCall { id: CallId::new(id), name: "read_file".into(), arguments: arguments.into() }
    }

    fn answer(calls: Vec<ToolCall>) -> AssistantMessage {
        AssistantMessage { calls, ..AssistantMessage::default() }
    }

    #[test]
    fn arguments_that_are_no_object_never_reach_the_history() {
        for (arguments, stored, bad) in [
            (r#"{"path":"a"}"#, r#"{"path":"a"}"#, false),
            ("", "{}", false),
            ("  ", "{}", false),
            (r#"{"path":"#, "{}", true),
            ("[1]", "{}", true),
            ("\"text\"", "{}", true),
            ("{} trailing", "{}", true),
        ] {
            let mut response = answer(vec![call("c", arguments)]);
            let asked = Conversation::new(Vec::new()).admit(&mut response);
            assert_eq!(
                (response.calls[0].arguments.as_str(), asked[0].malformed.is_some()),
                (stored, bad),
                "{arguments}"
            );
        }
    }

    #[test]
    fn call_ids_are_made_unique_over_the_whole_session() {
        let mut conversation = Conversation::new(vec![Message::Assistant(answer(vec![call("a", "{}")]))]);
        let mut response = answer(vec![call("a", "{}"), call("a", "{}"), call("b", "{}")]);
        conversation.admit(&mut response);
        let ids: Vec<_> = response.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a-2", "a-3", "b"]);
    }

    #[test]
    fn oldest_results_are_cut_first_and_the_newest_round_stays() {
        let result = |id: &str| {
            Message::Tool(ToolMessage {
                call_id: CallId::new(id),
                result: ToolResult::text("x".repeat(10_000)),
            })
        };
        let mut conversation = Conversation::new(vec![
            Message::Assistant(answer(vec![call("a", "{}"), call("b", "{}")])),
            result("a"),
            result("b"),
            Message::Assistant(answer(vec![call("c", "{}")])),
            result("c"),
        ]);
        assert_eq!(conversation.fit(40_000), 0);
        assert_eq!(conversation.fit(25_000), 1);
        assert_eq!(conversation.fit(100), 1);
        let sizes: Vec<_> = conversation.messages().iter().map(|message| chars_of(message) > 9_000).collect();
        assert_eq!(sizes, [false, false, false, false, true]);
    }
}
