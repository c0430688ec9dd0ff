//! Safe wrappers around unsafe system calls: creating processes, placing open files, and removing
//! variables from the environment. Each wrapper checks its preconditions. The only other `unsafe`
//! code of the workspace is in `notify.rs` and `memory.rs`.

use std::{
    env,
    ffi::{CStr, OsStr, OsString, c_char},
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    ptr,
};

use rustix::{io::fcntl_dupfd_cloexec, process::Pid, thread::UnshareFlags};

/// The process in which a fork has returned.
#[derive(Debug)]
pub(crate) enum ForkSide {
    /// The calling process, with the new process.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Forks this process. Refused if it has more than one thread: the child would miss the other
/// threads, but inherit locks that they hold.
#[expect(unsafe_code, reason = "fork has no safe form")]
pub(crate) fn fork() -> io::Result<ForkSide> {
    check_single_thread()?;
    // SAFETY: this process has exactly one thread, so the child is complete: no lock is held by a
    // thread that does not exist there, and any code may run in it.
    match unsafe { libc::fork() } {
        0 => Ok(ForkSide::Child),
        -1 => Err(io::Error::last_os_error()),
        pid => Pid::from_raw(pid)
            .map(ForkSide::Parent)
            .ok_or_else(|| io::Error::other("fork gave no process")),
    }
}

/// Like [`fork`], but the new process is in new namespaces. With `NEWPID` it is the first process
/// of its PID namespace: no signal from inside reaches it, and when it exits, the kernel ends all
/// other processes there.
#[expect(unsafe_code, reason = "clone has no safe form")]
pub(crate) fn fork_into(spaces: UnshareFlags) -> io::Result<ForkSide> {
    check_single_thread()?;
    let flags = libc::c_ulong::from(spaces.bits() | libc::SIGCHLD.unsigned_abs());
    let none: libc::c_ulong = 0;
    // SAFETY: as for `fork`: without a given stack the child continues on a copy of this one, and
    // no memory is shared, because the flags contain only namespaces.
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        0 => Ok(ForkSide::Child),
        -1 => Err(io::Error::last_os_error()),
        pid => i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(ForkSide::Parent)
            .ok_or_else(|| io::Error::other("clone gave no process")),
    }
}

/// Moves this process into new namespaces. Refused if it has more than one thread.
#[expect(
    unsafe_code,
    reason = "unshare has no safe form that is not deprecated"
)]
pub(crate) fn unshare(spaces: UnshareFlags) -> io::Result<()> {
    check_single_thread()?;
    let spaces = spaces.difference(UnshareFlags::FILES);
    // SAFETY: only two threads with different tables of open files would be a problem. The flag for
    // that is removed, and there is only one thread.
    unsafe { rustix::thread::unshare_unsafe(spaces) }?;
    Ok(())
}

/// Sets every signal to its default action for a program that is about to be executed. Includes
/// signals that our process inherited as ignored, as shells do with `INT` for background jobs: a
/// program that inherits this could not be interrupted, and most programs do not change it.
#[expect(unsafe_code, reason = "signal has no safe form")]
pub(crate) fn default_signals() {
    const LAST: i32 = 31;
    for number in 1..=LAST {
        // SAFETY: the default actions are the kernel's own, so no code of this process runs on a
        // signal. Signals that cannot be changed are refused.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Places open files at the numbers where the next program expects them, and marks all others to be
/// closed on exec. For a process that is about to execute that program: files that it had at these
/// numbers are closed. Returns the socket at an unused number.
#[expect(unsafe_code, reason = "a descriptor without an owner has no safe form")]
pub(crate) fn place_files(
    files: Vec<(i32, OwnedFd)>,
    socket: OwnedFd,
) -> Result<OwnedFd, (io::Error, OwnedFd)> {
    let beyond = files
        .iter()
        .map(|(number, _)| *number)
        .max()
        .unwrap_or(2)
        .max(2)
        + 1;
    // Move all files away from the requested numbers first, so that none is overwritten by another.
    let mut moved = Vec::new();
    for (number, file) in &files {
        match fcntl_dupfd_cloexec(file, beyond) {
            Ok(file) => moved.push((*number, file)),
            Err(error) => return Err((error.into(), socket)),
        }
    }
    let kept = match fcntl_dupfd_cloexec(&socket, beyond) {
        Ok(kept) => kept,
        Err(error) => return Err((error.into(), socket)),
    };
    // These values own numbers that are about to be reused. The files are closed when the process
    // ends.
    std::mem::forget((files, socket));
    for entry in fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
    {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|number: &i32| *number > 2) {
            // SAFETY: sets a flag of a descriptor; a number without an open file is refused.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    for (number, file) in &moved {
        // SAFETY: the file at that number is no longer used: this process is about to execute
        // another program, and the files that it still needs are above all requested numbers.
        if unsafe { libc::dup2(file.as_raw_fd(), *number) } < 0 {
            return Err((io::Error::last_os_error(), kept));
        }
    }
    Ok(kept)
}

#[expect(
    unsafe_code,
    reason = "a C variable that the standard library does not expose"
)]
unsafe extern "C" {
    /// The environment of this process: entries `NAME=VALUE`, then a null pointer.
    static environ: *const *mut c_char;
}

/// Removes variables from the environment of this process and returns them; `is_selected` selects
/// them. Also overwrites their values, so that `/proc/PID/environ` does not show them. Must be called
/// at the start of `main`: fails if there is more than one thread, because another one could read the
/// environment.
#[expect(
    unsafe_code,
    reason = "the environment is changed in place, which has no safe form"
)]
pub fn take_variables(
    is_selected: impl Fn(&OsStr, &OsStr) -> bool,
) -> io::Result<Vec<(OsString, OsString)>> {
    let mut taken: Vec<_> = env::vars_os().collect();
    taken.retain(|(name, value)| is_selected(name, value));
    if taken.is_empty() {
        return Ok(taken);
    }
    check_single_thread()?;
    let names: Vec<Vec<u8>> = taken
        .iter()
        .map(|(name, _)| [name.as_bytes(), b"="].concat())
        .collect();
    // SAFETY: there is only this thread, so nothing else reads or changes the environment at the
    // same time. C specifies that every entry of `environ` up to the null pointer is a string with
    // a terminating zero byte in writable memory of this process; only bytes before that zero are
    // written.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = *entry;
            let bytes = CStr::from_ptr(text).to_bytes();
            let length = bytes.len();
            if let Some(name) = names.iter().find(|name| bytes.starts_with(name)) {
                ptr::write_bytes(text.add(name.len()), 0, length - name.len());
            }
            entry = entry.add(1);
        }
        // `remove_var` rejects a name with `=`; the value is overwritten nevertheless.
        for (name, _) in &taken {
            if !name.as_bytes().contains(&b'=') {
                env::remove_var(name);
            }
        }
    }
    Ok(taken)
}

/// Fails if this process has more than one thread.
fn check_single_thread() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(io::Error::other(format!(
            "this process has {threads} threads; only one with a single thread can be doubled"
        ))),
    }
}
