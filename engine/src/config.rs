//! What a job runs with.

use std::path::PathBuf;
use std::time::Duration;
use tidegate_operators::policy::BatchPolicy;
use tidegate_state::group::KeyGroups;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::ReadAhead;

/// Where keyed state lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum StateBackend {
    /// In RocksDB, in the state directory.
    #[default]
    #[value(name = "rocksdb")]
    RocksDb,
    /// In ordered maps in memory, gone with the process: for tests and small states.
    Memory,
}

/// How far sources may run ahead of the rest of the job.
///
/// Events that the frontier has not released wait in stashes, because the input is out of order;
/// they have to, and no limit can change that. What the limits bound is the work that is due and
/// not yet done: a source that finds it beyond a limit waits until the rest has caught up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunAhead {
    /// Events of one worker's sources that are on their way and not worked off.
    pub events: u64,
    /// Bytes in the stashes of the process.
    pub stash_bytes: u64,
    /// Event time between a partition's watermark and the one that is farthest behind, in the
    /// unit of the event times. None for no limit but the two others.
    pub event_time: Option<i64>,
}

impl Default for RunAhead {
    /// 32,768 events, which still fit a processor's cache; 256 MiB; and no limit of event time.
    fn default() -> Self {
        RunAhead { events: 1 << 15, stash_bytes: 256 << 20, event_time: None }
    }
}

/// What a job runs with, whatever the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobConfig {
    /// The job's name, for messages and locks.
    pub name: String,
    /// Worker threads.
    pub workers: usize,
    /// How state reads are carried out.
    pub strategy: ReadStrategy,
    /// How releases are cut into chunks.
    pub batch: BatchPolicy,
    /// Key groups of the job.
    pub groups: KeyGroups,
    /// Where keyed state lies.
    pub backend: StateBackend,
    /// Memory that the process is to take with the state of all workers, in bytes. About two thirds
    /// of it go to decoded values and the store; the rest is kept for the program itself, what waits
    /// and is on its way, and what the allocator cannot use.
    pub memory_bytes: usize,
    /// Memory out of that for decoded values, in bytes; none for half of what is given away, 0 to
    /// keep no values beyond a release.
    pub cache_bytes: Option<usize>,
    /// Threads that read state beside the workers, all workers together; 0 for none.
    pub reader_threads: usize,
    /// Whether the rows of coming releases are read while earlier ones are applied.
    pub read_ahead: ReadAhead,
    /// Batched reads use io_uring where the system allows it.
    pub io_uring: bool,
    /// State files are read and written past the page cache.
    pub direct_io: bool,
    /// Where state files lie; none for a temporary directory that is removed at the end.
    pub state_dir: Option<PathBuf>,
    /// How far sources may run ahead.
    pub run_ahead: RunAhead,
    /// After how long without a record a live input counts as idle. Its watermark then holds
    /// nobody back, and what it brings later is judged by where the others have come to.
    pub idle_after: Duration,
}

impl Default for JobConfig {
    /// One worker, `auto`, RocksDB in a temporary directory, 256 MiB, twelve reader threads.
    fn default() -> Self {
        JobConfig {
            name: "job".to_string(),
            workers: 1,
            strategy: ReadStrategy::default(),
            batch: BatchPolicy::default(),
            groups: KeyGroups::default(),
            backend: StateBackend::default(),
            memory_bytes: 256 << 20,
            cache_bytes: None,
            // What it takes to give a common disk all the work it can do at once.
            reader_threads: 12,
            read_ahead: ReadAhead::default(),
            io_uring: true,
            direct_io: false,
            state_dir: None,
            run_ahead: RunAhead::default(),
            idle_after: Duration::from_secs(5),
        }
    }
}
