//! Tables whose rows are addressed by time first: all rows of a time can be gone through, and
//! removed together. Windows keep their slices in them.

use super::cells::Status;
use super::{Slot, StateTable, Table, value_error};
use crate::backend::StateName;
use crate::batch::ChangeBatch;
use crate::codec::{self, StateValue};
use crate::error::{StateError, hex};
use crate::key::StateKey;
use crate::row::{ByTime, Layout, RowKey, after_prefix};
use crate::store::Store;
use crate::strategy::ReadStrategy;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeBounds};

/// A table of rows (time, key).
///
/// Rows are read and changed one by one, as in any [`Table`]. Beside that, the table knows which
/// times have rows, and which of those were never written to the store: such a time is gone
/// through, and removed, without touching the store.
pub struct TimeTable<K: RowKey, V> {
    table: Table<ByTime<K>, V>,
    times: BTreeMap<i64, RowsOfTime>,
}

/// What is known of the rows of a time.
#[derive(Debug)]
struct RowsOfTime {
    /// Cells of rows that changed. A cell that was given up since, or taken by another row, may
    /// still be listed, and a cell may be listed twice until the list is sorted.
    slots: Vec<u32>,
    sorted: bool,
    /// What the table had written when the first of the rows came. If it has written nothing
    /// since, none of them is in the store.
    written_before: Option<u64>,
}

/// How far the rows of a time have been gone through.
#[derive(Debug)]
pub struct TimeScan {
    time: i64,
    /// The least row in the store that was not shown yet; none where all have been.
    stored_from: Option<Vec<u8>>,
    next_slot: usize,
}

impl<K: RowKey, V: StateValue> TimeTable<K, V> {
    /// The table of a state, which is opened in the store. Looks for the times that the store has.
    ///
    /// # Errors
    /// Those of [`Table::open`].
    pub fn open(store: &Store, name: &StateName, strategy: ReadStrategy) -> Result<Self, StateError> {
        let table = Table::open(store, name, strategy)?;
        let mut times = BTreeMap::new();
        let mut from = Some(Vec::new());
        while let Some(lower) = from.take() {
            let mut found = None;
            store.scan(table.state(), &lower, None, &mut |row, _| {
                found = Some(row.to_vec());
                ControlFlow::Break(())
            })?;
            if let Some(row) = found {
                let time = decode_row::<K>(store, &table, &row)?.0;
                times.insert(time, RowsOfTime { slots: Vec::new(), sorted: true, written_before: None });
                from = after_prefix(&time_prefix(time));
            }
        }
        Ok(TimeTable { table, times })
    }

    /// The table as drivers see it.
    pub fn as_state_table(&mut self) -> &mut dyn StateTable {
        &mut self.table
    }

    /// Declares a row, as [`Table::request`] does.
    #[inline]
    pub fn request(&mut self, row: &(i64, K)) -> Slot {
        self.table.request(row)
    }

    /// The value in a slot, to be changed, set or taken away.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> &mut Option<V> {
        let cell = self.table.cells.get(slot.0);
        if cell.status != Status::Changed {
            let time = cell.row.0;
            self.note_change(time, slot.0);
        }
        self.table.get_mut(slot)
    }

    /// Sets a value without knowing what the row is.
    ///
    /// # Contract
    /// Rows that are put are never declared.
    ///
    pub fn put(&mut self, row: &(i64, K), value: V) {
        let (slot, _) = self.table.cells.find_or_insert(row);
        let cell = self.table.cells.get_mut(slot);
        if !cell.status.is_at_hand() {
            cell.status = Status::Clean;
        }
        if cell.value.is_none() {
            // Whether the store has it is not known; better shown twice than not at all.
            cell.stored = false;
        }
        *self.get_mut(Slot(slot)) = Some(value);
    }

    /// Takes a row away without knowing whether it is there.
    ///
    /// # Contract
    /// As for [`put`](Self::put).
    pub fn remove(&mut self, row: &(i64, K)) {
        if !self.times.contains_key(&row.0) {
            return;
        }
        let (slot, _) = self.table.cells.find_or_insert(row);
        let cell = self.table.cells.get_mut(slot);
        if !cell.status.is_at_hand() {
            cell.status = Status::Clean;
        }
        // The store may have it, so that it has to be deleted there.
        cell.stored = true;
        *self.get_mut(Slot(slot)) = None;
    }

    /// Shows and removes the rows of all times before `end` (of all times, if there is none), with one
    /// scan and one range whatever the number of times. A row that was [`put`](Self::put) may be shown
    /// twice.
    ///
    /// Where the store has more than `most` of them, it stops behind the time at which that many were
    /// shown, and gives the time from which on rows are left.
    ///
    /// # Contract
    /// Nothing was collected that is not committed; and rows of these times are never declared again.
    ///
    /// # Errors
    /// [`StateError`] where the store cannot be read or written, or a row in it cannot be decoded.
    pub fn take_before(
        &mut self,
        end: Option<i64>,
        most: usize,
        store: &Store,
        visit: &mut dyn FnMut(i64, &K, &V),
    ) -> Result<Option<i64>, StateError> {
        let in_range = |time: i64| end.is_none_or(|end| time < end);
        let mut times = self.times.keys().copied().take_while(|&time| in_range(time));
        let Some(first_stored) = times.find(|&time| self.may_be_stored(time)) else {
            self.take_at_hand(end, visit);
            return Ok(None);
        };
        let (mut shown, mut last, mut left, mut outcome) = (0, None, None, Ok(()));
        let upper = end.map(time_prefix);
        store.scan(
            self.table.state(),
            &time_prefix(first_stored),
            upper.as_deref(),
            &mut |bytes, value| {
                outcome = decode_row::<K>(store, &self.table, bytes).and_then(|(time, _)| {
                    if shown >= most && last != Some(time) {
                        left = Some(time);
                        return Ok(());
                    }
                    (shown, last) = (shown + 1, Some(time));
                    self.show_stored(bytes, value, store, &mut |key, value| visit(time, key, value))
                });
                if outcome.is_err() || left.is_some() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        )?;
        outcome?;
        let end = left.or(end);
        self.take_at_hand(end, visit);
        let upper = end.map_or_else(|| vec![0xFF; size_of::<i64>() + 1], time_prefix);
        let mut batch = ChangeBatch::new();
        batch.delete_range(self.table.state(), &time_prefix(first_stored), &upper);
        store.commit(&mut batch)?;
        Ok(left)
    }

    /// Shows and forgets the rows before `end` that have cells; rows that the store has too were shown.
    fn take_at_hand(&mut self, end: Option<i64>, visit: &mut dyn FnMut(i64, &K, &V)) {
        let later = end.map_or_else(BTreeMap::new, |end| self.times.split_off(&end));
        for (time, rows) in std::mem::replace(&mut self.times, later) {
            for slot in rows.slots {
                if let Some(cell) = self.table.cells.at(slot)
                    && cell.status.is_at_hand()
                    && cell.row.0 == time
                    && !cell.ahead
                {
                    if let (Some(value), false) = (&cell.value, cell.stored) {
                        visit(time, &cell.row.1, value);
                    }
                    self.table.cells.remove(slot);
                }
            }
        }
        self.table.forget_stale_changes();
    }

    fn note_change(&mut self, time: i64, slot: u32) {
        let written = self.table.rows_written;
        let rows = self.times.entry(time).or_insert_with(|| RowsOfTime {
            slots: Vec::new(),
            sorted: true,
            written_before: Some(written),
        });
        if self.table.keeps_values {
            rows.slots.push(slot);
            rows.sorted = false;
        }
    }

    /// The least time that has rows. (All of them may have been set to none.)
    #[inline]
    pub fn first_time(&self) -> Option<i64> {
        self.times.first_key_value().map(|(&time, _)| time)
    }

    /// The times in a range that have rows, in order.
    pub fn times(&self, range: impl RangeBounds<i64>) -> impl Iterator<Item = i64> {
        self.times.range(range).map(|(&time, _)| time)
    }

    /// Begins to go through the rows of a time.
    ///
    /// # Contract
    /// Between this and the last call of [`next_rows`](Self::next_rows) no row is declared or
    /// changed, and nothing is collected that was not committed.
    pub fn scan_time(&mut self, time: i64) -> TimeScan {
        let stored_from = self.may_be_stored(time).then(|| time_prefix(time));
        if let Some(rows) = self.times.get_mut(&time)
            && !rows.sorted
        {
            rows.slots.sort_unstable();
            rows.slots.dedup();
            rows.sorted = true;
        }
        TimeScan { time, stored_from, next_slot: 0 }
    }

    /// Shows at most `most` more rows, in no order; tells whether there may be others left. A row
    /// that was [`put`](Self::put) may be shown twice.
    ///
    /// # Errors
    /// [`StateError`] where the store cannot be read, or a row in it cannot be decoded.
    pub fn next_rows(
        &self,
        scan: &mut TimeScan,
        most: usize,
        store: &Store,
        mut visit: impl FnMut(&K, &V),
    ) -> Result<bool, StateError> {
        let mut shown = 0;
        if let Some(from) = scan.stored_from.take() {
            scan.stored_from = self.next_stored(scan.time, from, most, store, &mut |key, value| {
                shown += 1;
                visit(key, value);
            })?;
            if scan.stored_from.is_some() {
                return Ok(true);
            }
        }
        let Some(rows) = self.times.get(&scan.time) else { return Ok(false) };
        while scan.next_slot < rows.slots.len() {
            if shown >= most {
                return Ok(true);
            }
            let Some(cell) = self.table.cells.at(rows.slots[scan.next_slot]) else { break };
            scan.next_slot += 1;
            // What the store has too was shown with the store's rows. (Unless it was put without
            // being read: then it is shown twice, as what it is now.)
            if cell.status.is_at_hand()
                && cell.row.0 == scan.time
                && !cell.stored
                && let Some(value) = &cell.value
            {
                shown += 1;
                visit(&cell.row.1, value);
            }
        }
        Ok(false)
    }

    /// Shows rows that the store has, as they are now; gives the row to go on from.
    fn next_stored(
        &self,
        time: i64,
        from: Vec<u8>,
        most: usize,
        store: &Store,
        visit: &mut dyn FnMut(&K, &V),
    ) -> Result<Option<Vec<u8>>, StateError> {
        let (mut seen, mut last, mut outcome) = (0, None, Ok(()));
        let upper = after_prefix(&time_prefix(time));
        store.scan(self.table.state(), &from, upper.as_deref(), &mut |bytes, value| {
            seen += 1;
            outcome = self.show_stored(bytes, value, store, visit);
            if outcome.is_err() || seen == most {
                last = Some(bytes.to_vec());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        outcome?;
        Ok(last.map(|mut row| {
            // The least bytes after the row.
            row.push(0);
            row
        }))
    }

    fn show_stored(
        &self,
        bytes: &[u8],
        value: &[u8],
        store: &Store,
        visit: &mut dyn FnMut(&K, &V),
    ) -> Result<(), StateError> {
        let row = decode_row::<K>(store, &self.table, bytes)?;
        let cell = self.table.cells.find(&row).map(|slot| self.table.cells.get(slot));
        match cell {
            // While a row has a cell, the cell is what the row is.
            Some(cell) if cell.status.is_at_hand() => {
                if let Some(value) = &cell.value {
                    visit(&row.1, value);
                }
            }
            _ => {
                let value = codec::decode(value)
                    .map_err(|source| value_error(store, self.table.state(), bytes, source))?;
                visit(&row.1, &value);
            }
        }
        Ok(())
    }

    /// Removes all rows of a time, here and in the store.
    ///
    /// # Contract
    /// As for [`scan_time`](Self::scan_time); and rows of this time are never declared again.
    ///
    /// # Errors
    /// [`StateError::Commit`] or [`StateError::Poisoned`].
    pub fn remove_time(&mut self, time: i64, store: &Store) -> Result<(), StateError> {
        let stored = self.may_be_stored(time);
        let Some(rows) = self.times.remove(&time) else { return Ok(()) };
        for slot in rows.slots {
            if let Some(cell) = self.table.cells.at(slot)
                && cell.status.is_at_hand()
                && cell.row.0 == time
                && !cell.ahead
            {
                self.table.cells.remove(slot);
            }
        }
        self.table.forget_stale_changes();
        if stored {
            let lower = time_prefix(time);
            // A state can be left with a last row that nothing comes after; no time ends in `FF`s
            // alone but the last one there is.
            let upper = after_prefix(&lower).unwrap_or_else(|| vec![0xFF; lower.len() + 1]);
            let mut batch = ChangeBatch::new();
            batch.delete_range(self.table.state(), &lower, &upper);
            store.commit(&mut batch)?;
        }
        Ok(())
    }

    fn may_be_stored(&self, time: i64) -> bool {
        self.times.get(&time).is_some_and(|rows| rows.written_before != Some(self.table.rows_written))
    }
}

fn time_prefix(time: i64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8);
    time.encode_into(&mut bytes);
    bytes
}

fn decode_row<K: RowKey>(
    store: &Store,
    table: &Table<ByTime<K>, impl StateValue>,
    bytes: &[u8],
) -> Result<(i64, K), StateError> {
    ByTime::<K>::decode(bytes).map_err(|source| StateError::Row {
        state: store.state_name(table.state()),
        key: hex(bytes),
        source,
    })
}
