//! The confinement that is available on this machine, and sandbox profiles.

use std::path::Path;

use haft_contract::Confinement;
pub use haft_sandbox::{Mechanism, SandboxProfile, is_doubtful, network::SystemResolver};

use crate::shell::profile;

/// Returns the sandbox profile for a program that starts other processes itself. The processes
/// share its temporary files, even if the confinement is read-only.
pub fn profile_of(confinement: &Confinement) -> SandboxProfile {
    profile::shared(confinement)
}

/// Returns whether this program can confine commands. Tests it in a new folder in `among`.
pub fn is_available(program: &Path, among: &Path) -> bool {
    haft_sandbox::available(program, among).is_some()
}

/// Returns the strongest mechanism with which this program can confine commands. Tests them in a
/// new folder in `among`.
pub fn strongest(program: Option<&Path>, among: &Path) -> Mechanism {
    match program {
        Some(program) => haft_sandbox::strongest(program, among),
        None => Mechanism::None,
    }
}
