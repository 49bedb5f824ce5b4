//! A store in memory: ordered maps, for tests, for small states, and as the reference that
//! RocksDB is held against.

use crate::arena::KeyArena;
use crate::backend::{Backend, BatchReadError, RowVisitor, StateId, StateName, WritePressure};
use crate::batch::{Change, ChangeBatch};
use crate::error::BackendError;
use std::collections::BTreeMap;
use std::ops::Bound;

/// A [`Backend`] of ordered maps. Nothing of it outlives the process.
#[derive(Debug, Default)]
pub struct MemoryBackend {
    names: Vec<StateName>,
    states: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl MemoryBackend {
    /// A store without states.
    pub fn new() -> Self {
        Self::default()
    }

    fn rows(&self, state: StateId) -> &BTreeMap<Vec<u8>, Vec<u8>> {
        &self.states[state.0 as usize]
    }
}

impl Backend for MemoryBackend {
    fn open_state(&mut self, name: &StateName) -> Result<StateId, BackendError> {
        let index = match self.names.iter().position(|known| known == name) {
            Some(index) => index,
            None => {
                self.names.push(name.clone());
                self.states.push(BTreeMap::new());
                self.names.len() - 1
            }
        };
        Ok(StateId(index as u32))
    }

    fn get(&self, state: StateId, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, BackendError> {
        let value = self.rows(state).get(key);
        if let Some(value) = value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(
        &self,
        state: StateId,
        keys: &KeyArena,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), BatchReadError> {
        let rows = self.rows(state);
        for (index, key) in keys.iter().enumerate() {
            visit(index, rows.get(key).map(|value| &value[..]));
        }
        Ok(())
    }

    fn scan(
        &self,
        state: StateId,
        lower: &[u8],
        upper: Option<&[u8]>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), BackendError> {
        if upper.is_some_and(|upper| upper <= lower) {
            return Ok(());
        }
        let upper = upper.map_or(Bound::Unbounded, Bound::Excluded);
        for (key, value) in self.rows(state).range::<[u8], _>((Bound::Included(lower), upper)) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: &ChangeBatch) -> Result<(), BackendError> {
        for (state, lower, upper) in batch.ranges() {
            if lower < upper {
                let range = lower.to_vec()..upper.to_vec();
                self.states[state.0 as usize].extract_if(range, |_, _| true).for_each(drop);
            }
        }
        for (state, key, change) in batch.changes() {
            let rows = &mut self.states[state.0 as usize];
            match change {
                Change::Put(value) => match rows.get_mut(key) {
                    Some(old) => {
                        old.clear();
                        old.extend_from_slice(value);
                    }
                    None => {
                        rows.insert(key.to_vec(), value.to_vec());
                    }
                },
                Change::Delete => {
                    rows.remove(key);
                }
                Change::Append(bytes) => match rows.get_mut(key) {
                    Some(value) => value.extend_from_slice(bytes),
                    None => {
                        rows.insert(key.to_vec(), bytes.to_vec());
                    }
                },
            }
        }
        Ok(())
    }

    fn clear(&mut self, state: StateId) -> Result<(), BackendError> {
        self.states[state.0 as usize].clear();
        Ok(())
    }

    fn write_pressure(&self) -> WritePressure {
        WritePressure::NONE
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn compact(&mut self, _: StateId) -> Result<(), BackendError> {
        Ok(())
    }

    fn location(&self) -> String {
        "in memory".to_string()
    }
}
