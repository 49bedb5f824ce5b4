//! How the changes of a table get out, how large its rows are, and which of them it gives up.

use super::cells::{Cell, Cells, Status};
use super::reading::RELEASES_AHEAD;
use super::value::CellValue;
use super::{Table, value_error};
use crate::backend::StateId;
use crate::batch::ChangeBatch;
use crate::error::StateError;
use crate::row::Layout;
use crate::store::Store;

/// One change in so many is encoded to learn how large values are.
const MEASURE_EVERY: u32 = 64;
/// Weight of a new measurement in the running mean.
const MEASURE_WEIGHT: f64 = 1.0 / 128.0;
/// When rows are given up, so many at least, so that they are written in batches.
const LEAST_VICTIMS_SHARE: usize = 32;
/// Rows are written in batches of about this size: they are in memory up to three times until
/// they are written.
const BATCH_BYTES: usize = 1 << 20;

impl<L: Layout, V: CellValue> Table<L, V> {
    /// Adds all changes to a batch, and takes them for written.
    pub(super) fn write_changes(&mut self, store: &Store, batch: &mut ChangeBatch) -> Result<(), StateError> {
        for &slot in &self.changed {
            let cell = self.cells.get_mut(slot);
            write_cell::<L, V>(self.state, cell, store, &mut self.scratch, batch)?;
        }
        self.rows_written += self.changed.len() as u64;
        self.changed.clear();
        Ok(())
    }

    /// Writes all changes to the store.
    pub(super) fn write_all(&mut self, store: &Store) -> Result<(), StateError> {
        if V::APPENDS {
            self.wait_for_tails(store)?;
        }
        let changed = std::mem::take(&mut self.changed);
        for &slot in &changed {
            let cell = self.cells.get_mut(slot);
            let is_unasked_tail = cell.status == Status::Tail && cell.release != self.release;
            write_cell::<L, V>(self.state, cell, store, &mut self.scratch, &mut self.written)?;
            if is_unasked_tail {
                // Nothing is known of the row any more, and nobody waits for it.
                self.cells.remove(slot);
            }
            if self.written.total_bytes() > BATCH_BYTES {
                self.commit_written(store)?;
            }
        }
        self.commit_written(store)?;
        self.changed = changed;
        self.changed.clear();
        self.changes_seen = 0;
        Ok(())
    }

    /// Waits for the rows that are on their way to be joined with a tail: those cannot be written
    /// before.
    fn wait_for_tails(&mut self, store: &Store) -> Result<(), StateError> {
        for place in 0..self.changed.len() {
            self.wait_for(self.changed[place], store)?;
        }
        Ok(())
    }

    fn commit_written(&mut self, store: &Store) -> Result<(), StateError> {
        self.may_be_stored |= !self.written.is_empty();
        self.rows_written += self.written.len() as u64;
        store.commit(&mut self.written)
    }

    /// Learns how much rows and values own beside their cells. Rows without a value say nothing
    /// here: they are about to get one, most often.
    pub(super) fn measured(&mut self, row_bytes: usize, value_bytes: usize) {
        // What fits into the cell is in the cell; the rest is on the heap, about as long as it is
        // when encoded.
        let owned = row_bytes.saturating_sub(size_of::<L::Row>() + 4)
            + value_bytes.saturating_sub(size_of::<Option<V>>());
        let weight = if self.owned_bytes == 0.0 { 1.0 } else { MEASURE_WEIGHT };
        self.owned_bytes += weight * (owned as f64 - self.owned_bytes);
    }

    /// Measures a row that changed, one in so many.
    pub(super) fn measure_changes(&mut self, store: &Store) -> Result<(), StateError> {
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
            value
                .encode_into(&mut self.scratch)
                .map_err(|source| value_error(store, self.state, &self.scratch[..row_bytes], source))?;
            let value_bytes = self.scratch.len() - row_bytes;
            self.measured(row_bytes, value_bytes);
        }
        self.changes_seen = since;
        Ok(())
    }

    pub(super) fn row_bytes(&self) -> usize {
        Cells::<L::Row, V>::cell_bytes() + self.owned_bytes as usize
    }

    fn account(&mut self) {
        let bytes = self.cells.len() * self.row_bytes();
        self.budget.account(self.accounted_bytes, bytes);
        self.accounted_bytes = bytes;
    }

    /// The first release whose rows read ahead are still waited for.
    fn oldest_ahead(&self) -> u32 {
        self.release.saturating_sub(RELEASES_AHEAD)
    }

    /// Gives up rows that are beyond the budget, those that are about to be read included; but
    /// none that the release under way, if there is one, has asked for.
    pub(super) fn shrink(&mut self, under_way: Option<u32>, store: &Store) -> Result<(), StateError> {
        self.account();
        let excess = self.budget.excess_rows(self.cells.len(), self.row_bytes());
        if excess == 0 {
            return Ok(());
        }
        let count = excess.max(self.cells.len() / LEAST_VICTIMS_SHARE);
        let oldest_ahead = self.oldest_ahead();
        self.victims.clear();
        self.cells.pick_victims(count, under_way, oldest_ahead, &mut self.victims);
        // Written before they are forgotten: whoever asks for them next reads them.
        let victims = std::mem::take(&mut self.victims);
        for &slot in &victims {
            let cell = self.cells.get_mut(slot);
            write_cell::<L, V>(self.state, cell, store, &mut self.scratch, &mut self.written)?;
            if self.written.total_bytes() > BATCH_BYTES {
                self.commit_written(store)?;
            }
        }
        self.commit_written(store)?;
        self.victims = victims;
        for &slot in &self.victims {
            let wasted = usize::from(self.cells.get(slot).ahead);
            self.ahead.rows -= wasted;
            self.ahead.wasted += wasted as u64;
            self.cells.remove(slot);
        }
        let given_up = self.victims.len() as u64;
        store.count(self.state, |statistics| statistics.rows_given_up += given_up);
        self.forget_stale_changes();
        Ok(())
    }

    /// After cells were freed: shortens the list of changes where most of it is stale, and
    /// brings the account up to date.
    pub(super) fn forget_stale_changes(&mut self) {
        if self.changed.len() > 2 * self.cells.len() + 1024 {
            let cells = &self.cells;
            // Who waits for a row to join its tail to is not in the list: it comes back with it.
            self.changed.retain(|&slot| matches!(cells.get(slot).status, Status::Changed | Status::Tail));
            self.changed.sort_unstable();
            self.changed.dedup();
            self.changes_seen = self.changed.len() as u32;
        }
        self.account();
    }

    /// Gives up all rows but those that were read ahead and are still waited for. Their changes
    /// are collected.
    pub(super) fn forget(&mut self) {
        debug_assert!(self.changed.is_empty(), "changes are collected before a release ends");
        debug_assert!(self.wanted.is_empty() && self.awaited == 0, "a release is loaded before it ends");
        if self.ahead.rows == 0 {
            self.cells.clear();
            self.ahead.wanted.clear();
            return;
        }
        let oldest = self.oldest_ahead();
        let mut wasted = 0;
        self.cells.retain(|cell| {
            if !cell.ahead {
                return false;
            }
            // An answer must find its cell.
            let stays = cell.release >= oldest || cell.status != Status::Clean;
            wasted += usize::from(!stays);
            stays
        });
        self.ahead.rows -= wasted;
        self.ahead.wasted += wasted as u64;
    }
}

/// Adds a cell's change to a batch, if there is one, and takes it for written.
fn write_cell<L: Layout, V: CellValue>(
    state: StateId,
    cell: &mut Cell<L::Row, V>,
    store: &Store,
    scratch: &mut Vec<u8>,
    batch: &mut ChangeBatch,
) -> Result<(), StateError> {
    if cell.status != Status::Changed {
        return if V::APPENDS { write_tail::<L, V>(state, cell, store, scratch, batch) } else { Ok(()) };
    }
    scratch.clear();
    L::encode(&cell.row, store.groups(), scratch);
    match &cell.value {
        Some(value) => batch
            .put_with(state, scratch, |bytes| value.encode_into(bytes))
            .map_err(|source| value_error(store, state, scratch, source))?,
        None if cell.stored => batch.delete(state, scratch),
        None => {}
    }
    cell.stored = cell.value.is_some();
    cell.status = Status::Clean;
    Ok(())
}

/// Adds a cell's tail to a batch, if there is one. Nothing is known of the row then.
fn write_tail<L: Layout, V: CellValue>(
    state: StateId,
    cell: &mut Cell<L::Row, V>,
    store: &Store,
    scratch: &mut Vec<u8>,
    batch: &mut ChangeBatch,
) -> Result<(), StateError> {
    if cell.status != Status::Tail {
        return Ok(());
    }
    scratch.clear();
    L::encode(&cell.row, store.groups(), scratch);
    if let Some(tail) = cell.value.take() {
        batch
            .append_with(state, scratch, |bytes| tail.encode_into(bytes))
            .map_err(|source| value_error(store, state, scratch, source))?;
    }
    cell.status = Status::Wanted;
    Ok(())
}
