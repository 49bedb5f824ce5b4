//! The view: the values that a release reads, the changes made on top of them, and what of both
//! stays in memory for the next release.
//!
//! A table holds decoded values of one state, one cell for each row. A release goes through it
//! in four steps:
//!
//! 1. **declare**: [`Table::request`] for each row that the release's records will need, which
//!    gives a [`Slot`]; the same row gives the same slot;
//! 2. **load**: [`Table::load`] reads all rows that were declared and are not at hand, in the
//!    way the [strategy](crate::strategy) says;
//! 3. **apply**: records read and change cells through their slots, in event-time order. As a
//!    row has one cell, a record sees what the record before it left, deletions included;
//! 4. **settle**: [`Table::collect_changes`] and [`Table::end_release`].
//!
//! What happens in the last step depends on the store's [`CacheBudget`]. Without one, every
//! change is collected for the release's commit, and the table forgets all (write-through).
//! With one, cells stay: a changed value is written only when its cell is given up or the table
//! is flushed, in sorted batches (write-behind). Durability comes from checkpoints alone, and
//! those flush. A value is decoded once and encoded once for each stay in memory; a row that is
//! at hand does not touch the store.
//!
//! **One truth.** While a row has a cell, the cell is what the row is. Nothing reads such a row
//! from the store, except after a flush.

mod budget;
mod cells;

pub use budget::CacheBudget;

use crate::arena::KeyArena;
use crate::backend::{StateId, StateName};
use crate::batch::ChangeBatch;
use crate::codec::{self, CodecError, StateValue};
use crate::error::{StateError, hex};
use crate::row::Layout;
use crate::store::Store;
use crate::strategy::{ReadCall, ReadPlanner, ReadStrategy};
use cells::{Cell, Cells, Status};
use std::rc::Rc;

/// A cell of a table: where a declared row's value is. Good until the release ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(u32);

/// What all tables can do for a driver that does not know their types.
pub trait StateTable {
    /// Reads every row that was declared and is not at hand.
    ///
    /// # Errors
    /// [`StateError`] where a read or a value's decoding fails; nothing is known of the rows then.
    fn load(&mut self, store: &Store) -> Result<(), StateError>;

    /// Adds the rows that changed to a batch, and takes them for written; nothing where changes
    /// are written behind.
    ///
    /// # Errors
    /// [`StateError::Value`] where a value cannot be encoded.
    fn collect_changes(&mut self, store: &Store, batch: &mut ChangeBatch) -> Result<(), StateError>;

    /// Ends the release: slots given out before are void, and rows beyond the budget are given
    /// up, written first where they changed.
    ///
    /// # Errors
    /// [`StateError`] where a row cannot be written.
    fn end_release(&mut self, store: &Store) -> Result<(), StateError>;

    /// Writes every row that changed and is not written yet.
    ///
    /// # Errors
    /// [`StateError`] where a row cannot be written.
    fn flush(&mut self, store: &Store) -> Result<(), StateError>;

    /// How often reads went by gets, and how often by a batched read.
    fn calls_chosen(&self) -> (u64, u64);
}

/// The rows of one state, as a release sees them.
pub struct Table<L: Layout, V> {
    state: StateId,
    cells: Cells<L::Row, V>,
    /// Declared in this release, and not read yet.
    wanted: Vec<u32>,
    /// Cells that changed since they were last written. A cell that was given up since then, or
    /// taken by another row, may still be in the list; its status tells.
    changed: Vec<u32>,
    planner: ReadPlanner,
    budget: Rc<CacheBudget>,
    keeps_values: bool,
    /// Whether the store may hold rows that are not at hand. It does not while nothing was ever
    /// written to it; then a row that is not at hand is known to be absent.
    may_be_stored: bool,
    release: u32,
    asked: u64,
    distinct: u64,
    /// Bytes that a row and its value own beside their cell, on average.
    owned_bytes: f64,
    changes_seen: u32,
    accounted_bytes: usize,
    unsorted: KeyArena,
    sorted: KeyArena,
    order: Vec<(u64, u32)>,
    scratch: Vec<u8>,
    victims: Vec<u32>,
    written: ChangeBatch,
}

/// One change in so many is encoded to learn how large values are.
const MEASURE_EVERY: u32 = 64;
/// Weight of a new measurement in the running mean.
const MEASURE_WEIGHT: f64 = 1.0 / 128.0;
/// When rows are given up, so many at least, so that they are written in batches.
const LEAST_VICTIMS_SHARE: usize = 32;
/// A flush writes batches of about this size.
const FLUSH_BYTES: usize = 4 << 20;

impl<L: Layout, V: StateValue> Table<L, V> {
    /// The table of a state, which is opened in the store.
    ///
    /// # Errors
    /// Those of [`Store::open_state`] and of a first look at the state.
    pub fn open(store: &Store, name: &StateName, strategy: ReadStrategy) -> Result<Self, StateError> {
        let state = store.open_state(name)?;
        let budget = store.cache_budget();
        budget.add_table();
        // The baseline is a get and a put for each record, and stays that.
        let keeps_values = budget.keeps_values() && strategy != ReadStrategy::PerRecord;
        Ok(Table {
            state,
            cells: Cells::new(),
            wanted: Vec::new(),
            changed: Vec::new(),
            planner: ReadPlanner::new(strategy),
            keeps_values,
            budget,
            may_be_stored: !keeps_values || !store.is_empty(state)?,
            release: 1,
            asked: 0,
            distinct: 0,
            owned_bytes: 0.0,
            changes_seen: 0,
            accounted_bytes: 0,
            unsorted: KeyArena::new(),
            sorted: KeyArena::new(),
            order: Vec::new(),
            scratch: Vec::new(),
            victims: Vec::new(),
            written: ChangeBatch::new(),
        })
    }

    /// The state's number in its store.
    pub fn state(&self) -> StateId {
        self.state
    }

    /// Declares that the release will need a row.
    #[inline]
    pub fn request(&mut self, row: &L::Row) -> Slot {
        self.asked += 1;
        let slot = self.find_or_want(row);
        let cell = self.cells.get_mut(slot.0);
        self.distinct += u64::from(cell.release != self.release);
        cell.release = self.release;
        slot
    }

    #[inline]
    fn find_or_want(&mut self, row: &L::Row) -> Slot {
        let (slot, new) = self.cells.find_or_insert(row);
        if new {
            if self.may_be_stored {
                self.wanted.push(slot);
            } else {
                self.cells.get_mut(slot).status = Status::Clean;
            }
        }
        self.cells.get_mut(slot).recent = true;
        Slot(slot)
    }

    /// The slot of a row that was declared or not; what is not at hand is read with a get of
    /// its own, and counted.
    ///
    /// # Errors
    /// [`StateError`] where the read fails.
    pub fn fetch(&mut self, row: &L::Row, store: &Store) -> Result<Slot, StateError> {
        let slot = self.find_or_want(row);
        if self.cells.get(slot.0).status == Status::Wanted {
            store.count(self.state, |statistics| {
                statistics.keys_asked += 1;
                statistics.keys_distinct += 1;
                statistics.undeclared_reads += 1;
            });
            self.wanted.retain(|&wanted| wanted != slot.0);
            self.read_one(slot.0, store)?;
        }
        Ok(slot)
    }

    /// The value in a slot, if the row has one.
    #[inline]
    pub fn get(&self, slot: Slot) -> Option<&V> {
        let cell = self.cells.get(slot.0);
        debug_assert!(cell.status != Status::Wanted, "a slot is read before it is loaded");
        cell.value.as_ref()
    }

    /// The value in a slot, to be changed, set or taken away.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> &mut Option<V> {
        let cell = self.cells.get_mut(slot.0);
        debug_assert!(cell.status != Status::Wanted, "a slot is changed before it is loaded");
        if cell.status != Status::Changed {
            cell.status = Status::Changed;
            self.changed.push(slot.0);
        }
        &mut cell.value
    }

    /// Rows that are in the table.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether no row is in the table.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read_one(&mut self, slot: u32, store: &Store) -> Result<(), StateError> {
        let cell = self.cells.get_mut(slot);
        self.scratch.clear();
        L::encode(&cell.row, store.groups(), &mut self.scratch);
        let mut decoded = Ok(None);
        let mut value_bytes = 0;
        let (found, took) = store.get(self.state, &self.scratch, &mut |bytes| {
            value_bytes = bytes.len();
            decoded = codec::decode(bytes).map(Some);
        })?;
        self.planner.measured(ReadCall::Gets, 1, took);
        cell.value = decoded.map_err(|source| value_error(store, self.state, &self.scratch, source))?;
        cell.stored = found;
        cell.status = Status::Clean;
        if found {
            self.measured(self.scratch.len(), value_bytes);
        }
        Ok(())
    }

    fn read_batch(&mut self, store: &Store) -> Result<(), StateError> {
        self.sort_wanted(store);
        let (cells, wanted, order) = (&mut self.cells, &self.wanted, &self.order);
        let mut failed: Option<(usize, CodecError)> = None;
        let (mut found, mut value_bytes) = (0, 0);
        let took = store.multi_get(self.state, &self.sorted, &mut |index, bytes| {
            let cell = cells.get_mut(wanted[order[index].1 as usize]);
            cell.stored = bytes.is_some();
            cell.status = Status::Clean;
            found += usize::from(bytes.is_some());
            value_bytes += bytes.map_or(0, <[u8]>::len);
            match bytes.map(codec::decode).transpose() {
                Ok(value) => cell.value = value,
                Err(error) => {
                    failed.get_or_insert((index, error));
                }
            }
        })?;
        self.planner.measured(ReadCall::MultiGet, self.wanted.len(), took);
        if let Some(mean) = value_bytes.checked_div(found) {
            self.measured(self.sorted.total_bytes() / self.wanted.len(), mean);
        }
        match failed {
            Some((index, source)) => Err(value_error(store, self.state, self.sorted.get(index), source)),
            None => Ok(()),
        }
    }

    /// Encodes the wanted rows, sorted, into `self.sorted`; `self.order` says which is which.
    fn sort_wanted(&mut self, store: &Store) {
        self.unsorted.clear();
        for &slot in &self.wanted {
            let row = &self.cells.get(slot).row;
            self.unsorted.push_with(|bytes| L::encode(row, store.groups(), bytes));
        }
        self.unsorted.sorted_order(&mut self.order);
        self.sorted.clear();
        for &(_, index) in &self.order {
            self.sorted.push(self.unsorted.get(index as usize));
        }
    }

    /// Adds a cell's change to a batch, if there is one, and takes it for written.
    fn write_cell(
        state: StateId,
        cell: &mut Cell<L::Row, V>,
        store: &Store,
        scratch: &mut Vec<u8>,
        batch: &mut ChangeBatch,
    ) -> Result<(), StateError> {
        if cell.status != Status::Changed {
            return Ok(());
        }
        scratch.clear();
        L::encode(&cell.row, store.groups(), scratch);
        match &cell.value {
            Some(value) => batch
                .put_with(state, scratch, |bytes| codec::encode_into(value, bytes))
                .map_err(|source| value_error(store, state, scratch, source))?,
            None if cell.stored => batch.delete(state, scratch),
            None => {}
        }
        cell.stored = cell.value.is_some();
        cell.status = Status::Clean;
        Ok(())
    }

    /// Learns how much rows and values own beside their cells. Rows without a value say nothing
    /// here: they are about to get one, most often.
    fn measured(&mut self, row_bytes: usize, value_bytes: usize) {
        // What fits into the cell is in the cell; the rest is on the heap, about as long as it is
        // when encoded.
        let owned = row_bytes.saturating_sub(size_of::<L::Row>() + 4)
            + value_bytes.saturating_sub(size_of::<Option<V>>());
        let weight = if self.owned_bytes == 0.0 { 1.0 } else { MEASURE_WEIGHT };
        self.owned_bytes += weight * (owned as f64 - self.owned_bytes);
    }

    /// Measures a row that changed, one in so many.
    fn measure_changes(&mut self, store: &Store) -> Result<(), StateError> {
        let since = self.changed.len() as u32;
        if since < self.changes_seen + MEASURE_EVERY {
            return Ok(());
        }
        for place in (self.changes_seen..since).step_by(MEASURE_EVERY as usize) {
            let cell = self.cells.get(self.changed[place as usize]);
            let Some(value) = &cell.value else { continue };
            self.scratch.clear();
            L::encode(&cell.row, store.groups(), &mut self.scratch);
            let row_bytes = self.scratch.len();
            codec::encode_into(value, &mut self.scratch)
                .map_err(|source| value_error(store, self.state, &self.scratch[..row_bytes], source))?;
            let value_bytes = self.scratch.len() - row_bytes;
            self.measured(row_bytes, value_bytes);
        }
        self.changes_seen = since;
        Ok(())
    }

    fn row_bytes(&self) -> usize {
        Cells::<L::Row, V>::cell_bytes() + self.owned_bytes as usize
    }

    fn account(&mut self) {
        let bytes = self.cells.len() * self.row_bytes();
        self.budget.account(self.accounted_bytes, bytes);
        self.accounted_bytes = bytes;
    }

    /// Gives up rows that are beyond the budget.
    fn shrink(&mut self, store: &Store) -> Result<(), StateError> {
        self.account();
        let excess = self.budget.excess_rows(self.cells.len(), self.row_bytes());
        if excess == 0 {
            return Ok(());
        }
        let count = excess.max(self.cells.len() / LEAST_VICTIMS_SHARE);
        self.victims.clear();
        self.cells.pick_victims(count, &mut self.victims);
        for &slot in &self.victims {
            let cell = self.cells.get_mut(slot);
            Self::write_cell(self.state, cell, store, &mut self.scratch, &mut self.written)?;
        }
        // Written before they are forgotten: whoever asks for them next reads them.
        self.may_be_stored |= !self.written.is_empty();
        store.commit(&mut self.written)?;
        self.victims.iter().for_each(|&slot| self.cells.remove(slot));
        let given_up = self.victims.len() as u64;
        store.count(self.state, |statistics| statistics.rows_given_up += given_up);
        if self.changed.len() > 2 * self.cells.len() + 1024 {
            let cells = &self.cells;
            self.changed.retain(|&slot| cells.get(slot).status == Status::Changed);
            self.changed.sort_unstable();
            self.changed.dedup();
            self.changes_seen = self.changed.len() as u32;
        }
        self.account();
        Ok(())
    }
}

impl<L: Layout, V: StateValue> StateTable for Table<L, V> {
    fn load(&mut self, store: &Store) -> Result<(), StateError> {
        if self.asked > 0 {
            let (asked, distinct, wanted) = (self.asked, self.distinct, self.wanted.len() as u64);
            store.count(self.state, |statistics| {
                statistics.keys_asked += asked;
                statistics.keys_distinct += distinct;
                statistics.keys_at_hand += distinct.saturating_sub(wanted);
            });
            (self.asked, self.distinct) = (0, 0);
        }
        if !self.wanted.is_empty() {
            match self.planner.choose(self.wanted.len()) {
                ReadCall::Gets => {
                    for index in 0..self.wanted.len() {
                        self.read_one(self.wanted[index], store)?;
                    }
                }
                ReadCall::MultiGet => self.read_batch(store)?,
            }
            self.wanted.clear();
        }
        Ok(())
    }

    fn collect_changes(&mut self, store: &Store, batch: &mut ChangeBatch) -> Result<(), StateError> {
        if self.keeps_values {
            return self.measure_changes(store);
        }
        for &slot in &self.changed {
            let cell = self.cells.get_mut(slot);
            Self::write_cell(self.state, cell, store, &mut self.scratch, batch)?;
        }
        self.changed.clear();
        Ok(())
    }

    fn end_release(&mut self, store: &Store) -> Result<(), StateError> {
        // 0 is the release of cells that nobody asked for; after so many releases, an old number
        // could at worst be taken for the new one in the statistics.
        self.release = self.release.checked_add(1).unwrap_or(1);
        if self.keeps_values {
            return self.shrink(store);
        }
        debug_assert!(self.changed.is_empty(), "changes are collected before a release ends");
        self.cells.clear();
        self.wanted.clear();
        Ok(())
    }

    fn flush(&mut self, store: &Store) -> Result<(), StateError> {
        let changed = std::mem::take(&mut self.changed);
        for &slot in &changed {
            let cell = self.cells.get_mut(slot);
            Self::write_cell(self.state, cell, store, &mut self.scratch, &mut self.written)?;
            if self.written.total_bytes() > FLUSH_BYTES {
                self.may_be_stored = true;
                store.commit(&mut self.written)?;
            }
        }
        self.may_be_stored |= !self.written.is_empty();
        store.commit(&mut self.written)?;
        self.changed = changed;
        self.changed.clear();
        self.changes_seen = 0;
        Ok(())
    }

    fn calls_chosen(&self) -> (u64, u64) {
        self.planner.chosen()
    }
}

impl<L: Layout, V> Drop for Table<L, V> {
    fn drop(&mut self) {
        self.budget.account(self.accounted_bytes, 0);
    }
}

fn value_error(store: &Store, state: StateId, key: &[u8], source: CodecError) -> StateError {
    StateError::Value { state: store.state_name(state), key: hex(key), source }
}
