//! The record that pipelines use which need no more than a key and a value.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, forward_to_deserialize_any};

/// The type of keys that are text; named once, so that it can be exchanged in one place.
pub type Text = tidegate_state::key::Text;

/// A key and a value.
///
/// With `--key` and `--value` any two fields of a trace become one of these, whatever they are called.
/// A value that is not there (no `--value` is given and the trace has no field `value`, or a line of
/// JSON lacks it) is `None` for `KeyValue<Option<_>>`, `()` for `KeyValue<()>`, and an error otherwise.
///
/// ```
/// use tidegate::source::KeyValue;
///
/// let counted: KeyValue<()> = serde_json::from_str(r#"{"key": "LHR"}"#)?;
/// assert_eq!(counted.key, "LHR");
/// let priced: KeyValue<f64> = serde_json::from_str(r#"{"key": "LHR", "value": 2.5}"#)?;
/// assert_eq!(priced.value, 2.5);
/// assert!(serde_json::from_str::<KeyValue<f64>>(r#"{"key": "LHR"}"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct KeyValue<V> {
    /// What records are grouped by.
    pub key: Text,
    /// What is aggregated.
    pub value: V,
}

/// Written by hand for a single difference from the derived one: a field that is not there may be the
/// unit type, and not only an `Option`.
impl<'de, V: Deserialize<'de>> Deserialize<'de> for KeyValue<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeyValue<V>, D::Error> {
        deserializer.deserialize_struct("KeyValue", &["key", "value"], KeyValueVisitor(PhantomData))
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Key,
    Value,
    #[serde(other)]
    Other,
}

struct KeyValueVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for KeyValueVisitor<V> {
    type Value = KeyValue<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key and a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeyValue<V>, A::Error> {
        let (mut key, mut value) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                Field::Key if key.is_some() => return Err(de::Error::duplicate_field("key")),
                Field::Value if value.is_some() => return Err(de::Error::duplicate_field("value")),
                Field::Key => key = Some(map.next_value()?),
                Field::Value => value = Some(map.next_value()?),
                Field::Other => drop(map.next_value::<de::IgnoredAny>()?),
            }
        }
        Ok(KeyValue {
            key: key.ok_or_else(|| de::Error::missing_field("key"))?,
            value: match value {
                Some(value) => value,
                None => V::deserialize(Absent { field: "value", error: PhantomData })?,
            },
        })
    }

    /// For codecs that write no field names.
    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<KeyValue<V>, A::Error> {
        let missing = |count| de::Error::invalid_length(count, &"a key and a value");
        Ok(KeyValue {
            key: fields.next_element()?.ok_or_else(|| missing(0))?,
            value: fields.next_element()?.ok_or_else(|| missing(1))?,
        })
    }
}

/// A field that is not there: nothing for types that can be nothing, an error for all others.
struct Absent<E> {
    field: &'static str,
    error: PhantomData<E>,
}

impl<'de, E: de::Error> Deserializer<'de> for Absent<E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, E> {
        Err(E::missing_field(self.field))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_none()
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, E> {
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        newtype_struct seq tuple tuple_struct map struct enum identifier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a, V: Deserialize<'a>>(json: &'a str) -> Option<KeyValue<V>> {
        serde_json::from_str(json).ok()
    }

    #[test]
    fn what_is_written_is_read_back_with_and_without_field_names() {
        let record = KeyValue { key: "a".into(), value: 5_i64 };
        let named = serde_json::to_string(&record).unwrap();
        assert_eq!(named, r#"{"key":"a","value":5}"#);
        assert_eq!(read(&named), Some(record.clone()));
        assert_eq!(read(r#"["a",5]"#), Some(record));
        assert_eq!(read::<i64>(r#"["a"]"#), None);
    }

    #[test]
    fn an_absent_value_is_nothing_for_types_that_can_be_nothing() {
        assert_eq!(read(r#"{"key":"a"}"#), Some(KeyValue { key: "a".into(), value: () }));
        assert_eq!(read(r#"{"key":"a"}"#), Some(KeyValue { key: "a".into(), value: None::<u8> }));
        assert_eq!(read::<u8>(r#"{"key":"a"}"#), None);
        assert_eq!(read::<String>(r#"{"key":"a"}"#), None);
        assert_eq!(read::<()>(r#"{"value":null}"#), None);
    }

    #[test]
    fn other_fields_are_passed_over_and_repeated_ones_refused() {
        assert_eq!(read(r#"{"x":[1],"value":2,"key":"a"}"#), Some(KeyValue { key: "a".into(), value: 2_u8 }));
        assert_eq!(read::<u8>(r#"{"key":"a","value":1,"value":2}"#), None);
    }
}
