//! One worker's store: a backend, with what every use of it needs around it.

use crate::arena::KeyArena;
use crate::backend::{Backend, BatchReadError, RowVisitor, StateId, StateName, StateReader, WritePressure};
use crate::batch::{Change, ChangeBatch};
use crate::error::{BackendError, StateError, hex};
use crate::group::KeyGroups;
use crate::planner::{PlanReport, ReadPlanner};
use crate::readers::{ReaderOptions, ReaderPool};
use crate::statistics::AccessStatistics;
use crate::table::CacheBudget;
use std::cell::{Cell, Ref, RefCell};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct OpenState {
    name: StateName,
    statistics: AccessStatistics,
    planner: Option<Rc<RefCell<ReadPlanner>>>,
}

/// A worker's store, shared by the operators of the worker.
///
/// Adds three things to a [`Backend`]: errors that name the state and the key, statistics of
/// every access, and poison: after a failed commit nobody knows what is in the store, so nothing
/// more is read from it or written to it.
pub struct Store {
    /// Before the backend, as it ends before it: no thread reads from a store that is closing.
    readers: ReaderPool,
    reader_options: ReaderOptions,
    backend: RefCell<Box<dyn Backend>>,
    states: RefCell<Vec<OpenState>>,
    poison: RefCell<Option<String>>,
    groups: KeyGroups,
    cache: Rc<CacheBudget>,
    /// When the budget was last told how much the backend's indexes take.
    indexes_asked: Cell<Instant>,
    location: String,
}

/// How often the budget is told how much the backend's indexes take. They grow when files are made.
const ASK_INDEXES_EVERY: Duration = Duration::from_secs(1);

impl Store {
    /// A store around a backend.
    pub fn new(backend: impl Backend + 'static, groups: KeyGroups) -> Self {
        let location = backend.location();
        Store {
            readers: ReaderPool::new(0),
            reader_options: ReaderOptions::default(),
            backend: RefCell::new(Box::new(backend)),
            states: RefCell::new(Vec::new()),
            poison: RefCell::new(None),
            groups,
            cache: Rc::default(),
            indexes_asked: Cell::new(Instant::now()),
            location,
        }
    }

    /// The same store with memory for decoded values; without it, no table keeps any beyond a
    /// release.
    pub fn with_cache(self, budget: CacheBudget) -> Self {
        Store { cache: Rc::new(budget), ..self }
    }

    /// The same store with reader threads. Without it there are none, and every read is done by
    /// the worker.
    pub fn with_readers(self, options: ReaderOptions) -> Self {
        Store { readers: ReaderPool::new(options.threads), reader_options: options, ..self }
    }

    /// The threads that read beside the worker.
    pub fn readers(&self) -> &ReaderPool {
        &self.readers
    }

    /// A way to read a state from those threads, where the backend has one.
    pub fn reader(&self, state: StateId) -> Option<Arc<dyn StateReader>> {
        self.backend.borrow().reader(state)
    }

    /// How those threads are used.
    pub fn reader_options(&self) -> ReaderOptions {
        self.reader_options
    }

    /// Whether the backend's batched reads are more than gets in a row.
    pub fn reads_in_batches(&self) -> bool {
        self.backend.borrow().reads_in_batches()
    }

    /// Memory for decoded values, shared by the tables of this store.
    pub fn cache_budget(&self) -> Rc<CacheBudget> {
        Rc::clone(&self.cache)
    }

    /// The job's key groups.
    pub fn groups(&self) -> KeyGroups {
        self.groups
    }

    /// Where the store lies.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Opens a state, made if it is not there.
    ///
    /// # Errors
    /// [`StateError`] where the name is taken by another operator of this job, or the backend
    /// fails.
    pub fn open_state(&self, name: &StateName) -> Result<StateId, StateError> {
        self.check_poison()?;
        if self.states.borrow().iter().any(|state| state.name == *name) {
            return Err(StateError::Name {
                name: name.to_string(),
                reason: "two states of the job have this name; give one of the operators another name",
            });
        }
        let state = self
            .backend
            .borrow_mut()
            .open_state(name)
            .map_err(|source| StateError::Open { directory: self.location.clone().into(), source })?;
        // Backends number states as they are opened, so the number is the place in the list.
        debug_assert_eq!(state.0 as usize, self.states.borrow().len());
        self.states.borrow_mut().push(OpenState {
            name: name.clone(),
            statistics: AccessStatistics::default(),
            planner: None,
        });
        Ok(state)
    }

    /// The name of a state, for messages.
    pub fn state_name(&self, state: StateId) -> String {
        self.states.borrow()[state.0 as usize].name.to_string()
    }

    /// Statistics of each state, by name.
    pub fn statistics(&self) -> Vec<(StateName, AccessStatistics)> {
        self.states.borrow().iter().map(|state| (state.name.clone(), state.statistics)).collect()
    }

    /// Lets the store report what a state's planner chooses.
    pub fn set_planner(&self, state: StateId, planner: Rc<RefCell<ReadPlanner>>) {
        self.states.borrow_mut()[state.0 as usize].planner = Some(planner);
    }

    /// How the reads of each state were carried out, and why, by name.
    pub fn plan_reports(&self) -> Vec<(StateName, PlanReport)> {
        let states = self.states.borrow();
        let planned = states.iter().filter_map(|state| Some((state, state.planner.as_ref()?)));
        planned.map(|(state, planner)| (state.name.clone(), planner.borrow().report())).collect()
    }

    /// Changes the statistics of a state.
    pub fn count(&self, state: StateId, change: impl FnOnce(&mut AccessStatistics)) {
        change(&mut self.states.borrow_mut()[state.0 as usize].statistics);
    }

    /// Reads one row; shows its value to `visit` where there is one, and tells whether there is.
    /// Also tells what it took.
    ///
    /// # Errors
    /// [`StateError::Read`] or [`StateError::Poisoned`].
    pub fn get(
        &self,
        state: StateId,
        key: &[u8],
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(bool, Duration), StateError> {
        self.check_poison()?;
        let started = Instant::now();
        let mut bytes_read = 0;
        let found = self
            .backend
            .borrow()
            .get(state, key, &mut |value| {
                bytes_read += value.len() as u64;
                visit(value);
            })
            .map_err(|source| self.read_error(state, hex(key), source))?;
        let took = started.elapsed();
        self.count(state, |statistics| {
            statistics.get_calls += 1;
            statistics.keys_read += 1;
            statistics.keys_found += u64::from(found);
            statistics.bytes_read += bytes_read;
            statistics.read_ns += took.as_nanos() as u64;
        });
        Ok((found, took))
    }

    /// Reads many rows in one call; shows every answer to `visit` with its position. `keys` is
    /// sorted and has no repeats. Tells what it took. (Where the backend cannot read in batches,
    /// it is a call for each key, and counted as such.)
    ///
    /// # Errors
    /// [`StateError::Read`] or [`StateError::Poisoned`].
    pub fn multi_get(
        &self,
        state: StateId,
        keys: &KeyArena,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<Duration, StateError> {
        self.check_poison()?;
        if keys.is_empty() {
            return Ok(Duration::ZERO);
        }
        let started = Instant::now();
        let (mut found, mut bytes_read) = (0, 0);
        self.backend
            .borrow()
            .multi_get(state, keys, &mut |index, value| {
                if let Some(value) = value {
                    found += 1;
                    bytes_read += value.len() as u64;
                }
                visit(index, value);
            })
            .map_err(|failure| self.batch_error(state, keys, failure))?;
        let took = started.elapsed();
        self.count_batch(state, keys.len() as u64, found, bytes_read);
        self.count(state, |statistics| statistics.read_ns += took.as_nanos() as u64);
        Ok(took)
    }

    /// Counts a batched read, without its time.
    pub(crate) fn count_batch(&self, state: StateId, keys: u64, found: u64, bytes_read: u64) {
        let batched = self.reads_in_batches();
        self.count(state, |statistics| {
            if batched {
                statistics.multi_get_calls += 1;
            } else {
                statistics.get_calls += keys;
            }
            statistics.keys_read += keys;
            statistics.keys_found += found;
            statistics.bytes_read += bytes_read;
        });
    }

    /// A failed batched read, with the names that the backend does not know.
    pub(crate) fn batch_error(&self, state: StateId, keys: &KeyArena, failure: BatchReadError) -> StateError {
        let key = match failure.index {
            Some(index) => hex(keys.get(index)),
            None => format!("(batch of {} keys)", keys.len()),
        };
        self.read_error(state, key, failure.error)
    }

    /// Shows the rows of a range to `visit`, in order, until it says stop.
    ///
    /// # Errors
    /// [`StateError::Read`] or [`StateError::Poisoned`].
    pub fn scan(
        &self,
        state: StateId,
        lower: &[u8],
        upper: Option<&[u8]>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), StateError> {
        self.check_poison()?;
        let started = Instant::now();
        let (mut rows, mut bytes_read) = (0, 0);
        self.backend
            .borrow()
            .scan(state, lower, upper, &mut |key, value| {
                rows += 1;
                bytes_read += value.len() as u64;
                visit(key, value)
            })
            .map_err(|source| self.read_error(state, format!("(scan from {})", hex(lower)), source))?;
        self.count(state, |statistics| {
            statistics.scan_calls += 1;
            statistics.rows_scanned += rows;
            statistics.bytes_read += bytes_read;
            statistics.read_ns += started.elapsed().as_nanos() as u64;
        });
        Ok(())
    }

    /// Whether a state has no row. This look is not counted.
    ///
    /// # Errors
    /// [`StateError::Read`] or [`StateError::Poisoned`].
    pub fn is_empty(&self, state: StateId) -> Result<bool, StateError> {
        self.check_poison()?;
        let mut empty = true;
        self.backend
            .borrow()
            .scan(state, &[], None, &mut |_, _| {
                empty = false;
                ControlFlow::Break(())
            })
            .map_err(|source| self.read_error(state, "(the first row)".to_string(), source))?;
        Ok(empty)
    }

    /// Commits changes and empties the batch. An empty batch does not touch the store.
    ///
    /// # Errors
    /// [`StateError::Commit`], after which the store is poisoned, or [`StateError::Poisoned`].
    pub fn commit(&self, batch: &mut ChangeBatch) -> Result<(), StateError> {
        self.check_poison()?;
        if batch.is_empty() {
            return Ok(());
        }
        batch.sort();
        let started = Instant::now();
        if let Err(source) = self.backend.borrow_mut().commit(batch) {
            *self.poison.borrow_mut() = Some(source.to_string());
            return Err(StateError::Commit { rows: batch.len(), store: self.location.clone(), source });
        }
        self.count_commit(batch, started.elapsed());
        batch.clear();
        if started.duration_since(self.indexes_asked.get()) >= ASK_INDEXES_EVERY {
            self.indexes_asked.set(started);
            self.cache.lend(self.backend.borrow().index_bytes());
        }
        Ok(())
    }

    /// How near the store is to holding writes up, see [`Backend::write_pressure`]. This is not
    /// counted.
    pub fn write_pressure(&self) -> WritePressure {
        self.backend.borrow().write_pressure()
    }

    /// Removes all rows of a state, see [`Backend::clear`]. A table that holds rows of the state
    /// does not learn of it: whoever clears a state clears its table too.
    ///
    /// # Errors
    /// [`StateError::Clear`], after which the store is poisoned, or [`StateError::Poisoned`].
    pub fn clear(&self, state: StateId) -> Result<(), StateError> {
        self.check_poison()?;
        let started = Instant::now();
        if let Err(source) = self.backend.borrow_mut().clear(state) {
            *self.poison.borrow_mut() = Some(source.to_string());
            let state = self.state_name(state);
            return Err(StateError::Clear { state, store: self.location.clone(), source });
        }
        self.count(state, |statistics| {
            statistics.clears += 1;
            statistics.commit_ns += started.elapsed().as_nanos() as u64;
        });
        Ok(())
    }

    /// Writes what is in memory to files, where there are files.
    ///
    /// # Errors
    /// [`StateError::Commit`], after which the store is poisoned, or [`StateError::Poisoned`].
    pub fn flush(&self) -> Result<(), StateError> {
        self.check_poison()?;
        self.backend.borrow_mut().flush().map_err(|source| {
            *self.poison.borrow_mut() = Some(source.to_string());
            StateError::Commit { rows: 0, store: self.location.clone(), source }
        })
    }

    /// The backend itself, for what only a measurement or a test asks of it.
    pub fn backend(&self) -> Ref<'_, Box<dyn Backend>> {
        self.backend.borrow()
    }

    /// Brings the files of a state into their final form, see [`Backend::compact`].
    ///
    /// # Errors
    /// [`StateError::Commit`], after which the store is poisoned, or [`StateError::Poisoned`].
    pub fn compact(&self, state: StateId) -> Result<(), StateError> {
        self.check_poison()?;
        self.backend.borrow_mut().compact(state).map_err(|source| {
            *self.poison.borrow_mut() = Some(source.to_string());
            StateError::Commit { rows: 0, store: self.location.clone(), source }
        })
    }

    fn count_commit(&self, batch: &ChangeBatch, took: Duration) {
        // One commit may change several states; its time goes to the first of them, so that sums
        // over states stay true.
        let mut states = self.states.borrow_mut();
        let mut first = None;
        for (state, key, change) in batch.changes() {
            let statistics = &mut states[state.0 as usize].statistics;
            match change {
                Change::Put(value) => {
                    statistics.puts += 1;
                    statistics.bytes_written += (key.len() + value.len()) as u64;
                }
                Change::Delete => {
                    statistics.deletes += 1;
                    statistics.bytes_written += key.len() as u64;
                }
                Change::Append(bytes) => {
                    statistics.appends += 1;
                    statistics.bytes_written += (key.len() + bytes.len()) as u64;
                }
            }
            first.get_or_insert(state);
        }
        for (state, lower, upper) in batch.ranges() {
            let statistics = &mut states[state.0 as usize].statistics;
            statistics.range_deletes += 1;
            statistics.bytes_written += (lower.len() + upper.len()) as u64;
            first.get_or_insert(state);
        }
        if let Some(state) = first {
            let statistics = &mut states[state.0 as usize].statistics;
            statistics.commits += 1;
            statistics.commit_ns += took.as_nanos() as u64;
        }
    }

    fn read_error(&self, state: StateId, key: String, source: BackendError) -> StateError {
        StateError::Read { state: self.state_name(state), key, store: self.location.clone(), source }
    }

    /// Refuses work after a failed commit.
    pub(crate) fn check_poison(&self) -> Result<(), StateError> {
        match &*self.poison.borrow() {
            None => Ok(()),
            Some(first) => Err(StateError::Poisoned { store: self.location.clone(), first: first.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultyBackend;
    use crate::memory::MemoryBackend;

    fn put(state: StateId, key: &[u8]) -> ChangeBatch {
        let mut batch = ChangeBatch::new();
        batch.put(state, key, b"v");
        batch
    }

    #[test]
    fn a_failed_commit_poisons_the_store() {
        let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
        let store = Store::new(backend, KeyGroups::default());
        let state = store.open_state(&StateName::new("op", "s").unwrap()).unwrap();
        store.commit(&mut put(state, b"a")).unwrap();
        faults.set_commits_left(Some(0));
        let error = store.commit(&mut put(state, b"b")).unwrap_err();
        assert!(matches!(error, StateError::Commit { .. }) && error.to_string().contains("make room"));
        faults.set_commits_left(None);
        let calls = faults.calls();
        assert!(matches!(store.commit(&mut put(state, b"c")), Err(StateError::Poisoned { .. })));
        assert!(matches!(store.get(state, b"a", &mut |_| {}), Err(StateError::Poisoned { .. })));
        let mut keys = KeyArena::new();
        keys.push(b"a");
        assert!(matches!(store.multi_get(state, &keys, &mut |_, _| {}), Err(StateError::Poisoned { .. })));
        let scan = store.scan(state, b"", None, &mut |_, _| std::ops::ControlFlow::Continue(()));
        assert!(matches!(scan, Err(StateError::Poisoned { .. })));
        assert!(matches!(store.clear(state), Err(StateError::Poisoned { .. })));
        assert!(matches!(store.flush(), Err(StateError::Poisoned { .. })));
        assert_eq!(faults.calls(), calls, "a poisoned store is not touched");
    }

    #[test]
    fn a_failed_clear_poisons_the_store() {
        let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
        let store = Store::new(backend, KeyGroups::default());
        let state = store.open_state(&StateName::new("op", "s").unwrap()).unwrap();
        store.commit(&mut put(state, b"a")).unwrap();
        store.clear(state).unwrap();
        assert!(!store.get(state, b"a", &mut |_| {}).unwrap().0);
        let (_, statistics) = store.statistics()[0];
        assert_eq!((statistics.clears, statistics.commits, statistics.calls()), (1, 1, 3));
        faults.set_commits_left(Some(0));
        let error = store.clear(state).unwrap_err();
        assert!(matches!(error, StateError::Clear { .. }));
        assert!(error.to_string().contains("op/s") && error.to_string().contains("make room"), "{error}");
        assert!(matches!(store.commit(&mut put(state, b"c")), Err(StateError::Poisoned { .. })));
        assert_eq!(store.statistics()[0].1.clears, 1, "what failed is not counted");
    }

    #[test]
    fn two_states_of_one_name_are_refused() {
        let store = Store::new(MemoryBackend::new(), KeyGroups::default());
        let name = StateName::new("op", "s").unwrap();
        store.open_state(&name).unwrap();
        assert!(store.open_state(&name).unwrap_err().to_string().contains("op/s"));
    }

    #[test]
    fn nothing_asked_is_nothing_done() {
        let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
        let store = Store::new(backend, KeyGroups::default());
        let state = store.open_state(&StateName::new("op", "s").unwrap()).unwrap();
        store.multi_get(state, &KeyArena::new(), &mut |_, _| panic!("no key was asked for")).unwrap();
        store.commit(&mut ChangeBatch::new()).unwrap();
        assert_eq!(faults.calls(), 0);
    }
}
