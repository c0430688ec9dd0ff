//! System calls that are handed to another process, which answers in the kernel's place.
//!
//! The calls of the kernel for it have no safe form; with `fork.rs` this is all `unsafe` code there is.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use seccompiler::sock_filter;

/// A call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// Names it in the answer.
    pub(crate) id: u64,
    /// The thread that made it, numbered as the receiver sees it.
    pub(crate) thread: u32,
    pub(crate) number: i64,
    pub(crate) arguments: [u64; 6],
}

/// What a call is answered with.
#[derive(Debug)]
pub(crate) enum NotifyReply {
    /// The kernel carries it out as it was made. Its arguments may have changed since they were looked
    /// at, so that this permits nothing that was not permitted before.
    Continue,
    /// It returns nothing of note.
    Done,
    /// It fails.
    Failed(rustix::io::Errno),
}

/// Applies a filter to this process and all it starts whose calls of the action `USER_NOTIF` come out
/// at the descriptor.
#[expect(unsafe_code, reason = "seccomp has no safe form")]
pub(crate) fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Without it, a signal would make a call return that was carried out, as if it was not. Older
    // kernels do not know it.
    let steady = listen | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    for flags in [steady, listen] {
        // SAFETY: the kernel reads the program, which is as long as it is said to be, and whose
        // instructions have the layout of the kernel's (`#[repr(C)]`, 8 bytes).
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
                // SAFETY: the kernel has just made it for us.
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

/// Lets the receiver run at once, where the caller ran, which waits anyway: several times faster on a
/// busy machine. Older kernels do not know it.
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

/// The next call. Waits for one; `NotFound` when the one that was there is gone again.
#[expect(unsafe_code, reason = "ioctl has no safe form")]
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<Call> {
    // SAFETY: numbers only; the kernel wants them to be zero.
    let mut call: libc::seccomp_notif = unsafe { mem::zeroed() };
    // SAFETY: the kernel fills a structure that is its own and lives until it returns.
    let got = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            ptr::from_mut(&mut call),
        )
    };
    checked(got)?;
    Ok(Call {
        id: call.id,
        thread: call.pid,
        number: i64::from(call.data.nr),
        arguments: call.data.args,
    })
}

/// Does the call still wait? Only then is its thread certainly the one that made it.
#[expect(unsafe_code, reason = "ioctl has no safe form")]
pub(crate) fn waits(listener: BorrowedFd<'_>, call: &Call) -> bool {
    let id = call.id;
    // SAFETY: the kernel reads a number that lives until it returns.
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
    call: &Call,
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
    // SAFETY: the kernel reads a structure that is its own and lives until it returns.
    let got = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            ptr::from_mut(&mut response),
        )
    };
    checked(got)
}

/// Answers a call with an open file, which becomes one of the caller's.
#[expect(unsafe_code, reason = "ioctl has no safe form")]
pub(crate) fn hand_over(
    listener: BorrowedFd<'_>,
    call: &Call,
    file: BorrowedFd<'_>,
    close_on_exec: bool,
) -> io::Result<()> {
    let mut handed = libc::seccomp_notif_addfd {
        id: call.id,
        flags: 2, // SECCOMP_ADDFD_FLAG_SEND: the call returns it
        srcfd: file.as_raw_fd().unsigned_abs(),
        newfd: 0,
        newfd_flags: if close_on_exec {
            libc::O_CLOEXEC.unsigned_abs()
        } else {
            0
        },
    };
    // SAFETY: the kernel reads a structure that is its own and lives until it returns.
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
