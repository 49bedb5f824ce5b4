//! How near RocksDB is to holding writes up.
//!
//! RocksDB first delays and then stops writes when flushes or compactions do not keep up. Each of
//! its reasons has a trigger, and how far each has come can be asked (RocksDB's wiki, "Write
//! Stalls").

use super::{RocksBackend, column};
use crate::backend::{StateId, WritePressure};
use rocksdb::Options;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Files in level 0 from which on RocksDB compacts them: fewer are no pressure.
const LEVEL0_COMPACTION_FILES: i32 = 4;
/// Files in level 0 from which on RocksDB delays writes. Its own defaults, said here because the
/// pressure is measured against them.
const LEVEL0_SLOWDOWN_FILES: i32 = 20;
/// Bytes still to be compacted from which on RocksDB delays writes.
const PENDING_COMPACTION_SLOWDOWN_BYTES: usize = 64 << 30;
/// Write buffers of a state, the one being filled included: with as many full, writes stop, and
/// with one fewer they are delayed.
const WRITE_BUFFERS: i32 = 4;
/// An answer is good for so long. To ask costs 1 µs a state, and pressure builds up over the time
/// that a write buffer takes to fill. By time and not by commits, because whoever waits for the
/// pressure to go does not commit.
const REFRESH_EVERY: Duration = Duration::from_millis(10);

/// Sets the triggers that the pressure is measured against.
pub(super) fn set_triggers(column: &mut Options) {
    column.set_level_zero_file_num_compaction_trigger(LEVEL0_COMPACTION_FILES);
    column.set_level_zero_slowdown_writes_trigger(LEVEL0_SLOWDOWN_FILES);
    column.set_soft_pending_compaction_bytes_limit(PENDING_COMPACTION_SLOWDOWN_BYTES);
    column.set_max_write_buffer_number(WRITE_BUFFERS);
}

/// The last answer, and when it was found.
#[derive(Debug, Default)]
pub(super) struct LastPressure(Cell<Option<(Instant, WritePressure)>>);

impl RocksBackend {
    /// The pressure of a moment ago, or of now.
    pub(super) fn recent_pressure(&self) -> WritePressure {
        let now = Instant::now();
        match self.last_pressure.0.get() {
            Some((asked, pressure)) if now.duration_since(asked) < REFRESH_EVERY => pressure,
            _ => {
                let pressure = self.pressure();
                self.last_pressure.0.set(Some((now, pressure)));
                pressure
            }
        }
    }

    fn pressure(&self) -> WritePressure {
        // A property that cannot be read is no reason to fail: it only says less.
        let of_database = |name| self.database.property_int_value(name).ok().flatten().unwrap_or(0);
        if of_database("rocksdb.is-write-stopped") > 0 || of_database("rocksdb.actual-delayed-write-rate") > 0
        {
            return WritePressure::STALL;
        }
        (0..self.names.len())
            .map(|state| self.pressure_of(StateId(state as u32)))
            .fold(WritePressure::NONE, WritePressure::max)
    }

    fn pressure_of(&self, state: StateId) -> WritePressure {
        let column = column(&self.database, &self.names, state);
        let property =
            |name| self.database.property_int_value_cf(&column, name).ok().flatten().unwrap_or(0) as f64;
        Backlog {
            level0_files: property("rocksdb.num-files-at-level0"),
            pending_compaction_bytes: property("rocksdb.estimate-pending-compaction-bytes"),
            full_write_buffers: property("rocksdb.num-immutable-mem-table"),
            write_buffer_filled: property("rocksdb.cur-size-active-mem-table")
                / self.write_buffer_bytes as f64,
        }
        .pressure()
    }
}

/// What a state's background work has before it.
struct Backlog {
    level0_files: f64,
    pending_compaction_bytes: f64,
    /// Write buffers that are full and not yet in a file.
    full_write_buffers: f64,
    /// Share of the current write buffer that is filled.
    write_buffer_filled: f64,
}

impl Backlog {
    fn pressure(&self) -> WritePressure {
        let level0 = (self.level0_files - f64::from(LEVEL0_COMPACTION_FILES))
            / f64::from(LEVEL0_SLOWDOWN_FILES - LEVEL0_COMPACTION_FILES);
        let pending = self.pending_compaction_bytes / PENDING_COMPACTION_SLOWDOWN_BYTES as f64;
        // One full write buffer that goes to a file while the next is filled is how it should be.
        // What counts is how near the next is to being full.
        let memory = if self.full_write_buffers > 0.0 {
            let filled = self.full_write_buffers - 1.0 + self.write_buffer_filled.min(1.0);
            filled / f64::from(WRITE_BUFFERS - 2)
        } else {
            0.0
        };
        WritePressure::new(level0.max(pending).max(memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, StateName};
    use crate::batch::ChangeBatch;
    use crate::rocks::RocksOptions;

    fn backend() -> (tempfile::TempDir, RocksBackend, StateId) {
        let directory = tempfile::tempdir().unwrap();
        let options = RocksOptions { memory_bytes: 8 << 20, ..RocksOptions::default() };
        let mut backend = RocksBackend::open(directory.path(), &options).unwrap();
        let state = backend.open_state(&StateName::new("op", "s").unwrap()).unwrap();
        (directory, backend, state)
    }

    fn put(backend: &mut RocksBackend, state: StateId, row: u32) {
        let mut batch = ChangeBatch::new();
        batch.put(state, &row.to_be_bytes(), &[7; 100]);
        backend.commit(&batch).unwrap();
    }

    #[test]
    fn pressure_rises_with_files_that_nobody_compacts_and_goes_when_they_are() {
        let (_directory, mut backend, state) = backend();
        let other = backend.open_state(&StateName::new("op", "other").unwrap()).unwrap();
        put(&mut backend, other, 0);
        assert_eq!(backend.pressure(), WritePressure::NONE);
        let set = |backend: &RocksBackend, value| {
            let column = column(&backend.database, &backend.names, state);
            backend.database.set_options_cf(&column, &[("disable_auto_compactions", value)]).unwrap();
        };
        set(&backend, "true");
        let mut levels = Vec::new();
        for row in 0..25 {
            put(&mut backend, state, row);
            backend.flush().unwrap();
            levels.push(backend.pressure().level());
        }
        assert!(levels[..4].iter().all(|&level| level < 0.01), "{levels:?}");
        assert!(levels.is_sorted() && levels[11] == 0.5 && levels[24] == 1.0, "{levels:?}");
        set(&backend, "false");
        backend.compact(state).unwrap();
        assert_eq!(backend.pressure(), WritePressure::NONE);
    }

    #[test]
    fn the_nearest_trigger_counts() {
        let calm = || Backlog {
            level0_files: 4.0,
            pending_compaction_bytes: 0.0,
            full_write_buffers: 0.0,
            write_buffer_filled: 0.9,
        };
        let level = |backlog: Backlog| backlog.pressure().level();
        assert_eq!(level(calm()), 0.0, "a write buffer that fills is no pressure while none waits");
        assert_eq!(level(Backlog { level0_files: 12.0, ..calm() }), 0.5);
        assert_eq!(level(Backlog { full_write_buffers: 1.0, ..calm() }), 0.45);
        assert_eq!(level(Backlog { full_write_buffers: 2.0, ..calm() }), 0.95);
        assert_eq!(level(Backlog { full_write_buffers: 3.0, ..calm() }), 1.0);
        let pending_compaction_bytes = PENDING_COMPACTION_SLOWDOWN_BYTES as f64 / 4.0;
        assert_eq!(level(Backlog { pending_compaction_bytes, ..calm() }), 0.25);
        assert_eq!(level(Backlog { pending_compaction_bytes, level0_files: 12.0, ..calm() }), 0.5);
    }

    #[test]
    fn an_answer_is_kept_for_a_while_and_then_found_anew() {
        let (_directory, backend, _) = backend();
        let kept = |age| {
            let asked = Instant::now().checked_sub(age).unwrap();
            backend.last_pressure.0.set(Some((asked, WritePressure::STALL)));
            backend.recent_pressure()
        };
        assert_eq!(kept(REFRESH_EVERY), WritePressure::NONE);
        // Not so far ahead that it would depend on how fast the test runs.
        backend.last_pressure.0.set(Some((Instant::now() + Duration::from_secs(3600), WritePressure::STALL)));
        assert_eq!(backend.recent_pressure(), WritePressure::STALL);
    }
}
