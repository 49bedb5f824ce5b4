//! Changes without a look at what is there: appends, and taking away.
//!
//! A row that is not at hand gets a cell that holds a *tail*: what was appended since the row was
//! last written, while nobody knows what was there before. A tail is written as an append. Who
//! asks for such a row reads what the store has, and the tail is joined to it: from then on the
//! cell is what the row is. What was there before a tail may be read at any time, as nothing else
//! writes the row while it has a cell.

use super::Table;
use super::cells::{Cell, Status};
use super::value::CellValue;
use crate::codec::CodecError;
use crate::error::StateError;
use crate::row::Layout;
use crate::store::Store;

impl<L: Layout, V: CellValue> Table<L, V> {
    /// What is to be appended to a row goes to the end of this value: the row's own value where
    /// that is at hand, else a tail. Nothing is read; but where the row is on its way from a
    /// reader thread, its answer is waited for.
    ///
    /// # Errors
    /// [`StateError`] where a read that is under way fails.
    pub fn append_to(&mut self, row: &L::Row, store: &Store) -> Result<&mut V, StateError>
    where
        V: Default,
    {
        // Without this, the bytes of a tail would not be those of a row's end.
        const { assert!(V::APPENDS, "a value that can be appended to") };
        let slot = self.unread(row, store)?;
        let cell = self.cells.get_mut(slot);
        match cell.status {
            Status::Clean => self.mark(slot, Status::Changed),
            Status::Wanted => self.mark(slot, Status::Tail),
            _ => {}
        }
        Ok(self.cells.get_mut(slot).value.get_or_insert_default())
    }

    /// Takes a row's value away, whatever it is. Nothing is read, as for
    /// [`append_to`](Self::append_to).
    ///
    /// # Errors
    /// As for [`append_to`](Self::append_to).
    pub fn remove(&mut self, row: &L::Row, store: &Store) -> Result<(), StateError> {
        let slot = self.unread(row, store)?;
        let cell = self.cells.get_mut(slot);
        cell.value = None;
        // What nobody has looked for may be there.
        cell.stored |= !cell.status.is_at_hand();
        if cell.status != Status::Changed {
            self.mark(slot, Status::Changed);
        }
        Ok(())
    }

    fn mark(&mut self, slot: u32, status: Status) {
        self.cells.get_mut(slot).status = status;
        self.changed.push(slot);
    }

    /// The cell of a row: at hand, or a tail, or waiting for nothing.
    fn unread(&mut self, row: &L::Row, store: &Store) -> Result<u32, StateError> {
        let (slot, new) = self.cells.find_or_insert(row);
        let cell = self.cells.get_mut(slot);
        cell.recent = true;
        if new && !self.may_be_stored {
            cell.status = Status::Clean;
        }
        match cell.status {
            Status::Wanted if cell.ahead => {
                // No thread has it yet, so it need not be waited for. Whoever asks for it later
                // reads it then.
                cell.ahead = false;
                self.ahead.rows -= 1;
                self.ahead.wasted += 1;
                // It was declared while this release was under way, and not by it.
                cell.release = 0;
            }
            // The release will read it: so it must do so before the row changes.
            Status::Wanted if cell.release == self.release => self.fetch_missing(slot, store)?,
            Status::Requested => self.wait_for(slot, store)?,
            _ => {}
        }
        Ok(slot)
    }
}

/// Puts what was read of a row into its cell, before its tail if it has one. Tells whether the
/// row changed by that, and is to be written.
pub(super) fn fill<R, V: CellValue>(cell: &mut Cell<R, V>, bytes: Option<&[u8]>) -> Result<bool, CodecError> {
    cell.stored = bytes.is_some();
    let mut value = bytes.map(V::decode).transpose()?;
    let mut changed = false;
    if V::APPENDS {
        changed = value.as_ref().is_some_and(V::should_fold);
        if let Some(tail) = cell.value.take() {
            changed = true;
            match &mut value {
                Some(value) => value.join(tail),
                None => value = Some(tail),
            }
        }
    }
    cell.value = value;
    cell.status = if changed { Status::Changed } else { Status::Clean };
    Ok(changed)
}
