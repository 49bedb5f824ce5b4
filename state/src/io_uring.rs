//! Whether this system lets a process have several reads in flight on one thread.

use std::sync::OnceLock;

/// Whether RocksDB's batched reads can use io_uring here: the kernel is new enough, and neither
/// it nor a container's filter of system calls refuses it. Asked once for the process.
///
/// Where it is refused, RocksDB reads the blocks of a batch one after the other, and where only
/// some threads are refused it prints to standard output at each batch. So whoever knows the
/// answer asks for single reads instead, on several threads.
pub fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(probe)
}

/// Sets up a ring as RocksDB's `CreateIOUring` does (env/io_posix.h): with its depth, and with
/// the flags that need Linux 6.1.
#[cfg(target_os = "linux")]
fn probe() -> bool {
    const DEPTH: u32 = 256;
    let ring: std::io::Result<io_uring::IoUring> =
        io_uring::IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(DEPTH);
    ring.is_ok()
}

#[cfg(not(target_os = "linux"))]
fn probe() -> bool {
    false
}
