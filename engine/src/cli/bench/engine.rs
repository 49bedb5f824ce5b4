//! `tidegate bench engine`: the workloads that peers run, through the engine as a real job.

use super::machine;
use super::padded_count::PaddedCount;
use super::peers::{self, Peer};
use super::workload_source::{Clock, Workload, WorkloadPartition};
use crate::cli::CommandError;
use crate::cli::explain::explain;
use crate::cli::state_arguments::StateArguments;
use crate::config::{JobConfig, RunAhead};
use crate::generate::workload;
use crate::ingest::Partition;
use crate::job::Job;
use crate::run::Runner;
use crate::sink::OutputOptions;
use crate::stream::Stream;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tidegate_operators::window::{Count, WindowRow, Windows};
use tidegate_state::strategy::ReadStrategy;

/// Options of `tidegate bench engine`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Workload w1 is a running count: after each event its key's new count is issued, and the checksum is
the sum of all of them. Workload w2 counts the events of each key in tumbling windows of a second;
events are out of order by up to 255 ms, and the checksum is the sum of window_start_ms * 31 +
key * 17 + count over all results. `secs` runs from the first event to the end of the job; `eps` are events a
second, `eps_2nd_half` those of the second half of the events.

Examples:
  tidegate bench engine --workload w1 --n 1000000 --k 400000 --workers 1 --memory 1GiB
  tidegate bench engine --workload w1 --n 200000 --k 100000 --vsize 1000 --memory 80MiB --direct-io
  tidegate bench engine --workload w1 --n 1000000 --k 400000 --peer hashmap
  tidegate bench engine --workload w2 --n 200000 --k 20000")]
pub struct EngineArguments {
    /// Which workload.
    #[arg(long, value_enum, default_value = "w1")]
    workload: WorkloadName,
    /// Number of events.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    n: u64,
    /// Number of keys.
    #[arg(long, value_name = "K", default_value_t = 400_000, value_parser = clap::value_parser!(u64).range(1..))]
    k: u64,
    /// Worker threads.
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Zipf keys instead of uniform ones.
    #[arg(long)]
    zipf: bool,
    /// Size of a key's state in bytes, at least 8.
    #[arg(long, value_name = "V", default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..))]
    vsize: u32,
    /// How state is read.
    #[arg(long, value_name = "S", default_value = "auto")]
    strategy: ReadStrategy,
    /// Events in a millisecond of event time; 4 in w1 and 20 in w2 if not given.
    #[arg(long, value_name = "E", value_parser = clap::value_parser!(u64).range(1..))]
    epms: Option<u64>,
    /// Length of an epoch in milliseconds of event time; 1000 in w1 and 100 in w2 if not given.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    epoch_ms: Option<u64>,
    /// Most records of a worker that are due and not worked off before its sources wait.
    #[arg(long, value_name = "N", default_value_t = RunAhead::default().events)]
    max_in_flight: u64,
    /// Run the workload on something else, to compare with.
    #[arg(long, value_enum)]
    peer: Option<Peer>,
    /// Say at the end how state was read, and why: what each call cost at each size.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    state: StateArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WorkloadName {
    /// Running count for each key.
    W1,
    /// Count for each key and window of a second.
    W2,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// From the first event to the end.
    pub secs: f64,
    /// Events a second.
    pub eps: f64,
    /// Events a second, of the second half of the events.
    pub eps_2nd_half: f64,
    /// Processor time for an event, of all threads.
    pub cpu_us_per_event: Option<f64>,
    /// The most memory the process had resident.
    pub rss_mb: Option<f64>,
    /// Rows that came out.
    pub out: u64,
    /// Sum over what came out.
    pub checksum: String,
}

/// What a run of a workload gives.
pub struct Outcome {
    /// Rows that came out.
    pub out: u64,
    /// Sum over what came out.
    pub checksum: u64,
}

/// Runs the command; gives the exit status.
///
/// # Errors
/// [`CommandError`] where the job fails.
pub fn run(arguments: &EngineArguments) -> Result<u8, CommandError> {
    let disordered = arguments.workload == WorkloadName::W2;
    let (epms, epoch_ms) = if disordered { (20, workload::WATERMARK_STEP_MS) } else { (4, 1000) };
    let workload = Workload {
        events: arguments.n,
        keys: arguments.k,
        zipf: arguments.zipf,
        events_per_ms: arguments.epms.unwrap_or(epms),
        epoch_ms: arguments.epoch_ms.unwrap_or(epoch_ms),
        disordered,
    };
    let clock = Clock::new(workload.events);
    let cpu_before = machine::cpu_us();
    let outcome = match arguments.peer {
        Some(_) if disordered => {
            return Err(CommandError::usage("--peer runs workload w1 only; leave it out for w2".to_string()));
        }
        Some(peer) => peers::run(peer, workload, usize::from(arguments.workers), &clock)?,
        None => run_job(arguments, workload, &clock)?,
    };
    let ended = Instant::now();
    let since = |at: Option<Instant>| at.map_or(0.0, |at| (ended - at).as_secs_f64());
    let (secs, second_half) = (since(clock.started()), since(clock.half_at()));
    let cpu_us = cpu_before.zip(machine::cpu_us()).map(|(before, after)| (after - before) as f64);
    let measured = Measured {
        secs,
        eps: workload.events as f64 / secs,
        eps_2nd_half: (workload.events - workload.events / 2) as f64 / second_half,
        cpu_us_per_event: cpu_us.map(|us| us / workload.events as f64),
        rss_mb: machine::peak_resident_bytes().map(|bytes| bytes as f64 / 1e6),
        out: outcome.out,
        checksum: format!("{:016x}", outcome.checksum),
    };
    let line = serde_json::to_string(&measured)
        .map_err(|error| CommandError { status: 1, message: error.to_string() })?;
    println!("{line}");
    Ok(0)
}

fn run_job(
    arguments: &EngineArguments,
    workload: Workload,
    clock: &Arc<Clock>,
) -> Result<Outcome, CommandError> {
    let mut config = JobConfig {
        name: "bench engine".to_string(),
        workers: usize::from(arguments.workers),
        strategy: arguments.strategy,
        memory_bytes: 1 << 30,
        run_ahead: RunAhead { events: arguments.max_in_flight, ..RunAhead::default() },
        ..JobConfig::default()
    };
    arguments.state.configure(&mut config);
    let sums: Arc<Sums> = Arc::default();
    let (shown, clock) = (Arc::clone(&sums), Arc::clone(clock));
    let vsize = arguments.vsize as usize;
    let report = Runner::new(config, OutputOptions::default()).run(move |job| {
        let clock = Arc::clone(&clock);
        let sums = Arc::clone(&shown);
        match workload.disordered {
            false => running_count(job, workload, vsize, clock, sums),
            true => windowed_count(job, workload, clock, sums),
        }
    })?;
    if arguments.explain {
        eprint!("{}", explain(&report.metrics));
    }
    log::info!("{:?}, waited {} ms", report.metrics.all_states(), report.metrics.read_wait_ns / 1_000_000);
    Ok(Outcome { out: sums.0.load(Ordering::Relaxed), checksum: sums.1.load(Ordering::Relaxed) })
}

/// What came out: number of rows, and checksum.
type Sums = (AtomicU64, AtomicU64);

fn add(sums: &Sums, parts: impl Iterator<Item = u64>) {
    let (out, sum) = parts.fold((0, 0u64), |(out, sum), part| (out + 1, sum.wrapping_add(part)));
    sums.0.fetch_add(out, Ordering::Relaxed);
    sums.1.fetch_add(sum, Ordering::Relaxed);
}

/// The events of this worker.
fn events<'s>(job: &Job<'s>, workload: Workload, clock: Arc<Clock>) -> Stream<'s, (u64, ())> {
    let partition = WorkloadPartition::new(workload, job.worker(), job.workers(), clock);
    job.source("events", vec![Box::new(partition) as Box<dyn Partition<(u64, ())>>])
}

/// The job of workload 1.
fn running_count(job: &Job<'_>, workload: Workload, vsize: usize, clock: Arc<Clock>, sums: Arc<Sums>) {
    let events = events(job, workload, clock);
    if vsize == 8 {
        let counts = events.count("count");
        counts.consume("counts", move |events| add(&sums, events.iter().map(|event| event.data.1)));
    } else {
        // A state is made with its key, which a fold does not see; so the key goes along.
        let counts = events.map(|(key, ())| (key, key)).fold(
            "count",
            || None,
            move |state: &mut Option<PaddedCount>, key| {
                state.get_or_insert_with(|| PaddedCount::new(key, vsize)).increment()
            },
        );
        counts.consume("counts", move |events| add(&sums, events.iter().map(|event| event.data.1)));
    }
}

/// The job of workload 2.
fn windowed_count(job: &Job<'_>, workload: Workload, clock: Arc<Clock>, sums: Arc<Sums>) {
    // A second is a length.
    let Ok(windows) = Windows::tumbling(workload::WINDOW_MS as i64) else { return };
    let counts = events(job, workload, clock).window("count", windows, Count);
    let part = |(start, _, key, count): &WindowRow<u64, u64>| {
        let start = (*start as u64).wrapping_mul(31);
        start.wrapping_add(key.wrapping_mul(17)).wrapping_add(*count)
    };
    counts.consume("counts", move |events| add(&sums, events.iter().map(|event| part(&event.data))));
}
