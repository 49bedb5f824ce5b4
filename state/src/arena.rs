//! Many keys in one piece of memory.

/// A list of byte strings that share one allocation.
///
/// A release encodes all the keys it wants to read into one of these. Cleared and filled again,
/// it allocates nothing once it has grown to the size of a release.
#[derive(Debug, Default, Clone)]
pub struct KeyArena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyArena {
    /// An empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the key that `encode` writes.
    pub fn push_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Appends a key.
    pub fn push(&mut self, key: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(key));
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Length of all keys together, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The key at `index`.
    ///
    /// # Panics
    /// Where `index` is not below [`len`](Self::len).
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// The keys, first to last.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Forgets the keys and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Fills `order` with the indexes of the keys in the order of their bytes.
    ///
    /// Eight bytes of each key are compared as one number, and the rest only where those agree:
    /// most keys differ there, and the list that is sorted then fits the processor's caches.
    pub fn sorted_order(&self, order: &mut Vec<(u64, u32)>) {
        // A release never has 2^32 keys: the batching policy limits a chunk long before.
        assert!(self.len() <= u32::MAX as usize, "more keys than an arena can order");
        order.clear();
        order.extend((0..self.len()).map(|index| (leading_number(self.get(index)), index as u32)));
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.get(a.1 as usize).cmp(self.get(b.1 as usize)))
        });
    }
}

/// The first eight bytes as a big-endian number, filled with zeros: ordered as the bytes are,
/// up to ties.
fn leading_number(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(chunk)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_bytes(
            keys in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..12), 0..60),
        ) {
            let mut arena = KeyArena::new();
            for key in &keys {
                arena.push(key);
            }
            prop_assert!(arena.iter().eq(keys.iter().map(|key| &key[..])));
            let mut order = vec![(9, 9)];
            arena.sorted_order(&mut order);
            let sorted: Vec<_> = order.iter().map(|&(_, index)| arena.get(index as usize)).collect();
            let mut expected: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            expected.sort();
            prop_assert_eq!(sorted, expected);
            arena.clear();
            prop_assert!(arena.is_empty() && arena.total_bytes() == 0);
        }
    }
}
