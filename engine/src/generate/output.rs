//! How the records of a trace look in a file.

use super::error::{GenerateError, Place};
use serde::{Deserialize, Serialize};

/// Most digits after the decimal point; one more and not every `i64` power of ten exists.
pub const MAX_DECIMALS: u8 = 18;
/// Most digits that a key is filled up to.
const MAX_KEY_DIGITS: u8 = 20;
/// Largest payload of a record.
const MAX_PAYLOAD_BYTES: u32 = 1 << 20;

/// What [`is_plain_name`] asks for, in words.
pub(super) const NAME_RULE: &str =
    "give 1 to 64 letters of the English alphabet, digits, '_', '-', '.', ':' or '/'";

/// True if `name` can stand in every format as it is, without quotes or escapes.
pub(super) fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && has_plain_letters(name)
}

fn has_plain_letters(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte))
}

/// The format of a file, its columns, and how each is written. The columns are time, key, value,
/// then the stream and the payload if they are asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputSpec {
    /// One line a record: of which kind.
    pub format: TextFormat,
    /// How the file is compressed.
    pub compression: Compression,
    /// Whether the first line names the columns. (JSON Lines name them in each.)
    pub header: bool,
    /// How times are written.
    pub time: TimeFormat,
    /// Name of the time column.
    pub time_column: String,
    /// How keys are written.
    pub key: KeyFormat,
    /// Name of the key column.
    pub key_column: String,
    /// Digits after the decimal point: a value of 1234 with 2 decimals is written as 12.34.
    pub decimals: u8,
    /// Name of the value column.
    pub value_column: String,
    /// Name of a column with the name of the record's stream; none without.
    pub stream_column: Option<String>,
    /// A column of random letters, for records of a larger size.
    pub payload: Option<PayloadSpec>,
}

impl Default for OutputSpec {
    fn default() -> Self {
        Self {
            format: TextFormat::Csv,
            compression: Compression::None,
            header: true,
            time: TimeFormat::Milliseconds,
            time_column: "time".to_owned(),
            key: KeyFormat::Number,
            key_column: "key".to_owned(),
            decimals: 0,
            value_column: "value".to_owned(),
            stream_column: None,
            payload: None,
        }
    }
}

/// Kinds of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextFormat {
    /// Fields with commas between them.
    #[default]
    Csv,
    /// Fields with tabs between them.
    Tsv,
    /// A JSON object in each line.
    Jsonl,
}

/// Ways to compress a file. Neither writes a name or a time into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Compression {
    /// As it is.
    #[default]
    None,
    /// RFC 1952, file names ending in `.gz`.
    Gzip,
    /// RFC 8878, file names ending in `.zst`.
    Zstd,
}

/// Ways to write an event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeFormat {
    /// Whole microseconds since 1970.
    Microseconds,
    /// Whole milliseconds since 1970, rounded down.
    #[default]
    Milliseconds,
    /// Whole seconds since 1970, rounded down.
    Seconds,
    /// Date and time of UTC to the millisecond, rounded down: `2024-01-31T23:59:59.999Z`.
    Rfc3339,
    /// Date and time of UTC to the microsecond.
    Rfc3339Microseconds,
}

/// Ways to write a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum KeyFormat {
    /// A number.
    #[default]
    Number,
    /// A text: the prefix, then the number, with zeros before it if it is short. `k` and 6 digits
    /// give `k000123`.
    Text {
        /// What stands before the number.
        prefix: String,
        /// How many digits the number has at least.
        digits: u8,
    },
}

/// A column of random letters (`a` to `p`, so half a byte of information each), a function of the
/// record alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadSpec {
    /// Name of the column.
    pub column: String,
    /// The shortest, in bytes.
    pub min_bytes: u32,
    /// The longest (included); each length between is equally likely.
    pub max_bytes: u32,
}

impl OutputSpec {
    pub(super) fn validate(&self, place: Place<'_>) -> Result<(), GenerateError> {
        let payload = self.payload.as_ref();
        let columns = [
            ("time_column", Some(&self.time_column)),
            ("key_column", Some(&self.key_column)),
            ("value_column", Some(&self.value_column)),
            ("stream_column", self.stream_column.as_ref()),
            ("payload", payload.map(|payload| &payload.column)),
        ];
        for (index, (field, name)) in columns.iter().enumerate() {
            let Some(name) = name else {
                continue;
            };
            let place = place.field(field);
            place.require(is_plain_name(name), || format!("{name:?}: {NAME_RULE}"))?;
            let taken = columns[..index].iter().any(|other| other.1 == Some(name));
            place.require(!taken, || format!("another column is called {name:?} too"))?;
        }
        place.field("decimals").require(self.decimals <= MAX_DECIMALS, || {
            format!("{} is more than {MAX_DECIMALS}", self.decimals)
        })?;
        if let KeyFormat::Text { prefix, digits } = &self.key {
            let place = place.field("key");
            place.field("prefix").require(prefix.len() <= 64 && has_plain_letters(prefix), || {
                format!("{prefix:?}: {NAME_RULE}, or nothing")
            })?;
            place
                .field("digits")
                .require(*digits <= MAX_KEY_DIGITS, || format!("{digits} is more than {MAX_KEY_DIGITS}"))?;
        }
        if let Some(payload) = payload {
            place.field("payload").require(
                payload.min_bytes <= payload.max_bytes && payload.max_bytes <= MAX_PAYLOAD_BYTES,
                || {
                    format!(
                        "{} to {} bytes is not a range up to {MAX_PAYLOAD_BYTES}",
                        payload.min_bytes, payload.max_bytes
                    )
                },
            )?;
        }
        Ok(())
    }
}
