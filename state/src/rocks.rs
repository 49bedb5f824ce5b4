//! A store in RocksDB: one database a worker, one column family a state.
//!
//! There is no write-ahead log: durability comes from checkpoints alone. The options follow from
//! what keyed state does, point reads and overwrites of small rows; where a number was chosen by
//! measurement, it says so.

use crate::arena::KeyArena;
use crate::backend::{Backend, BatchReadError, RowVisitor, StateId, StateName, StateReader, WritePressure};
use crate::batch::{Change, ChangeBatch};
use crate::error::{BackendError, BackendErrorKind, StateError};
use crate::io_uring;
use cleared::EmptyRanges;
use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, BoundColumnFamily, Cache, ColumnFamilyDescriptor,
    CompactOptions, DBCompactionStyle, DBCompressionType, DBWithThreadMode, FlushOptions, MultiThreaded,
    Options, ReadOptions, WriteBatch, WriteBufferManager, WriteOptions,
};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

mod appending;
mod cleared;
mod clearing;
mod pressure;

type Database = DBWithThreadMode<MultiThreaded>;

/// What a RocksDB store is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RocksOptions {
    /// Memory for block cache and write buffers together, in bytes. Index and filter blocks lie
    /// outside of it; they take about 2 bytes a row.
    pub memory_bytes: usize,
    /// Reads, flushes and compactions go past the operating system's page cache: for states
    /// larger than memory, and for measurements that mean the disk.
    pub direct_io: bool,
    /// Batched reads may use io_uring where the system allows it.
    pub io_uring: bool,
}

impl Default for RocksOptions {
    /// 256 MiB, through the page cache, with io_uring.
    fn default() -> Self {
        RocksOptions { memory_bytes: 256 << 20, direct_io: false, io_uring: true }
    }
}

/// Share of the memory that write buffers may take. With a quarter, in two buffers, commits took
/// more than twice as long, waiting for flushes (rows of 1,000 bytes, 16 MiB).
const WRITE_BUFFER_SHARE: usize = 2;
/// A write buffer below this makes files so small that reads visit many of them.
const LEAST_WRITE_BUFFER_BYTES: usize = 1 << 20;
const MOST_WRITE_BUFFER_BYTES: usize = 64 << 20;
const LEAST_FILE_BYTES: usize = 8 << 20;
const MOST_FILE_BYTES: usize = 64 << 20;
/// A compaction holds two buffers of this size for each file it reads. RocksDB's default of 2 MiB
/// took 18 MB more and was no faster.
const COMPACTION_READAHEAD_BYTES: usize = 256 << 10;
/// A batched read keeps the blocks of its answers in memory until the last of them is taken,
/// beyond what the block cache may hold. RocksDB reads 32 keys at a time anyway, so a larger
/// batch goes to it in pieces: 16 MB less memory for 4,096 keys.
const MOST_PINNED_KEYS: usize = 64;
/// What a compaction had written when its state was cleared is found only by a look through the
/// directory, which RocksDB takes every six hours if nothing is said.
const LOOK_FOR_FILES_EVERY: Duration = Duration::from_secs(5);
/// Memory of the readers of all files: their indexes and filters.
const INDEX_PROPERTY: &str = "rocksdb.estimate-table-readers-mem";
/// Ten bits a key: one read in a hundred for a row that is not there.
const BLOOM_BITS_PER_KEY: f64 = 10.0;

/// A [`Backend`] in a directory, by RocksDB.
pub struct RocksBackend {
    database: Arc<Database>,
    names: Vec<String>,
    /// Of each state, where it is known to have no rows. Scans learn it too, hence the cell; it
    /// is not borrowed while a visitor runs.
    empty_ranges: RefCell<Vec<EmptyRanges>>,
    last_pressure: pressure::LastPressure,
    column_options: Options,
    write_buffer_bytes: u64,
    reads: ReadOptions,
    batched: bool,
    writes: WriteOptions,
    directory: PathBuf,
}

impl RocksBackend {
    /// Opens the store in `directory`, made if it is not there, with the states it has.
    ///
    /// # Errors
    /// [`StateError::Open`] where RocksDB cannot open it: no room, no right, damaged files, or
    /// another process that has it open.
    pub fn open(directory: &Path, options: &RocksOptions) -> Result<Self, StateError> {
        let open_error =
            |error| StateError::Open { directory: directory.to_path_buf(), source: backend_error(error) };
        let column_options = column_options(options).map_err(open_error)?;
        let database_options = database_options(options, &column_options);
        let existing = match Database::list_cf(&database_options, directory) {
            Ok(names) => names,
            // No database yet.
            Err(_) => vec![rocksdb::DEFAULT_COLUMN_FAMILY_NAME.to_string()],
        };
        let descriptors =
            existing.into_iter().map(|name| ColumnFamilyDescriptor::new(name, column_options.clone()));
        let database =
            Database::open_cf_descriptors(&database_options, directory, descriptors).map_err(open_error)?;
        let mut writes = WriteOptions::default();
        writes.disable_wal(true);
        Ok(RocksBackend {
            database: Arc::new(database),
            names: Vec::new(),
            empty_ranges: RefCell::default(),
            last_pressure: pressure::LastPressure::default(),
            column_options,
            write_buffer_bytes: write_buffer_bytes(options) as u64,
            reads: ReadOptions::default(),
            batched: options.io_uring && io_uring::is_available(),
            writes,
            directory: directory.to_path_buf(),
        })
    }

    fn column(&self, state: StateId) -> Arc<BoundColumnFamily<'_>> {
        column(&self.database, &self.names, state)
    }
}

fn column<'a>(database: &'a Database, names: &[String], state: StateId) -> Arc<BoundColumnFamily<'a>> {
    // `open_state` made it before it gave out the number. Clearing drops it and makes it again;
    // where that fails, a caller stops using the store.
    database.cf_handle(&names[state.0 as usize]).expect("an open state has a column family")
}

impl Drop for RocksBackend {
    fn drop(&mut self) {
        // A database that is closed under its own compaction may crash.
        self.database.cancel_all_background_work(true);
    }
}

impl Backend for RocksBackend {
    fn open_state(&mut self, name: &StateName) -> Result<StateId, BackendError> {
        let name = name.to_string();
        let index = match self.names.iter().position(|known| *known == name) {
            Some(index) => index,
            None => {
                if self.database.cf_handle(&name).is_none() {
                    self.database.create_cf(&name, &self.column_options).map_err(backend_error)?;
                }
                self.names.push(name);
                self.empty_ranges.get_mut().push(EmptyRanges::default());
                self.names.len() - 1
            }
        };
        Ok(StateId(index as u32))
    }

    fn get(&self, state: StateId, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, BackendError> {
        let value =
            self.database.get_pinned_cf_opt(&self.column(state), key, &self.reads).map_err(backend_error)?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(
        &self,
        state: StateId,
        keys: &KeyArena,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), BatchReadError> {
        read_many(&self.database, &self.column(state), &self.reads, self.batched, keys, visit)
    }

    fn reads_in_batches(&self) -> bool {
        self.batched
    }

    fn reader(&self, state: StateId) -> Option<Arc<dyn StateReader>> {
        Some(Arc::new(RocksReader {
            database: Arc::clone(&self.database),
            column: self.names[state.0 as usize].clone(),
            batched: self.batched,
        }))
    }

    fn scan(
        &self,
        state: StateId,
        lower: &[u8],
        upper: Option<&[u8]>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), BackendError> {
        if upper.is_some_and(|upper| upper <= lower) {
            return Ok(());
        }
        let Some(lower) = self.first_row_from(state, lower, upper) else {
            return Ok(());
        };
        let mut options = ReadOptions::default();
        // The lower bound lets RocksDB skip files and deletion marks before it.
        options.set_iterate_lower_bound(&*lower);
        if let Some(upper) = upper {
            options.set_iterate_upper_bound(upper);
        }
        let mut rows = self.database.raw_iterator_cf_opt(&self.column(state), options);
        self.seek_and_learn(state, &mut rows, &lower, upper)?;
        while let Some((key, value)) = rows.item() {
            if visit(key, value).is_break() {
                return Ok(());
            }
            rows.next();
        }
        // An iterator also becomes invalid where it fails.
        rows.status().map_err(backend_error)
    }

    fn commit(&mut self, batch: &ChangeBatch) -> Result<(), BackendError> {
        if batch.len() == 1
            && let Some((state, key, change)) = batch.changes().next()
        {
            let column = self.column(state);
            let written = match change {
                Change::Put(value) => self.database.put_cf_opt(&column, key, value, &self.writes),
                Change::Delete => self.database.delete_cf_opt(&column, key, &self.writes),
                Change::Append(bytes) => self.database.merge_cf_opt(&column, key, bytes, &self.writes),
            };
            drop(column);
            return self.committed(batch, written);
        }
        // RocksDB adds some bytes of its own to each change.
        let mut changes = WriteBatch::with_capacity_bytes(batch.total_bytes() + 16 * batch.len() + 64);
        let empty_ranges = self.empty_ranges.get_mut();
        for (state, lower, upper) in batch.ranges() {
            // Deletion ranges that overlap cost every read of their memtable the more.
            if let Some((lower, upper)) = empty_ranges[state.0 as usize].narrowed(lower, upper) {
                changes.delete_range_cf(&column(&self.database, &self.names, state), lower, upper);
            }
        }
        let mut current = None;
        for (state, key, change) in batch.changes() {
            let column = match &current {
                Some((known, column)) if *known == state => column,
                _ => &current.insert((state, self.column(state))).1,
            };
            match change {
                Change::Put(value) => changes.put_cf(column, key, value),
                Change::Delete => changes.delete_cf(column, key),
                Change::Append(bytes) => changes.merge_cf(column, key, bytes),
            }
        }
        drop(current);
        let written = self.database.write_opt(changes, &self.writes);
        self.committed(batch, written)
    }

    fn clear(&mut self, state: StateId) -> Result<(), BackendError> {
        self.clear_state(state)
    }

    fn write_pressure(&self) -> WritePressure {
        self.recent_pressure()
    }

    fn index_bytes(&self) -> usize {
        (0..self.names.len())
            .map(|state| self.column(StateId(state as u32)))
            .filter_map(|column| {
                // A property that cannot be read is no reason to fail: values keep their room.
                self.database.property_int_value_cf(&column, INDEX_PROPERTY).ok().flatten()
            })
            .sum::<u64>() as usize
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        let mut options = FlushOptions::default();
        options.set_wait(true);
        for name in &self.names {
            if let Some(column) = self.database.cf_handle(name) {
                self.database.flush_cf_opt(&column, &options).map_err(backend_error)?;
            }
        }
        Ok(())
    }

    fn compact(&mut self, state: StateId) -> Result<(), BackendError> {
        self.flush()?;
        let mut options = CompactOptions::default();
        // Without force, deletion marks can stay in the last level.
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        self.database.compact_range_cf_opt(&self.column(state), None::<&[u8]>, None::<&[u8]>, &options);
        Ok(())
    }

    fn location(&self) -> String {
        self.directory.display().to_string()
    }
}

/// One state, for other threads.
struct RocksReader {
    database: Arc<Database>,
    column: String,
    batched: bool,
}

impl StateReader for RocksReader {
    fn multi_get(
        &self,
        keys: &KeyArena,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), BatchReadError> {
        // Looked up each time, as a state that was cleared has a new column family.
        let Some(column) = self.database.cf_handle(&self.column) else {
            let message = format!("column family {:?} is gone", self.column);
            let error = BackendError { kind: BackendErrorKind::Other, message };
            return Err(BatchReadError { index: None, error });
        };
        read_many(&self.database, &column, &ReadOptions::default(), self.batched, keys, visit)
    }
}

/// Reads sorted keys in one call, or one after the other where a call for many does no better.
fn read_many(
    database: &Database,
    column: &Arc<BoundColumnFamily<'_>>,
    options: &ReadOptions,
    batched: bool,
    keys: &KeyArena,
    visit: &mut dyn FnMut(usize, Option<&[u8]>),
) -> Result<(), BatchReadError> {
    let failed = |index, error| BatchReadError { index: Some(index), error: backend_error(error) };
    if keys.is_empty() {
        return Ok(());
    }
    if !batched {
        for (index, key) in keys.iter().enumerate() {
            let value =
                database.get_pinned_cf_opt(column, key, options).map_err(|error| failed(index, error))?;
            visit(index, value.as_deref());
        }
        return Ok(());
    }
    let sorted = true;
    for start in (0..keys.len()).step_by(MOST_PINNED_KEYS) {
        let piece = (start..keys.len().min(start + MOST_PINNED_KEYS)).map(|index| keys.get(index));
        let answers = database.batched_multi_get_cf_opt(column, piece, sorted, options);
        for (index, answer) in (start..).zip(answers) {
            visit(index, answer.map_err(|error| failed(index, error))?.as_deref());
        }
    }
    Ok(())
}

fn database_options(options: &RocksOptions, column_options: &Options) -> Options {
    // The default column family takes its options from these, so they begin as a column's.
    let mut database = column_options.clone();
    database.create_if_missing(true);
    database.set_use_direct_reads(options.direct_io);
    database.set_use_direct_io_for_flush_and_compaction(options.direct_io);
    database.set_max_background_jobs(2);
    database.set_compaction_readahead_size(COMPACTION_READAHEAD_BYTES);
    database.set_delete_obsolete_files_period_micros(LOOK_FOR_FILES_EVERY.as_micros() as u64);
    // The log of RocksDB itself: small, and only what matters.
    database.set_log_level(rocksdb::LogLevel::Warn);
    database.set_max_log_file_size(1 << 20);
    database.set_keep_log_file_num(2);
    database.set_stats_dump_period_sec(0);
    database.set_stats_persist_period_sec(0);
    database
}

/// The size at which a write buffer is full and goes to a file.
fn write_buffer_bytes(options: &RocksOptions) -> usize {
    (options.memory_bytes / WRITE_BUFFER_SHARE / 2).clamp(LEAST_WRITE_BUFFER_BYTES, MOST_WRITE_BUFFER_BYTES)
}

/// The size at which compactions begin a new file. While a file is made, a hash of each of its rows
/// waits for the filter: with small rows that was 16 MB for a file of 64 MiB.
fn file_bytes(options: &RocksOptions) -> u64 {
    (options.memory_bytes / 4).clamp(LEAST_FILE_BYTES, MOST_FILE_BYTES) as u64
}

/// Options of each state.
///
/// Compaction is universal: random overwrites of rows in a state many times the memory went 1.75
/// times as fast as with levels (1.35 times with a base level of 32 MiB), as a write is merged some
/// five times on its way down instead of once for each tenth of the state. Reads cost the same, as
/// filters spare them most files; the state takes up to three times its size on the disk.
fn column_options(options: &RocksOptions) -> Result<Options, rocksdb::Error> {
    let cache = Cache::new_lru_cache(options.memory_bytes);
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&cache);
    blocks.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
    blocks.set_format_version(6);
    // What the library has no function for is set first, as this makes new options.
    let mut column = Options::default().get_options_from_string(clearing::RANGE_DELETIONS_OPTION)?;
    column.set_block_based_table_factory(&blocks);
    // LZ4 halves the size at no cost that could be measured.
    column.set_compression_type(DBCompressionType::Lz4);
    column.set_write_buffer_size(write_buffer_bytes(options));
    // Write buffers are charged to the cache, so that the two together keep the budget.
    column.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager_with_cache(
        (options.memory_bytes / WRITE_BUFFER_SHARE).max(2 * LEAST_WRITE_BUFFER_BYTES),
        false,
        cache,
    ));
    column.set_compaction_style(DBCompactionStyle::Universal);
    column.set_target_file_size_base(file_bytes(options));
    pressure::set_triggers(&mut column);
    clearing::compact_where_marks_pile_up(&mut column);
    appending::merge_by_appending(&mut column);
    Ok(column)
}

/// What RocksDB says, sorted into what a user can do about it.
fn backend_error(error: rocksdb::Error) -> BackendError {
    let kind = match error.kind() {
        _ if error.as_ref().contains("No space left") => BackendErrorKind::NoSpace,
        _ if error.as_ref().contains("lock") && error.as_ref().contains("LOCK") => BackendErrorKind::Locked,
        rocksdb::ErrorKind::Corruption => BackendErrorKind::Corruption,
        rocksdb::ErrorKind::IOError => BackendErrorKind::Io,
        _ => BackendErrorKind::Other,
    };
    BackendError { kind, message: error.into_string() }
}
