//! The deserializer of a row: named fields, whatever format they come from.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::field_error::FieldError;
use super::field_value::{FieldValue, field_name};

/// A field as the record type sees it.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    /// Its name in the record type.
    pub(super) name: &'a str,
    /// Its name in the trace, which differs for mapped fields; errors show this one.
    pub(super) origin: &'a str,
    pub(super) value: FieldValue<'a>,
}

/// A row as an iterator over the fields that the record type wants.
pub(super) struct RowDeserializer<I>(pub(super) I);

impl<'de, I: Iterator<Item = Field<'de>>> Deserializer<'de> for RowDeserializer<I> {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_map(Fields { fields: self.0, current: None })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    // Types that ask for anything but a map are refused when the trace is opened.
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Fields<'de, I> {
    fields: I,
    current: Option<Field<'de>>,
}

impl<'de, I: Iterator<Item = Field<'de>>> MapAccess<'de> for Fields<'de, I> {
    type Error = FieldError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        self.current = self.fields.next();
        match self.current {
            Some(field) => seed.deserialize(field_name(field.name)).map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, FieldError> {
        match self.current.take() {
            Some(Field { origin, value, .. }) => {
                seed.deserialize(value).map_err(|error| error.at(origin, value))
            }
            None => Err(FieldError::new("the record type asked for a value before its name")),
        }
    }
}
