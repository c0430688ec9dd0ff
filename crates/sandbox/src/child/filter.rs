//! Seccomp filters: refuse system calls that no command needs, and pass some calls to the guard.

use std::{collections::BTreeMap, io};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter, sock_filter,
};

use super::keeper::SetupFailure;
use crate::{SandboxNetwork, SandboxProfile};

/// The number of this call, which `libc` does not list; it is the same on all architectures.
const OPEN_TREE_ATTR: i64 = 467;

/// Calls that are always refused: inspecting other processes, kernel interfaces with a large attack
/// surface, mounts and namespaces.
const REFUSED: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
];

#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: &[i64] = &[];

/// The flags that make `clone` create a process in a new namespace.
const SPACES: [i32; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    0x80, // CLONE_NEWTIME
];

/// The terminal requests that type into the input of another program.
const TYPING: [u64; 2] = [0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */];

/// The ioctl requests that create a directory with a name, or a copy of one: subvolumes and
/// snapshots of btrfs (two requests each), and subvolumes of bcachefs.
const NAMING_REQUESTS: [u64; 5] = [
    0x5000_940e,
    0x5000_9418,
    0x5000_9401,
    0x5000_9417,
    0x4020_bc10,
];

/// Applies a filter to this process and all its children. It cannot be removed.
pub(super) fn apply(program: &BpfProgram) -> Result<(), SetupFailure> {
    apply_filter(program)
        .map_err(|error| SetupFailure::new("the filter of system calls", &other(error)))
}

/// Returns the filters of a profile. `connects` allows Unix stream sockets.
pub(super) fn programs(
    profile: &SandboxProfile,
    connects: bool,
) -> Result<Vec<BpfProgram>, SetupFailure> {
    compiled(profile, connects)
        .map_err(|error| SetupFailure::new("the filter of system calls", &error))
}

fn compiled(profile: &SandboxProfile, connects: bool) -> io::Result<Vec<BpfProgram>> {
    let refused = compile(refused(profile, connects)?, libc::EPERM)?;
    // The flags of `clone3` are in memory, which a filter cannot read. Libraries fall back to
    // `clone`.
    let unknown = compile(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        libc::ENOSYS,
    )?;
    let mut programs = vec![refused, unknown];
    if cfg!(target_arch = "x86_64") {
        programs.push(without_x32());
    }
    Ok(programs)
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> io::Result<BpfProgram> {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        std::env::consts::ARCH.try_into().map_err(other)?,
    );
    filter.and_then(TryInto::try_into).map_err(other)
}

/// Returns a filter that refuses the calls of the x32 ABI. Their numbers differ, so the other
/// filters would not match them.
fn without_x32() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS, at offset 0
    const AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    const ANSWER: u16 = 0x06; // BPF_RET | BPF_K
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        instruction(LOAD_NUMBER, 0, 0, 0),
        instruction(AT_LEAST, 0, 1, 0x4000_0000),
        instruction(ANSWER, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
        instruction(ANSWER, 0, 0, ALLOW),
    ]
}

/// Calls that are passed to the guard regardless of their arguments: those that create or remove a
/// file name, `truncate`, and those that bind or connect a socket.
const NAMING: &[i64] = &[
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_truncate,
    libc::SYS_bind,
    libc::SYS_connect,
];

#[cfg(target_arch = "x86_64")]
const NAMING_HERE: &[i64] = &[
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_symlink,
    libc::SYS_link,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_unlink,
    libc::SYS_rmdir,
];
#[cfg(not(target_arch = "x86_64"))]
const NAMING_HERE: &[i64] = &[libc::SYS_renameat];

/// The number of this call, which `libc` does not list; it is the same on all architectures.
pub(super) const FCHMODAT2: i64 = 452;

/// Calls that change the metadata of a file. The guard performs those that name it by a path. Those
/// on an open file are left to the kernel once the guard has stored the old metadata.
const DESCRIBING: &[i64] = &[
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_fsetxattr,
    libc::SYS_fremovexattr,
];

/// The ioctl requests that change the metadata of an open file: `FS_IOC_SETFLAGS`, its form for
/// 32-bit programs, and `FS_IOC_FSSETXATTR`.
const DESCRIBING_REQUESTS: [u32; 3] = [0x4008_6602, 0x4004_6602, 0x401c_5820];

/// The numbers of newer calls that change metadata, which `libc` does not list: `setxattrat`,
/// `removexattrat` and `file_setattr`. They are the same on all architectures.
const NEWER_DESCRIBING: [i64; 3] = [463, 466, 469];

#[cfg(target_arch = "x86_64")]
const DESCRIBING_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const DESCRIBING_HERE: &[i64] = &[];

/// Calls that the guard performs if they open for writing, with the index of their flags argument.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(i64, u32)] = &[(libc::SYS_open, 1), (libc::SYS_openat, 2)];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(i64, u32)] = &[(libc::SYS_openat, 2)];

/// Returns a filter that refuses `openat2`: its flags are in memory, so a filter cannot decide
/// whether to pass it to the guard. Also refuses newer forms of calls that the guard performs.
/// Programs that use them fall back to the older calls.
pub(super) fn unmediated() -> Result<BpfProgram, SetupFailure> {
    let calls = NEWER_DESCRIBING.iter().chain(&[libc::SYS_openat2]);
    let calls = calls.map(|call| (*call, Vec::new())).collect();
    compile(calls, libc::ENOSYS)
        .map_err(|error| SetupFailure::new("the filter of system calls", &error))
}

/// Returns the filter that passes calls to the guard if they create files, change their names, or
/// open them for writing.
pub(super) fn mediated() -> Result<BpfProgram, SetupFailure> {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const IF_ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
    const ANSWER: u16 = 0x06; // BPF_RET | BPF_K
    const HAND_OVER: u32 = 0x7fc0_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const ARGUMENTS: u32 = 16; // offset of the first argument
    let writes = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let number = |call: i64| {
        u32::try_from(call)
            .map_err(|error| SetupFailure::new("the filter of system calls", &other(error)))
    };
    let mut program = vec![instruction(LOAD, 0, 0, 0)];
    let calls = NAMING.iter().chain(NAMING_HERE);
    for call in calls.chain(DESCRIBING).chain(DESCRIBING_HERE) {
        program.push(instruction(IF_EQUAL, 0, 1, number(*call)?));
        program.push(instruction(ANSWER, 0, 0, HAND_OVER));
    }
    for (call, argument) in OPENING {
        program.push(instruction(IF_EQUAL, 0, 4, number(*call)?));
        // The low half of the argument; the supported architectures are little-endian.
        program.push(instruction(LOAD, 0, 0, ARGUMENTS + argument * 8));
        program.push(instruction(IF_ANY_BIT, 0, 1, writes.unsigned_abs()));
        program.push(instruction(ANSWER, 0, 0, HAND_OVER));
        program.push(instruction(ANSWER, 0, 0, ALLOW));
    }
    program.push(instruction(IF_EQUAL, 0, 8, number(libc::SYS_ioctl)?));
    program.push(instruction(LOAD, 0, 0, ARGUMENTS + 8));
    for request in DESCRIBING_REQUESTS {
        program.push(instruction(IF_EQUAL, 0, 1, request));
        program.push(instruction(ANSWER, 0, 0, HAND_OVER));
    }
    program.push(instruction(ANSWER, 0, 0, ALLOW));
    // If the path of `utimensat` is null, as in most calls, the call changes an open file and is
    // not mediated.
    program.push(instruction(IF_EQUAL, 0, 6, number(libc::SYS_utimensat)?));
    program.push(instruction(LOAD, 0, 0, ARGUMENTS + 8));
    program.push(instruction(IF_EQUAL, 0, 2, 0));
    program.push(instruction(LOAD, 0, 0, ARGUMENTS + 12));
    program.push(instruction(IF_EQUAL, 1, 0, 0));
    program.push(instruction(ANSWER, 0, 0, HAND_OVER));
    program.push(instruction(ANSWER, 0, 0, ALLOW));
    program.push(instruction(ANSWER, 0, 0, ALLOW));
    Ok(program)
}

fn refused(
    profile: &SandboxProfile,
    connects: bool,
) -> io::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED
        .iter()
        .chain(OF_THIS_MACHINE)
        .map(|call| (*call, Vec::new()))
        .collect();
    let spaces = SPACES.map(|space| {
        let space = u64::from(space.unsigned_abs());
        when(&[(0, SeccompCmpOp::MaskedEq(space), space)])
    });
    rules.insert(
        libc::SYS_clone,
        spaces.into_iter().collect::<io::Result<_>>()?,
    );
    let requests = TYPING.iter().chain(&NAMING_REQUESTS);
    let requests = requests.map(|request| when(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, requests.collect::<io::Result<_>>()?);
    // Process 0 means the caller's own limits. Changing the limits of another process could end it.
    rules.insert(
        libc::SYS_prlimit64,
        vec![when(&[(0, SeccompCmpOp::Ne, 0)])?],
    );
    rules.insert(libc::SYS_socket, sockets(profile, connects)?);
    rules.insert(libc::SYS_socketpair, pairs()?);
    Ok(rules)
}

/// Returns the pairs of sockets that are refused: those that can send a packet to any other socket
/// file, by its name. That name is in memory, where a filter cannot check it.
fn pairs() -> io::Result<Vec<SeccompRule>> {
    [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM]
        .into_iter()
        .map(|kind| {
            let kind = u64::from(kind.unsigned_abs());
            when(&[(1, SeccompCmpOp::MaskedEq(0xf), kind)])
        })
        .collect()
}

/// Returns the kinds of sockets that are refused.
fn sockets(profile: &SandboxProfile, connects: bool) -> io::Result<Vec<SeccompRule>> {
    let network = match profile {
        SandboxProfile::ReadOnly(_) => return Ok(Vec::new()), // all kinds
        SandboxProfile::Workspace(workspace) => workspace.network,
        SandboxProfile::Full => SandboxNetwork::Open,
    };
    let mut families = Vec::new();
    if connects {
        families.push(libc::AF_UNIX);
    }
    if network != SandboxNetwork::None {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if families.is_empty() {
        return Ok(Vec::new());
    }
    // Refuse a family that differs from every allowed one.
    let differs: Vec<_> = families
        .iter()
        .map(|family| (0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
        .collect();
    let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
    let mut rules = vec![when(&differs)?];
    if families.contains(&libc::AF_NETLINK) {
        // Programs use netlink sockets only to list interfaces and routes.
        rules.push(when(&[
            (0, SeccompCmpOp::Eq, netlink),
            (2, SeccompCmpOp::Ne, 0),
        ])?);
    }
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    // A datagram names its receiver in memory; see `pairs`.
    rules.push(when(&[
        (0, SeccompCmpOp::Eq, unix),
        (
            1,
            SeccompCmpOp::MaskedEq(0xf),
            u64::from(libc::SOCK_DGRAM.unsigned_abs()),
        ),
    ])?);
    // Raw packets could bypass the proxy.
    let kind = |kind: i32| u64::from(kind.unsigned_abs());
    rules.push(when(&[
        (0, SeccompCmpOp::Ne, netlink),
        (1, SeccompCmpOp::MaskedEq(0xf), kind(libc::SOCK_RAW)),
    ])?);
    Ok(rules)
}

fn when(conditions: &[(u8, SeccompCmpOp, u64)]) -> io::Result<SeccompRule> {
    let conditions: Result<Vec<_>, _> = conditions
        .iter()
        .map(|(argument, test, value)| {
            SeccompCondition::new(*argument, Dword, test.clone(), *value)
        })
        .collect();
    SeccompRule::new(conditions.map_err(other)?).map_err(other)
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}
