//! What cannot be read is said with file, line and field, and never taken for something else.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, Read, Write};
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate::source::{
    BadLines, Compression, FieldMapping, Format, Input, KEPT_BAD_LINES, KeyValue, Row, SourceError, Status,
    TimeFormat, TraceOptions, TraceReader,
};

fn options(mapping: FieldMapping) -> TraceOptions {
    let mut options = TraceOptions::new(mapping);
    options.time_format = TimeFormat::Raw;
    options
}

fn try_read<R: DeserializeOwned>(
    name: &str,
    bytes: &[u8],
    options: &TraceOptions,
) -> (Vec<Row<R>>, Option<SourceError>) {
    let mut rows = Vec::new();
    let input = Input::from_reader(name, Cursor::new(bytes.to_vec()), Some(bytes.len() as u64));
    let reader = input.and_then(|input| TraceReader::from_input(input, options));
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return (rows, Some(error)),
    };
    loop {
        match reader.read(100, &mut rows) {
            Ok(Status::More) => {}
            Ok(Status::Ended) => return (rows, None),
            Err(error) => {
                // Whatever went wrong, the reader does not go on as if it had not.
                let again = reader.read(1, &mut rows);
                assert!(matches!(again, Err(SourceError::Stopped { .. })), "{again:?}");
                return (rows, Some(error));
            }
        }
    }
}

fn message<R: DeserializeOwned>(name: &str, text: &str, mapping: FieldMapping) -> String {
    let (_, error) = try_read::<R>(name, text.as_bytes(), &options(mapping));
    error.map_or_else(String::new, |error| error.to_string())
}

fn records<R: DeserializeOwned>(name: &str, text: &str, mapping: FieldMapping) -> Vec<R> {
    let (rows, error) = try_read(name, text.as_bytes(), &options(mapping));
    assert!(error.is_none(), "{error:?}");
    rows.into_iter().map(|row| row.record).collect()
}

fn time_and_key() -> FieldMapping {
    FieldMapping::new("t").with_key("k")
}

#[derive(Debug, PartialEq, Deserialize)]
struct Sale {
    key: String,
    price: f64,
    count: Option<u8>,
    #[serde(default)]
    refund: bool,
}

#[test]
fn a_field_that_is_not_there_is_an_error_when_a_csv_file_is_opened() {
    let text = "t,k,price\n";
    let there = "the fields there are: `t`, `k`, `price`";
    let open = |mapping| message::<Sale>("a.csv", text, mapping);
    assert_eq!(open(time_and_key()), "");
    assert_eq!(
        open(FieldMapping::new("time").with_key("k")),
        format!("a.csv: there is no field `time`, which --time asks for; {there}")
    );
    assert_eq!(
        open(FieldMapping::new("t").with_key("k+zone")),
        format!("a.csv: there is no field `zone`, which --key asks for; {there}")
    );
    assert_eq!(
        open(time_and_key().with_value("v")),
        format!("a.csv: there is no field `v`, which --value asks for; {there}")
    );
    assert_eq!(
        open(FieldMapping::new("t")),
        format!(
            "a.csv: there is no field `key`, which the pipeline needs (pass --key to say which field \
             is the key); {there}"
        )
    );
    assert_eq!(
        message::<Sale>("a.csv", "t,k,cost\n", time_and_key()),
        "a.csv: there is no field `price`, which the pipeline needs; the fields there are: `t`, `k`, `cost`"
    );
    assert!(message::<KeyValue<f64>>("a.csv", text, time_and_key()).contains("pass --value"));
    assert!(message::<()>("a.csv", "t,t\n", FieldMapping::new("t")).contains("more than once"));
    assert!(
        message::<Sale>("a.csv", "t,k,price,price\n", time_and_key()).contains("`price`, which the pipeline")
    );
    // A repeated name that nobody asks for does no harm.
    assert_eq!(message::<Sale>("a.csv", "t,k,price,x,x\n", time_and_key()), "");
}

#[test]
fn a_field_that_is_not_there_is_a_bad_line_in_json() {
    let read = |line: &str, mapping| message::<Sale>("a.jsonl", line, mapping);
    assert_eq!(read(r#"{"t":1,"k":"a","price":2}"#, time_and_key()), "");
    assert_eq!(
        read("\n{\"k\":\"a\"}", time_and_key()),
        "a.jsonl: line 2: there is no field `t`, which --time asks for"
    );
    assert_eq!(
        read(r#"{"t":1,"price":2}"#, time_and_key()),
        "a.jsonl: line 1: there is no field `k`, which --key asks for"
    );
    assert_eq!(
        read(r#"{"t":1,"a":"x","b":null,"price":2}"#, FieldMapping::new("t").with_key("a+b")),
        "a.jsonl: line 1: field `b`: `null`: a part of the key is null"
    );
    assert_eq!(
        read(r#"{"t":1,"a":"x","b":[],"price":2}"#, FieldMapping::new("t").with_key("a+b")),
        "a.jsonl: line 1: field `b`: `[]`: a part of a key must be a string, a number, true or false"
    );
    assert_eq!(
        read(r#"{"t":1,"k":"a"}"#, time_and_key()),
        "a.jsonl: line 1: there is no field `price`, which the pipeline needs"
    );
    assert!(read(r#"{"t":1,"price":2}"#, FieldMapping::new("t")).contains("pass --key"));
    let value = message::<KeyValue<u8>>("a.jsonl", r#"{"t":1,"k":2}"#, time_and_key().with_value("v"));
    assert_eq!(value, "a.jsonl: line 1: there is no field `v`, which --value asks for");
}

#[test]
fn a_bad_field_is_named_with_its_text_and_the_reason() {
    let csv =
        |line: &str| message::<Sale>("a.csv", &format!("t,k,price,count,refund\n{line}\n"), time_and_key());
    assert_eq!(csv("1,a,2.5,,false"), "");
    assert_eq!(
        csv("1,a,cheap,,false"),
        "a.csv: line 2: field `price`: `cheap`: cannot be read as a number of type f64: invalid float literal"
    );
    assert_eq!(
        csv("1,a,2,256,false"),
        "a.csv: line 2: field `count`: `256`: cannot be read as a number of type u8: \
         number too large to fit in target type"
    );
    assert_eq!(
        csv("1,a,2,,maybe"),
        "a.csv: line 2: field `refund`: `maybe`: is neither true, false, 1 nor 0"
    );
    assert_eq!(csv("1.5,a,2,,1"), "a.csv: line 2: field `t`: `1.5`: not an integer (--time-unit is raw)");
    assert_eq!(csv(",a,2,,1"), "a.csv: line 2: field `t`: ``: there is no time");
    assert_eq!(csv("1,a,2,1"), "a.csv: line 2: the header has 5 fields, this line 4");
    assert_eq!(csv("1,a,2,,1,"), "a.csv: line 2: the header has 5 fields, this line 6");
    assert_eq!(csv("1,a,2,1,1\n\n1,\"b\n"), "a.csv: line 4: the file ends within a quoted field");

    let json = |line: &str| message::<Sale>("a.jsonl", line, time_and_key());
    assert_eq!(
        json(r#"{"t":1,"k":"a","price":{"eur":2}}"#),
        r#"a.jsonl: line 1: field `price`: `{"eur":2}`: invalid type: map, expected f64"#
    );
    assert_eq!(
        json(r#"{"t":[1],"k":"a","price":2}"#),
        "a.jsonl: line 1: field `t`: `[1]`: is no time: it must be a number or a string"
    );
    assert_eq!(
        json(r#"{"t":1,"k":null,"price":2}"#),
        "a.jsonl: line 1: field `k`: `null`: invalid type: null, expected a string"
    );
    assert_eq!(
        json(r#"{"t":1,"k":"a" "price":2}"#),
        "a.jsonl: line 1: `{\"t\":1,\"k\":\"a\" \"price\":2}`: expected `,` or `}` (column 16)"
    );
    assert!(json("[]").contains("must be one JSON object"));
    assert!(json("{").contains("EOF while parsing an object"));
}

#[test]
fn a_number_without_a_unit_is_an_error_even_where_bad_lines_are_skipped() {
    let mut options = TraceOptions::new(FieldMapping::new("t"));
    options.bad_lines = BadLines::Skip;
    for (name, text) in [("a.csv", "t\n1694620800\n"), ("a.jsonl", "\n{\"t\":1694620800}")] {
        let (_, error) = try_read::<()>(name, text.as_bytes(), &options);
        let expected = format!(
            "{name}: line 2: field `t`: `1694620800` is a number without a unit; pass --time-unit s, ms, \
             us, ns or raw"
        );
        assert_eq!(error.unwrap().to_string(), expected);
    }
    // But a stray number among times that have a form of their own is a bad line like others.
    let (rows, error) = try_read::<()>("a.csv", b"t\n2023-01-01\n5\n2023-01-02\n", &options);
    assert!(error.is_none());
    assert_eq!(rows.iter().map(|row| row.position).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn skipped_lines_are_counted_and_the_first_are_kept() {
    let mut options = options(time_and_key());
    options.bad_lines = BadLines::Skip;
    let text = format!("t,k\n1,a\n{}2,b\n", "x,c\n".repeat(KEPT_BAD_LINES + 50));
    let input = Input::from_reader("a.csv", Cursor::new(text), None).unwrap();
    let mut reader = TraceReader::<KeyValue<()>>::from_input(input, &options).unwrap();
    let mut rows = Vec::new();
    while reader.read(7, &mut rows).unwrap() == Status::More {}
    let positions: Vec<u64> = rows.iter().map(|row| row.position).collect();
    assert_eq!(positions, [0, KEPT_BAD_LINES as u64 + 51]);
    let report = reader.bad_lines();
    assert_eq!((report.total, report.first.len()), (KEPT_BAD_LINES as u64 + 50, KEPT_BAD_LINES));
    let last = report.first.last().unwrap();
    assert_eq!((last.line, last.position), (KEPT_BAD_LINES as u64 + 2, KEPT_BAD_LINES as u64));
    assert_eq!(last.to_string(), "a.csv: line 102: field `t`: `x`: not an integer (--time-unit is raw)");
}

#[test]
fn a_line_beyond_the_limit_is_bad_and_the_next_is_not() {
    for (name, first, long, last) in [
        ("a.csv", "t,k\n1,a\n", format!("2,{}\n", "b".repeat(500_000)), "3,c"),
        (
            "a.jsonl",
            "{\"t\":1,\"k\":1}\n",
            format!("{{\"t\":2,\"k\":{}}}\n", "2".repeat(500_000)),
            "{\"t\":3,\"k\":3}",
        ),
    ] {
        let text = format!("{first}{long}{last}");
        let mut options = options(time_and_key());
        options.line_limit_bytes = 400_000;
        let (rows, error) = try_read::<KeyValue<()>>(name, text.as_bytes(), &options);
        assert_eq!(rows.len(), 1);
        assert!(error.unwrap().to_string().ends_with(": the line is longer than the limit for lines"));
        options.bad_lines = BadLines::Skip;
        let (rows, _) = try_read::<KeyValue<()>>(name, text.as_bytes(), &options);
        assert_eq!(rows.iter().map(|row| (row.time, row.position)).collect::<Vec<_>>(), [(1, 0), (3, 2)]);
        options.line_limit_bytes = 600_000;
        let (rows, _) = try_read::<KeyValue<()>>(name, text.as_bytes(), &options);
        assert_eq!(rows.len(), 3);
        options.line_limit_bytes = 0;
        let (rows, _) = try_read::<KeyValue<()>>("a.jsonl", text.as_bytes(), &options);
        assert!(rows.is_empty());
    }
}

#[test]
fn text_need_be_utf8_only_where_it_is_read_as_text() {
    let mut options = options(FieldMapping::new("t").with_key("k"));
    let csv = b"t,k,x\n1,a,\xff\n2,\xff,b\n";
    let (rows, error) = try_read::<KeyValue<()>>("a.csv", csv, &options);
    assert_eq!(rows.len(), 1);
    assert_eq!(error.unwrap().to_string(), "a.csv: line 3: field `k`: `\u{fffd}`: is not valid UTF-8");
    let json = b"{\"t\":1,\"k\":\"a\",\"x\":\"\xff\"}\n{\"t\":2,\"k\":\"\xff\"}\n";
    let (rows, error) = try_read::<KeyValue<()>>("a.jsonl", json, &options);
    assert_eq!(rows.len(), 1);
    assert!(error.unwrap().to_string().contains("a.jsonl: line 2: "));
    options.bad_lines = BadLines::Skip;
    assert_eq!(try_read::<KeyValue<()>>("a.jsonl", json, &options).0.len(), 1);
}

#[test]
fn compressed_data_that_is_cut_off_anywhere_is_an_error() {
    let text = "t,k\n1,a\n2,b\n3,c\n".repeat(20);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let mut options = options(time_and_key());
    options.bad_lines = BadLines::Skip;
    for (bytes, compression) in [(gzip, Compression::Gzip), (zstd, Compression::Zstd)] {
        assert!(try_read::<KeyValue<()>>("a.csv", &bytes, &options).1.is_none());
        for length in 4..bytes.len() {
            let (_, error) = try_read::<KeyValue<()>>("a.csv", &bytes[..length], &options);
            match error {
                Some(SourceError::Corrupt { compression: found, .. }) if found == compression => {}
                other => panic!("cut to {length} bytes: {other:?}"),
            }
        }
        let mut trailing = bytes.clone();
        trailing.extend_from_slice(b"garbage that is no frame");
        let (_, error) = try_read::<KeyValue<()>>("a.csv", &trailing, &options);
        assert!(
            error
                .unwrap()
                .to_string()
                .starts_with(&format!("a.csv: the {compression} data is damaged or cut off: "))
        );
    }
}

#[test]
fn a_file_is_opened_by_its_path_and_counted_as_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.ndjson.zst");
    let text = "{\"t\":\"1\",\"k\":5}\n{\"t\":-2,\"k\":true}\n";
    std::fs::write(&path, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    let mut reader = TraceReader::<KeyValue<()>>::open(&path, &options(time_and_key())).unwrap();
    let progress = reader.progress();
    let mut rows = Vec::new();
    while reader.read(1, &mut rows).unwrap() == Status::More {}
    let found: Vec<_> = rows.iter().map(|row| (row.time, &*row.record.key)).collect();
    assert_eq!(found, [(1, "5"), (-2, "true")]);
    assert_eq!(Some(progress.read_bytes()), progress.total_bytes());
    assert_eq!(progress.total_bytes(), Some(std::fs::metadata(&path).unwrap().len()));
    assert_eq!(reader.path(), path);

    for wrong in ["absent.csv", "."] {
        let path = directory.path().join(wrong);
        let error = TraceReader::<()>::open(&path, &options(time_and_key())).unwrap_err();
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    }
}

#[test]
fn an_input_serves_line_formats_of_ones_own() {
    use std::io::BufRead;
    let open = |bytes: &[u8]| Input::from_reader("x", Cursor::new(bytes.to_vec()), None).unwrap();
    let lines: Vec<String> = open(b"\xef\xbb\xbfone\ntwo").lines().map(Result::unwrap).collect();
    assert_eq!(lines, ["one", "two"]);
    let mut rest = String::new();
    open(b"\xef\xbb\xbf").read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    let numbers: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let compressed = zstd::encode_all(&numbers[..], 1).unwrap();
    let mut cut = open(&compressed[..compressed.len() - 9]);
    assert!(cut.read_to_end(&mut Vec::new()).unwrap_err().to_string().starts_with("x: the zstd data"));
}

#[test]
fn a_byte_order_mark_crlf_and_blank_lines_are_no_part_of_the_data() {
    let csv = "\u{feff}\r\n t , k ,price\r\n\r\n1,a,2\r\n   \r\n2,b, 3 \r\n\r\n";
    let sale = |key: &str, price| Sale { key: key.into(), price, count: None, refund: false };
    assert_eq!(records::<Sale>("a.csv", csv, time_and_key()), [sale("a", 2.0), sale("b", 3.0)]);
    let json = "\u{feff}{\"t\":1,\"k\":\"a\",\"price\":\"2\"}\r\n \t\r\n{\"t\":2,\"k\":\"b\",\"price\":3}";
    assert_eq!(records::<Sale>("a.jsonl", json, time_and_key()), [sale("a", 2.0), sale("b", 3.0)]);
    // Without a name to go by, the content tells.
    assert_eq!(records::<Sale>("-", json, time_and_key()).len(), 2);
    assert_eq!(records::<Sale>("-", &csv.replace(',', "\t"), time_and_key()).len(), 2);
}

#[test]
fn empty_inputs_are_told_apart() {
    assert_eq!(message::<()>("a.jsonl", "\n\n", FieldMapping::new("t")), "");
    assert_eq!(message::<()>("a.csv", "t", FieldMapping::new("t")), "");
    for text in ["", "\r\n\n", "\u{feff}"] {
        assert_eq!(
            message::<()>("a.csv", text, FieldMapping::new("t")),
            "a.csv: no usable header line: the file is empty"
        );
    }
}

#[test]
fn records_are_structs_maps_or_nothing() {
    let csv = "t,k,n\n1,a,2\n";
    let json = r#"{"t":1,"k":"a","n":2,"o":{"p":[3]}}"#;
    let mapping = || FieldMapping::new("t").with_key("k+n").with_value("n");
    let map: HashMap<String, String> = records("a.csv", csv, mapping()).remove(0);
    let expected = [("t", "1"), ("k", "a"), ("n", "2"), ("key", "a|2"), ("value", "2")];
    assert_eq!(map, expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
    let tree: serde_json::Value = records("a.csv", csv, mapping()).remove(0);
    assert_eq!(tree, serde_json::json!({"t": 1, "k": "a", "n": 2, "key": "a|2", "value": 2}));
    let tree: BTreeMap<String, serde_json::Value> = records("a.jsonl", json, mapping()).remove(0);
    let expected = serde_json::json!({"t": 1, "k": "a", "n": 2, "o": {"p": [3]}, "key": "a|2", "value": 2});
    assert_eq!(serde_json::to_value(tree).unwrap(), expected);
    assert_eq!(records::<()>("a.jsonl", json, mapping()), [()]);

    let text = message::<Vec<String>>("a.csv", csv, mapping());
    assert!(text.contains("asks for a list"), "{text}");
    assert!(message::<()>("a.csv", csv, FieldMapping::new("t").with_key("k+")).contains("empty name (`k+`)"));
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Event {
    Open { key: String },
    Close { code: u8 },
}

#[test]
fn tagged_enums_and_flattened_parts_can_be_read() {
    let json = "{\"t\":1,\"kind\":\"open\",\"k\":7}\n{\"t\":2,\"kind\":\"close\",\"code\":3}";
    assert_eq!(
        records::<Event>("a.jsonl", json, time_and_key()),
        [Event::Open { key: "7".into() }, Event::Close { code: 3 }]
    );
    let csv = "t,kind,k,code\n1,open,seven,\n2,close,,3\n";
    assert_eq!(
        records::<Event>("a.csv", csv, time_and_key()),
        [Event::Open { key: "seven".into() }, Event::Close { code: 3 }]
    );

    #[derive(Debug, PartialEq, Deserialize)]
    struct Flat {
        key: String,
        #[serde(flatten)]
        rest: BTreeMap<String, serde_json::Value>,
    }
    let flat = records::<Flat>("a.csv", "t,k,n\n1,1,2\n", FieldMapping::new("t").with_key("k"));
    assert_eq!((&*flat[0].key, flat[0].rest["n"].as_u64()), ("1", Some(2)));
}

#[test]
fn the_last_of_repeated_json_fields_counts() {
    let line = r#"{"t":1,"k":"a","t":2,"price":1,"k":"b","price":3}"#;
    let (rows, _) = try_read::<Sale>("a.jsonl", line.as_bytes(), &options(time_and_key()));
    assert_eq!((rows[0].time, &*rows[0].record.key, rows[0].record.price), (2, "b", 3.0));
}

#[test]
fn mapped_fields_win_over_those_that_are_called_key_and_value() {
    let mapping = || FieldMapping::new("t").with_key("a").with_value("b");
    let expected = [KeyValue { key: "x".into(), value: 5 }];
    assert_eq!(records::<KeyValue<u8>>("a.csv", "t,key,value,a,b\n1,k,9,x,5\n", mapping()), expected);
    assert_eq!(
        records::<KeyValue<u8>>("a.jsonl", r#"{"t":1,"key":"k","value":9,"a":"x","b":5}"#, mapping()),
        expected
    );
    // And without a mapping those are meant.
    assert_eq!(records::<KeyValue<u8>>("a.csv", "t,key,value\n1,x,5\n", FieldMapping::new("t")), expected);
    assert_eq!(
        records::<KeyValue<u8>>("a.jsonl", r#"{"t":1,"key":"x","value":5}"#, FieldMapping::new("t")),
        expected
    );
}

#[test]
fn an_own_key_is_text_for_a_struct_and_a_field_like_others_for_a_map() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Any {
        key: serde_json::Value,
    }
    let (csv, json) = ("t,key\n1,5\n", r#"{"t":1,"key":5}"#);
    for (name, text) in [("a.csv", csv), ("a.jsonl", json)] {
        let record = records::<Any>(name, text, FieldMapping::new("t")).remove(0);
        assert_eq!(record.key, serde_json::json!("5"), "{name}");
        let map = records::<serde_json::Value>(name, text, FieldMapping::new("t")).remove(0);
        assert_eq!(map, serde_json::json!({"t": 1, "key": 5}), "{name}");
    }
}

#[test]
fn a_value_that_nobody_wants_need_not_be_readable() {
    let nothing = [KeyValue { key: "a".into(), value: () }];
    assert_eq!(records::<KeyValue<()>>("a.csv", "t,k,v\n1,a,[x\n", time_and_key().with_value("v")), nothing);
    assert_eq!(
        records::<KeyValue<()>>("a.jsonl", r#"{"t":1,"k":"a","v":[1]}"#, time_and_key().with_value("v")),
        nothing
    );
    assert_eq!(records::<KeyValue<()>>("a.jsonl", r#"{"t":1,"k":"a"}"#, time_and_key()), nothing);
}

#[test]
fn a_position_behind_or_beyond_the_file_is_refused() {
    let text = "t,k\n1,a\n2,b\n";
    let open = || {
        let input = Input::from_reader("a.csv", Cursor::new(text), None).unwrap();
        TraceReader::<KeyValue<()>>::from_input(input, &options(time_and_key())).unwrap()
    };
    let mut reader = open();
    reader.skip_to(2).unwrap();
    assert_eq!(reader.read(5, &mut Vec::new()).unwrap(), Status::Ended);
    assert!(matches!(reader.skip_to(1), Err(SourceError::Backwards { position: 2, requested: 1, .. })));
    assert!(matches!(open().skip_to(3), Err(SourceError::TooShort { records: 2, requested: 3, .. })));
}

/// Gives one piece at a time, and ends the test if it is asked for more than there is.
struct Pipe {
    piece: Cursor<&'static str>,
    pieces: std::vec::IntoIter<&'static str>,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.piece.position() == self.piece.get_ref().len() as u64 {
            let next = self.pieces.next();
            self.piece = Cursor::new(next.expect("the reader waits although it has rows to give"));
        }
        self.piece.read(into)
    }
}

#[test]
fn rows_of_a_pipe_are_given_out_before_more_is_waited_for() {
    for (format, pieces) in [
        (Format::Csv, vec!["t,k\n1,a\n2,b\n", "3,c\n4,", "d\r\n"]),
        (
            Format::JsonLines,
            vec!["{\"t\":1,\"k\":1}\n{\"t\":2,\"k\":2}\n", "{\"t\":3,\"k\":3}\n", "{\"t\":4,\"k\":4}\n"],
        ),
    ] {
        let mut options = options(time_and_key());
        options.format = Some(format);
        let input =
            Input::from_reader("pipe", Pipe { piece: Cursor::new(""), pieces: pieces.into_iter() }, None)
                .unwrap();
        let mut reader = TraceReader::<KeyValue<()>>::from_input(input, &options).unwrap();
        let mut rows = Vec::new();
        while rows.len() < 4 {
            assert_eq!(reader.read(100, &mut rows).unwrap(), Status::More);
        }
        assert_eq!(rows.iter().map(|row| row.time).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }
}

#[test]
fn readers_can_be_sent_to_other_threads() {
    fn sendable<T: Send + 'static>() {}
    sendable::<TraceReader<KeyValue<f64>>>();
    sendable::<SourceError>();
    assert!(Input::open(Path::new("/")).is_err());
}
