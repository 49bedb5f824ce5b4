//! `tidegate bench state`: the state layer alone, without dataflow.
//!
//! What a keyed operator asks of its state is done here straight on tables and stores, so that a
//! strategy's own cost can be seen, and where it wins or loses.

mod filled;
mod keys;
mod measure;
mod row;
mod setting;
mod subject;

use super::disk_file::{DiskFile, check_direct};
use super::reads;
use crate::cli::CommandError;
use crate::cli::compare::Regime;
use crate::cli::interrupt::note_signals;
use crate::config::JobConfig;
use bytesize::ByteSize;
use filled::{Filled, state_error};
use keys::{KeyChoice, StoredKeys};
use measure::{Plan, Work};
use row::Row;
use setting::{Chosen, Setting};
use std::path::PathBuf;
use subject::Operation;
use tidegate_state::directory::StateDirectory;
use tidegate_state::group::KeyGroups;
use tidegate_state::strategy::ReadStrategy;

/// RocksDB's blocks, compressed: what a read of the disk is compared with.
const BLOCK_BYTES: usize = 4096;

/// Options of `tidegate bench state`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A store is filled once for each regime and length of value, and brought into its final form. Each
strategy then works on a copy of its own. In each run every strategy has its turn, on other keys of
the same kind; numbers are medians over the runs, after one run that is not counted. Ratios are taken
within a run against the first strategy, with the least and the largest in brackets.

  read     declare keys, load them, look at each, end the release
  update   the same, with a change of each value, and a commit
  append   append an element to the list of each key without reading it, and commit; a list begins with
           about --value-bytes bytes
  append-rewrite  the same on lists that are one value: declare, load, push, commit
  clear    remove a range of rows, then look for the first row of the state; no strategies

A release has as many keys as the batch says; under per-record, a key is a release of its own. Keys:
uniform; zipf (octaves, popular keys all over the store, repeats in a release); clustered (runs of 4
to 8 rows that are neighbours in the store). `reading` and `commits` are the microseconds a key that
went into the store; the rest is tables, keys and values.

JSON: an array with one object for each line of the table, of regime, rows, value_bytes,
memory_bytes, cache_bytes, direct_io, reader_threads, operation, keys, batch, strategy (null for
clear), runs, keys_per_run, store_keys_per_run, us_per_key, read_us_per_key, commit_us_per_key, ratio,
keys_per_second, disk_reads_per_second and of_disk (both null without --disk-reads); us_per_key and
ratio have median, least and largest.

Examples:
  tidegate bench state
  tidegate bench state --regime disk --operations read --disk-reads --state-dir /var/tmp/state
  tidegate bench state --regime memory,cache,disk --value-bytes 100,1000 --json state.json
  tidegate bench state --regime cache --keys zipf --batches 1024 --strategies dedup,multiget --runs 9")]
pub struct StateArguments {
    /// Where state is found when it is read; sets --memory and direct reads.
    #[arg(long, value_name = "R,…", value_enum, value_delimiter = ',', default_value = "memory")]
    regime: Vec<Regime>,
    /// Strategies to measure; the first is what the others are measured against.
    #[arg(long, value_name = "S,…", value_delimiter = ',', default_values_t = ReadStrategy::ALL)]
    strategies: Vec<ReadStrategy>,
    /// What is measured.
    #[arg(
        long,
        value_name = "O,…",
        value_enum,
        value_delimiter = ',',
        default_value = "read,update,append,append-rewrite,clear"
    )]
    operations: Vec<Operation>,
    /// How keys are chosen.
    #[arg(
        long,
        value_name = "K,…",
        value_enum,
        value_delimiter = ',',
        default_value = "uniform,zipf,clustered"
    )]
    keys: Vec<KeyChoice>,
    /// Keys of a release.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 16, 128, 1024, 4096],
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batches: Vec<u32>,
    /// Rows of the state; 1,000,000 if not given, and more in the regime `disk` where that is
    /// less than ten times the memory.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 32))]
    rows: Option<u64>,
    /// Length of a value in bytes, at least 8.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [100],
          value_parser = clap::value_parser!(u32).range(8..=1 << 24))]
    value_bytes: Vec<u32>,
    /// Memory of each store; the regime's if not given, and enough for all data in the regime
    /// `memory`.
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Memory out of that for decoded values; with 0, strategies are measured by themselves.
    #[arg(long, value_name = "SIZE", default_value = "0")]
    cache: ByteSize,
    /// Threads that read beside the caller, for strategies that use them.
    #[arg(long, value_name = "N", default_value_t = JobConfig::default().reader_threads)]
    reader_threads: usize,
    /// Read as on a system that refuses io_uring.
    #[arg(long)]
    no_io_uring: bool,
    /// Runs of each strategy.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Keys of a run; a run is one release at least.
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..))]
    keys_per_run: u32,
    /// Measure the disk itself after each run of the regime `disk`, and show how much of that a
    /// strategy reaches.
    #[arg(long)]
    disk_reads: bool,
    /// Reads in flight when the disk itself is measured.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    disk_depth: u16,
    /// Directory for state files; a temporary one if not given.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// File for the numbers, as JSON; `-` for standard output, in place of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No progress display.
    #[arg(long, short)]
    quiet: bool,
}

/// Rows of a state where nothing is said.
const DEFAULT_ROWS: u64 = 1_000_000;

/// Runs the command; gives the exit status.
///
/// # Errors
/// [`CommandError`] where an option is wrong, or a store or the disk fails.
pub fn run(arguments: &StateArguments) -> Result<u8, CommandError> {
    let settings = settings(arguments)?;
    let interrupted = note_signals();
    let directory =
        StateDirectory::claim(arguments.state_dir.as_deref(), "bench state").map_err(state_error)?;
    if arguments.regime.contains(&Regime::Disk) {
        check_direct(directory.path()).map_err(|error| reads::disk_error(&error, "--state-dir"))?;
    }
    let shows_table = arguments.json.as_ref().is_none_or(|path| path.as_os_str() != "-");
    let mut rows: Vec<Row> = Vec::new();
    for setting in &settings {
        let disk = disk_file(arguments, setting, &directory)?;
        let plan = Plan {
            strategies: &arguments.strategies,
            runs: arguments.runs,
            keys_per_run: arguments.keys_per_run as usize,
            disk: disk.as_ref().map(|disk| (disk, arguments.disk_depth)),
            interrupted: &interrupted,
        };
        if shows_table {
            println!("{setting}");
            row::print_header(plan.disk.is_some());
        }
        if setting.is_no_disk() && !arguments.quiet {
            eprintln!(
                "the data is less than {} times --memory: part of it will be read from memory",
                setting::DISK_DATA_TO_MEMORY
            );
        }
        measure_setting(arguments, setting, &plan, &directory, &mut |new| {
            if shows_table {
                new.iter().for_each(Row::print);
            }
            rows.extend(new);
        })?;
        if shows_table {
            println!();
        }
    }
    if let Some(path) = &arguments.json {
        crate::cli::write_json(path, &rows)?;
    }
    if shows_table {
        println!(
            "%: time against {}, median [least–largest] over {} runs",
            arguments.strategies[0], arguments.runs
        );
    }
    Ok(0)
}

/// The file that the disk itself is measured with: about as long as the data, so that no cache
/// of the disk's own helps one of the two more.
fn disk_file(
    arguments: &StateArguments,
    setting: &Setting,
    directory: &StateDirectory,
) -> Result<Option<DiskFile>, CommandError> {
    if !arguments.disk_reads || setting.regime != Regime::Disk {
        return Ok(None);
    }
    let file = reads::create_file(directory.path(), setting.data_bytes(), BLOCK_BYTES, arguments.quiet);
    file.map(Some).map_err(|error| reads::disk_error(&error, "--state-dir"))
}

/// Every regime with every length of value.
fn settings(arguments: &StateArguments) -> Result<Vec<Setting>, CommandError> {
    let memory_bytes = arguments.memory.map(|size| size.as_u64());
    let chosen = Chosen { rows: arguments.rows, memory_bytes };
    let mut settings = Vec::new();
    for &regime in &arguments.regime {
        for &value_bytes in &arguments.value_bytes {
            let mut setting = Setting::new(regime, value_bytes as usize, chosen, DEFAULT_ROWS);
            setting.cache_bytes = arguments.cache.as_u64();
            setting.reader_threads = arguments.reader_threads;
            setting.io_uring = !arguments.no_io_uring;
            if setting.cache_bytes > setting.memory_bytes {
                let memory = ByteSize(setting.memory_bytes);
                return Err(CommandError::usage(format!("option --cache: more than the memory, {memory}")));
            }
            if setting.rows >= 1 << 32 {
                return Err(CommandError::usage(
                    "option --memory: ten times as much data would be too many rows; give --rows",
                ));
            }
            settings.push(setting);
        }
    }
    Ok(settings)
}

fn measure_setting(
    arguments: &StateArguments,
    setting: &Setting,
    plan: &Plan<'_>,
    directory: &StateDirectory,
    done: &mut dyn FnMut(Vec<Row>),
) -> Result<(), CommandError> {
    let keys = StoredKeys::new(setting.rows, KeyGroups::default());
    let mut filled: Option<(subject::Kind, Filled)> = None;
    for &operation in &arguments.operations {
        let kind = operation.kind();
        let store = match filled.take() {
            Some((known, store)) if known == kind => store,
            other => {
                // The store of another kind goes first: there is room for one.
                drop(other);
                if !arguments.quiet && kind != subject::Kind::Ranges {
                    eprintln!("filling a store for {}", operation.name());
                }
                Filled::new(directory.path(), setting, kind, &keys, plan.interrupted, arguments.quiet)?
            }
        };
        let choices: Vec<Option<KeyChoice>> = match operation {
            Operation::Clear => vec![None],
            _ => arguments.keys.iter().copied().map(Some).collect(),
        };
        let mut copies = Vec::new();
        for choice in choices {
            for &batch in &arguments.batches {
                // Where nothing is written, all measurements can have the same copies.
                if copies.is_empty() || operation.writes() {
                    // The old ones first, whose directories have the same names.
                    copies.clear();
                    copies = plan.copies(&store, setting, operation)?;
                }
                done(plan.measure(Work { operation, choice, batch }, setting, &keys, &mut copies)?);
            }
        }
        drop(copies);
        filled = Some((kind, store));
    }
    Ok(())
}
