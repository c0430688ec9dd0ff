//! The files that a command may change, and the files that it may not read.
//!
//! The kernel gets the existing paths ([`path_scan`](super::path_scan)). Paths that a command
//! creates are checked when it creates them ([`control_files`]).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    ConfinementProfile, ControlAccess, ControlAction, ControlFiles, ControlNames, ControlRules,
    ControlledFiles, HomeControl, PermittedPath,
};
use haft_shell::WriteKind;

use super::{
    super::{
        CallFacts, Policy, StorePlaces, TouchedPath, credentials,
        decide::stores_allowed,
        home_control::{HomeRules, home_names},
        protected_files::{completes_sequence, folded, is_protected},
        rules::{List, PathPattern, RuleClass, RuleContent},
        shell_facts::{PathAccess, PathLocation, ShellFacts},
    },
    SandboxSettings, caches, control_files,
    named_control_files::named_control_files,
    path_scan::PathScan,
};
use haft_settings::{files, real_path};

/// The maximum number of paths that replace the directory that contains them.
const MAX_NEIGHBOURS: usize = 128;

/// The maximum number of entries in a moved directory, if patterns protect files from changes.
const MAX_MOVED: usize = 50_000;

/// The files that a command may change, and the files that it may not read. Real paths.
#[derive(Debug, Default)]
pub(super) struct ConfinementPaths {
    pub(super) writable: Vec<PathBuf>,
    /// The writable paths that are caches of tools.
    pub(super) caches: Vec<PathBuf>,
    pub(super) protected: Vec<PathBuf>,
    /// The protected paths whose new content is checked.
    pub(super) judged: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// The hidden paths that the user may open.
    pub(super) stores: Vec<PathBuf>,
    pub(super) control: ControlFiles,
    /// A directory that was not scanned for hidden files.
    pub(super) unscanned: Option<PathBuf>,
}

/// Determines the paths for a call that may run.
pub(super) fn resolve_paths(
    policy: &Policy,
    facts: &CallFacts,
    confined: ConfinementProfile,
) -> ConfinementPaths {
    let sandbox = &policy.sandbox;
    let hiding = patterns(policy, RuleClass::Reads, &sandbox.deny_read);
    if confined == ConfinementProfile::ReadOnly {
        let mut look = PathScan::new(hiding, Vec::new());
        look.walk(Vec::new(), policy);
        let unscanned = look.unscanned.take();
        let (hidden, stores) = with_stores(hidden(look.hidden, policy), policy, facts);
        return ConfinementPaths {
            hidden,
            stores,
            unscanned,
            // The user may allow the command to change files after all.
            control: protected_control_files(policy, Vec::new()),
            ..ConfinementPaths::default()
        };
    }
    if sandbox.files_open {
        return ConfinementPaths {
            writable: vec![PathBuf::from("/")],
            ..ConfinementPaths::default()
        };
    }
    let mut granted = granted(policy, facts);
    let mut writable = session_writable_paths(policy);
    let mut neighbours = Vec::new();
    for one in &granted {
        grant(&one.path, &granted, &mut writable, &mut neighbours);
    }
    granted.extend(named_control_files(policy));
    let mut look = PathScan::new(
        hiding,
        patterns(policy, RuleClass::Edits, &sandbox.deny_write),
    );
    look.walk(writable.clone(), policy);
    let unscanned = look.unscanned.take();
    let (hidden, stores) = with_stores(hidden(look.hidden, policy), policy, facts);
    let mut protected = Vec::new();
    for path in look.control {
        if !granted.iter().any(|one| reaches(one, &path)) {
            let inside = granted.iter().map(|one| one.path.as_path());
            protected.extend(but_for(path, inside));
        }
    }
    protected.extend(neighbours);
    protected.extend(look.locked.iter().cloned());
    // Caches are not scanned: control files of installed code are ignored there.
    let caches = caches::command_caches(policy, facts);
    let locks = patterns(policy, RuleClass::Edits, &sandbox.deny_write);
    let caches = caches.into_iter().filter(|cache| {
        let locked = |pattern: &&PathPattern| pattern.covers(cache) || pattern.reaches_below(cache);
        !locks.iter().any(locked)
    });
    let caches = outermost(caches.collect());
    granted.extend(caches.iter().map(|cache| PermittedPath {
        path: cache.clone(),
        whole: true,
    }));
    writable.extend(caches.iter().cloned());
    writable.retain(|path| !protected.iter().any(|kept| path.starts_with(kept)));
    let writable = outermost(writable);
    let below = |path: &PathBuf| writable.iter().any(|root| path.starts_with(root));
    protected.retain(below);
    let protected = outermost(protected);
    // For a file that a rule locks, the content does not matter.
    let judged = protected
        .iter()
        .filter(|path| control_files::is_judged(path) && !look.locked.contains(path));
    ConfinementPaths {
        judged: judged.cloned().collect(),
        protected,
        control: protected_control_files(policy, granted),
        writable,
        caches,
        hidden,
        stores,
        unscanned,
    }
}

/// Returns the patterns of deny rules of a class, and those of the settings.
fn patterns<'a>(
    policy: &'a Policy,
    class: RuleClass,
    own: &'a [PathPattern],
) -> Vec<&'a PathPattern> {
    let rules = policy.rules.in_list(List::Deny);
    let rules = rules.filter(|rule| rule.class == class);
    rules
        .filter_map(|rule| match &rule.content {
            RuleContent::Path(pattern) => Some(&**pattern),
            _ => None,
        })
        .chain(own)
        .collect()
}

/// Returns the paths that every command of the session may change.
pub(crate) fn session_writable_paths(policy: &Policy) -> Vec<PathBuf> {
    let mut writable = policy.roots.clone();
    let edits = policy
        .rules
        .in_list(List::Allow)
        .filter(|rule| rule.class == RuleClass::Edits && rule.source.scope.is_users());
    let edits = edits.filter_map(|rule| match &rule.content {
        RuleContent::Path(pattern) if pattern.is_absolute() => pattern.fixed_paths(),
        _ => None,
    });
    // A rule for a directory does not allow changing control files in it.
    let edits = edits
        .flatten()
        .filter(|path| !control_files::is_control_folder(path));
    for path in policy.sandbox.allow_write.iter().cloned().chain(edits) {
        let real = unlinked(&path, &writable).filter(|real| real.exists());
        writable.extend(real);
    }
    // A linked worktree stores its commits in its main checkout.
    let linked = policy
        .roots
        .iter()
        .filter_map(|root| files::main_checkout(root));
    writable.extend(linked.map(|main| real_path::resolve_links(&main.join(".git"))));
    let above = policy
        .roots
        .iter()
        .filter_map(|root| repository_above(root));
    writable.extend(above);
    let modules = policy
        .roots
        .iter()
        .filter_map(|root| files::module_folder(root));
    writable.extend(modules);
    writable
}

/// Returns the `.git` with the commits of a session that works in a part of a repository.
fn repository_above(root: &Path) -> Option<PathBuf> {
    let found = root.ancestors().find(|path| path.join(".git").exists())?;
    let folder = found.join(".git");
    (found != root && folder.is_dir()).then(|| real_path::resolve_links(&folder))
}

/// Returns the real path of a path that settings or rules open; `None` if a command may have made a
/// link on the way.
pub(super) fn unlinked(path: &Path, writable: &[PathBuf]) -> Option<PathBuf> {
    let path = real_path::normalize(path);
    let real = real_path::resolve_links(&path);
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    for directory in above {
        let there = real_path::resolve_links(directory);
        if writable.iter().any(|root| there.starts_with(root)) {
            let rest = path.strip_prefix(directory).ok()?;
            let expected: PathBuf = there.components().chain(rest.components()).collect();
            return (real == expected).then_some(real);
        }
    }
    Some(real)
}

/// Removes the readable paths from the hidden ones.
fn hidden(hidden: Vec<PathBuf>, policy: &Policy) -> Vec<PathBuf> {
    let allowed = &policy.sandbox.allow_read;
    if hidden.is_empty() || allowed.is_empty() {
        return outermost(hidden);
    }
    let writable = session_writable_paths(policy);
    let allowed = allowed.iter().filter_map(|path| unlinked(path, &writable));
    let allowed: Vec<PathBuf> = allowed.collect();
    let allowed = || allowed.iter().map(PathBuf::as_path);
    let rest = hidden
        .into_iter()
        .filter(|path| !allowed().any(|one| path.starts_with(one)))
        .flat_map(|path| but_for(path, allowed()));
    outermost(rest.collect())
}

/// Adds every store of keys to the hidden paths, except those that this call may use. Returns the
/// hidden paths, and the stores among them.
fn with_stores(
    mut hidden: Vec<PathBuf>,
    policy: &Policy,
    facts: &CallFacts,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let allowed = stores_allowed(policy, facts);
    let allowed = || allowed.iter().map(PathBuf::as_path);
    let mut stores = Vec::new();
    for store in credentials::existing_stores(policy.store_places()).iter() {
        // Working directories are not hidden, but haft's own secrets always are.
        let is_own = policy.sandbox.own_secrets.contains(store);
        let is_worked_on = !is_own && policy.roots.iter().any(|root| root.starts_with(store));
        if !is_worked_on && !allowed().any(|one| store.starts_with(one)) {
            stores.extend(but_for(store.clone(), allowed()));
        }
    }
    stores.retain(|store| !hidden.iter().any(|denied| store.starts_with(denied)));
    let stores = outermost(stores);
    hidden.extend(stores.iter().cloned());
    (outermost(hidden), stores)
}

/// Returns whether this permission includes a change of the path.
fn reaches(granted: &PermittedPath, path: &Path) -> bool {
    granted.path == path || (granted.whole && path.starts_with(&granted.path))
}

/// Returns the paths that this call was allowed to write, if its line shows them.
fn granted(policy: &Policy, facts: &CallFacts) -> Vec<PermittedPath> {
    let home = policy.home_control();
    let one = |touched: &TouchedPath, removed: bool| PermittedPath {
        path: touched.real.clone(),
        // The path is removed, or it is itself a control file.
        whole: removed
            || touched.controls_repository
            || is_protected(&touched.real)
            || home.is_control(&touched.real),
    };
    let writes = facts.writes.iter();
    let mut granted: Vec<PermittedPath> = writes.map(|touched| one(touched, false)).collect();
    let shell = facts.shell.iter().flat_map(ShellFacts::parts);
    for path in shell.flat_map(|(_, _, paths)| paths) {
        let PathAccess::Write(how) = path.access else {
            continue;
        };
        // Every command may write there.
        if path
            .places()
            .iter()
            .any(|touched| policy.is_private(&touched.real))
        {
            continue;
        }
        match &path.place {
            PathLocation::Known(places) => {
                let removed = how == WriteKind::Removal;
                granted.extend(places.iter().map(|touched| one(touched, removed)));
            }
            // A pattern: its directory, unless that would open too much.
            PathLocation::Below(Some(places)) => {
                let wide = |path: &Path| {
                    policy.home.as_deref() == Some(path)
                        || path.parent().is_none()
                        || policy.is_inside(path)
                };
                let places = places.iter().filter(|touched| !wide(&touched.real));
                granted.extend(places.map(|touched| one(touched, false)));
            }
            PathLocation::Below(None) => {}
        }
    }
    granted
}

/// Makes a path outside writable. Creating, replacing or removing a file requires its directory;
/// the other entries of the directory stay protected.
fn grant(
    path: &Path,
    granted: &[PermittedPath],
    writable: &mut Vec<PathBuf>,
    neighbours: &mut Vec<PathBuf>,
) {
    if writable.iter().any(|root| path.starts_with(root)) {
        return;
    }
    let directory = path.ancestors().skip(1).find(|above| above.is_dir());
    match directory {
        Some(directory) if !path.is_dir() && directory.parent().is_some() => {
            let granted = granted.iter().map(|one| &one.path);
            let keep: Vec<&Path> = writable
                .iter()
                .chain(granted)
                .map(PathBuf::as_path)
                .collect();
            match around(directory, &keep) {
                Some(others) => {
                    neighbours.extend(others);
                    writable.push(directory.to_path_buf());
                }
                None => writable.push(path.to_path_buf()),
            }
        }
        _ => writable.push(path.to_path_buf()),
    }
}

/// Returns everything in a directory except these paths and what is below them. Returns `None` if
/// there are too many entries.
pub(super) fn around(directory: &Path, keep: &[&Path]) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).ok()? {
            let path = entry.ok()?.path();
            if keep.iter().any(|kept| path.starts_with(kept)) {
                continue;
            }
            if keep.iter().any(|kept| kept.starts_with(&path)) {
                waiting.push(path);
            } else {
                found.push(path);
            }
            if found.len() > MAX_NEIGHBOURS {
                return None;
            }
        }
    }
    Some(found)
}

/// Returns the path; or, if it contains some of these paths, everything in it except them.
fn but_for<'a>(path: PathBuf, these: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let inside: Vec<&Path> = these.filter(|one| one.starts_with(&path)).collect();
    if inside.is_empty() {
        return vec![path];
    }
    // Protect too much rather than too little.
    around(&path, &inside).unwrap_or_else(|| vec![path])
}

/// Returns the paths that are not below another one.
pub(super) fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort_unstable();
    paths.dedup();
    let mut outermost: Vec<PathBuf> = Vec::new();
    for path in paths {
        // Sorted by components, a path comes directly before the paths below it.
        let known = outermost.last().is_some_and(|last| path.starts_with(last));
        if !known {
            outermost.push(path);
        }
    }
    outermost
}

/// The paths that a command may not create or change, even in writable directories.
struct ProtectedPaths {
    roots: Vec<PathBuf>,
    sandbox: Arc<SandboxSettings>,
    /// The patterns of rules that forbid changes.
    locked: Vec<PathPattern>,
    granted: Vec<PermittedPath>,
    home: HomeControl,
}

fn protected_control_files(policy: &Policy, granted: Vec<PermittedPath>) -> ControlFiles {
    let locked = patterns(policy, RuleClass::Edits, &[]).into_iter().cloned();
    ControlFiles::from_rules(ProtectedPaths {
        roots: policy.roots.clone(),
        sandbox: Arc::clone(&policy.sandbox),
        locked: locked.collect(),
        granted,
        home: policy.home_control(),
    })
}

/// Returns the control files with these working directories, locked patterns, permissions and
/// homes.
pub(crate) fn controlled(
    roots: Vec<PathBuf>,
    locked: Vec<PathPattern>,
    granted: Vec<PermittedPath>,
    home: HomeControl,
) -> ControlFiles {
    ControlFiles::from_rules(ProtectedPaths {
        roots,
        sandbox: Arc::default(),
        locked,
        granted,
        home,
    })
}

impl ProtectedPaths {
    fn is_locked(&self, path: &Path) -> bool {
        let mut patterns = self.sandbox.deny_write.iter().chain(&self.locked);
        patterns.any(|pattern| pattern.covers(path))
    }

    /// Returns whether moving a directory would move a file to or from a locked path.
    fn moves_locked(&self, from: &Path, to: &Path) -> bool {
        let patterns = self.sandbox.deny_write.iter().chain(&self.locked);
        let reach =
            |pattern: &&PathPattern| pattern.reaches_below(from) || pattern.reaches_below(to);
        let patterns: Vec<&PathPattern> = patterns.filter(reach).collect();
        let covered = |path: &Path| patterns.iter().any(|pattern| pattern.covers(path));
        // If every pattern names its paths, a scan of the directory is not needed.
        let wholes: Option<Vec<Vec<PathBuf>>> = patterns
            .iter()
            .map(|pattern| pattern.fixed_paths())
            .collect();
        if let Some(wholes) = wholes {
            return wholes.iter().flatten().any(|whole| {
                let there = |below: &Path| from.join(below).symlink_metadata().is_ok();
                whole.strip_prefix(from).is_ok_and(there) || whole.strip_prefix(to).is_ok_and(there)
            });
        }
        let mut waiting = vec![PathBuf::new()];
        let mut seen = 0;
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(from.join(&directory))
                .into_iter()
                .flatten()
                .flatten()
            {
                seen += 1;
                let below = directory.join(entry.file_name());
                if seen > MAX_MOVED || covered(&from.join(&below)) || covered(&to.join(&below)) {
                    return true;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(below);
                }
            }
        }
        false
    }

    fn is_permitted(&self, path: &Path) -> bool {
        self.granted.iter().any(|one| reaches(one, path))
    }

    /// Returns whether this call was permitted to write the path in this way.
    fn permits_action(&self, used: &ControlAccess<'_>) -> bool {
        let mut granted = self.granted.iter();
        match used.action {
            // The files in a moved directory were not named.
            ControlAction::MoveDirectory { .. } => {
                granted.any(|one| one.whole && used.path.starts_with(&one.path))
            }
            // The directories of a named file may be missing.
            ControlAction::MakeDirectory => {
                granted.any(|one| reaches(one, used.path) || one.path.starts_with(used.path))
            }
            _ => granted.any(|one| reaches(one, used.path)),
        }
    }

    /// Returns whether the place of the path in a home and the stores of secrets permit the action.
    fn permits_place(&self, used: &ControlAccess<'_>) -> bool {
        match used.action {
            ControlAction::Remove { made: true } => true,
            ControlAction::MakeDirectory if self.home.leads_to_data(used.path) => true,
            _ => !self.home.is_control(used.path) && !self.is_store(used.path),
        }
    }

    /// Returns whether a path is a store of secrets, or in one, even if it does not exist: a
    /// command may not create a hidden path either.
    fn is_store(&self, path: &Path) -> bool {
        let is_store = |path: &Path| {
            let homes = self.home.homes.iter().map(|home| Some(home.as_path()));
            let mut homes = homes.chain([None]);
            homes.any(|home| {
                let own_secrets = &self.sandbox.own_secrets;
                credentials::is_store(path, StorePlaces { home, own_secrets })
            })
        };
        // Working directories are not hidden.
        let mut roots = self.roots.iter();
        is_store(path) && !roots.any(|root| path.starts_with(root) && is_store(root))
    }

    /// Returns whether a directory or link at this path would complete the path of a control file
    /// or store.
    fn brings_rest(&self, used: &ControlAccess<'_>) -> bool {
        let brings = |holds: &dyn Fn(&Path) -> bool| {
            let mut homes = self.home.homes.iter();
            (completes_sequence(used.path, holds) && !control_files::may_arrive(used))
                || homes.any(|home| credentials::completes_store(used.path, home, holds))
        };
        match used.action {
            ControlAction::MakeLink => brings(&|_| true),
            ControlAction::MoveFile { from, .. } if from.is_symlink() => brings(&|_| true),
            ControlAction::MoveDirectory { from } => {
                brings(&|below| from.join(below).symlink_metadata().is_ok())
            }
            _ => false,
        }
    }
}

impl ControlRules for ProtectedPaths {
    fn names(&self) -> ControlNames {
        let mut names = control_files::names();
        // A store that a variable names and that may be missing.
        for path in credentials::named() {
            if self.roots.iter().any(|root| path.starts_with(root))
                && let Some(name) = path.file_name()
            {
                names.parts.insert(folded(&name.to_string_lossy()));
            }
        }
        ControlNames {
            // Names cannot represent patterns.
            all: !self.sandbox.deny_write.is_empty() || !self.locked.is_empty(),
            homes: self.home.homes.clone(),
            home_names: home_names(),
            ..names
        }
    }

    fn permits(&self, used: &ControlAccess<'_>) -> bool {
        let moves_locked = match used.action {
            // The permission for a line that names the path was given without the new control files.
            ControlAction::ReplaceDirectory { .. } => return false,
            ControlAction::MoveDirectory { from } => self.moves_locked(from, used.path),
            _ => false,
        };
        !self.is_locked(used.path)
            && !moves_locked
            && (self.permits_action(used)
                || (self.permits_place(used)
                    && !self.brings_rest(used)
                    && control_files::permits(used, &self.roots)))
    }

    fn files(&self) -> Option<ControlledFiles> {
        let locked = self.sandbox.deny_write.iter().chain(&self.locked);
        Some(ControlledFiles {
            roots: self.roots.clone(),
            locked: locked.map(PathPattern::glob).collect(),
            permitted: self.granted.clone(),
            granted: Vec::new(),
            home: self.home.clone(),
        })
    }

    fn include(&self, path: &Path) -> bool {
        self.is_locked(path)
            || (!self.is_permitted(path)
                && (self.home.is_control(path)
                    || self.is_store(path)
                    || control_files::is_planted(path, &self.roots)))
    }
}
