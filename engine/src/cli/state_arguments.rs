//! Options for where keyed state lies and how it is read, shared by all commands that run jobs.

use crate::config::{JobConfig, StateBackend};
use bytesize::ByteSize;
use std::path::PathBuf;
use tidegate_state::table::ReadAhead;

/// Where keyed state lies, and how it is read.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Keeping state")]
pub struct StateArguments {
    /// Memory for the process with the state of all workers, as in 512MiB.
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Memory out of that for decoded values; about a third of it if not given, 0 to keep none.
    #[arg(long, value_name = "SIZE")]
    cache: Option<ByteSize>,
    /// Directory for state files; a temporary one if not given.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Where state lies.
    #[arg(long, value_name = "WHERE", value_enum, default_value = "rocksdb")]
    backend: StateBackend,
    /// Read and write state files past the page cache.
    #[arg(long)]
    direct_io: bool,
    /// Threads that read state beside the workers, all workers together; 0 for none.
    #[arg(long, value_name = "N", default_value_t = JobConfig::default().reader_threads)]
    reader_threads: usize,
    /// Read the rows of coming releases while earlier ones are applied: off, on, or auto, which
    /// does so under the strategy `auto` where reads are dear.
    #[arg(long, value_name = "WHEN", default_value_t = ReadAhead::default())]
    read_ahead: ReadAhead,
    /// Read as on a system that refuses io_uring: by single reads on several threads.
    #[arg(long)]
    no_io_uring: bool,
}

impl StateArguments {
    /// Puts the options into a configuration.
    pub fn configure(&self, config: &mut JobConfig) {
        if let Some(memory) = self.memory {
            config.memory_bytes = memory.as_u64() as usize;
        }
        config.cache_bytes = self.cache.map(|size| size.as_u64() as usize);
        config.state_dir.clone_from(&self.state_dir);
        config.backend = self.backend;
        config.direct_io = self.direct_io;
        config.reader_threads = self.reader_threads;
        config.read_ahead = self.read_ahead;
        config.io_uring = !self.no_io_uring;
    }

    /// Whether the memory was chosen.
    pub fn memory_is_given(&self) -> bool {
        self.memory.is_some()
    }
}
