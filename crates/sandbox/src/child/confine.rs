//! What a process gives up for itself and all it starts: Landlock, limits, capabilities.

use std::{io, path::Path};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
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

use super::keeper::{Step, step};
use crate::{Mechanism, Network, Profile, protocol::Plan};

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
const PROCESSES: u64 = 8192;

/// Nobody gains rights by starting a program; no core files, no endless processes. Keeper and guards show commands neither
/// their memory nor their files, though they run as the same user; a program they start does.
pub(super) fn limits() -> Result<(), Step> {
    step("secrecy", || {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
    })?;
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

/// Landlock: writing only where it is allowed, no signals and no abstract sockets out of here.
/// Does the kernel enforce it?
pub(super) fn landlock(plan: &Plan) -> Result<bool, Step> {
    let reads = AccessFs::from_read(RIGHTS);
    let all = AccessFs::from_all(RIGHTS);
    let mut writable: Vec<&Path> = ALWAYS.iter().map(Path::new).collect();
    if plan.mechanism < Mechanism::Reduced {
        writable.extend(OWN.iter().map(Path::new));
    }
    writable.push(&plan.scratch);
    let mut connects = false;
    match &plan.profile {
        Profile::Full => return Ok(false),
        Profile::ReadOnly(_) => {}
        Profile::Workspace(workspace) => {
            writable.extend(workspace.writable.iter().map(|path| path.as_path()));
            connects = workspace.network != Network::None;
        }
    }
    let status = (|| {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::from_all(RIGHTS))?;
        if !connects {
            ruleset = ruleset.handle_access(AccessNet::from_all(RIGHTS))?;
        }
        let mut ruleset = ruleset
            .create()?
            .add_rule(PathBeneath::new(PathFd::new("/")?, reads))?;
        for path in writable {
            if let Ok(opened) = PathFd::new(path) {
                // A file has fewer rights than a directory.
                let rights = if path.is_dir() {
                    all
                } else {
                    AccessFs::from_file(RIGHTS)
                };
                ruleset = ruleset.add_rule(PathBeneath::new(opened, rights))?;
            }
        }
        Ok::<_, Box<dyn std::error::Error>>(ruleset.restrict_self()?)
    })()
    .map_err(|error| Step::new("Landlock", &io::Error::other(error.to_string())))?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Capabilities go last: what comes before needs them.
pub(super) fn capabilities() -> Result<(), Step> {
    let kept = if geteuid().is_root() {
        KEPT
    } else {
        CapabilitySet::empty()
    };
    step("capabilities", || {
        for capability in CapabilitySet::all().difference(kept).iter() {
            match remove_capability_from_bounding_set(capability) {
                // The kernel does not know it; or we are a user without any, who has none to lose.
                Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
                Err(error) => return Err(io::Error::from(error)),
            }
        }
        let _ = clear_ambient_capability_set();
        let had = rustix::thread::capabilities(None)?;
        let kept = had.permitted.intersection(kept);
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
