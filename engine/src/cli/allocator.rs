//! The system's allocator, kept within the memory budget.

/// Blocks from this size on go back to the system when they are freed: buffers of compactions, write
/// buffers, what releases waited in. (glibc's own limit grows to 32 MiB with what was freed.)
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LEAST_MAPPED_BYTES: libc::c_int = 64 << 10;

/// Lets the allocator keep less that is free: one arena a core, where glibc has eight, and no large
/// blocks.
///
/// What a thread frees stays in its arena, and reader threads allocate what workers free. With 12 of
/// them, a process of 64 MiB was 17 MB larger for the arenas and 4 MB for the blocks, and no faster.
pub(super) fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let arenas = libc::c_int::try_from(cores).unwrap_or(libc::c_int::MAX);
        // SAFETY: each call takes two numbers and touches the allocator's own settings, under its own
        // lock. It says in its result whether it took them; if not, nothing has changed.
        #[allow(unsafe_code)]
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, arenas);
            libc::mallopt(libc::M_MMAP_THRESHOLD, LEAST_MAPPED_BYTES);
        }
    }
}
