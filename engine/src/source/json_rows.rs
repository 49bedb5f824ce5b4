//! Rows of JSON Lines: one object on each line.

use std::borrow::Cow;
use std::mem;

use serde::de::DeserializeOwned;

use super::error::{FieldUse, SourceError};
use super::event_time::event_time;
use super::field_error::FieldError;
use super::field_value::{FieldValue, scalar_text};
use super::input::Input;
use super::json_object::{AllFields, find_values};
use super::line_scanner::LineScanner;
use super::mapping::{FieldMapping, KEY_SEPARATOR};
use super::record_shape::RecordShape;
use super::row_deserializer::{Field, RowDeserializer};
use super::scan::Scan;
use super::time_format::TimeFormat;

/// Reads rows of JSON Lines.
pub(super) struct JsonRows {
    lines: LineScanner,
    mapping: FieldMapping,
    /// The fields of the trace that are looked for on each line, each once.
    names: Vec<String>,
    /// Where in `names` the event time is.
    time: usize,
    /// Where in `names` the parts of the key are; empty if the record has no key.
    key_parts: Vec<usize>,
    wanted: Vec<Wanted>,
    /// Whether the record type takes fields of any name.
    wants_all: bool,
    /// The values of the current line, empty between lines; kept for its memory.
    values: Vec<Option<&'static str>>,
    /// The key of the current line, where it had to be put together.
    key: String,
}

/// A field that the record type wants.
struct Wanted {
    /// Its name in the record type.
    name: String,
    /// Its name in the trace.
    origin: String,
    /// Where in `names` it is; `None` for the key.
    place: Option<usize>,
}

impl JsonRows {
    pub(super) fn new(limit_bytes: usize, mapping: &FieldMapping, shape: RecordShape) -> JsonRows {
        let mut rows = JsonRows {
            lines: LineScanner::new(limit_bytes),
            mapping: mapping.clone(),
            names: vec![mapping.time.clone()],
            time: 0,
            key_parts: Vec::new(),
            wanted: Vec::new(),
            wants_all: shape == RecordShape::Map,
            values: Vec::new(),
            key: String::new(),
        };
        let mapped = [("key", &mapping.key), ("value", &mapping.value)];
        let mapped = mapped.into_iter().filter(|(_, field)| field.is_some()).map(|(name, _)| name);
        match shape {
            RecordShape::Struct(fields) => fields.iter().for_each(|field| rows.want(field)),
            RecordShape::Map => mapped.for_each(|field| rows.want(field)),
            RecordShape::Unit | RecordShape::Other(_) => {}
        }
        rows
    }

    /// Adds a field of the record type.
    fn want(&mut self, name: &str) {
        let (origin, place) = match name {
            "key" => {
                let key = self.mapping.key.clone().unwrap_or_else(|| name.to_owned());
                self.key_parts = key.split('+').map(|part| self.place(part)).collect();
                (key, None)
            }
            _ => {
                let mapped = self.mapping.value.clone().filter(|_| name == "value");
                let origin = mapped.unwrap_or_else(|| name.to_owned());
                let place = self.place(&origin);
                (origin, Some(place))
            }
        };
        self.wanted.push(Wanted { name: name.to_owned(), origin, place });
    }

    /// Where in `names` a field of the trace is, after adding it if it is new.
    fn place(&mut self, origin: &str) -> usize {
        self.names.iter().position(|name| name == origin).unwrap_or_else(|| {
            self.names.push(origin.to_owned());
            self.names.len() - 1
        })
    }

    /// Number of the line found last.
    pub(super) fn line(&self) -> u64 {
        self.lines.line_number()
    }

    /// Finds the next row.
    #[inline]
    pub(super) fn next(&mut self, input: &mut Input, may_wait: bool) -> Result<Scan, SourceError> {
        self.lines.next(input, may_wait)
    }

    /// Makes event time and record of the row found last.
    #[inline]
    pub(super) fn decode<R: DeserializeOwned>(
        &mut self,
        input: &Input,
        time_format: TimeFormat,
    ) -> Result<(i64, R), FieldError> {
        let mut values = recycle(mem::take(&mut self.values));
        values.resize(self.names.len(), None);
        let result = self.decode_line(self.lines.line(input), &mut values, time_format);
        self.values = recycle(values);
        result
    }

    fn decode_line<'a, R: DeserializeOwned>(
        &mut self,
        line: &'a [u8],
        values: &mut [Option<&'a str>],
        time_format: TimeFormat,
    ) -> Result<(i64, R), FieldError> {
        let mut all = AllFields::default();
        find_values(line, &self.names, values, self.wants_all.then_some(&mut all))?;
        let time = &self.names[self.time];
        let value = values[self.time].ok_or_else(|| FieldError::absent(time, FieldUse::Time))?;
        let time = event_time(time_format, time, FieldValue::Json(value))?;
        let mut key_text = mem::take(&mut self.key);
        let key = self.key(values, &mut key_text)?;
        let wanted = self.wanted.iter().filter_map(|wanted| {
            let value = match wanted.place {
                Some(place) => values[place].map(FieldValue::Json),
                None => key,
            };
            Some(Field { name: &wanted.name, origin: &wanted.origin, value: value? })
        });
        let is_wanted = |name: &str| self.wanted.iter().any(|wanted| wanted.name == name);
        let others = all.fields.iter().filter(|(name, _)| !is_wanted(name));
        let others = others.map(|(name, value)| Field { name, origin: name, value: FieldValue::Json(value) });
        let result = R::deserialize(RowDeserializer(wanted.chain(others)));
        let result = result.map_err(|error| self.explain_missing(error, values));
        self.key = key_text;
        result.map(|record| (time, record))
    }

    /// The key: a list or an object as it stands, everything else as text. Nothing if it, or a part of
    /// it, is not there.
    fn key<'a>(
        &self,
        values: &[Option<&'a str>],
        text: &'a mut String,
    ) -> Result<Option<FieldValue<'a>>, FieldError> {
        let scalar = |place: usize, json| {
            let value = FieldValue::Json(json);
            scalar_text(json).map_err(|error| error.at(&self.names[place], value))
        };
        if let [place] = *self.key_parts {
            let Some(json) = values[place] else {
                return Ok(None);
            };
            return Ok(Some(match scalar(place, json)? {
                Some(Cow::Borrowed(content)) => FieldValue::Key(content.as_bytes()),
                Some(Cow::Owned(content)) => {
                    *text = content;
                    FieldValue::Key(text.as_bytes())
                }
                None => FieldValue::Json(json),
            }));
        }
        text.clear();
        for (index, place) in self.key_parts.iter().copied().enumerate() {
            let Some(json) = values[place].filter(|json| *json != "null") else {
                return Ok(None);
            };
            let part = scalar(place, json)?.ok_or_else(|| {
                let reason = "a part of a key must be a string, a number, true or false";
                FieldError::new(reason).at(&self.names[place], FieldValue::Json(json))
            })?;
            if index > 0 {
                text.push(char::from(KEY_SEPARATOR));
            }
            text.push_str(&part);
        }
        Ok(if self.key_parts.is_empty() { None } else { Some(FieldValue::Key(text.as_bytes())) })
    }

    /// Says of a missing key or value which field of the trace it is that is missing.
    fn explain_missing(&self, error: FieldError, values: &[Option<&str>]) -> FieldError {
        let mapping = &self.mapping;
        match (error.missing(), &mapping.key, &mapping.value) {
            (Some("key"), Some(_), _) => {
                let null = |place: &&usize| values[**place].is_none_or(|json| json == "null");
                let Some(place) = self.key_parts.iter().find(null) else {
                    return error;
                };
                match values[*place] {
                    None => FieldError::absent(&self.names[*place], FieldUse::Key),
                    Some(json) => FieldError::new("a part of the key is null")
                        .at(&self.names[*place], FieldValue::Json(json)),
                }
            }
            (Some("value"), _, Some(value)) => FieldError::absent(value, FieldUse::Value),
            (Some(field), ..) => FieldError::absent(field, FieldUse::of_record(field)),
            (None, ..) => error,
        }
    }
}

/// Empties a vector and gives it another lifetime. Collecting from a vector into one whose elements have
/// the same layout keeps the memory, so this costs nothing, and the values of a line need none of their
/// own.
fn recycle<'a>(mut values: Vec<Option<&str>>) -> Vec<Option<&'a str>> {
    values.clear();
    values.into_iter().map(|_| None).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycled_vectors_keep_their_memory() {
        let text = String::from("x");
        let mut values = Vec::with_capacity(100);
        values.push(Some(text.as_str()));
        let recycled: Vec<Option<&'static str>> = recycle(values);
        assert!(recycled.is_empty());
        assert_eq!(recycled.capacity(), 100);
    }
}
