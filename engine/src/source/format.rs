//! The formats of a trace, and how one is guessed when the user does not say.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use clap::ValueEnum;

/// How the rows of a trace are written.
///
/// ```
/// use tidegate::source::Format;
///
/// assert_eq!("jsonl".parse(), Ok(Format::JsonLines));
/// assert_eq!(Format::Tsv.to_string(), "tsv");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header line (RFC 4180): fields may be quoted with `"`, and a quoted
    /// field may hold commas, line ends and, doubled, quotes. Lines end in LF, CRLF or CR.
    Csv,
    /// As [`Format::Csv`], but separated by tabs. Quotes mean the same.
    Tsv,
    /// One JSON object on each line.
    #[value(name = "jsonl", alias = "ndjson", alias = "json")]
    JsonLines,
}

impl Format {
    /// Guesses from a file name's extension; that of a compression (`.gz`, `.zst`) is passed over.
    ///
    /// ```
    /// use std::path::Path;
    /// use tidegate::source::Format;
    ///
    /// assert_eq!(Format::from_file_name(Path::new("trips/2023.CSV.gz")), Some(Format::Csv));
    /// assert_eq!(Format::from_file_name(Path::new("edits.ndjson.zst")), Some(Format::JsonLines));
    /// assert_eq!(Format::from_file_name(Path::new("access.log")), None);
    /// ```
    #[must_use]
    pub fn from_file_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "csv" => Some(Format::Csv),
            "tsv" => Some(Format::Tsv),
            "jsonl" | "ndjson" | "json" => Some(Format::JsonLines),
            _ => None,
        }
    }

    /// Guesses from the beginning of the (decompressed) content: JSON Lines if the first byte that is not
    /// blank is `{`, TSV if the first line that is not blank has a tab, else CSV.
    ///
    /// ```
    /// use tidegate::source::Format;
    ///
    /// assert_eq!(Format::from_content(b"\n {\"time\": 1}"), Format::JsonLines);
    /// assert_eq!(Format::from_content(b"time\tkey\n1,5\ta\n"), Format::Tsv);
    /// assert_eq!(Format::from_content(b""), Format::Csv);
    /// ```
    #[must_use]
    pub fn from_content(beginning: &[u8]) -> Format {
        match first_line(beginning) {
            Some(line) if line.trim_ascii_start().starts_with(b"{") => Format::JsonLines,
            Some(line) if line.contains(&b'\t') => Format::Tsv,
            _ => Format::Csv,
        }
    }
}

/// The first line that is not blank, without its end.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    bytes.split(|byte| matches!(byte, b'\n' | b'\r')).find(|line| !line.trim_ascii().is_empty())
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::JsonLines => "jsonl",
        })
    }
}

/// A word that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no format of a trace; say csv, tsv or jsonl")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Format, UnknownFormat> {
        <Format as ValueEnum>::from_str(word, true).map_err(|_| UnknownFormat(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_read_from_the_word_it_shows() {
        for format in Format::value_variants() {
            assert_eq!(format.to_string().parse(), Ok(*format));
        }
        assert_eq!("json".parse(), Ok(Format::JsonLines));
        assert_eq!("xml".parse::<Format>(), Err(UnknownFormat("xml".into())));
    }

    #[test]
    fn the_name_decides_by_its_last_extension_before_that_of_the_compression() {
        let cases = [
            ("a.csv", Some(Format::Csv)),
            ("a.tsv.gz", Some(Format::Tsv)),
            ("a.json.zst", Some(Format::JsonLines)),
            ("a.csv.bak", None),
            ("a.gz", None),
            (".csv", Some(Format::Csv)),
            ("csv", None),
            ("-", None),
            ("..", None),
        ];
        for (name, format) in cases {
            assert_eq!(Format::from_file_name(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn the_content_decides_by_its_first_line_that_is_not_blank() {
        assert_eq!(Format::from_content(b"\r\n \n\t{\"a\":1}"), Format::JsonLines);
        assert_eq!(Format::from_content(b"\t\n\na\tb\n"), Format::Tsv);
        assert_eq!(Format::from_content(b"\ta\tb\n"), Format::Tsv);
        assert_eq!(Format::from_content(b"a,b\n\t\n"), Format::Csv);
        assert_eq!(Format::from_content(b"\n\n"), Format::Csv);
    }
}
