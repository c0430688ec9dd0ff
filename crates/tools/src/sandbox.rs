//! How well commands can be confined on this machine.

use std::path::Path;

use haft_contract::Confinement;
pub use haft_sandbox::{Mechanism, SandboxProfile, is_doubtful, network::SystemResolver};

use crate::shell::profile;

/// What a program with this confinement may touch, for one that starts it itself. It shares temporary files with
/// the one who starts it, whatever it may change.
pub fn profile_of(confinement: &Confinement) -> SandboxProfile {
    profile::shared(confinement)
}

/// Can commands be confined by this program, found out by trying? `among`: where temporary files go.
pub fn is_available(program: &Path, among: &Path) -> bool {
    haft_sandbox::available(program, among).is_some()
}

/// How well this program can confine commands, found out by trying.
pub fn strongest(program: Option<&Path>, among: &Path) -> Mechanism {
    match program {
        Some(program) => haft_sandbox::strongest(program, among),
        None => Mechanism::None,
    }
}
