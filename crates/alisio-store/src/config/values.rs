//! Value types of configuration keys: numbers with a range, addresses, names. Each refuses a wrong value where it is read, says
//! what is allowed, and describes itself in the JSON Schema, so that range, message and schema cannot drift apart.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The largest whole number that every JSON reader keeps exactly.
pub const LARGEST: u64 = (1 << 53) - 1;

/// A whole number from `MIN` to `MAX`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bounded<const MIN: u64, const MAX: u64 = LARGEST>(u64);

impl<const MIN: u64, const MAX: u64> Bounded<MIN, MAX> {
    /// Takes a number in the range.
    pub const fn new(value: u64) -> Option<Self> {
        if MIN <= value && value <= MAX { Some(Self(value)) } else { None }
    }

    /// Takes a default, which is in the range or the program does not start.
    pub(super) const fn of(value: u64) -> Self {
        assert!(MIN <= value && value <= MAX, "a default lies in its range");
        Self(value)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Says which numbers are allowed.
    pub(super) fn allowed() -> String {
        match (MIN, MAX) {
            (min, max) if min == max => format!("only {MIN}"),
            (_, LARGEST) => format!("a whole number of at least {MIN}"),
            _ => format!("a whole number from {MIN} to {MAX}"),
        }
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Bounded<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> de::Visitor<'_> for Visitor<MIN, MAX> {
            type Value = Bounded<MIN, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&Bounded::<MIN, MAX>::allowed())
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
                Bounded::new(value).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(value), &self))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                match u64::try_from(value) {
                    Ok(value) => self.visit_u64(value),
                    Err(_) => Err(E::invalid_value(de::Unexpected::Signed(value), &self)),
                }
            }
        }
        deserializer.deserialize_u64(Visitor)
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Bounded<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Bounded{MIN}To{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        if MAX == LARGEST {
            json_schema!({ "type": "integer", "minimum": MIN })
        } else {
            json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
        }
    }
}

/// A number between two bounds given in thousandths, both included.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Decimal<const MIN_MILLI: u64, const MAX_MILLI: u64>(f64);

impl<const MIN_MILLI: u64, const MAX_MILLI: u64> Decimal<MIN_MILLI, MAX_MILLI> {
    const MIN: f64 = MIN_MILLI as f64 / 1000.0;
    const MAX: f64 = MAX_MILLI as f64 / 1000.0;

    /// Takes a number in the range; not-a-number is outside every range.
    pub fn new(value: f64) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&value).then_some(Self(value))
    }

    pub(super) fn of(value: f64) -> Self {
        Self::new(value).expect("a default lies in its range")
    }

    /// Returns the number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl<const MIN_MILLI: u64, const MAX_MILLI: u64> Serialize for Decimal<MIN_MILLI, MAX_MILLI> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de, const MIN_MILLI: u64, const MAX_MILLI: u64> Deserialize<'de> for Decimal<MIN_MILLI, MAX_MILLI> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> de::Visitor<'_> for Visitor<MIN, MAX> {
            type Value = Decimal<MIN, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number from {} to {}", Decimal::<MIN, MAX>::MIN, Decimal::<MIN, MAX>::MAX)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
                Decimal::new(value).ok_or_else(|| E::invalid_value(de::Unexpected::Float(value), &self))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
                Decimal::new(value as f64)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(value), &self))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                Decimal::new(value as f64)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(value), &self))
            }
        }
        deserializer.deserialize_f64(Visitor)
    }
}

impl<const MIN_MILLI: u64, const MAX_MILLI: u64> JsonSchema for Decimal<MIN_MILLI, MAX_MILLI> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Decimal{MIN_MILLI}To{MAX_MILLI}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": Self::MIN, "maximum": Self::MAX })
    }
}

/// Declares a text type with a rule: `check` returns what was found when the text breaks it.
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $allowed:literal, $schema:tt, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes a text that keeps the rule; the error says what was found and what is allowed, without a secret in it.
            ///
            /// # Errors
            /// When the text breaks the rule.
            pub fn new(text: impl Into<String>) -> Result<Self, String> {
                let text = text.into();
                match $check(&text) {
                    Ok(()) => Ok(Self(text)),
                    Err(found) => Err(format!("found {found}, allowed is {}", $allowed)),
                }
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

checked_text!(
    /// An `http` or `https` address with a host and without a user name, a password or a fragment.
    HttpUrl,
    "an http or https URL without user name, password or `#`",
    { "type": "string", "format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\s]+([/?][^#\\s]*)?$" },
    check_url
);

checked_text!(
    /// The name of an environment variable.
    VariableName,
    "the name of an environment variable (letters, digits and `_`, no digit first), never the value itself",
    { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
    check_variable
);

checked_text!(
    /// The id of a decision provider.
    DecisionProviderId,
    "1 to 64 of `a-z`, `0-9`, `.` and `-`, a letter or digit first",
    { "type": "string", "pattern": "^[a-z0-9][a-z0-9.-]{0,63}$" },
    check_decision_provider
);

checked_text!(
    /// A container image named by its digest.
    ImageDigest,
    "an image with its digest, `name@sha256:` and 64 hexadecimal digits",
    { "type": "string", "pattern": "^[^@\\s]+@sha256:[0-9a-f]{64}$" },
    check_image
);

impl HttpUrl {
    /// Splits into scheme, host with port, and the rest.
    fn parts(&self) -> (&str, &str, &str) {
        let (scheme, rest) = self.0.split_once("://").expect("checked on the way in");
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        (scheme, &rest[..end], &rest[end..])
    }

    /// Returns the one spelling that equal addresses share: scheme and host in lower case, no slash at the end, no default port.
    pub fn normalized(&self) -> String {
        let (scheme, host, rest) = self.parts();
        let scheme = scheme.to_ascii_lowercase();
        let host = host.to_ascii_lowercase();
        let port = if scheme == "https" { ":443" } else { ":80" };
        format!("{scheme}://{}{}", host.strip_suffix(port).unwrap_or(&host), rest.trim_end_matches('/'))
    }

    /// Says whether the address is this machine's own or protected by TLS.
    pub fn is_https_or_loopback(&self) -> bool {
        let (scheme, host, _) = self.parts();
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => host.split(':').next().unwrap_or(host),
        };
        scheme.eq_ignore_ascii_case("https")
            || name.eq_ignore_ascii_case("localhost")
            || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

fn check_url(text: &str) -> Result<(), String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(format!("`{}`", text.escape_debug()));
    };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if authority.contains('@') {
        return Err("a URL with a user name or password (not shown)".to_owned());
    }
    let scheme_is_known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\' || c == '#');
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, "0"),
    };
    if !scheme_is_known || !is_plain || host.is_empty() || port.parse::<u16>().is_err() {
        return Err(format!("`{}`", text.split('?').next().unwrap_or(text).escape_debug()));
    }
    Ok(())
}

fn check_variable(text: &str) -> Result<(), String> {
    let mut bytes = text.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if first && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        Ok(())
    } else {
        // Somebody may have put the key itself here.
        Err("another text (not shown)".to_owned())
    }
}

fn check_decision_provider(text: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = (1..=64).contains(&text.len())
        && plain(text.as_bytes()[0])
        && text.bytes().all(|byte| plain(byte) || byte == b'.' || byte == b'-');
    if fits { Ok(()) } else { Err(format!("`{}`", text.escape_debug())) }
}

fn check_image(text: &str) -> Result<(), String> {
    let fits = text.split_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty()
            && !name.contains(|c: char| c == '@' || c.is_whitespace())
            && digest.len() == 64
            && digest.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    });
    if fits { Ok(()) } else { Err(format!("`{}`", text.escape_debug())) }
}

/// A value that belongs to a part of Alisio which checks it itself: a word or an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct WordOrObject(serde_json::Value);

impl WordOrObject {
    /// Returns the value.
    pub fn as_value(&self) -> &serde_json::Value {
        &self.0
    }
}

impl<'de> Deserialize<'de> for WordOrObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if value.is_string() || value.is_object() {
            Ok(Self(value))
        } else {
            Err(de::Error::custom(format!("found {}, allowed is a text or an object", kind_of(&value))))
        }
    }
}

impl JsonSchema for WordOrObject {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "WordOrObject".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "object"] })
    }
}

/// Names the kind of a JSON value.
pub(super) fn kind_of(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "a boolean",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a text",
        serde_json::Value::Array(_) => "a list",
        serde_json::Value::Object(_) => "an object",
    }
}
