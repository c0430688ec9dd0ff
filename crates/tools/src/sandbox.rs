//! The available confinement on this machine.

use std::path::Path;

use haft_contract::Confinement;
pub use haft_sandbox::{Mechanism, SandboxProfile, is_doubtful, network::SystemResolver};

use crate::shell::profile;

/// Returns the sandbox profile for a confinement, for a program that starts processes itself. They
/// share its temporary files, regardless of what else they may write.
pub fn profile_of(confinement: &Confinement) -> SandboxProfile {
    profile::shared(confinement)
}

/// Tests whether this program can confine commands. `among` is the folder for temporary files.
pub fn is_available(program: &Path, among: &Path) -> bool {
    haft_sandbox::available(program, among).is_some()
}

/// Tests how well this program can confine commands.
pub fn strongest(program: Option<&Path>, among: &Path) -> Mechanism {
    match program {
        Some(program) => haft_sandbox::strongest(program, among),
        None => Mechanism::None,
    }
}
