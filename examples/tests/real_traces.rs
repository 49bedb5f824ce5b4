//! The main job on real input: whole traces through two pipelines, every strategy, one and two
//! workers. What must come out was computed by `expected_by_python.py`, which shares no code with
//! the engine; its output is repeated in the constants here.
//!
//! The traces are looked for in `$TIDEGATE_DATA`, or beside the checkout; without them the test
//! says so and passes.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tidegate::config::{JobConfig, StateBackend};
use tidegate::ingest::trace::{EpochLength, InputOptions, Speed};
use tidegate::job::Job;
use tidegate::operators::window::{Count, Sessions};
use tidegate::run::Runner;
use tidegate::sink::{Output, OutputOptions};
use tidegate::source::{FieldMapping, KeyValue, TimeFormat, TraceOptions};
use tidegate::state::strategy::ReadStrategy;
use tidegate_examples::PIPELINES;

const HOUR_US: i64 = 3_600_000_000;

/// What one run over a trace must give.
struct Expected {
    pipeline: &'static str,
    rows: usize,
    late: u64,
    fnv: u64,
}

fn data() -> Option<PathBuf> {
    let beside = "../../shared/data";
    let directory = PathBuf::from(std::env::var_os("TIDEGATE_DATA").unwrap_or(beside.into()));
    if !directory.join("flights").exists() {
        println!("skipped: no traces in {}; set TIDEGATE_DATA", directory.display());
        return None;
    }
    Some(directory)
}

/// FNV-1a of 64 bits over lines.
fn fnv(rows: &[String]) -> u64 {
    let bytes = rows.iter().flat_map(|row| row.bytes().chain([b'\n']));
    bytes.fold(0xcbf29ce484222325, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x100000001b3))
}

fn check(input: &InputOptions, expected: &Expected) {
    let pipeline = PIPELINES.iter().find(|pipeline| pipeline.name == expected.pipeline).unwrap();
    for strategy in ReadStrategy::ALL {
        for workers in [1, 2] {
            let backend = if workers == 1 { StateBackend::RocksDb } else { StateBackend::Memory };
            let config = JobConfig { workers, strategy, backend, ..JobConfig::default() };
            let rows = Arc::new(Mutex::new(Vec::new()));
            let output =
                OutputOptions { output: Output::Collect(Arc::clone(&rows)), ..OutputOptions::default() };
            let runner = Runner::new(config, output).with_input(input.clone());
            let report = runner.run(pipeline.build).unwrap();
            let rows = std::mem::take(&mut *rows.lock().unwrap());
            let mut rows: Vec<String> =
                rows.into_iter().map(|row| format!("{},{}", row.time, row.text)).collect();
            rows.sort_unstable();
            let what = format!("{} under {strategy} on {workers} workers", expected.pipeline);
            assert_eq!(rows.len(), expected.rows, "rows of {what}");
            assert_eq!(report.metrics.all_releases().statistics.events_late, expected.late, "late in {what}");
            assert_eq!(fnv(&rows), expected.fnv, "hash of the rows of {what}");
        }
    }
}

fn input(path: PathBuf, fields: FieldMapping, time_format: TimeFormat, max_lag: i64) -> InputOptions {
    let mut trace = TraceOptions::new(fields);
    trace.time_format = time_format;
    InputOptions { paths: vec![path], trace, max_lag, epoch: EpochLength::default(), speed: Speed::Max }
}

#[test]
fn flights_give_what_python_computes() {
    let Some(data) = data() else { return };
    let flights = |max_lag, epoch| InputOptions {
        epoch,
        ..input(
            data.join("flights/nyc_flights_2013.csv.gz"),
            FieldMapping::new("sched_dep_ms").with_key("dest").with_value("dep_delay_min"),
            TimeFormat::Millis,
            max_lag,
        )
    };
    let all = Expected { pipeline: "running-totals", rows: 328_521, late: 0, fnv: 0x6ea5c63a26d96314 };
    check(&flights(22 * HOUR_US, EpochLength::default()), &all);
    let few = Expected { pipeline: "first-seen", rows: 104, late: 0, fnv: 0xd01043a0862fbbc2 };
    check(&flights(22 * HOUR_US, EpochLength::Records(1000)), &few);
    // With less allowed disorder, records are late, and exactly those that Python finds.
    let most = Expected { pipeline: "running-totals", rows: 302_887, late: 25_634, fnv: 0xb76c95f1aa64cb1f };
    check(&flights(HOUR_US, EpochLength::default()), &most);
    let few = Expected { pipeline: "first-seen", rows: 104, late: 25_634, fnv: 0x1dc79591693ac99f };
    check(&flights(HOUR_US, EpochLength::default()), &few);
}

#[test]
fn wikipedia_gives_what_python_computes() {
    let Some(data) = data() else { return };
    let edits = |epoch| InputOptions {
        epoch,
        ..input(
            data.join("wikipedia/wikipedia_edits_2015-09-12.jsonl.gz"),
            FieldMapping::new("time").with_key("channel").with_value("added"),
            TimeFormat::Auto,
            0,
        )
    };
    let all = Expected { pipeline: "running-totals", rows: 39_244, late: 0, fnv: 0xb20173259b90326b };
    check(&edits(EpochLength::EventTime(60_000_000)), &all);
    let few = Expected { pipeline: "first-seen", rows: 51, late: 0, fnv: 0xe2b50d1c30a74bdf };
    check(&edits(EpochLength::default()), &few);
}

/// Fields of each line of a golden file, joined by commas.
fn golden(data: &Path, file: &str, fields: &[&str]) -> Vec<String> {
    let compressed = std::fs::File::open(data.join("golden/real_traces").join(file)).unwrap();
    let lines = std::io::BufReader::new(flate2::read::MultiGzDecoder::new(compressed)).lines();
    let mut rows: Vec<String> = lines
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let field = |name: &&str| match &row[*name] {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            fields.iter().map(field).collect::<Vec<_>>().join(",")
        })
        .collect();
    rows.sort_unstable();
    rows
}

/// The rows of a pipeline under every strategy, on one worker and on two, with the columns
/// that are asked for.
fn check_rows(pipeline: &str, input: &InputOptions, columns: &[usize], expected: &[String]) {
    let build = PIPELINES.iter().find(|known| known.name == pipeline).unwrap().build;
    check_job(pipeline, build, input, columns, expected);
}

fn check_job(name: &str, build: fn(&Job<'_>), input: &InputOptions, columns: &[usize], expected: &[String]) {
    for strategy in ReadStrategy::ALL {
        for workers in [1, 2] {
            let backend = if workers == 1 { StateBackend::RocksDb } else { StateBackend::Memory };
            let config = JobConfig { workers, strategy, backend, ..JobConfig::default() };
            let rows = Arc::new(Mutex::new(Vec::new()));
            let output =
                OutputOptions { output: Output::Collect(Arc::clone(&rows)), ..OutputOptions::default() };
            Runner::new(config, output).with_input(input.clone()).run(build).unwrap();
            let chosen = |row: tidegate::sink::Row| {
                let fields: Vec<&str> = row.text.split(',').collect();
                columns.iter().map(|&column| fields[column]).collect::<Vec<_>>().join(",")
            };
            let mut rows: Vec<String> =
                std::mem::take(&mut *rows.lock().unwrap()).into_iter().map(chosen).collect();
            rows.sort_unstable();
            assert!(rows == expected, "{name} under {strategy} on {workers} workers");
        }
    }
}

#[test]
fn windows_of_wikipedia_give_the_golden_rows() {
    let Some(data) = data() else { return };
    let edits = |value: &str| {
        input(
            data.join("wikipedia/wikipedia_edits_2015-09-12.jsonl.gz"),
            FieldMapping::new("time").with_key("channel").with_value(value),
            TimeFormat::Auto,
            0,
        )
    };
    for value in ["added", "deleted"] {
        let expected =
            golden(&data, "wiki_channel_tumble_1h.jsonl.gz", &["key", "window_start", "edits", value]);
        // Golden times are in milliseconds, and sums of whole numbers.
        let expected: Vec<String> = expected.iter().map(|row| widened(row, 1)).collect();
        let mut expected: Vec<String> = expected.iter().map(|row| format!("{row}.0")).collect();
        expected.sort_unstable();
        check_rows("hourly-counts", &edits(value), &[2, 0, 3, 4], &expected);
    }
}

/// A row with one field turned from milliseconds into microseconds.
fn widened(row: &str, column: usize) -> String {
    let mut fields: Vec<String> = row.split(',').map(str::to_string).collect();
    fields[column].push_str("000");
    fields.join(",")
}

#[test]
fn sliding_windows_of_taxis_give_the_golden_rows() {
    let Some(data) = data() else { return };
    let trips = input(
        data.join("taxi/green_taxi_2023-01.csv.gz"),
        FieldMapping::new("pickup_ms").with_key("pu_zone").with_value("fare"),
        TimeFormat::Millis,
        25 * HOUR_US,
    );
    let expected = golden(&data, "taxi_zone_hop_1h_15m_top1.jsonl.gz", &["window_start", "window_end", "n"]);
    let mut expected: Vec<String> = expected.iter().map(|row| widened(&widened(row, 0), 1)).collect();
    expected.sort_unstable();
    check_rows("busiest-hour", &trips, &[0, 1, 3], &expected);
    let expected = golden(&data, "taxi_zone_tumble_1h.jsonl.gz", &["key", "window_start", "trips"]);
    let mut expected: Vec<String> = expected.iter().map(|row| widened(row, 1)).collect();
    expected.sort_unstable();
    check_rows("hourly-counts", &trips, &[2, 0, 3], &expected);
}

/// Sessions of a minute.
fn sightings(job: &Job<'_>) {
    let sessions = Sessions::with_gap(60_000_000).unwrap();
    job.trace::<KeyValue<()>>()
        .map(|record| (record.key, ()))
        .session("sightings", sessions, Count)
        .sink("sightings", &["first", "end", "key", "count"]);
}

#[test]
fn sessions_of_aircraft_give_the_golden_rows() {
    let Some(data) = data() else { return };
    let positions = input(
        data.join("adsb/adsb_toulouse_2021-10-07.csv.gz"),
        FieldMapping::new("timestamp_ms").with_key("icao24").with_value("icao24"),
        TimeFormat::Millis,
        0,
    );
    let fields = ["session_start", "session_end", "key", "events"];
    let expected = golden(&data, "adsb_aircraft_session_60s.jsonl.gz", &fields);
    let mut expected: Vec<String> = expected.iter().map(|row| widened(&widened(row, 0), 1)).collect();
    expected.sort_unstable();
    check_job("sightings", sightings, &positions, &[0, 1, 2, 3], &expected);
}
