//! How the engine's word on a command becomes the sandbox's.

use haft_contract::{Confined, Confinement, Reachable};

use haft_sandbox::{ClosedDirectories, Network, Profile, Reading, Workspace};

/// What a command may touch.
pub(crate) fn of(confinement: &Confinement) -> Profile {
    let hidden = confinement.hidden.to_vec();
    let mut closed = ClosedDirectories {
        directories: confinement.closed.to_vec(),
        open: confinement.open.to_vec(),
    };
    if !closed.directories.is_empty() {
        // Its shell reads it first.
        closed.open.extend(confinement.sourced.clone());
    }
    match confinement.profile {
        Confined::ReadOnly => Profile::ReadOnly(Reading { hidden, closed }),
        Confined::Workspace => Profile::Workspace(Workspace {
            writable: confinement.writable.to_vec(),
            protected: confinement.protected.to_vec(),
            hidden,
            closed,
            network: match confinement.network {
                Reachable::Nobody => Network::None,
                Reachable::ByRule(_) => Network::Proxy,
                Reachable::Anybody => Network::Open,
            },
        }),
        Confined::Full => Profile::Full,
    }
}
