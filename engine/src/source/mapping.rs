//! Which fields of a trace are the event time, the key and the value.

use std::path::Path;

use super::error::{FieldUse, SourceError};

/// What stands between the parts of a joined key.
pub(super) const KEY_SEPARATOR: u8 = b'|';

/// Which fields of a trace are the event time, the key and the value.
///
/// A pipeline's record type sees the fields of the trace under their own names and, beside them, the
/// mapped ones as `key` and `value`. These two win over fields of the trace that happen to have the
/// same names. The event time is not part of the record: it is [`Row::time`](super::Row::time).
///
/// ```
/// use tidegate::source::FieldMapping;
///
/// let mapping = FieldMapping::new("sched_dep_ms").with_key("origin+dest").with_value("distance_mi");
/// assert_eq!(mapping.key.as_deref(), Some("origin+dest"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMapping {
    /// The field of the event time.
    pub time: String,
    /// The field of the key, or several joined with `+`. The key is then their texts joined with `|`, as
    /// in `JFK|LAX`; texts that themselves contain `|` can make two keys look the same. As `+` always
    /// joins, a field with a `+` in its name cannot be a key.
    pub key: Option<String>,
    /// The field of the value.
    pub value: Option<String>,
}

impl FieldMapping {
    /// A mapping of the event time alone.
    #[must_use]
    pub fn new(time: impl Into<String>) -> FieldMapping {
        FieldMapping { time: time.into(), key: None, value: None }
    }

    /// With this field, or these fields joined with `+`, as the key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> FieldMapping {
        self.key = Some(key.into());
        self
    }

    /// With this field as the value.
    #[must_use]
    pub fn with_value(mut self, value: impl Into<String>) -> FieldMapping {
        self.value = Some(value.into());
        self
    }

    /// The fields that make up the key.
    pub(super) fn key_fields(&self) -> impl Iterator<Item = &str> {
        self.key.iter().flat_map(|key| key.split('+'))
    }

    /// Refuses names that are empty: `--key a+` is a slip, not a field without a name.
    pub(super) fn check(&self, path: &Path) -> Result<(), SourceError> {
        let empty = |needed, given: &str| SourceError::EmptyFieldName {
            path: path.to_owned(),
            needed,
            given: given.to_owned(),
        };
        if self.time.is_empty() {
            return Err(empty(FieldUse::Time, &self.time));
        }
        match (&self.key, &self.value) {
            (Some(key), _) if key.split('+').any(str::is_empty) => Err(empty(FieldUse::Key, key)),
            (_, Some(value)) if value.is_empty() => Err(empty(FieldUse::Value, value)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_have_several_fields() {
        let key_fields = |mapping: &FieldMapping| mapping.key_fields().collect::<Vec<_>>().join(" ");
        assert_eq!(key_fields(&FieldMapping::new("t")), "");
        assert_eq!(key_fields(&FieldMapping::new("t").with_key("a")), "a");
        assert_eq!(key_fields(&FieldMapping::new("t").with_key("a+b+a")), "a b a");
    }

    #[test]
    fn an_empty_field_name_is_refused_with_the_option_named() {
        let message = |mapping: FieldMapping| match mapping.check(Path::new("x.csv")) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        assert_eq!(message(FieldMapping::new("t").with_key("a+b").with_value("v")), "");
        assert!(message(FieldMapping::new("")).contains("--time"));
        assert!(
            message(FieldMapping::new("t").with_key("a++b"))
                .contains("--key asks for has an empty name (`a++b`)")
        );
        assert!(message(FieldMapping::new("t").with_value("")).contains("--value"));
    }
}
