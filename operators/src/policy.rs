//! How much of a release is read at once.

use crate::event::Event;
use tidegate_state::arena::KeyArena;
use tidegate_state::group::KeyGroups;
use tidegate_state::row::{ByKey, Layout, RowKey};

/// Limits of one chunk of a release.
///
/// A chunk's values are in memory together, and its reads are one batched call, so a chunk has a
/// limit. Where tables keep nothing between chunks, all records of a key are in one chunk
/// ([`Chunker::split_by_keys`]), as the next one would not see what this one changed. Where they
/// keep values, a chunk is simply the next records in order ([`split_by_events`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPolicy {
    /// The most distinct keys of a chunk; at least 1.
    pub keys_per_chunk: usize,
}

impl Default for BatchPolicy {
    /// 16,384 keys: beyond some thousand keys a larger batch reads no faster.
    fn default() -> Self {
        BatchPolicy { keys_per_chunk: 16_384 }
    }
}

/// Cuts releases into chunks. Keeps its working memory from one release to the next.
#[derive(Debug, Default)]
pub struct Chunker {
    keys: KeyArena,
    order: Vec<(u64, u32)>,
    chunk_of: Vec<u32>,
}

impl Chunker {
    /// Cuts a release into chunks of at most as many distinct keys as the policy allows, each
    /// in the order of the release. Neighbouring keys, as the store orders them, are in the same
    /// chunk where possible. Empties `events`; `chunks` is filled anew, and its memory used again.
    pub fn split_by_keys<K: RowKey, V>(
        &mut self,
        policy: BatchPolicy,
        groups: KeyGroups,
        events: &mut Vec<Event<(K, V)>>,
        chunks: &mut Vec<Vec<Event<(K, V)>>>,
    ) {
        let limit = policy.keys_per_chunk.max(1);
        debug_assert!(chunks.iter().all(Vec::is_empty));
        if events.len() <= limit {
            // Not more keys than records.
            return one_chunk(events, chunks);
        }
        self.keys.clear();
        for event in events.iter() {
            self.keys.push_with(|bytes| ByKey::<K>::encode(&event.data.0, groups, bytes));
        }
        self.keys.sorted_order(&mut self.order);
        self.chunk_of.clear();
        self.chunk_of.resize(events.len(), 0);
        let (mut distinct, mut last) = (0, None);
        for &(_, index) in &self.order {
            let key = self.keys.get(index as usize);
            if last != Some(key) {
                distinct += 1;
                last = Some(key);
            }
            self.chunk_of[index as usize] = ((distinct - 1) / limit) as u32;
        }
        let needed = distinct.div_ceil(limit);
        if chunks.len() < needed {
            chunks.resize_with(needed, Vec::new);
        }
        for (event, &chunk) in events.drain(..).zip(&self.chunk_of) {
            chunks[chunk as usize].push(event);
        }
    }
}

/// Cuts a release into chunks of so many events, in order. Empties `events`.
pub fn split_by_events<E>(policy: BatchPolicy, events: &mut Vec<E>, chunks: &mut Vec<Vec<E>>) {
    let limit = policy.keys_per_chunk.max(1);
    if events.len() <= limit {
        return one_chunk(events, chunks);
    }
    let needed = events.len().div_ceil(limit);
    if chunks.len() < needed {
        chunks.resize_with(needed, Vec::new);
    }
    let mut events = events.drain(..);
    for chunk in chunks.iter_mut().take(needed) {
        chunk.extend(events.by_ref().take(limit));
    }
}

/// Makes one chunk of all events, without moving them one by one.
fn one_chunk<E>(events: &mut Vec<E>, chunks: &mut Vec<Vec<E>>) {
    if chunks.is_empty() {
        chunks.push(Vec::new());
    }
    std::mem::swap(&mut chunks[0], events);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn chunks_of_events_hold_all_of_them_in_order() {
        for (count, limit, sizes) in
            [(0, 3, vec![0]), (3, 3, vec![3]), (7, 3, vec![3, 3, 1]), (2, 0, vec![1, 1])]
        {
            let mut events: Vec<usize> = (0..count).collect();
            let mut chunks = Vec::new();
            split_by_events(BatchPolicy { keys_per_chunk: limit }, &mut events, &mut chunks);
            assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
            assert_eq!(chunks.concat(), (0..count).collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn chunks_hold_whole_keys_in_order(
            keys in proptest::collection::vec(0u64..30, 0..200),
            keys_per_chunk in 0usize..40,
        ) {
            let mut events: Vec<_> = keys.iter().enumerate()
                .map(|(index, &key)| Event::new(index as i64, 0, index as u64, (key, ())))
                .collect();
            let expected: HashSet<_> = (0..keys.len()).collect();
            let mut chunks = Vec::new();
            Chunker::default().split_by_keys(
                BatchPolicy { keys_per_chunk }, KeyGroups::default(), &mut events, &mut chunks);
            prop_assert!(events.is_empty());
            let mut chunk_of_key = HashMap::new();
            let mut seen = HashSet::new();
            for (number, chunk) in chunks.iter().enumerate() {
                prop_assert!(chunk.is_sorted_by_key(|event| event.time));
                let distinct: HashSet<_> = chunk.iter().map(|event| event.data.0).collect();
                prop_assert!(distinct.len() <= keys_per_chunk.max(1));
                for event in chunk {
                    prop_assert_eq!(*chunk_of_key.entry(event.data.0).or_insert(number), number);
                    prop_assert!(seen.insert(event.time as usize));
                }
            }
            prop_assert_eq!(seen, expected);
            let distinct = chunk_of_key.len();
            prop_assert!(chunks.len() <= distinct.div_ceil(keys_per_chunk.max(1)).max(1));
        }
    }
}
