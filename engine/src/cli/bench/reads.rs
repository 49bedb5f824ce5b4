//! `tidegate bench reads`: what the disk gives without any store, the ceiling of every strategy.

use super::disk_file::{DiskError, DiskFile, LEAST_BLOCK_BYTES};
use super::spread::Spread;
use crate::cli::CommandError;
use crate::cli::progress::ProgressDisplay;
use crate::metrics::Live;
use bytesize::ByteSize;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Options of `tidegate bench reads`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Random reads past the page cache (O_DIRECT). The depth is the number of reads in flight, each from a
thread of its own. Depths take turns, round by round, so that whatever else the machine does meets
all of them; numbers are medians over the rounds, with the least and the largest in brackets. The
file has no name: it is gone when the command ends, however it ends.

JSON: an array with one object for each depth, of depth, block_bytes, file_bytes, rounds, seconds,
reads_per_second and times_first_depth (each with median, least, largest), us_per_read.

Examples:
  tidegate bench reads
  tidegate bench reads --dir /var/tmp --block 16KiB --size 4GiB --depths 1,2,4,8,16,32,64
  tidegate bench reads --seconds 0.5 --rounds 9 --json -")]
pub struct ReadsArguments {
    /// Directory for the file, on the disk that is meant; the system's temporary directory if
    /// not given.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Length of the file. A small one may lie in a cache of the disk's own.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    size: ByteSize,
    /// Length of a read; a power of two.
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    block: ByteSize,
    /// Reads in flight.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 8, 32, 128],
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    depths: Vec<u16>,
    /// Seconds for each depth and round.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
    /// Rounds over all depths.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// File for the numbers, as JSON; `-` for standard output, in place of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No progress display.
    #[arg(long, short)]
    quiet: bool,
}

/// What one depth gave.
#[derive(Debug, Serialize)]
struct DepthRow {
    depth: u16,
    block_bytes: usize,
    file_bytes: u64,
    rounds: u16,
    seconds: f64,
    reads_per_second: Spread,
    /// Against the first depth of the same round.
    times_first_depth: Spread,
    /// How long a read takes on average at this depth, waiting included.
    us_per_read: f64,
}

/// Runs the command; gives the exit status.
///
/// # Errors
/// [`CommandError`] where an option is wrong, or the disk cannot be measured.
pub fn run(arguments: &ReadsArguments) -> Result<u8, CommandError> {
    let (block_bytes, seconds) = (arguments.block.as_u64(), arguments.seconds);
    if !block_bytes.is_power_of_two() || !(LEAST_BLOCK_BYTES..=1 << 30).contains(&block_bytes) {
        return Err(CommandError::usage("option --block: a power of two from 512 B to 1 GiB"));
    }
    if arguments.size.as_u64() < block_bytes {
        return Err(CommandError::usage("option --size: at least one --block"));
    }
    // `try_from_secs_f64` also refuses what is negative or not a number.
    let length = match Duration::try_from_secs_f64(seconds) {
        Ok(length) if !length.is_zero() && length < Duration::from_hours(1) => length,
        _ => return Err(CommandError::usage("option --seconds: a number above 0, below an hour")),
    };
    let directory = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let file = create_file(&directory, arguments.size.as_u64(), block_bytes as usize, arguments.quiet)
        .map_err(|error| disk_error(&error, "--dir"))?;
    // One list for each depth, one number for each round.
    let mut rates = vec![Vec::new(); arguments.depths.len()];
    for round in 0..arguments.rounds {
        if !arguments.quiet {
            eprintln!("round {} of {}", round + 1, arguments.rounds);
        }
        for (rates, &depth) in rates.iter_mut().zip(&arguments.depths) {
            let rate = file.reads_per_second(usize::from(depth), length, u64::from(round));
            rates.push(rate.map_err(|error| disk_error(&error, "--dir"))?);
        }
    }
    let rows: Vec<DepthRow> = arguments
        .depths
        .iter()
        .zip(&rates)
        .map(|(&depth, own)| {
            let reads_per_second = Spread::of(own.iter().copied());
            DepthRow {
                depth,
                block_bytes: block_bytes as usize,
                file_bytes: file.total_bytes(),
                rounds: arguments.rounds,
                seconds,
                reads_per_second,
                times_first_depth: Spread::of(own.iter().zip(&rates[0]).map(|(own, first)| own / first)),
                us_per_read: f64::from(depth) * 1e6 / reads_per_second.median,
            }
        })
        .collect();
    if let Some(path) = &arguments.json {
        crate::cli::write_json(path, &rows)?;
    }
    if arguments.json.as_ref().is_none_or(|path| path.as_os_str() != "-") {
        print_table(&directory, &rows);
    }
    Ok(0)
}

/// Makes the file that is read, and shows how that gets on.
///
/// # Errors
/// [`DiskError`] as for [`DiskFile::create`].
pub fn create_file(
    directory: &Path,
    total_bytes: u64,
    block_bytes: usize,
    quiet: bool,
) -> Result<DiskFile, DiskError> {
    let live = Arc::<Live>::default();
    let display = (!quiet).then(|| ProgressDisplay::of_bytes(Arc::clone(&live), total_bytes));
    let file = DiskFile::create(directory, total_bytes, block_bytes, &mut |written| {
        live.records.store(written / block_bytes as u64, Ordering::Relaxed);
        live.input_bytes.store(written, Ordering::Relaxed);
    });
    drop(display);
    file
}

/// The error for a user who chose the directory by this option.
pub fn disk_error(error: &DiskError, option: &str) -> CommandError {
    let advice = match error {
        DiskError::Read { .. } => "see the system's log for the disk, or choose another",
        _ => "choose another",
    };
    CommandError { status: 1, message: format!("{error}; {advice} {option}") }
}

fn print_table(directory: &Path, rows: &[DepthRow]) {
    let Some(first) = rows.first() else { return };
    println!(
        "random reads of {} in a file of {} in {}, past the page cache; {} rounds of {} s",
        ByteSize(first.block_bytes as u64),
        ByteSize(first.file_bytes),
        directory.display(),
        first.rounds,
        first.seconds,
    );
    println!(
        "{:>5} {:>10} {:<17} {:>9} {:>10} {:>8}",
        "depth", "reads/s", "", "MiB/s", "µs a read", "× first"
    );
    for row in rows {
        let Spread { median, least, largest } = row.reads_per_second;
        println!(
            "{:>5} {median:>10.0} {:<17} {:>9.1} {:>10.1} {:>8.2}",
            row.depth,
            format!("[{least:.0}–{largest:.0}]"),
            median * row.block_bytes as f64 / f64::from(1 << 20),
            row.us_per_read,
            row.times_first_depth.median,
        );
    }
}
