//! The events of a workload, as partitions: worker w of P makes the events i = w mod P.

use crate::error::JobError;
use crate::generate::workload;
use crate::ingest::{Partition, PartitionStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tidegate_operators::event::{Event, Rank, Time};

/// What a workload is made of.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Number of events.
    pub events: u64,
    /// Number of keys.
    pub keys: u64,
    /// Zipf by octaves, or uniform.
    pub zipf: bool,
    /// Events in a millisecond of event time.
    pub events_per_ms: u64,
    /// Length of an epoch in milliseconds of event time.
    pub epoch_ms: u64,
    /// Events are up to 255 ms later than their place says, each by its own random number.
    pub disordered: bool,
}

/// Notes when the first event is made, and when half of them have been.
#[derive(Debug)]
pub struct Clock {
    made: AtomicU64,
    half: u64,
    started: Mutex<Option<Instant>>,
    half_at: Mutex<Option<Instant>>,
}

impl Clock {
    /// For so many events.
    pub fn new(events: u64) -> Arc<Self> {
        Arc::new(Clock {
            made: AtomicU64::new(0),
            half: events / 2,
            started: Mutex::new(None),
            half_at: Mutex::new(None),
        })
    }

    /// Events are about to be made.
    fn making(&self) {
        if self.made.load(Ordering::Relaxed) == 0 {
            self.started.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        }
    }

    fn made(&self, events: u64) {
        let before = self.made.fetch_add(events, Ordering::Relaxed);
        if before < self.half && before + events >= self.half {
            *self.half_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
    }

    /// When the first event was made.
    pub fn started(&self) -> Option<Instant> {
        *self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When half of the events had been made.
    pub fn half_at(&self) -> Option<Instant> {
        *self.half_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One worker's share of a workload. Times are milliseconds; nothing is late.
pub struct WorkloadPartition {
    workload: Workload,
    number: u32,
    stride: u64,
    next: u64,
    watermark: Time,
    clock: Arc<Clock>,
}

impl WorkloadPartition {
    /// The share of this worker.
    pub fn new(workload: Workload, worker: usize, workers: usize, clock: Arc<Clock>) -> Self {
        WorkloadPartition {
            workload,
            number: worker as u32,
            stride: workers as u64,
            next: worker as u64,
            watermark: Time::MIN,
            clock,
        }
    }
}

impl Partition<(u64, ())> for WorkloadPartition {
    fn read(&mut self, limit: usize, into: &mut Vec<Event<(u64, ())>>) -> Result<PartitionStatus, JobError> {
        self.clock.making();
        let Workload { events, keys, zipf, events_per_ms, epoch_ms, disordered } = self.workload;
        // The epoch ends with the last event of this partition whose time lies in it.
        let epoch_end_ms = (self.next / events_per_ms / epoch_ms + 1) * epoch_ms;
        let until = events.min(epoch_end_ms * events_per_ms);
        let left = until.saturating_sub(self.next).div_ceil(self.stride).min(limit as u64);
        into.reserve(left as usize);
        for _ in 0..left {
            let i = self.next;
            let delay_ms = if disordered { workload::event_random(i) & 255 } else { 0 };
            let time = (i / events_per_ms + delay_ms) as Time;
            into.push(Event {
                time,
                rank: Rank::record(self.number, i / self.stride),
                data: (workload::event_key(i, keys, zipf), ()),
            });
            self.next += self.stride;
        }
        self.clock.made(left);
        if self.next >= events {
            return Ok(PartitionStatus::Ended);
        }
        if self.next >= until {
            // The workload with windows says so: what comes next is not before the end of the
            // epoch, and its watermark is one millisecond less.
            self.watermark = epoch_end_ms as Time - Time::from(disordered);
        }
        Ok(PartitionStatus::More)
    }

    fn watermark(&self) -> Time {
        self.watermark
    }
}
