//! Real traces read to their ends, with the numbers of rows, keys and late rows that were counted in
//! them by other means.
//!
//! The data is not part of the repository. Its directory is given by `TIDEGATE_DATA`; where it is not
//! there, these tests say so and prove nothing.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate::source::{FieldMapping, KeyValue, Row, Status, TimeFormat, TraceOptions, TraceReader};

fn data_directory() -> Option<PathBuf> {
    let default = || PathBuf::from("../../shared/data");
    let directory = std::env::var_os("TIDEGATE_DATA").map_or_else(default, PathBuf::from);
    if directory.join("flights").is_dir() {
        return Some(directory);
    }
    println!("skipped: no traces in {}; set TIDEGATE_DATA", directory.display());
    None
}

fn read<R: DeserializeOwned>(path: &Path, options: &TraceOptions) -> Vec<Row<R>> {
    let mut reader = TraceReader::open(path, options).unwrap();
    let mut rows = Vec::new();
    while reader.read(1000, &mut rows).unwrap() == Status::More {}
    assert_eq!(reader.position(), rows.len() as u64);
    let progress = reader.progress();
    assert_eq!(Some(progress.read_bytes()), progress.total_bytes());
    rows
}

const BORG: &str = "borg/borg2011_job_events.csv.gz";
const WIKIPEDIA: &str = "wikipedia/wikipedia_edits_2015-09-12.jsonl.gz";
const TAXI: &str = "taxi/green_taxi_2023-01.csv.gz";
const FLIGHTS: &str = "flights/nyc_flights_2013.csv.gz";
const ADSB: &str = "adsb/adsb_toulouse_2021-10-07.csv.gz";
const NASDAQ: &str = "trades/nasdaq_trades.csv.gz";
const BITCOIN: &str = "trades/btc_trades.csv.gz";
const AZURE_CONV: &str = "azure/azure_llm_inference_conv.csv.gz";
const AZURE_CODE: &str = "azure/azure_llm_inference_code.csv.gz";
const QUAKES: &str = "quakes/ncedc_earthquakes_2016.csv.gz";

const TIME_US: (&str, TimeFormat) = ("time_us", TimeFormat::Micros);
const TIME: (&str, TimeFormat) = ("time", TimeFormat::Auto);
const PICKUP: (&str, TimeFormat) = ("pickup_ms", TimeFormat::Millis);
const DEPARTURE: (&str, TimeFormat) = ("sched_dep_ms", TimeFormat::Millis);
const TIMESTAMP: (&str, TimeFormat) = ("timestamp", TimeFormat::Auto);
const TIMESTAMP_MS: (&str, TimeFormat) = ("timestamp_ms", TimeFormat::Millis);
const AZURE_TIME: (&str, TimeFormat) = ("TIMESTAMP", TimeFormat::Auto);
const DATE_TIME: (&str, TimeFormat) = ("DateTime", TimeFormat::Auto);

/// What is known of a trace: file; field and format of its time; key; number of rows and of keys; the rows
/// whose time is below the largest one before them, in per cent; the largest such difference; and the
/// largest time less the smallest.
type Known = (&'static str, (&'static str, TimeFormat), &'static str, usize, usize, f64, f64, f64);

#[rustfmt::skip]
const KNOWN: [Known; 17] = [
    // file, time, key, rows, keys, late %, max lag ms, span ms
    (BORG, TIME_US, "job_id", 26_250, 9_365, 15.882, 0.982, 30_065_834.0),
    (BORG, TIME_US, "user", 26_250, 166, 15.882, 0.982, 30_065_834.0),
    (BORG, TIME_US, "logical_job_name", 26_250, 3_177, 15.882, 0.982, 30_065_834.0),
    (WIKIPEDIA, TIME, "channel+page", 39_244, 35_278, 0.0, 0.0, 83_580_429.0),
    (WIKIPEDIA, TIME, "user", 39_244, 10_531, 0.0, 0.0, 83_580_429.0),
    (WIKIPEDIA, TIME, "channel", 39_244, 51, 0.0, 0.0, 83_580_429.0),
    (TAXI, PICKUP, "pu_zone", 68_207, 226, 80.455, 86_127_000.0, 2_678_212_000.0),
    (TAXI, PICKUP, "pu_zone+do_zone", 68_207, 5_926, 80.455, 86_127_000.0, 2_678_212_000.0),
    (FLIGHTS, DEPARTURE, "tailnum", 328_521, 4_037, 59.152, 78_000_000.0, 31_517_040_000.0),
    (FLIGHTS, DEPARTURE, "dest", 328_521, 104, 59.152, 78_000_000.0, 31_517_040_000.0),
    (ADSB, TIMESTAMP_MS, "icao24", 284_505, 213, 0.0, 0.0, 10_798_000.0),
    (NASDAQ, TIMESTAMP, "id", 14_842, 9, 0.0, 0.0, 3_599_000.0),
    (BITCOIN, TIMESTAMP, "side", 5_882, 2, 0.0, 0.0, 3_597_480.0),
    (AZURE_CONV, AZURE_TIME, "ContextTokens", 19_366, 2_339, 0.0, 0.0, 3_501_722.0),
    (AZURE_CODE, AZURE_TIME, "ContextTokens", 8_819, 3_552, 0.0, 0.0, 3_435_949.0),
    (QUAKES, DATE_TIME, "Source", 38_094, 58, 0.0, 0.0, 27_516_729_740.0),
    (FLIGHTS, DEPARTURE, "carrier", 328_521, 16, 59.152, 78_000_000.0, 31_517_040_000.0),
];

#[test]
fn every_trace_has_the_rows_keys_and_lateness_that_were_counted_in_it() {
    let Some(directory) = data_directory() else { return };
    for known in KNOWN {
        check(&directory, known);
    }
}

fn check(directory: &Path, known: Known) {
    let (file, time, key, row_count, key_count, late_percent, max_lag_ms, span_ms) = known;
    let mut options = TraceOptions::new(FieldMapping::new(time.0).with_key(key));
    options.time_format = time.1;
    let rows: Vec<Row<KeyValue<()>>> = read(&directory.join(file), &options);
    let name = format!("{file} by {key}");
    assert_eq!(rows.len(), row_count, "{name}");
    assert!(rows.iter().zip(0..).all(|(row, position)| row.position == position), "{name}");
    let keys: HashSet<&str> = rows.iter().map(|row| &*row.record.key).collect();
    assert_eq!(keys.len(), key_count, "{name}");

    let (mut largest, mut late, mut largest_lag_us) = (i64::MIN, 0, 0);
    for row in &rows {
        if row.time < largest {
            late += 1;
            largest_lag_us = largest_lag_us.max(largest - row.time);
        }
        largest = largest.max(row.time);
    }
    let smallest = rows.iter().map(|row| row.time).min().unwrap();
    let close = |counted: f64, known: f64, tolerance: f64| {
        assert!((counted - known).abs() <= tolerance, "{name}: {counted} instead of {known}");
    };
    close(100.0 * f64::from(late) / rows.len() as f64, late_percent, 0.001);
    close(largest_lag_us as f64 / 1000.0, max_lag_ms, 0.001);
    close((largest - smallest) as f64 / 1000.0, span_ms, 1.0);
}

#[derive(Debug, PartialEq, Deserialize)]
struct Flight {
    carrier: String,
    flight: u16,
    arr_delay_min: Option<i32>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Position {
    callsign: Option<String>,
    latitude: f64,
    onground: bool,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Edit {
    page: String,
    city_name: Option<String>,
    is_robot: bool,
    delta: i64,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Trade {
    symbol: String,
    amount: f64,
}

fn first<R: DeserializeOwned>(directory: &Path, file: &str, time: (&str, TimeFormat)) -> Row<R> {
    let mut options = TraceOptions::new(FieldMapping::new(time.0));
    options.time_format = time.1;
    read(&directory.join(file), &options).into_iter().next().unwrap()
}

#[test]
fn all_rows_of_a_trace_can_be_read_as_structs_of_its_own_fields() {
    let Some(directory) = data_directory() else { return };
    assert_eq!(
        first::<Flight>(&directory, FLIGHTS, DEPARTURE),
        Row {
            time: 1_357_035_300_000_000,
            position: 0,
            record: Flight { carrier: "UA".into(), flight: 1545, arr_delay_min: Some(11) },
        }
    );
    assert_eq!(
        first::<Position>(&directory, ADSB, TIMESTAMP_MS).record,
        Position { callsign: Some("AFR9455".into()), latitude: 48.3634, onground: false }
    );
    assert_eq!(
        first::<Edit>(&directory, WIKIPEDIA, TIME),
        Row {
            time: 1_442_018_818_771_000,
            position: 0,
            record: Edit { page: "Talk:Oswald Tilghman".into(), city_name: None, is_robot: false, delta: 36 },
        }
    );
    assert_eq!(
        first::<Trade>(&directory, BITCOIN, TIMESTAMP),
        Row {
            time: 1_693_929_601_281_719,
            position: 0,
            record: Trade { symbol: "BTC-USD".into(), amount: 0.021_880_38 },
        }
    );
    // Seven decimals of a second, and slashes in the date.
    assert_eq!(first::<()>(&directory, AZURE_CONV, AZURE_TIME).time, 1_700_158_546_680_590);
    assert_eq!(first::<()>(&directory, QUAKES, DATE_TIME).time, 1_451_608_204_910_000);
}

#[test]
fn reading_goes_on_in_the_middle_of_a_trace() {
    let Some(directory) = data_directory() else { return };
    for (file, time, key) in [(TAXI, PICKUP, "pu_zone"), (WIKIPEDIA, TIME, "user")] {
        let mut options = TraceOptions::new(FieldMapping::new(time.0).with_key(key));
        options.time_format = time.1;
        let path = directory.join(file);
        let all: Vec<Row<KeyValue<()>>> = read(&path, &options);
        let mut reader = TraceReader::open(&path, &options).unwrap();
        let mut rest = Vec::new();
        reader.read(10, &mut rest).unwrap();
        rest.clear();
        reader.skip_to(30_000).unwrap();
        while reader.read(777, &mut rest).unwrap() == Status::More {}
        assert_eq!(rest, all[30_000..], "{file}");
    }
}
