//! Event times as text, and what they are in the engine: `i64` microseconds since 1970.
//!
//! Numbers are read digit by digit and never pass through a float: `1694620800.123456` has 16 digits,
//! and an `f64` cannot hold all of them. What is finer than a microsecond is rounded down, also below
//! zero, so that a later time never becomes an earlier number.
//!
//! A bare number is never given a unit by its magnitude. A guess of that kind is right until a test uses
//! small numbers or a trace reaches back to 1970, and then wrong without a word. Formats that cannot be
//! mistaken, however, are recognised, so that most traces read without any option.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::Offset;

static PARSER: DateTimeParser = DateTimeParser::new();

/// How a trace writes its event times.
///
/// ```
/// use tidegate::source::{TimeError, TimeFormat};
///
/// assert_eq!(TimeFormat::Seconds.parse("1694620800.123456")?, 1_694_620_800_123_456);
/// assert_eq!(TimeFormat::Nanos.parse("-1")?, -1);
/// assert_eq!(TimeFormat::Auto.parse("1970-01-01T01:00:00.5+01:00")?, 500_000);
/// assert_eq!(TimeFormat::Auto.parse("1970/01/01 00:00:01")?, 1_000_000);
/// assert!(matches!(TimeFormat::Auto.parse("1694620800"), Err(TimeError::NoUnit)));
/// # Ok::<(), TimeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ValueEnum)]
pub enum TimeFormat {
    /// RFC 3339 or date and time of day, recognised value by value. A bare number is an error.
    #[default]
    Auto,
    /// Seconds since 1970, with or without decimals.
    #[value(name = "s")]
    Seconds,
    /// Milliseconds since 1970, with or without decimals.
    #[value(name = "ms")]
    Millis,
    /// Microseconds since 1970, with or without decimals.
    #[value(name = "us")]
    Micros,
    /// Nanoseconds since 1970, with or without decimals.
    #[value(name = "ns")]
    Nanos,
    /// RFC 3339 with its offset, as `2015-09-12T00:46:58.771Z`.
    Rfc3339,
    /// `YYYY-MM-DD HH:MM:SS.fraction`, taken as UTC. The fraction, the seconds and the whole time of day
    /// may be left out; `/` may stand for `-` and `T` for the space.
    #[value(name = "datetime")]
    DateTime,
    /// An integer in a unit of the trace's own, taken as it is.
    Raw,
}

/// Why a text is no time. The text itself is not repeated: whoever reports it knows where it stood.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// There is no text.
    #[error("there is no time")]
    Empty,
    /// A number under [`TimeFormat::Auto`].
    #[error("a number without a unit; pass --time-unit s, ms, us, ns or raw")]
    NoUnit,
    /// Not a number, where one is needed.
    #[error("not a plain decimal number (--time-unit is {0})")]
    NotDecimal(TimeFormat),
    /// Not an integer, where one is needed.
    #[error("not an integer (--time-unit is {0})")]
    NotInteger(TimeFormat),
    /// More microseconds since 1970 than 64 bits hold: some 292,000 years.
    #[error("does not fit in 64 bits of microseconds (--time-unit is {0})")]
    Overflow(TimeFormat),
    /// Not of the form of a date and a time of day.
    #[error("not of the form YYYY-MM-DD HH:MM:SS (--time-unit is {0})")]
    NotDateTime(TimeFormat),
    /// Not a date and time, or not one that the calendar has.
    #[error("not a date and time: {0}")]
    Calendar(jiff::Error),
}

impl TimeFormat {
    /// Reads a time. ASCII white space around it is passed over.
    ///
    /// # Errors
    ///
    /// [`TimeError`] says what is wrong.
    #[inline]
    pub fn parse(self, text: &str) -> Result<i64, TimeError> {
        self.parse_bytes(text.as_bytes())
    }

    /// As [`parse`](TimeFormat::parse), from bytes that need not be UTF-8.
    ///
    /// # Errors
    ///
    /// [`TimeError`] says what is wrong.
    pub fn parse_bytes(self, text: &[u8]) -> Result<i64, TimeError> {
        let text = text.trim_ascii();
        if text.is_empty() {
            return Err(TimeError::Empty);
        }
        match self {
            TimeFormat::Auto if has_date_form(text) && !has_offset(text) => parse_date_time(text, self),
            TimeFormat::Auto if Decimal::split(text).is_some() => Err(TimeError::NoUnit),
            TimeFormat::Auto | TimeFormat::Rfc3339 => parse_rfc3339(text),
            TimeFormat::DateTime => parse_date_time(text, self),
            TimeFormat::Seconds => self.parse_decimal(text, 6, 0),
            TimeFormat::Millis => self.parse_decimal(text, 3, 0),
            TimeFormat::Micros => self.parse_decimal(text, 0, 0),
            TimeFormat::Nanos => self.parse_decimal(text, 0, 3),
            TimeFormat::Raw => self.parse_integer(text),
        }
    }

    fn parse_decimal(self, text: &[u8], up: u32, down: usize) -> Result<i64, TimeError> {
        let decimal = Decimal::split(text).ok_or(TimeError::NotDecimal(self))?;
        decimal.floor(up, down).ok_or(TimeError::Overflow(self))
    }

    fn parse_integer(self, text: &[u8]) -> Result<i64, TimeError> {
        let decimal = Decimal::split(text).ok_or(TimeError::NotInteger(self))?;
        if text.contains(&b'.') {
            return Err(TimeError::NotInteger(self));
        }
        decimal.floor(0, 0).ok_or(TimeError::Overflow(self))
    }

    fn word(self) -> &'static str {
        match self {
            TimeFormat::Auto => "auto",
            TimeFormat::Seconds => "s",
            TimeFormat::Millis => "ms",
            TimeFormat::Micros => "us",
            TimeFormat::Nanos => "ns",
            TimeFormat::Rfc3339 => "rfc3339",
            TimeFormat::DateTime => "datetime",
            TimeFormat::Raw => "raw",
        }
    }
}

/// A decimal number in its parts: sign, digits before the point, digits behind it.
struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl Decimal<'_> {
    /// `[+-]digits[.digits]` with at least one digit; no exponent.
    fn split(text: &[u8]) -> Option<Decimal<'_>> {
        let (negative, unsigned) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (whole, rest) = unsigned.split_at(digits(unsigned));
        let fraction = match rest {
            [] => rest,
            [b'.', fraction @ ..] => fraction,
            _ => return None,
        };
        let complete = digits(fraction) == fraction.len() && whole.len() + fraction.len() > 0;
        complete.then_some(Decimal { negative, whole, fraction })
    }

    /// The number with its point moved to the right by `up` digits or to the left by `down`, of which one
    /// is 0, and then rounded down; `None` if it does not fit.
    fn floor(&self, up: u32, down: usize) -> Option<i64> {
        // Nearly all times are integers of fewer than 19 digits, which always fit in 64 bits.
        if self.fraction.is_empty() && self.whole.len() < 19 && down == 0 {
            let mut magnitude = 0_i64;
            for digit in self.whole {
                magnitude = magnitude * 10 + i64::from(digit - b'0');
            }
            let magnitude = magnitude.checked_mul(10_i64.pow(up))?;
            return Some(if self.negative { -magnitude } else { magnitude });
        }
        let (whole, whole_rest) = self.whole.split_at(self.whole.len().saturating_sub(down));
        let (fraction, rest) = match down {
            0 => self.fraction.split_at(self.fraction.len().min(up as usize)),
            _ => (&[][..], self.fraction),
        };
        let zeros = 10_u128.pow(up - fraction.len() as u32);
        let magnitude = accumulate(accumulate(0, whole)?, fraction)?.checked_mul(zeros)?;
        if !self.negative {
            return i64::try_from(magnitude).ok();
        }
        let exact = whole_rest.iter().chain(rest).all(|digit| *digit == b'0');
        let magnitude = i128::try_from(magnitude).ok()?.checked_add(i128::from(!exact))?;
        i64::try_from(-magnitude).ok()
    }
}

/// Appends decimal digits to a number; `None` if it grows too large.
fn accumulate(number: u128, digits: &[u8]) -> Option<u128> {
    digits
        .iter()
        .try_fold(number, |number, digit| number.checked_mul(10)?.checked_add(u128::from(digit - b'0')))
}

/// Whether a text begins as `YYYY-MM-DD` or `YYYY/MM/DD`.
fn has_date_form(text: &[u8]) -> bool {
    text.len() >= 10
        && text[..10].iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => matches!(byte, b'-' | b'/') && *byte == text[4],
            _ => byte.is_ascii_digit(),
        })
}

/// Whether a text that begins with a date ends with an offset or a time zone.
fn has_offset(text: &[u8]) -> bool {
    text[10..].iter().any(|byte| matches!(byte, b'+' | b'-' | b'Z' | b'z' | b'['))
}

fn parse_rfc3339(text: &[u8]) -> Result<i64, TimeError> {
    floor_timestamp(PARSER.parse_timestamp(text).map_err(TimeError::Calendar)?)
}

fn parse_date_time(text: &[u8], format: TimeFormat) -> Result<i64, TimeError> {
    // The parser would take an offset and drop it, which moves the time by hours without a word.
    let time_of_day = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'T' | b't' | b':' | b'.');
    let mut plain = [0_u8; 40];
    if !has_date_form(text) || text.len() > plain.len() || !text[10..].iter().all(time_of_day) {
        return Err(TimeError::NotDateTime(format));
    }
    let plain = &mut plain[..text.len()];
    plain.copy_from_slice(text);
    (plain[4], plain[7]) = (b'-', b'-');
    let date_time = PARSER.parse_datetime(plain).map_err(TimeError::Calendar)?;
    floor_timestamp(Offset::UTC.to_timestamp(date_time).map_err(TimeError::Calendar)?)
}

fn floor_timestamp(timestamp: Timestamp) -> Result<i64, TimeError> {
    let micros = timestamp.as_nanosecond().div_euclid(1000);
    // The calendar's years, -9999 to 9999, are far inside the range; the error is for form's sake.
    i64::try_from(micros).map_err(|_| TimeError::Overflow(TimeFormat::Rfc3339))
}

impl fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that names no time format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no format of times; say auto, s, ms, us, ns, rfc3339, datetime or raw")]
pub struct UnknownTimeFormat(String);

impl FromStr for TimeFormat {
    type Err = UnknownTimeFormat;

    fn from_str(word: &str) -> Result<TimeFormat, UnknownTimeFormat> {
        <TimeFormat as ValueEnum>::from_str(word, true).map_err(|_| UnknownTimeFormat(word.to_owned()))
    }
}

#[cfg(test)]
mod tests;
