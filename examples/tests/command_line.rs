//! The program as a user meets it: commands, messages, exit statuses, files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const ORDERS: &str = "../traces/orders.csv.gz";
const FIELDS: [&str; 8] = ["--key", "customer", "--value", "amount", "--time-unit", "ms", "--max-lag", "5s"];

fn tidegate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate")).args(arguments).output().unwrap()
}

fn replay(pipeline: &str, more: &[&str]) -> Output {
    tidegate(&[&["replay", pipeline, ORDERS], &FIELDS[..], more].concat())
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

#[test]
fn list_names_every_pipeline_in_a_line() {
    let output = tidegate(&["list"]);
    assert_status(&output, 0);
    let names: Vec<_> = tidegate_examples::PIPELINES.iter().map(|pipeline| pipeline.name).collect();
    let listed: Vec<String> =
        stdout(&output).lines().map(|line| line.split_whitespace().next().unwrap().to_string()).collect();
    assert_eq!(listed, names);
}

#[test]
fn every_command_has_help_with_examples() {
    for command in [
        vec!["--help"],
        vec!["replay", "--help"],
        vec!["compare", "--help"],
        vec!["case", "--help"],
        vec!["trace", "generate", "--help"],
    ] {
        let output = tidegate(&command);
        assert_status(&output, 0);
        assert!(stdout(&output).contains("Examples:"), "{command:?}");
    }
}

#[test]
fn files_of_results_do_not_depend_on_workers_strategy_or_batches() {
    let directory = tempfile::tempdir().unwrap();
    let mut first: Option<(String, String)> = None;
    for (workers, strategy, epoch) in
        [("1", "per-record", "4096"), ("1", "multiget", "100"), ("2", "auto", "1000"), ("3", "dedup", "7777")]
    {
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (rows, late) = (path("rows.csv"), path("late.jsonl"));
        let output = replay(
            "running-totals",
            &[
                "--workers",
                workers,
                "--strategy",
                strategy,
                "--epoch-records",
                epoch,
                "--output",
                &rows,
                "--late-output",
                &late,
                "--quiet",
            ],
        );
        assert_status(&output, 0);
        assert_eq!(stderr(&output), "");
        // Late records are written as they come; which they are is fixed, their order is not.
        let mut late: Vec<String> = fs::read_to_string(late).unwrap().lines().map(str::to_string).collect();
        late.sort();
        let files = (fs::read_to_string(rows).unwrap(), late.join("\n"));
        // 60,000 records, 11 of them beyond the usual lag, as traces/README.md says.
        assert_eq!(files.0.lines().count(), 1 + 60_000 - 11);
        assert_eq!(files.1.lines().count(), 11);
        assert!(files.0.starts_with("time,key,count,sum\n"));
        match &first {
            None => first = Some(files),
            Some(first) => {
                assert!(*first == files, "{workers} workers, {strategy}, {epoch} records an epoch")
            }
        }
    }
    let (rows, late) = first.unwrap();
    let times: Vec<i64> =
        rows.lines().skip(1).map(|row| row.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted(), "rows are in the order of event times");
    assert!(late.lines().all(|line| line.contains(r#""operator":"totals""#)));
}

#[test]
fn a_directory_takes_a_file_for_each_sink() {
    let directory = tempfile::tempdir().unwrap();
    let path = format!("{}/results/", directory.path().display());
    assert_status(&replay("first-seen", &["--output", &path, "--output-format", "jsonl"]), 0);
    let rows = fs::read_to_string(Path::new(&path).join("new.jsonl")).unwrap();
    assert_eq!(rows.lines().count(), 4522);
    assert!(rows.lines().all(|row| row.starts_with('{') && row.contains(r#""key":"c"#)));
}

#[test]
fn standard_input_gives_what_the_file_gives() {
    let from_file = replay("first-seen", &[]);
    let script = format!(
        "gzip -dc '{ORDERS}' | '{}' replay first-seen - {}",
        env!("CARGO_BIN_EXE_tidegate"),
        FIELDS.join(" ")
    );
    let from_pipe = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_status(&from_file, 0);
    assert_status(&from_pipe, 0);
    assert_eq!(stdout(&from_file), stdout(&from_pipe));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let script = format!(
        "'{}' replay running-totals '{ORDERS}' {} --quiet | head -2",
        env!("CARGO_BIN_EXE_tidegate"),
        FIELDS.join(" ")
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_status(&output, 0);
    assert_eq!((stdout(&output).lines().count(), stderr(&output)), (2, String::new()));
}

#[test]
fn wrong_usage_is_status_2_and_names_the_option() {
    for (more, words) in [
        (vec!["--epoch", "0s"], "--epoch"),
        (vec!["--epoch", "5"], "has a unit"),
        (vec!["--max-lag", "-1s"], "--max-lag"),
        (vec!["--epoch-records", "0"], "--epoch-records"),
        (vec!["--batch-keys", "0"], "--batch-keys"),
        (vec!["--workers", "0"], "--workers"),
        (vec!["--strategy", "multi"], "per-record, dedup, multiget, threads, auto"),
        (vec!["--memory", "lots"], "--memory"),
        (vec!["--speed", "0"], "--speed"),
    ] {
        let output = tidegate(
            &[&["replay", "first-seen", ORDERS, "--key", "customer", "--time-unit", "ms"], &more[..]]
                .concat(),
        );
        assert_status(&output, 2);
        assert!(stderr(&output).contains(words), "{more:?}: {}", stderr(&output));
    }
    let output = replay("no-such", &[]);
    assert_status(&output, 2);
    assert!(stderr(&output).contains("running-totals"), "{}", stderr(&output));
}

#[test]
fn a_job_that_fails_is_status_1_and_names_file_and_field() {
    for (arguments, words) in [
        (vec!["replay", "first-seen", "no-such.csv"], "no-such.csv"),
        (vec!["replay", "first-seen", ORDERS, "--time-unit", "ms"], "--key"),
        (vec!["replay", "first-seen", ORDERS, "--key", "customer"], "--time-unit"),
        (
            vec![
                "replay",
                "running-totals",
                ORDERS,
                "--key",
                "amount",
                "--value",
                "customer",
                "--time-unit",
                "ms",
            ],
            "line 2",
        ),
    ] {
        let output = tidegate(&arguments);
        assert_status(&output, 1);
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().filter(|line| line.contains(words)).count(), 1, "said once");
    }
}

#[test]
fn bad_lines_are_skipped_counted_and_listed_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.csv");
    fs::write(&path, "time,key\n1,a\nx,b\n2,c\n3\n").unwrap();
    let path = path.display().to_string();
    let arguments = ["replay", "first-seen", path.as_str(), "--time-unit", "s"];
    let strict = tidegate(&arguments);
    assert_status(&strict, 1);
    assert!(stderr(&strict).contains("bad.csv") && stderr(&strict).contains("line 3"), "{}", stderr(&strict));
    let skipping = tidegate(&[&arguments[..], &["--bad-lines", "skip"]].concat());
    assert_status(&skipping, 0);
    assert_eq!(stdout(&skipping), "time,key\n1,a\n2,c\n");
    let message = stderr(&skipping);
    assert!(
        message.contains("2 lines") && message.contains("line 3") && message.contains("line 5"),
        "{message}"
    );
}

#[test]
fn results_appear_only_when_they_are_complete() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("breaks.csv");
    let mut text = "time,key\n".to_string();
    (0..20_000).for_each(|time| text += &format!("{time},k\n"));
    fs::write(&trace, text + "broken,k\n").unwrap();
    let results = directory.path().join("rows.csv");
    let output = tidegate(&[
        "replay",
        "first-seen",
        &trace.display().to_string(),
        "--time-unit",
        "s",
        "--output",
        &results.display().to_string(),
    ]);
    assert_status(&output, 1);
    let left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["breaks.csv"], "nothing half done is left");
    let nowhere = replay("first-seen", &["--output", "/no/such/directory/rows.csv"]);
    assert_status(&nowhere, 1);
    assert!(stderr(&nowhere).contains("/no/such/directory/rows.csv"), "{}", stderr(&nowhere));
}

#[test]
fn compare_checks_outputs_and_shows_ratios() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("result.json").display().to_string();
    let output = tidegate(
        &[
            &["compare", "daily-counts", ORDERS],
            &FIELDS[..],
            &[
                "--runs",
                "2",
                "--strategies",
                "per-record,multiget",
                "--cache",
                "0",
                "--quiet",
                "--json",
                &json,
            ],
        ]
        .concat(),
    );
    assert_status(&output, 0);
    assert!(stdout(&output).contains("outputs equal"), "{}", stdout(&output));
    let result: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(result["outputs_equal"], true);
    let runs = result["runs"].as_array().unwrap();
    let strategies: Vec<_> = runs.iter().map(|run| run["strategy"].as_str().unwrap()).collect();
    assert_eq!(strategies, ["per-record", "multiget", "per-record", "multiget"], "runs are interleaved");
    let calls = |run: &serde_json::Value| run["store_calls"].as_u64().unwrap();
    assert!(calls(&runs[1]) * 100 < calls(&runs[0]), "a batch is one call");
    // Two states, each one batched read a release, and one commit.
    let releases = runs[1]["summary"]["operators"]["daily-counts"]["releases"].as_u64().unwrap();
    assert_eq!(calls(&runs[1]), 3 * releases);
}

#[test]
fn a_state_directory_is_locked_and_belongs_to_the_program() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("precious"), "mine").unwrap();
    let path = directory.path().display().to_string();
    let output = replay("first-seen", &["--state-dir", &path, "--output", "none"]);
    assert_status(&output, 1);
    assert!(stderr(&output).contains("not empty"), "{}", stderr(&output));
    assert!(directory.path().join("precious").exists());
    let fresh = directory.path().join("state").display().to_string();
    for _ in 0..2 {
        // The second job begins with nothing, whatever the first one left.
        let output = replay("first-seen", &["--state-dir", &fresh]);
        assert_status(&output, 0);
        assert_eq!(stdout(&output).lines().count(), 1 + 4522);
    }
}

#[test]
fn scripts_of_known_faults_give_their_rows() {
    let cases = "tests/cases";
    for entry in fs::read_dir(cases).unwrap() {
        let path = entry.unwrap().path();
        let output = tidegate(&["case", &path.display().to_string()]);
        assert_status(&output, 0);
    }
}

#[test]
fn cases_tell_good_from_bad_and_from_unsupported() {
    let directory = tempfile::tempdir().unwrap();
    let case = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        tidegate(&["case", &path.display().to_string()])
    };
    let script = "op=running agg=sum\nE,s,0,k,10\nF,s,1\nE,s,5,k,1\nE,s,0,k,7\n";
    let good = case(
        "good.md",
        &format!("```case\n{script}```\n```expect\ntime,key,value\n0,k,10\n5,k,11\ndropped=1\n```\n"),
    );
    assert_status(&good, 0);
    assert!(stdout(&good).contains("5,k,11") && stdout(&good).contains("1 as expected"), "{}", stdout(&good));
    let bad = case(
        "bad.md",
        &format!("```case\n{script}```\n```expect\ntime,key,value\n0,k,10\n5,k,12\ndropped=1\n```\n"),
    );
    assert_status(&bad, 1);
    assert!(stdout(&bad).contains("DIFFERS"), "{}", stdout(&bad));
    let dropped = case(
        "dropped.md",
        &format!("```case\n{script}```\n```expect\ntime,key,value\n0,k,10\n5,k,11\n```\n"),
    );
    assert_status(&dropped, 1);
    let unsupported = case("unsupported.case", "op=running agg=sum\nE,s,0,k,10\nC\nX\n");
    assert_status(&unsupported, 3);
    assert!(stdout(&unsupported).contains("unsupported"), "{}", stdout(&unsupported));
    let nonsense = case("nonsense.case", "op=running\nE,s,zero,k,1\n");
    assert_status(&nonsense, 2);
    assert!(stderr(&nonsense).contains("line 2"), "{}", stderr(&nonsense));
}
