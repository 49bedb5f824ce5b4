//! The runs of one table row after the other: strategies take turns, so that whatever else the
//! machine does meets all of them.

use super::super::disk_file::DiskFile;
use super::super::reads::disk_error;
use super::super::spread::Spread;
use super::filled::{Filled, StoreCopy, check, state_error};
use super::keys::{KeyChoice, StoredKeys};
use super::row::Row;
use super::setting::Setting;
use super::subject::{Operation, Sample};
use crate::cli::CommandError;
use crate::generate::workload::mix;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tidegate_state::strategy::ReadStrategy;

/// How long the disk itself is measured after each run.
const DISK_TIME: Duration = Duration::from_millis(250);
/// A clear has so many rounds in a run at most: each leaves its mark in the store, and the next
/// look steps over all of them.
const MOST_CLEARS: usize = 128;

/// What all measurements share.
pub struct Plan<'a> {
    /// Strategies; the first is what others are measured against.
    pub strategies: &'a [ReadStrategy],
    /// Runs that are counted. One before them is not: it fills caches, and `auto` learns from it.
    pub runs: u32,
    /// Keys of a run, about.
    pub keys_per_run: usize,
    /// The disk itself, and how many reads it is given at once.
    pub disk: Option<(&'a DiskFile, u16)>,
    /// Set by an interrupt.
    pub interrupted: &'a AtomicBool,
}

/// What is done, on which keys, how many at a time. No choice of keys for a clear.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// What is done.
    pub operation: Operation,
    /// How keys are chosen.
    pub choice: Option<KeyChoice>,
    /// Keys of a release.
    pub batch: u32,
}

impl Plan<'_> {
    /// Copies of a filled store, one for each strategy, warm where the regime says so.
    ///
    /// # Errors
    /// [`CommandError`] where a store fails.
    pub fn copies(
        &self,
        filled: &Filled,
        setting: &Setting,
        operation: Operation,
    ) -> Result<Vec<StoreCopy>, CommandError> {
        // A clear has no strategies; any stands for all of them.
        let strategies = if operation == Operation::Clear { &self.strategies[..1] } else { self.strategies };
        strategies
            .iter()
            .enumerate()
            .map(|(number, &strategy)| {
                check(self.interrupted)?;
                let mut copy = filled.copy(&format!("copy-{number:02}"), setting, strategy)?;
                if setting.warms_up(operation) {
                    copy.subject.warm_up().map_err(state_error)?;
                }
                Ok(copy)
            })
            .collect()
    }

    /// Measures one kind of work under every strategy.
    ///
    /// # Errors
    /// [`CommandError`] where a store or the disk fails, or an interrupt came.
    pub fn measure(
        &self,
        work: Work,
        setting: &Setting,
        keys: &StoredKeys,
        copies: &mut [StoreCopy],
    ) -> Result<Vec<Row>, CommandError> {
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); copies.len()];
        let mut disk_rates = Vec::new();
        for run in 0..=self.runs {
            for turn in 0..copies.len() {
                check(self.interrupted)?;
                // Every run begins with another strategy: the first one of a run has what the
                // disk and the processor were left with by something else.
                let place = (turn + run as usize) % copies.len();
                let sample = self.sample(work, run, place, keys, &mut copies[place])?;
                if run > 0 {
                    samples[place].push(sample);
                }
            }
            if let Some((disk, depth)) = self.disk
                && run > 0
            {
                let rate = disk.reads_per_second(usize::from(depth), DISK_TIME, u64::from(run));
                disk_rates.push(rate.map_err(|error| disk_error(&error, "--state-dir"))?);
            }
        }
        let first = &samples[0];
        let rows = samples.iter().zip(self.strategies);
        Ok(rows.map(|(own, &strategy)| self.row(work, setting, strategy, own, first, &disk_rates)).collect())
    }

    fn sample(
        &self,
        work: Work,
        run: u32,
        place: usize,
        keys: &StoredKeys,
        copy: &mut StoreCopy,
    ) -> Result<Sample, CommandError> {
        let batch = work.batch as usize;
        let releases = (self.keys_per_run / batch).max(1);
        let subject = &mut copy.subject;
        let sample = match work.choice {
            None => subject.sample_clears(releases.min(MOST_CLEARS), batch),
            Some(choice) => {
                // Other keys for every strategy: they lie in the same places of the disk, which
                // may remember what it was asked for.
                let number = u64::from(run) << 8 | place as u64;
                let seed = mix(mix(number) ^ u64::from(work.batch) << 8 ^ choice as u64);
                let mut wanted = Vec::new();
                keys.draw(choice, seed, releases * batch, &mut wanted);
                subject.sample(work.operation, &wanted, batch)
            }
        };
        let sample = sample.map_err(|error| state_error(error).under(self.strategies[place]))?;
        std::hint::black_box(subject.checksum);
        match subject.take_absent() {
            0 => Ok(sample),
            absent => Err(CommandError {
                status: 1,
                message: format!(
                    "under {}, {absent} rows that were written were not there to {}: this is a fault of the \
                     store or of this program",
                    self.strategies[place],
                    work.operation.name(),
                ),
            }),
        }
    }

    fn row(
        &self,
        work: Work,
        setting: &Setting,
        strategy: ReadStrategy,
        own: &[Sample],
        first: &[Sample],
        disk_rates: &[f64],
    ) -> Row {
        let us_per_key = |sample: &Sample| sample.elapsed.as_secs_f64() * 1e6 / sample.keys as f64;
        let median = |number: &dyn Fn(&Sample) -> f64| Spread::of(own.iter().map(number)).median;
        let per_key_us = |ns: u64, sample: &Sample| ns as f64 / 1e3 / sample.keys as f64;
        let times = Spread::of(own.iter().map(us_per_key));
        let of_disk = own
            .iter()
            .zip(disk_rates)
            .map(|(sample, disk_rate)| sample.store_keys as f64 / sample.elapsed.as_secs_f64() / disk_rate);
        let with_disk = !disk_rates.is_empty() && work.choice.is_some();
        Row {
            regime: setting.regime,
            rows: setting.rows,
            value_bytes: setting.value_bytes,
            memory_bytes: setting.memory_bytes,
            cache_bytes: setting.cache_bytes,
            direct_io: setting.direct_io,
            reader_threads: setting.reader_threads,
            operation: work.operation,
            keys: work.choice.map_or("range", KeyChoice::name),
            batch: work.batch,
            strategy: work.choice.map(|_| strategy),
            runs: self.runs,
            keys_per_run: own.first().map_or(0, |sample| sample.keys),
            store_keys_per_run: median(&|sample| sample.store_keys as f64),
            us_per_key: times,
            read_us_per_key: median(&|sample| per_key_us(sample.read_ns, sample)),
            commit_us_per_key: median(&|sample| per_key_us(sample.commit_ns, sample)),
            ratio: Spread::of(own.iter().zip(first).map(|(own, first)| us_per_key(own) / us_per_key(first))),
            keys_per_second: 1e6 / times.median,
            disk_reads_per_second: with_disk.then(|| Spread::of(disk_rates.iter().copied()).median),
            of_disk: with_disk.then(|| Spread::of(of_disk).median),
        }
    }
}
