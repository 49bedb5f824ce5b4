//! Rows: where the value of a key lies in the store.
//!
//! A state name owns a space of rows (a column family in RocksDB). What the rows of one state
//! have in common is their layout, and the layout decides what is contiguous:
//!
//! | layout | bytes | contiguous |
//! |---|---|---|
//! | [`ByKey`] | group, key | one row a key |
//! | [`ByEntry`] | group, key, entry | all entries of a key, in their order |
//! | [`ByTime`] | time, group, key | all keys of a time, for windows that close and timers |
//!
//! The group is that of the key alone, so a key's rows are on the worker that the key's records
//! are routed to.

use crate::group::KeyGroups;
use crate::key::{KeyError, StateKey};
use std::hash::Hash;
use std::marker::PhantomData;

/// How the rows of a state are laid out. Types that implement it are names only.
///
/// # Contract
///
/// As for [`StateKey`]: `encode` appends bytes that keep the layout's order and are prefix-safe,
/// and `decode` takes a whole row's bytes back.
pub trait Layout: 'static {
    /// What addresses a row.
    type Row: Clone + Eq + Hash + 'static;

    /// Appends the row's bytes.
    fn encode(row: &Self::Row, groups: KeyGroups, bytes: &mut Vec<u8>);

    /// Reads a row's bytes back.
    ///
    /// # Errors
    /// [`KeyError`] where the bytes are not those of such a row.
    fn decode(bytes: &[u8]) -> Result<Self::Row, KeyError>;
}

/// What a key, or a part of one, needs to be: ordered as bytes, comparable, hashable in memory.
pub trait RowKey: StateKey + Clone + Eq + Hash + 'static {}
impl<K: StateKey + Clone + Eq + Hash + 'static> RowKey for K {}

/// Appends the group of the key, then the key, in one pass over its bytes.
#[inline]
fn encode_grouped<K: StateKey>(key: &K, groups: KeyGroups, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0, 0]);
    key.encode_into(bytes);
    let group = groups.of_encoded(&bytes[start + 2..]);
    bytes[start..start + 2].copy_from_slice(&group.0.to_be_bytes());
}

fn finished<R>(row: R, rest: &[u8]) -> Result<R, KeyError> {
    if rest.is_empty() {
        Ok(row)
    } else {
        Err(KeyError::Malformed {
            type_name: std::any::type_name::<R>(),
            reason: "bytes left over after the row",
        })
    }
}

/// One row a key.
#[derive(Debug)]
pub struct ByKey<K>(PhantomData<K>);

impl<K: RowKey> Layout for ByKey<K> {
    type Row = K;

    #[inline]
    fn encode(key: &K, groups: KeyGroups, bytes: &mut Vec<u8>) {
        encode_grouped(key, groups, bytes);
    }
    fn decode(mut bytes: &[u8]) -> Result<K, KeyError> {
        u16::decode_from(&mut bytes)?;
        finished(K::decode_from(&mut bytes)?, bytes)
    }
}

/// Several rows a key, one for each entry: maps, and lists by position.
#[derive(Debug)]
pub struct ByEntry<K, E>(PhantomData<(K, E)>);

impl<K: RowKey, E: RowKey> ByEntry<K, E> {
    /// The bytes that all rows of `key`, and no other rows, begin with.
    pub fn encode_prefix(key: &K, groups: KeyGroups, bytes: &mut Vec<u8>) {
        encode_grouped(key, groups, bytes);
    }
}

impl<K: RowKey, E: RowKey> Layout for ByEntry<K, E> {
    type Row = (K, E);

    #[inline]
    fn encode((key, entry): &(K, E), groups: KeyGroups, bytes: &mut Vec<u8>) {
        encode_grouped(key, groups, bytes);
        entry.encode_into(bytes);
    }
    fn decode(mut bytes: &[u8]) -> Result<(K, E), KeyError> {
        u16::decode_from(&mut bytes)?;
        let key = K::decode_from(&mut bytes)?;
        finished((key, E::decode_from(&mut bytes)?), bytes)
    }
}

/// One row a time and key, all rows of a time together.
#[derive(Debug)]
pub struct ByTime<K>(PhantomData<K>);

impl<K: RowKey> Layout for ByTime<K> {
    type Row = (i64, K);

    #[inline]
    fn encode((time, key): &(i64, K), groups: KeyGroups, bytes: &mut Vec<u8>) {
        time.encode_into(bytes);
        encode_grouped(key, groups, bytes);
    }
    fn decode(mut bytes: &[u8]) -> Result<(i64, K), KeyError> {
        let time = i64::decode_from(&mut bytes)?;
        u16::decode_from(&mut bytes)?;
        finished((time, K::decode_from(&mut bytes)?), bytes)
    }
}

/// The least byte string that is greater than every string beginning with `prefix`; none where
/// there is no such string (all bytes `FF`, or none).
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut bound = prefix[..=last].to_vec();
    bound[last] += 1;
    Some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of<L: Layout>(row: &L::Row) -> Vec<u8> {
        let mut bytes = Vec::new();
        L::encode(row, KeyGroups::default(), &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn rows_come_back(key: (String, u32), entry: i64) {
            let bytes = bytes_of::<ByKey<(String, u32)>>(&key);
            prop_assert_eq!(&ByKey::<(String, u32)>::decode(&bytes).unwrap(), &key);
            let row = (key.clone(), entry);
            let bytes = bytes_of::<ByEntry<(String, u32), i64>>(&row);
            prop_assert_eq!(&ByEntry::<(String, u32), i64>::decode(&bytes).unwrap(), &row);
            let row = (entry, key);
            let bytes = bytes_of::<ByTime<(String, u32)>>(&row);
            prop_assert_eq!(&ByTime::<(String, u32)>::decode(&bytes).unwrap(), &row);
        }

        #[test]
        fn a_prefix_covers_the_rows_of_its_key_and_no_others(a: String, b: String, x: i64, y: i64) {
            type Entries = ByEntry<String, i64>;
            let mut prefix = Vec::new();
            Entries::encode_prefix(&a, KeyGroups::default(), &mut prefix);
            let end = after_prefix(&prefix);
            for (key, entry) in [(&a, x), (&a, y), (&b, x), (&b, y)] {
                let row = bytes_of::<Entries>(&(key.clone(), entry));
                let covered = row >= prefix && end.as_ref().is_none_or(|end| &row < end);
                prop_assert_eq!(covered, *key == a);
            }
            let rows = [x, y].map(|entry| bytes_of::<Entries>(&(a.clone(), entry)));
            prop_assert_eq!(rows[0].cmp(&rows[1]), x.cmp(&y));
        }

        #[test]
        fn times_come_first(a: String, b: String, x: i64, y: i64) {
            prop_assume!(x != y);
            let rows = [(x, a), (y, b)].map(|row| bytes_of::<ByTime<String>>(&row));
            prop_assert_eq!(rows[0].cmp(&rows[1]), x.cmp(&y));
        }

        #[test]
        fn the_bound_after_a_prefix_is_tight(prefix in proptest::collection::vec(prop_oneof![Just(255u8), any::<u8>()], 0..5)) {
            match after_prefix(&prefix) {
                None => prop_assert!(prefix.iter().all(|&byte| byte == 0xFF)),
                Some(bound) => {
                    let mut last = prefix.clone();
                    last.extend([0xFF; 8]);
                    prop_assert!(last < bound);
                    prop_assert!(!bound.starts_with(&prefix));
                }
            }
        }
    }

    #[test]
    fn left_over_bytes_are_an_error() {
        let mut bytes = bytes_of::<ByKey<u64>>(&7);
        bytes.push(0);
        assert!(ByKey::<u64>::decode(&bytes).is_err());
        assert!(ByKey::<u64>::decode(&bytes[..9]).is_err());
    }
}
