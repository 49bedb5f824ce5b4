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
    /// What nobody is given: for the program itself, records that wait, answers on their way, buffers
    /// of compactions, index and filter blocks, and what the allocator cannot use.
    pub reserve_bytes: usize,
}

/// What the process takes however little state there is: the program and its threads (19 MB), the
/// buffers of compactions, records that wait.
const FIXED_BYTES: usize = 36 << 20;
/// But of a small memory no more than so many tenths.
const FIXED_TENTHS: usize = 6;
/// Of the rest, so many tenths are given away. With a state of ten times the memory (rows of 1,000
/// bytes) the process took 1.6 bytes for each byte given away: answers of reads lie beside the cells
/// that wait for them, and the allocator cannot use all that it has.
const GIVEN_TENTHS: usize = 7;
/// Where no values stay, this share of what is given away goes to the rows of releases under way:
/// with less, batches get small.
const WORKING_SHARE: usize = 4;
/// The store never gets less than this share, or its write buffers make tiny files.
const LEAST_STORE_SHARE: usize = 4;

impl MemorySplit {
    /// Divides a job's memory: half of what is given away for decoded values if the configuration
    /// does not say how much, and the rest for the store.
    pub fn of(config: &JobConfig) -> Self {
        let memory = config.memory_bytes;
        let fixed = FIXED_BYTES.min(memory / 10 * FIXED_TENTHS);
        let given = (memory - fixed) / 10 * GIVEN_TENTHS;
        let cache_bytes = config.cache_bytes.unwrap_or(given / 2).min(given - given / LEAST_STORE_SHARE);
        let working_bytes = if cache_bytes == 0 { given / WORKING_SHARE } else { 0 };
        MemorySplit {
            cache_bytes,
            working_bytes,
            store_bytes: given - working_bytes - cache_bytes,
            reserve_bytes: memory - given,
        }
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
        for memory_bytes in [0, 1, 7, 1 << 20, 512 << 20, usize::MAX] {
            for cache_bytes in [None, Some(0), Some(1 << 20), Some(usize::MAX)] {
                let MemorySplit { cache_bytes, working_bytes, store_bytes, reserve_bytes } =
                    split(memory_bytes, cache_bytes);
                assert_eq!(cache_bytes + working_bytes + store_bytes + reserve_bytes, memory_bytes);
            }
        }
    }

    #[test]
    fn the_store_keeps_a_share_when_all_is_asked_for_values() {
        let memory = 2 * FIXED_BYTES;
        let given = (memory - FIXED_BYTES) / 10 * GIVEN_TENTHS;
        for (asked, cache, working) in
            [(Some(usize::MAX), given - given / 4, 0), (None, given / 2, 0), (Some(0), 0, given / 4)]
        {
            let MemorySplit { cache_bytes, working_bytes, store_bytes, .. } = split(memory, asked);
            assert_eq!((cache_bytes, working_bytes), (cache, working));
            assert_eq!(store_bytes, given - cache - working);
        }
    }
}
