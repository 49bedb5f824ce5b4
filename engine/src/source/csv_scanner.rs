//! Splits CSV and TSV into records.
//!
//! The grammar is that of the `csv` crate, whose core does the work. What is done here instead of in its
//! `Reader` are limits: a quote that is never closed makes the rest of a file one record, and a reader
//! that collects whatever comes would put all of it into memory.

use csv_core::ReadRecordResult;

use super::error::SourceError;
use super::input::Input;
use super::scan::Scan;

/// More fields than this are no header.
const MAX_COLUMNS: usize = 65_536;

/// Splits CSV and TSV into records, and holds the record read last.
pub(super) struct CsvScanner {
    core: csv_core::Reader,
    limit_bytes: usize,
    /// The fields of the record, unquoted, one after the other.
    text: Vec<u8>,
    /// Field `i` is `text[bounds[i]..bounds[i + 1]]`. Beyond the expected number of fields there is room
    /// for one more, so that memory stays bounded whatever a line holds; of a record that has more
    /// fields only their number is kept.
    bounds: Vec<usize>,
    /// Number of fields of the record.
    field_count: usize,
    /// Number of fields that the header has; `None` while it is not read.
    columns: Option<usize>,
    /// Line of the next unread byte, counted from 1.
    line: u64,
    /// Line on which the record begins.
    record_line: u64,
}

impl CsvScanner {
    pub(super) fn new(delimiter: u8, limit_bytes: usize) -> CsvScanner {
        let mut core = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        start(&mut core);
        CsvScanner {
            core,
            limit_bytes,
            text: vec![0; 4096],
            bounds: vec![0; 65],
            field_count: 0,
            columns: None,
            line: 1,
            record_line: 1,
        }
    }

    /// Line on which the record read last begins.
    pub(super) fn record_line(&self) -> u64 {
        self.record_line
    }

    /// Number of fields of the record read last.
    pub(super) fn field_count(&self) -> usize {
        self.field_count
    }

    /// A field of the record read last, which has as many fields as the header.
    #[inline]
    pub(super) fn field(&self, index: usize) -> &[u8] {
        &self.text[self.bounds[index]..self.bounds[index + 1]]
    }

    /// Reads the header and fixes the number of columns; `None` for an input without any line.
    pub(super) fn read_header(&mut self, input: &mut Input) -> Result<Option<Vec<String>>, SourceError> {
        let unusable =
            |input: &Input, reason: String| SourceError::Header { path: input.path().to_owned(), reason };
        match self.next(input, true)? {
            Scan::Record => {}
            Scan::End | Scan::Pause => return Ok(None),
            Scan::Broken(reason) => return Err(unusable(input, reason.to_owned())),
        }
        if self.field_count > MAX_COLUMNS {
            return Err(unusable(input, format!("it has more than {MAX_COLUMNS} fields")));
        }
        let name = |index| String::from_utf8_lossy(self.field(index).trim_ascii()).into_owned();
        let names: Vec<String> = (0..self.field_count).map(name).collect();
        self.columns = Some(names.len());
        self.bounds.resize(names.len() + 2, 0);
        Ok(Some(names))
    }

    /// Reads the next record that is not blank.
    pub(super) fn next(&mut self, input: &mut Input, may_wait: bool) -> Result<Scan, SourceError> {
        loop {
            match self.skip_line_ends(input, may_wait)? {
                Scan::Record => {}
                other => return Ok(other),
            }
            let scan = self.read_record(input)?;
            if scan != Scan::Record || !self.is_blank() {
                return Ok(scan);
            }
        }
    }

    /// Passes over line ends, so that the next byte begins a record and its line is known.
    fn skip_line_ends(&mut self, input: &mut Input, may_wait: bool) -> Result<Scan, SourceError> {
        loop {
            if !may_wait && input.buffered().is_empty() {
                return Ok(Scan::Pause);
            }
            let bytes = input.fill()?;
            if bytes.is_empty() {
                return Ok(Scan::End);
            }
            let mut count = 0;
            while let Some(b'\r' | b'\n') = bytes.get(count) {
                self.line += u64::from(bytes[count] == b'\n');
                count += 1;
            }
            let more = count < bytes.len();
            input.consume_bytes(count);
            if more {
                return Ok(Scan::Record);
            }
        }
    }

    /// Reads a record, of which the first byte is buffered.
    fn read_record(&mut self, input: &mut Input) -> Result<Scan, SourceError> {
        self.record_line = self.line;
        self.field_count = 0;
        let (mut read, mut text_end, mut stored) = (0, 0, 0);
        let line_before = self.core.line();
        loop {
            let room = self.limit_bytes - read;
            if room == 0 {
                return self.give_up(input, line_before);
            }
            let buffered = input.fill()?;
            // A line feed behind the last line ends its record like any other; and if it does not, it
            // stands within quotes that were never closed.
            let at_end = buffered.is_empty();
            let bytes = if at_end { b"\n" } else { &buffered[..buffered.len().min(room)] };
            let (result, count, text_count, fields) =
                self.core.read_record(bytes, &mut self.text[text_end..], &mut self.bounds[stored + 1..]);
            text_end += text_count;
            stored += fields;
            self.field_count += fields;
            if !at_end {
                input.consume_bytes(count);
                read += count;
            }
            match result {
                ReadRecordResult::Record => break,
                ReadRecordResult::InputEmpty if at_end => {
                    start(&mut self.core);
                    return Ok(Scan::Broken("the file ends within a quoted field"));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.text.resize(2 * self.text.len(), 0),
                ReadRecordResult::OutputEndsFull => stored = self.more_fields(stored),
                // Only an empty input gives this, and none is ever handed over.
                ReadRecordResult::End => return Ok(Scan::End),
            }
        }
        self.line += self.core.line() - line_before;
        Ok(Scan::Record)
    }

    /// Makes room for more fields, at the cost of those stored if there are too many already.
    fn more_fields(&mut self, stored: usize) -> usize {
        if self.columns.is_some() || stored > MAX_COLUMNS {
            return 0;
        }
        self.bounds.resize(2 * self.bounds.len(), 0);
        stored
    }

    /// Abandons a record that is too long, and goes on behind the next line feed. Where that is depends
    /// on the bytes alone, not on how they came in, so that later records keep their ordinals.
    fn give_up(&mut self, input: &mut Input, line_before: u64) -> Result<Scan, SourceError> {
        self.line += self.core.line() - line_before;
        start(&mut self.core);
        self.line += u64::from(input.discard_line()?);
        Ok(Scan::TOO_LONG)
    }

    /// Whether the record is a line of nothing but blanks, where that cannot be its only field.
    fn is_blank(&self) -> bool {
        self.field_count == 1
            && self.columns != Some(1)
            && !self.field(0).is_empty()
            && self.field(0).trim_ascii().is_empty()
    }
}

/// Puts the core before a record. Of its first bytes it would drop a byte order mark, but only if the mark
/// comes in one piece; so it is given a blank line for its first. The input's own mark is gone already.
fn start(core: &mut csv_core::Reader) {
    core.reset();
    core.read_record(b"\n", &mut [0], &mut [0]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All records of a text: their first lines, and their fields or why they are broken.
    fn scan(text: &str, limit_bytes: usize) -> Vec<(u64, Result<Vec<String>, &'static str>)> {
        let mut input = Input::from_reader("x", std::io::Cursor::new(text.to_owned()), None).unwrap();
        let mut scanner = CsvScanner::new(b',', limit_bytes);
        scanner.read_header(&mut input).unwrap();
        let columns = scanner.columns.unwrap_or_default();
        let mut records = Vec::new();
        loop {
            let record = match scanner.next(&mut input, true).unwrap() {
                Scan::Record if scanner.field_count() > columns => Err("too many"),
                Scan::Record => {
                    let field = |index| String::from_utf8_lossy(scanner.field(index)).into_owned();
                    Ok((0..scanner.field_count()).map(field).collect())
                }
                Scan::Broken(reason) => Err(reason),
                Scan::End | Scan::Pause => return records,
            };
            records.push((scanner.record_line(), record));
        }
    }

    fn fields(names: &[&str]) -> Result<Vec<String>, &'static str> {
        Ok(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn the_line_of_a_record_is_where_it_begins() {
        let text = "\n\na,b\r\n\r\n1,\"x\ny\"\n  \n\n2,z\r3,\"\r\n\"\n4,w";
        assert_eq!(
            scan(text, 1000),
            [
                (5, fields(&["1", "x\ny"])),
                (9, fields(&["2", "z"])),
                (9, fields(&["3", "\r\n"])),
                (11, fields(&["4", "w"])),
            ]
        );
    }

    #[test]
    fn a_quote_that_is_never_closed_is_seen_at_the_end() {
        let open = Err("the file ends within a quoted field");
        assert_eq!(scan("a,b\n1,\"x\n2,y\n", 1000), [(2, open.clone())]);
        assert_eq!(scan("a,b\n1,\"x\"\"", 1000), [(2, open)]);
        assert_eq!(scan("a,b\n1,\"x\"", 1000), [(2, fields(&["1", "x"]))]);
        assert_eq!(scan("a,b\n1,x\"", 1000), [(2, fields(&["1", "x\""]))]);
    }

    #[test]
    fn a_record_beyond_the_limit_is_abandoned_at_the_next_line_feed() {
        let text = format!("a,b\n1,{}\n2,\"{}\n3,\"x\ny\"\n", "x".repeat(100), "\n".repeat(50));
        let long = "the line is longer than the limit for lines";
        assert_eq!(scan(&text, 40), [(2, Err(long)), (3, Err(long)), (54, fields(&["3", "x\ny"]))]);
        assert_eq!(
            scan("a,b\n1,34\n1,345\n1,3", 5),
            [(2, fields(&["1", "34"])), (3, Err(long)), (4, fields(&["1", "3"]))]
        );
    }

    #[test]
    fn a_byte_order_mark_within_the_data_is_data() {
        let text = format!("\u{feff}\u{feff}a,b\n1,{}\n\u{feff}2,3\n", "x".repeat(100));
        let mut input = Input::from_reader("x", std::io::Cursor::new(text.clone()), None).unwrap();
        let names = CsvScanner::new(b',', 40).read_header(&mut input).unwrap().unwrap();
        assert_eq!(names, ["\u{feff}a", "b"]);
        let long = "the line is longer than the limit for lines";
        assert_eq!(scan(&text, 40), [(2, Err(long)), (3, fields(&["\u{feff}2", "3"]))]);
    }

    #[test]
    fn records_of_any_number_of_fields_are_counted_in_bounded_memory() {
        let text = format!("a,b\n{}\n1,2\n", ",".repeat(1_000_000));
        let mut input = Input::from_reader("x", std::io::Cursor::new(text), None).unwrap();
        let mut scanner = CsvScanner::new(b',', usize::MAX);
        assert_eq!(scanner.read_header(&mut input).unwrap().unwrap().len(), 2);
        assert_eq!(scanner.next(&mut input, true).unwrap(), Scan::Record);
        assert_eq!(scanner.field_count(), 1_000_001);
        assert!(scanner.bounds.len() < 10);
        assert_eq!(scanner.next(&mut input, true).unwrap(), Scan::Record);
        assert_eq!((scanner.field(0), scanner.field(1)), (&b"1"[..], &b"2"[..]));
    }

    #[test]
    fn a_header_may_be_wide_but_not_endless() {
        let wide = ",".repeat(MAX_COLUMNS - 1);
        let read = |text: String| {
            let mut input = Input::from_reader("x", std::io::Cursor::new(text), None).unwrap();
            CsvScanner::new(b',', usize::MAX).read_header(&mut input).map(|names| names.unwrap().len())
        };
        assert_eq!(read(wide.clone()).unwrap(), MAX_COLUMNS);
        assert!(read(format!("{wide},")).unwrap_err().to_string().contains("more than 65536 fields"));
    }

    proptest! {
        #[test]
        fn records_are_those_that_the_csv_crate_reads(
            columns in 1..=3_usize,
            body in "[abc \",\r\n]{0,40}",
        ) {
            let text = format!("{}\n{body}", ["a", "a,b", "a,b,c"][columns - 1]);
            let is_blank = |record: &csv::StringRecord| {
                let blank = !record[0].is_empty() && record[0].trim_ascii().is_empty();
                columns > 1 && record.len() == 1 && blank
            };
            let read = |record: csv::StringRecord| match record.len() > columns {
                true => Err("too many"),
                false => Ok(record.iter().map(str::to_owned).collect()),
            };
            let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
            let records = reader.records().map(Result::unwrap);
            let expected: Vec<_> = records.filter(|record| !is_blank(record)).map(read).collect();
            let scanned: Vec<_> = scan(&text, 1000).into_iter().map(|(_, record)| record).collect();
            // At the very end the two may differ: the crate takes an open quote for closed.
            let open = Err("the file ends within a quoted field");
            let same = match scanned.split_last() {
                Some((last, before)) if *last == open => {
                    before.iter().eq(expected.iter().take(before.len()))
                }
                _ => scanned == expected,
            };
            prop_assert!(same, "{:?} {:?}", scanned, expected);
        }
    }
}
