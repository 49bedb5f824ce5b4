//! The deserializer of one field, be it a text of CSV or a value of JSON.
//!
//! A text has no type of its own: it is parsed as whatever the record's field asks for.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::{self, FromStr};

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{Deserializer, IntoDeserializer, Visitor};

use super::field_error::FieldError;

/// A field's value as it stands in the trace.
///
/// * Numbers and booleans: a text is parsed, white space around it passed over. A boolean is `true`,
///   `false` (in any case), `1` or `0`. A JSON string, number or boolean is parsed as if its content were
///   a text, so that a number in quotes, as many feeds write them, is a number.
/// * Options: an empty text and a JSON `null` are `None`.
/// * The unit type is made from anything.
/// * Lists, structs and the like come from JSON only.
/// * Where a type takes anything, a text is a boolean or a number if it looks like one, else a string; the
///   key is always a string.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldValue<'a> {
    /// A field of CSV or TSV; not necessarily UTF-8.
    Text(&'a [u8]),
    /// The text of the key, whatever the format.
    Key(&'a [u8]),
    /// One JSON value, syntactically valid.
    Json(&'a str),
}

impl<'a> FieldValue<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            FieldValue::Text(bytes) | FieldValue::Key(bytes) => bytes,
            FieldValue::Json(json) => json.as_bytes(),
        }
    }
}

/// The content of a JSON string, borrowed unless it has escapes; `None` for other JSON values.
pub(super) fn json_string(json: &str) -> Result<Option<Cow<'_, str>>, FieldError> {
    let Some(inner) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Ok(None);
    };
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Ok(Some(Cow::Borrowed(inner)));
    }
    serde_json::from_str(json).map(|text| Some(Cow::Owned(text))).map_err(|error| FieldError::json(&error))
}

/// The text of a JSON string, number or boolean; `None` for anything else.
pub(super) fn scalar_text(json: &str) -> Result<Option<Cow<'_, str>>, FieldError> {
    match json.as_bytes().first() {
        Some(b'"') => json_string(json),
        Some(b'{' | b'[' | b'n') | None => Ok(None),
        Some(_) => Ok(Some(Cow::Borrowed(json))),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, FieldError> {
    str::from_utf8(bytes).map_err(|_| FieldError::new("is not valid UTF-8"))
}

fn number<T: FromStr<Err: Display>>(bytes: &[u8]) -> Result<T, FieldError> {
    let text = utf8(bytes)?.trim_ascii();
    text.parse().map_err(|error| {
        let number = std::any::type_name::<T>();
        FieldError::new(format!("cannot be read as a number of type {number}: {error}"))
    })
}

fn boolean(bytes: &[u8]) -> Result<bool, FieldError> {
    match bytes.trim_ascii() {
        b"1" => Ok(true),
        b"0" => Ok(false),
        text if text.eq_ignore_ascii_case(b"true") => Ok(true),
        text if text.eq_ignore_ascii_case(b"false") => Ok(false),
        _ => Err(FieldError::new("is neither true, false, 1 nor 0")),
    }
}

fn no_list() -> FieldError {
    FieldError::new("a single text cannot be read as a list, a map or a struct")
}

/// Methods for types that a text is parsed as. They differ in nothing but three names, and a function
/// cannot be generic over the method of a trait that it calls.
macro_rules! parsed {
    ($($method:ident $visit:ident $parse:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
            match self {
                FieldValue::Text(bytes) | FieldValue::Key(bytes) => visitor.$visit($parse(bytes)?),
                // Parsed from its digits here too, for serde_json may miss a float by its last bit.
                FieldValue::Json(json) => match scalar_text(json)? {
                    Some(text) => visitor.$visit($parse(text.as_bytes())?),
                    None => serde_json::Deserializer::from_str(json)
                        .$method(visitor)
                        .map_err(|error| FieldError::json(&error)),
                },
            }
        }
    )*};
}

/// Methods that a text answers in a way of its own, and JSON as its parser does.
macro_rules! forwarded {
    ($($method:ident($($name:ident: $kind:ty),*) $text:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, FieldError> {
            match self {
                FieldValue::Text(bytes) | FieldValue::Key(bytes) => $text(bytes, visitor),
                FieldValue::Json(json) => serde_json::Deserializer::from_str(json)
                    .$method($($name,)* visitor)
                    .map_err(|error| FieldError::json(&error)),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for FieldValue<'de> {
    type Error = FieldError;

    parsed! {
        deserialize_bool visit_bool boolean;
        deserialize_i8 visit_i8 number;
        deserialize_i16 visit_i16 number;
        deserialize_i32 visit_i32 number;
        deserialize_i64 visit_i64 number;
        deserialize_i128 visit_i128 number;
        deserialize_u8 visit_u8 number;
        deserialize_u16 visit_u16 number;
        deserialize_u32 visit_u32 number;
        deserialize_u64 visit_u64 number;
        deserialize_u128 visit_u128 number;
        deserialize_f32 visit_f32 number;
        deserialize_f64 visit_f64 number;
    }

    forwarded! {
        deserialize_char() string;
        deserialize_str() string;
        deserialize_string() string;
        deserialize_identifier() string;
        deserialize_bytes() raw;
        deserialize_byte_buf() raw;
        deserialize_seq() list;
        deserialize_map() list;
        deserialize_tuple(len: usize) list;
        deserialize_tuple_struct(name: &'static str, len: usize) list;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) list;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self {
            FieldValue::Text(bytes) => any(bytes, visitor),
            FieldValue::Key(bytes) => string(bytes, visitor),
            FieldValue::Json(json) => serde_json::Deserializer::from_str(json)
                .deserialize_any(visitor)
                .map_err(|error| FieldError::json(&error)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self {
            FieldValue::Text(b"") | FieldValue::Key(b"") | FieldValue::Json("null") => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
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

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self {
            FieldValue::Text(bytes) | FieldValue::Key(bytes) => {
                visitor.visit_enum(utf8(bytes)?.into_deserializer())
            }
            FieldValue::Json(json) => serde_json::Deserializer::from_str(json)
                .deserialize_enum(name, variants, visitor)
                .map_err(|error| FieldError::json(&error)),
        }
    }
}

fn string<'de, V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value, FieldError> {
    visitor.visit_borrowed_str(utf8(bytes)?)
}

fn raw<'de, V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value, FieldError> {
    visitor.visit_borrowed_bytes(bytes)
}

fn list<'de, V: Visitor<'de>>(_bytes: &'de [u8], _visitor: V) -> Result<V::Value, FieldError> {
    Err(no_list())
}

fn any<'de, V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value, FieldError> {
    let text = utf8(bytes)?;
    if text.eq_ignore_ascii_case("true") {
        return visitor.visit_bool(true);
    }
    if text.eq_ignore_ascii_case("false") {
        return visitor.visit_bool(false);
    }
    // `inf` and `nan` parse as floats, and are words far more often.
    if text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.'))
        && text.ends_with(|last: char| last.is_ascii_digit() || last == '.')
    {
        if let Ok(number) = text.parse() {
            return visitor.visit_i64(number);
        }
        if let Ok(number) = text.parse() {
            return visitor.visit_u64(number);
        }
        if let Ok(number) = text.parse() {
            return visitor.visit_f64(number);
        }
    }
    visitor.visit_borrowed_str(text)
}

/// A field's name, for the record type to recognise.
pub(super) fn field_name(name: &str) -> BorrowedStrDeserializer<'_, FieldError> {
    BorrowedStrDeserializer::new(name)
}
