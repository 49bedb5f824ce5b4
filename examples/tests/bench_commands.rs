//! The developer's measurements as a user meets them: they run, their JSON has the fields that it
//! promises, and wrong options are named. What the numbers are is the machine's affair.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate")).arg("bench").args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn assert_status(output: &Output, status: i32) {
    assert_eq!(output.status.code(), Some(status), "{}\n{}", stdout(output), stderr(output));
}

/// The rows of a command's JSON on standard output, each with exactly these fields; none where
/// the disk of the build cannot be measured, which has to be said with the option to change.
fn rows(arguments: &[&str], fields: &[&str], directory_option: &str) -> Option<Vec<Value>> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("own").display().to_string();
    std::fs::create_dir(&path).unwrap();
    let output = bench(&[arguments, &["--json", "-", "--quiet", directory_option, &path]].concat());
    if output.status.code() == Some(1) && stderr(&output).contains("O_DIRECT") {
        assert!(stderr(&output).contains(directory_option), "{}", stderr(&output));
        return None;
    }
    assert_status(&output, 0);
    assert_eq!(stderr(&output), "");
    let rows: Vec<Value> = serde_json::from_str(&stdout(&output)).unwrap();
    for row in &rows {
        let mut known: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        let mut wanted = fields.to_vec();
        known.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(known, wanted);
    }
    let left: Vec<_> = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let left: Vec<_> = left.iter().filter(|name| !name.to_string_lossy().starts_with("TIDEGATE")).collect();
    assert!(left.is_empty(), "{left:?} is left");
    Some(rows)
}

const READS_FIELDS: [&str; 8] = [
    "depth",
    "block_bytes",
    "file_bytes",
    "rounds",
    "seconds",
    "reads_per_second",
    "times_first_depth",
    "us_per_read",
];

const STATE_FIELDS: [&str; 21] = [
    "regime",
    "rows",
    "value_bytes",
    "memory_bytes",
    "cache_bytes",
    "direct_io",
    "reader_threads",
    "operation",
    "keys",
    "batch",
    "strategy",
    "runs",
    "keys_per_run",
    "store_keys_per_run",
    "us_per_key",
    "read_us_per_key",
    "commit_us_per_key",
    "ratio",
    "keys_per_second",
    "disk_reads_per_second",
    "of_disk",
];

const SMALL: [&str; 9] =
    ["state", "--rows", "2000", "--runs", "2", "--keys-per-run", "256", "--batches", "1,64"];

#[test]
fn reads_gives_a_row_for_each_depth() {
    let arguments = [
        "reads",
        "--size",
        "1MiB",
        "--block",
        "8KiB",
        "--depths",
        "1,3",
        "--seconds",
        "0.02",
        "--rounds",
        "2",
    ];
    let Some(rows) = rows(&arguments, &READS_FIELDS, "--dir") else { return };
    let numbers: Vec<_> =
        rows.iter().map(|row| (row["depth"].as_u64(), row["file_bytes"].as_u64())).collect();
    assert_eq!(numbers, [(Some(1), Some(1 << 20)), (Some(3), Some(1 << 20))]);
    for row in &rows {
        let rate = &row["reads_per_second"];
        let [least, median, largest] =
            ["least", "median", "largest"].map(|name| rate[name].as_f64().unwrap());
        assert!(0.0 < least && least <= median && median <= largest, "{rate}");
    }
    assert_eq!(rows[0]["times_first_depth"]["median"], 1.0);
}

#[test]
fn files_in_memory_are_no_disk() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    for (arguments, option) in [
        (vec!["reads", "--size", "1MiB", "--dir", "/dev/shm"], "--dir"),
        (vec!["reads", "--size", "1MiB", "--dir", "/no/such/directory"], "--dir"),
        (vec!["state", "--regime", "disk", "--state-dir", "/dev/shm/tidegate-no-disk"], "--state-dir"),
    ] {
        let output = bench(&arguments);
        assert_status(&output, 1);
        let message = stderr(&output);
        assert!(message.contains(option) && message.contains(arguments[arguments.len() - 1]), "{message}");
    }
    let _ = std::fs::remove_dir_all("/dev/shm/tidegate-no-disk");
}

#[test]
fn state_measures_every_operation_under_every_strategy() {
    let rows =
        rows(&[&SMALL[..], &["--regime", "memory,cache"]].concat(), &STATE_FIELDS, "--state-dir").unwrap();
    let strategies = tidegate::state::strategy::ReadStrategy::ALL;
    // Two regimes, two batches; four operations on three kinds of keys, and one without.
    assert_eq!(rows.len(), 2 * 2 * (4 * 3 * strategies.len() + 1));
    for row in &rows {
        let times = &row["us_per_key"];
        assert!(times["median"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["disk_reads_per_second"].is_null() && row["of_disk"].is_null());
        if row["operation"] == "clear" {
            assert_eq!((row["keys"].as_str(), &row["strategy"]), (Some("range"), &Value::Null));
            continue;
        }
        if row["strategy"] == strategies[0].name() {
            assert_eq!(row["ratio"]["largest"], 1.0);
            // One read for each record, whatever the batch; appends read nothing.
            let reads = if row["operation"] == "append" { Some(0.0) } else { row["keys_per_run"].as_f64() };
            assert_eq!(row["store_keys_per_run"].as_f64(), reads);
        }
        let writes = row["operation"] != "read";
        assert_eq!(row["commit_us_per_key"].as_f64().unwrap() > 0.0, writes, "{row}");
    }
}

#[test]
fn the_disk_is_measured_between_runs() {
    let more = ["--regime", "disk", "--operations", "read", "--strategies", "dedup,multiget", "--disk-reads"];
    let short = ["--keys", "zipf", "--runs", "1", "--value-bytes", "50,500"];
    let arguments = [&SMALL[..3], &["--batches", "64", "--keys-per-run", "256"], &more, &short].concat();
    let Some(rows) = rows(&arguments, &STATE_FIELDS, "--state-dir") else { return };
    let values: Vec<_> = rows.iter().map(|row| row["value_bytes"].as_u64().unwrap()).collect();
    assert_eq!(values, [50, 50, 500, 500]);
    for row in &rows {
        assert!(row["of_disk"].as_f64().unwrap() > 0.0 && row["direct_io"] == true, "{row}");
        // Zipf repeats itself, and what is asked for twice in a release is read once.
        assert!(row["store_keys_per_run"].as_f64().unwrap() < 256.0, "{row}");
    }
}

#[test]
fn the_same_keys_are_asked_for_every_time() {
    let arguments = [&SMALL[..], &["--operations", "update", "--strategies", "dedup,multiget"]].concat();
    let store_keys = || -> Vec<String> {
        let rows = rows(&arguments, &STATE_FIELDS, "--state-dir").unwrap();
        rows.iter().map(|row| row["store_keys_per_run"].to_string()).collect()
    };
    assert_eq!(store_keys(), store_keys());
}

#[test]
fn tables_are_for_people_and_say_what_was_measured() {
    let output = bench(&[&SMALL[..], &["--operations", "read,clear", "--keys", "clustered"]].concat());
    assert_status(&output, 0);
    let text = stdout(&output);
    assert!(text.starts_with("memory: 2000 rows with values of 100 bytes"), "{text}");
    for word in ["clustered", "per-record", "multiget", "[100–100]", "clear", "range", "over 2 runs"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(stderr(&output).contains("filling"), "{}", stderr(&output));
}

#[test]
fn help_has_examples_and_names_every_field() {
    for (command, fields) in [("reads", &READS_FIELDS[..]), ("state", &STATE_FIELDS[..])] {
        let output = bench(&[command, "--help"]);
        assert_status(&output, 0);
        let text = stdout(&output);
        assert!(text.contains("Examples:"), "{command}");
        for field in fields {
            assert!(text.contains(field), "{field} in the help of {command}");
        }
    }
}

#[test]
fn wrong_usage_is_status_2_and_names_the_option() {
    for (command, option, value) in [
        ("reads", "--block", "3000"),
        ("reads", "--block", "256"),
        ("reads", "--size", "1KiB"),
        ("reads", "--depths", "1,0"),
        ("reads", "--seconds", "0"),
        ("reads", "--seconds", "NaN"),
        ("reads", "--rounds", "0"),
        ("state", "--regime", "memory,ram"),
        ("state", "--strategies", "multi"),
        ("state", "--operations", "write"),
        ("state", "--keys", "normal"),
        ("state", "--batches", "16,0"),
        ("state", "--value-bytes", "4"),
        ("state", "--rows", "0"),
        ("state", "--runs", "0"),
        ("state", "--keys-per-run", "0"),
        ("state", "--memory", "lots"),
        ("state", "--cache", "2GiB"),
        ("state", "--disk-depth", "0"),
    ] {
        let output = bench(&[command, option, value]);
        assert_status(&output, 2);
        assert!(stderr(&output).contains(option), "{command} {option} {value}: {}", stderr(&output));
    }
}
