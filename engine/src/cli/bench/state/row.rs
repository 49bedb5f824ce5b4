//! What is shown of a measurement.

use super::super::spread::Spread;
use super::subject::Operation;
use crate::cli::compare::Regime;
use serde::Serialize;
use tidegate_state::strategy::ReadStrategy;

/// One strategy, on releases of one kind and size. The fields are those of the JSON, and stay.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Where state is found.
    pub regime: Regime,
    /// Rows of the state.
    pub rows: u64,
    /// Length of a value, in bytes.
    pub value_bytes: usize,
    /// Memory of a store, decoded values included, in bytes.
    pub memory_bytes: u64,
    /// Memory for decoded values, in bytes.
    pub cache_bytes: u64,
    /// Whether reads and writes go past the page cache.
    pub direct_io: bool,
    /// Threads that read beside the caller.
    pub reader_threads: usize,
    /// What was done.
    pub operation: Operation,
    /// How keys were chosen; `range` for a clear.
    pub keys: &'static str,
    /// Keys of a release; for a clear, rows of a range.
    pub batch: u32,
    /// How state was read; null for a clear, which has no strategies.
    pub strategy: Option<ReadStrategy>,
    /// Runs.
    pub runs: u32,
    /// Keys of each run, repeats included.
    pub keys_per_run: u64,
    /// Keys of those that went to the store, in the median.
    pub store_keys_per_run: f64,
    /// Microseconds for a key asked for.
    pub us_per_key: Spread,
    /// Microseconds of those in reads of the store, in the median.
    pub read_us_per_key: f64,
    /// Microseconds of those in commits, in the median.
    pub commit_us_per_key: f64,
    /// Time against that of the first strategy in the same run; 1 is as long.
    pub ratio: Spread,
    /// Keys a second, in the median.
    pub keys_per_second: f64,
    /// What the disk gave between the runs, in reads a second.
    pub disk_reads_per_second: Option<f64>,
    /// Rows read from the store in a second, against that; above 1 where blocks hold several of
    /// them.
    pub of_disk: Option<f64>,
}

/// Prints the line above the rows.
pub fn print_header(with_disk: bool) {
    print!(
        "{:<14} {:<9} {:>6} {:<11} {:>9} {:>6} {:<11} {:>8} {:>8} {:>10}",
        "op", "keys", "batch", "strategy", "µs a key", "%", "[spread]", "reading", "commits", "keys/s",
    );
    println!("{}", if with_disk { "  of disk" } else { "" });
}

impl Row {
    /// Prints the row.
    pub fn print(&self) {
        let percent = |number: f64| format!("{:.0}", 100.0 * number);
        print!(
            "{:<14} {:<9} {:>6} {:<11} {:>9.2} {:>6} {:<11} {:>8.2} {:>8.2} {:>10.0}",
            self.operation.name(),
            self.keys,
            self.batch,
            self.strategy.map_or("–", ReadStrategy::name),
            self.us_per_key.median,
            percent(self.ratio.median),
            format!("[{}–{}]", percent(self.ratio.least), percent(self.ratio.largest)),
            self.read_us_per_key,
            self.commit_us_per_key,
            self.keys_per_second,
        );
        println!("{}", self.of_disk.map_or_else(String::new, |share| format!("  {:>5} %", percent(share))));
    }
}
