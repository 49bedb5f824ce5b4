//! Reading traces: files of events, as CSV, TSV or JSON Lines, plain or compressed.
//!
//! Pure parsing, without Timely and without a store, so that all of it can be tested on bytes alone.
//! A trace is input of unknown quality: nothing in it may cause a panic, unbounded memory, or a row
//! that is silently wrong. What cannot be read is an error that names file, line and field.
//!
//! | file | what it holds |
//! |---|---|
//! | `reader` | [`TraceReader`]: a trace as rows of a pipeline's record type |
//! | `record` | [`KeyValue`], the record type that most pipelines use |
//! | `mapping` | [`FieldMapping`]: which fields are time, key and value |
//! | `format` | [`Format`], and how it is guessed |
//! | `time_format` | [`TimeFormat`]: event times as text |
//! | `input` | [`Input`]: the decompressed bytes of a file, and how much of it is read |
//! | `error` | [`SourceError`], [`BadLine`] |
//! | `csv_scanner`, `line_scanner` | finding records in bytes; `scan` is what the search comes to |
//! | `csv_rows`, `json_rows` | making records of them; `json_object` finds the values of an object |
//! | `record_shape` | which fields a record type asks for |
//! | `row_deserializer`, `field_value`, `field_error`, `event_time` | serde's view of a row and of a field |
//!
//! A new format needs a variant of [`Format`], a file that finds its records and one that makes rows of
//! them, and an arm where `reader` tells formats apart.

mod csv_rows;
mod csv_scanner;
mod error;
mod event_time;
mod field_error;
mod field_value;
mod format;
mod input;
mod json_object;
mod json_rows;
mod line_scanner;
mod mapping;
mod reader;
mod record;
mod record_shape;
mod row_deserializer;
mod scan;
mod time_format;

pub use error::{BadLine, FieldUse, SourceError};
pub use format::{Format, UnknownFormat};
pub use input::{Compression, Input, Progress};
pub use mapping::FieldMapping;
pub use reader::{
    BadLineReport, BadLines, DEFAULT_LINE_LIMIT_BYTES, KEPT_BAD_LINES, Row, Status, TraceOptions, TraceReader,
};
pub use record::{KeyValue, Text};
pub use time_format::{TimeError, TimeFormat, UnknownTimeFormat};
