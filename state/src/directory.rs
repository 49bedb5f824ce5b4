//! The directory that a job's state lies in: owned by one job at a time.

use crate::error::{BackendError, BackendErrorKind, StateError};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Marks a directory as ours, so that nothing else is ever cleared away.
const MARKER: &str = "TIDEGATE";
const MARKER_TEXT: &str = "Tidegate state directory, format 1\n";
const LOCK: &str = "TIDEGATE.lock";

/// A job's state directory, locked, and empty but for what this job puts into it.
///
/// State that a run leaves behind is of no use to the next one: a job begins with nothing, or
/// from a checkpoint, which is kept elsewhere.
#[derive(Debug)]
pub struct StateDirectory {
    path: PathBuf,
    /// Holds the lock as long as it is open.
    _lock: File,
    /// Removes the directory at the end, where no path was given.
    _temporary: Option<TempDir>,
}

impl StateDirectory {
    /// Takes a directory for the job of this name, made if it is not there and cleared of what
    /// an earlier job left; a temporary one where no path is given.
    ///
    /// # Errors
    /// [`StateError::Open`] where the directory holds files of somebody else, another job has
    /// it, or the system refuses.
    pub fn claim(path: Option<&Path>, job: &str) -> Result<Self, StateError> {
        let temporary = match path {
            Some(_) => None,
            None => Some(
                tempfile::Builder::new()
                    .prefix("tidegate-")
                    .tempdir()
                    .map_err(|error| open_error(&std::env::temp_dir(), &error))?,
            ),
        };
        let path = match (&temporary, path) {
            (Some(temporary), _) => temporary.path(),
            (None, Some(path)) => path,
            (None, None) => unreachable!("a temporary directory stands in for a path"),
        };
        let refused = |error: io::Error| open_error(path, &error);
        create_private(path).map_err(refused)?;
        check_ours(path)?;
        let lock = lock(path, job)?;
        fs::write(path.join(MARKER), MARKER_TEXT).map_err(refused)?;
        clear(path).map_err(refused)?;
        Ok(StateDirectory { path: path.to_path_buf(), _lock: lock, _temporary: temporary })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn open_error(path: &Path, error: &io::Error) -> StateError {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BackendErrorKind::NoSpace,
        _ => BackendErrorKind::Io,
    };
    let source = BackendError { kind, message: error.to_string() };
    StateError::Open { directory: path.to_path_buf(), source }
}

fn refusal(path: &Path, kind: BackendErrorKind, message: String) -> StateError {
    StateError::Open { directory: path.to_path_buf(), source: BackendError { kind, message } }
}

/// State may hold what records hold, so nobody else may read it.
fn create_private(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
    }
    #[cfg(not(unix))]
    fs::create_dir_all(path)
}

fn check_ours(path: &Path) -> Result<(), StateError> {
    let error = |error: io::Error| open_error(path, &error);
    let names: Vec<_> = fs::read_dir(path)
        .map_err(error)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()
        .map_err(error)?;
    if names.iter().all(|name| name == LOCK) || names.iter().any(|name| name == MARKER) {
        return Ok(());
    }
    let message = "the directory is not empty and not a state directory of this program".to_string();
    Err(refusal(path, BackendErrorKind::NotOurs, message))
}

/// Takes the lock, and leaves in it who has it.
fn lock(path: &Path, job: &str) -> Result<File, StateError> {
    let error = |error: io::Error| open_error(path, &error);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    let mut file = options.open(path.join(LOCK)).map_err(error)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Whoever holds it may not have written yet; then it stays unnamed.
            let _ = file.read_to_string(&mut holder);
            let holder = if holder.is_empty() { "another job".to_string() } else { holder };
            return Err(refusal(path, BackendErrorKind::Locked, format!("it belongs to {holder}")));
        }
        Err(TryLockError::Error(source)) => return Err(error(source)),
    }
    file.set_len(0).and_then(|()| file.rewind()).map_err(error)?;
    write!(file, "job {job:?}, process {}", std::process::id()).map_err(error)?;
    Ok(file)
}

/// Removes the stores of earlier jobs; what else there is stays.
fn clear(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("worker-") {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_owner_at_a_time() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("deep/state");
        let first = StateDirectory::claim(Some(&path), "first job").unwrap();
        let message = StateDirectory::claim(Some(&path), "second").unwrap_err().to_string();
        assert!(message.contains("first job") && message.contains("process"), "{message}");
        fs::create_dir(path.join("worker-000")).unwrap();
        fs::write(path.join("worker-000/left"), "over").unwrap();
        drop(first);
        let second = StateDirectory::claim(Some(&path), "second").unwrap();
        assert!(!second.path().join("worker-000").exists(), "an earlier job's state is cleared away");
    }

    #[test]
    fn somebody_elses_files_are_safe() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("worker-000")).unwrap();
        let message = StateDirectory::claim(Some(base.path()), "job").unwrap_err().to_string();
        assert!(message.contains("not empty"), "{message}");
        assert!(base.path().join("worker-000").exists());
    }

    #[test]
    fn a_temporary_directory_goes_with_its_owner() {
        let directory = StateDirectory::claim(None, "job").unwrap();
        let path = directory.path().to_path_buf();
        assert!(path.exists());
        drop(directory);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn state_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("state");
        let directory = StateDirectory::claim(Some(&path), "job").unwrap();
        assert_eq!(fs::metadata(directory.path()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
