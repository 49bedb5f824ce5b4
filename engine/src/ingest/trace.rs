//! A trace file, or standard input, as a partition.

use super::{Partition, PartitionStatus};
use crate::error::JobError;
use crate::job::Job;
use crate::source::{Row, Status, TraceOptions, TraceReader};
use crate::stream::{Data, Stream};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Instant;
use tidegate_operators::event::{Event, Rank, Time};
use tidegate_operators::watermark::Watermark;

/// When a partition shows its new watermark to the rest of the job.
///
/// Either way, results are the same; what differs is how many records a release has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochLength {
    /// Each time the watermark has come to another multiple of this length of event time.
    EventTime(Time),
    /// After this many records.
    Records(usize),
}

impl Default for EpochLength {
    /// 4,096 records: enough for a batch to pay, whatever the trace's density in time.
    fn default() -> Self {
        EpochLength::Records(4096)
    }
}

/// How fast a trace is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Speed {
    /// As fast as the job can.
    #[default]
    Max,
    /// So many times as fast as it happened. Event times are microseconds.
    Multiple(f64),
}

/// A job's input: traces, and how they are read.
#[derive(Debug, Clone, PartialEq)]
pub struct InputOptions {
    /// One partition each. `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// How they are read.
    pub trace: TraceOptions,
    /// Allowed disorder, in the unit of event times.
    pub max_lag: Time,
    /// When the frontier steps.
    pub epoch: EpochLength,
    /// How fast they are replayed.
    pub speed: Speed,
}

impl<'s> Job<'s> {
    /// The job's input as records of type `R`: any type that can be made from a trace's fields by
    /// name, see [`TraceReader`]. Each file is a partition; the workers share them out.
    pub fn trace<R: Data>(&self) -> Stream<'s, R> {
        let partitions = match &self.shared.input {
            None => {
                self.refuse("the job reads a trace, and none is given");
                Vec::new()
            }
            Some(input) => self.open_partitions(input),
        };
        self.source("trace", partitions)
    }

    fn open_partitions<R: Data>(&self, input: &InputOptions) -> Vec<Box<dyn Partition<R>>> {
        let first = self.number_partitions(input.paths.len());
        let (worker, workers) = (self.worker(), self.workers());
        let mine = input.paths.iter().enumerate().filter(|(index, _)| index % workers == worker);
        let opened = mine.map(|(index, path)| {
            TracePartition::<R>::open(path, input, first + index as u32)
                .map(|partition| Box::new(partition) as Box<dyn Partition<R>>)
        });
        opened.collect::<Result<Vec<_>, _>>().unwrap_or_else(|error| {
            self.shared.failure.report(error);
            Vec::new()
        })
    }
}

/// A trace as a partition.
pub struct TracePartition<R> {
    rows: Rows<R>,
    number: u32,
    watermark: Watermark,
    epoch: EpochLength,
    pace: Option<Pace>,
    /// Rows that were read and are not yet given out, the next one last.
    buffer: Vec<Row<R>>,
    ended: bool,
    /// What the job was last told.
    shown: Time,
    /// Records since then.
    since_shown: usize,
}

impl<R: DeserializeOwned + Send + 'static> TracePartition<R> {
    /// Opens the trace at `path` as the partition of this number.
    ///
    /// # Errors
    /// [`JobError::Source`] where it cannot be opened, or lacks a field.
    pub fn open(path: &Path, input: &InputOptions, number: u32) -> Result<Self, JobError> {
        let rounding = match input.epoch {
            EpochLength::EventTime(length) => length,
            EpochLength::Records(_) => 1,
        };
        let rows = match path == Path::new("-") {
            true => Rows::Live(LiveRows::start(path, &input.trace)),
            false => Rows::File(TraceReader::open(path, &input.trace)?),
        };
        Ok(TracePartition {
            rows,
            number,
            watermark: Watermark::new(input.max_lag, rounding),
            epoch: input.epoch,
            pace: match input.speed {
                Speed::Max => None,
                Speed::Multiple(multiple) => Some(Pace { multiple, started: None }),
            },
            buffer: Vec::new(),
            ended: false,
            shown: Time::MIN,
            since_shown: 0,
        })
    }

    /// Refills the buffer, and says how it stands with the trace.
    fn refill(&mut self, limit: usize) -> Result<PartitionStatus, JobError> {
        let status = match &mut self.rows {
            Rows::File(reader) => match reader.read(limit, &mut self.buffer)? {
                Status::More => PartitionStatus::More,
                Status::Ended => PartitionStatus::Ended,
            },
            Rows::Live(rows) => rows.read(&mut self.buffer)?,
        };
        self.buffer.reverse();
        self.ended = status == PartitionStatus::Ended;
        Ok(status)
    }

    /// Whether the frontier has to step now.
    fn at_epoch(&self) -> bool {
        match self.epoch {
            EpochLength::EventTime(_) => self.watermark.current() > self.shown,
            EpochLength::Records(records) => self.since_shown >= records,
        }
    }

    fn show(&mut self) {
        self.shown = self.watermark.current();
        self.since_shown = 0;
    }
}

impl<R: DeserializeOwned + Send + 'static> Partition<R> for TracePartition<R> {
    fn read(&mut self, limit: usize, into: &mut Vec<Event<R>>) -> Result<PartitionStatus, JobError> {
        let until = into.len() + limit;
        loop {
            while let Some(row) = self.buffer.last() {
                if into.len() >= until || self.at_epoch() {
                    if self.at_epoch() {
                        self.show();
                    }
                    return Ok(PartitionStatus::More);
                }
                if let Some(pace) = &mut self.pace
                    && !pace.is_due(row.time)
                {
                    return Ok(PartitionStatus::Waiting);
                }
                // The loop's condition has just seen it.
                let Some(Row { time, position, record }) = self.buffer.pop() else { break };
                let rank = match self.watermark.observe(time) {
                    None => Rank::record(self.number, position),
                    Some(missed) => Rank::late_record(self.number, position, missed),
                };
                self.since_shown += 1;
                into.push(Event { time, rank, data: record });
            }
            if self.ended {
                return Ok(PartitionStatus::Ended);
            }
            match self.refill(until.saturating_sub(into.len()).max(1))? {
                PartitionStatus::Waiting => {
                    // A live input that pauses shows what it has.
                    self.show();
                    return Ok(PartitionStatus::Waiting);
                }
                PartitionStatus::More | PartitionStatus::Ended => {}
            }
        }
    }

    fn watermark(&self) -> Time {
        self.shown
    }

    fn bad_lines(&self) -> (u64, Vec<String>) {
        let Rows::File(reader) = &self.rows else { return (0, Vec::new()) };
        let report = reader.bad_lines();
        (report.total, report.first.iter().map(ToString::to_string).collect())
    }

    fn bytes_read(&self) -> u64 {
        match &self.rows {
            Rows::File(reader) => reader.progress().read_bytes(),
            Rows::Live(_) => 0,
        }
    }

    fn is_live(&self) -> bool {
        matches!(self.rows, Rows::Live(_))
    }

    fn raise(&mut self, floor: Time) {
        self.watermark.raise(floor);
        self.shown = self.shown.max(floor);
    }
}

/// Where rows come from.
enum Rows<R> {
    File(TraceReader<R>),
    Live(LiveRows<R>),
}

/// Gives out rows no earlier than their event times, as the speed says.
struct Pace {
    multiple: f64,
    /// The first row's event time, and when it was given out.
    started: Option<(Time, Instant)>,
}

impl Pace {
    fn is_due(&mut self, time: Time) -> bool {
        let (first, started) = *self.started.get_or_insert_with(|| (time, Instant::now()));
        let after_us = (i128::from(time) - i128::from(first)) as f64 / self.multiple;
        started.elapsed().as_micros() as f64 >= after_us
    }
}

/// An input that may have to be waited for, read on a thread of its own, so that a worker never
/// waits.
struct LiveRows<R> {
    batches: Receiver<Result<Vec<Row<R>>, crate::source::SourceError>>,
}

/// Batches that a live input may be ahead; a full queue makes the writer at the pipe's other end
/// wait.
const LIVE_BATCHES: usize = 16;
const LIVE_BATCH_ROWS: usize = 1024;

impl<R: DeserializeOwned + Send + 'static> LiveRows<R> {
    fn start(path: &Path, options: &TraceOptions) -> Self {
        let (sender, batches) = sync_channel(LIVE_BATCHES);
        let (path, options) = (path.to_path_buf(), options.clone());
        std::thread::spawn(move || {
            let mut reader = match TraceReader::open(&path, &options) {
                Ok(reader) => reader,
                Err(error) => {
                    // Nobody listens any more where the job has ended.
                    let _ = sender.send(Err(error));
                    return;
                }
            };
            loop {
                let mut rows = Vec::new();
                let outcome = reader.read(LIVE_BATCH_ROWS, &mut rows);
                let ended = matches!(outcome, Ok(Status::Ended));
                if sender.send(outcome.map(|_| rows)).is_err() || ended {
                    return;
                }
            }
        });
        LiveRows { batches }
    }

    fn read(&mut self, into: &mut Vec<Row<R>>) -> Result<PartitionStatus, JobError> {
        match self.batches.try_recv() {
            Ok(batch) => {
                into.append(&mut batch?);
                Ok(PartitionStatus::More)
            }
            Err(TryRecvError::Empty) => Ok(PartitionStatus::Waiting),
            Err(TryRecvError::Disconnected) => Ok(PartitionStatus::Ended),
        }
    }
}
