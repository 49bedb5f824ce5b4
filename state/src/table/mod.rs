//! The view: the values that a release reads, the changes made on top of them, and what of both
//! stays in memory for the next release.
//!
//! A table holds decoded values of one state, one cell for each row. A release goes through it
//! in four steps:
//!
//! 1. **declare**: [`Table::request`] for each row that the release's records will need, which
//!    gives a [`Slot`]; the same row gives the same slot;
//! 2. **load**: [`StateTable::load`] reads all rows that were declared and are not at hand, in
//!    the way the [strategy](crate::strategy) says;
//! 3. **apply**: records read and change cells through their slots, in event-time order. As a
//!    row has one cell, a record sees what the record before it left, deletions included;
//! 4. **settle**: [`StateTable::collect_changes`] and [`StateTable::end_release`].
//!
//! What happens in the last step depends on the store's [`CacheBudget`]. Without one, every
//! change is collected for the release's commit, and the table forgets all (write-through).
//! With one, cells stay: a changed value is written only when its cell is given up or the table
//! is flushed, in sorted batches (write-behind). Durability comes from checkpoints alone, and
//! those flush. A value is decoded once and encoded once for each stay in memory; a row that is
//! at hand does not touch the store.
//!
//! **Reading ahead.** Between [`StateTable::begin_ahead`] and [`StateTable::end_ahead`], rows are
//! declared for releases to come, and reader threads fetch them while earlier releases are
//! applied.
//!
//! **One truth.** While a row has a cell, the cell is what the row is. Nothing reads such a row
//! from the store, except after a flush. A row that is on its way from a reader thread has a cell
//! already, which stays until the answer is there, and nobody can change or write the row before:
//! so an answer is never older than the last change of its row, however late it comes.
//!
//! **Appending without reading.** A cell may also hold a *tail*, see [`Table::append_to`]: what is
//! to be appended to whatever the store has. Of such a row nothing is said before it is read, and
//! then the tail belongs to it.

mod ahead;
mod budget;
mod by_time;
mod cells;
mod fold;
mod reading;
mod tail;
mod value;
mod writing;

pub use ahead::{ReadAhead, UnknownReadAhead};
pub use budget::CacheBudget;
pub use by_time::{TimeScan, TimeTable};
pub use value::{Appended, CellValue};

use crate::arena::KeyArena;
use crate::backend::{StateId, StateName, StateReader};
use crate::batch::ChangeBatch;
use crate::codec::CodecError;
use crate::error::{StateError, hex};
use crate::planner::ReadPlanner;
use crate::readers::{Read, Waker};
use crate::row::Layout;
use crate::store::Store;
use crate::strategy::ReadStrategy;
use ahead::AheadPolicy;
use cells::{Cells, Status};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

/// A cell of a table: where a declared row's value is. Good until the release ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(u32);

/// What is given out for rows that are declared ahead: those have no slot yet.
const NO_SLOT: Slot = Slot(u32::MAX);

/// What all tables can do for a driver that does not know their types.
pub trait StateTable {
    /// How many rows a chunk of a release may need, so that they fit into memory together.
    fn rows_at_once(&self) -> usize;

    /// Who is to be told when an answer of a reader thread is there.
    fn set_waker(&mut self, waker: Waker);

    /// Whether it is worth to declare rows when their records arrive.
    fn reads_ahead(&self) -> bool;

    /// Rows that are declared from here on are for releases to come.
    fn begin_ahead(&mut self);

    /// Ends what [`begin_ahead`](Self::begin_ahead) began; reader threads may start.
    ///
    /// # Errors
    /// [`StateError::Poisoned`].
    fn end_ahead(&mut self, store: &Store) -> Result<(), StateError>;

    /// Starts to read every row that was declared and is not at hand. Tells whether all of them
    /// are at hand now; if not, reader threads are at work, and the waker will be called.
    ///
    /// # Errors
    /// [`StateError`] where a read or a value's decoding fails; nothing is known of the rows then.
    fn start_load(&mut self, store: &Store) -> Result<bool, StateError>;

    /// Takes what reader threads have brought; tells whether all declared rows are at hand now.
    ///
    /// # Errors
    /// As for [`start_load`](Self::start_load).
    fn continue_load(&mut self, store: &Store) -> Result<bool, StateError>;

    /// Reads every row that was declared and is not at hand, and waits for all of them.
    ///
    /// # Errors
    /// As for [`start_load`](Self::start_load).
    fn load(&mut self, store: &Store) -> Result<(), StateError>;

    /// Adds the rows that changed to a batch, and takes them for written; nothing where changes
    /// are written behind.
    ///
    /// # Contract
    /// The batch is committed before rows are declared ahead or read again.
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
}

/// The rows of one state, as a release sees them.
pub struct Table<L: Layout, V> {
    state: StateId,
    cells: Cells<L::Row, V>,
    /// Declared in this release, and not read yet.
    wanted: Vec<u32>,
    /// Declared in this release, and on their way from reader threads.
    awaited: usize,
    /// Cells that changed since they were last written. A cell that was given up since then, or
    /// taken by another row, may still be in the list; its status tells.
    changed: Vec<u32>,
    planner: Rc<RefCell<ReadPlanner>>,
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
    /// Rows written or deleted in the store so far, or collected to be.
    rows_written: u64,
    accounted_bytes: usize,
    ahead: Ahead,
    unsorted: KeyArena,
    sorted: KeyArena,
    order: Vec<(u64, u32)>,
    scratch: Vec<u8>,
    victims: Vec<u32>,
    written: ChangeBatch,
}

/// A table's dealings with reader threads.
struct Ahead {
    policy: AheadPolicy,
    /// None where the backend or the configuration has no readers.
    reader: Option<Arc<dyn StateReader>>,
    waker: Option<Waker>,
    answers: Receiver<Box<Read>>,
    reply: Sender<Box<Read>>,
    /// Whether rows are declared for releases to come at the moment.
    declaring: bool,
    /// Declared ahead, and not handed to a thread yet.
    wanted: Vec<u32>,
    /// Cells with the mark `ahead`.
    rows: usize,
    /// How many there may be.
    most_rows: usize,
    /// A thread is handed so many keys at least.
    least_keys: usize,
    hits: u64,
    wasted: u64,
    /// Answers of another era than this one are stale: the state was cleared since.
    era: u32,
    /// Reads that are back, to be sent again: in the boxes that they travel in.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Read>>,
}

impl<L: Layout, V: CellValue> Table<L, V> {
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
        let ahead = Ahead::new(store, state, strategy);
        let for_threads = ahead.reader.is_some().then_some(2 * ahead.least_keys);
        let planner = ReadPlanner::new(strategy, store.reads_in_batches(), for_threads);
        let planner = Rc::new(RefCell::new(planner));
        store.set_planner(state, Rc::clone(&planner));
        Ok(Table {
            state,
            cells: Cells::new(),
            wanted: Vec::new(),
            awaited: 0,
            changed: Vec::new(),
            planner,
            keeps_values,
            budget,
            may_be_stored: !keeps_values || !store.is_empty(state)?,
            release: 1,
            asked: 0,
            distinct: 0,
            owned_bytes: 0.0,
            changes_seen: 0,
            rows_written: 0,
            accounted_bytes: 0,
            ahead,
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

    /// Declares that the release will need a row; or, while rows are declared ahead, that a
    /// release to come will. In that case the slot means nothing.
    #[inline]
    pub fn request(&mut self, row: &L::Row) -> Slot {
        if self.ahead.declaring {
            self.request_ahead(row);
            return NO_SLOT;
        }
        self.asked += 1;
        let (slot, new) = self.cells.find_or_insert(row);
        let cell = self.cells.get_mut(slot);
        cell.recent = true;
        if cell.release != self.release || cell.ahead {
            cell.release = self.release;
            self.distinct += 1;
            if new && !self.may_be_stored {
                cell.status = Status::Clean;
            } else if cell.ahead || !cell.status.is_at_hand() {
                self.request_missing(slot);
            }
        }
        Slot(slot)
    }

    /// A release asks for a row that is not at hand, or that was declared ahead.
    fn request_missing(&mut self, slot: u32) {
        let cell = self.cells.get_mut(slot);
        if std::mem::take(&mut cell.ahead) {
            self.ahead.rows -= 1;
            self.ahead.hits += u64::from(cell.status != Status::Wanted);
        }
        match cell.status {
            Status::Wanted | Status::Tail => self.wanted.push(slot),
            Status::Requested => self.awaited += 1,
            Status::Free | Status::Clean | Status::Changed => {}
        }
    }

    /// Declares that a release to come will need a row.
    fn request_ahead(&mut self, row: &L::Row) {
        if self.ahead.rows >= self.ahead.most_rows || !self.may_be_stored {
            return;
        }
        let (slot, new) = self.cells.find_or_insert(row);
        if new {
            let cell = self.cells.get_mut(slot);
            (cell.ahead, cell.release) = (true, self.release);
            self.ahead.rows += 1;
            self.ahead.wanted.push(slot);
        }
    }

    /// The slot of a row that was declared or not; what is not at hand is read with a get of
    /// its own, and counted.
    ///
    /// # Errors
    /// [`StateError`] where the read fails.
    pub fn fetch(&mut self, row: &L::Row, store: &Store) -> Result<Slot, StateError> {
        let (slot, new) = self.cells.find_or_insert(row);
        let cell = self.cells.get_mut(slot);
        cell.recent = true;
        if new && !self.may_be_stored {
            cell.status = Status::Clean;
        }
        if !cell.status.is_at_hand() || cell.ahead {
            self.fetch_missing(slot, store)?;
        }
        Ok(Slot(slot))
    }

    fn fetch_missing(&mut self, slot: u32, store: &Store) -> Result<(), StateError> {
        let cell = self.cells.get_mut(slot);
        if cell.ahead {
            cell.release = self.release;
            self.request_missing(slot);
        }
        match self.cells.get(slot).status {
            Status::Wanted | Status::Tail => {
                store.count(self.state, |statistics| {
                    statistics.keys_asked += 1;
                    statistics.keys_distinct += 1;
                    statistics.undeclared_reads += 1;
                });
                self.wanted.retain(|&wanted| wanted != slot);
                self.read_one(slot, store)
            }
            Status::Requested => self.wait_for(slot, store),
            Status::Free | Status::Clean | Status::Changed => Ok(()),
        }
    }

    /// The value in a slot, if the row has one.
    #[inline]
    pub fn get(&self, slot: Slot) -> Option<&V> {
        let cell = self.cells.get(slot.0);
        debug_assert!(cell.status.is_at_hand(), "a slot is read before it is loaded");
        cell.value.as_ref()
    }

    /// The value in a slot, to be changed, set or taken away.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> &mut Option<V> {
        let cell = self.cells.get_mut(slot.0);
        debug_assert!(cell.status.is_at_hand(), "a slot is changed before it is loaded");
        if cell.status != Status::Changed {
            cell.status = Status::Changed;
            self.changed.push(slot.0);
        }
        &mut cell.value
    }

    /// Removes all rows of the state, here and in the store, at a cost that hardly depends on how
    /// many there are. Answers that are still on their way are thrown away when they come.
    ///
    /// # Contract
    /// Slots given out before are void. Changes that were collected before are committed before.
    ///
    /// # Errors
    /// [`StateError::Clear`], after which the store is poisoned, or [`StateError::Poisoned`].
    pub fn clear(&mut self, store: &Store) -> Result<(), StateError> {
        self.cells.clear();
        self.changed.clear();
        self.changes_seen = 0;
        self.wanted.clear();
        self.awaited = 0;
        self.ahead.wanted.clear();
        self.ahead.wasted += self.ahead.rows as u64;
        self.ahead.rows = 0;
        self.ahead.era = self.ahead.era.wrapping_add(1);
        store.clear(self.state)?;
        self.may_be_stored = !self.keeps_values;
        Ok(())
    }

    /// Rows that are in the table.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether no row is in the table.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<L: Layout, V: CellValue> StateTable for Table<L, V> {
    fn rows_at_once(&self) -> usize {
        self.rows_in_share()
    }

    fn set_waker(&mut self, waker: Waker) {
        self.ahead.waker = Some(waker);
    }

    #[inline]
    fn reads_ahead(&self) -> bool {
        self.ahead.policy.is_active() && self.may_be_stored
    }

    fn begin_ahead(&mut self) {
        self.ahead.declaring = true;
    }

    fn end_ahead(&mut self, store: &Store) -> Result<(), StateError> {
        self.ahead.declaring = false;
        self.submit_ahead(store)
    }

    fn start_load(&mut self, store: &Store) -> Result<bool, StateError> {
        self.start_reading(store)?;
        self.continue_load(store)
    }

    fn continue_load(&mut self, store: &Store) -> Result<bool, StateError> {
        while self.awaited > 0
            && let Ok(answer) = self.ahead.answers.try_recv()
        {
            self.take_answer(answer, store)?;
        }
        Ok(self.awaited == 0)
    }

    fn load(&mut self, store: &Store) -> Result<(), StateError> {
        self.start_reading(store)?;
        self.wait_for_all(store)
    }

    fn collect_changes(&mut self, store: &Store, batch: &mut ChangeBatch) -> Result<(), StateError> {
        if self.keeps_values { self.measure_changes(store) } else { self.write_changes(store, batch) }
    }

    fn end_release(&mut self, store: &Store) -> Result<(), StateError> {
        // After 2^32 releases, an old number could at worst be taken for the new one in the
        // statistics, as nothing of a release is left when it ends.
        self.release = self.release.checked_add(1).unwrap_or(1);
        if self.keeps_values {
            self.shrink(None, store)?;
        } else {
            self.forget();
        }
        self.settle_ahead(store)
    }

    fn flush(&mut self, store: &Store) -> Result<(), StateError> {
        self.write_all(store)
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

impl Ahead {
    fn new(store: &Store, state: StateId, strategy: ReadStrategy) -> Self {
        let reader = store.reader(state).filter(|_| store.readers().threads() > 0);
        let mode = match (strategy, store.reader_options().ahead) {
            _ if reader.is_none() => ReadAhead::Off,
            (ReadStrategy::PerRecord, _) => ReadAhead::Off,
            (ReadStrategy::Auto, mode) | (_, mode @ (ReadAhead::On | ReadAhead::Off)) => mode,
            (_, ReadAhead::Auto) => ReadAhead::Off,
        };
        let (reply, answers) = mpsc::channel();
        Ahead {
            policy: AheadPolicy::new(mode),
            reader,
            waker: None,
            answers,
            reply,
            declaring: false,
            wanted: Vec::new(),
            rows: 0,
            most_rows: reading::LEAST_ROWS_AHEAD,
            least_keys: store.reader_options().least_keys.max(1),
            hits: 0,
            wasted: 0,
            era: 0,
            spare: Vec::new(),
        }
    }
}
