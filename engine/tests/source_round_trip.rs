//! What other libraries write is read back equal, whatever the format, the compression, the sizes of the
//! pieces in which the bytes come in, and the sizes of the batches in which the rows are taken out.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tidegate::source::{
    BadLines, FieldMapping, Format, Input, KeyValue, Row, Status, TimeFormat, TraceOptions, TraceReader,
};

/// Gives its bytes in pieces of the given sizes, over and over.
struct Pieces {
    bytes: io::Cursor<Vec<u8>>,
    sizes: Vec<usize>,
    next: usize,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.next += 1;
        let size = self.sizes[self.next % self.sizes.len()].min(into.len());
        self.bytes.read(&mut into[..size])
    }
}

#[derive(Debug, Clone, Copy)]
enum Packing {
    Plain,
    Gzip,
    GzipOfTwoMembers,
    Zstd,
    ZstdOfTwoFrames,
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn pack(bytes: &[u8], packing: Packing) -> Vec<u8> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    match packing {
        Packing::Plain => bytes.to_owned(),
        Packing::Gzip => gzip(bytes),
        Packing::GzipOfTwoMembers => [gzip(first), gzip(second)].concat(),
        Packing::Zstd => zstd(bytes),
        Packing::ZstdOfTwoFrames => [zstd(first), zstd(second)].concat(),
    }
}

fn packing() -> impl Strategy<Value = Packing> {
    prop_oneof![
        Just(Packing::Plain),
        Just(Packing::Gzip),
        Just(Packing::GzipOfTwoMembers),
        Just(Packing::Zstd),
        Just(Packing::ZstdOfTwoFrames),
    ]
}

/// How bytes come in and rows go out.
#[derive(Debug, Clone)]
struct Chunks {
    packing: Packing,
    piece_bytes: Vec<usize>,
    limits: Vec<usize>,
    /// Whether the input is a file, or a pipe that may have to be waited for.
    length_known: bool,
}

fn chunks() -> impl Strategy<Value = Chunks> {
    (packing(), vec(1_usize..50, 1..5), vec(1_usize..8, 1..5), any::<bool>()).prop_map(
        |(packing, piece_bytes, limits, length_known)| Chunks { packing, piece_bytes, limits, length_known },
    )
}

fn open<R: DeserializeOwned>(bytes: &[u8], chunks: &Chunks, options: &TraceOptions) -> TraceReader<R> {
    let packed = pack(bytes, chunks.packing);
    let total_bytes = chunks.length_known.then_some(packed.len() as u64);
    let bytes = io::Cursor::new(packed);
    let pieces = Pieces { bytes, sizes: chunks.piece_bytes.clone(), next: 0 };
    let input = Input::from_reader("x", pieces, total_bytes).unwrap();
    TraceReader::from_input(input, options).unwrap()
}

fn read_rest<R: DeserializeOwned>(reader: &mut TraceReader<R>, chunks: &Chunks) -> Vec<Row<R>> {
    let mut rows = Vec::new();
    for limit in chunks.limits.iter().cycle() {
        let before = rows.len();
        let status = reader.read(*limit, &mut rows).unwrap();
        assert!(rows.len() - before <= *limit);
        if status == Status::Ended {
            break;
        }
    }
    let mut none = Vec::new();
    assert_eq!(reader.read(5, &mut none).unwrap(), Status::Ended);
    assert!(none.is_empty());
    rows
}

fn read_records<R: DeserializeOwned>(bytes: &[u8], chunks: &Chunks, options: &TraceOptions) -> Vec<R> {
    let rows = read_rest(&mut open(bytes, chunks, options), chunks);
    rows.into_iter().map(|row| row.record).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Buy,
    Sell,
}

/// A record of everything that fits in a field of CSV.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Event {
    at: i64,
    text: String,
    number: f64,
    small: f32,
    count: Option<u32>,
    wide: i128,
    flag: bool,
    letter: char,
    side: Side,
}

/// The same with its fields in another order and not all of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Part {
    side: Side,
    count: Option<u32>,
    #[serde(default)]
    absent: u8,
    text: String,
    also_absent: Option<String>,
}

fn event() -> impl Strategy<Value = Event> {
    let text = prop_oneof!["[a-c,\"\t\r\n ß|]{0,12}", any::<String>()];
    let numbers = (-1e9..1e9_f64, -1e3..1e3_f32, any::<Option<u32>>(), any::<i128>());
    let others = (any::<bool>(), any::<char>(), prop_oneof![Just(Side::Buy), Just(Side::Sell)]);
    (any::<i64>(), text, numbers, others).prop_map(|(at, text, numbers, others)| {
        let (number, small, count, wide) = numbers;
        let (flag, letter, side) = others;
        Event { at, text, number, small, count, wide, flag, letter, side }
    })
}

fn write(events: &[Event], format: Format, crlf: bool, quote_all: bool) -> Vec<u8> {
    if format == Format::JsonLines {
        let end = if crlf { "\r\n" } else { "\n" };
        let line = |event| serde_json::to_string(event).unwrap();
        return events.iter().map(line).collect::<Vec<_>>().join(end).into_bytes();
    }
    let mut builder = csv::WriterBuilder::new();
    builder.delimiter(if format == Format::Tsv { b'\t' } else { b',' });
    if crlf {
        builder.terminator(csv::Terminator::CRLF);
    }
    if quote_all {
        builder.quote_style(csv::QuoteStyle::Always);
    }
    let mut writer = builder.from_writer(Vec::new());
    if events.is_empty() {
        let header = "at text number small count wide flag letter side";
        writer.write_record(header.split(' ')).unwrap();
    }
    for event in events {
        writer.serialize(event).unwrap();
    }
    writer.into_inner().unwrap()
}

fn options(format: Format) -> TraceOptions {
    let mut options = TraceOptions::new(FieldMapping::new("at"));
    options.format = Some(format);
    options.time_format = TimeFormat::Raw;
    options
}

fn formats() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::Csv), Just(Format::Tsv), Just(Format::JsonLines)]
}

proptest! {
    #[test]
    fn events_are_read_back_equal(
        events in vec(event(), 0..12),
        format in formats(),
        (crlf, quote_all) in any::<(bool, bool)>(),
        chunks in chunks(),
    ) {
        let bytes = write(&events, format, crlf, quote_all);
        let rows = read_rest(&mut open(&bytes, &chunks, &options(format)), &chunks);
        let row = |(position, event): (u64, &Event)| {
            Row { time: event.at, position, record: event.clone() }
        };
        let expected: Vec<Row<Event>> = (0..).zip(&events).map(row).collect();
        prop_assert_eq!(rows, expected);
    }

    #[test]
    fn any_part_of_the_fields_can_be_read_in_any_order(
        events in vec(event(), 0..12),
        format in formats(),
        chunks in chunks(),
    ) {
        let bytes = write(&events, format, false, false);
        let records: Vec<Part> = read_records(&bytes, &chunks, &options(format));
        let part = |event: &Event| Part {
            side: event.side,
            count: event.count,
            absent: 0,
            text: event.text.clone(),
            also_absent: None,
        };
        prop_assert_eq!(records, events.iter().map(part).collect::<Vec<_>>());
    }

    #[test]
    fn mapped_fields_become_key_and_value(
        events in vec(event(), 0..12),
        format in formats(),
        chunks in chunks(),
    ) {
        let bytes = write(&events, format, false, false);
        let mut options = options(format);
        options.fields = FieldMapping::new("at").with_key("text").with_value("number");
        let records: Vec<KeyValue<f64>> = read_records(&bytes, &chunks, &options);
        let single = |event: &Event| KeyValue { key: event.text.as_str().into(), value: event.number };
        prop_assert_eq!(records, events.iter().map(single).collect::<Vec<_>>());

        options.fields = FieldMapping::new("at").with_key("text+wide+flag").with_value("wide");
        let records: Vec<KeyValue<i128>> = read_records(&bytes, &chunks, &options);
        let joined = |event: &Event| KeyValue {
            key: format!("{}|{}|{}", event.text, event.wide, event.flag).into(),
            value: event.wide,
        };
        prop_assert_eq!(records, events.iter().map(joined).collect::<Vec<_>>());
    }

    #[test]
    fn reading_goes_on_at_any_position(
        events in vec(event(), 0..12),
        format in formats(),
        chunks in chunks(),
        (read_before, skipped) in (0_usize..12, 0_usize..12),
    ) {
        let bytes = write(&events, format, true, false);
        let mut reader: TraceReader<Event> = open(&bytes, &chunks, &options(format));
        let mut before = Vec::new();
        while before.len() < read_before.min(events.len()) {
            reader.read(read_before - before.len(), &mut before).unwrap();
        }
        let position = (before.len() + skipped).min(events.len());
        reader.skip_to(position as u64).unwrap();
        let rows = read_rest(&mut reader, &chunks);
        prop_assert!(rows.iter().map(|row| &row.record).eq(&events[position..]));
        prop_assert!(reader.skip_to(events.len() as u64 + 1).is_err());
    }

    /// Bad and blank lines are strewn in; what is expected is worked out from the list of lines alone.
    #[test]
    fn positions_and_line_numbers_count_what_they_should(
        lines in vec(prop_oneof![
            3 => (0_i64..1000).prop_map(Some),
            1 => Just(None),
        ], 0..20),
        blanks in vec(0_usize..3, 21),
        format in prop_oneof![Just(Format::Csv), Just(Format::JsonLines)],
        chunks in chunks(),
    ) {
        let json = format == Format::JsonLines;
        let mut text = if json { String::new() } else { "at,key\n".to_owned() };
        let mut line_number = if json { 1_u64 } else { 2 };
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (position, line) in lines.iter().enumerate() {
            text.push_str(&" \n".repeat(blanks[position]));
            line_number += blanks[position] as u64;
            let time = line.map_or("x".to_owned(), |time| time.to_string());
            text.push_str(&match json {
                true => format!("{{\"key\": 5, \"at\": \"{time}\"}}\n"),
                false => format!("{time},5\r\n"),
            });
            match line {
                Some(time) => good.push((*time, position as u64)),
                None => bad.push((line_number, position as u64)),
            }
            line_number += 1;
        }
        text.push_str(&"\n".repeat(blanks[20]));

        let mut options = options(format);
        options.bad_lines = BadLines::Skip;
        let mut reader: TraceReader<KeyValue<()>> = open(text.as_bytes(), &chunks, &options);
        let rows = read_rest(&mut reader, &chunks);
        prop_assert!(rows.iter().map(|row| (row.time, row.position)).eq(good));
        prop_assert_eq!(reader.position(), lines.len() as u64);
        let report = reader.bad_lines();
        prop_assert!(report.first.iter().map(|line| (line.line, line.position)).eq(bad));
        prop_assert_eq!(report.total, report.first.len() as u64);
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Nested {
    at: i64,
    tags: Vec<String>,
    place: Option<Place>,
    scores: BTreeMap<String, f32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Place {
    name: String,
    position: (i32, i32),
}

fn nested() -> impl Strategy<Value = Nested> {
    let place = (any::<String>(), any::<(i32, i32)>()).prop_map(|(name, position)| Place { name, position });
    let scores = proptest::collection::btree_map(any::<String>(), -1e3..1e3_f32, 0..4);
    let place = proptest::option::of(place);
    (any::<i64>(), vec(any::<String>(), 0..4), place, scores).prop_map(|(at, tags, place, scores)| Nested {
        at,
        tags,
        place,
        scores,
    })
}

proptest! {
    #[test]
    fn json_values_may_be_lists_and_objects(events in vec(nested(), 0..6), chunks in chunks()) {
        let line = |event| serde_json::to_string(event).unwrap();
        let lines: Vec<String> = events.iter().map(line).collect();
        let bytes = lines.join("\n").into_bytes();
        let options = options(Format::JsonLines);
        prop_assert_eq!(read_records::<Nested>(&bytes, &chunks, &options), events);
        // And once more as a tree: a record type that takes any field sees all of them.
        let records: Vec<serde_json::Value> = read_records(&bytes, &chunks, &options);
        let tree = |line: &String| serde_json::from_str(line).unwrap();
        let expected: Vec<serde_json::Value> = lines.iter().map(tree).collect();
        prop_assert_eq!(records, expected);
    }
}
