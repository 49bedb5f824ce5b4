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
    /// The row's value goes on with these bytes; a row that is absent begins with them.
    Append(&'a [u8]),
}

/// A change, with its bytes by their place. (Empty ranges occur, for empty values.)
#[derive(Debug, Clone)]
enum Kind {
    Put(Range<usize>),
    Delete,
    Append(Range<usize>),
}

#[derive(Debug, Clone)]
struct Entry {
    state: StateId,
    /// Changes of one row stay in the order in which they were added.
    number: u32,
    key: Range<usize>,
    kind: Kind,
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
/// A commit first removes the ranges, then applies the single changes. Those of one row take
/// effect in the order in which they were added. The single changes are given out in the order of
/// (state, key), which is what RocksDB's memtable takes fastest: [`sort`](Self::sort) brings them
/// into it.
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
        self.add_with(state, key, Kind::Put, encode)
    }

    /// Appends what `encode` writes to a row's value; if `encode` fails, nothing is added.
    ///
    /// # Errors
    /// Those of `encode`.
    pub fn append_with<E>(
        &mut self,
        state: StateId,
        key: &[u8],
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.add_with(state, key, Kind::Append, encode)
    }

    fn add_with<E>(
        &mut self,
        state: StateId,
        key: &[u8],
        kind: impl FnOnce(Range<usize>) -> Kind,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let key = self.keep(key);
        let value_start = self.bytes.len();
        match encode(&mut self.bytes) {
            Ok(()) => {
                self.add(state, key, kind(value_start..self.bytes.len()));
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(start);
                Err(error)
            }
        }
    }

    fn add(&mut self, state: StateId, key: Range<usize>, kind: Kind) {
        // An entry has 48 bytes, so memory ends long before the numbers do.
        let number = self.entries.len() as u32;
        self.entries.push(Entry { state, number, key, kind });
    }

    /// Sets a row to a value.
    pub fn put(&mut self, state: StateId, key: &[u8], value: &[u8]) {
        let key = self.keep(key);
        let value = self.keep(value);
        self.add(state, key, Kind::Put(value));
    }

    /// Appends to a row's value; a row that is absent begins with these bytes.
    pub fn append(&mut self, state: StateId, key: &[u8], bytes: &[u8]) {
        let key = self.keep(key);
        let bytes = self.keep(bytes);
        self.add(state, key, Kind::Append(bytes));
    }

    /// Removes a row.
    pub fn delete(&mut self, state: StateId, key: &[u8]) {
        let key = self.keep(key);
        self.add(state, key, Kind::Delete);
    }

    /// Removes all rows from `lower` (included) to `upper` (not included). A range that holds
    /// nothing adds nothing: RocksDB refuses a whole batch for a range that ends before it starts.
    pub fn delete_range(&mut self, state: StateId, lower: &[u8], upper: &[u8]) {
        if upper <= lower {
            return;
        }
        let (lower, upper) = (self.keep(lower), self.keep(upper));
        self.ranges.push(RangeDelete { state, lower, upper });
    }

    /// Brings the single changes into the order of (state, key); those of one row stay in theirs.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |entry: &Entry| (entry.state, &bytes[entry.key.clone()], entry.number);
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
            let change = match &entry.kind {
                Kind::Put(value) => Change::Put(&self.bytes[value.clone()]),
                Kind::Delete => Change::Delete,
                Kind::Append(bytes) => Change::Append(&self.bytes[bytes.clone()]),
            };
            (entry.state, &self.bytes[entry.key.clone()], change)
        })
    }

    fn keep(&mut self, piece: &[u8]) -> Range<usize> {
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

    #[test]
    fn changes_of_one_row_keep_their_order() {
        let a = StateId(0);
        let mut batch = ChangeBatch::new();
        // Not even the row without bytes may lose it, whose changes can all begin at one place.
        for key in [&b"m"[..], b"", b"a"] {
            for _ in 0..20 {
                batch.append(a, key, b"");
                batch.delete(a, key);
                batch.put(a, key, b"");
            }
        }
        batch.sort();
        for (place, (_, key, change)) in batch.changes().enumerate() {
            assert_eq!(key, [&b""[..], b"a", b"m"][place / 60]);
            assert_eq!(change, [Change::Append(b""), Change::Delete, Change::Put(b"")][place % 3]);
        }
    }
}
