//! What all measurements of one section of the output have in common.

use super::super::padded_count::PaddedCount;
use super::subject::Operation;
use crate::cli::compare::Regime;
use bytesize::ByteSize;
use clap::ValueEnum;
use std::fmt;
use std::path::Path;
use tidegate_state::error::StateError;
use tidegate_state::group::KeyGroups;
use tidegate_state::readers::ReaderOptions;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::table::{CacheBudget, ReadAhead};

/// Encoded bytes of a row beside its value: group and key, version and length.
const ROW_BYTES: u64 = 13;
/// In the disk regime, data is so many times the memory.
pub const DISK_DATA_TO_MEMORY: u64 = 10;
/// In the memory regime, memory is so many times the data.
const MEMORY_TO_DATA: u64 = 2;

/// Where state lies, how much of it there is, and what a store of it may use.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Where state is found when it is read.
    pub regime: Regime,
    /// Rows of the state.
    pub rows: u64,
    /// Length of a value.
    pub value_bytes: usize,
    /// Memory of each strategy's store, decoded values included.
    pub memory_bytes: u64,
    /// Memory out of that for decoded values.
    pub cache_bytes: u64,
    /// Reads and writes go past the page cache.
    pub direct_io: bool,
    /// Threads that read beside the caller.
    pub reader_threads: usize,
    /// Batched reads use io_uring where the system allows it.
    pub io_uring: bool,
}

/// What was asked for, where it was.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    /// Rows of the state.
    pub rows: Option<u64>,
    /// Memory of each store.
    pub memory_bytes: Option<u64>,
}

impl Setting {
    /// The setting of a regime, with what was chosen in place of its own numbers.
    pub fn new(regime: Regime, value_bytes: usize, chosen: Chosen, default_rows: u64) -> Self {
        let (memory_bytes, direct_io) = regime.settings();
        let mut setting = Setting {
            regime,
            rows: chosen.rows.unwrap_or(default_rows),
            value_bytes,
            memory_bytes: chosen.memory_bytes.unwrap_or(memory_bytes as u64),
            cache_bytes: 0,
            direct_io,
            reader_threads: 0,
            io_uring: true,
        };
        match regime {
            Regime::Disk if chosen.rows.is_none() => {
                let enough = DISK_DATA_TO_MEMORY * setting.memory_bytes / setting.row_bytes() + 1;
                setting.rows = setting.rows.max(enough);
            }
            Regime::Memory if chosen.memory_bytes.is_none() => {
                setting.memory_bytes = setting.memory_bytes.max(MEMORY_TO_DATA * setting.data_bytes());
            }
            _ => {}
        }
        setting
    }

    fn row_bytes(&self) -> u64 {
        self.value_bytes as u64 + ROW_BYTES
    }

    /// Length of the data, about.
    pub fn data_bytes(&self) -> u64 {
        self.rows * self.row_bytes()
    }

    /// Whether reads would mostly be answered by the memory, where the disk is meant.
    pub fn is_no_disk(&self) -> bool {
        self.regime == Regime::Disk && self.data_bytes() < DISK_DATA_TO_MEMORY * self.memory_bytes
    }

    /// Elements of a list whose row is about as long as that of a value.
    pub fn list_elements(&self) -> usize {
        // An element is a random u64, which takes 9 bytes.
        (self.value_bytes / 9).max(1)
    }

    /// The value of a key that was never counted.
    pub fn value(&self, key: u64) -> PaddedCount {
        PaddedCount::new(key, self.value_bytes)
    }

    /// Opens a store.
    ///
    /// # Errors
    /// Those of [`RocksBackend::open`].
    pub fn open_store(&self, path: &Path) -> Result<Store, StateError> {
        let options = RocksOptions {
            memory_bytes: self.memory_bytes.saturating_sub(self.cache_bytes) as usize,
            direct_io: self.direct_io,
            io_uring: self.io_uring,
        };
        let store = Store::new(RocksBackend::open(path, &options)?, KeyGroups::default());
        // Nothing is declared ahead here: a release is measured from its declaration on.
        let readers = ReaderOptions::new(self.reader_threads, ReadAhead::Off);
        Ok(store.with_cache(CacheBudget::bytes(self.cache_bytes as usize)).with_readers(readers))
    }

    /// Whether a store of this kind is read through before it is measured: it is meant to be in
    /// memory then, ours or the system's.
    pub fn warms_up(&self, operation: Operation) -> bool {
        self.regime != Regime::Disk && operation != Operation::Clear
    }

    /// The regime's name on the command line.
    pub fn regime_name(&self) -> String {
        self.regime.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} rows with values of {} bytes ({}), {} of memory, {} of it for decoded values, {} reader \
             threads{}{}",
            self.regime_name(),
            self.rows,
            self.value_bytes,
            ByteSize(self.data_bytes()),
            ByteSize(self.memory_bytes),
            ByteSize(self.cache_bytes),
            self.reader_threads,
            if self.direct_io { ", direct reads" } else { "" },
            if self.io_uring { "" } else { ", without io_uring" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Chosen = Chosen { rows: None, memory_bytes: None };

    #[test]
    fn the_disk_regime_has_ten_times_the_memory_unless_rows_are_chosen() {
        let setting =
            Setting::new(Regime::Disk, 100, Chosen { memory_bytes: Some(64 << 20), ..NOTHING }, 1000);
        assert!(
            setting.data_bytes() >= 640 << 20 && setting.data_bytes() < 641 << 20 && !setting.is_no_disk()
        );
        let few = Setting::new(Regime::Disk, 100, Chosen { rows: Some(1000), ..NOTHING }, 1000);
        assert!(few.rows == 1000 && few.is_no_disk());
    }

    #[test]
    fn the_memory_regime_has_memory_for_all_of_it() {
        let setting = Setting::new(Regime::Memory, 1000, NOTHING, 1 << 21);
        assert!(setting.memory_bytes > setting.data_bytes() && !setting.direct_io);
        let small = Setting::new(Regime::Memory, 1000, Chosen { memory_bytes: Some(5), ..NOTHING }, 1 << 21);
        assert_eq!(small.memory_bytes, 5);
    }
}
