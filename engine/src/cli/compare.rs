//! `tidegate compare`: the same pipeline over the same traces, under several strategies.

use super::CommandError;
use super::arguments::{JobArguments, TraceArguments};
use super::progress::ProgressDisplay;
use super::report::{RunSummary, SinkSummary, quantile_us};
use crate::config::JobConfig;
use crate::ingest::trace::Speed;
use crate::pipeline::Pipeline;
use crate::run::Runner;
use crate::sink::OutputOptions;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tidegate_state::strategy::ReadStrategy;

/// Where state is found when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Regime {
    /// On the disk: little memory, and reads past the page cache.
    Disk,
    /// In the operating system's page cache: little memory of our own.
    Cache,
    /// In our own memory.
    Memory,
}

impl Regime {
    /// Memory of the job, in bytes, and whether reads go past the page cache.
    pub fn settings(self) -> (usize, bool) {
        match self {
            Regime::Disk => (8 << 20, true),
            Regime::Cache => (8 << 20, false),
            Regime::Memory => (1 << 30, false),
        }
    }
}

/// Options of `tidegate compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate compare running-totals orders.csv.gz --key customer --value amount \
      --time-unit ms --max-lag 5s
  tidegate compare last-value big.csv --time-unit us --regime disk --runs 7 --json result.json

Decoded values are not kept from one release to the next unless --cache SIZE says so: what is
compared is how the store is read.

Runs are interleaved (A B C A B C …), so that whatever else the machine does meets all of them.
All runs must have the same results; if not, the command says which differ, and its exit status
is 1. Ratios are taken run by run against the first strategy, and shown as their median with the
least and the largest in brackets.")]
pub struct CompareArguments {
    /// The pipeline; `tidegate list` names them.
    #[arg(value_name = "PIPELINE")]
    pipeline: String,
    #[command(flatten)]
    trace: TraceArguments,
    #[command(flatten)]
    job: JobArguments,
    /// Strategies to compare; the first is what the others are measured against.
    #[arg(long, value_name = "S,…", value_delimiter = ',', default_values_t = ReadStrategy::ALL)]
    strategies: Vec<ReadStrategy>,
    /// Runs of each strategy.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Where state is found when it is read; sets --memory and --direct-io.
    #[arg(long, value_enum)]
    regime: Option<Regime>,
    /// File for all numbers of all runs, as JSON; `-` for standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No progress display.
    #[arg(long, short)]
    quiet: bool,
}

/// One run, in the numbers that are compared.
#[derive(Debug, Clone, Serialize)]
struct Run {
    strategy: ReadStrategy,
    records_per_second: f64,
    state_read_ms: f64,
    state_commit_ms: f64,
    store_calls: u64,
    release_p50_us: f64,
    release_p99_us: f64,
    summary: RunSummary,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Comparison {
    pipeline: String,
    traces: Vec<PathBuf>,
    workers: usize,
    memory_bytes: usize,
    direct_io: bool,
    regime: Option<Regime>,
    runs: Vec<Run>,
    outputs_equal: bool,
}

/// Runs the command; gives the exit status.
///
/// # Errors
/// [`CommandError`] where an option is wrong, or the job fails.
pub fn run(arguments: &CompareArguments, pipelines: &[Pipeline]) -> Result<u8, CommandError> {
    let pipeline = super::find(pipelines, &arguments.pipeline)?;
    if arguments.trace.paths().iter().any(|path| path.as_os_str() == "-") {
        return Err(CommandError::usage("standard input can be read only once; compare needs a file"));
    }
    let mut runs = Vec::new();
    for round in 0..arguments.runs {
        for &strategy in &arguments.strategies {
            if !arguments.quiet {
                eprintln!("run {} of {}, {strategy}", round + 1, arguments.runs);
            }
            runs.push(measure(arguments, pipeline, strategy)?);
        }
    }
    let config = config(arguments, pipeline, ReadStrategy::default())?;
    let difference = difference(&runs);
    let comparison = Comparison {
        pipeline: pipeline.name.to_string(),
        traces: arguments.trace.paths().to_vec(),
        workers: config.workers,
        memory_bytes: config.memory_bytes,
        direct_io: config.direct_io,
        regime: arguments.regime,
        outputs_equal: difference.is_none(),
        runs,
    };
    if let Some(path) = &arguments.json {
        super::write_json(path, &comparison)?;
    }
    if arguments.json.as_ref().is_none_or(|path| path.as_os_str() != "-") {
        print_table(&comparison, &arguments.strategies);
    }
    match difference {
        None => Ok(0),
        Some(difference) => {
            eprintln!("the outputs DIFFER: {difference}");
            Ok(1)
        }
    }
}

fn config(
    arguments: &CompareArguments,
    pipeline: &Pipeline,
    strategy: ReadStrategy,
) -> Result<JobConfig, CommandError> {
    let mut config = arguments.job.config(pipeline.name, strategy, &arguments.trace)?;
    // Strategies are about reads of the store, and a value in memory is not read. `--cache` brings
    // the cache back.
    config.cache_bytes = config.cache_bytes.or(Some(0));
    if let Some(regime) = arguments.regime {
        let (memory_bytes, direct_io) = regime.settings();
        config.direct_io = direct_io;
        if !arguments.job.memory_is_given() {
            config.memory_bytes = memory_bytes;
        }
    }
    Ok(config)
}

fn measure(
    arguments: &CompareArguments,
    pipeline: &Pipeline,
    strategy: ReadStrategy,
) -> Result<Run, CommandError> {
    let input = arguments.trace.input(pipeline, Speed::Max)?;
    let config = config(arguments, pipeline, strategy)?;
    let runner = Runner::new(config, OutputOptions::default()).with_input(input);
    let display = (!arguments.quiet)
        .then(|| ProgressDisplay::start(runner.live(), arguments.trace.paths(), arguments.trace.time_unit()));
    let report = runner.run(pipeline.build).map_err(|error| CommandError::from(error).under(strategy))?;
    drop(display);
    let summary = RunSummary::new(&report);
    let releases = report.metrics.all_releases();
    Ok(Run {
        strategy,
        records_per_second: summary.records_per_second,
        state_read_ms: summary.state.read_ns as f64 / 1e6 + summary.read_wait_ms,
        state_commit_ms: summary.state.commit_ns as f64 / 1e6,
        store_calls: summary.state.calls(),
        release_p50_us: quantile_us(&releases.release_ns, 0.5),
        release_p99_us: quantile_us(&releases.release_ns, 0.99),
        summary,
    })
}

/// Which runs have other results than the first one, in words.
fn difference(runs: &[Run]) -> Option<String> {
    let (first, others) = runs.split_first()?;
    let other = others.iter().find(|run| run.summary.sinks != first.summary.sinks)?;
    let describe = |sinks: &BTreeMap<String, SinkSummary>| {
        let sinks =
            sinks.iter().map(|(name, sink)| format!("{name}: {} rows, hash {}", sink.rows, sink.bag_hash));
        sinks.collect::<Vec<_>>().join("; ")
    };
    Some(format!(
        "{} has ({}), {} has ({}); write both with `replay --output` and compare the files",
        first.strategy,
        describe(&first.summary.sinks),
        other.strategy,
        describe(&other.summary.sinks),
    ))
}

/// The middle one, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => (values[even / 2 - 1] + values[even / 2]) / 2.0,
    }
}

/// Median, least and largest.
fn spread(values: Vec<f64>) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.2} [{least:.2}–{largest:.2}]", median(values))
}

fn print_table(comparison: &Comparison, strategies: &[ReadStrategy]) {
    let of = |strategy: ReadStrategy, number: fn(&Run) -> f64| -> Vec<f64> {
        comparison.runs.iter().filter(|run| run.strategy == strategy).map(number).collect()
    };
    let ratios = |strategy: ReadStrategy, number: fn(&Run) -> f64| -> String {
        let pairs = of(strategy, number).into_iter().zip(of(strategies[0], number));
        let ratios: Vec<f64> = pairs.map(|(a, b)| a / b).filter(|ratio| ratio.is_finite()).collect();
        if ratios.is_empty() { "–".to_string() } else { spread(ratios) }
    };
    let first = &comparison.runs[0].summary;
    println!(
        "{} over {} records, {} worker(s), {} of memory{}; {} runs each, outputs {}",
        comparison.pipeline,
        first.records,
        comparison.workers,
        bytesize::ByteSize(comparison.memory_bytes as u64),
        if comparison.direct_io { ", direct reads" } else { "" },
        comparison.runs.len() / strategies.len(),
        if comparison.outputs_equal { "equal" } else { "DIFFERENT" },
    );
    println!(
        "{:<12} {:>12} {:>13} {:>13} {:>11} {:>10} {:>10}  {:<20} {:<20}",
        "strategy",
        "records/s",
        "state read",
        "commit",
        "store calls",
        "p50",
        "p99",
        "records/s ratio",
        "read time ratio",
    );
    for &strategy in strategies {
        println!(
            "{:<12} {:>12.0} {:>10.1} ms {:>10.1} ms {:>11.0} {:>7.0} µs {:>7.0} µs  {:<20} {:<20}",
            strategy.name(),
            median(of(strategy, |run| run.records_per_second)),
            median(of(strategy, |run| run.state_read_ms)),
            median(of(strategy, |run| run.state_commit_ms)),
            median(of(strategy, |run| run.store_calls as f64)),
            median(of(strategy, |run| run.release_p50_us)),
            median(of(strategy, |run| run.release_p99_us)),
            ratios(strategy, |run| run.records_per_second),
            ratios(strategy, |run| run.state_read_ms),
        );
    }
    println!("ratios against {}: median [least–largest] over the runs", strategies[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
        assert_eq!(spread(vec![0.5, 0.25, 1.0]), "0.50 [0.25–1.00]");
    }
}
