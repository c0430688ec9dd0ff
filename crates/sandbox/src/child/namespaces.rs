//! The sandbox's own namespaces: user, mount, PID, network, IPC and cgroup.

use std::{
    fs,
    io::{self, Read},
    process,
};

use rustix::{
    process::{WaitOptions, getegid, geteuid, getpid, waitpid},
    thread::UnshareFlags,
};

use super::keeper::{SetupFailure, step};
use crate::{
    SandboxNetwork, SandboxProfile,
    fork::{ForkSide, fork, unshare},
    protocol::SandboxPlan,
};

/// Moves this process into new namespaces. With a new PID namespace, the next process that it forks
/// is the first one there. The user namespace comes first: it permits the others without root.
pub(super) fn enter(plan: &SandboxPlan) -> Result<(), SetupFailure> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    step("a user namespace", || {
        if uid == 0 {
            among_all_users()
        } else {
            unshare(UnshareFlags::NEWUSER)
        }
    })?;
    step("the map of users", || map_self(uid, gid))?;
    let mut spaces = UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWCGROUP;
    if plan.own_processes {
        spaces |= UnshareFlags::NEWPID;
    }
    if !has_network(&plan.profile) {
        spaces |= UnshareFlags::NEWNET;
    }
    step("mount, PID and network namespaces", || unshare(spaces))
}

/// Returns whether the profile gives access to the machine's network.
pub(super) fn has_network(profile: &SandboxProfile) -> bool {
    match profile {
        SandboxProfile::ReadOnly(_) => false,
        SandboxProfile::Workspace(workspace) => workspace.network == SandboxNetwork::Open,
        SandboxProfile::Full => true,
    }
}

/// Enters a user namespace that maps all users, so that files of other users keep their owners.
/// Only a process outside the namespace may write this map: a second process, which then exits.
fn among_all_users() -> io::Result<()> {
    let process = getpid();
    let (mut left, entered) = io::pipe()?;
    match fork()? {
        ForkSide::Child => {
            drop(entered);
            // Nothing is sent: the other process closes its end after it entered the namespace.
            let _ = left.read(&mut [0]);
            for map in ["uid_map", "gid_map"] {
                // If this fails, `map_self` writes a map.
                let _ = fs::read_to_string(format!("/proc/self/{map}")).and_then(|known| {
                    fs::write(format!("/proc/{process}/{map}"), everyone(&known))
                });
            }
            process::exit(0);
        }
        ForkSide::Parent(second) => {
            let moved = unshare(UnshareFlags::NEWUSER);
            drop((left, entered));
            waitpid(Some(second), WaitOptions::empty())?;
            moved
        }
    }
}

/// Returns the identity map for a map whose lines are `INSIDE OUTSIDE COUNT`: a container may know
/// only some user IDs.
fn everyone(known: &str) -> String {
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (first, many) = (fields.next()?, fields.nth(1)?);
        Some(format!("{first} {first} {many}\n"))
    };
    known.lines().filter_map(line).collect()
}

/// Maps this process to its own user and group, unless a map exists. An unprivileged user may map
/// only itself.
fn map_self(uid: u32, gid: u32) -> io::Result<()> {
    let empty = |map: &str| Ok::<_, io::Error>(fs::read_to_string(map)?.trim().is_empty());
    if empty("/proc/self/uid_map")? {
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    }
    if empty("/proc/self/gid_map")? {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    Ok(())
}

/// Enables the loopback interface of a new network namespace, on which our process listens.
pub(super) fn loopback_up() -> io::Result<()> {
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None, // NETLINK_ROUTE
    )?;
    rustix::net::send(&socket, &link_up(LOOPBACK), SendFlags::empty())?;
    let mut answer = [0; 256];
    let (got, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    match netlink_error(&answer[..got]) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::Error::other("netlink did not answer")),
    }
}

/// The index of the loopback interface, the first of every network namespace.
const LOOPBACK: i32 = 1;

/// Returns a netlink request (`nlmsghdr` and `ifinfomsg`) that sets the UP flag of an interface and
/// asks for an answer.
fn link_up(interface: i32) -> Vec<u8> {
    const RTM_NEWLINK: u16 = 16;
    const REQUEST_ACK: u16 = 1 | 4;
    const UP: u32 = 1;
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes()); // length
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(REQUEST_ACK.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes()); // sequence
    message.extend(0_u32.to_ne_bytes()); // to the kernel
    message.extend([0, 0, 0, 0]); // any family, padding, type
    message.extend(interface.to_ne_bytes());
    message.extend(UP.to_ne_bytes()); // flags
    message.extend(UP.to_ne_bytes()); // mask of the flags to change
    message
}

/// Returns the error code of a netlink answer, which follows a header of 16 bytes.
fn netlink_error(answer: &[u8]) -> Option<i32> {
    const NLMSG_ERROR: u16 = 2;
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let code = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    (kind == NLMSG_ERROR).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_stays_who_they_are() {
        let all = "         0          0 4294967295\n";
        assert_eq!(everyone(all), "0 0 4294967295\n");
        let container = "0 1000 1\n1 100000 65536\n";
        assert_eq!(everyone(container), "0 0 1\n1 1 65536\n");
        assert_eq!(everyone(""), "");
    }
}
