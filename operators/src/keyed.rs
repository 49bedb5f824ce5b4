//! A keyed operator: stash, release, read set, one batched read, apply in order, one commit.

use crate::event::{Event, Time};
use crate::frontier::Frontier;
use crate::logic::{Context, Logic};
use crate::policy::{BatchPolicy, Chunker, split_by_events};
use crate::stash::Stash;
use std::rc::Rc;
use tidegate_state::batch::ChangeBatch;
use tidegate_state::error::StateError;
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;

/// Outputs are handed on in pieces of this many events.
const OUTPUT_EVENTS: usize = 512;
/// A release whose changes grow beyond this is committed in several pieces, so that memory stays
/// bounded.
const COMMIT_BYTES: usize = 64 << 20;

/// What an operator has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct OperatorStatistics {
    /// Events taken into the stash.
    pub events_stashed: u64,
    /// Events refused because they came too late.
    pub events_late: u64,
    /// Releases that had at least one event.
    pub releases: u64,
    /// Events released.
    pub events_released: u64,
    /// Chunks that releases were cut into.
    pub chunks: u64,
    /// The most events of one release.
    pub largest_release: u64,
    /// The most events that waited in the stash at once.
    pub largest_stash: u64,
}

impl std::ops::AddAssign for OperatorStatistics {
    /// Sums, and for the two maxima the larger one.
    fn add_assign(&mut self, other: Self) {
        self.events_stashed += other.events_stashed;
        self.events_late += other.events_late;
        self.releases += other.releases;
        self.events_released += other.events_released;
        self.chunks += other.chunks;
        self.largest_release = self.largest_release.max(other.largest_release);
        self.largest_stash = self.largest_stash.max(other.largest_stash);
    }
}

type KeyedEvent<L> = Event<(<L as Logic>::Key, <L as Logic>::Input)>;

/// An operator with its logic, its stash and its access to the store. It knows frontiers, and
/// nothing of who reports them.
pub struct Keyed<L: Logic> {
    logic: L,
    store: Rc<Store>,
    strategy: ReadStrategy,
    policy: BatchPolicy,
    stash: Stash<(L::Key, L::Input)>,
    due: Vec<KeyedEvent<L>>,
    chunks: Vec<Vec<KeyedEvent<L>>>,
    chunker: Chunker,
    reads: Vec<L::Reads>,
    outputs: Vec<Event<L::Output>>,
    changes: ChangeBatch,
    statistics: OperatorStatistics,
}

impl<L: Logic> Keyed<L> {
    /// An operator around a logic whose tables are opened in `store`.
    pub fn new(logic: L, store: Rc<Store>, strategy: ReadStrategy, policy: BatchPolicy) -> Self {
        Keyed {
            logic,
            store,
            strategy,
            policy,
            stash: Stash::new(),
            due: Vec::new(),
            chunks: Vec::new(),
            chunker: Chunker::default(),
            reads: Vec::new(),
            outputs: Vec::new(),
            changes: ChangeBatch::new(),
            statistics: OperatorStatistics::default(),
        }
    }

    /// Takes an event into the stash, or gives it back where it came too late.
    #[inline]
    pub fn accept(&mut self, event: KeyedEvent<L>) -> Option<KeyedEvent<L>> {
        if let Some(watermark) = event.rank.missed_watermark()
            && self.logic.is_too_late(event.time, watermark)
        {
            self.statistics.events_late += 1;
            return Some(event);
        }
        self.statistics.events_stashed += 1;
        self.stash.push(event);
        None
    }

    /// Releases what the frontier is past, and hands on the results in pieces. `emit` takes the
    /// events out of the vector it is shown.
    ///
    /// # Errors
    /// The first [`StateError`]; the operator is of no use after it.
    pub fn advance(
        &mut self,
        frontier: Frontier,
        mut emit: impl FnMut(&mut Vec<Event<L::Output>>),
    ) -> Result<(), StateError> {
        self.statistics.largest_stash = self.statistics.largest_stash.max(self.stash.len() as u64);
        self.stash.release(frontier, &mut self.due);
        if self.due.is_empty() {
            return Ok(());
        }
        let released = self.due.len() as u64;
        self.statistics.events_released += released;
        self.statistics.releases += 1;
        self.statistics.largest_release = self.statistics.largest_release.max(released);
        if self.strategy == ReadStrategy::PerRecord {
            self.release_by_record(&mut emit)?;
        } else {
            self.release_by_chunk(&mut emit)?;
        }
        if !self.outputs.is_empty() {
            emit(&mut self.outputs);
        }
        Ok(())
    }

    /// The earliest time at which the operator may still have a result; none where it waits for
    /// nothing.
    pub fn earliest_result(&self) -> Option<Time> {
        self.stash.earliest()
    }

    /// Events that wait in the stash.
    pub fn stashed(&self) -> usize {
        self.stash.len()
    }

    /// What the operator has done so far.
    pub fn statistics(&self) -> OperatorStatistics {
        self.statistics
    }

    /// How often the reads of its states went by gets, and how often by a batched read.
    pub fn calls_chosen(&mut self) -> (u64, u64) {
        let mut sum = (0, 0);
        // The visitor never fails.
        let _ = self.logic.for_each_table(&mut |table| {
            let (gets, batched) = table.calls_chosen();
            sum = (sum.0 + gets, sum.1 + batched);
            Ok(())
        });
        sum
    }

    /// One event after the other: a get, the logic, a put.
    fn release_by_record(
        &mut self,
        emit: &mut impl FnMut(&mut Vec<Event<L::Output>>),
    ) -> Result<(), StateError> {
        let mut due = std::mem::take(&mut self.due);
        for event in due.drain(..) {
            self.statistics.chunks += 1;
            let reads = self.logic.declare(&event);
            self.load()?;
            self.apply(event, reads, emit)?;
            self.collect()?;
            self.store.commit(&mut self.changes)?;
        }
        self.due = due;
        Ok(())
    }

    /// All reads of a chunk at once; one commit for the release.
    fn release_by_chunk(
        &mut self,
        emit: &mut impl FnMut(&mut Vec<Event<L::Output>>),
    ) -> Result<(), StateError> {
        let mut chunks = std::mem::take(&mut self.chunks);
        if self.store.cache_budget().keeps_values() {
            split_by_events(self.policy, &mut self.due, &mut chunks);
        } else {
            self.chunker.split_by_keys(self.policy, self.store.groups(), &mut self.due, &mut chunks);
        }
        let mut reads = std::mem::take(&mut self.reads);
        for chunk in &mut chunks {
            if chunk.is_empty() {
                continue;
            }
            self.statistics.chunks += 1;
            reads.extend(chunk.iter().map(|event| self.logic.declare(event)));
            self.load()?;
            for (event, reads) in chunk.drain(..).zip(reads.drain(..)) {
                self.apply(event, reads, emit)?;
            }
            self.collect()?;
            if self.changes.total_bytes() > COMMIT_BYTES {
                self.store.commit(&mut self.changes)?;
            }
        }
        self.store.commit(&mut self.changes)?;
        self.reads = reads;
        self.chunks = chunks;
        Ok(())
    }

    #[inline]
    fn apply(
        &mut self,
        event: KeyedEvent<L>,
        reads: L::Reads,
        emit: &mut impl FnMut(&mut Vec<Event<L::Output>>),
    ) -> Result<(), StateError> {
        if self.outputs.capacity() == 0 {
            // The last piece was taken with its memory; growing step by step would cost more.
            self.outputs.reserve_exact(OUTPUT_EVENTS);
        }
        let mut context = Context { store: &self.store, outputs: &mut self.outputs };
        self.logic.apply(event, reads, &mut context)?;
        if self.outputs.len() >= OUTPUT_EVENTS {
            emit(&mut self.outputs);
        }
        Ok(())
    }

    fn load(&mut self) -> Result<(), StateError> {
        self.logic.for_each_table(&mut |table| table.load(&self.store))
    }

    fn collect(&mut self) -> Result<(), StateError> {
        self.logic.for_each_table(&mut |table| {
            table.collect_changes(&self.store, &mut self.changes)?;
            table.end_release(&self.store)
        })
    }
}
