//! Folds: one value a key, changed by each record, and a result for each record.

use crate::event::Event;
use crate::logic::{Context, Logic, TableVisitor};
use std::marker::PhantomData;
use tidegate_state::backend::StateName;
use tidegate_state::codec::StateValue;
use tidegate_state::error::StateError;
use tidegate_state::row::{ByKey, RowKey};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{Slot, StateTable, Table};

/// A running fold: `step` changes the key's value by a record's, and makes the result that is
/// issued at the record's time.
pub struct Fold<K, V, A, O, I, F>
where
    K: RowKey,
    A: StateValue,
{
    table: Table<ByKey<K>, A>,
    init: I,
    step: F,
    types: PhantomData<fn(V) -> O>,
}

impl<K, V, A, O, I, F> Fold<K, V, A, O, I, F>
where
    K: RowKey,
    A: StateValue,
    I: Fn() -> A,
    F: FnMut(&mut A, V) -> O,
{
    /// A fold that keeps its values under `name`; `init` makes the value of a key that is new.
    ///
    /// # Errors
    /// Those of [`Store::open_state`].
    pub fn open(
        store: &Store,
        name: &StateName,
        strategy: ReadStrategy,
        init: I,
        step: F,
    ) -> Result<Self, StateError> {
        Ok(Fold { table: Table::open(store, name, strategy)?, init, step, types: PhantomData })
    }
}

impl<K, V, A, O, I, F> Logic for Fold<K, V, A, O, I, F>
where
    K: RowKey,
    A: StateValue,
    I: Fn() -> A,
    F: FnMut(&mut A, V) -> O,
{
    type Key = K;
    type Input = V;
    type Output = (K, O);
    type Reads = Slot;

    #[inline]
    fn declare(&mut self, event: &Event<(K, V)>) -> Slot {
        self.table.request(&event.data.0)
    }

    #[inline]
    fn apply(
        &mut self,
        event: Event<(K, V)>,
        slot: Slot,
        context: &mut Context<'_, (K, O)>,
    ) -> Result<(), StateError> {
        let Event { time, rank, data: (key, value) } = event;
        let state = self.table.get_mut(slot).get_or_insert_with(&self.init);
        let result = (self.step)(state, value);
        context.outputs.push(Event { time, rank, data: (key, result) });
        Ok(())
    }

    fn for_each_table(&mut self, visit: &mut TableVisitor<'_>) -> Result<(), StateError> {
        visit(&mut self.table as &mut dyn StateTable)
    }
}
