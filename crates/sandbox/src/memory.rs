//! What the C library does with memory that is free again.

/// Buffers from this length on are given back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 1 << 20;

/// Has large buffers given back when they are freed. Left to itself the C library begins to keep them once it has seen
/// one, for each thread: a process that reads long answers then holds several times what it uses. For the very
/// beginning of `main`.
pub fn give_back_large_buffers() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "mallopt has no safe form")]
    // SAFETY: it takes two numbers and changes how memory is handed out from then on; where it cannot, nothing changes.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}
