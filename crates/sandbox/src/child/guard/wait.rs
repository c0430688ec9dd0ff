//! The events that a guard waits for.

use std::{io, os::fd::AsFd, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{super::shell::ShellReport, CommandGuard};

/// The source of an event.
enum WatchSource {
    Socket,
    Keeper,
    Shell,
    Report,
    Call,
    Cover,
    Fence(usize),
    Sockets,
}

/// The events that one wait reported.
#[derive(Default)]
pub(super) struct GuardWake {
    /// Our process sent a message or exited.
    pub(super) has_order: bool,
    pub(super) keeper_ended: bool,
    pub(super) shell_ended: bool,
    /// The shell sent a report.
    pub(super) has_report: bool,
    /// The command made a call that the guard must carry out.
    pub(super) has_call: bool,
    /// No process is left that could make another call.
    pub(super) no_more_calls: bool,
    /// An entry next to a hidden file changed.
    pub(super) cover_changed: bool,
    /// The indices of the fences on which our process asks whether it may use the output that it
    /// has read.
    pub(super) ready_fences: Vec<usize>,
    /// Our process requests a socket in the command's network.
    pub(super) socket_requested: bool,
}

impl CommandGuard<'_> {
    /// Waits until an event arrives or the pause has passed.
    pub(super) fn wait(&self, pause: Option<Duration>) -> io::Result<GuardWake> {
        let pause = pause.map(|pause| Timespec {
            tv_sec: pause.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: pause.subsec_nanos().into(),
        });
        let mut watched: Vec<(WatchSource, PollFd<'_>)> = Vec::new();
        let mut watch =
            |source, file| watched.push((source, PollFd::from_borrowed_fd(file, PollFlags::IN)));
        watch(WatchSource::Socket, self.socket.as_fd());
        if let Some(keeper) = &self.keeper {
            watch(WatchSource::Keeper, keeper.as_fd());
        }
        if let Some(mediator) = self.shell.mediator.as_ref().filter(|one| !one.is_busy()) {
            watch(WatchSource::Call, mediator.listener().as_fd());
        }
        if let Some(sockets) = &self.sockets {
            watch(WatchSource::Sockets, sockets.link());
        }
        if self.uncovered.is_none() {
            if let Some(cover) = &self.cover {
                watch(WatchSource::Cover, cover.watch().as_fd());
            }
            for (number, fence) in self.fences.iter().enumerate() {
                watch(WatchSource::Fence(number), fence.as_fd());
            }
        }
        if !self.ended {
            watch(WatchSource::Shell, self.shell.handle.as_fd());
            if self.shell.last_report == ShellReport::Nothing
                && let Some(report) = &self.shell.report
            {
                watch(WatchSource::Report, report.as_fd());
            }
        }
        let (sources, mut files): (Vec<_>, Vec<_>) = watched.into_iter().unzip();
        match poll(&mut files, pause.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(GuardWake::default()),
            Err(error) => return Err(error.into()),
        }
        let mut wake = GuardWake::default();
        for (source, file) in sources.iter().zip(&files) {
            let events = file.revents();
            let any = !events.is_empty();
            match source {
                WatchSource::Socket => wake.has_order = any,
                WatchSource::Keeper => wake.keeper_ended = any,
                WatchSource::Shell => wake.shell_ended = any,
                WatchSource::Report => wake.has_report = any,
                WatchSource::Cover => wake.cover_changed = any,
                WatchSource::Fence(number) if any => wake.ready_fences.push(*number),
                WatchSource::Fence(_) => {}
                WatchSource::Sockets => wake.socket_requested = any,
                WatchSource::Call => {
                    wake.has_call = events.contains(PollFlags::IN);
                    wake.no_more_calls = any && !wake.has_call;
                }
            }
        }
        Ok(wake)
    }
}
