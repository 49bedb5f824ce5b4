//! What a record type asks of its deserializer: the names of its fields, and which of them must be there.
//!
//! Serde has no reflection, but a derived `Deserialize` hands its field names to `deserialize_struct`.
//! Deserializers made for the purpose listen to that and give nothing, or dummies, in return.

use std::fmt::{self, Display};

use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};

/// The form of a record type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordShape {
    /// A struct with these field names, the aliases of fields included.
    Struct(&'static [&'static str]),
    /// A type that takes fields of any names: a map, or a struct with a flattened part.
    Map,
    /// A type that takes no field.
    Unit,
    /// Anything else; what it asked for.
    Other(&'static str),
}

impl RecordShape {
    /// Finds out what `R` asks for.
    pub(super) fn of<R: DeserializeOwned>() -> RecordShape {
        match R::deserialize(ShapeDeserializer) {
            Err(Answer::Asked(shape)) => shape,
            // It asked for nothing, or made up an error of its own.
            Ok(_) => RecordShape::Unit,
            Err(Answer::Missing(_) | Answer::Failed) => RecordShape::Other("nothing that serde knows"),
        }
    }
}

/// The first field that `R` cannot do without although it is not `present`. `None` also if that cannot
/// be told, as where a field's type refuses the dummy (0, an empty string); then the rows will tell.
pub(super) fn missing_field<R: DeserializeOwned>(present: &[&str]) -> Option<&'static str> {
    match R::deserialize(DummyRow(present)) {
        Err(Answer::Missing(field)) => Some(field),
        _ => None,
    }
}

/// What is learned from a record type, in the guise of an error.
#[derive(Debug)]
enum Answer {
    Asked(RecordShape),
    Missing(&'static str),
    Failed,
}

impl Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Answer {}

impl de::Error for Answer {
    fn custom<T: Display>(_: T) -> Answer {
        Answer::Failed
    }

    fn missing_field(field: &'static str) -> Answer {
        Answer::Missing(field)
    }
}

/// Answers every question with an error that repeats it.
struct ShapeDeserializer;

macro_rules! asked {
    ($($method:ident($($kind:ty),*) $shape:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(self, $(_: $kind,)* _: V) -> Result<V::Value, Answer> {
            Err(Answer::Asked($shape))
        }
    )*};
}

impl<'de> Deserializer<'de> for ShapeDeserializer {
    type Error = Answer;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Answer> {
        Err(Answer::Asked(RecordShape::Struct(fields)))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Answer> {
        visitor.visit_newtype_struct(self)
    }

    asked! {
        deserialize_any() RecordShape::Map;
        deserialize_map() RecordShape::Map;
        deserialize_unit() RecordShape::Unit;
        deserialize_ignored_any() RecordShape::Unit;
        deserialize_unit_struct(&'static str) RecordShape::Unit;
        deserialize_bool() RecordShape::Other("a boolean");
        deserialize_i8() RecordShape::Other("a number");
        deserialize_i16() RecordShape::Other("a number");
        deserialize_i32() RecordShape::Other("a number");
        deserialize_i64() RecordShape::Other("a number");
        deserialize_i128() RecordShape::Other("a number");
        deserialize_u8() RecordShape::Other("a number");
        deserialize_u16() RecordShape::Other("a number");
        deserialize_u32() RecordShape::Other("a number");
        deserialize_u64() RecordShape::Other("a number");
        deserialize_u128() RecordShape::Other("a number");
        deserialize_f32() RecordShape::Other("a number");
        deserialize_f64() RecordShape::Other("a number");
        deserialize_char() RecordShape::Other("a character");
        deserialize_str() RecordShape::Other("a string");
        deserialize_string() RecordShape::Other("a string");
        deserialize_identifier() RecordShape::Other("a name");
        deserialize_bytes() RecordShape::Other("bytes");
        deserialize_byte_buf() RecordShape::Other("bytes");
        deserialize_option() RecordShape::Other("an option");
        deserialize_seq() RecordShape::Other("a list");
        deserialize_tuple(usize) RecordShape::Other("a tuple");
        deserialize_tuple_struct(&'static str, usize) RecordShape::Other("a tuple");
        deserialize_enum(&'static str, &'static [&'static str]) RecordShape::Other("an enum");
    }
}

/// A row that has these fields and dummies for their values.
struct DummyRow<'a>(&'a [&'a str]);

impl<'de> Deserializer<'de> for DummyRow<'_> {
    type Error = Answer;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Answer> {
        let fields = self.0.iter().map(|name| (StrDeserializer::new(name), Dummy));
        visitor.visit_map(MapDeserializer::new(fields))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Answer> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Gives every type that can be made from a text the least value of it: 0, nothing, the first variant.
#[derive(Clone, Copy)]
struct Dummy;

impl IntoDeserializer<'_, Answer> for Dummy {
    type Deserializer = Dummy;

    fn into_deserializer(self) -> Dummy {
        self
    }
}

macro_rules! given {
    ($($method:ident $visit:ident($($value:expr)?);)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Answer> {
            visitor.$visit($($value)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Dummy {
    type Error = Answer;

    given! {
        deserialize_any visit_unit();
        deserialize_unit visit_unit();
        deserialize_ignored_any visit_unit();
        deserialize_option visit_none();
        deserialize_bool visit_bool(false);
        deserialize_i8 visit_i8(0);
        deserialize_i16 visit_i16(0);
        deserialize_i32 visit_i32(0);
        deserialize_i64 visit_i64(0);
        deserialize_i128 visit_i128(0);
        deserialize_u8 visit_u8(0);
        deserialize_u16 visit_u16(0);
        deserialize_u32 visit_u32(0);
        deserialize_u64 visit_u64(0);
        deserialize_u128 visit_u128(0);
        deserialize_f32 visit_f32(0.0);
        deserialize_f64 visit_f64(0.0);
        deserialize_char visit_char('0');
        deserialize_str visit_borrowed_str("");
        deserialize_string visit_borrowed_str("");
        deserialize_bytes visit_borrowed_bytes(b"");
        deserialize_byte_buf visit_borrowed_bytes(b"");
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Answer> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Answer> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Answer> {
        let variant = variants.first().ok_or(Answer::Failed)?;
        visitor.visit_enum(StrDeserializer::new(variant))
    }

    // No text can become one of these. They are given the unit, which they refuse.
    serde::forward_to_deserialize_any! { seq tuple tuple_struct map struct identifier }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::num::NonZeroU32;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Plain {
        a: u32,
        #[serde(rename = "B")]
        b: String,
        c: Option<f64>,
        #[serde(default)]
        d: u8,
        #[serde(alias = "e2")]
        e: bool,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Wrapped(Plain);

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Flat {
        a: u32,
        #[serde(flatten)]
        rest: HashMap<String, String>,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    enum Side {
        Buy,
        Sell,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Scalars {
        text: String,
        letter: char,
        side: Side,
        nothing: (),
        wrapped: std::num::Wrapping<i128>,
        address: std::path::PathBuf,
        last: u64,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Refuses {
        some: NonZeroU32,
        last: u64,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Lists {
        list: Vec<u8>,
        last: u64,
    }

    #[test]
    fn field_names_are_found_with_their_renames_and_aliases() {
        let fields = RecordShape::Struct(&["a", "B", "c", "d", "e", "e2"]);
        assert_eq!(RecordShape::of::<Plain>(), fields);
        assert_eq!(RecordShape::of::<Wrapped>(), fields);
        assert_eq!(RecordShape::of::<Box<Plain>>(), fields);
    }

    #[test]
    fn types_that_take_any_field_and_types_that_take_none_are_told_apart() {
        assert_eq!(RecordShape::of::<Flat>(), RecordShape::Map);
        assert_eq!(RecordShape::of::<HashMap<String, u8>>(), RecordShape::Map);
        assert_eq!(RecordShape::of::<serde_json::Value>(), RecordShape::Map);
        assert_eq!(RecordShape::of::<()>(), RecordShape::Unit);
        assert_eq!(RecordShape::of::<serde::de::IgnoredAny>(), RecordShape::Unit);
        assert_eq!(RecordShape::of::<Vec<u8>>(), RecordShape::Other("a list"));
        assert_eq!(RecordShape::of::<u8>(), RecordShape::Other("a number"));
        assert_eq!(RecordShape::of::<Side>(), RecordShape::Other("an enum"));
        assert_eq!(RecordShape::of::<Option<Plain>>(), RecordShape::Other("an option"));
    }

    #[test]
    fn a_field_that_must_be_there_is_told_from_one_that_may_be_absent() {
        assert_eq!(missing_field::<Plain>(&["a", "B", "e"]), None);
        assert_eq!(missing_field::<Plain>(&["a", "B", "e2"]), None);
        assert_eq!(missing_field::<Plain>(&["a", "e"]), Some("B"));
        assert_eq!(missing_field::<Plain>(&["a", "B"]), Some("e"));
        assert_eq!(missing_field::<Wrapped>(&["B", "e"]), Some("a"));
        assert_eq!(missing_field::<Vec<u8>>(&[]), None);
    }

    #[test]
    fn fields_of_all_kinds_that_a_text_can_become_get_dummies() {
        let all = ["text", "letter", "side", "nothing", "wrapped", "address"];
        assert_eq!(missing_field::<Scalars>(&all), Some("last"));
        assert_eq!(missing_field::<Scalars>(&all[..2]), Some("side"));
    }

    #[test]
    fn nothing_is_said_of_types_that_refuse_their_dummies() {
        assert_eq!(missing_field::<Refuses>(&["some"]), None);
        assert_eq!(missing_field::<Lists>(&["list"]), None);
        assert_eq!(missing_field::<(Plain, u8)>(&[]), None);
    }
}
