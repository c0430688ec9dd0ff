//! Restrictions that a process places on itself and all its children: Landlock, resource limits,
//! capabilities, system call filters.
//!
//! The keeper only makes itself undumpable: it needs its rights to create namespaces for each
//! command. A guard drops what its command must not have, and the shell that it starts drops the
//! rest.

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
    keeper::{SetupFailure, step, step_at},
};
use crate::{Mechanism, SandboxNetwork, SandboxProfile, notify, protocol::SandboxPlan};

/// The newest Landlock version that this module handles. An older kernel enforces the rights that
/// it knows.
const RIGHTS: ABI = ABI::V6;

/// The capabilities that root retains: enough to work with files of other users, none that affects
/// the machine.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Files that can be written under any profile; missing ones are skipped.
const ALWAYS: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/ptmx",
];
/// Directories that can be written as well if the sandbox has its own instances of them. Those of
/// the machine would expose terminals and shared memory of other programs.
const OWN: [&str; 2] = ["/dev/pts", "/dev/shm"];

/// The maximum number of processes and threads in a sandbox: more than any build needs, but less
/// than a fork bomb creates.
pub(super) const PROCESSES: u64 = 8192;

/// The restrictions of guards and shells, prepared once for all commands of a sandbox.
pub(super) struct PreparedConfinement {
    guard: RulesetCreated,
    /// The additional rules of the shell, if the guard opens files for the command.
    shell: Option<RulesetCreated>,
    filters: Vec<BpfProgram>,
    /// Passes the calls that create files or open them for writing to the guard.
    mediated: Option<BpfProgram>,
    /// Whether Landlock is the only protection of files.
    only_landlock: bool,
    /// The guard may write to the folder for undo.
    witnesses: bool,
}

impl PreparedConfinement {
    /// Prepares the restrictions. `None` means that commands of this plan are not confined.
    /// `witness_store` is the folder where guards store files for undo.
    pub(super) fn prepare(
        plan: &SandboxPlan,
        witness_store: Option<&OwnedFd>,
    ) -> Result<Option<Self>, SetupFailure> {
        if plan.mechanism == Mechanism::None || plan.profile == SandboxProfile::Full {
            return Ok(None);
        }
        let mediated = plan.is_mediated();
        let mut filters = filter::programs(&plan.profile, mediated || is_browser(plan))?;
        if mediated {
            filters.push(filter::unmediated()?);
        }
        Ok(Some(Self {
            guard: landlock(plan, WriteRules::Everything, witness_store)?,
            shell: mediated
                .then(|| landlock(plan, WriteRules::Elsewhere, None))
                .transpose()?,
            filters,
            mediated: mediated.then(filter::mediated).transpose()?,
            only_landlock: plan.mechanism == Mechanism::Reduced,
            witnesses: mediated && witness_store.is_some(),
        }))
    }

    /// Restricts a guard, before it starts anything, and returns what the kernel enforces then.
    pub(super) fn guard(&self) -> Result<EnforcedConfinement, SetupFailure> {
        limits()?;
        let status = restrict(&self.guard)?;
        if self.only_landlock && status == RulesetStatus::NotEnforced {
            let missing = io::Error::from(io::ErrorKind::Unsupported);
            return Err(SetupFailure::new("Landlock", &missing));
        }
        // The guard needs this capability to read the arguments of calls made by programs that are
        // not dumpable.
        let retained = match self.mediated {
            Some(_) => retained_capabilities().union(CapabilitySet::SYS_PTRACE),
            None => retained_capabilities(),
        };
        capabilities(retained)?;
        Ok(EnforcedConfinement {
            is_isolated: status == RulesetStatus::FullyEnforced,
            mediated: self.mediated.is_some() && status != RulesetStatus::NotEnforced,
            witnesses: self.witnesses,
        })
    }

    /// Restricts a shell, before it is executed. If the guard opens files for it, returns the
    /// guard's end of the seccomp notifications.
    pub(super) fn shell(&self) -> Result<Option<OwnedFd>, SetupFailure> {
        if let Some(ruleset) = &self.shell {
            restrict(ruleset)?;
        }
        capabilities(retained_capabilities())?;
        for program in &self.filters {
            filter::apply(program)?;
        }
        match &self.mediated {
            Some(program) => step(super::MEDIATION, || notify::install(program)).map(Some),
            None => Ok(None),
        }
    }
}

/// Returns whether the plan is for Chromium, which is the only program with a network. Chromium
/// cannot start without a Unix socket: it binds one to ensure that no other process uses the same
/// browser profile. Its sandbox profile hides the directories that contain sockets. Other programs
/// get Unix sockets only if a guard checks the target of each connection.
fn is_browser(plan: &SandboxPlan) -> bool {
    let has_network = matches!(&plan.profile,
        SandboxProfile::Workspace(workspace) if workspace.network == SandboxNetwork::Proxy);
    plan.program && has_network
}

/// The restrictions that the kernel enforces for a command.
#[derive(Default)]
pub(super) struct EnforcedConfinement {
    /// Whether the command cannot affect other commands, even if it sees their processes.
    pub(super) is_isolated: bool,
    /// Whether the command creates and changes files only through its guard.
    pub(super) mediated: bool,
    /// Whether the guard may store what the command changes.
    pub(super) witnesses: bool,
}

/// Hides the memory and open files of this process from other processes of the same user. A program
/// that is executed later is visible again.
pub(super) fn secrecy() -> Result<(), SetupFailure> {
    step("secrecy", || {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
    })
}

/// Prevents gaining privileges by executing a program, core files, and an unlimited number of
/// processes.
fn limits() -> Result<(), SetupFailure> {
    step("no new privileges", || set_no_new_privs(true))?;
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    step("limits", || setrlimit(Resource::Core, none))?;
    // Root is exempt from this limit. A lower limit of the user stays.
    let limit = Rlimit {
        current: Some(PROCESSES),
        maximum: Some(PROCESSES),
    };
    match getrlimit(Resource::Nproc).current {
        Some(fewer) if fewer <= PROCESSES => Ok(()),
        _ => step("limits", || setrlimit(Resource::Nproc, limit)),
    }
}

/// The part of a profile's writable paths that a process may write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteRules {
    Everything,
    /// Only temporary files and devices. Below the writable directories only sockets can be
    /// created.
    Elsewhere,
}

/// Builds the Landlock rules: writing only where the profile allows it, and no signals to, and no
/// abstract sockets of, processes outside.
fn landlock(
    plan: &SandboxPlan,
    writing: WriteRules,
    witness_store: Option<&OwnedFd>,
) -> Result<RulesetCreated, SetupFailure> {
    let reads = AccessFs::from_read(RIGHTS);
    let all = AccessFs::from_all(RIGHTS);
    let others = reads | AccessFs::MakeSock | AccessFs::IoctlDev;
    let mut writable: Vec<&Path> = ALWAYS.iter().map(Path::new).collect();
    if plan.mechanism < Mechanism::Reduced {
        writable.extend(OWN.iter().map(Path::new));
    }
    let temporary = plan.temporary();
    let private = plan.private_directories();
    let readable = readable(plan);
    let mut rules: Vec<_> = writable.into_iter().map(|path| (path, all)).collect();
    rules.extend(temporary.iter().map(|path| {
        // Working directories may be below a private directory, and a rule covers everything below
        // its path. So the guard writes there for the shell.
        let is_private = private.iter().any(|directory| directory.path == *path);
        match writing {
            WriteRules::Elsewhere if is_private => (path.as_path(), others),
            WriteRules::Elsewhere | WriteRules::Everything => (path.as_path(), all),
        }
    }));
    let mut connects = false;
    if let SandboxProfile::Workspace(workspace) = &plan.profile {
        let rights = match writing {
            WriteRules::Everything => all,
            WriteRules::Elsewhere => others,
        };
        let roots = workspace.writable.iter();
        rules.extend(roots.map(|path| (path.as_path(), rights)));
        connects = workspace.network != SandboxNetwork::None;
    }
    // A missing path gets no rule, so the command could not use it once it is back. The setup
    // therefore fails.
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
        if let Some(store) = witness_store {
            ruleset = ruleset.add_rule(PathBeneath::new(store, all))?;
        }
        rules.extend(readable.iter().map(|path| (path.as_path(), reads)));
        for (path, rights) in rules {
            if let Ok(opened) = PathFd::new(path) {
                // A file supports fewer rights than a directory.
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
    .map_err(|error| SetupFailure::new("Landlock", &io::Error::other(error.to_string())))
}

/// Returns the paths that may be read: the root directory, if mounts hide the rest.
fn readable(plan: &SandboxPlan) -> Vec<PathBuf> {
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

/// Restricts this process with the rules and returns how completely the kernel enforces them.
fn restrict(ruleset: &RulesetCreated) -> Result<RulesetStatus, SetupFailure> {
    let status = ruleset
        .try_clone()
        .map_err(|error| error.to_string())
        .and_then(|ruleset| ruleset.restrict_self().map_err(|error| error.to_string()))
        .map_err(|error| SetupFailure::new("Landlock", &io::Error::other(error)))?;
    Ok(status.ruleset)
}

/// Returns the capabilities that this process retains.
fn retained_capabilities() -> CapabilitySet {
    if geteuid().is_root() {
        KEPT
    } else {
        CapabilitySet::empty()
    }
}

/// Drops capabilities. Must come last: the other restrictions need them.
fn capabilities(retained: CapabilitySet) -> Result<(), SetupFailure> {
    step("capabilities", || {
        for capability in CapabilitySet::all()
            .difference(retained_capabilities())
            .iter()
        {
            match remove_capability_from_bounding_set(capability) {
                // The kernel does not know the capability, or this user has none to drop.
                Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
                Err(error) => return Err(io::Error::from(error)),
            }
        }
        let _ = clear_ambient_capability_set();
        let current = rustix::thread::capabilities(None)?;
        let permitted = current.permitted.intersection(retained);
        set_capabilities(
            None,
            CapabilitySets {
                effective: permitted,
                permitted,
                inheritable: CapabilitySet::empty(),
            },
        )?;
        Ok(())
    })
}
