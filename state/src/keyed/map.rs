//! A map from entries to values a key, each entry in a row of its own.

use super::Scope;
use crate::codec::{self, StateValue};
use crate::error::{StateError, hex};
use crate::row::{ByEntry, Layout, RowKey, after_prefix};
use crate::table::{Slot, StateTable, Table};
use std::cell::{RefCell, RefMut};
use std::ops::ControlFlow;
use std::rc::Rc;

/// The current key's map.
pub struct MapState<K: RowKey, E: RowKey, V> {
    pub(super) scope: Rc<Scope<K>>,
    pub(super) table: Rc<RefCell<Table<ByEntry<K, E>, V>>>,
}

impl<K: RowKey, E: RowKey, V: StateValue> MapState<K, E, V> {
    /// Declares that an entry of the current key's map will be needed.
    pub fn declare(&self, entry: &E) {
        self.table.borrow_mut().request(&self.row(entry));
    }

    /// Shows an entry's value, if there is one.
    ///
    /// # Errors
    /// [`StateError`] where the entry was not declared and cannot be read.
    pub fn with<R>(&self, entry: &E, look: impl FnOnce(Option<&V>) -> R) -> Result<R, StateError> {
        let (table, slot) = self.fetch(entry)?;
        Ok(look(table.get(slot)))
    }

    /// A copy of an entry's value, if there is one.
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn get(&self, entry: &E) -> Result<Option<V>, StateError>
    where
        V: Clone,
    {
        self.with(entry, |value| value.cloned())
    }

    /// Changes an entry's value, sets it, or takes it away.
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn update<R>(&self, entry: &E, change: impl FnOnce(&mut Option<V>) -> R) -> Result<R, StateError> {
        let (mut table, slot) = self.fetch(entry)?;
        Ok(change(table.get_mut(slot)))
    }

    /// Sets an entry.
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn set(&self, entry: &E, value: V) -> Result<(), StateError> {
        self.update(entry, |old| *old = Some(value))
    }

    /// Takes an entry away.
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn remove(&self, entry: &E) -> Result<(), StateError> {
        self.update(entry, |old| *old = None)
    }

    /// All entries, in their order. This is a scan of the store, after what the release has
    /// changed so far was written to it.
    ///
    /// # Errors
    /// [`StateError`] where the store cannot be written or read.
    pub fn entries(&self) -> Result<Vec<(E, V)>, StateError> {
        let (table, store) = (&mut *self.table.borrow_mut(), &*self.scope.store);
        table.flush(store)?;
        let mut prefix = Vec::new();
        ByEntry::<K, E>::encode_prefix(&self.scope.key(), store.groups(), &mut prefix);
        let mut entries = Vec::new();
        let mut failed = None;
        store.scan(table.state(), &prefix, after_prefix(&prefix).as_deref(), &mut |row, value| {
            let name = || store.state_name(table.state());
            let decoded = ByEntry::<K, E>::decode(row)
                .map_err(|source| StateError::Row { state: name(), key: hex(row), source })
                .and_then(|(_, entry)| match codec::decode(value) {
                    Ok(value) => Ok((entry, value)),
                    Err(source) => Err(StateError::Value { state: name(), key: hex(row), source }),
                });
            match decoded {
                Ok(entry) => entries.push(entry),
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(entries), Err)
    }

    /// Takes all entries away.
    ///
    /// # Errors
    /// As for [`entries`](Self::entries).
    pub fn clear(&self) -> Result<(), StateError> {
        for (entry, _) in self.entries()? {
            self.remove(&entry)?;
        }
        Ok(())
    }

    fn row(&self, entry: &E) -> (K, E) {
        (self.scope.key().clone(), entry.clone())
    }

    #[allow(clippy::type_complexity)]
    fn fetch(&self, entry: &E) -> Result<(RefMut<'_, Table<ByEntry<K, E>, V>>, Slot), StateError> {
        let mut table = self.table.borrow_mut();
        let slot = table.fetch(&self.row(entry), &self.scope.store)?;
        Ok((table, slot))
    }
}
