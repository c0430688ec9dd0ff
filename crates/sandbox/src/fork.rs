//! What has no safe form, made safe by what is checked here: the system calls that make processes, and
//! taking variables out of the environment. The only other `unsafe` code of the workspace is in
//! `notify.rs`.

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

/// Which side of a fork this is.
#[derive(Debug)]
pub(crate) enum Forked {
    /// The one that was there before; with the process it made.
    Parent(Pid),
    /// The new one.
    Child,
}

/// Makes a second process of this one. Refused when there is more than one thread: the others would
/// be gone in the child, with whatever locks they held.
#[expect(unsafe_code, reason = "fork has no safe form")]
pub(crate) fn fork() -> io::Result<Forked> {
    alone()?;
    // SAFETY: this process has one thread, which is this one, so that the child is whole: no lock
    // is held by a thread that is not there, and any code may run in it.
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child),
        -1 => Err(io::Error::last_os_error()),
        pid => Pid::from_raw(pid)
            .map(Forked::Parent)
            .ok_or_else(|| io::Error::other("fork gave no process")),
    }
}

/// As [`fork`], with the new process in name spaces of its own. With `NEWPID` it is the first process of
/// its space: no signal from inside reaches it, and when it ends, the kernel ends all others there.
#[expect(unsafe_code, reason = "clone has no safe form")]
pub(crate) fn fork_into(spaces: UnshareFlags) -> io::Result<Forked> {
    alone()?;
    let flags = libc::c_ulong::from(spaces.bits() | libc::SIGCHLD.unsigned_abs());
    let none: libc::c_ulong = 0;
    // SAFETY: as for `fork`: without a stack of its own the child goes on with a copy of this one, and
    // no memory is shared, for the flags name only spaces.
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        0 => Ok(Forked::Child),
        -1 => Err(io::Error::last_os_error()),
        pid => i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(Forked::Parent)
            .ok_or_else(|| io::Error::other("clone gave no process")),
    }
}

/// Leaves the name spaces it shares with others. Refused when there is more than one thread.
#[expect(
    unsafe_code,
    reason = "unshare has no safe form that is not deprecated"
)]
pub(crate) fn unshare(spaces: UnshareFlags) -> io::Result<()> {
    alone()?;
    let spaces = spaces.difference(UnshareFlags::FILES);
    // SAFETY: what could harm are two threads with different tables of open files; the flag is taken
    // out, and there is one thread only.
    unsafe { rustix::thread::unshare_unsafe(spaces) }?;
    Ok(())
}

/// Answers every signal as a new program expects it to be: those that our process was started to ignore too,
/// as shells do with `INT` for what they start in the background. A program that finds it ignored could not be
/// interrupted, and most leave it so.
#[expect(unsafe_code, reason = "signal has no safe form")]
pub(crate) fn default_signals() {
    const LAST: i32 = 31;
    for number in 1..=LAST {
        // SAFETY: no code of ours runs on a signal from here on: the default is the kernel's own. Those
        // that cannot be changed are refused.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Puts open files at the numbers where the next program expects them, and closes for it all others. For a
/// process that is about to become that program: whatever it had at these numbers is gone. The socket is kept
/// for this process, at a number that no one asked for.
#[expect(unsafe_code, reason = "a number that no one owns has no safe form")]
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
    // First all of it away from the numbers that are asked for, or one would be put over another.
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
    // These own numbers that are about to become others'; the end of the process closes them.
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
            // SAFETY: a flag of a number is set; where it is no open file, that is refused.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    for (number, file) in &moved {
        // SAFETY: what stood at that number is not used any more: this process becomes another program, and
        // what it still needs stands above all numbers that are asked for.
        if unsafe { libc::dup2(file.as_raw_fd(), *number) } < 0 {
            return Err((io::Error::last_os_error(), kept));
        }
    }
    Ok(kept)
}

#[expect(unsafe_code, reason = "it is C's, and there is no other way to it")]
unsafe extern "C" {
    /// The environment of this process: entries `NAME=VALUE`, then a null pointer.
    static environ: *const *mut c_char;
}

/// Takes variables out of the environment of this process, so that their values are not to be read in
/// `/proc/PID/environ` either; `wanted` says which. For the very beginning of `main`: refused when there
/// is more than one thread, since another could be reading them.
#[expect(
    unsafe_code,
    reason = "the environment is changed in place, which has no safe form"
)]
pub fn take_variables(
    wanted: impl Fn(&OsStr, &OsStr) -> bool,
) -> io::Result<Vec<(OsString, OsString)>> {
    let mut taken: Vec<_> = env::vars_os().collect();
    taken.retain(|(name, value)| wanted(name, value));
    if taken.is_empty() {
        return Ok(taken);
    }
    alone()?;
    let names: Vec<Vec<u8>> = taken
        .iter()
        .map(|(name, _)| [name.as_bytes(), b"="].concat())
        .collect();
    // SAFETY: there is one thread, and it is here, so that nothing reads or changes the environment
    // meanwhile. Every entry up to the null pointer is a string that ends in a zero byte, in memory of
    // this process that may be written, as C says of `environ`; only bytes before that zero are.
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
        // An odd name cannot be removed; its value is gone all the same.
        for (name, _) in &taken {
            if !name.as_bytes().contains(&b'=') {
                env::remove_var(name);
            }
        }
    }
    Ok(taken)
}

fn alone() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(io::Error::other(format!(
            "this process has {threads} threads; only one with a single thread can be doubled"
        ))),
    }
}
