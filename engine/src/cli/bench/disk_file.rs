//! A file that is read past the page cache, at random: what the disk itself gives.
//!
//! Reads in flight come from threads, each of which waits for its own: the depth that a store
//! gets by threads, and no promise of what one that submits many reads at once could get.

use crate::generate::workload::{GOLDEN_GAMMA, mix};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Where direct reads have to begin in memory and in the file: the largest unit that disks
/// commonly have.
const ALIGNMENT: usize = 4096;
/// Direct reads go by the disk's sectors, of at least so many bytes.
pub const LEAST_BLOCK_BYTES: u64 = 512;
/// How much is written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Why the disk cannot be measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiskError {
    /// No file can be made there.
    #[error("cannot make a file in {}: {source}", directory.display())]
    Create {
        /// The directory.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file system knows no reads past the page cache.
    #[error("{} cannot be read past the page cache (O_DIRECT): {reason}", directory.display())]
    NotDirect {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The file cannot be filled.
    #[error("cannot write {total_bytes} bytes in {}: {source}", directory.display())]
    Write {
        /// The directory.
        directory: PathBuf,
        /// How long the file was to be.
        total_bytes: u64,
        /// What the system says.
        source: io::Error,
    },
    /// A read failed.
    #[error("reading {block_bytes} bytes at {offset} of a file in {} failed: {source}", directory.display())]
    Read {
        /// The directory.
        directory: PathBuf,
        /// Length of the read.
        block_bytes: usize,
        /// Where it began.
        offset: u64,
        /// What the system says.
        source: io::Error,
    },
}

/// Makes sure that files in a directory can be read past the page cache.
///
/// # Errors
/// [`DiskError`] where they cannot.
pub fn check_direct(directory: &Path) -> Result<(), DiskError> {
    open_direct(directory).map(drop)
}

fn open_direct(directory: &Path) -> Result<File, DiskError> {
    let file = open_nameless(directory)?;
    check_is_on_a_disk(&file, directory)?;
    Ok(file)
}

/// A file without a name: it is gone when this is dropped, and when the process ends, however
/// it ends.
#[derive(Debug)]
pub struct DiskFile {
    file: File,
    directory: PathBuf,
    block_bytes: usize,
    blocks: u64,
}

impl DiskFile {
    /// Makes a file of `total_bytes` (rounded down to whole blocks, at least one) that no disk
    /// can make smaller, and writes it past the page cache. `written` is told how far it is.
    ///
    /// # Errors
    /// [`DiskError`] where there is no room or no right, or where there are no direct reads.
    pub fn create(
        directory: &Path,
        total_bytes: u64,
        block_bytes: usize,
        written: &mut dyn FnMut(u64),
    ) -> Result<Self, DiskError> {
        let file = open_direct(directory)?;
        let blocks = (total_bytes / block_bytes as u64).max(1);
        let disk_file = DiskFile { file, directory: directory.to_path_buf(), block_bytes, blocks };
        disk_file.fill(written).map_err(|source| DiskError::Write {
            directory: directory.to_path_buf(),
            total_bytes: disk_file.total_bytes(),
            source,
        })?;
        Ok(disk_file)
    }

    /// Length of the file.
    pub fn total_bytes(&self) -> u64 {
        self.blocks * self.block_bytes as u64
    }

    fn fill(&self, written: &mut dyn FnMut(u64)) -> io::Result<()> {
        let mut buffer = vec![0; WRITE_BYTES + ALIGNMENT];
        let buffer = aligned(&mut buffer, WRITE_BYTES);
        let (total_bytes, mut offset, mut word) = (self.total_bytes(), 0, 0u64);
        while offset < total_bytes {
            let length = (total_bytes - offset).min(WRITE_BYTES as u64) as usize;
            for bytes in buffer[..length].chunks_exact_mut(8) {
                word = word.wrapping_add(1);
                bytes.copy_from_slice(&mix(word.wrapping_mul(GOLDEN_GAMMA)).to_le_bytes());
            }
            write_all_at(&self.file, &buffer[..length], offset)?;
            offset += length as u64;
            written(offset);
        }
        self.file.sync_all()
    }

    /// Reads random blocks for so long with `depth` threads, each with one read in flight; gives
    /// reads a second. Other seeds give other blocks.
    ///
    /// # Errors
    /// [`DiskError::Read`] for the first read that failed.
    pub fn reads_per_second(&self, depth: usize, length: Duration, seed: u64) -> Result<f64, DiskError> {
        let start = Barrier::new(depth + 1);
        let (stop, reads) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..depth as u64)
                .map(|thread| {
                    let (start, stop, reads) = (&start, &stop, &reads);
                    let seed = mix(seed.wrapping_mul(GOLDEN_GAMMA) ^ mix(thread + 1));
                    scope.spawn(move || {
                        start.wait();
                        let (count, outcome) = self.read_until(stop, seed);
                        reads.fetch_add(count, Ordering::Relaxed);
                        outcome
                    })
                })
                .collect();
            start.wait();
            let started = Instant::now();
            std::thread::sleep(length);
            stop.store(true, Ordering::Relaxed);
            for thread in threads {
                // A thread that panicked has said why; nothing in it does so on purpose.
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            // Reads that were in flight at the end are counted, and so is the wait for them.
            Ok(reads.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
        })
    }

    fn read_until(&self, stop: &AtomicBool, seed: u64) -> (u64, Result<(), DiskError>) {
        let mut buffer = vec![0; self.block_bytes + ALIGNMENT];
        let buffer = aligned(&mut buffer, self.block_bytes);
        let mut count = 0u64;
        while !stop.load(Ordering::Relaxed) {
            let random = mix(seed.wrapping_add(count.wrapping_mul(GOLDEN_GAMMA)));
            // The high half of the product spreads the number over the blocks.
            let block = ((u128::from(random) * u128::from(self.blocks)) >> 64) as u64;
            let offset = block * self.block_bytes as u64;
            if let Err(source) = read_exact_at(&self.file, buffer, offset) {
                let (directory, block_bytes) = (self.directory.clone(), self.block_bytes);
                return (count, Err(DiskError::Read { directory, block_bytes, offset, source }));
            }
            count += 1;
        }
        (count, Ok(()))
    }
}

/// The first `length` bytes of a buffer that begin where a direct read may put them. The buffer is
/// longer by one alignment.
fn aligned(buffer: &mut [u8], length: usize) -> &mut [u8] {
    let offset = buffer.as_ptr().align_offset(ALIGNMENT);
    &mut buffer[offset..offset + length]
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(target_os = "linux")]
fn open_nameless(directory: &Path) -> Result<File, DiskError> {
    use std::os::unix::fs::OpenOptionsExt;
    let create_error = |source| DiskError::Create { directory: directory.to_path_buf(), source };
    let named =
        tempfile::Builder::new().prefix("tidegate-reads-").tempfile_in(directory).map_err(create_error)?;
    // The name goes with `named`, at the end of this function; the file stays as long as it is
    // open.
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(named.path())
        .map_err(|error| DiskError::NotDirect {
            directory: directory.to_path_buf(),
            reason: error.to_string(),
        })
}

/// Newer kernels take O_DIRECT for files in memory, too, where it means nothing.
#[cfg(target_os = "linux")]
fn check_is_on_a_disk(file: &File, directory: &Path) -> Result<(), DiskError> {
    use std::os::unix::fs::MetadataExt;
    let (Ok(metadata), Ok(mounts)) = (file.metadata(), std::fs::read_to_string("/proc/self/mountinfo"))
    else {
        // Not known; then the numbers have to tell.
        return Ok(());
    };
    let device = format!("{}:{}", libc::major(metadata.dev()), libc::minor(metadata.dev()));
    match file_system_of(&mounts, &device) {
        Some(kind @ ("tmpfs" | "ramfs")) => Err(DiskError::NotDirect {
            directory: directory.to_path_buf(),
            reason: format!("it lies in memory ({kind}), not on a disk"),
        }),
        _ => Ok(()),
    }
}

/// The type of the file system on a device, by the lines of `/proc/self/mountinfo` (proc(5)): the
/// third field is the device, and the type comes after a field that is a dash.
#[cfg(target_os = "linux")]
fn file_system_of<'m>(mounts: &'m str, device: &str) -> Option<&'m str> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    line.split_once(" - ")?.1.split(' ').next()
}

#[cfg(not(target_os = "linux"))]
fn open_nameless(directory: &Path) -> Result<File, DiskError> {
    let reason = "this program does so on Linux only".to_string();
    Err(DiskError::NotDirect { directory: directory.to_path_buf(), reason })
}

#[cfg(not(target_os = "linux"))]
fn check_is_on_a_disk(_: &File, _: &Path) -> Result<(), DiskError> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_found_by_device() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      25 22 0:22 / /dev/shm rw,nosuid shared:3 - tmpfs tmpfs rw,size=9k\n";
        assert_eq!(file_system_of(mounts, "254:0"), Some("ext4"));
        assert_eq!(file_system_of(mounts, "0:22"), Some("tmpfs"));
        assert_eq!(file_system_of(mounts, "0:2"), None);
    }

    #[test]
    fn buffers_begin_where_direct_reads_may_put_bytes() {
        for shift in 0..9 {
            let mut buffer = vec![0; 1000 + shift + ALIGNMENT];
            let slice = aligned(&mut buffer[shift..], 1000);
            assert_eq!((slice.as_ptr() as usize % ALIGNMENT, slice.len()), (0, 1000));
        }
    }
}
