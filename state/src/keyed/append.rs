//! A list a key that is appended to without being read.

use super::Scope;
use crate::codec::StateValue;
use crate::error::StateError;
use crate::row::{ByKey, RowKey};
use crate::table::{Appended, Table};
use std::cell::RefCell;
use std::rc::Rc;

/// The current key's list, for logic that appends often and reads seldom. It lies in one row, of
/// [pieces](crate::codec::decode_pieces); an append adds a piece to it and reads nothing, and a
/// read reads all of it. A list that is read at every record is as well a
/// [`ListState`](super::ListState).
pub struct AppendState<K: RowKey, V> {
    pub(super) scope: Rc<Scope<K>>,
    pub(super) table: Rc<RefCell<Table<ByKey<K>, Appended<V>>>>,
}

impl<K: RowKey, V: StateValue> AppendState<K, V> {
    /// Declares that the current key's list will be read. Who only appends to it or clears it
    /// need not, and should not: what is declared is read.
    pub fn declare(&self) {
        self.table.borrow_mut().request(&self.scope.key());
    }

    /// Appends a value. (A value that takes no byte when it is stored, as `()` does, is refused
    /// when the list is written.)
    ///
    /// # Errors
    /// [`StateError`] where a read of the list is under way in another thread, and fails.
    pub fn push(&self, value: V) -> Result<(), StateError> {
        let mut table = self.table.borrow_mut();
        table.append_to(&self.scope.key(), &self.scope.store)?.elements.push(value);
        Ok(())
    }

    /// Shows the list; it is empty where there is none.
    ///
    /// # Errors
    /// [`StateError`] where the list was not declared and cannot be read.
    pub fn with<R>(&self, look: impl FnOnce(&[V]) -> R) -> Result<R, StateError> {
        let mut table = self.table.borrow_mut();
        let slot = table.fetch(&self.scope.key(), &self.scope.store)?;
        Ok(look(table.get(slot).map_or(&[], |list| &list.elements)))
    }

    /// Takes the list away and gives it out; it is empty where there is none.
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn take(&self) -> Result<Vec<V>, StateError> {
        let mut table = self.table.borrow_mut();
        let slot = table.fetch(&self.scope.key(), &self.scope.store)?;
        // What is not there need not be taken away.
        if table.get(slot).is_none() {
            return Ok(Vec::new());
        }
        Ok(table.get_mut(slot).take().map_or_else(Vec::new, |list| list.elements))
    }

    /// Takes the list away, without reading it.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn clear(&self) -> Result<(), StateError> {
        self.table.borrow_mut().remove(&self.scope.key(), &self.scope.store)
    }
}
