//! A list of values a key.

use super::ValueState;
use crate::codec::StateValue;
use crate::error::StateError;
use crate::row::RowKey;

/// The current key's list. It lies in one row, which is read and written whole: meant for lists
/// of tens of values, not of thousands.
pub struct ListState<K: RowKey, V> {
    pub(super) value: ValueState<K, Vec<V>>,
}

impl<K: RowKey, V: StateValue> ListState<K, V> {
    /// Declares that the current key's list will be needed.
    pub fn declare(&self) {
        self.value.declare();
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`StateError`] where the list was not declared and cannot be read.
    pub fn push(&self, value: V) -> Result<(), StateError> {
        self.value.update(|list| list.get_or_insert_default().push(value))
    }

    /// Shows the list; it is empty where there is none.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn with<R>(&self, look: impl FnOnce(&[V]) -> R) -> Result<R, StateError> {
        self.value.with(|list| look(list.map_or(&[], |list| list)))
    }

    /// Changes the list; one that is left empty is taken away.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn update<R>(&self, change: impl FnOnce(&mut Vec<V>) -> R) -> Result<R, StateError> {
        self.value.update(|list| {
            let result = change(list.get_or_insert_default());
            if list.as_ref().is_some_and(Vec::is_empty) {
                *list = None;
            }
            result
        })
    }

    /// Takes the list away.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn clear(&self) -> Result<(), StateError> {
        self.value.clear()
    }
}
