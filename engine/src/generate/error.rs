//! What can go wrong between a trace's specification and its file.

use std::io;
use thiserror::Error;

/// A trace that cannot be generated, or not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A field of the specification has a value that makes no sense.
    #[error("trace specification: {field}: {problem}")]
    Invalid {
        /// Where it is, as a path from the top: `streams[0].keys.count`.
        field: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// The text is not a specification in JSON.
    #[error("trace specification: {source} (fields that are not given keep their defaults)")]
    Json {
        /// What the parser says, with line and column.
        #[from]
        source: serde_json::Error,
    },
    /// No preset has this name.
    #[error("no preset is called {name:?}; there are: {known}")]
    UnknownPreset {
        /// The name asked for.
        name: String,
        /// All names, separated by commas.
        known: String,
    },
    /// A calendar date was asked for, and the event time is beyond the calendar.
    #[error(
        "record {record}: event time {time_us} us lies outside the years 0 to 9999, which a date \
         can show: write the time as a number, or move start_us"
    )]
    TimeOutOfRange {
        /// The number of the record in the file, from 1.
        record: u64,
        /// Its event time in microseconds.
        time_us: i64,
    },
    /// The file took no more.
    #[error("writing the trace failed after {records} records: {source}")]
    Write {
        /// Records that were handed over before.
        records: u64,
        /// What the system says.
        source: io::Error,
    },
}

/// Collects the place of a field while the specification is looked over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    name: &'a str,
    index: Option<usize>,
}

impl<'a> Place<'a> {
    /// A field at the top.
    pub(super) fn top(name: &'a str) -> Self {
        Self { parent: None, name, index: None }
    }

    /// The element `index` of this list.
    pub(super) fn element(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }

    /// A field within this one.
    pub(super) fn field<'b>(&'b self, name: &'b str) -> Place<'b> {
        Place { parent: Some(self), name, index: None }
    }

    fn path(&self) -> String {
        let mut path = match self.parent {
            Some(parent) => parent.path() + "." + self.name,
            None => self.name.to_owned(),
        };
        if let Some(index) = self.index {
            path += &format!("[{index}]");
        }
        path
    }

    /// An error about this field.
    pub(super) fn invalid(&self, problem: impl Into<String>) -> GenerateError {
        GenerateError::Invalid { field: self.path(), problem: problem.into() }
    }

    /// Fails with `problem` unless `holds`.
    pub(super) fn require(&self, holds: bool, problem: impl FnOnce() -> String) -> Result<(), GenerateError> {
        if holds { Ok(()) } else { Err(self.invalid(problem())) }
    }

    /// Fails unless `value` is of `low..=high` (and so a number).
    pub(super) fn require_within(&self, value: f64, low: f64, high: f64) -> Result<(), GenerateError> {
        self.require((low..=high).contains(&value), || format!("{value} is not between {low} and {high}"))
    }

    /// Fails unless `value` is a share: 0 to 1.
    pub(super) fn require_share(&self, value: f64) -> Result<(), GenerateError> {
        self.require((0.0..=1.0).contains(&value), || {
            format!("{value} is not a share: give a number between 0 and 1")
        })
    }
}
