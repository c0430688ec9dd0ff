//! Which files a command may change, and which it may not even read.
//!
//! The kernel gets the existing paths ([`path_scan`](super::path_scan)); what a command makes is
//! judged when it makes it ([`control`]).

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
    path_scan::PathScan,
};
use haft_settings::{files, real_path};

/// At most this many paths are named one by one in the place of the directory that holds them.
const MOST_NEIGHBOURS: usize = 128;

/// A directory with more in it is not moved while patterns say what may not be changed.
const MOST_MOVED: usize = 50_000;

/// Which files a command may change, and which it may not even read. Real paths.
#[derive(Debug, Default)]
pub(super) struct ConfinementPaths {
    pub(super) writable: Vec<PathBuf>,
    /// Those of the writable ones that are caches of tools.
    pub(super) caches: Vec<PathBuf>,
    pub(super) protected: Vec<PathBuf>,
    /// Those of the protected ones whose new content is judged.
    pub(super) judged: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// Those of the hidden ones that a person may open.
    pub(super) stores: Vec<PathBuf>,
    pub(super) control: ControlFiles,
    /// A directory that was not scanned for hidden files.
    pub(super) unscanned: Option<PathBuf>,
}

/// Looks them up for a call that may run.
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
            // For what a person may let it change, when it turns out that it does.
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
    let mut writable = permanent(policy);
    let mut neighbours = Vec::new();
    for one in &granted {
        grant(&one.path, &granted, &mut writable, &mut neighbours);
    }
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
    // Not looked through: what other people's code says in a cache is not obeyed there.
    let caches = caches::of(policy, facts);
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
    // A rule that locks a file is not asked about what would be in it.
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

/// The patterns of deny rules of a class, and those of the settings.
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

/// What every command of the session may change.
pub(super) fn permanent(policy: &Policy) -> Vec<PathBuf> {
    let mut writable = policy.roots.clone();
    let edits = policy
        .rules
        .in_list(List::Allow)
        .filter(|rule| rule.class == RuleClass::Edits && rule.source.scope.is_users());
    let edits = edits.filter_map(|rule| match &rule.content {
        RuleContent::Path(pattern) if pattern.is_absolute() => pattern.wholes(),
        _ => None,
    });
    // A rule for a folder does not answer for control files in it.
    let edits = edits
        .flatten()
        .filter(|path| !control_files::is_control_folder(path));
    for path in policy.sandbox.allow_write.iter().cloned().chain(edits) {
        let real = unlinked(&path, &writable).filter(|real| real.exists());
        writable.extend(real);
    }
    // A linked worktree keeps what it commits in the checkout it belongs to.
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

/// Where a session that works in a part of a repository keeps what it commits.
fn repository_above(root: &Path) -> Option<PathBuf> {
    let found = root.ancestors().find(|path| path.join(".git").exists())?;
    let folder = found.join(".git");
    (found != root && folder.is_dir()).then(|| real_path::resolve_links(&folder))
}

/// Where a path leads that settings or rules open; `None` if by a link that a command may have made.
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

/// What may not be read, but for what may.
fn hidden(hidden: Vec<PathBuf>, policy: &Policy) -> Vec<PathBuf> {
    let allowed = &policy.sandbox.allow_read;
    if hidden.is_empty() || allowed.is_empty() {
        return outermost(hidden);
    }
    let writable = permanent(policy);
    let allowed = allowed.iter().filter_map(|path| unlinked(path, &writable));
    let allowed: Vec<PathBuf> = allowed.collect();
    let allowed = || allowed.iter().map(PathBuf::as_path);
    let rest = hidden
        .into_iter()
        .filter(|path| !allowed().any(|one| path.starts_with(one)))
        .flat_map(|path| but_for(path, allowed()));
    outermost(rest.collect())
}

/// The same with every store of keys, but for what this very call was allowed to use of them; and which
/// of all those are stores alone.
fn with_stores(
    mut hidden: Vec<PathBuf>,
    policy: &Policy,
    facts: &CallFacts,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let allowed = stores_allowed(policy, facts);
    let allowed = || allowed.iter().map(PathBuf::as_path);
    let mut stores = Vec::new();
    for store in credentials::existing_stores(policy.store_places()).iter() {
        // What is worked on is not hidden, but for haft's own secrets.
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

/// Was the change of this path permitted with it?
fn reaches(granted: &PermittedPath, path: &Path) -> bool {
    granted.path == path || (granted.whole && path.starts_with(&granted.path))
}

/// What this very call was permitted to write, as far as its line says where.
fn granted(policy: &Policy, facts: &CallFacts) -> Vec<PermittedPath> {
    let home = policy.home_control();
    let one = |touched: &TouchedPath, removed: bool| PermittedPath {
        path: touched.real.clone(),
        // It goes away, or it is itself one that is asked about.
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
        match &path.place {
            PathLocation::Known(places) => {
                let removed = how == WriteKind::Removal;
                granted.extend(places.iter().map(|touched| one(touched, removed)));
            }
            // A pattern: its directory, unless that is more than anyone means.
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

/// Makes a path writable that lies outside. To make, replace or remove a file takes its directory;
/// what else is in there stays as it is.
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

/// Everything in a directory but these paths and what is below them. `None`: it is too much to be
/// named.
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
            if found.len() > MOST_NEIGHBOURS {
                return None;
            }
        }
    }
    Some(found)
}

/// The path; or, where some of these lie in it, everything in it but them.
fn but_for<'a>(path: PathBuf, these: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let inside: Vec<&Path> = these.filter(|one| one.starts_with(&path)).collect();
    if inside.is_empty() {
        return vec![path];
    }
    // Rather too much than too little.
    around(&path, &inside).unwrap_or_else(|| vec![path])
}

/// The paths without those that are below another one.
pub(super) fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort_unstable();
    paths.dedup();
    let mut outermost: Vec<PathBuf> = Vec::new();
    for path in paths {
        // By components, what is below a path comes right behind it.
        let known = outermost.last().is_some_and(|last| path.starts_with(last));
        if !known {
            outermost.push(path);
        }
    }
    outermost
}

/// What a command may not make or change, whatever it may write.
struct ProtectedPaths {
    roots: Vec<PathBuf>,
    sandbox: Arc<SandboxSettings>,
    /// Rules that forbid changes.
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

/// What a command may not make or change, by these.
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

    /// Would a directory bring something to a name that may not be changed, or take it away from one?
    fn moves_locked(&self, from: &Path, to: &Path) -> bool {
        let patterns = self.sandbox.deny_write.iter().chain(&self.locked);
        let reach =
            |pattern: &&PathPattern| pattern.reaches_below(from) || pattern.reaches_below(to);
        let patterns: Vec<&PathPattern> = patterns.filter(reach).collect();
        let covered = |path: &Path| patterns.iter().any(|pattern| pattern.covers(path));
        // By what they name, if they all do: it is there or not, however much else is.
        let wholes: Option<Vec<Vec<PathBuf>>> =
            patterns.iter().map(|pattern| pattern.wholes()).collect();
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
                if seen > MOST_MOVED || covered(&from.join(&below)) || covered(&to.join(&below)) {
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

    /// Returns whether a command may do this, by the place of the path in a home and by the stores of secrets.
    fn permits_place(&self, used: &ControlAccess<'_>) -> bool {
        match used.action {
            ControlAction::Remove { made: true } => true,
            ControlAction::MakeDirectory if self.home.leads_to_data(used.path) => true,
            _ => !self.home.is_control(used.path) && !self.is_store(used.path),
        }
    }

    /// Returns whether a path is a store of secrets, or in one, also if it does not exist: a hidden path is not made
    /// either.
    fn is_store(&self, path: &Path) -> bool {
        let is_store = |path: &Path| {
            let homes = self.home.homes.iter().map(|home| Some(home.as_path()));
            let mut homes = homes.chain([None]);
            homes.any(|home| {
                let own_secrets = &self.sandbox.own_secrets;
                credentials::is_store(path, StorePlaces { home, own_secrets })
            })
        };
        // What is worked on is not hidden.
        let mut roots = self.roots.iter();
        is_store(path) && !roots.any(|root| path.starts_with(root) && is_store(root))
    }

    /// Returns whether a directory or a link of this name brings the rest of the path of a control file or a store.
    fn brings_rest(&self, used: &ControlAccess<'_>) -> bool {
        let brings = |holds: &dyn Fn(&Path) -> bool| {
            let mut homes = self.home.homes.iter();
            completes_sequence(used.path, holds)
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
        // A store that a variable names, and that may be missing.
        for path in credentials::named() {
            if self.roots.iter().any(|root| path.starts_with(root))
                && let Some(name) = path.file_name()
            {
                names.parts.insert(folded(&name.to_string_lossy()));
            }
        }
        ControlNames {
            // Patterns are not known by names.
            all: !self.sandbox.deny_write.is_empty() || !self.locked.is_empty(),
            homes: self.home.homes.clone(),
            home_names: home_names(),
            ..names
        }
    }

    fn permits(&self, used: &ControlAccess<'_>) -> bool {
        let moves_locked = match used.action {
            ControlAction::MoveDirectory { from } => self.moves_locked(from, used.path),
            _ => false,
        };
        !self.is_locked(used.path)
            && !moves_locked
            && (self.is_permitted(used.path)
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
