//! One record as a line of text, without allocating.
//!
//! Everything that is the same in each line (column names, quotes, stream names) is put together
//! once, so that a line is a few copies and conversions of numbers.

use super::generator::GeneratedRecord;
use super::output::{KeyFormat, OutputSpec, PayloadSpec, TextFormat, TimeFormat};
use super::workload::{GOLDEN_GAMMA, mix};
use itoa::Buffer;

const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;

/// An event time beyond the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BeyondCalendar;

/// Turns records into lines.
#[derive(Debug, Clone)]
pub(super) struct LineFormat {
    header: Vec<u8>,
    /// What stands before each column, quotes included.
    before_time: Vec<u8>,
    before_key: Vec<u8>,
    before_value: Vec<u8>,
    /// For each stream: its column, with what stands before it.
    streams: Option<Vec<Vec<u8>>>,
    before_payload: Vec<u8>,
    after_payload: &'static [u8],
    end: &'static [u8],
    time: TimeFormat,
    key_digits: Option<usize>,
    decimals: usize,
    payload: Option<PayloadSpec>,
    calendar: Calendar,
}

impl LineFormat {
    /// # Contract
    /// `output` and the names have been validated: none holds a character that needs an escape.
    pub(super) fn new(output: &OutputSpec, streams: &[&str]) -> Self {
        let json = output.format == TextFormat::Jsonl;
        let separator = match output.format {
            TextFormat::Csv | TextFormat::Jsonl => ",",
            TextFormat::Tsv => "\t",
        };
        // What stands between the previous column and a column's text.
        let before = |first: bool, column: &str, text: bool| {
            let separator = if first { "" } else { separator };
            if json {
                let (open, quote) = (if first { "{" } else { "" }, if text { "\"" } else { "" });
                format!("{separator}{open}\"{column}\":{quote}")
            } else {
                separator.to_owned()
            }
        };
        let quote = if json { "\"" } else { "" };
        let text_time = matches!(output.time, TimeFormat::Rfc3339 | TimeFormat::Rfc3339Microseconds);
        let (key_prefix, key_digits) = match &output.key {
            KeyFormat::Number => ("", None),
            KeyFormat::Text { prefix, digits } => (prefix.as_str(), Some(usize::from(*digits))),
        };
        let key = before(false, &output.key_column, key_digits.is_some()) + key_prefix;
        let value = before(false, &output.value_column, false);
        let time_quote = if text_time { quote } else { "" };
        let key_quote = if key_digits.is_some() { quote } else { "" };
        Self {
            header: header(output, separator),
            before_time: before(true, &output.time_column, text_time).into_bytes(),
            before_key: format!("{time_quote}{key}").into_bytes(),
            before_value: format!("{key_quote}{value}").into_bytes(),
            streams: output.stream_column.as_ref().map(|column| {
                let before = before(false, column, true);
                let column = |name: &&str| format!("{before}{name}{quote}").into_bytes();
                streams.iter().map(column).collect()
            }),
            before_payload: match &output.payload {
                Some(payload) => before(false, &payload.column, true).into_bytes(),
                None => Vec::new(),
            },
            after_payload: quote.as_bytes(),
            end: if json { b"}\n" } else { b"\n" },
            time: output.time,
            key_digits,
            decimals: usize::from(output.decimals),
            payload: output.payload.clone(),
            calendar: Calendar::default(),
        }
    }

    /// The first line, or nothing.
    pub(super) fn header(&self) -> &[u8] {
        &self.header
    }

    /// Appends the line of a record. On an error part of the line may have been appended.
    #[inline]
    pub(super) fn append(
        &mut self,
        record: &GeneratedRecord,
        line: &mut Vec<u8>,
    ) -> Result<(), BeyondCalendar> {
        line.extend_from_slice(&self.before_time);
        let time = record.time;
        match self.time {
            TimeFormat::Microseconds => append_number(time, line),
            TimeFormat::Milliseconds => append_number(time.div_euclid(1_000), line),
            TimeFormat::Seconds => append_number(time.div_euclid(SECOND_US), line),
            TimeFormat::Rfc3339 => self.calendar.append(time, 3, line)?,
            TimeFormat::Rfc3339Microseconds => self.calendar.append(time, 6, line)?,
        }
        line.extend_from_slice(&self.before_key);
        match self.key_digits {
            None => append_number(record.key, line),
            Some(digits) => append_padded(record.key, digits, line),
        }
        line.extend_from_slice(&self.before_value);
        append_decimal(record.value, self.decimals, line);
        if let Some(streams) = &self.streams
            && let Some(column) = streams.get(usize::from(record.stream))
        {
            line.extend_from_slice(column);
        }
        if let Some(payload) = &self.payload {
            line.extend_from_slice(&self.before_payload);
            append_payload(record, payload, line);
            line.extend_from_slice(self.after_payload);
        }
        line.extend_from_slice(self.end);
        Ok(())
    }
}

fn header(output: &OutputSpec, separator: &str) -> Vec<u8> {
    if !output.header || output.format == TextFormat::Jsonl {
        return Vec::new();
    }
    let mut columns = vec![output.time_column.as_str(), &output.key_column, &output.value_column];
    columns.extend(output.stream_column.as_deref());
    columns.extend(output.payload.as_ref().map(|payload| payload.column.as_str()));
    (columns.join(separator) + "\n").into_bytes()
}

#[inline]
fn append_number(number: impl itoa::Integer, line: &mut Vec<u8>) {
    line.extend_from_slice(Buffer::new().format(number).as_bytes());
}

/// A number with zeros before it, up to `digits` digits.
#[inline]
fn append_padded(number: u64, digits: usize, line: &mut Vec<u8>) {
    // At least as many as the spec can ask for.
    const ZEROS: [u8; 20] = [b'0'; 20];
    let mut buffer = Buffer::new();
    let text = buffer.format(number);
    let missing = digits.saturating_sub(text.len()).min(ZEROS.len());
    line.extend_from_slice(&ZEROS[..missing]);
    line.extend_from_slice(text.as_bytes());
}

/// A number of units of the last of `decimals` digits after the point.
#[inline]
fn append_decimal(value: i64, decimals: usize, line: &mut Vec<u8>) {
    if decimals == 0 {
        append_number(value, line);
        return;
    }
    if value < 0 {
        line.push(b'-');
    }
    append_padded(value.unsigned_abs(), decimals + 1, line);
    // At least decimals + 1 digits have just been written.
    let point = line.len() - decimals;
    line.push(0);
    line.copy_within(point..point + decimals, point + 1);
    line[point] = b'.';
}

/// A two-digit number.
#[inline]
fn append_two(number: i64, line: &mut Vec<u8>) {
    line.extend_from_slice(&[b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]);
}

fn append_payload(record: &GeneratedRecord, payload: &PayloadSpec, line: &mut Vec<u8>) {
    let time = (record.time as u64).wrapping_mul(GOLDEN_GAMMA);
    let mut word = mix(mix(record.key ^ time) ^ record.value as u64 ^ u64::from(record.stream) << 48);
    let choices = u64::from(payload.max_bytes.saturating_sub(payload.min_bytes)) + 1;
    let mut left = payload.min_bytes as usize + (((word >> 32) * choices) >> 32) as usize;
    while left > 0 {
        word = mix(word.wrapping_add(GOLDEN_GAMMA));
        let letters: [u8; 16] = std::array::from_fn(|i| b'a' + (word >> (4 * i) & 15) as u8);
        let taken = left.min(letters.len());
        line.extend_from_slice(&letters[..taken]);
        left -= taken;
    }
}

/// Writes dates, and remembers the last one: a trace has far fewer days than records.
#[derive(Debug, Clone, Default)]
struct Calendar {
    day: Option<i64>,
    /// `2024-01-31T`.
    date: Vec<u8>,
}

impl Calendar {
    /// Appends date and time with 3 or 6 digits of the second's fraction.
    #[inline]
    fn append(
        &mut self,
        time: i64,
        fraction_digits: usize,
        line: &mut Vec<u8>,
    ) -> Result<(), BeyondCalendar> {
        let day = time.div_euclid(DAY_US);
        if self.day != Some(day) {
            self.turn_to(day)?;
        }
        line.extend_from_slice(&self.date);
        let of_day = time.rem_euclid(DAY_US);
        let (seconds, us) = (of_day / SECOND_US, of_day % SECOND_US);
        append_two(seconds / 3_600, line);
        line.push(b':');
        append_two(seconds / 60 % 60, line);
        line.push(b':');
        append_two(seconds % 60, line);
        line.push(b'.');
        let fraction = if fraction_digits == 3 { us / 1_000 } else { us };
        append_padded(fraction.unsigned_abs(), fraction_digits, line);
        line.push(b'Z');
        Ok(())
    }

    #[cold]
    fn turn_to(&mut self, day: i64) -> Result<(), BeyondCalendar> {
        let start = jiff::Timestamp::from_second(day.saturating_mul(86_400)).map_err(|_| BeyondCalendar)?;
        let date = jiff::tz::TimeZone::UTC.to_datetime(start).date();
        // RFC 3339 has years of four digits and no sign.
        if !(0..=9_999).contains(&date.year()) {
            return Err(BeyondCalendar);
        }
        self.date.clear();
        append_padded(date.year().unsigned_abs().into(), 4, &mut self.date);
        self.date.push(b'-');
        append_two(date.month().into(), &mut self.date);
        self.date.push(b'-');
        append_two(date.day().into(), &mut self.date);
        self.date.push(b'T');
        self.day = Some(day);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(value: i64, decimals: usize) -> String {
        let mut line = Vec::new();
        append_decimal(value, decimals, &mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn decimals_have_their_point_where_it_belongs() {
        assert_eq!(decimal(1_234, 2), "12.34");
        assert_eq!(decimal(-5, 2), "-0.05");
        assert_eq!(decimal(0, 3), "0.000");
        assert_eq!(decimal(7, 0), "7");
        assert_eq!(decimal(i64::MIN, 18), "-9.223372036854775808");
        assert_eq!(decimal(i64::MAX, 1), "922337203685477580.7");
    }

    #[test]
    fn keys_are_filled_up_and_never_cut() {
        let mut line = Vec::new();
        append_padded(123, 6, &mut line);
        append_padded(1_234_567, 6, &mut line);
        append_padded(u64::MAX, 20, &mut line);
        append_padded(0, 0, &mut line);
        assert_eq!(line, b"0001231234567184467440737095516150");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let mut calendar = Calendar::default();
        let mut line = Vec::new();
        for (time, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (1_709_251_199_123_456, "2024-02-29T23:59:59.123456Z"),
            (1_709_251_200_000_000, "2024-03-01T00:00:00.000000Z"),
            (-62_167_219_200_000_000, "0000-01-01T00:00:00.000000Z"),
            (253_402_207_200_999_999, "9999-12-30T22:00:00.999999Z"),
        ] {
            line.clear();
            assert_eq!(calendar.append(time, 6, &mut line), Ok(()));
            assert_eq!(String::from_utf8_lossy(&line), expected);
        }
        for time in [-62_167_219_200_000_001, 253_402_300_800_000_000, i64::MIN, i64::MAX] {
            assert_eq!(calendar.append(time, 6, &mut line), Err(BeyondCalendar));
        }
    }
}
