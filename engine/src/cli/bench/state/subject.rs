//! A store that is measured under one strategy, and the work that is measured on it.
//!
//! The work is what a keyed operator does with a release, without the operator: declare the rows,
//! load them, read or change them, collect the changes, end the release, commit.

use super::super::padded_count::PaddedCount;
use super::setting::Setting;
use crate::generate::workload::mix;
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tidegate_state::backend::{StateId, StateName};
use tidegate_state::batch::ChangeBatch;
use tidegate_state::codec;
use tidegate_state::error::{StateError, hex};
use tidegate_state::key::StateKey;
use tidegate_state::keyed::{AppendState, ListState, Scope, SharedTable, StateParts, States};
use tidegate_state::row::{ByKey, ByTime, Layout};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{Slot, StateTable, Table};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Look at values.
    Read,
    /// Change values: read, modify, write.
    Update,
    /// Append to lists without reading them.
    Append,
    /// Append to lists that are read and written whole.
    AppendRewrite,
    /// Remove a range of rows, and look for the first row that is left.
    Clear,
}

/// What a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value a key.
    Values,
    /// A list a key, in pieces.
    Appended,
    /// A list a key, as one value.
    Lists,
    /// Rows by time.
    Ranges,
}

impl Operation {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Update => "update",
            Operation::Append => "append",
            Operation::AppendRewrite => "append-rewrite",
            Operation::Clear => "clear",
        }
    }

    /// Whether the store is another one afterwards.
    pub fn writes(self) -> bool {
        self != Operation::Read
    }

    /// What it is done on.
    pub fn kind(self) -> Kind {
        match self {
            Operation::Read | Operation::Update => Kind::Values,
            Operation::Append => Kind::Appended,
            Operation::AppendRewrite => Kind::Lists,
            Operation::Clear => Kind::Ranges,
        }
    }
}

/// What some releases took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    /// From the first declaration to the last commit.
    pub elapsed: Duration,
    /// Keys asked for, repeats included; for a clear, rows removed.
    pub keys: u64,
    /// Keys that the store was asked for.
    pub store_keys: u64,
    /// Time in reads of the store.
    pub read_ns: u64,
    /// Time in commits.
    pub commit_ns: u64,
}

enum Rows {
    Values(Box<Table<ByKey<u64>, PaddedCount>>),
    Appended { scope: Rc<Scope<u64>>, list: AppendState<u64, u64>, tables: Vec<SharedTable> },
    Lists { scope: Rc<Scope<u64>>, list: ListState<u64, u64>, tables: Vec<SharedTable> },
    Ranges { state: StateId, next_time: i64 },
}

/// One store under one strategy.
pub struct Subject {
    rows: Rows,
    changes: ChangeBatch,
    slots: Vec<Slot>,
    store: Rc<Store>,
    strategy: ReadStrategy,
    setting: Setting,
    /// Rows that were asked for and not there: none, once the store is filled.
    absent: u64,
    /// Sum over what was read, so that reading it is not for nothing.
    pub checksum: u64,
}

/// The only state of a store, and so the first one.
const STATE: StateId = StateId(0);

impl Subject {
    /// Opens the store in a directory.
    ///
    /// # Errors
    /// [`StateError`] where it cannot be opened.
    pub fn open(
        path: &Path,
        setting: &Setting,
        kind: Kind,
        strategy: ReadStrategy,
    ) -> Result<Self, StateError> {
        let store = Rc::new(setting.open_store(path)?);
        let rows = match kind {
            Kind::Values => {
                let name = StateName::new("bench", "values")?;
                Rows::Values(Box::new(Table::open(&store, &name, strategy)?))
            }
            Kind::Appended => {
                let mut states = States::new(Rc::clone(&store), "bench", strategy);
                let list = states.append("appended")?;
                let StateParts { scope, tables, .. } = states.into_parts();
                Rows::Appended { scope, list, tables }
            }
            Kind::Lists => {
                let mut states = States::new(Rc::clone(&store), "bench", strategy);
                let list = states.list("lists")?;
                let StateParts { scope, tables, .. } = states.into_parts();
                Rows::Lists { scope, list, tables }
            }
            Kind::Ranges => {
                let state = store.open_state(&StateName::new("bench", "ranges")?)?;
                Rows::Ranges { state, next_time: 0 }
            }
        };
        Ok(Subject {
            rows,
            changes: ChangeBatch::new(),
            slots: Vec::new(),
            store,
            strategy,
            setting: setting.clone(),
            absent: 0,
            checksum: 0,
        })
    }

    /// Gives every key of a batch its first value.
    ///
    /// # Errors
    /// [`StateError`] where the store fails.
    pub fn fill(&mut self, keys: &[u64]) -> Result<(), StateError> {
        match self.rows {
            Rows::Values(_) => self.release(Operation::Update, keys),
            Rows::Appended { .. } | Rows::Lists { .. } => self.append(keys, self.setting.list_elements()),
            Rows::Ranges { .. } => Ok(()),
        }
    }

    /// Writes all of it to files, as few as may be.
    ///
    /// # Errors
    /// [`StateError`] where the store fails.
    pub fn settle(&mut self) -> Result<(), StateError> {
        self.flush_tables()?;
        self.store.compact(STATE)
    }

    /// Reads every row, so that what has room in memory is there.
    ///
    /// # Errors
    /// [`StateError`] where the store fails.
    pub fn warm_up(&mut self) -> Result<(), StateError> {
        self.store.scan(STATE, &[], None, &mut |_, _| ControlFlow::Continue(()))
    }

    /// Measures releases of `batch` keys each.
    ///
    /// # Errors
    /// [`StateError`] where the store fails.
    pub fn sample(&mut self, operation: Operation, keys: &[u64], batch: usize) -> Result<Sample, StateError> {
        // As in an operator: under the baseline, a chunk is one record.
        let batch = if self.strategy == ReadStrategy::PerRecord { 1 } else { batch };
        let before = self.counted();
        let started = Instant::now();
        for release in keys.chunks(batch) {
            self.release(operation, release)?;
        }
        if operation.writes() {
            // What memory for decoded values holds back belongs to what the changes cost.
            self.flush_tables()?;
        }
        let elapsed = started.elapsed();
        let after = self.counted();
        Ok(Sample {
            elapsed,
            keys: keys.len() as u64,
            store_keys: after.store_keys - before.store_keys,
            read_ns: after.read_ns - before.read_ns,
            commit_ns: after.commit_ns - before.commit_ns,
        })
    }

    /// Measures the removal of `rounds` ranges of `batch` rows each. The rows are written, one
    /// range after the other, while the clock stands.
    ///
    /// # Errors
    /// [`StateError`] where the store fails.
    pub fn sample_clears(&mut self, rounds: usize, batch: usize) -> Result<Sample, StateError> {
        let mut sample = Sample { keys: (rounds * batch) as u64, ..Sample::default() };
        for _ in 0..rounds {
            let (lower, upper) = self.write_range(batch)?;
            let before = self.counted();
            let started = Instant::now();
            self.changes.delete_range(STATE, &lower, &upper);
            self.store.commit(&mut self.changes)?;
            let mut first = None;
            self.store.scan(STATE, &[], None, &mut |row, _| {
                first = Some(row.len());
                ControlFlow::Break(())
            })?;
            sample.elapsed += started.elapsed();
            let after = self.counted();
            sample.read_ns += after.read_ns - before.read_ns;
            sample.commit_ns += after.commit_ns - before.commit_ns;
            // A row of another time is left, and has to be found.
            self.absent += u64::from(first.is_none());
        }
        Ok(sample)
    }

    /// How many rows were asked for and not there since the last question.
    pub fn take_absent(&mut self) -> u64 {
        std::mem::take(&mut self.absent)
    }

    fn release(&mut self, operation: Operation, keys: &[u64]) -> Result<(), StateError> {
        let Rows::Values(table) = &mut self.rows else { return self.append(keys, 1) };
        self.slots.extend(keys.iter().map(|key| table.request(key)));
        table.load(&self.store)?;
        if operation == Operation::Read {
            for slot in self.slots.drain(..) {
                match table.get(slot) {
                    Some(value) => self.checksum = self.checksum.wrapping_add(value.count()),
                    None => self.absent += 1,
                }
            }
            return table.end_release(&self.store);
        }
        for (slot, &key) in self.slots.drain(..).zip(keys) {
            let value = table.get_mut(slot);
            self.absent += u64::from(value.is_none());
            let count = value.get_or_insert_with(|| self.setting.value(key)).increment();
            self.checksum = self.checksum.wrapping_add(count);
        }
        table.collect_changes(&self.store, &mut self.changes)?;
        table.end_release(&self.store)?;
        self.store.commit(&mut self.changes)
    }

    /// Appends so many elements to each list.
    fn append(&mut self, keys: &[u64], elements: usize) -> Result<(), StateError> {
        let elements = |key| (0..elements as u64).map(move |element| mix(key ^ element));
        let tables = match &mut self.rows {
            Rows::Appended { scope, list, tables } => {
                for &key in keys {
                    scope.set_key(key);
                    elements(key).try_for_each(|element| list.push(element))?;
                }
                tables
            }
            Rows::Lists { scope, list, tables } => {
                for &key in keys {
                    scope.set_key(key);
                    list.declare();
                }
                for table in tables.iter() {
                    table.borrow_mut().load(&self.store)?;
                }
                for &key in keys {
                    scope.set_key(key);
                    elements(key).try_for_each(|element| list.push(element))?;
                }
                tables
            }
            Rows::Values(_) | Rows::Ranges { .. } => return Ok(()),
        };
        for table in tables.iter() {
            let mut table = table.borrow_mut();
            table.collect_changes(&self.store, &mut self.changes)?;
            table.end_release(&self.store)?;
        }
        self.store.commit(&mut self.changes)
    }

    fn flush_tables(&mut self) -> Result<(), StateError> {
        match &mut self.rows {
            Rows::Values(table) => table.flush(&self.store),
            Rows::Appended { tables, .. } | Rows::Lists { tables, .. } => {
                tables.iter().try_for_each(|table| table.borrow_mut().flush(&self.store))
            }
            Rows::Ranges { .. } => Ok(()),
        }
    }

    /// Writes the rows of the next time, and of the last time there is; gives the bounds of the
    /// former.
    fn write_range(&mut self, rows: usize) -> Result<(Vec<u8>, Vec<u8>), StateError> {
        let Rows::Ranges { state, next_time } = &mut self.rows else {
            return Ok((Vec::new(), Vec::new()));
        };
        let (state, time) = (*state, *next_time);
        *next_time += 1;
        let mut row = Vec::new();
        let in_time = (0..rows as u64).map(|key| (time, key));
        for entry in in_time.chain([(i64::MAX, 0)]) {
            row.clear();
            ByTime::<u64>::encode(&entry, self.store.groups(), &mut row);
            let value = self.setting.value(mix(entry.1 ^ mix(time as u64)));
            self.changes.put_with(state, &row, |bytes| codec::encode_into(&value, bytes)).map_err(
                |source| StateError::Value { state: self.store.state_name(state), key: hex(&row), source },
            )?;
        }
        self.store.commit(&mut self.changes)?;
        let bound = |time: i64| {
            let mut bytes = Vec::new();
            time.encode_into(&mut bytes);
            bytes
        };
        Ok((bound(time), bound(time + 1)))
    }

    fn counted(&self) -> Sample {
        let mut sum = Sample::default();
        for (_, statistics) in self.store.statistics() {
            sum.store_keys += statistics.keys_read;
            sum.read_ns += statistics.read_ns;
            sum.commit_ns += statistics.commit_ns;
        }
        sum
    }
}
