//! What the engine asks of a store, and nothing more.

use crate::arena::KeyArena;
use crate::batch::ChangeBatch;
use crate::error::BackendError;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A state within a store, as numbered by [`Backend::open_state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u32);

/// Operator and state, the name under which rows are kept apart from all other rows.
///
/// ```
/// use tidegate_state::backend::StateName;
/// let name = StateName::new("count trips", "total").unwrap();
/// assert_eq!(name.to_string(), "count trips/total");
/// assert!(StateName::new("a/b", "c").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateName {
    operator: String,
    state: String,
}

impl StateName {
    /// A name from the operator's and the state's own names.
    ///
    /// # Errors
    /// [`StateError::Name`](crate::error::StateError::Name) where one of them is empty, longer
    /// than 100 bytes, or holds a `/` or a control character.
    pub fn new(operator: &str, state: &str) -> Result<Self, crate::error::StateError> {
        for name in [operator, state] {
            let reason = if name.is_empty() {
                "it is empty"
            } else if name.len() > 100 {
                "it is longer than 100 bytes"
            } else if name.chars().any(|c| c == '/' || c.is_control()) {
                "it holds a '/' or a control character"
            } else {
                continue;
            };
            return Err(crate::error::StateError::Name { name: name.to_string(), reason });
        }
        Ok(StateName { operator: operator.to_string(), state: state.to_string() })
    }

    /// The operator's name.
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// The state's own name.
    pub fn state(&self) -> &str {
        &self.state
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.operator, self.state)
    }
}

/// How near a store is to holding writes up: from 0.0, not at all, to 1.0, writes are delayed or
/// wait.
///
/// ```
/// use tidegate_state::backend::WritePressure;
/// assert_eq!(WritePressure::new(1.5), WritePressure::STALL);
/// assert_eq!(WritePressure::new(f64::NAN), WritePressure::NONE);
/// assert_eq!(WritePressure::NONE.max(WritePressure::new(0.25)).level(), 0.25);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct WritePressure(f64);

impl WritePressure {
    /// Nothing holds writes up.
    pub const NONE: WritePressure = WritePressure(0.0);
    /// Writes are held up.
    pub const STALL: WritePressure = WritePressure(1.0);

    /// A pressure, brought into the range from 0.0 to 1.0.
    pub fn new(level: f64) -> Self {
        // What is no number says nothing, and may not make comparisons fail.
        WritePressure(if level.is_nan() { 0.0 } else { level.clamp(0.0, 1.0) })
    }

    /// The number, from 0.0 to 1.0.
    pub fn level(self) -> f64 {
        self.0
    }

    /// The greater of two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        WritePressure(self.0.max(other.0))
    }
}

/// Takes what a scan finds: a row's key and value. Says whether to go on.
pub type RowVisitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A key of a batched read that could not be read.
#[derive(Debug)]
pub struct BatchReadError {
    /// The key's place in the batch; none where the whole call failed.
    pub index: Option<usize>,
    /// What went wrong.
    pub error: BackendError,
}

/// Reads one state from any thread.
///
/// # Contract
///
/// A read sees all commits that had returned before it was asked for, and may or may not see
/// those that are made while it runs: whoever commits a row while a read of it is on its way
/// must not take the answer for the row's value.
pub trait StateReader: Send + Sync {
    /// As [`Backend::multi_get`].
    ///
    /// # Errors
    /// As [`Backend::multi_get`].
    fn multi_get(
        &self,
        keys: &KeyArena,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), BatchReadError>;
}

/// One worker's store: spaces of rows, each ordered by the bytes of its keys.
///
/// # Contract
///
/// * **One writer.** A store belongs to one worker; calls come one after the other.
/// * **States are apart.** No call on one state sees or changes rows of another.
/// * **Reads see all commits before them**, flushed or not, and nothing else. An empty value is
///   a value. Absence is said only where the store knows it: whatever failed is an error, for
///   the key it failed at.
/// * **Batched reads answer by position.** [`multi_get`](Self::multi_get) calls its visitor once
///   for each key, in the order of the arena. The arena is sorted and has no repeats; an empty
///   arena does not touch the store.
/// * **Commits are atomic** and ordered: ranges are removed first, then single rows change, each
///   in the order in which its changes were added. An append goes on from what the row's value is
///   by then, and is the whole value where there is none; any bytes can be appended to any. What
///   a failed commit left behind is unknown, so a caller stops using the store
///   ([`Store`](crate::store::Store) sees to that). The same holds for clearing.
/// * **Clearing a state** removes all its rows and no other's. The state stays open under its
///   number, and takes new rows at once.
/// * **Scans** give rows in ascending order of keys, from `lower` (included) to `upper` (not
///   included, or to the end), and stop when the visitor says so.
///
/// The suite in `tests/backend_contract.rs` holds every backend to this.
pub trait Backend {
    /// Opens a state, made if it is not there, and numbers it. The same name gives the same
    /// number.
    ///
    /// # Errors
    /// [`BackendError`] where the store cannot make it.
    fn open_state(&mut self, name: &StateName) -> Result<StateId, BackendError>;

    /// Reads one row, and shows its value to `visit` where there is one. Tells whether there is.
    ///
    /// # Errors
    /// [`BackendError`] where it is not known whether the row is there.
    fn get(&self, state: StateId, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, BackendError>;

    /// Reads many rows in one call to the store, and shows each answer to `visit` with its
    /// position.
    ///
    /// # Errors
    /// [`BatchReadError`] at the first key that could not be read; no answer after it is shown.
    fn multi_get(
        &self,
        state: StateId,
        keys: &KeyArena,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), BatchReadError>;

    /// Whether [`multi_get`](Self::multi_get) is more than one get after the other here. (RocksDB
    /// needs io_uring for that, which some systems refuse.)
    fn reads_in_batches(&self) -> bool {
        true
    }

    /// A way to read a state from other threads while the worker goes on; none where the
    /// backend has none.
    fn reader(&self, _state: StateId) -> Option<Arc<dyn StateReader>> {
        None
    }

    /// Shows the rows of a range to `visit`, in order.
    ///
    /// # Errors
    /// [`BackendError`] where the range could not be read to the end.
    fn scan(
        &self,
        state: StateId,
        lower: &[u8],
        upper: Option<&[u8]>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), BackendError>;

    /// Commits changes, all or none.
    ///
    /// # Errors
    /// [`BackendError`] where it is not known that all of them are in the store.
    fn commit(&mut self, batch: &ChangeBatch) -> Result<(), BackendError>;

    /// Removes all rows of a state. Where rows lie in files, the time this takes does not depend
    /// on how many there are, and the room they took on the disk, but for what one write buffer
    /// holds, is free again once compactions under way are done and something was flushed.
    ///
    /// # Errors
    /// [`BackendError`] where it is not known whether the rows are gone; the state may then not
    /// even be there.
    fn clear(&mut self, state: StateId) -> Result<(), BackendError>;

    /// How near the store is to holding writes up. Cheap enough to ask after each commit; the
    /// answer may be some milliseconds old, but does not stay what it was when commits cease.
    fn write_pressure(&self) -> WritePressure;

    /// Bytes of memory that stay taken for finding rows in files (indexes and filters), and grow
    /// with the rows.
    fn index_bytes(&self) -> usize {
        0
    }

    /// Writes what is in memory to files, where there are files.
    ///
    /// # Errors
    /// [`BackendError`] where that failed.
    fn flush(&mut self) -> Result<(), BackendError>;

    /// Brings the files of a state into their final form (a full compaction, where there is
    /// such a thing): for measurements and tests.
    ///
    /// # Errors
    /// [`BackendError`] where that failed.
    fn compact(&mut self, state: StateId) -> Result<(), BackendError>;

    /// Where the store lies, for messages.
    fn location(&self) -> String;
}
