//! The guard of a server: an unconfined, long-running program with our pipes as its input and
//! output. The server and everything that it started end when our process ends, for any reason.
//!
//! Our program is started again with [`ARGUMENT`], our process ID and the command. The guard starts
//! the command, closes its copies of the pipes and waits until our process or the command ends.

use std::{
    env,
    ffi::OsString,
    fs::File,
    io::Write,
    os::unix::process::CommandExt,
    process::{self, Command},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, pidfd_open, set_child_subreaper,
        set_parent_process_death_signal, waitpid,
    },
};

use super::keeper::reap_all;
use crate::{
    fork::{ForkSide, fork},
    process_tree,
};

/// The first argument that makes a program with [`run_if_asked`](super::run_if_asked) the guard of
/// a server.
pub(crate) const ARGUMENT: &str = "__server";

/// The exit code if the command cannot be started, as in shells.
const CANNOT_START: i32 = 127;
/// The time that a server has to exit after our process ended.
const GRACE: Duration = Duration::from_millis(500);

/// Starts the command of the arguments, and ends it when our process ends.
pub(super) fn main() -> i32 {
    match run(env::args_os().skip(2).collect()) {
        Ok(code) => code,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}"); // standard error may be closed
            CANNOT_START
        }
    }
}

fn run(arguments: Vec<OsString>) -> Result<i32, String> {
    let mut arguments = arguments.into_iter();
    let parent = arguments
        .next()
        .and_then(|parent| parent.to_str()?.parse().ok());
    let parent = parent
        .and_then(Pid::from_raw)
        .ok_or("the arguments of the guard contain no process ID of its parent")?;
    let command = arguments
        .next()
        .ok_or("the arguments of the guard contain no command to start")?;
    let died = pidfd_open(parent, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    // Another process may have this process ID by now.
    if getppid() != Some(parent) {
        return Err("the process that started the server has exited".to_owned());
    }
    set_child_subreaper(Some(getpid())).map_err(|error| error.to_string())?;
    let child = match fork().map_err(|error| error.to_string())? {
        ForkSide::Parent(child) => child,
        ForkSide::Child => return Err(become_server(&command, arguments)),
    };
    let ended = pidfd_open(child, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    let _ = close_pipes(); // if this fails, closed pipes go unnoticed, but the server works
    loop {
        let mut watched = [
            PollFd::new(&died, PollFlags::IN),
            PollFd::new(&ended, PollFlags::IN),
        ];
        match poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
        if !watched[1].revents().is_empty() {
            let status = waitpid(Some(child), WaitOptions::empty()).ok().flatten();
            process_tree::kill_below(process::id(), &[], reap_all);
            let code = status.and_then(|(_, status)| {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                status.exit_status().or(signal)
            });
            return Ok(code.unwrap_or(1));
        }
        if !watched[0].revents().is_empty() {
            break;
        }
    }
    process_tree::terminate_below(process::id());
    let began = Instant::now();
    while began.elapsed() < GRACE && !reap_all() {
        thread::sleep(Duration::from_millis(5));
    }
    process_tree::kill_below(process::id(), &[], reap_all);
    Ok(0)
}

/// Turns the forked process into the server, and returns the error if that fails. The server is
/// also ended if its guard is killed: killing all processes with our program's name kills both our
/// process and the guard.
fn become_server(command: &OsString, arguments: impl Iterator<Item = OsString>) -> String {
    let _ = set_parent_process_death_signal(Some(Signal::KILL)); // the pipes close as well
    let error = Command::new(command)
        .args(arguments)
        .process_group(0)
        .exec();
    format!("{} cannot be started: {error}", command.to_string_lossy())
}

/// Closes this process's copies of the pipes, which only the server uses.
fn close_pipes() -> std::io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}
