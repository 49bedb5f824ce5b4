//! Sources: partitions of records become one stream, with a watermark each.
//!
//! A worker's share of a source is one operator with one capability, at the least watermark of
//! its partitions. It reads from the partition that is farthest behind, a stretch at a time,
//! sends what it read under its capability, and moves the capability to the new least watermark;
//! then everybody else has a turn. What is due and not yet worked off is bounded, see
//! [`RunAhead`].

pub mod trace;

use crate::config::RunAhead;
use crate::container::CONTAINER_EVENTS;
use crate::error::JobError;
use crate::job::{Job, Shared};
use crate::metrics::{Live, SharedSource};
use crate::moment::Moment;
use crate::stream::{Data, Stream};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidegate_operators::event::{Event, Time};
use tidegate_operators::frontier::Frontier;
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::{Capability, Probe};
use timely::scheduling::Activator;

/// One ordered part of an input: a file, a stream, a generator.
///
/// # Contract
///
/// Records come with times, and with ranks that say their partition and position, and whether
/// they are late for the partition's own watermark. The watermark never falls, and is a function
/// of the records before it (see [`Watermark`](tidegate_operators::watermark::Watermark)).
pub trait Partition<R> {
    /// Appends some records, about `limit` of them at most, and stops early where the watermark
    /// has reached a new epoch.
    ///
    /// # Errors
    /// [`JobError`] where the input cannot be read.
    fn read(&mut self, limit: usize, into: &mut Vec<Event<R>>) -> Result<PartitionStatus, JobError>;

    /// The promise that holds after the records so far.
    fn watermark(&self) -> Time;

    /// Lines so far that were no records, and the first of them in words.
    fn bad_lines(&self) -> (u64, Vec<String>) {
        (0, Vec::new())
    }

    /// Bytes of the input that were read so far, as they lie on disk.
    fn bytes_read(&self) -> u64 {
        0
    }

    /// Whether the input is live: one that has nothing for long is idle, and holds nobody back.
    fn is_live(&self) -> bool {
        false
    }

    /// Raises the watermark of a partition that was idle to where the others have come to.
    fn raise(&mut self, _floor: Time) {}
}

/// What a partition says after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionStatus {
    /// There may be more at once.
    More,
    /// Nothing more right now.
    Waiting,
    /// Nothing more, ever.
    Ended,
}

/// Records that are read in one turn.
const STRETCH: usize = 4096;
/// How long a source sleeps when it has to wait.
const NAP: Duration = Duration::from_micros(200);
/// From this pressure on, the store is so near to holding writes up that sources slow down.
const SLOW_DOWN_FROM: f64 = 0.75;
/// How long a source pauses between two stretches where the store holds writes up.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

impl<'s> Job<'s> {
    /// A stream out of this worker's partitions of a source.
    pub fn source<R: Data>(&self, name: &str, partitions: Vec<Box<dyn Partition<R>>>) -> Stream<'s, R> {
        let mut builder = OperatorBuilder::new(name.to_string(), self.scope);
        let (output, events) = builder.new_output();
        let mut output = OutputBuilder::from(output);
        let activator = self.scope.activator_for(builder.operator_info().address);
        let frontier = ProbeHandle::new();
        let failure = self.failure();
        let mut reader = Reader::new(partitions, self, name);
        let mut throttle = Throttle::new(self, frontier.clone());
        builder.build(move |mut capabilities| {
            // One output, so one capability.
            let mut capability = capabilities.pop();
            move |_| {
                let Some(held) = &mut capability else { return };
                if failure.happened() {
                    capability = None;
                    return;
                }
                throttle.look();
                if let Some(pause) = throttle.pause_for_writes() {
                    reader.metrics.borrow_mut().write_waits += 1;
                    activator.activate_after(pause);
                    return;
                }
                let turn = reader.turn(held.time().time, &mut throttle, &mut |events| {
                    let mut output = output.activate();
                    output.session(held).give_container(events);
                    events.clear();
                });
                match turn {
                    Ok(status) => finish_turn(&mut capability, &mut throttle, &reader, status, &activator),
                    Err(error) => {
                        failure.report(error);
                        capability = None;
                    }
                }
            }
        });
        Stream::new(self, events.probe_with(&frontier))
    }
}

/// Moves the capability to what the partitions now promise, and asks for the next turn.
fn finish_turn<R>(
    capability: &mut Option<Capability<Moment>>,
    throttle: &mut Throttle,
    reader: &Reader<R>,
    status: PartitionStatus,
    activator: &Activator,
) {
    let Some(held) = capability else { return };
    if status == PartitionStatus::Ended {
        *capability = None;
        return;
    }
    if let Some(watermark) = reader.watermark()
        && watermark > held.time().time
    {
        let moment = Moment::new(held.time().round, watermark);
        held.downgrade(&moment);
        throttle.stepped(watermark);
    }
    match status {
        PartitionStatus::Waiting => activator.activate_after(NAP),
        PartitionStatus::More | PartitionStatus::Ended => activator.activate(),
    }
}

/// One partition, and how it has been lately.
struct Slot<R> {
    partition: Box<dyn Partition<R>>,
    /// Since when a live partition has had nothing.
    silent_since: Option<Instant>,
    idle: bool,
}

/// A worker's partitions of one source.
struct Reader<R> {
    /// None for a partition that has ended.
    slots: Vec<Option<Slot<R>>>,
    buffer: Vec<Event<R>>,
    idle_after: Duration,
    metrics: SharedSource,
    live: Arc<Live>,
    ended_bytes: u64,
    shown_bytes: u64,
}

impl<R> Reader<R> {
    fn new(partitions: Vec<Box<dyn Partition<R>>>, job: &Job<'_>, name: &str) -> Self {
        let slot = |partition| Some(Slot { partition, silent_since: None, idle: false });
        Reader {
            slots: partitions.into_iter().map(slot).collect(),
            buffer: Vec::new(),
            idle_after: job.config().idle_after,
            metrics: job.source_metrics(name),
            live: job.live(),
            ended_bytes: 0,
            shown_bytes: 0,
        }
    }

    /// The least watermark of the partitions that are neither ended nor idle.
    fn watermark(&self) -> Option<Time> {
        let active = self.slots.iter().flatten().filter(|slot| !slot.idle);
        active.map(|slot| slot.partition.watermark()).min()
    }

    /// Reads, farthest behind first, until the least watermark has moved beyond `from`, a
    /// stretch of records has been read, or there is nothing that may be read.
    fn turn(
        &mut self,
        from: Time,
        throttle: &mut Throttle,
        send: &mut impl FnMut(&mut Vec<Event<R>>),
    ) -> Result<PartitionStatus, JobError> {
        let mut left = STRETCH;
        let mut waiting = vec![false; self.slots.len()];
        let mut throttled = false;
        let status = loop {
            let candidates = self.slots.iter().enumerate().filter(|(index, _)| !waiting[*index]);
            let next = candidates
                .filter_map(|(index, slot)| Some((slot.as_ref()?.partition.watermark(), index)))
                .min();
            let Some((watermark, index)) = next else {
                let ended = self.slots.iter().all(Option::is_none);
                break if ended { PartitionStatus::Ended } else { PartitionStatus::Waiting };
            };
            if left == 0 || self.watermark().is_some_and(|least| least > from) {
                break PartitionStatus::More;
            }
            if !throttle.may_read(watermark) {
                waiting[index] = true;
                throttled = true;
                continue;
            }
            let status = self.read(index, left.min(CONTAINER_EVENTS), from)?;
            left = left.saturating_sub(self.buffer.len());
            throttle.sent += self.buffer.len() as u64;
            if !self.buffer.is_empty() {
                throttle.shared.worked();
                send(&mut self.buffer);
            }
            match status {
                PartitionStatus::More => {}
                PartitionStatus::Waiting => waiting[index] = true,
                PartitionStatus::Ended => self.end(index),
            }
        };
        self.metrics.borrow_mut().waits += u64::from(throttled);
        self.show_bytes();
        Ok(status)
    }

    /// Reads from one partition into the buffer.
    fn read(&mut self, index: usize, limit: usize, held: Time) -> Result<PartitionStatus, JobError> {
        let Some(slot) = &mut self.slots[index] else { return Ok(PartitionStatus::Ended) };
        if slot.idle {
            // What it still has is judged by where the others have come to.
            slot.partition.raise(held);
        }
        let status = slot.partition.read(limit, &mut self.buffer)?;
        if !self.buffer.is_empty() || status != PartitionStatus::Waiting {
            slot.silent_since = None;
            slot.idle = false;
        } else if slot.partition.is_live() {
            let since = *slot.silent_since.get_or_insert_with(Instant::now);
            slot.idle = since.elapsed() >= self.idle_after;
        }
        self.count();
        Ok(status)
    }

    fn end(&mut self, index: usize) {
        if let Some(Slot { partition, .. }) = self.slots[index].take() {
            let (bad_lines, samples) = partition.bad_lines();
            self.ended_bytes += partition.bytes_read();
            let mut metrics = self.metrics.borrow_mut();
            metrics.bad_lines += bad_lines;
            metrics.bad_line_samples.extend(samples);
        }
    }

    fn show_bytes(&mut self) {
        let open: u64 = self.slots.iter().flatten().map(|slot| slot.partition.bytes_read()).sum();
        let bytes = self.ended_bytes + open;
        self.live.input_bytes.fetch_add(bytes - self.shown_bytes, Ordering::Relaxed);
        self.shown_bytes = bytes;
    }

    fn count(&self) {
        let records = self.buffer.len() as u64;
        let late = self.buffer.iter().filter(|event| event.rank.missed_watermark().is_some()).count() as u64;
        let mut metrics = self.metrics.borrow_mut();
        metrics.records += records;
        metrics.records_late += late;
        self.live.records.fetch_add(records, Ordering::Relaxed);
        self.live.records_late.fetch_add(late, Ordering::Relaxed);
        if let Some(newest) = self.buffer.iter().map(|event| event.time).max() {
            self.live.newest.fetch_max(newest, Ordering::Relaxed);
        }
    }
}

/// Says when a partition has to wait for the rest of the job.
///
/// A partition may always be read while everything before its own watermark is worked off: then
/// only more input can move the job on. So the one that is farthest behind is never held up by
/// the others, and there is no deadlock.
struct Throttle {
    limits: RunAhead,
    shared: Rc<Shared>,
    /// What all sources have promised.
    sources: ProbeHandle<Moment>,
    /// Up to where the job is worked off, as last seen.
    worked_off: Frontier,
    slowest: Frontier,
    /// Events sent so far.
    sent: u64,
    /// Watermarks of this source, each with the events sent before it; the worked off ones are
    /// dropped.
    steps: VecDeque<(Time, u64)>,
    done: u64,
    /// The last turn was given up for the store's sake, so this one is not.
    paused: bool,
}

impl Throttle {
    fn new(job: &Job<'_>, sources: ProbeHandle<Moment>) -> Self {
        Throttle {
            limits: job.config().run_ahead,
            shared: Rc::clone(&job.shared),
            sources,
            worked_off: Frontier::START,
            slowest: Frontier::START,
            sent: 0,
            steps: VecDeque::new(),
            done: 0,
            paused: false,
        }
    }

    /// How long to pause before the next stretch, so that the store's compactions catch up with
    /// its writes before it has to hold up the worker. The nearer it is to that, the longer; but
    /// between two pauses there is a stretch, so that a job never stands still for good.
    fn pause_for_writes(&mut self) -> Option<Duration> {
        if std::mem::take(&mut self.paused) {
            return None;
        }
        let over = self.shared.store.write_pressure().level() - SLOW_DOWN_FROM;
        self.paused = over > 0.0;
        self.paused.then(|| LONGEST_PAUSE.mul_f64(over / (1.0 - SLOW_DOWN_FROM)))
    }

    /// The source has moved to this watermark.
    fn stepped(&mut self, watermark: Time) {
        self.steps.push_back((watermark, self.sent));
    }

    /// Looks how far everybody has come.
    fn look(&mut self) {
        let worked_off = match self.shared.keyed_operators.get() {
            0 => &self.shared.sunk,
            _ => &self.shared.worked_off,
        };
        self.worked_off = frontier_of(worked_off);
        self.slowest = frontier_of(&self.sources);
        if let Frontier::At(time) = self.worked_off {
            self.shared.live.frontier.store(time, Ordering::Relaxed);
        }
        while let Some(&(watermark, sent)) = self.steps.front()
            && Frontier::At(watermark) <= self.worked_off
        {
            self.done = sent;
            self.steps.pop_front();
        }
    }

    /// Whether a partition with this watermark may be read now.
    fn may_read(&self, own: Time) -> bool {
        if self.worked_off >= Frontier::At(own) {
            return true;
        }
        let too_far_in_time = match (self.limits.event_time, self.slowest) {
            (Some(limit), Frontier::At(slowest)) => own.saturating_sub(slowest) > limit,
            _ => false,
        };
        !too_far_in_time
            && self.sent - self.done <= self.limits.events
            && self.shared.live.stash_bytes.load(Ordering::Relaxed) <= self.limits.stash_bytes
    }
}

fn frontier_of(probe: &ProbeHandle<Moment>) -> Frontier {
    probe.with_frontier(|frontier| Moment::of_frontier(frontier).1)
}
