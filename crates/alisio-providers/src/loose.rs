//! Values that servers spell in more than one way.
//!
//! The typed path borrows from the event and costs no allocation for plain text; what is not text is kept as a value
//! and read by whoever knows what it might mean. Nothing here decides what a value means.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use alisio_protocol::Usage;
use alisio_sdk::{ProviderError, ProviderErrorKind};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::fault::{fault, quoted};

/// A text that may also be absent, `null`, or something else altogether.
#[derive(Debug, Default)]
pub(crate) enum Loose<'a> {
    #[default]
    Null,
    Text(Cow<'a, str>),
    Other(Value),
}

impl Loose<'_> {
    /// Returns the text where there is one with something in it.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Returns any value as text: text as it is, numbers and objects as JSON, nothing for `null`.
    pub(crate) fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Null => Cow::Borrowed(""),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Other(value) => Cow::Owned(value.to_string()),
        }
    }

    /// Returns a whole number, written as a number or as text.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Null => None,
            Self::Text(text) => text.trim().parse().ok(),
            Self::Other(value) => count(value),
        }
    }

    /// Says whether the value stands for nothing.
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Null | Self::Other(Value::Bool(false)) => true,
            Self::Text(text) => text.is_empty(),
            Self::Other(_) => false,
        }
    }

    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => Value::String(text.into_owned()),
            Self::Other(value) => value,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Any<'a> {
            type Value = Loose<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Loose<'a>, E> {
                Ok(Loose::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Loose<'a>, E> {
                Ok(Loose::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<Loose<'a>, E> {
                Ok(Loose::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Loose<'a>, E> {
                Ok(Loose::Other(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Loose<'a>, E> {
                Ok(Loose::Other(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Loose<'a>, E> {
                Ok(Loose::Other(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Loose<'a>, E> {
                Ok(Loose::Other(value.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Loose<'a>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                Ok(Loose::Other(Value::Array(values)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loose<'a>, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(Loose::Other)
            }
        }

        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// A list that may also be `null`, a single object, or hold `null`s; what is no object is left out.
#[derive(Debug)]
pub(crate) struct Many<T>(pub(crate) Vec<T>);

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = Many<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of objects")
            }

            fn visit_unit<E>(self) -> Result<Many<T>, E> {
                Ok(Many::default())
            }

            fn visit_str<E>(self, _: &str) -> Result<Many<T>, E> {
                Ok(Many::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Many<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element::<Item<T>>()? {
                    items.extend(item.0);
                }
                Ok(Many(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Many<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|item| Many(vec![item]))
            }
        }

        deserializer.deserialize_any(List(PhantomData))
    }
}

/// One object, or something else that stands for none.
#[derive(Debug)]
pub(crate) struct Item<T>(pub(crate) Option<T>);

impl<T> Default for Item<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for One<T> {
            type Value = Item<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_unit<E>(self) -> Result<Item<T>, E> {
                Ok(Item(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Item<T>, E> {
                Ok(Item(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Item<T>, E> {
                Ok(Item(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Item<T>, E> {
                Ok(Item(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Item<T>, E> {
                Ok(Item(None))
            }

            fn visit_str<E>(self, _: &str) -> Result<Item<T>, E> {
                Ok(Item(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Item<T>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Item(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Item<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|item| Item(Some(item)))
            }
        }

        deserializer.deserialize_any(One(PhantomData))
    }
}

/// Reads JSON that the quick, borrowing path refused: a field that stands twice, a broken character.
pub(crate) fn lenient_value(data: &[u8]) -> Result<Value, ProviderError> {
    let text = String::from_utf8_lossy(data);
    serde_json::from_str(&text)
        .or_else(|error| serde_json::from_str(&mended(&text)).map_err(|_| error))
        .map_err(|error| {
            let message =
                format!("the service sent an event that is not JSON ({error}): `{}`", quoted(&text));
            fault(ProviderErrorKind::Protocol, message)
        })
}

/// Replaces halves of surrogate pairs (`\ud83d` alone), which servers that count in UTF-16 leave at the cuts.
fn mended(text: &str) -> String {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut mended = String::with_capacity(text.len());
    let mut rest = 0;
    while let Some(at) = text[rest..].find('\\').map(|at| rest + at) {
        mended.push_str(&text[rest..at]);
        let n_bytes = match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                mended.push_str("\\ufffd");
                rest = at + 6;
                continue;
            }
            // The character after a backslash belongs to it, a second backslash above all.
            _ => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&text[at..at + n_bytes]);
        rest = at + n_bytes;
    }
    mended.push_str(&text[rest..]);
    mended
}

/// Says that JSON is not shaped as the API has it.
pub(crate) fn misshapen(error: &serde_json::Error, data: &[u8]) -> ProviderError {
    let text = quoted(String::from_utf8_lossy(data));
    fault(
        ProviderErrorKind::Protocol,
        format!("the service sent an event of an unknown shape ({error}): `{text}`"),
    )
}

/// Usage in the words of either API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Counts<'a> {
    #[serde(borrow)]
    prompt_tokens: Loose<'a>,
    #[serde(borrow)]
    completion_tokens: Loose<'a>,
    #[serde(borrow)]
    input_tokens: Loose<'a>,
    #[serde(borrow)]
    output_tokens: Loose<'a>,
    #[serde(borrow)]
    total_tokens: Loose<'a>,
    #[serde(borrow)]
    prompt_cache_hit_tokens: Loose<'a>,
    #[serde(borrow)]
    prompt_tokens_details: Item<Details<'a>>,
    #[serde(borrow)]
    input_tokens_details: Item<Details<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details<'a> {
    #[serde(borrow)]
    cached_tokens: Loose<'a>,
}

impl Counts<'_> {
    /// Returns what was reported; `None` where input or output stays unknown.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let input = self.prompt_tokens.number().or(self.input_tokens.number());
        let output = self.completion_tokens.number().or(self.output_tokens.number());
        let total = self.total_tokens.number();
        let (input, output) = match (input, output, total) {
            (Some(input), Some(output), _) => (input, output),
            (Some(input), None, Some(total)) => (input, total.checked_sub(input)?),
            (None, Some(output), Some(total)) => (total.checked_sub(output)?, output),
            _ => return None,
        };
        // Servers that do not count send zeros; a request without input does not exist.
        if input == 0 && output == 0 {
            return None;
        }
        let details =
            |item: &Item<Details<'_>>| item.0.as_ref().and_then(|details| details.cached_tokens.number());
        let cached_input = details(&self.prompt_tokens_details)
            .or_else(|| details(&self.input_tokens_details))
            .or_else(|| self.prompt_cache_hit_tokens.number());
        Some(Usage { input, output, cached_input })
    }
}

/// Returns a whole number from a JSON number or a text.
pub(crate) fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            number.as_f64().filter(|float| *float >= 0.0 && *float < 1e15).map(|float| float as u64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Says whether `text` is one complete JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    // Skipping a value does not look into its escapes; building it does.
    text.trim_start().starts_with('{')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
        && (!text.contains("\\u") || serde_json::from_str::<Value>(text).is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn broken_characters_are_replaced_and_nothing_else() {
        for (text, expected) in [
            (&br#"{"a": "x\ud83d"}"#[..], Some(json!({"a": "x\u{fffd}"}))),
            (br#"{"a": "\ude42y"}"#, Some(json!({"a": "\u{fffd}y"}))),
            (br#"{"a": "\ud83d\ude42 \ud83d"}"#, Some(json!({"a": "\u{1f642} \u{fffd}"}))),
            (br#"{"a": "\\ud83d \ud83d"}"#, Some(json!({"a": "\\ud83d \u{fffd}"}))),
            (b"{\"a\": \"x\xC3\"}", Some(json!({"a": "x\u{fffd}"}))),
            (br#"{"a": 1, "a": 2}"#, Some(json!({"a": 2}))),
            (br#"{"a": "\u12"#, None),
            (br#"{"a": \"#, None),
        ] {
            assert_eq!(lenient_value(text).ok(), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn usage_is_never_invented() {
        let usage = |input, output, cached_input| Some(Usage { input, output, cached_input });
        for (value, expected) in [
            (json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}), usage(7, 3, None)),
            (
                json!({"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}),
                usage(7, 3, Some(5)),
            ),
            (
                json!({"prompt_tokens": 7, "completion_tokens": 3, "prompt_cache_hit_tokens": 4}),
                usage(7, 3, Some(4)),
            ),
            (
                json!({"input_tokens": 7, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 0}}),
                usage(7, 3, Some(0)),
            ),
            (
                json!({"prompt_tokens": "7", "completion_tokens": 3.0, "prompt_tokens_details": null}),
                usage(7, 3, None),
            ),
            (json!({"prompt_tokens": 7, "total_tokens": 10}), usage(7, 3, None)),
            (json!({"prompt_tokens": 7}), None),
            (json!({"prompt_tokens": 7, "completion_tokens": -3}), None),
            (json!({"prompt_tokens": 0, "completion_tokens": 0}), None),
            (json!({"prompt_tokens": 7, "total_tokens": 5}), None),
            (json!({}), None),
        ] {
            assert_eq!(Counts::deserialize(&value).unwrap().usage(), expected, "{value}");
        }
    }
}
