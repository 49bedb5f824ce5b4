//! Removing many rows at once, and finding what is left without stepping over what is gone.
//!
//! | what | what it costs without | what is done |
//! |---|---|---|
//! | looking for the first row behind removed ones | a step for each of them, each time | scans begin behind what is known to be empty |
//! | many deletion marks in files | steps, room | files with many of them are compacted |
//! | many deletion ranges in memory | every read looks through all of them | the memtable is flushed |
//! | all rows of a state | a mark for each | one range, or a new column family |

use super::cleared::FirstRow;
use super::{Database, RocksBackend, backend_error};
use crate::backend::StateId;
use crate::batch::{Change, ChangeBatch};
use crate::error::BackendError;
use rocksdb::perf::{PerfContext, PerfMetric};
use rocksdb::{DBRawIteratorWithThreadMode, Options};

/// An upper bound that is greater than every row in practice: a row that is not less consists of
/// nothing but `FF` for longer than most rows are. Whether there is one is looked up.
const PRACTICALLY_LAST: &[u8] = &[0xFF; 64];
/// An empty range that took so many steps to cross is worth its memory.
const STEPS_WORTH_REMEMBERING: u64 = 32;
/// A memtable with so many deletion ranges is flushed. With 25,600 of them, a look into each of
/// 256 key groups took 14 ms, and 2 ms with a limit of 1,000; after each new range a look steps
/// over all of them once more.
pub(super) const RANGE_DELETIONS_OPTION: &str = "memtable_max_range_deletions=256";

/// Has a file compacted where half of its entries, or of any 1,024 in a row, are deletion marks.
pub(super) fn compact_where_marks_pile_up(column: &mut Options) {
    column.add_compact_on_deletion_collector_factory(1024, 512, 0.5);
}

/// Entries that this thread has stepped over so far and did not show. RocksDB counts them anyway.
fn steps() -> u64 {
    let counters = PerfContext::default();
    [
        PerfMetric::InternalKeySkippedCount,
        PerfMetric::InternalDeleteSkippedCount,
        PerfMetric::NextOnMemtableCount,
    ]
    .into_iter()
    .map(|metric| counters.metric(metric))
    .sum()
}

impl RocksBackend {
    /// Where a scan from `lower` begins; none where it is known to find nothing.
    pub(super) fn first_row_from(
        &self,
        state: StateId,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        match self.empty_ranges.borrow_mut()[state.0 as usize].first_row_from(lower) {
            FirstRow::From(from) if upper.is_none_or(|upper| from < upper) => Some(from.to_vec()),
            _ => None,
        }
    }

    /// Goes to the first row, and remembers the way there if it was a long one.
    pub(super) fn seek_and_learn(
        &self,
        state: StateId,
        rows: &mut DBRawIteratorWithThreadMode<'_, Database>,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Result<(), BackendError> {
        let before = steps();
        rows.seek(lower);
        let first = rows.key();
        if first.is_none() {
            // Nothing found is one thing, not being able to look another.
            rows.status().map_err(backend_error)?;
        }
        if steps() - before >= STEPS_WORTH_REMEMBERING {
            self.empty_ranges.borrow_mut()[state.0 as usize].add(lower, first.or(upper));
        }
        Ok(())
    }

    /// Brings what is known to be empty up to date after a commit.
    pub(super) fn committed(
        &mut self,
        batch: &ChangeBatch,
        written: Result<(), rocksdb::Error>,
    ) -> Result<(), BackendError> {
        let empty_ranges = self.empty_ranges.get_mut();
        if written.is_err() {
            // What of it was done, nobody knows.
            empty_ranges.iter_mut().for_each(|ranges| ranges.forget());
            return written.map_err(backend_error);
        }
        for (state, lower, upper) in batch.ranges() {
            empty_ranges[state.0 as usize].add(lower, Some(upper));
        }
        if empty_ranges.iter().all(|ranges| ranges.is_empty()) {
            return Ok(());
        }
        empty_ranges.iter_mut().for_each(|ranges| ranges.begin_commit());
        for (state, key, change) in batch.changes() {
            if let Change::Put(_) | Change::Append(_) = change {
                empty_ranges[state.0 as usize].put(key);
            }
        }
        Ok(())
    }

    /// Removes all rows of a state.
    ///
    /// Dropping the column family and making it again costs 10 to 30 ms, whatever was in it, and
    /// frees the files at once. One range deletion costs 0.04 ms and frees nothing before the
    /// next compaction. So the second is for what lies in memory or in little more than that:
    /// states that are filled and cleared again and again.
    pub(super) fn clear_state(&mut self, state: StateId) -> Result<(), BackendError> {
        // Nothing is known while it is not known whether this succeeds.
        self.empty_ranges.get_mut()[state.0 as usize].forget();
        if !self.clear_by_range(state)? {
            let name = &self.names[state.0 as usize];
            self.database.drop_cf(name).map_err(backend_error)?;
            self.database.create_cf(name, &self.column_options).map_err(backend_error)?;
        }
        self.empty_ranges.get_mut()[state.0 as usize].add(b"", None);
        Ok(())
    }

    /// Removes all rows by one deletion range, if that is the better way, and tells whether it was.
    fn clear_by_range(&self, state: StateId) -> Result<bool, BackendError> {
        let column = self.column(state);
        let files_bytes = self
            .database
            .property_int_value_cf(&column, "rocksdb.live-sst-files-size")
            .map_err(backend_error)?
            .unwrap_or(u64::MAX);
        let mut rows = self.database.raw_iterator_cf(&column);
        rows.seek(PRACTICALLY_LAST);
        rows.status().map_err(backend_error)?;
        if files_bytes > self.write_buffer_bytes || rows.valid() {
            return Ok(false);
        }
        self.database
            .delete_range_cf_opt(&column, &b""[..], PRACTICALLY_LAST, &self.writes)
            .map_err(backend_error)?;
        Ok(true)
    }
}
