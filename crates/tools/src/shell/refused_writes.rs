//! The refused writes of a command, as its guard saw them. They are reported regardless of the
//! command's output, even if the command succeeded.

use std::path::{Path, PathBuf};

use haft_contract::Confinement;
use haft_sandbox::RefusedWrite;

use super::escalate;
use crate::paths::escaped;

/// The refused writes that are worth reporting.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusedWriteReport {
    /// Files that decide what other programs run, or that a rule protects.
    pub(crate) control: Vec<PathBuf>,
    /// Any other file that the user may write.
    pub(crate) others: Vec<PathBuf>,
}

/// Sorts the refused writes of a command that ended with this code.
pub(crate) fn seen(
    refused: &[RefusedWrite],
    code: i32,
    confinement: &Confinement,
) -> RefusedWriteReport {
    let mut seen = RefusedWriteReport::default();
    // No approval opens a path that is hidden by a rule or as a credential store.
    let is_hidden = |path: &Path| confinement.hidden.iter().any(|one| path.starts_with(one));
    for one in refused {
        // Many programs try to open a file for writing and then fall back to reading. If they
        // succeed, no question is needed.
        if one.tentative && code == 0 {
            continue;
        }
        let path = &one.path;
        if escalate::is_protected(confinement, path) {
            seen.control.push(path.clone());
        } else if !is_hidden(path)
            && !is_incidental(path)
            && path.parent().is_some_and(Path::is_dir)
            && escalate::is_forbidden(confinement, path)
        {
            seen.others.push(path.clone());
        }
    }
    seen
}

/// Returns whether a file is an optional cache that no user misses: compiled Python, histories,
/// cache locks, usage counters.
fn is_incidental(path: &Path) -> bool {
    const FOLDERS: [&str; 4] = ["__pycache__", "telemetry", "configstore", "fontconfig"];
    const BEGINNINGS: [&str; 6] = [
        ".package-cache",
        ".global-cache",
        "_update-notifier",
        "update-notifier",
        "hsperfdata_",
        ".hsperfdata",
    ];
    const ENDS: [&str; 7] = [
        ".pyc",
        "history",
        "_hist",
        ".lesshst",
        ".viminfo",
        ".wget-hsts",
        ".rnd",
    ];
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    BEGINNINGS.iter().any(|begin| name.starts_with(begin))
        || ENDS.iter().any(|end| name.ends_with(end))
        || path
            .iter()
            .any(|part| FOLDERS.iter().any(|folder| part == *folder))
}

/// Returns the note about refused writes, for a background command: no user is asked about it.
pub(crate) fn refused_writes_note(paths: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = paths.iter().map(|path| escaped(path.as_os_str())).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The sandbox refused changes of: {}. `sandbox.filesystem.allowWrite` in the settings would \
             allow them.",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haft_contract::ConfinementProfile;

    use super::*;

    #[test]
    fn what_no_one_misses_is_no_question() {
        for path in [
            "/usr/lib/python3/__pycache__",
            "/usr/lib/python3/__pycache__/re.cpython-312.pyc.1",
            "/home/u/.python_history",
            "/home/u/.cargo/.package-cache",
            "/home/u/.npm/_update-notifier-last-checked",
            "/home/u/.config/go/telemetry/local/x",
            "/tmp/hsperfdata_u",
        ] {
            assert!(is_incidental(Path::new(path)), "{path}");
        }
        for path in ["/home/u/.bashrc", "/home/u/go/bin/x", "/srv/history.d/x"] {
            assert!(!is_incidental(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn writes_are_sorted_by_what_would_allow_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("work/.git/hooks")).unwrap();
        std::fs::create_dir(root.join(".ssh")).unwrap();
        std::fs::write(root.join("there"), "").unwrap();
        let confinement = Confinement {
            profile: ConfinementProfile::Workspace,
            writable: Arc::from([root.join("work")]),
            hidden: Arc::from([root.join(".ssh")]),
            protected: Arc::from([root.join("work/.git/hooks")]),
            ..Confinement::default()
        };
        let one = |name: &str, tentative: bool| RefusedWrite {
            path: root.join(name),
            tentative,
        };
        let refused = [
            one("there", true),
            one("new", false),
            one("no/such/place", false),
            one("work/.git/hooks/pre-commit", false),
            one("work/inside", false),
            one(".ssh/known_hosts", false),
        ];
        let control = vec![root.join("work/.git/hooks/pre-commit")];
        let others = vec![root.join("new")];
        let well = seen(&refused, 0, &confinement);
        assert_eq!(
            well,
            RefusedWriteReport {
                control: control.clone(),
                others
            }
        );
        let others = vec![root.join("there"), root.join("new")];
        let failed = seen(&refused, 1, &confinement);
        assert_eq!(failed, RefusedWriteReport { control, others });
    }
}
