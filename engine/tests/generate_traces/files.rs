//! Files of traces: read back by other means, and the bundled ones against their specifications.

use crate::distributions::one;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use tidegate::generate::{
    Compression, GenerateError, GeneratedRecord, KeyFormat, OutputSpec, PayloadSpec, StreamSpec, TextFormat,
    TimeFormat, TraceGenerator, TraceSpec, TraceWriter, preset, preset_names, write_trace,
};

fn written(spec: &TraceSpec) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_trace(spec, &mut bytes).unwrap();
    bytes
}

fn unpacked(bytes: &[u8], compression: Compression) -> String {
    let mut text = String::new();
    match compression {
        Compression::Gzip => flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap(),
        Compression::Zstd => zstd::Decoder::new(bytes).unwrap().read_to_string(&mut text).unwrap(),
        _ => { bytes }.read_to_string(&mut text).unwrap(),
    };
    text
}

/// The rows of a file as maps from column to text, read by the csv and serde_json crates.
fn rows(text: &str, format: TextFormat) -> Vec<HashMap<String, String>> {
    let delimiter = match format {
        TextFormat::Jsonl => {
            let plain = |value: serde_json::Value| match value {
                serde_json::Value::String(text) => text,
                number => number.to_string(),
            };
            return text
                .lines()
                .map(|line| {
                    let object: serde_json::Map<_, _> = serde_json::from_str(line).unwrap();
                    object.into_iter().map(|(k, v)| (k, plain(v))).collect()
                })
                .collect();
        }
        TextFormat::Tsv => b'\t',
        _ => b',',
    };
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .from_reader(text.as_bytes())
        .deserialize()
        .map(Result::unwrap)
        .collect()
}

fn time_us(text: &str, format: TimeFormat) -> i64 {
    match format {
        TimeFormat::Microseconds => text.parse().unwrap(),
        TimeFormat::Milliseconds => text.parse::<i64>().unwrap() * 1_000,
        TimeFormat::Seconds => text.parse::<i64>().unwrap() * 1_000_000,
        _ => text.parse::<jiff::Timestamp>().unwrap().as_microsecond(),
    }
}

#[test]
fn each_format_can_be_read_back() {
    let formats = [TextFormat::Csv, TextFormat::Tsv, TextFormat::Jsonl];
    let times = [
        (TimeFormat::Microseconds, 1),
        (TimeFormat::Milliseconds, 1_000),
        (TimeFormat::Seconds, 1_000_000),
        (TimeFormat::Rfc3339, 1_000),
        (TimeFormat::Rfc3339Microseconds, 1),
    ];
    for (format, (time, unit)) in formats.into_iter().flat_map(|f| times.map(|t| (f, t))) {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let mut spec = one(|stream| stream.name = "clicks".to_owned());
            spec.streams.push(StreamSpec::default());
            spec.records = 3_000;
            // So that days turn, before and after 1970.
            spec.start_us = -86_401_000_000;
            spec.streams[0].arrivals = tidegate::generate::ArrivalProcess::Poisson { rate_per_s: 0.01 };
            spec.output = OutputSpec {
                format,
                compression,
                time,
                key: KeyFormat::Text { prefix: "k".to_owned(), digits: 6 },
                decimals: 2,
                stream_column: Some("stream".to_owned()),
                payload: Some(PayloadSpec { column: "payload".to_owned(), min_bytes: 0, max_bytes: 40 }),
                ..OutputSpec::default()
            };
            let read = rows(&unpacked(&written(&spec), compression), format);
            assert_eq!(read.len(), 3_000);
            let mut sizes = HashSet::new();
            for (row, record) in read.iter().zip(TraceGenerator::new(&spec).unwrap()) {
                let shown = record.time - record.time.rem_euclid(unit);
                assert_eq!(time_us(&row["time"], time), shown);
                assert_eq!(row["key"], format!("k{:06}", record.key));
                let value: f64 = row["value"].parse().unwrap();
                assert_eq!(value, record.value as f64 / 100.0);
                let stream = ["clicks", "events"][usize::from(record.stream)];
                assert_eq!(row["stream"], stream);
                assert!(row["payload"].bytes().all(|b| b.is_ascii_lowercase()));
                sizes.insert(row["payload"].len());
            }
            assert_eq!(sizes.len(), 41);
        }
    }
}

#[test]
fn extreme_records_are_written_as_they_are() {
    let mut spec = TraceSpec::default();
    for (format, expected) in [
        (TextFormat::Csv, "-9223372036854775808,18446744073709551615,-9223372036854775808\n"),
        (
            TextFormat::Jsonl,
            "{\"time\":-9223372036854775808,\"key\":18446744073709551615,\
             \"value\":-9223372036854775808}\n",
        ),
    ] {
        spec.output.format = format;
        spec.output.header = false;
        spec.output.time = TimeFormat::Microseconds;
        let mut writer = TraceWriter::new(Vec::new(), &spec).unwrap();
        let record = GeneratedRecord { stream: 0, time: i64::MIN, key: u64::MAX, value: i64::MIN };
        writer.write(&record).unwrap();
        assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), expected);
    }
}

#[test]
fn a_time_without_a_date_is_refused_and_nothing_of_it_written() {
    let mut spec = TraceSpec::default();
    spec.output.time = TimeFormat::Rfc3339;
    spec.output.header = false;
    let mut writer = TraceWriter::new(Vec::new(), &spec).unwrap();
    let mut record = GeneratedRecord { stream: 0, time: 0, key: 1, value: 2 };
    writer.write(&record).unwrap();
    record.time = i64::MAX;
    let error = writer.write(&record).unwrap_err();
    assert!(matches!(error, GenerateError::TimeOutOfRange { record: 2, .. }), "{error}");
    assert_eq!(writer.finish().unwrap(), b"1970-01-01T00:00:00.000Z,1,2\n");
}

#[test]
fn a_full_disk_is_an_error() {
    /// Takes so many bytes and no more.
    struct Disk(usize);
    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            match taken {
                0 => Err(io::ErrorKind::StorageFull.into()),
                taken => Ok(taken),
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let mut spec = one(|_| {});
        spec.output.compression = compression;
        let size = written(&spec).len();
        assert!(write_trace(&spec, Disk(size)).is_ok());
        for room in [0, 5, size / 2, size - 1] {
            let error = write_trace(&spec, Disk(room)).unwrap_err();
            assert!(matches!(error, GenerateError::Write { .. }), "{compression:?} {room}: {error}");
        }
    }
}

#[test]
fn a_gzip_header_tells_neither_name_nor_time_nor_system() {
    let mut spec = one(|_| {});
    spec.output.compression = Compression::Gzip;
    // RFC 1952: magic, deflate, no flags, time 0, no extra flags, unknown system.
    assert_eq!(written(&spec)[..10], [31, 139, 8, 0, 0, 0, 0, 0, 0, 255]);
}

// ----- the bundled traces

fn traces() -> PathBuf {
    PathBuf::from("../traces")
}

const BUNDLED: [(&str, &str); 3] =
    [("orders", "orders.csv.gz"), ("sensors", "sensors.jsonl.gz"), ("clicks", "clicks.tsv.gz")];

fn bundled_spec(name: &str) -> TraceSpec {
    let path = traces().join("specs").join(format!("{name}.json"));
    TraceSpec::from_json(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn bundled_traces_are_what_their_specifications_give() {
    for (name, file) in BUNDLED {
        let spec = bundled_spec(name);
        let kept = std::fs::read(traces().join(file)).unwrap();
        let made = written(&spec);
        let text = |bytes: &[u8]| unpacked(bytes, Compression::Gzip);
        assert!(text(&kept) == text(&made), "the records of {file} have changed");
        assert!(
            kept == made,
            "{file} holds the right records, but a new version of the compressor packs them \
             otherwise: make it anew as traces/README.md says"
        );
    }
}

#[test]
fn bundled_specifications_are_the_presets() {
    for (name, _) in BUNDLED {
        assert_eq!(bundled_spec(name), preset(name).unwrap());
    }
    assert_eq!(preset_names().take(3).collect::<Vec<_>>(), BUNDLED.map(|b| b.0));
}

#[test]
fn bundled_traces_are_small() {
    let size = |file| std::fs::metadata(traces().join(file)).unwrap().len();
    let total: u64 = BUNDLED.iter().map(|(_, file)| size(file)).sum();
    assert!(total < 1_500_000, "{total}");
}

/// A row of the table in traces/README.md, measured on the file.
fn statistics(file: &str, spec: &TraceSpec) -> String {
    let bytes = std::fs::read(traces().join(file)).unwrap();
    let output = &spec.output;
    let rows = rows(&unpacked(&bytes, Compression::Gzip), output.format);
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let (mut newest, mut oldest) = (i64::MIN, i64::MAX);
    let usual_us = spec.streams[0].lag.usual.max_us() as i64;
    let (mut late, mut stragglers, mut max_lag_us) = (0, 0, 0);
    for row in &rows {
        let time = time_us(&row[&output.time_column], output.time);
        *counts.entry(&row[&output.key_column]).or_default() += 1;
        newest = newest.max(time);
        oldest = oldest.min(time);
        late += usize::from(time < newest);
        stragglers += usize::from(newest - time > usual_us);
        max_lag_us = max_lag_us.max(newest - time);
    }
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let hottest: usize = counts[..counts.len().div_ceil(100)].iter().sum();
    let percent = |part: usize| 100.0 * part as f64 / rows.len() as f64;
    format!(
        "| `{file}` | {} | {} s | {} | {:.1} % | {:.1} % | {} ms | {stragglers} |",
        rows.len(),
        (newest - oldest) / 1_000_000,
        counts.len(),
        percent(hottest),
        percent(late),
        max_lag_us / 1_000,
    )
}

#[test]
fn the_statistics_of_bundled_traces_are_those_in_the_readme() {
    let readme = std::fs::read_to_string(traces().join("README.md")).unwrap();
    for (name, file) in BUNDLED {
        let row = statistics(file, &bundled_spec(name));
        assert!(readme.contains(&row), "not in traces/README.md:\n{row}");
    }
}

/// Not a test: writes the bundled traces and their specifications, from the presets.
#[test]
#[ignore = "writes files into the source tree"]
fn make_bundled_traces() {
    for (name, file) in BUNDLED {
        let spec = preset(name).unwrap();
        let path = traces().join("specs").join(format!("{name}.json"));
        std::fs::write(path, spec.to_json().unwrap()).unwrap();
        std::fs::write(traces().join(file), written(&spec)).unwrap();
        println!("{}", statistics(file, &spec));
    }
}
