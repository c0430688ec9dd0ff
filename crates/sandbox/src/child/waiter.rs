//! The waiter of a sandbox. It stays outside, where no confined command can reach it, and cleans up
//! after the other processes, even if they are killed or stopped.

use std::{os::fd::OwnedFd, path::Path, process};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::keeper::reap_all;
use crate::{process_tree, protocol, scratch};

/// Waits until our process ends or no longer needs the sandbox. Orphans of the keeper become
/// children of the waiter, which kills them.
pub(super) fn run(socket: &OwnedFd, keeper: Pid, scratch: &Path) -> i32 {
    let mut handle = pidfd_open(keeper, PidfdFlags::empty()).ok();
    let mut dismissed = false;
    loop {
        let mut watched = vec![PollFd::new(socket, PollFlags::IN)];
        watched.extend(
            handle
                .iter()
                .map(|handle| PollFd::new(handle, PollFlags::IN)),
        );
        match poll(&mut watched, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        }
        let happened = |at: usize| watched.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let (heard, ended) = (happened(0), happened(1));
        if ended {
            handle = None;
            process_tree::kill_below(process::id(), &[], reap_all);
        }
        if heard {
            match protocol::receive(socket) {
                Ok(Some(_)) => dismissed = true, // another sandbox still uses the scratch folder
                Ok(None) | Err(_) => break,
            }
        }
    }
    process_tree::kill_below(process::id(), &[], reap_all);
    if !dismissed {
        scratch::remove(scratch);
    }
    0
}
