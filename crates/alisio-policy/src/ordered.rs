//! JSON that remembers the order of its keys, printed as `JSON.stringify` prints it: a rule that matches the input of a
//! tool sees the keys in the order in which the model wrote them.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// A JSON value with its keys in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ordered {
    /// Null, a boolean, a number or a text.
    Scalar(Value),
    /// A list.
    List(Vec<Self>),
    /// An object.
    Object(Vec<(String, Self)>),
}

impl Ordered {
    /// Forgets the order.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(fields) => {
                Value::Object(fields.iter().map(|(name, value)| (name.clone(), value.to_value())).collect())
            }
        }
    }
}

impl fmt::Display for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(Value::Number(number)) => match number.as_f64() {
                // Whole numbers are printed as such, whatever was written.
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                    write!(f, "{float:.0}")
                }
                _ => write!(f, "{number}"),
            },
            Self::Scalar(value) => write!(f, "{value}"),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    write!(f, "{}:{value}", Value::String(name.clone()))?;
                }
                f.write_str("}")
            }
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderedVisitor)
    }
}

struct OrderedVisitor;

impl<'de> Visitor<'de> for OrderedVisitor {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Value::Number(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Value::Number(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Value::String(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Ordered, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Ordered::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
        let mut fields: Vec<(String, Ordered)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Ordered>()? {
            // Of a repeated key the first place and the last value count.
            match fields.iter_mut().find(|(other, _)| *other == name) {
                Some((_, earlier)) => *earlier = value,
                None => fields.push((name, value)),
            }
        }
        Ok(Ordered::Object(fields))
    }
}
