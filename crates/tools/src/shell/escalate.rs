//! Asks the user to allow the accesses that the sandbox refused to a command. If the user agrees,
//! the command runs again with exactly these accesses allowed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, CallContext, Confinement, ConfinementProfile,
    HostPolicy, NetworkAccess, PermissionMode,
};
use haft_sandbox::{SandboxNetwork, SandboxProfile};
use rustix::fs::{Access, access};

use super::{
    gate::HostGate,
    host_questions::NamedCall,
    profile,
    sandbox_refusals::{self, SandboxRefusal},
};
use crate::paths::escaped;

/// The outcome of asking the user.
pub(crate) enum EscalationOutcome {
    /// Run the command again with this confinement.
    Retry(Box<Confinement>),
    /// Do not run it again. Contains the explanation for the model.
    Declined(String),
}

/// Returns the accesses that the sandbox refused to a command. They come from three sources:
/// control files (`files`) and other writes (`writes`) that its guard saw, and its output.
pub(crate) fn find_refusals(
    output: &str,
    code: i32,
    confinement: &Confinement,
    cwd: &Path,
    (files, writes): (&[PathBuf], &[PathBuf]),
) -> Vec<SandboxRefusal> {
    let network = match profile::sandbox_profile(confinement) {
        SandboxProfile::Full => return Vec::new(),
        SandboxProfile::ReadOnly(_) => SandboxNetwork::None,
        SandboxProfile::Workspace(workspace) => workspace.network,
    };
    let unreadable = |path: &Path| unreadable(confinement, path);
    let forbidden = |path: &Path| is_forbidden(confinement, path);
    let mut refused = sandbox_refusals::refusals(
        output,
        code,
        &sandbox_refusals::RefusalContext {
            cwd,
            forbidden: &forbidden,
            unreadable: &unreadable,
            homes_closed: !confinement.closed.is_empty() && confinement.untold.is_some(),
            network,
        },
    );
    refused.retain(|one| match one {
        // If the command succeeded, only a path that it could not change justifies a question.
        SandboxRefusal::Control(_)
        | SandboxRefusal::Read(_)
        | SandboxRefusal::Homes
        | SandboxRefusal::Network(_)
        | SandboxRefusal::Other(_)
            if code == 0 =>
        {
            false
        }
        // If the file system is read-only, or the sandbox does not protect the path, the write
        // failed for another reason.
        SandboxRefusal::Write(path) => {
            let same =
                |file: &PathBuf| existing(path).is_some_and(|path| path == *file) || path == file;
            forbidden(path) && !files.iter().any(same)
        }
        SandboxRefusal::Control(_) => true,
        SandboxRefusal::Read(_) | SandboxRefusal::Homes => true,
        // The gate has already asked, and its log has the exact host.
        SandboxRefusal::Network(_) => network != SandboxNetwork::Proxy,
        SandboxRefusal::Other(_) => true,
    });
    let mut all: Vec<SandboxRefusal> = files.iter().cloned().map(SandboxRefusal::Control).collect();
    // If paths are known, messages that name no path add nothing.
    let is_known = !files.is_empty() || !writes.is_empty();
    refused.retain(|one| !is_known || !matches!(one, SandboxRefusal::Other(_)));
    all.extend(refused);
    for path in writes {
        let one = SandboxRefusal::Write(path.clone());
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all.truncate(sandbox_refusals::MAX_COUNT);
    all
}

/// Returns whether the profile forbids changing the path although the user may change it.
pub(crate) fn is_forbidden(confinement: &Confinement, path: &Path) -> bool {
    // Files in `/proc` and `/sys` cannot be allowed.
    let is_file = !path.starts_with("/proc") && !path.starts_with("/sys");
    is_file && !is_writable(confinement, path) && user_may(path)
}

/// Returns whether the path is protected even if its directory is writable.
pub(crate) fn is_protected(confinement: &Confinement, path: &Path) -> bool {
    let mut protected = confinement.protected.iter();
    protected.any(|kept| path.starts_with(kept))
}

/// Returns the note about control files that the sandbox did not let a command change.
pub(crate) fn control_files_note(files: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = files.iter().map(|path| escaped(path.as_os_str())).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The sandbox refused changes to files that decide what other programs run: {}. Use Write \
             or Edit for them, so that the user can be asked.",
            names.join(", ")
        )
    })
}

/// Asks the user about the refusals.
pub(crate) async fn ask(
    refused: &[SandboxRefusal],
    confinement: &Confinement,
    gate: &HostGate,
    cx: &CallContext,
    call: NamedCall,
) -> EscalationOutcome {
    let accesses: Vec<String> = refused.iter().map(refusal_description).collect();
    let accesses = accesses.join("; ");
    let closed = why_closed(refused, confinement);
    let Some(grants) = grants(refused) else {
        return EscalationOutcome::Declined(format!("The sandbox refused: {accesses}.{closed}"));
    };
    let grant_names: Vec<String> = grants.iter().map(EscalationGrant::description).collect();
    let grant_names = grant_names.join(", ");
    let question = ApprovalRequest {
        kind: ApprovalKind::Permission,
        call: cx.call,
        tool: "Bash".to_owned(),
        card: call.card,
        reason: format!(
            "the sandbox refused: {accesses}. The command has run, and would run again with \
             {grant_names} allowed{}",
            for_all(&grants, confinement.profile)
        ),
        offers: Vec::new(),
        asked: Some(call.asked),
        ..ApprovalRequest::default()
    };
    let answer = if cx.permissions.mode == PermissionMode::DontAsk {
        ApprovalAnswer::Unavailable
    } else {
        tokio::select! {
            answer = cx.services.approver().ask(question) => answer,
            () = cx.cancel.cancelled() => ApprovalAnswer::Unavailable,
        }
    };
    match answer {
        ApprovalAnswer::Allow
        | ApprovalAnswer::AllowAlways
        | ApprovalAnswer::Updated { input: None, .. } => {
            EscalationOutcome::Retry(Box::new(with_grants(confinement, &grants, gate)))
        }
        // The command has already run, so this question cannot be answered with a different
        // command.
        ApprovalAnswer::InputEdited { .. } | ApprovalAnswer::Updated { .. } => {
            EscalationOutcome::Declined(format!(
                "The sandbox refused: {accesses}. The user requests a different call instead: make it \
                 as a new call."
            ))
        }
        ApprovalAnswer::Deny { reason } => {
            let reason = reason.map_or_else(String::new, |reason| format!(" They said: {reason}"));
            EscalationOutcome::Declined(format!(
                "The sandbox refused: {accesses}. The user did not allow it.{reason}{closed}"
            ))
        }
        ApprovalAnswer::Unavailable => EscalationOutcome::Declined(format!(
            "The sandbox refused: {accesses}. No user can be asked. What would allow it: {}{closed}",
            remedy(&grants, confinement.profile)
        )),
    }
}

/// Returns an explanation why the home directories are closed to a line, and how to write the line
/// so that they are not. The text is empty if no read was refused.
fn why_closed(refused: &[SandboxRefusal], confinement: &Confinement) -> String {
    let reads =
        |one: &SandboxRefusal| matches!(one, SandboxRefusal::Read(_) | SandboxRefusal::Homes);
    match &confinement.untold {
        Some(untold) if refused.iter().any(reads) => {
            let closed = match confinement.profile {
                ConfinementProfile::ReadOnly => "Directories outside the working directories",
                _ => "Home directories",
            };
            format!(
                " {closed} are closed to this line, because `{}` does not show which files it reads. \
                 Name each file without expansions and without links: haft can then check its path.",
                escaped(untold.trim().as_ref())
            )
        }
        _ => String::new(),
    }
}

/// A permission that would have prevented a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EscalationGrant {
    /// Changing this path and everything below it. The path exists.
    Path(PathBuf),
    /// Creating or changing this control file, with everything below it.
    Control(PathBuf),
    /// Reading this path and everything below it except key stores. Symlinks are resolved.
    Read(PathBuf),
    /// Connecting to this host.
    Host(String),
    /// Connecting to any host, because the refused host is unknown.
    Network,
}

impl EscalationGrant {
    fn description(&self) -> String {
        match self {
            Self::Path(path) | Self::Control(path) if path.is_dir() => {
                format!("changes in {}", escaped(path.as_os_str()))
            }
            Self::Path(path) | Self::Control(path) => {
                format!("changes of {}", escaped(path.as_os_str()))
            }
            Self::Read(path) => format!("reading of {}", escaped(path.as_os_str())),
            Self::Host(host) => format!("the host {host}"),
            Self::Network => "the whole network".to_owned(),
        }
    }
}

fn refusal_description(refused: &SandboxRefusal) -> String {
    match refused {
        SandboxRefusal::Write(path) | SandboxRefusal::Control(path) => {
            format!("changing {}", escaped(path.as_os_str()))
        }
        SandboxRefusal::Read(path) => format!("reading {}", escaped(path.as_os_str())),
        SandboxRefusal::Homes => "reading a path in a home directory".to_owned(),
        SandboxRefusal::Network(Some(host)) => format!("connecting to {host}"),
        SandboxRefusal::Network(None) => "using the network".to_owned(),
        SandboxRefusal::Other(line) => format!("an access that it reported as \"{line}\""),
    }
}

/// Returns the grants that would prevent the refusals, or `None` if they cannot be determined.
fn grants(refused: &[SandboxRefusal]) -> Option<Vec<EscalationGrant>> {
    let mut grants = Vec::new();
    for one in refused {
        let grant = match one {
            SandboxRefusal::Write(path) => EscalationGrant::Path(existing(path)?),
            SandboxRefusal::Control(path) => EscalationGrant::Control(grant_root(path)),
            SandboxRefusal::Read(path) => EscalationGrant::Read(path.clone()),
            SandboxRefusal::Network(Some(host)) => EscalationGrant::Host(host.clone()),
            SandboxRefusal::Network(None) => EscalationGrant::Network,
            SandboxRefusal::Other(_) | SandboxRefusal::Homes => continue,
        };
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }
    (!grants.is_empty()).then_some(grants)
}

/// Returns the path itself. For a file of a git worktree, returns the worktree's directory below
/// `.git/worktrees`, which contains several files.
fn grant_root(path: &Path) -> PathBuf {
    let mut above = path.ancestors();
    let worktree = above.find(|folder| {
        let of = |folder: Option<&Path>, name: &str| {
            folder
                .and_then(Path::file_name)
                .is_some_and(|found| found == name)
        };
        let worktrees = folder.parent();
        of(worktrees, "worktrees") && of(worktrees.and_then(Path::parent), ".git")
    });
    worktree.unwrap_or(path).to_path_buf()
}

/// Returns the path, or its closest existing ancestor, with symlinks resolved. Never returns the
/// root.
fn existing(path: &Path) -> Option<PathBuf> {
    let found = path
        .ancestors()
        .find_map(|place| place.canonicalize().ok())?;
    found.parent().is_some().then_some(found)
}

/// Returns the confinement with the grants added.
fn with_grants(
    confinement: &Confinement,
    grants: &[EscalationGrant],
    gate: &HostGate,
) -> Confinement {
    let mut wider = confinement.clone();
    if grants
        .iter()
        .any(|grant| !matches!(grant, EscalationGrant::Read(_)))
    {
        wider.profile = ConfinementProfile::Workspace;
    }
    open(&mut wider, grants);
    let paths: Vec<PathBuf> = grants
        .iter()
        .filter_map(|grant| match grant {
            EscalationGrant::Path(path) | EscalationGrant::Control(path) => Some(path.clone()),
            EscalationGrant::Read(_) | EscalationGrant::Host(_) | EscalationGrant::Network => None,
        })
        .collect();
    // A grant for a directory does not include the control files in it.
    let meant = grants.iter().filter_map(|grant| match grant {
        EscalationGrant::Control(path) => Some(path),
        EscalationGrant::Path(path) => {
            let mut protected = confinement.protected.iter();
            protected.any(|kept| path.starts_with(kept)).then_some(path)
        }
        EscalationGrant::Read(_) | EscalationGrant::Host(_) | EscalationGrant::Network => None,
    });
    let meant = meant.cloned().collect();
    let mut writable = confinement.writable.to_vec();
    writable.extend(paths.iter().cloned());
    wider.writable = writable.into();
    let protected = confinement.protected.iter();
    wider.protected = protected
        .flat_map(|kept| but_for(kept, &paths))
        .collect::<Vec<_>>()
        .into();
    wider.control = confinement.control.except(meant);
    for grant in grants {
        match grant {
            EscalationGrant::Path(_) | EscalationGrant::Control(_) | EscalationGrant::Read(_) => {}
            EscalationGrant::Host(host) => {
                gate.allow(host);
                if matches!(wider.network, NetworkAccess::Nobody) {
                    wider.network = NetworkAccess::ByRule(HostPolicy::ask_all());
                }
            }
            EscalationGrant::Network => wider.network = NetworkAccess::Anybody,
        }
    }
    wider
}

/// Opens the paths that the grants allow to read.
fn open(wider: &mut Confinement, grants: &[EscalationGrant]) {
    let read = grants.iter().filter_map(|grant| match grant {
        EscalationGrant::Read(path) => Some(path.clone()),
        _ => None,
    });
    let read: Vec<PathBuf> = read.collect();
    if read.is_empty() {
        return;
    }
    let stores = &wider.stores;
    let in_store = |path: &PathBuf| stores.iter().any(|store| path.starts_with(store));
    // Within a key store, only the named path is opened: a grant for a home directory does not
    // include the keys in it.
    let keys: Vec<PathBuf> = read.iter().filter(|path| in_store(path)).cloned().collect();
    let hidden = wider.hidden.iter();
    let hidden = hidden.flat_map(|hidden| but_for(hidden, &keys));
    wider.hidden = hidden.collect::<Vec<_>>().into();
    wider.open = wider.open.iter().cloned().chain(read).collect();
}

/// Returns the resolved path if the profile forbids reading it although the user may read it and no
/// rule denies it.
fn unreadable(confinement: &Confinement, path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let below = |list: &Arc<[PathBuf]>| list.iter().any(|one| real.starts_with(one));
    let opened = || {
        let open = confinement.open.iter().chain(&*confinement.writable);
        let mut open = open.filter_map(|open| open.canonicalize().ok());
        open.any(|open| real.starts_with(open))
    };
    let kept = if below(&confinement.hidden) {
        below(&confinement.stores)
    } else {
        below(&confinement.closed) && !opened()
    };
    (kept && access(&real, Access::READ_OK).is_ok()).then_some(real)
}

/// Splits a protected path so that the granted paths in it are no longer protected. Returns the
/// parts that stay protected: all siblings on the way to the granted paths.
fn but_for(kept: &Path, granted: &[PathBuf]) -> Vec<PathBuf> {
    if granted.iter().any(|path| kept.starts_with(path)) {
        return Vec::new();
    }
    if !granted.iter().any(|path| path.starts_with(kept)) {
        return vec![kept.to_path_buf()];
    }
    let children = fs::read_dir(kept).into_iter().flatten().flatten();
    children
        .flat_map(|child| but_for(&child.path(), granted))
        .collect()
}

/// Returns whether the profile allows changing the path.
fn is_writable(confinement: &Confinement, path: &Path) -> bool {
    let real = existing(path).unwrap_or_else(|| path.to_path_buf());
    let below = |list: &Arc<[PathBuf]>| list.iter().any(|one| real.starts_with(one));
    confinement.profile == ConfinementProfile::Workspace
        && below(&confinement.writable)
        && !below(&confinement.protected)
}

/// Returns whether the user may change the path without a sandbox, according to file modes and
/// mounts.
fn user_may(path: &Path) -> bool {
    existing(path).is_some_and(|place| access(&place, Access::WRITE_OK).is_ok())
}

/// Returns the setting that would make the question unnecessary, if any.
fn for_all(grants: &[EscalationGrant], profile: ConfinementProfile) -> String {
    let paths = grants
        .iter()
        .any(|grant| matches!(grant, EscalationGrant::Path(_)));
    match paths && profile == ConfinementProfile::Workspace {
        true => " (sandbox.filesystem.allowWrite allows it for all)".to_owned(),
        false => String::new(),
    }
}

fn remedy(grants: &[EscalationGrant], profile: ConfinementProfile) -> String {
    let reads = |grant: &EscalationGrant| matches!(grant, EscalationGrant::Read(_));
    if profile == ConfinementProfile::ReadOnly && !grants.iter().any(reads) {
        // The command was classified as read-only, and no setting changes that.
        return "a user who can be asked.".to_owned();
    }
    // No setting should open the paths of the kernel, of devices or of services.
    let systems_own = ["/dev", "/proc", "/run", "/sys"];
    let is_systems_own = |grant: &EscalationGrant| match grant {
        EscalationGrant::Path(path) | EscalationGrant::Read(path) => {
            systems_own.iter().any(|place| path.starts_with(place))
        }
        EscalationGrant::Control(_) | EscalationGrant::Host(_) | EscalationGrant::Network => false,
    };
    if grants.iter().any(is_systems_own) {
        return "a user who can be asked.".to_owned();
    }
    let settings: Vec<String> = grants
        .iter()
        .map(|grant| match grant {
            EscalationGrant::Path(path) => format!(
                "\"{}\" in `sandbox.filesystem.allowWrite`",
                escaped(path.as_os_str())
            ),
            // A worktree consists of several files.
            EscalationGrant::Control(path)
                if path.parent().is_some_and(|above| above.ends_with(".git/worktrees")) =>
            {
                format!("Write or Edit for the files in {}", escaped(path.as_os_str()))
            }
            EscalationGrant::Control(path) => format!(
                "the rule `Edit(/{})` in `permissions.allow` of the user's own settings, which names one \
                 path, not those below it",
                escaped(path.as_os_str())
            ),
            EscalationGrant::Read(path) => format!(
                "the rule `Read(/{})` in `permissions.allow` of the user's own settings",
                escaped(path.as_os_str())
            ),
            EscalationGrant::Host(host) => {
                format!("\"{host}\" in `sandbox.network.allowedDomains`")
            }
            EscalationGrant::Network => "a network that is not confined".to_owned(),
        })
        .collect();
    format!("{}, or a user who can be asked.", settings.join(", "))
}

#[cfg(test)]
mod tests {
    use haft_contract::{ControlAccess, ControlFiles, ControlledFiles};
    use haft_testkit::ControlFile;

    use super::*;

    #[test]
    fn a_grant_inside_what_is_protected_leaves_the_rest_protected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for path in [".git/hooks", ".git/objects", ".git/refs"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        let confinement = Confinement {
            profile: ConfinementProfile::Workspace,
            writable: Arc::from([root.clone()]),
            protected: Arc::from([root.join(".git")]),
            control: ControlFiles::from_rules(ControlledFiles::default()),
            ..Confinement::default()
        };
        let grants = [EscalationGrant::Path(root.join(".git/refs"))];
        let wider = with_grants(&confinement, &grants, &HostGate::default());
        let mut protected = wider.protected.to_vec();
        protected.sort_unstable();
        assert_eq!(
            protected,
            [root.join(".git/hooks"), root.join(".git/objects")]
        );
        assert!(!wider.control.is_control_file(&root.join(".git/refs/x")));
        assert!(wider.control.is_control_file(&root.join(".git/hooks/x")));
        assert!(!is_writable(&confinement, &root.join(".git/refs/new")));
        assert!(is_writable(&wider, &root.join(".git/refs/new")));
        assert!(is_writable(&wider, &root.join("new/file")));
    }

    #[test]
    fn no_setting_is_named_for_what_is_the_systems_own() {
        let remedy = |path: &str| {
            remedy(
                &[EscalationGrant::Path(path.into())],
                ConfinementProfile::Workspace,
            )
        };
        for path in ["/proc/self/mem", "/dev/sda", "/sys/kernel", "/run/x.sock"] {
            assert_eq!(remedy(path), "a user who can be asked.");
        }
        assert!(remedy("/srv/x").starts_with("\"/srv/x\" in `sandbox"));
    }

    #[test]
    fn a_grant_to_read_opens_what_was_named_and_no_other_key() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for file in [".ssh/a", ".ssh/b", ".denied/x", "notes", "open/x"] {
            fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            fs::write(home.join(file), "").unwrap();
        }
        let confinement = Confinement {
            hidden: Arc::from([home.join(".denied"), home.join(".ssh")]),
            stores: Arc::from([home.join(".ssh")]),
            closed: Arc::from([home.clone()]),
            open: Arc::from([home.join("open")]),
            ..Confinement::default()
        };
        let at = |name: &str| unreadable(&confinement, &home.join(name));
        assert_eq!(at(".ssh/a"), Some(home.join(".ssh/a")));
        assert_eq!(at("notes"), Some(home.join("notes")));
        // Denied by a rule, open, and not there.
        assert_eq!(at(".denied/x"), None);
        assert_eq!(at("open/x"), None);
        assert_eq!(at("gone"), None);
        let wider = |path: PathBuf| {
            let grants = [EscalationGrant::Read(path)];
            with_grants(&confinement, &grants, &HostGate::default())
        };
        let one = wider(home.join(".ssh/a"));
        assert_eq!(one.profile, ConfinementProfile::ReadOnly);
        assert_eq!(*one.hidden, [home.join(".denied"), home.join(".ssh/b")]);
        assert_eq!(*one.open, [home.join("open"), home.join(".ssh/a")]);
        let all = wider(home.clone());
        assert_eq!(all.hidden, confinement.hidden);
    }

    #[test]
    fn a_grant_for_a_new_file_is_none_for_control_files_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let confinement = Confinement {
            control: ControlFiles::from_rules(ControlFile(".envrc")),
            ..Confinement::default()
        };
        let permits = |confinement: &Confinement, name: &str| {
            confinement.control.permits(&ControlAccess {
                path: &root.join(name),
                action: haft_contract::ControlAction::MakeFile,
                settings: None,
                new_directory: None,
            })
        };
        let wider =
            |grant: EscalationGrant| with_grants(&confinement, &[grant], &HostGate::default());
        let beside = wider(EscalationGrant::Path(root.clone()));
        assert_eq!(*beside.writable, *std::slice::from_ref(&root));
        assert!(permits(&beside, "new.txt") && !permits(&beside, ".envrc"));
        let itself = wider(EscalationGrant::Control(root.join(".envrc")));
        assert!(permits(&itself, ".envrc"));
    }

    #[test]
    fn what_is_not_there_is_granted_by_its_directory_and_never_by_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert_eq!(existing(&root.join("a/b")), Some(root));
        assert_eq!(existing(Path::new("/no-such-directory/x")), None);
    }
}
