//! The event time of a row, whatever format it comes from.

use super::field_error::FieldError;
use super::field_value::{FieldValue, json_string};
use super::time_format::{TimeError, TimeFormat};

/// Reads the event time from a field: a text, or a JSON number or string.
#[inline]
pub(super) fn event_time(format: TimeFormat, field: &str, value: FieldValue<'_>) -> Result<i64, FieldError> {
    parse(format, value).map_err(|error| error.at(field, value))
}

fn parse(format: TimeFormat, value: FieldValue<'_>) -> Result<i64, FieldError> {
    let parsed = match value {
        FieldValue::Text(text) | FieldValue::Key(text) => format.parse_bytes(text),
        FieldValue::Json(json) => match json_string(json)? {
            Some(text) => format.parse(&text),
            None if json.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
                format.parse(json)
            }
            None => {
                return Err(FieldError::new("is no time: it must be a number or a string"));
            }
        },
    };
    parsed.map_err(|error| {
        let field_error = FieldError::new(error.to_string());
        if matches!(error, TimeError::NoUnit) { field_error.no_unit() } else { field_error }
    })
}
