//! One memory budget, and what each part of the state layer gets of it.

use crate::config::JobConfig;

/// What the memory for state is divided into, in bytes, for all workers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemorySplit {
    /// Decoded values that stay in memory. Rows that a release needs, and rows that are read
    /// ahead, are among them.
    pub cache_bytes: usize,
    /// Rows that a release needs, and rows that are read ahead, where no values stay.
    pub working_bytes: usize,
    /// The store's block cache and write buffers.
    pub store_bytes: usize,
}

/// Where no values stay, this share of the memory goes to the rows of releases under way: with
/// less, batches get small.
const WORKING_SHARE: usize = 4;
/// The store never gets less than this share, or its write buffers make tiny files.
const LEAST_STORE_SHARE: usize = 4;

impl MemorySplit {
    /// Divides a job's memory: half for decoded values if the configuration does not say how
    /// much, and the rest for the store.
    pub fn of(config: &JobConfig) -> Self {
        let memory = config.memory_bytes;
        let cache_bytes = config.cache_bytes.unwrap_or(memory / 2).min(memory - memory / LEAST_STORE_SHARE);
        let working_bytes = if cache_bytes == 0 { memory / WORKING_SHARE } else { 0 };
        MemorySplit { cache_bytes, working_bytes, store_bytes: memory - working_bytes - cache_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(memory_bytes: usize, cache_bytes: Option<usize>) -> MemorySplit {
        MemorySplit::of(&JobConfig { memory_bytes, cache_bytes, ..JobConfig::default() })
    }

    #[test]
    fn the_parts_are_the_whole_whatever_is_asked_for() {
        for memory_bytes in [0, 1, 7, 1 << 20, 512 << 20] {
            for cache_bytes in [None, Some(0), Some(1 << 20), Some(usize::MAX)] {
                let MemorySplit { cache_bytes, working_bytes, store_bytes } =
                    split(memory_bytes, cache_bytes);
                assert_eq!(cache_bytes + working_bytes + store_bytes, memory_bytes);
            }
        }
    }

    #[test]
    fn the_store_keeps_a_share_when_all_is_asked_for_values() {
        let parts =
            |cache_bytes, working_bytes, store_bytes| MemorySplit { cache_bytes, working_bytes, store_bytes };
        assert_eq!(split(800, Some(usize::MAX)), parts(600, 0, 200));
        assert_eq!(split(800, None), parts(400, 0, 400));
        assert_eq!(split(800, Some(0)), parts(0, 200, 600));
    }
}
