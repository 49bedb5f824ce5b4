//! The changes of one release, on their way to the store.

use crate::backend::StateId;
use std::ops::Range;

/// One change of one row, or of a range of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// The row has this value now.
    Put(&'a [u8]),
    /// The row is gone.
    Delete,
}

#[derive(Debug, Clone)]
struct Entry {
    state: StateId,
    key: Range<usize>,
    /// Empty ranges occur for empty values, so absence is said apart.
    value: Option<Range<usize>>,
}

#[derive(Debug, Clone)]
struct RangeDelete {
    state: StateId,
    lower: Range<usize>,
    upper: Range<usize>,
}

/// Changes that are committed together, all or none.
///
/// # Contract
///
/// A commit first removes the ranges, then applies the single changes; a row is changed at most
/// once. The single changes are given out in the order of (state, key), which is what RocksDB's
/// memtable takes fastest: [`sort`](Self::sort) brings them into it.
#[derive(Debug, Default)]
pub struct ChangeBatch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    ranges: Vec<RangeDelete>,
}

impl ChangeBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of single changes and ranges.
    pub fn len(&self) -> usize {
        self.entries.len() + self.ranges.len()
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.ranges.is_empty()
    }

    /// Bytes of keys and values together.
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the changes and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.ranges.clear();
    }

    /// Sets a row to the value that `encode` writes; if `encode` fails, nothing is added.
    ///
    /// # Errors
    /// Those of `encode`.
    pub fn put_with<E>(
        &mut self,
        state: StateId,
        key: &[u8],
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let key = self.append(key);
        let value_start = self.bytes.len();
        match encode(&mut self.bytes) {
            Ok(()) => {
                let value = Some(value_start..self.bytes.len());
                self.entries.push(Entry { state, key, value });
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(start);
                Err(error)
            }
        }
    }

    /// Sets a row to a value.
    pub fn put(&mut self, state: StateId, key: &[u8], value: &[u8]) {
        let key = self.append(key);
        let value = Some(self.append(value));
        self.entries.push(Entry { state, key, value });
    }

    /// Removes a row.
    pub fn delete(&mut self, state: StateId, key: &[u8]) {
        let key = self.append(key);
        self.entries.push(Entry { state, key, value: None });
    }

    /// Removes all rows from `lower` (included) to `upper` (not included). A range that holds
    /// nothing adds nothing: RocksDB refuses a whole batch for a range that ends before it starts.
    pub fn delete_range(&mut self, state: StateId, lower: &[u8], upper: &[u8]) {
        if upper <= lower {
            return;
        }
        let (lower, upper) = (self.append(lower), self.append(upper));
        self.ranges.push(RangeDelete { state, lower, upper });
    }

    /// Brings the single changes into the order of (state, key).
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |entry: &Entry| (entry.state, &bytes[entry.key.clone()]);
        if !self.entries.is_sorted_by(|a, b| key(a) <= key(b)) {
            self.entries.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        }
    }

    /// The ranges to remove: state, lower bound, upper bound (not included).
    pub fn ranges(&self) -> impl Iterator<Item = (StateId, &[u8], &[u8])> {
        self.ranges
            .iter()
            .map(|range| (range.state, &self.bytes[range.lower.clone()], &self.bytes[range.upper.clone()]))
    }

    /// The single changes: state, key, change.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = (StateId, &[u8], Change<'_>)> {
        self.entries.iter().map(|entry| {
            let change = match &entry.value {
                Some(value) => Change::Put(&self.bytes[value.clone()]),
                None => Change::Delete,
            };
            (entry.state, &self.bytes[entry.key.clone()], change)
        })
    }

    fn append(&mut self, piece: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(piece);
        start..self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_out_by_state_and_key() {
        let (a, b) = (StateId(0), StateId(1));
        let mut batch = ChangeBatch::new();
        batch.put(b, b"k", b"1");
        batch.put(a, b"z", b"");
        batch.delete(a, b"m");
        batch.delete_range(b, b"p", b"q");
        assert!(
            batch
                .put_with(a, b"x", |bytes| {
                    bytes.push(9);
                    Err("no")
                })
                .is_err()
        );
        batch.sort();
        let changes: Vec<_> = batch.changes().collect();
        assert_eq!(
            changes,
            [(a, &b"m"[..], Change::Delete), (a, b"z", Change::Put(b"")), (b, b"k", Change::Put(b"1")),]
        );
        assert_eq!(batch.ranges().collect::<Vec<_>>(), [(b, &b"p"[..], &b"q"[..])]);
        assert_eq!(batch.len(), 4);
        batch.clear();
        assert!(batch.is_empty() && batch.total_bytes() == 0);
    }
}
