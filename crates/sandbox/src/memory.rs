//! The C library's handling of freed memory.

/// The minimum size in bytes of a freed buffer that is returned to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 1 << 20;

/// Makes the C library return large buffers to the system when they are freed. By default it raises
/// this threshold after the first large buffer and caches them for each thread: a process that
/// reads long answers then holds several times the memory that it uses. Must be called at the start of
/// `main`.
pub fn trim_freed_buffers() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "mallopt has no safe form")]
    // SAFETY: takes two numbers and changes how memory is allocated from then on. If the option is
    // not supported, nothing changes.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}
