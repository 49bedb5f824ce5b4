//! What the engine's tests share: inputs in memory, and a model that shares no code with the
//! engine.
#![allow(dead_code)]

use std::sync::{Arc, Mutex};
use tidegate::config::{JobConfig, StateBackend};
use tidegate::error::JobError;
use tidegate::ingest::{Partition, PartitionStatus};
use tidegate::job::Job;
use tidegate::run::{Report, Runner};
use tidegate::sink::{Output, OutputOptions, Row};
use tidegate_operators::event::{Event, Rank, Time};
use tidegate_operators::watermark::Watermark;

/// A record of a test: time, key, value.
pub type Record = (Time, String, i64);

/// A record with its place: time, partition, position, key, value.
pub type Placed = (Time, usize, usize, String, i64);

/// An input: partitions, the allowed disorder, the epoch, and how many records a read gives.
#[derive(Debug, Clone)]
pub struct Input {
    pub partitions: Vec<Vec<Record>>,
    pub max_lag: Time,
    pub epoch: Time,
    pub chunk: usize,
}

/// A partition out of a list.
pub struct ListPartition {
    number: u32,
    records: std::vec::IntoIter<Record>,
    position: u64,
    watermark: Watermark,
    chunk: usize,
}

impl Partition<(String, i64)> for ListPartition {
    fn read(
        &mut self,
        limit: usize,
        into: &mut Vec<Event<(String, i64)>>,
    ) -> Result<PartitionStatus, JobError> {
        for _ in 0..limit.min(self.chunk) {
            let Some((time, key, value)) = self.records.next() else {
                return Ok(PartitionStatus::Ended);
            };
            let rank = match self.watermark.observe(time) {
                Some(watermark) => Rank::late_record(self.number, self.position, watermark),
                None => Rank::record(self.number, self.position),
            };
            self.position += 1;
            into.push(Event { time, rank, data: (key, value) });
        }
        Ok(PartitionStatus::More)
    }

    fn watermark(&self) -> Time {
        self.watermark.current()
    }
}

impl Input {
    /// The partitions that a worker reads: every n-th.
    pub fn partitions_of(&self, worker: usize, workers: usize) -> Vec<Box<dyn Partition<(String, i64)>>> {
        let mine = self.partitions.iter().enumerate().filter(|(number, _)| number % workers == worker);
        mine.map(|(number, records)| {
            Box::new(ListPartition {
                number: number as u32,
                records: records.clone().into_iter(),
                position: 0,
                watermark: Watermark::new(self.max_lag, self.epoch),
                chunk: self.chunk.max(1),
            }) as Box<dyn Partition<(String, i64)>>
        })
        .collect()
    }

    /// What the rules say of each record, in the order in which a single reader who knows all
    /// would apply them: (time, partition, position, key, value), and the late ones apart.
    pub fn by_the_rules(&self) -> (Vec<Placed>, Vec<Record>) {
        let (mut on_time, mut late) = (Vec::new(), Vec::new());
        for (number, records) in self.partitions.iter().enumerate() {
            let mut largest: Option<Time> = None;
            for (position, (time, key, value)) in records.iter().enumerate() {
                let watermark = largest.map_or(i128::from(Time::MIN), |largest| {
                    let behind = i128::from(largest) - i128::from(self.max_lag.max(0));
                    let epoch = i128::from(self.epoch.max(1));
                    behind.div_euclid(epoch) * epoch
                });
                if i128::from(*time) < watermark {
                    late.push((*time, key.clone(), *value));
                } else {
                    on_time.push((*time, number, position, key.clone(), *value));
                }
                largest = largest.max(Some(*time));
            }
        }
        on_time.sort();
        (on_time, late)
    }
}

/// Runs a job and gives its rows, sorted.
pub fn run_collecting(
    config: JobConfig,
    build: impl Fn(&Job<'_>) + Send + Sync + 'static,
) -> Result<(Vec<Row>, Report), JobError> {
    let rows = Arc::new(Mutex::new(Vec::new()));
    let output = OutputOptions { output: Output::Collect(Arc::clone(&rows)), ..OutputOptions::default() };
    let report = Runner::new(config, output).run(build)?;
    let mut rows = std::mem::take(&mut *rows.lock().unwrap());
    rows.sort();
    Ok((rows, report))
}

/// A configuration for tests: state in memory.
pub fn in_memory(workers: usize) -> JobConfig {
    JobConfig { workers, backend: StateBackend::Memory, ..JobConfig::default() }
}

/// Rows of a sink, from (time, text) pairs, sorted.
pub fn rows(sink: &str, rows: impl IntoIterator<Item = (Time, String)>) -> Vec<Row> {
    let mut rows: Vec<Row> =
        rows.into_iter().map(|(time, text)| Row { sink: sink.to_string(), time, text }).collect();
    rows.sort();
    rows
}
