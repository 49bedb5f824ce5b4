//! One value a key.

use super::Scope;
use crate::codec::StateValue;
use crate::error::StateError;
use crate::row::{ByKey, RowKey};
use crate::table::Table;
use std::cell::RefCell;
use std::rc::Rc;

/// The current key's value.
pub struct ValueState<K: RowKey, V> {
    pub(super) scope: Rc<Scope<K>>,
    pub(super) table: Rc<RefCell<Table<ByKey<K>, V>>>,
}

impl<K: RowKey, V: StateValue> ValueState<K, V> {
    /// Declares that the current key's value will be needed.
    pub fn declare(&self) {
        self.table.borrow_mut().request(&self.scope.key());
    }

    /// Shows the value, if there is one.
    ///
    /// # Errors
    /// [`StateError`] where it was not declared and cannot be read.
    pub fn with<R>(&self, look: impl FnOnce(Option<&V>) -> R) -> Result<R, StateError> {
        let mut table = self.table.borrow_mut();
        let slot = table.fetch(&self.scope.key(), &self.scope.store)?;
        Ok(look(table.get(slot)))
    }

    /// A copy of the value, if there is one.
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn get(&self) -> Result<Option<V>, StateError>
    where
        V: Clone,
    {
        self.with(|value| value.cloned())
    }

    /// Changes the value, sets it, or takes it away.
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn update<R>(&self, change: impl FnOnce(&mut Option<V>) -> R) -> Result<R, StateError> {
        let mut table = self.table.borrow_mut();
        let slot = table.fetch(&self.scope.key(), &self.scope.store)?;
        Ok(change(table.get_mut(slot)))
    }

    /// Sets the value.
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn set(&self, value: V) -> Result<(), StateError> {
        self.update(|old| *old = Some(value))
    }

    /// Takes the value away.
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn clear(&self) -> Result<(), StateError> {
        self.update(|old| *old = None)
    }
}
