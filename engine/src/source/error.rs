//! What can go wrong while a trace is read. Every variant names the file: a job reads many, and
//! "unexpected end of input" alone sends its user on a search.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::input::Compression;

/// How many fields an error lists before it stops: a header may have thousands.
const LISTED_FIELDS: usize = 40;

/// An error of opening or reading a trace.
///
/// The message holds all that is known; no variant keeps its cause as a [`source`], so that
/// a printed chain of causes does not say everything twice.
///
/// [`source`]: std::error::Error::source
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file could not be opened.
    #[error("{}: cannot be opened: {cause}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },

    /// The file could not be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },

    /// Compressed data is damaged or ends too early.
    #[error("{}: the {compression} data is damaged or cut off: {cause}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
        /// What the decoder said.
        cause: io::Error,
    },

    /// A CSV or TSV file without a usable header line.
    #[error("{}: no usable header line: {reason}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The header lacks a field that is mapped or that the pipeline's record needs.
    #[error(
        "{}: there is no field `{field}`, which {needed}; the fields there are: {}",
        path.display(),
        FieldList(available)
    )]
    MissingField {
        /// The file.
        path: PathBuf,
        /// The field that is not there.
        field: String,
        /// What it is needed for.
        needed: FieldUse,
        /// The fields of the header, in its order.
        available: Vec<String>,
    },

    /// The header has a needed field more than once, so it is unclear which one is meant.
    #[error("{}: the header names the field `{field}`, which {needed}, more than once", path.display())]
    RepeatedField {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// What it is needed for.
        needed: FieldUse,
    },

    /// A field mapping with an empty name in it.
    #[error("{}: the field that {needed} has an empty name (`{given}`)", path.display())]
    EmptyFieldName {
        /// The file that was to be read with the mapping.
        path: PathBuf,
        /// What the field is needed for.
        needed: FieldUse,
        /// The option's whole text.
        given: String,
    },

    /// The pipeline's record type is not one that a row of named fields can become.
    #[error(
        "{}: rows cannot be read as `{record}`: it asks for {asked}, and a row is a struct with \
         named fields, a map, or the unit type",
        path.display()
    )]
    RecordType {
        /// The file that was to be read.
        path: PathBuf,
        /// Name of the Rust type.
        record: &'static str,
        /// What its `Deserialize` asks for.
        asked: &'static str,
    },

    /// The first row's time is a bare number and no unit is known. An error under every policy for bad
    /// lines, as it is a missing option and would make all lines bad.
    #[error("{}: line {line}: field `{field}`: `{text}` is a number without a unit; pass --time-unit \
             s, ms, us, ns or raw", path.display())]
    TimeUnit {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The field of the event time.
        field: String,
        /// Its text, shortened.
        text: String,
    },

    /// A line that cannot be read, under [`BadLines::Fail`](super::BadLines::Fail).
    #[error("{0}")]
    BadLine(BadLine),

    /// [`skip_to`](super::TraceReader::skip_to) was asked to go back.
    #[error("{}: cannot go back to record {requested}, as {position} records are already read; open the \
             file anew", path.display())]
    Backwards {
        /// The file.
        path: PathBuf,
        /// Records read so far.
        position: u64,
        /// The position asked for.
        requested: u64,
    },

    /// The file ends before the position from which reading should go on.
    #[error("{}: cannot go on at record {requested}, as the file has only {records} records; it must be \
             the file that was read before, unshortened", path.display())]
    TooShort {
        /// The file.
        path: PathBuf,
        /// Records in the file.
        records: u64,
        /// The position asked for.
        requested: u64,
    },

    /// The reader was used again after an error.
    #[error("{}: reading has stopped at an earlier error", path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
}

/// What a field is needed for; reads as the end of "the field `x`, which ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldUse {
    /// It is mapped as the event time.
    Time,
    /// It is mapped as the key, or a part of it.
    Key,
    /// It is mapped as the value.
    Value,
    /// The pipeline's record has it.
    Record,
    /// The pipeline's record has a `key`, and none is mapped.
    UnmappedKey,
    /// The pipeline's record has a `value`, and none is mapped.
    UnmappedValue,
}

impl FieldUse {
    /// The use of a field that the pipeline's record has and that is not mapped.
    pub(super) fn of_record(field: &str) -> FieldUse {
        match field {
            "key" => FieldUse::UnmappedKey,
            "value" => FieldUse::UnmappedValue,
            _ => FieldUse::Record,
        }
    }
}

impl fmt::Display for FieldUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldUse::Time => "--time asks for",
            FieldUse::Key => "--key asks for",
            FieldUse::Value => "--value asks for",
            FieldUse::Record => "the pipeline needs",
            FieldUse::UnmappedKey => "the pipeline needs (pass --key to say which field is the key)",
            FieldUse::UnmappedValue => "the pipeline needs (pass --value to say which field is the value)",
        })
    }
}

/// A line that could not be read as a record, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// The file.
    pub path: PathBuf,
    /// The line on which the record begins, counted from 1, blank lines and the header included.
    pub line: u64,
    /// The record's ordinal in the file, counted from 0, as [`Row::position`](super::Row::position).
    pub position: u64,
    /// The field at fault, where it is one.
    pub field: Option<String>,
    /// The field's text, shortened.
    pub text: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: line {}: ", self.path.display(), self.line)?;
        if let Some(field) = &self.field {
            write!(f, "field `{}`: ", shorten(field.as_bytes()))?;
        }
        if let Some(text) = &self.text {
            write!(f, "`{text}`: ")?;
        }
        f.write_str(&self.reason)
    }
}

/// Text for a message: at most 60 characters, control characters and invalid UTF-8 made visible.
pub(super) fn shorten(bytes: &[u8]) -> String {
    const LONGEST_CHARS: usize = 60;
    // A character has at most four bytes, so nothing is lost by looking at these alone.
    let head = &bytes[..bytes.len().min(4 * LONGEST_CHARS)];
    let text = String::from_utf8_lossy(head);
    let mut short = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == LONGEST_CHARS {
            break;
        }
        if character.is_control() {
            short.extend(character.escape_default());
        } else {
            short.push(character);
        }
    }
    if head.len() < bytes.len() || text.chars().nth(LONGEST_CHARS).is_some() {
        short.push('…');
    }
    short
}

/// Field names for a message.
struct FieldList<'a>(&'a [String]);

impl fmt::Display for FieldList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().take(LISTED_FIELDS).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{}`", shorten(name.as_bytes()))?;
        }
        match self.0.len().saturating_sub(LISTED_FIELDS) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_and_control_characters_are_shown() {
        assert_eq!(shorten(b"plain"), "plain");
        assert_eq!(shorten("a\tb\n".as_bytes()), "a\\tb\\n");
        assert_eq!(shorten(&[b'x'; 60]), "x".repeat(60));
        assert_eq!(shorten(&[b'x'; 61]), "x".repeat(60) + "…");
        assert_eq!(shorten("ß".repeat(100).as_bytes()), "ß".repeat(60) + "…");
        assert_eq!(shorten(b"\xff!"), "\u{fffd}!");
    }

    #[test]
    fn a_bad_line_reads_as_file_line_field_text_reason() {
        let bad = BadLine {
            path: PathBuf::from("flights.csv"),
            line: 7,
            position: 5,
            field: Some("distance_mi".into()),
            text: Some("far".into()),
            reason: "is not a number".into(),
        };
        let text = "flights.csv: line 7: field `distance_mi`: `far`: is not a number";
        assert_eq!(bad.to_string(), text);
        assert_eq!(SourceError::BadLine(bad).to_string(), text);
    }

    #[test]
    fn a_long_header_is_not_listed_in_full() {
        let names: Vec<String> = (0..100).map(|index| format!("f{index}")).collect();
        let text = FieldList(&names).to_string();
        assert!(text.starts_with("`f0`, `f1`, "), "{text}");
        assert!(text.ends_with("`f39` and 60 more"), "{text}");
    }
}
