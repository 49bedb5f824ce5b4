//! Rows of CSV and TSV: which columns the record type wants, and the records made of them.

use serde::de::DeserializeOwned;

use super::csv_scanner::CsvScanner;
use super::error::{FieldUse, SourceError};
use super::event_time::event_time;
use super::field_error::FieldError;
use super::field_value::FieldValue;
use super::input::Input;
use super::mapping::{FieldMapping, KEY_SEPARATOR};
use super::record_shape::{RecordShape, missing_field};
use super::row_deserializer::{Field, RowDeserializer};
use super::scan::Scan;
use super::time_format::TimeFormat;

/// Reads rows of CSV and TSV.
pub(super) struct CsvRows {
    scanner: CsvScanner,
    column_count: usize,
    time: usize,
    time_name: String,
    wanted: Vec<Wanted>,
    /// Columns that are joined to a key; none if the key is a single column or not wanted.
    key_parts: Vec<usize>,
    /// The joined key of the current row.
    joined_key: Vec<u8>,
}

/// A field that the record type wants.
#[derive(Clone)]
struct Wanted {
    /// Its name in the record type.
    name: String,
    /// Its name in the trace.
    origin: String,
    source: Source,
}

/// Where a field comes from.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Column(usize),
    /// A column, as the key.
    Key(usize),
    /// Several columns, joined to a key.
    JoinedKey,
}

impl CsvRows {
    pub(super) fn open<R: DeserializeOwned>(
        input: &mut Input,
        delimiter: u8,
        limit_bytes: usize,
        mapping: &FieldMapping,
        shape: RecordShape,
    ) -> Result<CsvRows, SourceError> {
        let mut scanner = CsvScanner::new(delimiter, limit_bytes);
        let names = scanner.read_header(input)?.ok_or_else(|| SourceError::Header {
            path: input.path().to_owned(),
            reason: "the file is empty".to_owned(),
        })?;
        let header = Header { names: &names, input, mapping };
        let time = header.find(&mapping.time, FieldUse::Time)?;
        let key_parts = mapping.key_fields().map(|name| header.find(name, FieldUse::Key));
        let mut key_parts: Vec<usize> = key_parts.collect::<Result<_, _>>()?;
        let wanted = header.wanted::<R>(shape, &key_parts)?;
        if wanted.iter().all(|field| field.source != Source::JoinedKey) {
            key_parts.clear();
        }
        Ok(CsvRows {
            scanner,
            column_count: names.len(),
            time,
            time_name: mapping.time.clone(),
            wanted,
            key_parts,
            joined_key: Vec::new(),
        })
    }

    /// Line on which the row found last begins.
    pub(super) fn line(&self) -> u64 {
        self.scanner.record_line()
    }

    /// Finds the next row.
    #[inline]
    pub(super) fn next(&mut self, input: &mut Input, may_wait: bool) -> Result<Scan, SourceError> {
        self.scanner.next(input, may_wait)
    }

    /// Makes event time and record of the row found last.
    #[inline]
    pub(super) fn decode<R: DeserializeOwned>(
        &mut self,
        time_format: TimeFormat,
    ) -> Result<(i64, R), FieldError> {
        let CsvRows { scanner, column_count, joined_key, .. } = self;
        if scanner.field_count() != *column_count {
            let count = scanner.field_count();
            let reason = format!("the header has {column_count} fields, this line {count}");
            return Err(FieldError::new(reason));
        }
        let time = FieldValue::Text(scanner.field(self.time));
        let time = event_time(time_format, &self.time_name, time)?;
        joined_key.clear();
        for (index, part) in self.key_parts.iter().enumerate() {
            if index > 0 {
                joined_key.push(KEY_SEPARATOR);
            }
            joined_key.extend_from_slice(scanner.field(*part));
        }
        let joined_key = joined_key.as_slice();
        let fields = self.wanted.iter().map(|wanted| Field {
            name: &wanted.name,
            origin: &wanted.origin,
            value: match wanted.source {
                Source::Column(column) => FieldValue::Text(scanner.field(column)),
                Source::Key(column) => FieldValue::Key(scanner.field(column)),
                Source::JoinedKey => FieldValue::Key(joined_key),
            },
        });
        R::deserialize(RowDeserializer(fields)).map(|record| (time, record))
    }
}

/// The header, and what is to be found in it.
struct Header<'a> {
    names: &'a [String],
    input: &'a Input,
    mapping: &'a FieldMapping,
}

impl Header<'_> {
    /// The column of a name that must be there, once.
    fn find(&self, name: &str, needed: FieldUse) -> Result<usize, SourceError> {
        let columns = self.names.iter().enumerate().filter(|(_, other)| *other == name);
        let mut columns = columns.map(|(column, _)| column);
        match (columns.next(), columns.next()) {
            (Some(column), None) => Ok(column),
            (Some(_), Some(_)) => Err(SourceError::RepeatedField {
                path: self.input.path().to_owned(),
                field: name.to_owned(),
                needed,
            }),
            (None, _) => Err(self.missing(name, needed)),
        }
    }

    /// The fields that the record type wants and the trace has.
    fn wanted<R: DeserializeOwned>(
        &self,
        shape: RecordShape,
        key_parts: &[usize],
    ) -> Result<Vec<Wanted>, SourceError> {
        let mapped = self.mapped(key_parts)?;
        let names: Vec<&str> = match shape {
            RecordShape::Struct(fields) => fields.to_vec(),
            RecordShape::Map => {
                let own = self.names.iter().map(String::as_str);
                let own = own.filter(|name| mapped.iter().all(|field| field.name != *name));
                own.chain(mapped.iter().map(|field| &*field.name)).collect()
            }
            RecordShape::Unit | RecordShape::Other(_) => Vec::new(),
        };
        let mut wanted = Vec::new();
        for name in names {
            if let Some(field) = mapped.iter().find(|field| field.name == name) {
                wanted.push(field.clone());
            } else if self.names.iter().any(|other| other == name) {
                let column = self.find(name, FieldUse::Record)?;
                let is_key = name == "key" && shape != RecordShape::Map;
                let source = if is_key { Source::Key(column) } else { Source::Column(column) };
                wanted.push(Wanted { name: name.to_owned(), origin: name.to_owned(), source });
            }
        }
        if let RecordShape::Struct(_) = shape {
            let present: Vec<&str> = wanted.iter().map(|field| &*field.name).collect();
            if let Some(field) = missing_field::<R>(&present) {
                return Err(self.missing(field, FieldUse::of_record(field)));
            }
        }
        Ok(wanted)
    }

    /// The fields that are mapped as key and value.
    fn mapped(&self, key_parts: &[usize]) -> Result<Vec<Wanted>, SourceError> {
        let mut mapped = Vec::new();
        if let Some(key) = &self.mapping.key {
            let source = match key_parts {
                [column] => Source::Key(*column),
                _ => Source::JoinedKey,
            };
            mapped.push(Wanted { name: "key".to_owned(), origin: key.clone(), source });
        }
        if let Some(value) = &self.mapping.value {
            let source = Source::Column(self.find(value, FieldUse::Value)?);
            mapped.push(Wanted { name: "value".to_owned(), origin: value.clone(), source });
        }
        Ok(mapped)
    }

    fn missing(&self, field: &str, needed: FieldUse) -> SourceError {
        SourceError::MissingField {
            path: self.input.path().to_owned(),
            field: field.to_owned(),
            needed,
            available: self.names.to_vec(),
        }
    }
}
