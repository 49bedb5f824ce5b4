//! A store that fails, and dawdles, when it is told to: for tests of what an engine does with
//! failures, and with answers that come late and out of order.

use crate::arena::KeyArena;
use crate::backend::{Backend, BatchReadError, RowVisitor, StateId, StateName, StateReader, WritePressure};
use crate::batch::ChangeBatch;
use crate::error::{BackendError, BackendErrorKind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What shall fail. Shared with the test, so that it can be switched while a job runs.
#[derive(Debug, Default)]
pub struct Faults {
    unreadable_key: Mutex<Option<Vec<u8>>>,
    commits_left: Mutex<Option<usize>>,
    calls: AtomicUsize,
    longest_delay_us: AtomicU64,
    delays: AtomicU64,
}

impl Faults {
    /// Reads of this row's bytes fail from now on.
    pub fn set_unreadable_key(&self, key: Option<Vec<u8>>) {
        *locked(&self.unreadable_key) = key;
    }

    /// How many more commits and clears succeed; none for "all of them".
    pub fn set_commits_left(&self, commits: Option<usize>) {
        *locked(&self.commits_left) = commits;
    }

    /// Reads by other threads take up to so long before they see the store, and as long again
    /// before they answer; how long, differs from read to read.
    pub fn set_longest_delay(&self, delay: Duration) {
        self.longest_delay_us.store(delay.as_micros() as u64, Ordering::Relaxed);
    }

    /// Calls of every kind that reached the store.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn check_key(&self, key: &[u8]) -> Result<(), BackendError> {
        match &*locked(&self.unreadable_key) {
            Some(unreadable) if unreadable == key => {
                Err(BackendError { kind: BackendErrorKind::Io, message: "injected read error".to_string() })
            }
            _ => Ok(()),
        }
    }

    fn check_keys(&self, keys: &KeyArena) -> Result<(), BatchReadError> {
        for (index, key) in keys.iter().enumerate() {
            self.check_key(key).map_err(|error| BatchReadError { index: Some(index), error })?;
        }
        Ok(())
    }

    fn delay(&self) {
        let longest = self.longest_delay_us.load(Ordering::Relaxed);
        if longest > 0 {
            // A Weyl sequence: evenly spread, and different from one read to the next.
            let turn = self.delays.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            std::thread::sleep(Duration::from_micros(((turn >> 32) * longest) >> 32));
        }
    }

    fn check_write(&self) -> Result<(), BackendError> {
        match &mut *locked(&self.commits_left) {
            Some(0) => Err(BackendError {
                kind: BackendErrorKind::NoSpace,
                message: "injected: no space left on device".to_string(),
            }),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole after every statement, so a panic leaves it usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Any [`Backend`] with [`Faults`] in front of it, and with readers for other threads.
#[derive(Debug)]
pub struct FaultyBackend<B> {
    inner: Arc<Mutex<B>>,
    faults: Arc<Faults>,
}

impl<B: Backend> FaultyBackend<B> {
    /// Wraps a backend; the faults are shared with the caller.
    pub fn new(inner: B) -> (Self, Arc<Faults>) {
        let faults = Arc::new(Faults::default());
        (FaultyBackend { inner: Arc::new(Mutex::new(inner)), faults: Arc::clone(&faults) }, faults)
    }
}

impl<B: Backend + Send + 'static> Backend for FaultyBackend<B> {
    fn open_state(&mut self, name: &StateName) -> Result<StateId, BackendError> {
        locked(&self.inner).open_state(name)
    }

    fn get(&self, state: StateId, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, BackendError> {
        self.faults.count();
        self.faults.check_key(key)?;
        locked(&self.inner).get(state, key, visit)
    }

    fn multi_get(
        &self,
        state: StateId,
        keys: &KeyArena,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), BatchReadError> {
        self.faults.count();
        self.faults.check_keys(keys)?;
        locked(&self.inner).multi_get(state, keys, visit)
    }

    fn reader(&self, state: StateId) -> Option<Arc<dyn StateReader>> {
        let (inner, faults) = (Arc::clone(&self.inner), Arc::clone(&self.faults));
        Some(Arc::new(FaultyReader { inner, faults, state }))
    }

    fn scan(
        &self,
        state: StateId,
        lower: &[u8],
        upper: Option<&[u8]>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), BackendError> {
        self.faults.count();
        locked(&self.inner).scan(state, lower, upper, visit)
    }

    fn commit(&mut self, batch: &ChangeBatch) -> Result<(), BackendError> {
        self.faults.count();
        self.faults.check_write()?;
        locked(&self.inner).commit(batch)
    }

    fn clear(&mut self, state: StateId) -> Result<(), BackendError> {
        self.faults.count();
        self.faults.check_write()?;
        locked(&self.inner).clear(state)
    }

    fn write_pressure(&self) -> WritePressure {
        locked(&self.inner).write_pressure()
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        locked(&self.inner).flush()
    }

    fn compact(&mut self, state: StateId) -> Result<(), BackendError> {
        locked(&self.inner).compact(state)
    }

    fn location(&self) -> String {
        locked(&self.inner).location()
    }
}

struct FaultyReader<B> {
    inner: Arc<Mutex<B>>,
    faults: Arc<Faults>,
    state: StateId,
}

impl<B: Backend + Send> StateReader for FaultyReader<B> {
    fn multi_get(
        &self,
        keys: &KeyArena,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), BatchReadError> {
        self.faults.count();
        self.faults.delay();
        let outcome = match self.faults.check_keys(keys) {
            Ok(()) => locked(&self.inner).multi_get(self.state, keys, visit),
            Err(error) => Err(error),
        };
        self.faults.delay();
        outcome
    }
}
