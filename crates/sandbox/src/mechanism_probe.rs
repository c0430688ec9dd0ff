//! Finds out which [`Mechanism`] works on this machine.

use std::{fs, path::Path};

use crate::{
    Mechanism, ReadOnlyProfile, ResourceLimits, SandboxProfile, ScratchLease, instance,
    protocol::SandboxPlan, scratch,
};

/// Returns the best mechanism that works here with a PID namespace: namespaces or bubblewrap. `None`
/// if neither works. Sets up a sandbox and removes it again to find out, which takes some
/// milliseconds. `program` is as in [`SandboxSetup`](crate::SandboxSetup). The scratch folder for the
/// trial is created below `among`.
pub fn available(program: &Path, among: &Path) -> Option<Mechanism> {
    let ways = [(Mechanism::Namespaces, true), (Mechanism::Bubblewrap, true)];
    first(program, among, &ways)
}

/// Returns the best mechanism that works here, including weaker ones. Finds out in the same way as
/// [`available`].
pub fn strongest(program: &Path, among: &Path) -> Mechanism {
    let ways = [
        (Mechanism::Namespaces, true),
        (Mechanism::Namespaces, false),
        (Mechanism::Bubblewrap, true),
        (Mechanism::Reduced, false),
    ];
    first(program, among, &ways).unwrap_or(Mechanism::None)
}

/// Returns whether namespaces may be unavailable on this machine. Reads a few files below `/proc`,
/// which takes microseconds. `false` means that they usually work; only a trial is certain.
pub fn is_doubtful() -> bool {
    let says = |file: &str, value: &str| {
        let text = fs::read_to_string(format!("/proc/sys/{file}"));
        text.is_ok_and(|text| text.trim() == value)
    };
    // If this process runs under a seccomp filter, creating namespaces may be filtered, too.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filter = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    filter.is_none_or(|mode| mode.trim() != "0")
        || says("user/max_user_namespaces", "0")
        || says("kernel/unprivileged_userns_clone", "0")
        || says("kernel/apparmor_restrict_unprivileged_userns", "1")
}

/// Returns the first mechanism that works. The flag of each entry requests a PID namespace.
fn first(program: &Path, among: &Path, ways: &[(Mechanism, bool)]) -> Option<Mechanism> {
    let folder = ScratchLease::create(among).ok()?;
    let found = ways.iter().find(|(mechanism, own_processes)| {
        let plan = SandboxPlan {
            program: false,
            profile: SandboxProfile::ReadOnly(ReadOnlyProfile::default()),
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
            witness_store: None,
        };
        instance::can_set_up(program, &plan)
    });
    scratch::remove(folder.path());
    found.map(|(mechanism, _)| *mechanism)
}
