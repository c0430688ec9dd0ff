//! Name spaces: users, mounts, processes, network and the like that are the sandbox's own.

use std::{
    fs,
    io::{self, Read},
    process,
};

use rustix::{
    process::{WaitOptions, getegid, geteuid, getpid, waitpid},
    thread::UnshareFlags,
};

use super::keeper::{Step, step};
use crate::{
    Network, SandboxProfile,
    fork::{Forked, fork, unshare},
    protocol::Plan,
};

/// Moves this process into spaces of its own; what it forks then is the first process of the new
/// process space. Users first: that is what permits the rest without being root.
pub(super) fn enter(plan: &Plan) -> Result<(), Step> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    step("a user name space", || {
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
    step("mount, process and network name spaces", || unshare(spaces))
}

/// Does it see the network of the machine?
pub(super) fn has_network(profile: &SandboxProfile) -> bool {
    match profile {
        SandboxProfile::ReadOnly(_) => false,
        SandboxProfile::Workspace(workspace) => workspace.network == Network::Open,
        SandboxProfile::Full => true,
    }
}

/// Root's new space holds all users, so that files of others stay what they are. Only someone who
/// stays outside may say that: a second process, which then ends.
fn among_all_users() -> io::Result<()> {
    let process = getpid();
    let (mut left, entered) = io::pipe()?;
    match fork()? {
        Forked::Child => {
            drop(entered);
            // Nothing comes: the other one closes its end when it is inside.
            let _ = left.read(&mut [0]);
            for map in ["uid_map", "gid_map"] {
                // What fails here is made good by `map_self`.
                let _ = fs::read_to_string(format!("/proc/self/{map}")).and_then(|known| {
                    fs::write(format!("/proc/{process}/{map}"), everyone(&known))
                });
            }
            process::exit(0);
        }
        Forked::Parent(second) => {
            let moved = unshare(UnshareFlags::NEWUSER);
            drop((left, entered));
            waitpid(Some(second), WaitOptions::empty())?;
            moved
        }
    }
}

/// A map in which everyone is who they are, of one whose lines are `INSIDE OUTSIDE HOW-MANY`: a
/// container does not know all users there could be.
fn everyone(known: &str) -> String {
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (first, many) = (fields.next()?, fields.nth(1)?);
        Some(format!("{first} {first} {many}\n"))
    };
    known.lines().filter_map(line).collect()
}

/// Says of this process who it is, where no one did. That is all that a user may say.
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

/// Switches the loopback interface of a new network space on: a listener of ours stands there.
pub(super) fn loopback_up() -> io::Result<()> {
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None, // the protocol of routes and links
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

/// The loopback interface is the first of every network space.
const LOOPBACK: i32 = 1;

/// `nlmsghdr` and `ifinfomsg`: set the flag UP of the interface, and answer.
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
    message.extend(UP.to_ne_bytes()); // which of them to change
    message
}

/// The code in an answer that says how it went: behind a header of 16 bytes.
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
