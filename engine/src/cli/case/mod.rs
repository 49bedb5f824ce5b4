//! `tidegate case`: small scripts with expected rows, run in every way that may not matter.

mod script;
mod source;
mod windowed;

use super::CommandError;
use crate::config::{JobConfig, StateBackend};
use crate::error::JobError;
use crate::job::Job;
use crate::run::Runner;
use crate::sink::{Output, OutputOptions, Row};
use crate::stream::Stream;
use script::{Expected, Script, Step};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tidegate_operators::aggregate;
use tidegate_state::strategy::ReadStrategy;

/// Options of `tidegate case`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate case KNOWN_FAULTS.md
  tidegate case my.case --strategy multiget --workers 2

Each script runs under every strategy, on 1, 2 and 4 workers, with its records handed over one by
one and all together, with state in memory and in RocksDB. All runs must give the same rows, and
where the file says which, those. Exit status: 0 all as expected, 1 rows differ, 3 a script asks
for something that is not supported, and no rows differ.")]
pub struct CaseArguments {
    /// Markdown with blocks marked `case` and `expect`, or one bare script.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only this strategy.
    #[arg(long, value_name = "S")]
    strategy: Option<ReadStrategy>,
    /// Only this number of workers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    workers: Option<u64>,
    /// Run only scripts whose title contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// What came of a script.
enum Outcome {
    AsExpected,
    Differs,
    Unsupported,
}

/// Runs the scripts of all files; gives the exit status.
///
/// # Errors
/// [`CommandError`] where a file cannot be read, or a line is not understood.
pub fn run(arguments: &CaseArguments) -> Result<u8, CommandError> {
    let (mut good, mut differing, mut unsupported) = (0, 0, 0);
    for path in &arguments.files {
        let refused =
            |error: &dyn std::fmt::Display| CommandError::usage(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
        let scripts = script::parse(&text).map_err(|error| refused(&error))?;
        for script in &scripts {
            if arguments.only.as_ref().is_some_and(|only| !script.title.contains(only.as_str())) {
                continue;
            }
            match run_script(arguments, script) {
                Outcome::AsExpected => good += 1,
                Outcome::Differs => differing += 1,
                Outcome::Unsupported => unsupported += 1,
            }
        }
    }
    println!("{good} as expected, {differing} differ, {unsupported} unsupported");
    Ok(match (differing, unsupported) {
        (0, 0) => 0,
        (0, _) => 3,
        _ => 1,
    })
}

/// One way of running a script.
#[derive(Debug, Clone, Copy)]
struct Way {
    strategy: ReadStrategy,
    workers: usize,
    one_by_one: bool,
    backend: StateBackend,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (strategy, workers) = (self.strategy, self.workers);
        let records = if self.one_by_one { "one by one" } else { "together" };
        write!(f, "{strategy}, {workers} workers, records {records}, state in {:?}", self.backend)
    }
}

fn ways(arguments: &CaseArguments) -> Vec<Way> {
    let strategies = arguments.strategy.map_or(ReadStrategy::ALL.to_vec(), |strategy| vec![strategy]);
    let workers = arguments.workers.map_or(vec![1, 2, 4], |workers| vec![workers as usize]);
    let mut ways = Vec::new();
    for &strategy in &strategies {
        for &workers in &workers {
            for one_by_one in [true, false] {
                ways.push(Way { strategy, workers, one_by_one, backend: StateBackend::Memory });
            }
        }
        // A database takes longer to open than a script to run, so one way has to do.
        ways.push(Way { strategy, workers: workers[0], one_by_one: false, backend: StateBackend::RocksDb });
    }
    ways
}

fn run_script(arguments: &CaseArguments, script: &Script) -> Outcome {
    let settings: Vec<String> =
        script.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    println!("== {} (line {}): {}", script.title, script.line, settings.join(" "));
    if let Err(reason) = supported(script) {
        println!("   unsupported: {reason}");
        return Outcome::Unsupported;
    }
    let mut first: Option<Expected> = None;
    for way in ways(arguments) {
        let found = match run_way(script, way) {
            Ok(found) => found,
            Err(error) => {
                println!("   FAILED under {way}: {error}");
                return Outcome::Differs;
            }
        };
        if let Some(expected) = &script.expected
            && let Some(difference) = difference(script, expected, &found)
        {
            println!("   DIFFERS under {way}:\n{difference}");
            return Outcome::Differs;
        }
        match &first {
            None => {
                print_rows(&found);
                first = Some(found);
            }
            Some(first) if sorted(first) == sorted(&found) && first.dropped == found.dropped => {}
            Some(first) => {
                let difference = difference(script, first, &found).unwrap_or_default();
                println!("   DIFFERS under {way} from the first run:\n{difference}");
                return Outcome::Differs;
            }
        }
    }
    Outcome::AsExpected
}

/// Whether the script asks only for what there is.
fn supported(script: &Script) -> Result<(), String> {
    let known: &[&str] = match script.setting("op") {
        Some("running") => &["op", "agg", "ordered"],
        Some("window") => &["op", "agg", "ordered", "size", "slide", "offset", "lateness"],
        Some("session") => &["op", "agg", "ordered", "gap", "lateness"],
        Some(other) => return Err(format!("op={other}")),
        None => return Err("a script without op=".to_string()),
    };
    match script.setting("agg").unwrap_or("count") {
        "count" | "sum" | "min" | "max" | "mean" | "append" => {}
        other => return Err(format!("agg={other}")),
    }
    if let Some(name) = script.settings.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("the setting {name}="));
    }
    for step in &script.steps {
        if let Step::Unsupported(line) = step {
            return Err(format!("the step {line:?}: there are no checkpoints yet"));
        }
    }
    Ok(())
}

fn run_way(script: &Script, way: Way) -> Result<Expected, JobError> {
    let rows = Arc::new(Mutex::new(Vec::new()));
    let output = OutputOptions { output: Output::Collect(Arc::clone(&rows)), ..OutputOptions::default() };
    let config = JobConfig {
        name: "case".to_string(),
        workers: way.workers,
        strategy: way.strategy,
        backend: way.backend,
        memory_bytes: 16 << 20,
        ..JobConfig::default()
    };
    let played = script.clone();
    let report = Runner::new(config, output).run(move |job| build(job, &played, way.one_by_one))?;
    let mut rows = std::mem::take(&mut *rows.lock().unwrap_or_else(PoisonError::into_inner));
    if way.workers > 1 {
        // Workers append to one list, each at its own pace; by time they are in order again.
        rows.sort_by_key(|row| row.time);
    }
    let shown_with_time = |row: Row| format!("{},{}", row.time, row.text);
    let (header, line): (String, fn(Row) -> String) = match windowed::columns(script) {
        Some(columns) => (columns.join(","), |row| row.text),
        None => ("time,key,value".to_string(), shown_with_time),
    };
    Ok(Expected {
        header,
        rows: rows.into_iter().map(line).collect(),
        dropped: report.metrics.all_releases().statistics.events_late,
    })
}

fn build(job: &Job<'_>, script: &Script, one_by_one: bool) {
    let source = source::script_source(job, script, one_by_one);
    if let Some(columns) = windowed::columns(script) {
        return windowed::build(job, source, script, &columns);
    }
    match script.setting("agg").unwrap_or("count") {
        "count" => source.count("running").sink("rows", &["key", "value"]),
        "append" => source.fold("running", String::new, aggregate::append).sink("rows", &["key", "value"]),
        "mean" => numbers(source, |value| value as f64).mean("running").sink("rows", &["key", "value"]),
        "sum" => numbers(source, |value| value).sum("running").sink("rows", &["key", "value"]),
        "min" => numbers(source, |value| value).min("running").sink("rows", &["key", "value"]),
        "max" => numbers(source, |value| value).max("running").sink("rows", &["key", "value"]),
        other => job.refuse(format!("agg={other} is not supported")),
    }
}

/// The values as integers.
fn numbers<'s, N: crate::stream::Data>(
    source: Stream<'s, (String, String)>,
    convert: impl Fn(i64) -> N + 'static,
) -> Stream<'s, (String, N)> {
    let failure = source.job.failure();
    source.flat_map(move |(key, value)| match value.trim().parse::<i64>() {
        Ok(value) => Some((key, convert(value))),
        Err(_) => {
            failure.report(JobError::Job(format!("the value {value:?} of key {key:?} is no integer")));
            None
        }
    })
}

fn sorted(rows: &Expected) -> Vec<String> {
    let mut rows = rows.rows.clone();
    rows.sort();
    rows
}

/// What is different, in words; none where nothing is.
fn difference(script: &Script, expected: &Expected, found: &Expected) -> Option<String> {
    let ordered = script.setting("ordered") == Some("yes");
    let same_rows = match ordered {
        true => expected.rows == found.rows,
        false => sorted(expected) == sorted(found),
    };
    if same_rows && expected.dropped == found.dropped {
        return None;
    }
    let mut text = String::new();
    let order = if ordered { " in this order" } else { "" };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "     expected{order} (dropped {}):", expected.dropped);
    for row in &expected.rows {
        let _ = writeln!(text, "       {row}");
    }
    let _ = writeln!(text, "     found (dropped {}):", found.dropped);
    for row in &found.rows {
        let _ = writeln!(text, "       {row}");
    }
    Some(text)
}

fn print_rows(rows: &Expected) {
    println!("   {}", rows.header);
    rows.rows.iter().for_each(|row| println!("   {row}"));
    if rows.dropped > 0 {
        println!("   dropped={}", rows.dropped);
    }
}
