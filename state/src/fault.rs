//! A store that fails when it is told to: for tests of what an engine does with failures.

use crate::arena::KeyArena;
use crate::backend::{Backend, BatchReadError, RowVisitor, StateId, StateName};
use crate::batch::ChangeBatch;
use crate::error::{BackendError, BackendErrorKind};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What shall fail. Shared with the test, so that it can be switched while a job runs.
#[derive(Debug, Default)]
pub struct Faults {
    /// Reads of this row's bytes fail.
    pub unreadable_key: RefCell<Option<Vec<u8>>>,
    /// How many more commits succeed; none for "all of them".
    pub commits_left: Cell<Option<usize>>,
    /// Calls of every kind that reached the store.
    pub calls: Cell<usize>,
}

impl Faults {
    fn check_key(&self, key: &[u8]) -> Result<(), BackendError> {
        match &*self.unreadable_key.borrow() {
            Some(unreadable) if unreadable == key => {
                Err(BackendError { kind: BackendErrorKind::Io, message: "injected read error".to_string() })
            }
            _ => Ok(()),
        }
    }
}

/// Any [`Backend`] with [`Faults`] in front of it.
#[derive(Debug)]
pub struct FaultyBackend<B> {
    inner: B,
    faults: Rc<Faults>,
}

impl<B: Backend> FaultyBackend<B> {
    /// Wraps a backend; the faults are shared with the caller.
    pub fn new(inner: B) -> (Self, Rc<Faults>) {
        let faults = Rc::new(Faults::default());
        (FaultyBackend { inner, faults: Rc::clone(&faults) }, faults)
    }

    fn count(&self) {
        self.faults.calls.set(self.faults.calls.get() + 1);
    }
}

impl<B: Backend> Backend for FaultyBackend<B> {
    fn open_state(&mut self, name: &StateName) -> Result<StateId, BackendError> {
        self.inner.open_state(name)
    }

    fn get(&self, state: StateId, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, BackendError> {
        self.count();
        self.faults.check_key(key)?;
        self.inner.get(state, key, visit)
    }

    fn multi_get(
        &self,
        state: StateId,
        keys: &KeyArena,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), BatchReadError> {
        self.count();
        for (index, key) in keys.iter().enumerate() {
            self.faults.check_key(key).map_err(|error| BatchReadError { index: Some(index), error })?;
        }
        self.inner.multi_get(state, keys, visit)
    }

    fn scan(
        &self,
        state: StateId,
        lower: &[u8],
        upper: Option<&[u8]>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), BackendError> {
        self.count();
        self.inner.scan(state, lower, upper, visit)
    }

    fn commit(&mut self, batch: &ChangeBatch) -> Result<(), BackendError> {
        self.count();
        match self.faults.commits_left.get() {
            Some(0) => {
                return Err(BackendError {
                    kind: BackendErrorKind::NoSpace,
                    message: "injected: no space left on device".to_string(),
                });
            }
            Some(left) => self.faults.commits_left.set(Some(left - 1)),
            None => {}
        }
        self.inner.commit(batch)
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        self.inner.flush()
    }

    fn compact(&mut self, state: StateId) -> Result<(), BackendError> {
        self.inner.compact(state)
    }

    fn location(&self) -> String {
        self.inner.location()
    }
}
