//! What both APIs need when a conversation is sent: values that a service never refuses.

use std::borrow::Cow;

use alisio_protocol::Attachment;

use crate::loose::is_object;

/// Returns the arguments where they are one JSON object, else `{}`: a broken call must not poison the conversation.
pub(crate) fn arguments(text: &str) -> &str {
    if is_object(text) { text } else { "{}" }
}

/// Returns a name that services accept (`[A-Za-z0-9_-]{1,64}`): models invent names, and a result refers to them.
pub(crate) fn name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= 64 && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().map(|c| if fits(c) { c } else { '_' }).take(64).collect())
}

/// Returns an image as a `data:` URL.
pub(crate) fn data_url(image: &Attachment) -> String {
    format!("data:{};base64,{}", image.mime_type, image.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_are_sent_as_arguments() {
        for (text, expected) in [
            (r#"{"a": [1, {"b": null}]}"#, r#"{"a": [1, {"b": null}]}"#),
            (" {} ", " {} "),
            ("", "{}"),
            ("null", "{}"),
            ("[1]", "{}"),
            ("\"{}\"", "{}"),
            (r#"{"a": 1"#, "{}"),
            (r#"{"a": 1} x"#, "{}"),
            (r#"{"a": "\ud800"}"#, "{}"),
        ] {
            assert_eq!(arguments(text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_made_to_fit() {
        for (text, expected) in [("read_file", "read_file"), ("a.b c/é", "a_b_c__"), ("", "unnamed")] {
            assert_eq!(name(text), expected);
        }
        assert_eq!(name(&"x".repeat(100)).len(), 64);
    }
}
