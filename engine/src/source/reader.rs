//! Reads a trace as rows of a pipeline's record type.

use std::marker::PhantomData;
use std::path::Path;

use clap::ValueEnum;
use serde::de::DeserializeOwned;

use super::csv_rows::CsvRows;
use super::error::{BadLine, SourceError};
use super::field_error::FieldError;
use super::format::Format;
use super::input::{Input, Progress};
use super::json_rows::JsonRows;
use super::mapping::FieldMapping;
use super::record_shape::RecordShape;
use super::scan::Scan;
use super::time_format::TimeFormat;

/// How many bad lines are kept with their reasons; the others are only counted.
pub const KEPT_BAD_LINES: usize = 100;

/// The default limit for the length of a line.
pub const DEFAULT_LINE_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// How much of a trace is looked at to guess its format.
const GUESS_BYTES: usize = 64 * 1024;

/// What is done about lines that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ValueEnum)]
pub enum BadLines {
    /// The first one ends reading with an error.
    #[default]
    Fail,
    /// They are left out and counted; see [`TraceReader::bad_lines`].
    Skip,
}

/// How a trace is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceOptions {
    /// The format; `None` guesses it from the file's name, else from its content.
    pub format: Option<Format>,
    /// How event times are written.
    pub time_format: TimeFormat,
    /// Which fields are the event time, the key and the value.
    pub fields: FieldMapping,
    /// What is done about lines that cannot be read.
    pub bad_lines: BadLines,
    /// The longest line that is read, its line end included; in CSV and TSV the longest record. A longer
    /// one is a bad line, and reading goes on behind the first line feed after the limit. Memory for
    /// lines is bounded by a small multiple of it.
    pub line_limit_bytes: usize,
}

impl TraceOptions {
    /// Options with these fields and defaults for all else.
    #[must_use]
    pub fn new(fields: FieldMapping) -> TraceOptions {
        TraceOptions {
            format: None,
            time_format: TimeFormat::default(),
            fields,
            bad_lines: BadLines::default(),
            line_limit_bytes: DEFAULT_LINE_LIMIT_BYTES,
        }
    }
}

/// A record, with its event time and its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<R> {
    /// Event time in microseconds since 1970, or in the trace's own unit under [`TimeFormat::Raw`].
    pub time: i64,
    /// Ordinal in the file, counted from 0 over all lines of data: bad ones count and blank ones do not,
    /// so it does not depend on the policy for bad lines.
    pub position: u64,
    /// The record.
    pub record: R,
}

/// Whether there is more to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There may be.
    More,
    /// The trace has ended.
    Ended,
}

/// The bad lines of a trace that were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BadLineReport {
    /// How many there were.
    pub total: u64,
    /// The first [`KEPT_BAD_LINES`] of them.
    pub first: Vec<BadLine>,
}

/// Reads a trace as rows of the record type `R`.
///
/// `R` is any type that can be made from named fields: a struct, a map, or the unit type. It sees the
/// trace's fields under their own names and the mapped ones as `key` and `value`. Only the fields that it
/// asks for are parsed. Numbers, booleans and options are made from text as the field's type asks: an
/// empty text is `None`, a boolean is `true`, `false`, `1` or `0`. JSON values are passed on whole, so a
/// field may be a struct or a list; a number in quotes is read as a number; the key is always given as
/// text, so that a numeric id can be a `String` key. In JSON the last of several fields with the same
/// name counts.
///
/// ```
/// use serde::Deserialize;
/// use tidegate::source::{FieldMapping, Input, Row, Status, TimeFormat, TraceOptions, TraceReader};
///
/// #[derive(Debug, PartialEq, Deserialize)]
/// struct Trip {
///     key: String,
///     fare: f64,
///     tip: Option<f64>,
/// }
///
/// let csv = "pickup_ms,zone,fare,tip\n1672531685000,41,5.5,\n";
/// let mut options = TraceOptions::new(FieldMapping::new("pickup_ms").with_key("zone"));
/// options.time_format = TimeFormat::Millis;
/// let input = Input::from_reader("trips.csv", csv.as_bytes(), None)?;
/// let mut reader = TraceReader::<Trip>::from_input(input, &options)?;
///
/// let mut rows = Vec::new();
/// while reader.read(1000, &mut rows)? == Status::More {}
/// let record = Trip { key: "41".into(), fare: 5.5, tip: None };
/// assert_eq!(rows, [Row { time: 1_672_531_685_000_000, position: 0, record }]);
/// # Ok::<(), tidegate::source::SourceError>(())
/// ```
#[derive(Debug)]
pub struct TraceReader<R> {
    input: Input,
    rows: Rows,
    time_format: TimeFormat,
    policy: BadLines,
    position: u64,
    bad_lines: BadLineReport,
    stopped: bool,
    record: PhantomData<fn() -> R>,
}

enum Rows {
    Csv(Box<CsvRows>),
    Json(Box<JsonRows>),
}

impl<R: DeserializeOwned> TraceReader<R> {
    /// Opens a file, or standard input for the path `-`.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or read; if `R` cannot be made from named fields; and for CSV and
    /// TSV if there is no header, or it lacks a mapped field or one that `R` cannot do without.
    pub fn open(path: &Path, options: &TraceOptions) -> Result<TraceReader<R>, SourceError> {
        TraceReader::from_input(Input::open(path)?, options)
    }

    /// Reads from an input that is open already.
    ///
    /// # Errors
    ///
    /// As for [`TraceReader::open`].
    pub fn from_input(mut input: Input, options: &TraceOptions) -> Result<TraceReader<R>, SourceError> {
        options.fields.check(input.path())?;
        let shape = RecordShape::of::<R>();
        if let RecordShape::Other(asked) = shape {
            return Err(SourceError::RecordType {
                path: input.path().to_owned(),
                record: std::any::type_name::<R>(),
                asked,
            });
        }
        let format = match options.format.or_else(|| Format::from_file_name(input.path())) {
            Some(format) => format,
            None => guess_format(&mut input)?,
        };
        // With a limit of 0 even the end of an input would be beyond it.
        let (fields, limit) = (&options.fields, options.line_limit_bytes.max(1));
        let mut csv = |delimiter| {
            let rows = CsvRows::open::<R>(&mut input, delimiter, limit, fields, shape)?;
            Ok(Rows::Csv(Box::new(rows)))
        };
        let rows = match format {
            Format::Csv => csv(b',')?,
            Format::Tsv => csv(b'\t')?,
            Format::JsonLines => Rows::Json(Box::new(JsonRows::new(limit, fields, shape))),
        };
        Ok(TraceReader {
            input,
            rows,
            time_format: options.time_format,
            policy: options.bad_lines,
            position: 0,
            bad_lines: BadLineReport::default(),
            stopped: false,
            record: PhantomData,
        })
    }

    /// Reads up to `limit` lines of data and appends their rows, fewer than `limit` if some are bad.
    ///
    /// From a pipe it takes what is there: once a line has been read, it does not wait for another.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or decompressed, if the first line's time lacks a unit, and at a bad
    /// line under [`BadLines::Fail`]. The rows before it have then been appended. Reading cannot go on
    /// after an error.
    pub fn read(&mut self, limit: usize, into: &mut Vec<Row<R>>) -> Result<Status, SourceError> {
        self.check_stopped()?;
        let result = self.read_rows(limit, into);
        self.stopped = result.is_err();
        result
    }

    fn read_rows(&mut self, limit: usize, into: &mut Vec<Row<R>>) -> Result<Status, SourceError> {
        for count in 0..limit {
            let decoded = match self.next(count == 0)? {
                Scan::Record => match &mut self.rows {
                    Rows::Csv(rows) => rows.decode(self.time_format),
                    Rows::Json(rows) => rows.decode(&self.input, self.time_format),
                },
                Scan::Broken(reason) => Err(FieldError::new(reason)),
                Scan::End => return Ok(Status::Ended),
                Scan::Pause => return Ok(Status::More),
            };
            match decoded {
                Ok((time, record)) => into.push(Row { time, position: self.position, record }),
                Err(error) => self.handle_bad_line(error)?,
            }
            self.position += 1;
        }
        Ok(Status::More)
    }

    /// Passes over records, so that the next row read is that of the given position. Bad lines on the
    /// way are not looked at.
    ///
    /// # Errors
    ///
    /// If that position lies behind, or beyond the end of the file, and if the file cannot be read.
    pub fn skip_to(&mut self, position: u64) -> Result<(), SourceError> {
        self.check_stopped()?;
        if position < self.position {
            return Err(SourceError::Backwards {
                path: self.input.path().to_owned(),
                position: self.position,
                requested: position,
            });
        }
        let result = self.skip_rows(position);
        self.stopped = result.is_err();
        result
    }

    fn skip_rows(&mut self, position: u64) -> Result<(), SourceError> {
        while self.position < position {
            if self.next(true)? == Scan::End {
                return Err(SourceError::TooShort {
                    path: self.input.path().to_owned(),
                    records: self.position,
                    requested: position,
                });
            }
            self.position += 1;
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self, may_wait: bool) -> Result<Scan, SourceError> {
        let may_wait = may_wait || !self.input.may_wait();
        match &mut self.rows {
            Rows::Csv(rows) => rows.next(&mut self.input, may_wait),
            Rows::Json(rows) => rows.next(&mut self.input, may_wait),
        }
    }

    #[cold]
    fn handle_bad_line(&mut self, error: FieldError) -> Result<(), SourceError> {
        let path = || self.input.path().to_owned();
        let line = match &self.rows {
            Rows::Csv(rows) => rows.line(),
            Rows::Json(rows) => rows.line(),
        };
        let fault = error.into_fault();
        if fault.no_unit && self.position == 0 {
            return Err(SourceError::TimeUnit {
                path: path(),
                line,
                field: fault.field.unwrap_or_default(),
                text: fault.text.unwrap_or_default(),
            });
        }
        let keep = self.policy == BadLines::Fail || self.bad_lines.first.len() < KEPT_BAD_LINES;
        let bad_line = keep.then(|| BadLine {
            path: path(),
            line,
            position: self.position,
            field: fault.field,
            text: fault.text,
            reason: fault.reason,
        });
        match (self.policy, bad_line) {
            (BadLines::Fail, Some(bad_line)) => return Err(SourceError::BadLine(bad_line)),
            (_, bad_line) => self.bad_lines.first.extend(bad_line),
        }
        self.bad_lines.total += 1;
        Ok(())
    }

    fn check_stopped(&self) -> Result<(), SourceError> {
        if self.stopped {
            return Err(SourceError::Stopped { path: self.input.path().to_owned() });
        }
        Ok(())
    }
}

impl<R> TraceReader<R> {
    /// The file's path, as errors show it.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// The position of the next line of data.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The lines that were left out so far. Those that [`skip_to`](TraceReader::skip_to) passed over are
    /// not among them.
    #[must_use]
    pub fn bad_lines(&self) -> &BadLineReport {
        &self.bad_lines
    }

    /// A handle on how far the file has been read, for showing it.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.input.progress()
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Rows::Csv(_) => "Csv",
            Rows::Json(_) => "Json",
        })
    }
}

/// Guesses the format from the first line that is not blank.
fn guess_format(input: &mut Input) -> Result<Format, SourceError> {
    loop {
        let buffered = input.buffered();
        let text = buffered.trim_ascii_start();
        let line_ends = text.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        if line_ends || text.starts_with(b"{") || buffered.len() >= GUESS_BYTES {
            return Ok(Format::from_content(buffered));
        }
        if !input.fill_more()? {
            return Ok(Format::from_content(input.buffered()));
        }
    }
}
