//! The mechanisms that confine commands.

use serde::{Deserialize, Serialize};

/// The mechanisms that confine commands, from the strictest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mechanism {
    /// Our own namespaces, with Landlock and a system call filter.
    Namespaces,
    /// Like [`Namespaces`](Self::Namespaces), but bubblewrap creates the namespaces. For systems that
    /// allow only bubblewrap to do so. Two gaps: a command can replace a symlink to a control file,
    /// and root can change modes and times of the six device files.
    Bubblewrap,
    /// Only Landlock and the system call filter. Commands can still:
    /// - change modes, owners and times of files, and remove control files
    /// - read hidden files in the working directories, and others through their other names
    /// - connect to sockets of other programs, see their command lines, and lower their priority
    /// - as root, read disks
    Reduced,
    /// No confinement.
    None,
}

impl Mechanism {
    /// Returns the human-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
            Self::Reduced => "reduced (Landlock and seccomp only)",
            Self::None => "none",
        }
    }

    /// Returns what commands can still do because the mechanism lacks guarantees, as text for users.
    /// Empty for [`Namespaces`](Self::Namespaces), and for [`Bubblewrap`](Self::Bubblewrap), whose
    /// two small gaps are not reported.
    pub fn missing_guarantees(self) -> &'static [&'static str] {
        match self {
            Self::Namespaces | Self::Bubblewrap => &[],
            Self::Reduced => &[
                "modes, owners and times of all your files can be changed",
                "hidden files in the working directories can be read, and others through their other names",
                "files that control other programs can be removed from the working directories",
                "sockets of other programs can be reached",
                "other processes can be seen and slowed down",
            ],
            Self::None => &[
                "all your files can be read and changed",
                "every host can be reached",
                "your other processes can be ended",
            ],
        }
    }

    /// Returns a warning for the user, on one line; `None` if
    /// [`missing_guarantees`](Self::missing_guarantees) is empty.
    pub fn warning(self) -> Option<String> {
        let summary = match self {
            Self::Namespaces | Self::Bubblewrap => return None,
            Self::Reduced => "commands are confined only in part here, by Landlock and seccomp",
            Self::None => {
                "commands are not confined here at all, so haft asks you even about read-only \
                 ones"
            }
        };
        let holes = self.missing_guarantees().join("; ");
        Some(format!(
            "{summary}. Risks: {holes}. Run `haft doctor` for the reason"
        ))
    }

    /// Returns the mechanism to try if this one does not work.
    pub(crate) fn next_weaker(self) -> Option<Self> {
        match self {
            Self::Namespaces => Some(Self::Bubblewrap),
            Self::Bubblewrap => Some(Self::Reduced),
            Self::Reduced => Some(Self::None),
            Self::None => None,
        }
    }
}
