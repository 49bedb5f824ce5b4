//! A result as a row of text.

use super::time_text::time_text;
use crate::source::TimeFormat;
use serde::Serialize;
use serde_json::Value;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum RowFormat {
    /// Comma-separated values with a header line.
    #[default]
    Csv,
    /// Tab-separated values with a header line.
    Tsv,
    /// One JSON object a line.
    Jsonl,
}

impl RowFormat {
    /// The end of a file's name.
    pub fn extension(self) -> &'static str {
        match self {
            RowFormat::Csv => "csv",
            RowFormat::Tsv => "tsv",
            RowFormat::Jsonl => "jsonl",
        }
    }
}

/// Turns results into rows of one format.
#[derive(Debug, Clone)]
pub struct RowWriter {
    format: RowFormat,
    columns: Vec<String>,
    time_format: TimeFormat,
}

impl RowWriter {
    /// Rows with these columns, the time in front of them.
    pub fn new(format: RowFormat, columns: Vec<String>, time_format: TimeFormat) -> Self {
        RowWriter { format, columns, time_format }
    }

    /// The header line, where the format has one.
    pub fn header(&self) -> Option<String> {
        let names = std::iter::once("time").chain(self.columns.iter().map(String::as_str));
        match self.format {
            RowFormat::Csv => Some(self.line(names)),
            RowFormat::Tsv => Some(self.line(names)),
            RowFormat::Jsonl => None,
        }
    }

    /// The fields of a result, one for each column: a tuple's fields, or a struct's, and where
    /// that makes too few, those of the tuples and structs within.
    ///
    /// # Errors
    /// A reason in words where the result cannot be written, or has another number of fields.
    pub fn fields<D: Serialize>(&self, data: &D) -> Result<Vec<Value>, String> {
        let value = serde_json::to_value(data).map_err(|error| error.to_string())?;
        let mut fields = opened(value);
        while fields.len() < self.columns.len() {
            let before = fields.len();
            fields = fields.into_iter().flat_map(opened).collect();
            if fields.len() == before {
                break;
            }
        }
        // A unit has no field.
        fields.retain(|field| !(self.columns.is_empty() && field.is_null()));
        if fields.len() != self.columns.len() {
            return Err(format!(
                "a result has {} fields, and the sink names {} columns ({})",
                fields.len(),
                self.columns.len(),
                self.columns.join(", "),
            ));
        }
        Ok(fields)
    }

    /// The whole row of a result, its line end included.
    ///
    /// # Errors
    /// As for [`fields`](Self::fields).
    pub fn row<D: Serialize>(&self, time: i64, data: &D) -> Result<String, String> {
        let fields = self.fields(data)?;
        let time = time_text(self.time_format, time);
        let mut row = match self.format {
            RowFormat::Csv | RowFormat::Tsv => {
                let fields: Vec<String> = fields.into_iter().map(plain).collect();
                self.line(std::iter::once(time.as_str()).chain(fields.iter().map(String::as_str)))
            }
            RowFormat::Jsonl => {
                let time = time.parse::<i64>().map_or(Value::String(time), Value::from);
                let mut object = serde_json::Map::new();
                object.insert("time".to_string(), time);
                object.extend(self.columns.iter().cloned().zip(fields));
                Value::Object(object).to_string()
            }
        };
        row.push('\n');
        Ok(row)
    }

    /// Fields as a CSV line, without a line end.
    pub fn csv_line(&self, fields: &[Value]) -> String {
        let fields: Vec<String> = fields.iter().cloned().map(plain).collect();
        self.line(fields.iter().map(String::as_str))
    }

    fn line<'a>(&self, fields: impl Iterator<Item = &'a str>) -> String {
        let delimiter = if self.format == RowFormat::Tsv { b'\t' } else { b',' };
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
        // Writing to memory cannot fail, and what was text stays text.
        let _ = writer.write_record(fields);
        let mut line = writer.into_inner().unwrap_or_default();
        line.pop();
        String::from_utf8_lossy(&line).into_owned()
    }
}

/// What is within a tuple or a struct; anything else itself.
fn opened(value: Value) -> Vec<Value> {
    match value {
        Value::Array(fields) => fields,
        Value::Object(fields) => fields.into_iter().map(|(_, value)| value).collect(),
        other => vec![other],
    }
}

/// A field without quotes: text as it is, nothing for null.
fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(format: RowFormat, columns: &[&str]) -> RowWriter {
        RowWriter::new(format, columns.iter().map(|column| column.to_string()).collect(), TimeFormat::Raw)
    }

    #[test]
    fn tuples_are_opened_until_the_columns_fit() {
        let data = ("k,1", (3u64, 0.5f64));
        assert_eq!(writer(RowFormat::Csv, &["key", "n", "x"]).row(-7, &data).unwrap(), "-7,\"k,1\",3,0.5\n");
        assert_eq!(
            writer(RowFormat::Csv, &["key", "pair"]).row(1, &data).unwrap(),
            "1,\"k,1\",\"[3,0.5]\"\n"
        );
        let jsonl = writer(RowFormat::Jsonl, &["key", "n", "x"]).row(1, &data).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&jsonl).unwrap(),
            serde_json::json!({"time": 1, "key": "k,1", "n": 3, "x": 0.5})
        );
        assert_eq!(
            writer(RowFormat::Tsv, &["key", "v"]).row(1, &("a\tb", None::<u8>)).unwrap(),
            "1\t\"a\tb\"\t\n"
        );
        assert_eq!(writer(RowFormat::Csv, &[]).row(1, &()).unwrap(), "1\n");
    }

    #[test]
    fn a_row_that_does_not_fit_is_refused_with_both_numbers() {
        let reason = writer(RowFormat::Csv, &["key", "a", "b"]).row(1, &("k", 1)).unwrap_err();
        assert!(reason.contains("2 fields") && reason.contains("3 columns"), "{reason}");
    }
}
