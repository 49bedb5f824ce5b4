//! The top level of a JSON object: where the values of its fields begin and end.
//!
//! One pass over the line checks the syntax of all of it and keeps the wanted values as they stand. No
//! tree is built. Of a field that is there twice the last value counts, as in most readers of JSON.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::field_error::FieldError;

/// All fields of an object, each once.
#[derive(Default)]
pub(super) struct AllFields<'a> {
    /// Names and values in the order in which the names first came.
    pub(super) fields: Vec<(Cow<'a, str>, &'a str)>,
    /// Where in `fields` a name is. Without it a line of many different names would take quadratic time.
    places: HashMap<Cow<'a, str>, usize>,
}

impl<'a> AllFields<'a> {
    fn insert(&mut self, name: Cow<'a, str>, value: &'a str) {
        if let Some(place) = self.places.get(&name) {
            self.fields[*place].1 = value;
        } else {
            self.places.insert(name.clone(), self.fields.len());
            self.fields.push((name, value));
        }
    }
}

/// Finds the values of the fields called `names` and puts them at the same places of `values`; with
/// `all`, finds every field.
///
/// # Contract
///
/// `values` is as long as `names` and holds nothing.
pub(super) fn find_values<'a>(
    line: &'a [u8],
    names: &[String],
    values: &mut [Option<&'a str>],
    all: Option<&mut AllFields<'a>>,
) -> Result<(), FieldError> {
    if !line.trim_ascii_start().starts_with(b"{") {
        let reason = "each line of JSON Lines must be one JSON object, and this one is not";
        return Err(FieldError::new(reason).with_text(line));
    }
    let visitor = FindValues { names, values, all };
    // Text that is known to be UTF-8 is not checked again name by name. Where it is not, it may still
    // be so in all the fields that are wanted.
    let found = match str::from_utf8(line) {
        Ok(text) => find(serde_json::Deserializer::from_str(text), visitor),
        Err(_) => find(serde_json::Deserializer::from_slice(line), visitor),
    };
    found.map_err(|error| {
        let reason = FieldError::json(&error);
        FieldError::new(format!("{reason} (column {})", error.column())).with_text(line)
    })
}

fn find<'a, R: serde_json::de::Read<'a>>(
    mut deserializer: serde_json::Deserializer<R>,
    visitor: FindValues<'_, 'a>,
) -> serde_json::Result<()> {
    deserializer.deserialize_map(visitor)?;
    deserializer.end()
}

struct FindValues<'s, 'a> {
    names: &'s [String],
    values: &'s mut [Option<&'a str>],
    all: Option<&'s mut AllFields<'a>>,
}

impl<'de> Visitor<'de> for FindValues<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Name)? {
            let place = self.names.iter().position(|wanted| *wanted == name);
            if place.is_none() && self.all.is_none() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value::<&RawValue>()?.get();
            if let Some(place) = place {
                self.values[place] = Some(value);
            }
            if let Some(all) = &mut self.all {
                all.insert(name, value);
            }
        }
        Ok(())
    }
}

/// A field's name, borrowed from the line unless it has escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'a>(line: &'a str, names: &[&str]) -> Result<Vec<Option<&'a str>>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut values = vec![None; names.len()];
        find_values(line.as_bytes(), &names, &mut values, None)
            .map(|()| values)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_kept_as_they_stand() {
        let line = r#" {"a": 1.50 ,"b" : {"a":[2]},"c":"x\n", "a\u0062":null} "#;
        assert_eq!(
            find(line, &["c", "a", "b", "ab", "d"]).unwrap(),
            [Some(r#""x\n""#), Some("1.50"), Some(r#"{"a":[2]}"#), Some("null"), None]
        );
    }

    #[test]
    fn of_a_repeated_field_the_last_value_counts() {
        let line = r#"{"a":1,"b":2,"\u0061":3,"b":4}"#;
        assert_eq!(find(line, &["a"]).unwrap(), [Some("3")]);
        let mut all = AllFields::default();
        find_values(line.as_bytes(), &[], &mut [], Some(&mut all)).unwrap();
        assert_eq!(all.fields, [(Cow::Borrowed("a"), "3"), (Cow::Borrowed("b"), "4")]);
    }

    #[test]
    fn the_whole_line_must_be_one_object() {
        assert!(find("[1]", &["a"]).unwrap_err().contains("must be one JSON object"));
        assert_eq!(find(r#"{"a":1} {"a":2}"#, &["a"]).unwrap_err(), "trailing characters (column 9)");
        assert_eq!(find(r#"{"a":1,"b":tru}"#, &["a"]).unwrap_err(), "expected ident (column 15)");
        assert!(find(r#"{"a":1"#, &["a"]).unwrap_err().contains("EOF"));
        assert!(find(&r#"{"a":"#.repeat(10), &["a"]).is_err());
    }

    #[test]
    fn depth_is_not_paid_for_with_the_stack() {
        let depth = 1_000_000;
        let line = format!(r#"{{"a":{}{},"b":1}}"#, "[".repeat(depth), "]".repeat(depth));
        assert_eq!(find(&line, &["b"]).unwrap(), [Some("1")]);
        assert_eq!(find(&line, &["a"]).unwrap()[0].unwrap().len(), 2 * depth);
    }
}
