//! The view: the values that a release reads, and the changes made on top of them.
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
//! 4. **commit**: [`Table::collect_changes`] puts the rows that changed into a batch.
//!
//! Values are decoded when they are read and encoded when they are written back: once a release,
//! not once a record.

use crate::arena::KeyArena;
use crate::backend::{StateId, StateName};
use crate::batch::ChangeBatch;
use crate::codec::{self, CodecError, StateValue};
use crate::error::{StateError, hex};
use crate::row::Layout;
use crate::store::Store;
use crate::strategy::{ReadCall, ReadPlanner, ReadStrategy};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// A cell of a table: where a declared row's value is. Good until the release ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    /// The slot's number: slots are numbered from 0 in the order of their first declaration.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// Declared, and not read yet.
    Wanted,
    /// As it is in the store.
    Clean,
    /// Different from what is in the store, or maybe so.
    Changed,
}

struct Cell<R, V> {
    row: R,
    value: Option<V>,
    /// Whether the store has the row: what is absent there need not be deleted there.
    stored: bool,
    status: Status,
}

/// What all tables can do for a driver that does not know their types.
pub trait StateTable {
    /// Reads every row that was declared and is not at hand.
    ///
    /// # Errors
    /// [`StateError`] where a read or a value's decoding fails; nothing is known of the rows then.
    fn load(&mut self, store: &Store) -> Result<(), StateError>;

    /// Adds the rows that changed to a batch, and takes them for written.
    ///
    /// # Errors
    /// [`StateError::Value`] where a value cannot be encoded.
    fn collect_changes(&mut self, store: &Store, batch: &mut ChangeBatch) -> Result<(), StateError>;

    /// Ends the release: slots given out before are void.
    fn end_release(&mut self);

    /// How often reads went by gets, and how often by a batched read.
    fn calls_chosen(&self) -> (u64, u64);
}

/// The rows of one state, as a release sees them.
pub struct Table<L: Layout, V> {
    state: StateId,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    cells: Vec<Cell<L::Row, V>>,
    wanted: Vec<u32>,
    changed: Vec<u32>,
    planner: ReadPlanner,
    asked: u64,
    unsorted: KeyArena,
    sorted: KeyArena,
    order: Vec<(u64, u32)>,
    scratch: Vec<u8>,
}

impl<L: Layout, V: StateValue> Table<L, V> {
    /// The table of a state, which is opened in the store.
    ///
    /// # Errors
    /// Those of [`Store::open_state`].
    pub fn open(store: &Store, name: &StateName, strategy: ReadStrategy) -> Result<Self, StateError> {
        Ok(Table {
            state: store.open_state(name)?,
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            cells: Vec::new(),
            wanted: Vec::new(),
            changed: Vec::new(),
            planner: ReadPlanner::new(strategy),
            asked: 0,
            unsorted: KeyArena::new(),
            sorted: KeyArena::new(),
            order: Vec::new(),
            scratch: Vec::new(),
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
        self.find_or_want(row)
    }

    #[inline]
    fn find_or_want(&mut self, row: &L::Row) -> Slot {
        let hash = self.hasher.hash_one(row);
        let cells = &self.cells;
        if let Some(&slot) = self.index.find(hash, |&slot| cells[slot as usize].row == *row) {
            return Slot(slot);
        }
        let slot = self.insert(hash, row.clone());
        self.wanted.push(slot.0);
        slot
    }

    fn insert(&mut self, hash: u64, row: L::Row) -> Slot {
        // A chunk's rows are limited by the batching policy, far below 2^32.
        let slot = u32::try_from(self.cells.len()).expect("a release has fewer than 2^32 rows");
        self.cells.push(Cell { row, value: None, stored: false, status: Status::Wanted });
        let (cells, hasher) = (&self.cells, &self.hasher);
        self.index.insert_unique(hash, slot, |&slot| hasher.hash_one(&cells[slot as usize].row));
        Slot(slot)
    }

    /// The slot of a row that was declared or not; what is not at hand is read with a get of
    /// its own, and counted.
    ///
    /// # Errors
    /// [`StateError`] where the read fails.
    pub fn fetch(&mut self, row: &L::Row, store: &Store) -> Result<Slot, StateError> {
        let slot = self.find_or_want(row);
        if self.cells[slot.index()].status == Status::Wanted {
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
        let cell = &self.cells[slot.index()];
        debug_assert!(cell.status != Status::Wanted, "a slot is read before it is loaded");
        cell.value.as_ref()
    }

    /// The value in a slot, to be changed, set or taken away.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> &mut Option<V> {
        let cell = &mut self.cells[slot.index()];
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
        self.cells.is_empty()
    }

    fn read_one(&mut self, slot: u32, store: &Store) -> Result<(), StateError> {
        let cell = &mut self.cells[slot as usize];
        self.scratch.clear();
        L::encode(&cell.row, store.groups(), &mut self.scratch);
        let mut decoded = Ok(None);
        let (found, took) = store.get(self.state, &self.scratch, &mut |bytes| {
            decoded = codec::decode(bytes).map(Some);
        })?;
        self.planner.measured(ReadCall::Gets, 1, took);
        cell.value = decoded.map_err(|source| value_error(store, self.state, &self.scratch, source))?;
        cell.stored = found;
        cell.status = Status::Clean;
        Ok(())
    }

    fn read_batch(&mut self, store: &Store) -> Result<(), StateError> {
        self.sort_wanted(store);
        let (cells, wanted, order) = (&mut self.cells, &self.wanted, &self.order);
        let mut failed: Option<(usize, CodecError)> = None;
        let took = store.multi_get(self.state, &self.sorted, &mut |index, bytes| {
            let cell = &mut cells[wanted[order[index].1 as usize] as usize];
            cell.stored = bytes.is_some();
            cell.status = Status::Clean;
            match bytes.map(codec::decode).transpose() {
                Ok(value) => cell.value = value,
                Err(error) => {
                    failed.get_or_insert((index, error));
                }
            }
        })?;
        self.planner.measured(ReadCall::MultiGet, self.wanted.len(), took);
        match failed {
            Some((index, source)) => Err(value_error(store, self.state, self.sorted.get(index), source)),
            None => Ok(()),
        }
    }

    /// Encodes the wanted rows, sorted, into `self.sorted`; `self.order` says which is which.
    fn sort_wanted(&mut self, store: &Store) {
        self.unsorted.clear();
        for &slot in &self.wanted {
            let row = &self.cells[slot as usize].row;
            self.unsorted.push_with(|bytes| L::encode(row, store.groups(), bytes));
        }
        self.unsorted.sorted_order(&mut self.order);
        self.sorted.clear();
        for &(_, index) in &self.order {
            self.sorted.push(self.unsorted.get(index as usize));
        }
    }
}

impl<L: Layout, V: StateValue> StateTable for Table<L, V> {
    fn load(&mut self, store: &Store) -> Result<(), StateError> {
        if self.asked > 0 {
            let (asked, distinct) = (self.asked, self.wanted.len() as u64);
            store.count(self.state, |statistics| {
                statistics.keys_asked += asked;
                statistics.keys_distinct += distinct;
            });
            self.asked = 0;
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
        for &slot in &self.changed {
            let cell = &mut self.cells[slot as usize];
            self.scratch.clear();
            L::encode(&cell.row, store.groups(), &mut self.scratch);
            match &cell.value {
                Some(value) => batch
                    .put_with(self.state, &self.scratch, |bytes| codec::encode_into(value, bytes))
                    .map_err(|source| value_error(store, self.state, &self.scratch, source))?,
                None if cell.stored => batch.delete(self.state, &self.scratch),
                None => {}
            }
            cell.stored = cell.value.is_some();
            cell.status = Status::Clean;
        }
        self.changed.clear();
        Ok(())
    }

    fn end_release(&mut self) {
        debug_assert!(self.changed.is_empty(), "changes are collected before a release ends");
        self.index.clear();
        self.cells.clear();
        self.wanted.clear();
    }

    fn calls_chosen(&self) -> (u64, u64) {
        self.planner.chosen()
    }
}

fn value_error(store: &Store, state: StateId, key: &[u8], source: CodecError) -> StateError {
    StateError::Value { state: store.state_name(state), key: hex(key), source }
}
