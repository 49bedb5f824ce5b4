//! One memory budget, and what each part of the state layer gets of it.

use crate::config::JobConfig;

/// What the memory for state is divided into, in bytes, for all workers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemorySplit {
    /// Decoded values that stay in memory.
    pub cache_bytes: usize,
    /// Rows that a release needs, and rows that are read ahead.
    pub working_bytes: usize,
    /// The store's block cache and write buffers.
    pub store_bytes: usize,
}

/// A share of the memory goes to the rows of releases under way: too few, and batches get small.
const WORKING_SHARE: usize = 8;
/// The store never gets less than this share, or its write buffers make tiny files.
const LEAST_STORE_SHARE: usize = 8;

impl MemorySplit {
    /// Divides a job's memory: an eighth for work, three eighths for decoded values if the
    /// configuration does not say how much, and the rest for the store.
    pub fn of(config: &JobConfig) -> Self {
        let memory = config.memory_bytes;
        let working_bytes = memory / WORKING_SHARE;
        let most = memory - working_bytes - memory / LEAST_STORE_SHARE;
        let cache_bytes = config.cache_bytes.unwrap_or(memory / 8 * 3).min(most);
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
        assert_eq!(
            split(800, Some(usize::MAX)),
            MemorySplit { cache_bytes: 600, working_bytes: 100, store_bytes: 100 }
        );
        assert_eq!(split(800, None), MemorySplit { cache_bytes: 300, working_bytes: 100, store_bytes: 400 });
        assert_eq!(split(800, Some(0)), MemorySplit { cache_bytes: 0, working_bytes: 100, store_bytes: 700 });
    }
}
