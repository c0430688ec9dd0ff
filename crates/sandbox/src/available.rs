//! Can commands be confined here at all?

use std::{fs, path::Path};

use crate::{
    Mechanism, Reading, ResourceLimits, SandboxProfile, ScratchLease, instance, protocol::Plan,
    scratch,
};

/// The best way of confining commands that works here and leaves no hole: found out by setting a
/// sandbox up and taking it down again, which takes some milliseconds. `program` is as in
/// [`Setup`](crate::Setup); a folder for the trial is made below `among`.
pub fn available(program: &Path, among: &Path) -> Option<Mechanism> {
    let ways = [(Mechanism::Namespaces, true), (Mechanism::Bubblewrap, true)];
    first(program, among, &ways)
}

/// The best way of confining commands that works here, whatever it leaves open; found out in the same
/// way.
pub fn strongest(program: &Path, among: &Path) -> Mechanism {
    let ways = [
        (Mechanism::Namespaces, true),
        (Mechanism::Namespaces, false),
        (Mechanism::Bubblewrap, true),
        (Mechanism::Reduced, false),
    ];
    first(program, among, &ways).unwrap_or(Mechanism::None)
}

/// Is there reason to doubt that name spaces can be had? A look at a few files of `/proc`, which takes
/// microseconds. Without one they usually can; only trying tells.
pub fn is_doubtful() -> bool {
    let says = |file: &str, value: &str| {
        let text = fs::read_to_string(format!("/proc/sys/{file}"));
        text.is_ok_and(|text| text.trim() == value)
    };
    // Where our system calls are filtered, these may well be, too.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filter = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    filter.is_none_or(|mode| mode.trim() != "0")
        || says("user/max_user_namespaces", "0")
        || says("kernel/unprivileged_userns_clone", "0")
        || says("kernel/apparmor_restrict_unprivileged_userns", "1")
}

/// The first of these ways that works: how, and with a process space of its own or not.
fn first(program: &Path, among: &Path, ways: &[(Mechanism, bool)]) -> Option<Mechanism> {
    let folder = ScratchLease::create(among).ok()?;
    let found = ways.iter().find(|(mechanism, own_processes)| {
        let plan = Plan {
            program: false,
            profile: SandboxProfile::ReadOnly(Reading::default()),
            mechanism: *mechanism,
            own_processes: *own_processes,
            mediates: true,
            shell: crate::system_shell().unwrap_or_default(),
            env: Vec::new(),
            scratch: folder.path().to_path_buf(),
            snapshot: None,
            there: Vec::new(),
            sockets: Vec::new(),
            resources: ResourceLimits::default(),
        };
        instance::stands(program, &plan)
    });
    scratch::remove(folder.path());
    found.map(|(mechanism, _)| *mechanism)
}
