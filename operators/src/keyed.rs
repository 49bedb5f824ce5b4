//! A keyed operator: stash, release, read set, one batched read, apply in order, one commit.

use crate::event::{Event, Time};
use crate::frontier::Frontier;
use crate::logic::{Context, Fired, Logic};
use crate::policy::{BatchPolicy, Chunker, split_by_events};
use crate::stash::Stash;
use std::rc::Rc;
use tidegate_state::batch::ChangeBatch;
use tidegate_state::error::StateError;
use tidegate_state::readers::Waker;
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::StateTable;

/// Outputs are handed on in pieces of this many events.
const OUTPUT_EVENTS: usize = 512;

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

/// How far an operator has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Everything that the frontier is past has been released.
    Done,
    /// Reader threads are at work for a release. They call the waker; then it goes on.
    Waiting,
}

type KeyedEvent<L> = Event<(<L as Logic>::Key, <L as Logic>::Input)>;

/// A release that is under way, and may be waiting for reads.
#[derive(Debug, Clone, Copy)]
struct Release {
    /// The least time of its events.
    earliest: Time,
    events: usize,
    /// The chunk that is being worked off.
    chunk: usize,
    /// Whether that chunk's rows have been declared, and their reads started.
    declared: bool,
}

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
    /// The release that is under way.
    release: Option<Release>,
    /// Everything below it has been released.
    frontier: Frontier,
    /// How far the release under way goes.
    piece: Frontier,
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
            release: None,
            frontier: Frontier::START,
            piece: Frontier::START,
            reads: Vec::new(),
            outputs: Vec::new(),
            changes: ChangeBatch::new(),
            statistics: OperatorStatistics::default(),
        }
    }

    /// Takes an event into the stash, or gives it back where it came too late.
    #[inline]
    pub fn accept(&mut self, event: KeyedEvent<L>) -> Option<KeyedEvent<L>> {
        match self.accept_if_in_time(event) {
            Ok(event) => {
                self.stash.push(event);
                None
            }
            Err(event) => Some(event),
        }
    }

    #[inline]
    fn accept_if_in_time(&mut self, event: KeyedEvent<L>) -> Result<KeyedEvent<L>, KeyedEvent<L>> {
        if let Some(watermark) = event.rank.missed_watermark()
            && self.logic.is_too_late(&event, watermark)
        {
            self.statistics.events_late += 1;
            return Err(event);
        }
        self.statistics.events_stashed += 1;
        Ok(event)
    }

    /// Takes events, shows those that came too late to `refuse`, and lets the rows of the others
    /// be read ahead where that is worth it.
    ///
    /// # Errors
    /// A [`StateError`] where rows cannot be read ahead.
    pub fn accept_all(
        &mut self,
        events: impl Iterator<Item = KeyedEvent<L>>,
        mut refuse: impl FnMut(KeyedEvent<L>),
    ) -> Result<(), StateError> {
        if !self.begin_ahead()? {
            events.filter_map(|event| self.accept(event)).for_each(refuse);
            return Ok(());
        }
        for event in events {
            match self.accept_if_in_time(event) {
                Ok(event) => {
                    self.logic.declare(&event);
                    self.stash.push(event);
                }
                Err(event) => refuse(event),
            }
        }
        self.logic.for_each_table(&mut |table| table.end_ahead(&self.store))
    }

    /// Has the tables take declarations for releases to come, if any of them reads ahead.
    fn begin_ahead(&mut self) -> Result<bool, StateError> {
        let mut ahead = false;
        self.logic.for_each_table(&mut |table| {
            ahead |= table.reads_ahead();
            Ok(())
        })?;
        if !ahead {
            return Ok(false);
        }
        // What is read from here on must see what was changed so far.
        self.store.commit(&mut self.changes)?;
        self.logic.for_each_table(&mut |table| {
            table.begin_ahead();
            Ok(())
        })?;
        Ok(true)
    }

    /// Declares the rows of a chunk that is not due yet, so that they are read while the chunk
    /// before it is applied.
    fn declare_next_chunk(&mut self, chunk: usize) -> Result<(), StateError> {
        if self.chunks.get(chunk).is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let events = std::mem::take(&mut self.chunks[chunk]);
        if self.begin_ahead()? {
            for event in &events {
                self.logic.declare(event);
            }
            self.logic.for_each_table(&mut |table| table.end_ahead(&self.store))?;
        }
        self.chunks[chunk] = events;
        Ok(())
    }

    /// Tells the tables whom to call when reads by other threads are done.
    pub fn set_waker(&mut self, waker: &Waker) {
        // The visitor never fails.
        let _ = self.logic.for_each_table(&mut |table| {
            table.set_waker(waker.clone());
            Ok(())
        });
    }

    /// Releases what the frontier is past, and hands on the results in pieces. `emit` takes the
    /// events out of the vector it is shown. Where reads are under way in other threads, it
    /// comes back without waiting for them.
    ///
    /// # Errors
    /// The first [`StateError`]; the operator is of no use after it.
    pub fn advance(
        &mut self,
        frontier: Frontier,
        mut emit: impl FnMut(&mut Vec<Event<L::Output>>),
    ) -> Result<Progress, StateError> {
        self.statistics.largest_stash = self.statistics.largest_stash.max(self.stash.len() as u64);
        loop {
            if self.release.is_none() {
                // What has become due while a release waited is the next release.
                self.piece = self.logic.begin(frontier, &self.store)?;
                self.begin_release(self.piece);
            }
            if self.release.is_some() {
                if self.strategy == ReadStrategy::PerRecord {
                    self.release_by_record(&mut emit)?;
                } else if self.release_by_chunk(&mut emit)? == Progress::Waiting {
                    return Ok(Progress::Waiting);
                }
                self.release = None;
                if !self.outputs.is_empty() {
                    emit(&mut self.outputs);
                }
            }
            self.frontier = self.piece;
            self.fire(&mut emit)?;
            if self.frontier == frontier {
                return Ok(Progress::Done);
            }
        }
    }

    /// Writes every change that is not written yet.
    ///
    /// # Errors
    /// [`StateError`] where a row cannot be written.
    pub fn flush(&mut self) -> Result<(), StateError> {
        self.store.commit(&mut self.changes)?;
        self.logic.for_each_table(&mut |table| table.flush(&self.store))
    }

    /// Does what is due without an event.
    fn fire(&mut self, emit: &mut impl FnMut(&mut Vec<Event<L::Output>>)) -> Result<(), StateError> {
        loop {
            let mut context = Context { store: &self.store, outputs: &mut self.outputs };
            let fired = self.logic.fire(self.frontier, &mut context)?;
            if !self.outputs.is_empty() {
                emit(&mut self.outputs);
            }
            match fired {
                Fired::Nothing => return Ok(()),
                Fired::Part => {}
                Fired::Settle => {
                    self.collect()?;
                    self.store.commit(&mut self.changes)?;
                }
            }
        }
    }

    /// Takes what is due out of the stash, if there is anything.
    fn begin_release(&mut self, frontier: Frontier) {
        self.stash.release(frontier, &mut self.due);
        let Some(first) = self.due.first() else { return };
        let (earliest, events) = (first.time, self.due.len());
        self.release = Some(Release { earliest, events, chunk: 0, declared: false });
        self.statistics.events_released += events as u64;
        self.statistics.releases += 1;
        self.statistics.largest_release = self.statistics.largest_release.max(events as u64);
        if self.strategy == ReadStrategy::PerRecord {
            return;
        }
        let policy = self.policy_within_memory();
        if self.store.cache_budget().keeps_values() {
            split_by_events(policy, &mut self.due, &mut self.chunks);
        } else {
            self.chunker.split_by_keys(policy, self.store.groups(), &mut self.due, &mut self.chunks);
        }
    }

    /// The policy, made stricter where the rows of its chunks would not fit into memory.
    fn policy_within_memory(&mut self) -> BatchPolicy {
        let mut keys_per_chunk = self.policy.keys_per_chunk;
        // The visitor never fails.
        let _ = self.logic.for_each_table(&mut |table| {
            keys_per_chunk = keys_per_chunk.min(table.rows_at_once());
            Ok(())
        });
        BatchPolicy { keys_per_chunk }
    }

    /// The earliest time at which the operator may still have a result; none where it waits for
    /// nothing.
    pub fn earliest_result(&self) -> Option<Time> {
        let under_way = self.release.map(|release| release.earliest);
        let behind = match self.frontier {
            Frontier::At(frontier) if self.holds_back() => {
                Some(frontier.saturating_sub(self.logic.allowed_lateness()))
            }
            _ => None,
        };
        let waiting = under_way.into_iter().chain(self.stash.earliest());
        waiting.chain(self.logic.earliest_due()).chain(behind).min()
    }

    /// Whether results may arise behind the frontier.
    pub fn holds_back(&self) -> bool {
        self.logic.allowed_lateness() > 0
    }

    /// Events that wait in the stash, or in a release that waits.
    pub fn stashed(&self) -> usize {
        self.stash.len() + self.release.map_or(0, |release| release.events)
    }

    /// What the operator has done so far.
    pub fn statistics(&self) -> OperatorStatistics {
        self.statistics
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
            self.logic.for_each_table(&mut |table| table.load(&self.store))?;
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
    ) -> Result<Progress, StateError> {
        while let Some(release) = &mut self.release
            && release.chunk < self.chunks.len()
        {
            let (chunk, declared) = (release.chunk, std::mem::replace(&mut release.declared, true));
            let mut events = std::mem::take(&mut self.chunks[chunk]);
            let loaded = match declared {
                _ if events.is_empty() => true,
                false => {
                    self.statistics.chunks += 1;
                    self.reads.extend(events.iter().map(|event| self.logic.declare(event)));
                    let loaded = self.load(|table, store| table.start_load(store))?;
                    self.declare_next_chunk(chunk + 1)?;
                    loaded
                }
                true => self.load(|table, store| table.continue_load(store))?,
            };
            if !loaded {
                self.chunks[chunk] = events;
                return Ok(Progress::Waiting);
            }
            self.apply_chunk(&mut events, emit)?;
            self.chunks[chunk] = events;
            if let Some(release) = &mut self.release {
                (release.chunk, release.declared) = (chunk + 1, false);
            }
        }
        self.store.commit(&mut self.changes)?;
        Ok(Progress::Done)
    }

    fn apply_chunk(
        &mut self,
        events: &mut Vec<KeyedEvent<L>>,
        emit: &mut impl FnMut(&mut Vec<Event<L::Output>>),
    ) -> Result<(), StateError> {
        if events.is_empty() {
            return Ok(());
        }
        let mut reads = std::mem::take(&mut self.reads);
        for (event, reads) in events.drain(..).zip(reads.drain(..)) {
            self.apply(event, reads, emit)?;
        }
        self.reads = reads;
        self.collect()?;
        // A large release is committed in pieces, so that memory stays bounded.
        if self.changes.total_bytes() > self.store.cache_budget().bytes_at_once() {
            self.store.commit(&mut self.changes)?;
        }
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

    /// Starts to load the tables, or goes on with it; tells whether all of them are loaded.
    fn load(
        &mut self,
        step: impl Fn(&mut dyn StateTable, &Store) -> Result<bool, StateError>,
    ) -> Result<bool, StateError> {
        let mut loaded = true;
        self.logic.for_each_table(&mut |table| {
            loaded &= step(table, &self.store)?;
            Ok(())
        })?;
        Ok(loaded)
    }

    fn collect(&mut self) -> Result<(), StateError> {
        self.logic.for_each_table(&mut |table| {
            table.collect_changes(&self.store, &mut self.changes)?;
            table.end_release(&self.store)
        })
    }
}
