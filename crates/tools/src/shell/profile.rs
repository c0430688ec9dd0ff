//! How the engine's word on a command becomes the sandbox's.

use haft_contract::{
    Confined, Confinement, ControlAction, ControlFiles, ControlNames, ControlUse, NetworkAccess,
};
use haft_sandbox::{
    ClosedDirectories, DirectorySettings, GuardedNames, NameAction, NameUse, Network, Reading,
    SandboxProfile, Workspace,
};

/// What a command may touch.
pub(crate) fn of(confinement: &Confinement) -> SandboxProfile {
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
        Confined::ReadOnly if matches!(confinement.network, NetworkAccess::Nobody) => {
            SandboxProfile::ReadOnly(Reading { hidden, closed })
        }
        // It changes no file, but asks someone.
        Confined::ReadOnly => SandboxProfile::Workspace(Workspace {
            writable: confinement.writable.to_vec(),
            protected: Vec::new(),
            hidden,
            guarded: None,
            closed,
            network: network(&confinement.network),
        }),
        Confined::Workspace => SandboxProfile::Workspace(Workspace {
            writable: confinement.writable.to_vec(),
            protected: confinement.protected.to_vec(),
            hidden,
            guarded: confinement
                .control
                .names()
                .map(|names| guarded(names, confinement)),
            closed,
            network: network(&confinement.network),
        }),
        Confined::Full => SandboxProfile::Full,
    }
}

/// The same for a program that we talk to by files: of one that only reads these would be its own.
pub(crate) fn shared(confinement: &Confinement) -> SandboxProfile {
    match of(confinement) {
        SandboxProfile::ReadOnly(Reading { hidden, closed }) => {
            SandboxProfile::Workspace(Workspace {
                writable: Vec::new(),
                protected: Vec::new(),
                hidden,
                guarded: None,
                closed,
                network: Network::None,
            })
        }
        other => other,
    }
}

fn network(access: &NetworkAccess) -> Network {
    match access {
        NetworkAccess::Nobody => Network::None,
        NetworkAccess::ByRule(_) => Network::Proxy,
        NetworkAccess::Anybody => Network::Open,
    }
}

fn guarded(names: ControlNames, confinement: &Confinement) -> GuardedNames {
    GuardedNames {
        all: names.all,
        parts: names.parts,
        last: names.last,
        closed_to_directories: names.closed_to_directories,
        judged: confinement.judged.iter().cloned().collect(),
        settings: names
            .settings
            .map(|(file, parts)| DirectorySettings { parts, file }),
    }
}

/// May a command use a name so?
pub(crate) fn permits(control: &ControlFiles, used: &NameUse) -> bool {
    control.permits(&ControlUse {
        path: &used.path,
        action: match &used.action {
            NameAction::MakeFile => ControlAction::MakeFile,
            NameAction::MakeDirectory => ControlAction::MakeDirectory,
            NameAction::MakeLink => ControlAction::MakeLink,
            NameAction::Change => ControlAction::Change,
            NameAction::Remove { made } => ControlAction::Remove { made: *made },
            NameAction::MoveFile { from, contents } => ControlAction::MoveFile {
                from,
                contents: contents.as_deref(),
            },
            NameAction::MoveDirectory { from } => ControlAction::MoveDirectory { from },
        },
        settings: used.neighbor.as_deref(),
    })
}
