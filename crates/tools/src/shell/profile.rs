//! How the engine's word on a command becomes the sandbox's.

use haft_contract::{Confined, Confinement, Reachable};

use haft_sandbox::{Network, Profile, Reading, Workspace};

/// What a command may touch.
pub(crate) fn of(confinement: &Confinement) -> Profile {
    let hidden = confinement.hidden.to_vec();
    match confinement.profile {
        Confined::ReadOnly => Profile::ReadOnly(Reading { hidden }),
        Confined::Workspace => Profile::Workspace(Workspace {
            writable: confinement.writable.to_vec(),
            protected: confinement.protected.to_vec(),
            hidden,
            network: match confinement.network {
                Reachable::Nobody => Network::None,
                Reachable::ByRule(_) => Network::Proxy,
                Reachable::Anybody => Network::Open,
            },
        }),
        Confined::Full => Profile::Full,
    }
}
