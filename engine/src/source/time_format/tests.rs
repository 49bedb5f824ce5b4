//! Times in all formats, against integer arithmetic and a calendar counted day by day.

use proptest::prelude::*;

use super::*;

fn micros(format: TimeFormat, text: &str) -> Option<i64> {
    format.parse(text).ok()
}

#[test]
fn every_time_format_is_read_from_the_word_it_shows() {
    for format in TimeFormat::value_variants() {
        assert_eq!(format.to_string().parse(), Ok(*format));
    }
    assert!("minutes".parse::<TimeFormat>().is_err());
}

#[test]
fn what_is_finer_than_a_microsecond_is_rounded_down() {
    assert_eq!(micros(TimeFormat::Nanos, "1999"), Some(1));
    assert_eq!(micros(TimeFormat::Nanos, "-1"), Some(-1));
    assert_eq!(micros(TimeFormat::Nanos, "-1000"), Some(-1));
    assert_eq!(micros(TimeFormat::Nanos, "-1000.01"), Some(-2));
    assert_eq!(micros(TimeFormat::Micros, "-0.5"), Some(-1));
    assert_eq!(micros(TimeFormat::Micros, "-0.0"), Some(0));
    assert_eq!(micros(TimeFormat::Seconds, "-0.0000001"), Some(-1));
    assert_eq!(micros(TimeFormat::Rfc3339, "1969-12-31T23:59:59.999999999Z"), Some(-1));
    assert_eq!(micros(TimeFormat::DateTime, "1969-12-31 23:59:59.9999990"), Some(-1));
}

#[test]
fn the_ends_of_the_range_fit_and_one_step_beyond_is_an_overflow() {
    assert_eq!(micros(TimeFormat::Raw, "9223372036854775807"), Some(i64::MAX));
    assert_eq!(micros(TimeFormat::Raw, "-9223372036854775808"), Some(i64::MIN));
    assert_eq!(micros(TimeFormat::Seconds, "9223372036854.775807"), Some(i64::MAX));
    assert_eq!(micros(TimeFormat::Nanos, "-9223372036854775807001"), Some(i64::MIN));
    for (format, text) in [
        (TimeFormat::Raw, "9223372036854775808"),
        (TimeFormat::Raw, "-9223372036854775809"),
        (TimeFormat::Seconds, "9223372036854.775808"),
        (TimeFormat::Micros, "-9223372036854775808.1"),
        (TimeFormat::Nanos, "-9223372036854775808001"),
        (TimeFormat::Seconds, &"9".repeat(100)),
    ] {
        assert!(matches!(format.parse(text), Err(TimeError::Overflow(_))), "{format} {text}");
    }
}

#[test]
fn calendar_forms_are_recognised_and_bare_numbers_are_not() {
    let second = Some(1_443_753_909_000_000);
    for text in [
        "2015-10-02T02:45:09Z",
        "2015-10-02 02:45:09",
        " 2015-10-02T02:45:09.000 ",
        "2015/10/02 02:45:09.00",
        "2015-10-02T04:45:09+02:00",
    ] {
        assert_eq!(micros(TimeFormat::Auto, text), second, "{text}");
    }
    assert_eq!(micros(TimeFormat::Auto, "1970-01-02"), Some(86_400_000_000));
    for text in ["1443753909", "-5", "1443753909.5", "20151002"] {
        assert!(matches!(TimeFormat::Auto.parse(text), Err(TimeError::NoUnit)), "{text}");
    }
}

#[test]
fn an_offset_is_never_dropped() {
    for text in ["2015-10-02 02:45:09+02:00", "2015-10-02 02:45:09Z", "2015-10-02[Asia/Tokyo]"] {
        let result = TimeFormat::DateTime.parse(text);
        assert!(matches!(result, Err(TimeError::NotDateTime(_))), "{text}");
    }
    assert_eq!(micros(TimeFormat::Rfc3339, "2015-10-02T02:45:09"), None);
}

#[test]
fn what_is_no_time_is_refused() {
    for text in ["", " ", "-", "+", ".", "-.", "1e3", "0x5", "1 2", "1.2.3", "--1", "NaN", "1_000"] {
        for format in TimeFormat::value_variants() {
            assert_eq!(micros(*format, text), None, "{format} {text}");
        }
    }
    for text in ["2015-02-29 00:00:00", "2015-13-01 00:00:00", "2015-10-02 25:00:00", "2015-1-2"] {
        assert_eq!(micros(TimeFormat::Auto, text), None, "{text}");
    }
    assert_eq!(micros(TimeFormat::Raw, "1.0"), None);
}

#[test]
fn messages_say_what_to_do() {
    let message = |format: TimeFormat, text| format.parse(text).unwrap_err().to_string();
    assert!(message(TimeFormat::Auto, "5").contains("pass --time-unit s, ms, us, ns or raw"));
    assert!(message(TimeFormat::Millis, "2015-10-02").contains("--time-unit is ms"));
    assert!(!message(TimeFormat::Auto, "yesterday").is_empty());
}

/// Days from 1970 to a date, year by year and month by month.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let in_year = |year| if leap(year) { 366 } else { 365 };
    let february = if leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before: i64 = months.iter().take(month as usize - 1).sum();
    let years: i64 = (1970..year).map(in_year).sum::<i64>() - (year..1970).map(in_year).sum::<i64>();
    years + before + day - 1
}

proptest! {
    /// The model knows picoseconds as one integer; the text is written from its digits.
    #[test]
    fn decimal_times_agree_with_integer_arithmetic(
        magnitude in prop_oneof![0..10_i128.pow(8), 0..10_i128.pow(22), 0..10_i128.pow(26)],
        negative: bool,
        shortened: bool,
        zeros in 0_usize..4,
    ) {
        let picos = if negative { -magnitude } else { magnitude };
        let expected = i64::try_from(picos.div_euclid(1_000_000)).ok();
        for (format, decimals) in [
            (TimeFormat::Seconds, 12),
            (TimeFormat::Millis, 9),
            (TimeFormat::Micros, 6),
            (TimeFormat::Nanos, 3),
        ] {
            let unit = 10_i128.pow(decimals);
            let sign = if negative { "-" } else { "" };
            let (whole, rest) = (magnitude / unit, magnitude % unit);
            let (zeros, width) = ("0".repeat(zeros), decimals as usize);
            let mut text = format!("{sign}{zeros}{whole}.{rest:0width$}");
            if shortened {
                text = text.trim_end_matches('0').trim_end_matches('.').to_owned();
            }
            prop_assert_eq!(micros(format, &text), expected, "{} {}", format, text);
        }
    }

    #[test]
    fn calendar_times_agree_with_counting_days(
        (year, month, day) in (1600_i64..2500, 1_i64..=12, 1_i64..=28),
        (hour, minute, second) in (0_i64..24, 0_i64..60, 0_i64..60),
        nanos in 0_i64..1_000_000_000,
        offset_minutes in -18 * 60_i64..18 * 60,
    ) {
        let seconds = ((days_to(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
        let expected = seconds * 1_000_000 + nanos / 1000;
        let date = format!("{year:04}-{month:02}-{day:02}");
        let clock = format!("{hour:02}:{minute:02}:{second:02}.{nanos:09}");
        let civil = format!("{date} {clock}");
        prop_assert_eq!(micros(TimeFormat::DateTime, &civil), Some(expected));
        prop_assert_eq!(micros(TimeFormat::Auto, &civil), Some(expected));
        prop_assert_eq!(micros(TimeFormat::Auto, &civil.replace('-', "/")), Some(expected));
        let sign = if offset_minutes < 0 { '-' } else { '+' };
        let ahead = offset_minutes.abs();
        let zoned = format!("{date}T{clock}{sign}{:02}:{:02}", ahead / 60, ahead % 60);
        let expected = expected - offset_minutes * 60_000_000;
        prop_assert_eq!(micros(TimeFormat::Rfc3339, &zoned), Some(expected));
        prop_assert_eq!(micros(TimeFormat::Auto, &zoned), Some(expected));
    }

    #[test]
    fn raw_times_are_those_that_the_standard_library_reads(text in "[-+ ]{0,2}[0-9.]{0,21}") {
        let expected = text.trim_ascii().parse::<i64>().ok();
        prop_assert_eq!(micros(TimeFormat::Raw, &text), expected);
        if text.trim_ascii().len() <= 19 && !text.contains('.') {
            prop_assert_eq!(micros(TimeFormat::Micros, &text), expected);
        }
    }

    #[test]
    fn no_text_makes_any_format_panic(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..60),
            "[-+/:. TZ0-9\\[]{0,60}".prop_map(String::into_bytes),
            "[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[-+:. TZ0-9é]{0,60}".prop_map(String::into_bytes),
        ],
    ) {
        for format in TimeFormat::value_variants() {
            let result = format.parse_bytes(&bytes);
            prop_assert!(result.is_ok() || !result.unwrap_err().to_string().is_empty());
        }
    }
}
