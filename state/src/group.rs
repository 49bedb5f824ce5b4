//! Key groups: which part of the key space a key belongs to, for ever.
//!
//! A job's keys are dealt into a fixed number of groups, and the groups into contiguous ranges,
//! one range a worker. Every stored row begins with its group, so that another number of workers
//! is another cut through the same rows. (Flink's key groups, for the same reason.)

use crate::key::StateKey;
use xxhash_rust::xxh3::xxh3_64;

/// The group of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyGroup(pub u16);

/// How many groups a job has. Fixed for the life of its state.
///
/// ```
/// use tidegate_state::group::KeyGroups;
/// let groups = KeyGroups::default();
/// let group = groups.of(&"customer 7".to_string(), &mut Vec::new());
/// assert!(group.0 < groups.count());
/// assert!(groups.worker_of(group, 4) < 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyGroups {
    count: u16,
}

impl Default for KeyGroups {
    /// 256 groups: enough for 256 workers, few enough that a worker's range is one scan.
    fn default() -> Self {
        KeyGroups { count: 256 }
    }
}

impl KeyGroups {
    /// A number of groups; none if `count` is 0. More workers than groups leave workers idle.
    pub fn new(count: u16) -> Option<Self> {
        (count > 0).then_some(KeyGroups { count })
    }

    /// How many groups there are.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The group of a key. `scratch` is working memory; what it holds is overwritten.
    ///
    /// The group is a function of the key's encoded bytes (XXH3, whose values are fixed by its
    /// specification), never of Rust's `Hash`, which may change from one version to the next.
    #[inline]
    pub fn of<K: StateKey>(&self, key: &K, scratch: &mut Vec<u8>) -> KeyGroup {
        scratch.clear();
        key.encode_into(scratch);
        self.of_encoded(scratch)
    }

    /// The group of a key whose encoded bytes are at hand.
    #[inline]
    pub fn of_encoded(&self, key: &[u8]) -> KeyGroup {
        // The high half of a 64-bit product spreads the hash over the groups without a division.
        let scaled = (u128::from(xxh3_64(key)) * u128::from(self.count)) >> 64;
        KeyGroup(scaled as u16)
    }

    /// The worker that owns a group when there are `workers` of them: contiguous ranges.
    ///
    /// # Panics
    /// Where `workers` is 0.
    #[inline]
    pub fn worker_of(&self, group: KeyGroup, workers: usize) -> usize {
        assert!(workers > 0, "a job has at least one worker");
        usize::from(group.0) * workers / usize::from(self.count)
    }

    /// The groups that a worker owns.
    pub fn range_of(&self, worker: usize, workers: usize) -> std::ops::Range<u16> {
        let first = |worker: usize| (worker * usize::from(self.count)).div_ceil(workers) as u16;
        first(worker)..first(worker + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_never_change() {
        // These numbers decide which worker owns a stored row: they may not change, ever. They were
        // computed by another implementation of XXH3.
        let groups = KeyGroups::default();
        let mut scratch = Vec::new();
        let of = |key: &str, scratch: &mut Vec<u8>| groups.of(&key.to_string(), scratch).0;
        assert_eq!(["", "a", "aa", "N14228"].map(|key| of(key, &mut scratch)), GROUPS_OF_TEXTS,);
        assert_eq!([0u64, 1, 2, u64::MAX].map(|key| groups.of(&key, &mut scratch).0), GROUPS_OF_NUMBERS);
    }
    const GROUPS_OF_TEXTS: [u16; 4] = [214, 48, 97, 254];
    const GROUPS_OF_NUMBERS: [u16; 4] = [199, 243, 62, 81];

    #[test]
    fn every_group_has_one_owner_and_ranges_agree() {
        for count in [1u16, 2, 3, 7, 256, 1000, u16::MAX] {
            let groups = KeyGroups::new(count).unwrap();
            for workers in [1usize, 2, 3, 4, 8, 255, 256, 300] {
                let mut next = 0;
                for worker in 0..workers {
                    let range = groups.range_of(worker, workers);
                    assert_eq!(range.start, next);
                    next = range.end;
                    for group in range {
                        assert_eq!(groups.worker_of(KeyGroup(group), workers), worker);
                    }
                }
                assert_eq!(next, count);
            }
        }
    }

    #[test]
    fn keys_spread_over_the_groups() {
        let groups = KeyGroups::new(16).unwrap();
        let mut counts = [0u32; 16];
        let mut scratch = Vec::new();
        for key in 0..16_000u64 {
            counts[usize::from(groups.of(&key, &mut scratch).0)] += 1;
        }
        assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
    }
}
