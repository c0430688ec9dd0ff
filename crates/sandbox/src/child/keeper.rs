//! The keeper of a sandbox: sets it up, gives up what it may, and then makes a guard for each command.
//!
//! Where it has a process space of its own it is the first process there, and when it ends, the kernel
//! ends everything in it. It ends when our process does, however that comes about.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{self, Command},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{FdFlags, fcntl_setfd},
    process::{
        Pid, PidfdFlags, WaitOptions, getpid, pidfd_open, set_child_subreaper, setsid, wait,
        waitpid,
    },
    stdio::dup2_stdin,
};

use super::{bubblewrap, confine, filter, guard, mounts, spaces};
use crate::{
    Mechanism, Network, PROXY_PORT, Profile,
    fork::{Forked, fork},
    protocol::{self, Keeper, Plan},
    tree,
};

/// Set for the keeper that bubblewrap starts, which is inside already: the number of the file that
/// holds the plan.
const INSIDE: &str = "HAFT_SANDBOX_PLAN";
/// What a keeper ends with when our process went away without a word.
const ABANDONED: i32 = 3;

/// Something that could not be done, and what it was for.
#[derive(Debug)]
pub(super) struct Step {
    name: String,
    error: String,
}

impl Step {
    pub(super) fn new(name: &str, error: &io::Error) -> Self {
        Self {
            name: name.to_owned(),
            error: error.to_string(),
        }
    }
}

/// Does one step of the setting up.
pub(super) fn step<T, E: Into<io::Error>>(
    name: &str,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, Step> {
    work().map_err(|error| Step::new(name, &error.into()))
}

/// The whole life of a keeper. Its standard input is the socket to our process.
pub(super) fn main() -> i32 {
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else {
        return 2;
    };
    if let Some(file) = env::var_os(INSIDE) {
        let inside = read_again(&file).map_err(|error| Step::new("the plan", &error));
        return answer(&socket, inside.and_then(|plan| keep(&socket, &plan)));
    }
    // Away from the terminal: Ctrl-C there is for our process to answer.
    let _ = setsid();
    let Ok((plan, file)) = receive(&socket) else {
        return 2;
    };
    // This one stays outside, so that it can wait for the other and tidy up.
    match fork() {
        Ok(Forked::Child) => {
            let mut socket = Some(socket);
            let kept = enter(&mut socket, &plan, &file);
            match socket {
                Some(socket) => answer(&socket, kept),
                None => kept.unwrap_or(1),
            }
        }
        Ok(Forked::Parent(keeper)) => {
            drop((socket, file));
            let code = wait_for(keeper);
            if code == ABANDONED {
                let _ = fs::remove_dir_all(&plan.scratch);
            }
            code
        }
        Err(error) => answer(&socket, Err(Step::new("a second process", &error))),
    }
}

/// Tells our process what went wrong, if anything did.
fn answer(socket: &OwnedFd, kept: Result<i32, Step>) -> i32 {
    kept.unwrap_or_else(|failed| {
        let failed = Keeper::Failed {
            step: failed.name,
            error: failed.error,
        };
        let _ = serde_json::to_vec(&failed)
            .map_err(io::Error::from)
            .and_then(|answer| protocol::send(socket, &answer, &[]));
        1
    })
}

/// The plan comes as a file: it may be long.
fn receive(socket: &OwnedFd) -> io::Result<(Plan, fs::File)> {
    let (_, files) = protocol::receive(socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let file = files.into_iter().next().ok_or(io::ErrorKind::NotFound)?;
    let file = fs::File::from(file);
    let plan = serde_json::from_reader(io::BufReader::new(&file))?;
    Ok((plan, file))
}

fn read_again(number: &OsStr) -> io::Result<Plan> {
    let path = Path::new("/proc/self/fd").join(number);
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Goes where the sandbox is to be, and keeps it there.
fn enter(channel: &mut Option<OwnedFd>, plan: &Plan, file: &fs::File) -> Result<i32, Step> {
    // One copy of the socket is enough: when it closes, the other side must see it.
    step("standard input", || {
        fs::File::open("/dev/null").and_then(|null| Ok(dup2_stdin(&null)?))
    })?;
    match plan.mechanism {
        Mechanism::Namespaces if plan.profile != Profile::Full => {
            spaces::enter(plan)?;
            match step("the first process", fork)? {
                Forked::Parent(first) => {
                    // The socket is the first process's alone. This one waits, or it would stay as a zombie.
                    drop(channel.take());
                    return Ok(wait_for(first));
                }
                Forked::Child => mounts::set_up(plan)?,
            }
        }
        Mechanism::Bubblewrap if plan.profile != Profile::Full => {
            return Err(through_bubblewrap(plan, channel.as_ref(), file));
        }
        _ => {}
    }
    match channel {
        Some(socket) => keep(socket, plan),
        None => Ok(1),
    }
}

/// Gives up what a command must not have, and serves.
fn keep(socket: &OwnedFd, plan: &Plan) -> Result<i32, Step> {
    let mut plan = plan.clone();
    if let Profile::Workspace(workspace) = &mut plan.profile
        && plan.mechanism == Mechanism::Reduced
        && workspace.network == Network::Proxy
    {
        // Without a network space of its own it could talk past the proxy: then to nobody.
        workspace.network = Network::None;
    }
    let plan = &plan;
    let listener = listener(plan)?;
    step("adopting orphans", || set_child_subreaper(Some(getpid())))?;
    if plan.mechanism != Mechanism::None && plan.profile != Profile::Full {
        confine::limits()?;
        let held = confine::landlock(plan)?;
        if plan.mechanism == Mechanism::Reduced && !held {
            let missing = io::Error::from(io::ErrorKind::Unsupported);
            return Err(Step::new("Landlock", &missing));
        }
        confine::capabilities()?;
        filter::apply(&plan.profile)?;
    }
    step("answering", || {
        let ready = serde_json::to_vec(&Keeper::Ready)?;
        let files: Vec<_> = listener.iter().map(AsFd::as_fd).collect();
        protocol::send(socket, &ready, &files)
    })?;
    drop(listener);
    Ok(serve(socket, plan))
}

/// A socket inside the sandbox's network on which our process, outside, can listen.
fn listener(plan: &Plan) -> Result<Option<TcpListener>, Step> {
    match &plan.profile {
        // Without a network of its own, there is no place for it that others could not reach.
        Profile::Workspace(workspace)
            if workspace.network == Network::Proxy && plan.mechanism < Mechanism::Reduced => {}
        _ => return Ok(None),
    }
    if plan.mechanism == Mechanism::Namespaces {
        step("the loopback interface", spaces::loopback_up)?;
    }
    step("the proxy's socket", || {
        TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).map(Some)
    })
}

/// Becomes bubblewrap, which starts this program again, inside. Returns only if that fails.
fn through_bubblewrap(plan: &Plan, socket: Option<&OwnedFd>, file: &fs::File) -> Step {
    let becoming = (|| {
        let arguments = bubblewrap::arguments(plan)?;
        dup2_stdin(socket.ok_or(io::ErrorKind::NotConnected)?)?;
        fcntl_setfd(file, FdFlags::empty())?;
        Err::<(), _>(
            Command::new("bwrap")
                .args(arguments)
                .env_clear()
                .env(INSIDE, file.as_raw_fd().to_string())
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .exec(),
        )
    })();
    match becoming {
        Ok(()) => Step::new("bubblewrap", &io::ErrorKind::Other.into()),
        Err(error) => Step::new("bubblewrap", &error),
    }
}

fn wait_for(process: Pid) -> i32 {
    loop {
        match waitpid(Some(process), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.exit_status().unwrap_or(1),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 1,
        }
    }
}

struct Guarding {
    pid: Pid,
    handle: OwnedFd,
}

/// Makes a guard for each packet, until our process is gone.
fn serve(socket: &OwnedFd, plan: &Plan) -> i32 {
    let mut guards: Vec<Guarding> = Vec::new();
    let mut code = ABANDONED;
    loop {
        let mut watched = vec![PollFd::new(socket, PollFlags::IN)];
        watched.extend(
            guards
                .iter()
                .map(|guard| PollFd::new(&guard.handle, PollFlags::IN)),
        );
        match poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
        let heard = !watched.first().is_none_or(|fd| fd.revents().is_empty());
        let ended = watched.iter().skip(1).any(|fd| !fd.revents().is_empty());
        if ended {
            reap(&mut guards);
        }
        if heard {
            match protocol::receive(socket) {
                Ok(Some((_, files))) if files.is_empty() => code = 0, // a goodbye
                Ok(Some((_, files))) => match guard_for(files, plan) {
                    Ok(Some(guard)) => guards.push(guard),
                    Ok(None) => {}
                    Err(_) => break,
                },
                Ok(None) | Err(_) => break,
            }
        }
    }
    // Guards end their commands when they see that our process is gone; the rest is ended here.
    for guard in &guards {
        let _ = waitpid(Some(guard.pid), WaitOptions::empty());
    }
    tree::kill_below(process::id(), &[], reap_all);
    code
}

/// Forks a guard. `None`: the packet made no sense, or there can be no more processes; the closed
/// socket tells our process.
fn guard_for(files: Vec<OwnedFd>, plan: &Plan) -> io::Result<Option<Guarding>> {
    let mut files = files.into_iter();
    let (Some(socket), Some(output)) = (files.next(), files.next()) else {
        return Ok(None);
    };
    match fork() {
        Ok(Forked::Child) => {
            // The keeper's socket is not the guard's: it would keep the sandbox alive.
            if let Ok(null) = fs::File::open("/dev/null") {
                let _ = dup2_stdin(&null);
            }
            process::exit(guard::run(plan, socket, output))
        }
        Ok(Forked::Parent(pid)) => {
            let handle = pidfd_open(pid, PidfdFlags::empty())?;
            Ok(Some(Guarding { pid, handle }))
        }
        Err(_) => Ok(None),
    }
}

/// Takes note of guards that ended. What a guard that was killed left behind became ours, and ends.
fn reap(guards: &mut Vec<Guarding>) {
    let mut killed = false;
    guards.retain(
        |guard| match waitpid(Some(guard.pid), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => {
                killed |= status.signaled();
                false
            }
            Ok(None) => true,
            Err(_) => false,
        },
    );
    if killed {
        let spared: Vec<u32> = guards
            .iter()
            .filter_map(|guard| guard.pid.as_raw_nonzero().get().try_into().ok())
            .collect();
        tree::kill_below(process::id(), &spared, || {});
    }
    // Orphans of killed guards, and those alone, are children that are not guards.
    if guards.is_empty() {
        reap_all();
    }
}

fn reap_all() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
