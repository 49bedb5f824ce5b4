//! Why a row did not become a record: the reason, and the field at fault once it is known.
//!
//! It is made by deserializers that know neither file nor line; the reader adds these.

use std::fmt::{self, Display};

use super::error::{FieldUse, shorten};
use super::field_value::FieldValue;

/// Boxed, as it travels in the `Result` of every field of every row and is hardly ever there.
#[derive(Debug)]
pub(super) struct FieldError(Box<Fault>);

/// What is wrong with a row.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) field: Option<String>,
    pub(super) text: Option<String>,
    pub(super) reason: String,
    /// Set if the event time is a number and its unit is unknown.
    pub(super) no_unit: bool,
    /// The field that the record type needs and was not given.
    missing: Option<&'static str>,
}

impl FieldError {
    pub(super) fn new(reason: impl Into<String>) -> FieldError {
        let reason = reason.into();
        FieldError(Box::new(Fault { field: None, text: None, reason, no_unit: false, missing: None }))
    }

    /// An error of the JSON parser, without the position that it appends: it counts within the text that
    /// it was given, which may be one field, and would be taken for the file's.
    pub(super) fn json(error: &serde_json::Error) -> FieldError {
        let text = error.to_string();
        FieldError::new(text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason))
    }

    /// A field that a row lacks.
    pub(super) fn absent(field: &str, needed: FieldUse) -> FieldError {
        FieldError::new(format!("there is no field `{field}`, which {needed}"))
    }

    /// Shows the text at fault where that is no single field's.
    pub(super) fn with_text(mut self, text: &[u8]) -> FieldError {
        self.0.text = Some(shorten(text));
        self
    }

    /// The field that the record type needs and was not given.
    pub(super) fn missing(&self) -> Option<&'static str> {
        self.0.missing
    }

    pub(super) fn no_unit(mut self) -> FieldError {
        self.0.no_unit = true;
        self
    }

    /// Names the field and shows its text, unless a field further in is named already.
    pub(super) fn at(mut self, field: &str, value: FieldValue<'_>) -> FieldError {
        if self.0.field.is_none() {
            self.0.field = Some(field.to_owned());
            self.0.text = Some(shorten(value.bytes()));
        }
        self
    }

    pub(super) fn into_fault(self) -> Fault {
        *self.0
    }
}

impl Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.reason)
    }
}

impl std::error::Error for FieldError {}

impl serde::de::Error for FieldError {
    fn custom<T: Display>(reason: T) -> FieldError {
        FieldError::new(reason.to_string())
    }

    fn missing_field(field: &'static str) -> FieldError {
        let mut error = FieldError::new(format!("there is no field `{field}`"));
        error.0.missing = Some(field);
        error
    }
}
