//! What a process gives up for itself and all it starts: Landlock, limits, capabilities, system calls.
//!
//! The keeper gives up nothing but being looked into: it needs its rights to give each command spaces of
//! its own. A guard gives up what its command must not have, the shell that it starts gives up the rest.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::{
    process::{
        DumpableBehavior, Resource, Rlimit, geteuid, getrlimit, set_dumpable_behavior, setrlimit,
    },
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

use seccompiler::BpfProgram;

use super::{
    filter,
    keeper::{Step, step, step_at},
};
use crate::{Mechanism, Network, SandboxProfile, notify, protocol::Plan};

/// The newest rights we know what to do with; on an older kernel those it knows are enforced.
const RIGHTS: ABI = ABI::V6;

/// What root keeps: enough to work with files of other users, nothing that reaches the machine.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Files that may be written whatever the profile; those that are not there are passed over.
const ALWAYS: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/ptmx",
];
/// The same where they are the sandbox's own, and not the machine's, with other programs' terminals
/// and memory.
const OWN: [&str; 2] = ["/dev/pts", "/dev/shm"];

/// How many processes and threads a sandbox may hold: more than any build needs, less than a bomb makes.
pub(super) const PROCESSES: u64 = 8192;

/// What guards and shells give up, made ready once for all commands of a sandbox.
pub(super) struct Confinement {
    guard: RulesetCreated,
    /// Where the guard opens files for the command: what is left to the command itself.
    shell: Option<RulesetCreated>,
    filters: Vec<BpfProgram>,
    /// Hands the calls that make or open files for writing to the guard.
    mediated: Option<BpfProgram>,
    /// Nothing else confines.
    alone: bool,
}

impl Confinement {
    /// Gets it ready. `None`: commands of this plan are not confined.
    pub(super) fn prepare(plan: &Plan) -> Result<Option<Self>, Step> {
        if plan.mechanism == Mechanism::None || plan.profile == SandboxProfile::Full {
            return Ok(None);
        }
        let mediated = plan.is_mediated();
        let mut filters = filter::programs(&plan.profile, mediated || is_browser(plan))?;
        if mediated {
            filters.push(filter::unmediated()?);
        }
        Ok(Some(Self {
            guard: landlock(plan, Writing::Everything)?,
            shell: mediated
                .then(|| landlock(plan, Writing::Elsewhere))
                .transpose()?,
            filters,
            mediated: mediated.then(filter::mediated).transpose()?,
            alone: plan.mechanism == Mechanism::Reduced,
        }))
    }

    /// What a guard gives up, before it starts anything. What holds then?
    pub(super) fn guard(&self) -> Result<Held, Step> {
        limits()?;
        let status = restrict(&self.guard)?;
        if self.alone && status == RulesetStatus::NotEnforced {
            let missing = io::Error::from(io::ErrorKind::Unsupported);
            return Err(Step::new("Landlock", &missing));
        }
        // To read the arguments of calls that are handed to it takes this right, of programs that show
        // themselves to no other process.
        let held = match self.mediated {
            Some(_) => kept().union(CapabilitySet::SYS_PTRACE),
            None => kept(),
        };
        capabilities(held)?;
        Ok(Held {
            apart: status == RulesetStatus::FullyEnforced,
            mediated: self.mediated.is_some() && status != RulesetStatus::NotEnforced,
        })
    }

    /// What a shell gives up, before it is one. Where the guard opens files for it, the guard's end of
    /// that comes back.
    pub(super) fn shell(&self) -> Result<Option<OwnedFd>, Step> {
        if let Some(ruleset) = &self.shell {
            restrict(ruleset)?;
        }
        capabilities(kept())?;
        for program in &self.filters {
            filter::apply(program)?;
        }
        match &self.mediated {
            Some(program) => step(super::MEDIATION, || notify::install(program)).map(Some),
            None => Ok(None),
        }
    }
}

/// Returns whether the plan is for a program that cannot start without a Unix socket. Without a guard
/// that checks where a connection leads, nothing else has one. Chromium binds one to be the only process of its
/// profile, and is the only program with a network; its profile hides the directories that sockets are in.
fn is_browser(plan: &Plan) -> bool {
    let has_network = matches!(&plan.profile,
        SandboxProfile::Workspace(workspace) if workspace.network == Network::Proxy);
    plan.program && has_network
}

/// What the kernel holds a command to.
#[derive(Default)]
pub(super) struct Held {
    /// It cannot reach other commands, even if it sees them.
    pub(super) apart: bool,
    /// It makes and changes no file but through its guard.
    pub(super) mediated: bool,
}

/// Shows other processes of the same user neither memory nor files; a program that is started does.
pub(super) fn secrecy() -> Result<(), Step> {
    step("secrecy", || {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
    })
}

/// No process gains rights by starting a program; no core files, no endless processes.
fn limits() -> Result<(), Step> {
    step("no new privileges", || set_no_new_privs(true))?;
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    step("limits", || setrlimit(Resource::Core, none))?;
    // Root is exempt from it. What the user has set lower stays.
    let most = Rlimit {
        current: Some(PROCESSES),
        maximum: Some(PROCESSES),
    };
    match getrlimit(Resource::Nproc).current {
        Some(fewer) if fewer <= PROCESSES => Ok(()),
        _ => step("limits", || setrlimit(Resource::Nproc, most)),
    }
}

/// What a process may write of what its profile lets a command change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    Everything,
    /// Temporary files and devices; below the writable directories, sockets can be made.
    Elsewhere,
}

/// Landlock: writing only where it is allowed, no signals and no abstract sockets out of here.
fn landlock(plan: &Plan, writing: Writing) -> Result<RulesetCreated, Step> {
    let reads = AccessFs::from_read(RIGHTS);
    let all = AccessFs::from_all(RIGHTS);
    let others = reads | AccessFs::MakeSock | AccessFs::IoctlDev;
    let mut writable: Vec<&Path> = ALWAYS.iter().map(Path::new).collect();
    if plan.mechanism < Mechanism::Reduced {
        writable.extend(OWN.iter().map(Path::new));
    }
    writable.push(&plan.scratch);
    let readable = readable(plan);
    let mut rules: Vec<_> = writable.into_iter().map(|path| (path, all)).collect();
    let mut connects = false;
    if let SandboxProfile::Workspace(workspace) = &plan.profile {
        let rights = match writing {
            Writing::Everything => all,
            Writing::Elsewhere => others,
        };
        let roots = workspace.writable.iter();
        rules.extend(roots.map(|path| (path.as_path(), rights)));
        connects = workspace.network != Network::None;
    }
    // Without them, the sandbox would be of no use to whom has them back.
    for path in &plan.there {
        step_at(path, || std::fs::symlink_metadata(path))?;
    }
    (|| {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::from_all(RIGHTS))?;
        if !connects {
            ruleset = ruleset.handle_access(AccessNet::from_all(RIGHTS))?;
        }
        let mut ruleset = ruleset.create()?;
        rules.extend(readable.iter().map(|path| (path.as_path(), reads)));
        for (path, rights) in rules {
            if let Ok(opened) = PathFd::new(path) {
                // A file has fewer rights than a directory.
                let rights = if path.is_dir() {
                    rights
                } else {
                    rights & AccessFs::from_file(RIGHTS)
                };
                ruleset = ruleset.add_rule(PathBeneath::new(opened, rights))?;
            }
        }
        Ok::<_, Box<dyn std::error::Error>>(ruleset)
    })()
    .map_err(|error| Step::new("Landlock", &io::Error::other(error.to_string())))
}

/// What may be read. Where mounts hide what may not, everything.
fn readable(plan: &Plan) -> Vec<PathBuf> {
    let (closed, hidden, writable) = match &plan.profile {
        SandboxProfile::ReadOnly(reading) => (&reading.closed, &reading.hidden, &[][..]),
        SandboxProfile::Workspace(workspace) => (
            &workspace.closed,
            &workspace.hidden,
            &workspace.writable[..],
        ),
        SandboxProfile::Full => return Vec::new(),
    };
    if plan.mechanism < Mechanism::Reduced || (closed.directories.is_empty() && hidden.is_empty()) {
        return vec![PathBuf::from("/")];
    }
    let mut open = writable.to_vec();
    open.extend([plan.scratch.clone(), plan.shell.clone()]);
    open.extend(plan.snapshot.clone());
    super::readable::readable(closed, hidden, &open)
}

/// Puts this process under rules. How much of them does the kernel enforce?
fn restrict(ruleset: &RulesetCreated) -> Result<RulesetStatus, Step> {
    let status = ruleset
        .try_clone()
        .map_err(|error| error.to_string())
        .and_then(|ruleset| ruleset.restrict_self().map_err(|error| error.to_string()))
        .map_err(|error| Step::new("Landlock", &io::Error::other(error)))?;
    Ok(status.ruleset)
}

fn kept() -> CapabilitySet {
    if geteuid().is_root() {
        KEPT
    } else {
        CapabilitySet::empty()
    }
}

/// Capabilities go last: what comes before needs them.
fn capabilities(held: CapabilitySet) -> Result<(), Step> {
    step("capabilities", || {
        for capability in CapabilitySet::all().difference(kept()).iter() {
            match remove_capability_from_bounding_set(capability) {
                // The kernel does not know it; or we are a user without any, who has none to lose.
                Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
                Err(error) => return Err(io::Error::from(error)),
            }
        }
        let _ = clear_ambient_capability_set();
        let had = rustix::thread::capabilities(None)?;
        let kept = had.permitted.intersection(held);
        set_capabilities(
            None,
            CapabilitySets {
                effective: kept,
                permitted: kept,
                inheritable: CapabilitySet::empty(),
            },
        )?;
        Ok(())
    })
}
