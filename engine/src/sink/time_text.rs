//! Event times as text, in the unit that the input had: what is read back is the same time.

use crate::source::TimeFormat;
use jiff::Timestamp;
use jiff::tz::Offset;

/// The text of an event time.
///
/// Where the unit is coarser than a microsecond, decimals follow as far as they are needed.
/// Times beyond the calendar's years (-9999 to 9999) are written as microseconds.
///
/// ```
/// use tidegate::sink::time_text::time_text;
/// use tidegate::source::TimeFormat;
/// assert_eq!(time_text(TimeFormat::Millis, 1_500), "1.5");
/// assert_eq!(time_text(TimeFormat::Seconds, -1), "-0.000001");
/// assert_eq!(time_text(TimeFormat::Auto, 0), "1970-01-01T00:00:00Z");
/// assert_eq!(time_text(TimeFormat::DateTime, 1_500_000), "1970-01-01 00:00:01.5");
/// ```
pub fn time_text(format: TimeFormat, time: i64) -> String {
    match format {
        TimeFormat::Raw | TimeFormat::Micros => time.to_string(),
        TimeFormat::Nanos => (i128::from(time) * 1000).to_string(),
        TimeFormat::Millis => decimal(time, 3),
        TimeFormat::Seconds => decimal(time, 6),
        TimeFormat::Auto | TimeFormat::Rfc3339 => match Timestamp::from_microsecond(time) {
            Ok(timestamp) => timestamp.to_string(),
            Err(_) => time.to_string(),
        },
        TimeFormat::DateTime => match Timestamp::from_microsecond(time) {
            Ok(timestamp) => Offset::UTC.to_datetime(timestamp).to_string().replace('T', " "),
            Err(_) => time.to_string(),
        },
    }
}

/// A number of microseconds with `places` digits behind the point, the zeros at its end left out.
fn decimal(time: i64, places: usize) -> String {
    let unit = 10u64.pow(places as u32);
    let (whole, rest) = (time.unsigned_abs() / unit, time.unsigned_abs() % unit);
    let sign = if time < 0 { "-" } else { "" };
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    let rest = format!("{rest:0places$}");
    format!("{sign}{whole}.{}", rest.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(time in any::<i64>(), small in -10_000i64..10_000) {
            use TimeFormat::*;
            for format in [Raw, Micros, Millis, Seconds] {
                for time in [time, small, i64::MIN, i64::MAX] {
                    prop_assert_eq!(format.parse(&time_text(format, time)).unwrap(), time);
                }
            }
            // Calendars end, and so do 64 bits of nanoseconds.
            for format in [Nanos, Rfc3339, DateTime, Auto] {
                for time in [time / 1000, small] {
                    prop_assert_eq!(format.parse(&time_text(format, time)).unwrap(), time);
                }
            }
        }
    }
}
