//! Which keys a release asks for: the same ones for the same seed, on every machine.

use crate::generate::workload::{self, GOLDEN_GAMMA, mix};
use serde::Serialize;
use tidegate_state::group::KeyGroups;

/// How the keys of a release are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum KeyChoice {
    /// All equally often.
    Uniform,
    /// By octaves of Zipf's law; popular keys lie all over the store.
    Zipf,
    /// Runs of 4 to 8 rows that are neighbours in the store.
    Clustered,
}

impl KeyChoice {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            KeyChoice::Uniform => "uniform",
            KeyChoice::Zipf => "zipf",
            KeyChoice::Clustered => "clustered",
        }
    }
}

/// Rows of a clustered run: this many at least.
const LEAST_RUN: u64 = 4;
/// And this many at most.
const MOST_RUN: u64 = 8;

/// All keys of a store, in the order in which it keeps their rows: by group, then by key.
pub struct StoredKeys(Vec<u64>);

impl StoredKeys {
    /// So many keys: at least 1, below 2^32.
    pub fn new(rows: u64, groups: KeyGroups) -> Self {
        let mut scratch = Vec::new();
        let mut keys: Vec<(u16, u64)> =
            (0..rows).map(workload::index_key).map(|key| (groups.of(&key, &mut scratch).0, key)).collect();
        // Encoded numbers are ordered as the numbers are.
        keys.sort_unstable();
        StoredKeys(keys.into_iter().map(|(_, key)| key).collect())
    }

    /// The keys, first to last.
    pub fn all(&self) -> &[u64] {
        &self.0
    }

    /// Fills `into` with `count` keys. Zipf's repeats, and those of chance, stay.
    pub fn draw(&self, choice: KeyChoice, seed: u64, count: usize, into: &mut Vec<u64>) {
        let rows = self.0.len() as u64;
        let base = mix(seed.wrapping_add(GOLDEN_GAMMA));
        let mut randoms = (1u64..).map(|number| mix(base.wrapping_add(number.wrapping_mul(GOLDEN_GAMMA))));
        let mut random = || randoms.next().unwrap_or_default();
        into.clear();
        while into.len() < count {
            match choice {
                KeyChoice::Uniform => {
                    into.push(workload::index_key(workload::uniform_index(random(), rows)));
                }
                KeyChoice::Zipf => into.push(workload::index_key(workload::zipf_index(random(), rows))),
                KeyChoice::Clustered => {
                    let length = LEAST_RUN + random() % (MOST_RUN - LEAST_RUN + 1);
                    let first = workload::uniform_index(random(), rows);
                    let left = (count - into.len()) as u64;
                    let run = first..rows.min(first + length.min(left));
                    into.extend_from_slice(&self.0[run.start as usize..run.end as usize]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn drawn(choice: KeyChoice, seed: u64, count: usize) -> (StoredKeys, Vec<u64>) {
        let keys = StoredKeys::new(1000, KeyGroups::default());
        let mut drawn = vec![99];
        keys.draw(choice, seed, count, &mut drawn);
        (keys, drawn)
    }

    #[test]
    fn every_choice_gives_stored_keys_and_the_same_for_a_seed() {
        for choice in [KeyChoice::Uniform, KeyChoice::Zipf, KeyChoice::Clustered] {
            let (keys, first) = drawn(choice, 7, 4097);
            assert_eq!(first.len(), 4097);
            assert!(first.iter().all(|key| keys.all().contains(key)), "{choice:?}");
            assert_eq!(drawn(choice, 7, 4097).1, first);
            assert_ne!(drawn(choice, 8, 4097).1, first);
        }
    }

    #[test]
    fn keys_are_in_the_order_of_their_rows() {
        use tidegate_state::row::{ByKey, Layout};
        let rows: Vec<Vec<u8>> = StoredKeys::new(500, KeyGroups::default())
            .all()
            .iter()
            .map(|key| {
                let mut bytes = Vec::new();
                ByKey::<u64>::encode(key, KeyGroups::default(), &mut bytes);
                bytes
            })
            .collect();
        assert!(rows.is_sorted() && rows.len() == 500);
    }

    #[test]
    fn clusters_are_neighbours_and_zipf_has_favourites() {
        let (keys, clustered) = drawn(KeyChoice::Clustered, 1, 4096);
        let places: HashMap<u64, usize> =
            keys.all().iter().enumerate().map(|(place, &key)| (key, place)).collect();
        let steps = clustered.windows(2).filter(|pair| places[&pair[1]] == places[&pair[0]] + 1).count();
        // Runs of 6 on average: 5 of 6 steps go to the neighbour.
        assert!((3200..3600).contains(&steps), "{steps}");
        let most = |choice| {
            let mut counts: HashMap<u64, u32> = HashMap::new();
            drawn(choice, 1, 4096).1.into_iter().for_each(|key| *counts.entry(key).or_default() += 1);
            counts.into_values().max().unwrap()
        };
        assert!(most(KeyChoice::Zipf) > 300 && most(KeyChoice::Uniform) < 30);
    }
}
