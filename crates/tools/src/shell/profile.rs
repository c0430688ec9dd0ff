//! Converts the engine's confinement of a command to a sandbox profile.

use haft_contract::{
    Confinement, ConfinementProfile, ControlAccess, ControlAction, ControlFiles, ControlNames,
    NetworkAccess,
};
use haft_sandbox::{
    ClosedDirectories, DirectorySettings, GuardedNames, HomeNames, NameAction, NameUse,
    ReadOnlyProfile, SandboxNetwork, SandboxProfile, WorkspaceProfile,
};

/// Returns the sandbox profile of a command.
pub(crate) fn sandbox_profile(confinement: &Confinement) -> SandboxProfile {
    let hidden = confinement.hidden.to_vec();
    let mut closed = ClosedDirectories {
        directories: confinement.closed.to_vec(),
        open: confinement.open.to_vec(),
        private_tmp: confinement.private_tmp,
    };
    if !closed.directories.is_empty() || closed.private_tmp {
        // The command's shell sources this file first.
        closed.open.extend(confinement.sourced.clone());
    }
    match confinement.profile {
        ConfinementProfile::ReadOnly if matches!(confinement.network, NetworkAccess::Nobody) => {
            SandboxProfile::ReadOnly(ReadOnlyProfile { hidden, closed })
        }
        // The command changes no file, but it uses the network. The only writable paths are the
        // sockets of its service, to which the guard connects it.
        ConfinementProfile::ReadOnly => SandboxProfile::Workspace(WorkspaceProfile {
            writable: confinement.writable.to_vec(),
            protected: Vec::new(),
            hidden,
            guarded: Some(GuardedNames::default()),
            closed,
            network: network(&confinement.network),
        }),
        ConfinementProfile::Workspace => SandboxProfile::Workspace(WorkspaceProfile {
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
        ConfinementProfile::Full => SandboxProfile::Full,
    }
}

/// Returns the sandbox profile of a program that exchanges files with haft. It is never read-only,
/// because a read-only profile would give the program a private copy of these files.
pub(crate) fn shared(confinement: &Confinement) -> SandboxProfile {
    match sandbox_profile(confinement) {
        SandboxProfile::ReadOnly(ReadOnlyProfile { hidden, closed }) => {
            SandboxProfile::Workspace(WorkspaceProfile {
                writable: Vec::new(),
                protected: Vec::new(),
                hidden,
                guarded: None,
                closed,
                network: SandboxNetwork::None,
            })
        }
        other => other,
    }
}

fn network(access: &NetworkAccess) -> SandboxNetwork {
    match access {
        NetworkAccess::Nobody => SandboxNetwork::None,
        NetworkAccess::ByRule(_) | NetworkAccess::Only(_) => SandboxNetwork::Proxy,
        NetworkAccess::Anybody => SandboxNetwork::Open,
    }
}

fn guarded(names: ControlNames, confinement: &Confinement) -> GuardedNames {
    GuardedNames {
        all: names.all,
        parts: names.parts,
        last: names.last,
        endings: names.endings,
        closed_to_directories: names.closed_to_directories,
        home: Box::new(HomeNames {
            directories: names.homes,
            names: names.home_names,
        }),
        judged: confinement.judged.iter().cloned().collect(),
        settings: names
            .settings
            .map(|(file, parts)| Box::new(DirectorySettings { parts, file })),
    }
}

/// Returns whether a command may use a name in this way. `may_arrive`: control files may be created in
/// directories that the command has created.
pub(crate) fn permits(control: &ControlFiles, used: &NameUse, may_arrive: bool) -> bool {
    // Nothing that programs obey has arrived.
    if !may_arrive && matches!(used.action, NameAction::ReplaceDirectory { .. }) {
        return true;
    }
    let new_directory = used.new_directories.first().map(|one| one.path.as_path());
    control.permits(&ControlAccess {
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
            NameAction::ReplaceDirectory { from } => ControlAction::ReplaceDirectory { from },
        },
        settings: used.neighbor.as_deref(),
        new_directory: new_directory.filter(|_| may_arrive),
    })
}
