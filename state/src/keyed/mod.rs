//! States of the current key (value, list, append, map) and its timers, for logic that keeps more than
//! one of them.
//!
//! A process function opens its states once, by name, through [`States`], and afterwards speaks
//! of "the value" and "the entry": of which key is set by its driver, record by record, in a
//! [`Scope`] that all its states share. (The model is that of Flink's keyed state.)
//!
//! Every read can be declared before the release is read, and then joins the batch. A read that
//! was not declared works as well; it costs a get of its own and is counted.

mod append;
mod list;
mod map;
mod timers;
mod value;

pub use append::AppendState;
pub use list::ListState;
pub use map::MapState;
pub use timers::{DueTimer, TimerQueue, Timers};
pub use value::ValueState;

use crate::backend::StateName;
use crate::codec::StateValue;
use crate::error::StateError;
use crate::row::{Layout, RowKey};
use crate::store::Store;
use crate::strategy::ReadStrategy;
use crate::table::{CellValue, StateTable, Table, TimeTable};
use std::cell::{Ref, RefCell};
use std::rc::Rc;

/// What the states of one operator share: the store, and whose turn it is.
pub struct Scope<K> {
    store: Rc<Store>,
    key: RefCell<Option<K>>,
}

impl<K> Scope<K> {
    /// Says whose state is meant from here on.
    pub fn set_key(&self, key: K) {
        *self.key.borrow_mut() = Some(key);
    }

    /// The current key.
    fn key(&self) -> Ref<'_, K> {
        // The driver sets a key before it calls any logic, and states are used in logic only.
        Ref::map(self.key.borrow(), |key| key.as_ref().expect("the driver has set a key"))
    }
}

/// The tables behind an operator's states, for its driver.
pub type SharedTable = Rc<RefCell<dyn StateTable>>;

/// Opens the states of one operator.
pub struct States<K: RowKey> {
    operator: String,
    strategy: ReadStrategy,
    scope: Rc<Scope<K>>,
    tables: Vec<SharedTable>,
    timers: Option<SharedTimers<K>>,
}

/// The timers of an operator, for its driver.
pub type SharedTimers<K> = Rc<RefCell<TimerQueue<K>>>;

/// What a driver needs of the states of an operator.
pub struct StateParts<K: RowKey> {
    /// Says whose turn it is.
    pub scope: Rc<Scope<K>>,
    /// Every table that was opened, but for that of the timers.
    pub tables: Vec<SharedTable>,
    /// Timers, where there are any.
    pub timers: Option<SharedTimers<K>>,
    /// How the states are read.
    pub strategy: ReadStrategy,
}

impl<K: RowKey> States<K> {
    /// For the operator of this name.
    pub fn new(store: Rc<Store>, operator: &str, strategy: ReadStrategy) -> Self {
        States {
            operator: operator.to_string(),
            strategy,
            scope: Rc::new(Scope { store, key: RefCell::new(None) }),
            tables: Vec::new(),
            timers: None,
        }
    }

    /// One value a key.
    ///
    /// # Errors
    /// [`StateError`] where the name is bad or taken, or the store fails.
    pub fn value<V: StateValue>(&mut self, name: &str) -> Result<ValueState<K, V>, StateError> {
        Ok(ValueState { scope: Rc::clone(&self.scope), table: self.open(name)? })
    }

    /// A list of values a key.
    ///
    /// # Errors
    /// [`StateError`] where the name is bad or taken, or the store fails.
    pub fn list<V: StateValue>(&mut self, name: &str) -> Result<ListState<K, V>, StateError> {
        Ok(ListState { value: self.value(name)? })
    }

    /// A list of values a key that is appended to without being read.
    ///
    /// # Errors
    /// [`StateError`] where the name is bad or taken, or the store fails.
    pub fn append<V: StateValue>(&mut self, name: &str) -> Result<AppendState<K, V>, StateError> {
        Ok(AppendState { scope: Rc::clone(&self.scope), table: self.open(name)? })
    }

    /// A map from entries to values a key.
    ///
    /// # Errors
    /// [`StateError`] where the name is bad or taken, or the store fails.
    pub fn map<E: RowKey, V: StateValue>(&mut self, name: &str) -> Result<MapState<K, E, V>, StateError> {
        Ok(MapState { scope: Rc::clone(&self.scope), table: self.open(name)? })
    }

    /// Timers of each key. An operator has one set of them, in its state `timers`; who asks again gets
    /// the same.
    ///
    /// # Errors
    /// [`StateError`] where a state of the operator is called `timers`, or the store fails.
    pub fn timers(&mut self) -> Result<Timers<K>, StateError> {
        let queue = match &self.timers {
            Some(queue) => Rc::clone(queue),
            None => {
                let name = StateName::new(&self.operator, "timers")?;
                let table = TimeTable::open(&self.scope.store, &name, self.strategy)?;
                Rc::clone(self.timers.insert(Rc::new(RefCell::new(TimerQueue::new(table)))))
            }
        };
        Ok(Timers { scope: Rc::clone(&self.scope), queue })
    }

    /// What the driver needs.
    pub fn into_parts(self) -> StateParts<K> {
        StateParts { scope: self.scope, tables: self.tables, timers: self.timers, strategy: self.strategy }
    }

    fn open<L: Layout, V: CellValue>(&mut self, name: &str) -> Result<Rc<RefCell<Table<L, V>>>, StateError> {
        let name = StateName::new(&self.operator, name)?;
        let table = Table::open(&self.scope.store, &name, self.strategy)?;
        let table = Rc::new(RefCell::new(table));
        self.tables.push(Rc::clone(&table) as SharedTable);
        Ok(table)
    }
}
