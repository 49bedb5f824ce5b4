//! No bytes, however broken, make a reader panic, lose count, or depend on how the bytes came in.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fmt::Debug;
use std::io::{self, Cursor, Read};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate::source::{
    BadLine, BadLines, FieldMapping, Format, Input, KeyValue, Row, SourceError, Status, TimeFormat,
    TraceOptions, TraceReader,
};

/// Gives its bytes in pieces of one size.
struct Pieces {
    bytes: Cursor<Vec<u8>>,
    size: usize,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let size = self.size.min(into.len());
        self.bytes.read(&mut into[..size])
    }
}

/// All that can be seen of a reading.
#[derive(Debug, PartialEq)]
struct Reading<R> {
    rows: Vec<Row<R>>,
    error: Option<String>,
    bad_line: Option<BadLine>,
    skipped: Vec<BadLine>,
    position: u64,
}

fn read<R: DeserializeOwned>(
    bytes: &[u8],
    piece_bytes: usize,
    limit: usize,
    options: &TraceOptions,
) -> Reading<R> {
    let mut reading =
        Reading { rows: Vec::new(), error: None, bad_line: None, skipped: Vec::new(), position: 0 };
    let pieces = Pieces { bytes: Cursor::new(bytes.to_vec()), size: piece_bytes };
    let reader =
        Input::from_reader("x", pieces, None).and_then(|input| TraceReader::from_input(input, options));
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => {
            reading.error = Some(error.to_string());
            return reading;
        }
    };
    // Each line of data has a byte at least, and none is read twice.
    for _ in 0..2 * bytes.len() + 10_000 {
        match reader.read(limit, &mut reading.rows) {
            Ok(Status::More) => {}
            Ok(Status::Ended) => {
                reading.skipped = reader.bad_lines().first.clone();
                reading.position = reader.position();
                let all = reading.rows.len() as u64 + reader.bad_lines().total;
                assert_eq!(reading.position, all, "a line was lost");
                return reading;
            }
            Err(error) => {
                reading.error = Some(error.to_string());
                if let SourceError::BadLine(bad_line) = error {
                    reading.bad_line = Some(bad_line);
                }
                return reading;
            }
        }
    }
    panic!("reading does not end");
}

fn check<R: DeserializeOwned + PartialEq + Debug>(bytes: &[u8], piece_bytes: usize, options: &TraceOptions) {
    let mut options = options.clone();
    options.bad_lines = BadLines::Skip;
    let skipping = read::<R>(bytes, usize::MAX, 1000, &options);
    assert_eq!(skipping, read::<R>(bytes, piece_bytes, 3, &options), "it matters how bytes come in");
    options.bad_lines = BadLines::Fail;
    let failing = read::<R>(bytes, usize::MAX, 1000, &options);
    assert_eq!(failing, read::<R>(bytes, piece_bytes, 3, &options), "it matters how bytes come in");
    let before = skipping.rows.iter().take(failing.rows.len());
    assert!(failing.rows.iter().eq(before), "the policy changes rows that are good");
    if skipping.error.is_none() {
        assert_eq!(failing.bad_line.as_ref(), skipping.skipped.first());
        assert_eq!(failing.error.is_some(), failing.bad_line.is_some());
    }
}

#[derive(Debug, PartialEq, Deserialize)]
struct Nested {
    key: Option<Key>,
    value: Option<Vec<f32>>,
    x: Option<serde_json::Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Key {
    Number(i64),
    Text(String),
    Flag(bool),
}

fn check_all(bytes: &[u8], piece_bytes: usize, options: &TraceOptions) {
    check::<()>(bytes, piece_bytes, options);
    check::<KeyValue<()>>(bytes, piece_bytes, options);
    check::<KeyValue<Option<i32>>>(bytes, piece_bytes, options);
    check::<Nested>(bytes, piece_bytes, options);
    check::<HashMap<String, String>>(bytes, piece_bytes, options);
    check::<serde_json::Value>(bytes, piece_bytes, options);
}

fn options() -> impl Strategy<Value = TraceOptions> {
    let format = prop_oneof![
        Just(None),
        Just(Some(Format::Csv)),
        Just(Some(Format::Tsv)),
        Just(Some(Format::JsonLines)),
    ];
    let time_format = prop_oneof![
        Just(TimeFormat::Raw),
        Just(TimeFormat::Seconds),
        Just(TimeFormat::Auto),
        Just(TimeFormat::Nanos),
    ];
    let mapping = prop_oneof![
        Just(FieldMapping::new("t")),
        Just(FieldMapping::new("t").with_key("k")),
        Just(FieldMapping::new("t").with_key("k+v").with_value("v")),
    ];
    let limit = prop_oneof![Just(1 << 20), 0_usize..100];
    (format, time_format, mapping, limit).prop_map(|(format, time_format, mapping, limit)| {
        let mut options = TraceOptions::new(mapping);
        options.format = format;
        options.time_format = time_format;
        options.line_limit_bytes = limit;
        options
    })
}

fn valid_file() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just("t,k,v\n1,a,5\n2,\"b \"\"c\"\"\",-7\r\n\n2023-01-01 00:00:01,\"d\ne\",\n4,f,1e9\n".to_owned()),
        Just("t\tk\tv\n1\ta\t5\n-2.5\t\"b\tc\"\t6\n".to_owned()),
        Just(
            "{\"t\":1,\"k\":\"a\",\"v\":5,\"x\":{\"y\":[1,2.5e3,null,true]}}\n\n\
             {\"t\":\"2023-01-01T00:00:00Z\",\"k\":7,\"v\":[1,2]}\r\n{\"k\":\"\\u00e9\\n\",\"t\":-3}\n"
                .to_owned()
        ),
    ]
    .prop_map(String::into_bytes)
}

/// A change to a file.
#[derive(Debug, Clone)]
enum Mutation {
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index),
    Cut(Index),
    Repeat(Index, Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let byte =
        || prop_oneof![any::<u8>(), proptest::sample::select(b"\"\n\r,\t{}[]:\\ 0-.tk\xff\xc3".to_vec()),];
    prop_oneof![
        (any::<Index>(), byte()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (any::<Index>(), byte()).prop_map(|(at, byte)| Mutation::Insert(at, vec![byte])),
        // A byte order mark, which is none when it does not stand at the very beginning.
        any::<Index>().prop_map(|at| Mutation::Insert(at, b"\xef\xbb\xbf".to_vec())),
        any::<Index>().prop_map(Mutation::Remove),
        any::<Index>().prop_map(Mutation::Cut),
        any::<(Index, Index)>().prop_map(|(from, to)| Mutation::Repeat(from, to)),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let place = |index: &Index, bytes: &Vec<u8>| index.index(bytes.len() + 1);
    match mutation {
        Mutation::Insert(at, inserted) => {
            let at = place(at, bytes);
            bytes.splice(at..at, inserted.iter().copied());
        }
        Mutation::Cut(at) => bytes.truncate(place(at, bytes)),
        Mutation::Repeat(from, to) => {
            let (from, to) = (place(from, bytes), place(to, bytes));
            bytes.extend_from_within(from.min(to)..from.max(to));
        }
        _ if bytes.is_empty() => {}
        Mutation::Replace(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Mutation::Remove(at) => drop(bytes.remove(at.index(bytes.len()))),
    }
}

proptest! {
    #[test]
    fn random_bytes_are_survived(
        bytes in prop_oneof![
            vec(any::<u8>(), 0..200),
            "(t,k,v\n|t\tk\tv\n)?[tkv0-9,\t\"\r\n\u{feff} {}:\\\\-]{0,100}".prop_map(String::into_bytes),
        ],
        piece_bytes in 1_usize..20,
        options in options(),
    ) {
        check_all(&bytes, piece_bytes, &options);
    }

    #[test]
    fn mutated_files_are_survived(
        mut bytes in valid_file(),
        mutations in vec(mutation(), 0..6),
        piece_bytes in 1_usize..20,
        options in options(),
    ) {
        for mutation in &mutations {
            mutate(&mut bytes, mutation);
        }
        check_all(&bytes, piece_bytes, &options);
    }

    #[test]
    fn mutated_compressed_files_are_survived(
        bytes in valid_file(),
        gzip: bool,
        mutations in vec(mutation(), 0..4),
        piece_bytes in 1_usize..20,
        options in options(),
    ) {
        let mut packed = Vec::new();
        if gzip {
            let mut encoder = flate2::bufread::GzEncoder::new(&*bytes, flate2::Compression::fast());
            encoder.read_to_end(&mut packed).unwrap();
        } else {
            packed = zstd::encode_all(&*bytes, 1).unwrap();
        }
        for mutation in &mutations {
            mutate(&mut packed, mutation);
        }
        // What is decoded before damage is found depends on the pieces, so only survival is asked for.
        let mut options = options;
        for policy in [BadLines::Skip, BadLines::Fail] {
            options.bad_lines = policy;
            let reading = read::<serde_json::Value>(&packed, piece_bytes, 3, &options);
            prop_assert!(reading.error.is_none_or(|error| error.starts_with("x: ")));
        }
    }
}
