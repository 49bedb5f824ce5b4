//! Stores that are filled once, and copied for each strategy and measurement.
//!
//! Strategies do not share a store: what one of them writes, and what it leaves in caches, would
//! be part of what the next one is measured on. A copy is cheap, as the large files of a store
//! never change and can have two names.

use super::keys::StoredKeys;
use super::setting::Setting;
use super::subject::{Kind, Subject};
use crate::cli::CommandError;
use crate::cli::progress::ProgressDisplay;
use crate::error::JobError;
use crate::metrics::Live;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_state::error::StateError;
use tidegate_state::strategy::ReadStrategy;

/// Keys of a batch of the fill.
const FILL_KEYS: usize = 4096;

/// A directory that is removed with its owner.
#[derive(Debug)]
pub struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    /// In a state directory, under a name that the directory's next owner clears away if need be.
    pub fn new(state_directory: &Path, name: &str) -> Self {
        ScratchDirectory(state_directory.join(format!("worker-{name}")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            log::warn!("{} cannot be removed: {error}", self.0.display());
        }
    }
}

/// A subject and its copy of the files, which go when it goes.
pub struct StoreCopy {
    /// The store that is measured; closed before its directory goes.
    pub subject: Subject,
    _directory: ScratchDirectory,
}

/// A filled store, closed.
#[derive(Debug)]
pub struct Filled {
    directory: ScratchDirectory,
    kind: Kind,
}

impl Filled {
    /// Fills a store with a row for each key, in their order.
    ///
    /// # Errors
    /// [`CommandError`] where the store fails, or an interrupt came.
    pub fn new(
        state_directory: &Path,
        setting: &Setting,
        kind: Kind,
        keys: &StoredKeys,
        interrupted: &AtomicBool,
        quiet: bool,
    ) -> Result<Self, CommandError> {
        let directory = ScratchDirectory::new(state_directory, "filled");
        // Any strategy does: what is read here is not there yet.
        let mut subject =
            Subject::open(directory.path(), setting, kind, ReadStrategy::Dedup).map_err(state_error)?;
        if kind != Kind::Ranges {
            let live = Arc::<Live>::default();
            let display =
                (!quiet).then(|| ProgressDisplay::of_bytes(Arc::clone(&live), setting.data_bytes()));
            let row_bytes = setting.data_bytes() / setting.rows.max(1);
            for batch in keys.all().chunks(FILL_KEYS) {
                check(interrupted)?;
                subject.fill(batch).map_err(state_error)?;
                live.records.fetch_add(batch.len() as u64, Ordering::Relaxed);
                live.input_bytes.fetch_add(batch.len() as u64 * row_bytes, Ordering::Relaxed);
            }
            drop(display);
        }
        subject.settle().map_err(state_error)?;
        Ok(Filled { directory, kind })
    }

    /// A copy for a strategy.
    ///
    /// # Errors
    /// [`CommandError`] where files cannot be copied, or the store not be opened.
    pub fn copy(
        &self,
        name: &str,
        setting: &Setting,
        strategy: ReadStrategy,
    ) -> Result<StoreCopy, CommandError> {
        let from = self.directory.path();
        let state_directory = from.parent().unwrap_or(from);
        let directory = ScratchDirectory::new(state_directory, name);
        copy_store(from, directory.path()).map_err(|error| CommandError {
            status: 1,
            message: format!("cannot copy the store in {}: {error}", from.display()),
        })?;
        let subject = Subject::open(directory.path(), setting, self.kind, strategy)
            .map_err(|error| state_error(error).under(strategy))?;
        Ok(StoreCopy { subject, _directory: directory })
    }
}

/// Copies the files of a closed store. Sorted tables are never changed, so they only get a second
/// name, where the file system can do so (RocksDB's checkpoints are made in the same way).
fn copy_store(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        let copy = to.join(name);
        let linked = path.extension().is_some_and(|extension| extension == "sst")
            && std::fs::hard_link(&path, &copy).is_ok();
        if !linked {
            std::fs::copy(&path, &copy)?;
        }
    }
    Ok(())
}

/// What a failure of state is for the user.
pub fn state_error(error: StateError) -> CommandError {
    CommandError::from(JobError::from(error))
}

/// An error where an interrupt came.
///
/// # Errors
/// [`CommandError`], with the exit status of an interrupt.
pub fn check(interrupted: &AtomicBool) -> Result<(), CommandError> {
    if interrupted.load(Ordering::Relaxed) { Err(JobError::Interrupted.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::keys::KeyChoice;
    use super::super::setting::Chosen;
    use super::super::subject::Operation;
    use super::*;
    use crate::cli::compare::Regime;

    #[test]
    fn copies_are_whole_and_apart_from_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let chosen = Chosen { rows: Some(3000), memory_bytes: Some(8 << 20) };
        let setting = Setting::new(Regime::Cache, 50, chosen, 1);
        let keys = StoredKeys::new(3000, Default::default());
        for (kind, operation) in [
            (Kind::Values, Operation::Update),
            (Kind::Appended, Operation::Append),
            (Kind::Lists, Operation::AppendRewrite),
        ] {
            let interrupted = AtomicBool::new(false);
            let filled = Filled::new(directory.path(), &setting, kind, &keys, &interrupted, true).unwrap();
            let mut wanted = Vec::new();
            keys.draw(KeyChoice::Uniform, 1, 500, &mut wanted);
            let checksums: Vec<u64> = ReadStrategy::ALL
                .into_iter()
                .map(|strategy| {
                    let mut copy = filled.copy(strategy.name(), &setting, strategy).unwrap();
                    let sample = copy.subject.sample(operation, &wanted, 100).unwrap();
                    assert_eq!((sample.keys, copy.subject.take_absent()), (500, 0));
                    copy.subject.checksum
                })
                .collect();
            // Each began with what was filled in, not with what the one before it had written.
            assert!(checksums.iter().all(|&checksum| checksum == checksums[0]), "{checksums:?}");
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "copies are gone");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "all is gone");
    }

    #[test]
    fn an_interrupt_ends_the_fill() {
        let directory = tempfile::tempdir().unwrap();
        let setting = Setting::new(Regime::Cache, 50, Chosen { rows: Some(10), memory_bytes: None }, 1);
        let keys = StoredKeys::new(10, Default::default());
        let interrupted = AtomicBool::new(true);
        let error = Filled::new(directory.path(), &setting, Kind::Values, &keys, &interrupted, true);
        assert_eq!(error.unwrap_err().status, 130);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
