//! Seccomp notifications: system calls that another process handles instead of the kernel.
//!
//! The system calls for it have no safe wrapper. The only other `unsafe` code of the workspace is
//! in `fork.rs` and `memory.rs`.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use seccompiler::sock_filter;

/// A system call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotifiedCall {
    /// The ID that the answer must contain.
    pub(crate) id: u64,
    /// The thread that made the call, as an ID in the receiver's PID namespace.
    pub(crate) thread: u32,
    pub(crate) number: i64,
    pub(crate) arguments: [u64; 6],
}

/// The answer to a call.
#[derive(Debug)]
pub(crate) enum NotifyReply {
    /// The kernel carries out the call. Its arguments may have changed since they were inspected,
    /// so this answer must not permit anything that was not permitted before.
    Continue,
    /// The call returns 0.
    Done,
    /// The call fails.
    Failed(rustix::io::Errno),
}

/// Applies a filter to this process and all its children. Calls for which the filter returns
/// `USER_NOTIF` are reported on the returned descriptor.
#[expect(unsafe_code, reason = "seccomp has no safe form")]
pub(crate) fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Without this flag, a signal could interrupt a call that was already carried out, and the
    // caller would repeat it. Older kernels do not support it.
    let steady = listen | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    for flags in [steady, listen] {
        // SAFETY: the kernel reads the program. Its length is correct, and its instructions have
        // the kernel's layout (`#[repr(C)]`, 8 bytes).
        let got = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::c_ulong::from(libc::SECCOMP_SET_MODE_FILTER),
                flags,
                ptr::from_ref(&program),
            )
        };
        match i32::try_from(got) {
            Ok(fd) if fd >= 0 => {
                // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
                let listener = unsafe { OwnedFd::from_raw_fd(fd) };
                hand_the_processor_over(&listener);
                return Ok(listener);
            }
            _ if flags == listen => break,
            _ => {}
        }
    }
    Err(io::Error::last_os_error())
}

/// Makes the kernel run the receiver immediately on the caller's processor, since the caller waits
/// anyway: several times faster on a busy machine. Older kernels do not support it.
#[expect(unsafe_code, reason = "ioctl has no safe form")]
fn hand_the_processor_over(listener: &OwnedFd) {
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: the argument is a number.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
            SYNC_WAKE_UP,
        );
    }
}

/// Waits for the next call and returns it. `NotFound` if the call was cancelled in the meantime.
#[expect(unsafe_code, reason = "ioctl has no safe form")]
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<NotifiedCall> {
    // SAFETY: the structure contains only numbers; the kernel requires them to be zero.
    let mut call: libc::seccomp_notif = unsafe { mem::zeroed() };
    // SAFETY: the kernel fills a structure of the type that it expects, which lives until the call returns.
    let got = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            ptr::from_mut(&mut call),
        )
    };
    checked(got)?;
    Ok(NotifiedCall {
        id: call.id,
        thread: call.pid,
        number: i64::from(call.data.nr),
        arguments: call.data.args,
    })
}

/// Returns whether the call still waits. Only then does its thread ID certainly refer to the thread
/// that made it.
#[expect(unsafe_code, reason = "ioctl has no safe form")]
pub(crate) fn waits(listener: BorrowedFd<'_>, call: &NotifiedCall) -> bool {
    let id = call.id;
    // SAFETY: the kernel reads a number that lives until the call returns.
    let got = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            ptr::from_ref(&id),
        )
    };
    got == 0
}

/// Answers a call.
#[expect(unsafe_code, reason = "ioctl has no safe form")]
pub(crate) fn answer(
    listener: BorrowedFd<'_>,
    call: &NotifiedCall,
    answer: &NotifyReply,
) -> io::Result<()> {
    let (error, flags) = match answer {
        NotifyReply::Continue => (0, 1), // SECCOMP_USER_NOTIF_FLAG_CONTINUE
        NotifyReply::Done => (0, 0),
        NotifyReply::Failed(errno) => (-errno.raw_os_error(), 0),
    };
    let mut response = libc::seccomp_notif_resp {
        id: call.id,
        val: 0,
        error,
        flags,
    };
    // SAFETY: the kernel reads a structure of the type that it expects, which lives until the call returns.
    let got = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            ptr::from_mut(&mut response),
        )
    };
    checked(got)
}

/// Answers a call with an open file, which the caller receives as a new descriptor.
#[expect(unsafe_code, reason = "ioctl has no safe form")]
pub(crate) fn hand_over(
    listener: BorrowedFd<'_>,
    call: &NotifiedCall,
    file: BorrowedFd<'_>,
    close_on_exec: bool,
) -> io::Result<()> {
    let mut handed = libc::seccomp_notif_addfd {
        id: call.id,
        flags: 2, // SECCOMP_ADDFD_FLAG_SEND: the call returns the new descriptor
        srcfd: file.as_raw_fd().unsigned_abs(),
        newfd: 0,
        newfd_flags: if close_on_exec {
            libc::O_CLOEXEC.unsigned_abs()
        } else {
            0
        },
    };
    // SAFETY: the kernel reads a structure of the type that it expects, which lives until the call returns.
    let got = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ADDFD,
            ptr::from_mut(&mut handed),
        )
    };
    checked(got)
}

/// Connects a socket to an address of any family, given as the bytes of its `sockaddr`.
#[expect(
    unsafe_code,
    reason = "no safe form takes the address of a family it does not know"
)]
pub(crate) fn connect(socket: impl AsFd, address: &[u8]) -> rustix::io::Result<()> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| rustix::io::Errno::INVAL)?;
    // SAFETY: the kernel copies as many bytes as there are, and interprets its own copy.
    let got = unsafe {
        libc::connect(
            socket.as_fd().as_raw_fd(),
            address.as_ptr().cast::<libc::sockaddr>(),
            length,
        )
    };
    checked(got)
        .map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))
}

fn checked(got: i32) -> io::Result<()> {
    if got < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
