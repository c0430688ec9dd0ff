//! Hides the users' homes from a command whose reads are not known before it runs. The command sees
//! the working directories, the system, the tools in a home, and the paths that its call may read.
//!
//! A read-only line always runs this way: its permitted reads are known, and these paths are
//! visible.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use haft_contract::{ConfinementProfile, PermissionMode};

use super::{
    super::{
        CallFacts, PRIVATE_DIRECTORIES, Policy, StorePlaces, TouchedPath, allow, credentials,
        decide::path_to_ask_about,
        rules::{List, RuleClass, RuleContent},
        shell_facts::{PathLocation, ShellFacts},
        system_files,
    },
    known_reads,
    paths::{outermost, session_writable_paths, unlinked},
};
use haft_settings::{files, real_path};

/// Directories and files of tools below a home, and those that git needs. Credentials in them stay
/// hidden.
const TOOLS: &[&str] = &[
    ".asdf",
    ".bun",
    ".cabal",
    ".cache/bazel",
    ".cache/ccache",
    ".cache/coursier",
    ".cache/deno",
    ".cache/go-build",
    ".cache/ms-playwright",
    ".cache/node",
    ".cache/node-gyp",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/pre-commit",
    ".cache/pypoetry",
    ".cache/sccache",
    ".cache/uv",
    ".cache/yarn",
    ".cargo",
    ".conda",
    ".config/git",
    ".config/mise",
    ".config/nvm",
    ".config/ripgrep",
    ".config/bat",
    ".config/fd",
    ".deno",
    ".dotnet",
    ".elan",
    ".fnm",
    ".gem",
    ".ghcup",
    ".gitattributes",
    ".gitconfig",
    ".gitignore",
    ".gitignore_global",
    ".goenv",
    ".gradle",
    ".inputrc",
    ".ivy2",
    ".jenv",
    ".jq",
    ".julia",
    ".juliaup",
    ".linuxbrew",
    ".local/bin",
    ".local/go",
    ".local/lib",
    ".local/libexec",
    ".local/opt",
    ".local/pipx",
    ".local/share/bash-completion",
    ".local/share/fnm",
    ".local/share/gem",
    ".local/share/mise",
    ".local/share/nvm",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/rtx",
    ".local/share/uv",
    ".local/share/virtualenvs",
    ".local/state/nix",
    ".m2",
    ".nix-defexpr",
    ".nix-profile",
    ".nodenv",
    ".npm",
    ".npm-global",
    ".nuget",
    ".nvm",
    ".opam",
    ".phpenv",
    ".pnpm-store",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sbt",
    ".sdkman",
    ".stack",
    ".swiftly",
    ".swiftpm",
    ".terminfo",
    ".tool-versions",
    ".virtualenvs",
    ".volta",
    ".yarn",
    ".zig",
    "anaconda3",
    "bin",
    "go",
    "mambaforge",
    "miniconda3",
    "miniforge3",
];

/// Variables with the directories of tools.
const TOOL_HOMES: &[&str] = &[
    "ANDROID_HOME",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CONDA_PREFIX",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "FNM_DIR",
    "GEM_HOME",
    "GEM_PATH",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "MISE_DATA_DIR",
    "NODE_PATH",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYTHONUSERBASE",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "npm_config_prefix",
];

/// System directories, which are never closed, even if one is a home.
const SYSTEM: [&str; 18] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/mnt", "/nix", "/opt", "/proc",
    "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var",
];

/// Closed directories, and the open paths in them.
#[derive(Debug, Default)]
pub(super) struct HomeVisibility {
    /// Real paths; none is below another.
    pub(super) closed: Vec<PathBuf>,
    /// Paths by the names under which commands open them.
    pub(super) open: Vec<PathBuf>,
    /// The text in the line that leaves its reads unknown.
    pub(super) untold: Option<String>,
}

/// Returns which parts of the homes the command of a call can see.
pub(super) fn visible_homes(
    policy: &Policy,
    facts: &CallFacts,
    confined: ConfinementProfile,
) -> HomeVisibility {
    let Some(shell) = facts.shell.as_ref() else {
        return HomeVisibility::default();
    };
    // This mode asks about no path, so no home is closed.
    let asks = policy.mode != PermissionMode::BypassPermissions;
    let untold = known_reads::unknown_read(shell).filter(|_| asks);
    let closes_homes = asks && (confined != ConfinementProfile::Workspace || untold.is_some());
    // The user was not asked about a path that the line does not show.
    let computes = untold.is_some() || known_reads::computes_path(shell);
    let wide =
        confined == ConfinementProfile::ReadOnly && computes && allow::is_read_only(policy, shell);
    let session = match closes_homes {
        true => session(policy, wide),
        false => open_homes(policy),
    };
    let mut open = session.open.clone();
    let called = shell
        .analysis
        .parts
        .first()
        .and_then(|part| part.cwd.as_ref());
    for path in called.into_iter().flatten() {
        // Commands enter the working directory by the name that the line uses.
        if policy.is_inside(&real_path::resolve_links(path)) && is_inside(path, &session.closed) {
            open.push(path.clone());
        }
    }
    let permitted = permitted(policy, facts, &session.closed).into_iter();
    open.extend(permitted.filter(|path| is_inside(path, &session.closed)));
    if untold.is_none() && known_reads::looks_above(shell) {
        let tops = policy.roots.iter().filter_map(|root| top_above(root));
        open.extend(tops.filter(|top| is_inside(top, &session.closed)));
    }
    // Such a directory stays the session's own, unless the session works in it.
    let is_private = |path: &PathBuf| {
        let is_open = || policy.roots.contains(path) || policy.home.as_ref() == Some(path);
        PRIVATE_DIRECTORIES.iter().any(|one| Path::new(one) == path) && !is_open()
    };
    open.retain(|path| !is_private(path));
    let closed = session.homes.iter();
    let closed = closed.filter(|closed| !open.iter().any(|open| closed.starts_with(open)));
    HomeVisibility {
        closed: closed.cloned().collect(),
        open: outermost(open),
        untold,
    }
}

/// The visibility that is the same for every call of a session.
struct SessionHomes {
    /// The closed homes.
    homes: Vec<PathBuf>,
    /// These, and the private directories.
    closed: Vec<PathBuf>,
    open: Vec<PathBuf>,
}

fn session(policy: &Policy, wide: bool) -> SessionHomes {
    let looked = HomeScan::recent(policy.home.as_deref());
    let (closed, tools) = match wide {
        true => (&looked.closed_outside, &looked.tools_outside),
        false => (&looked.closed, &looked.tools),
    };
    session_homes(policy, closed.clone(), tools)
}

/// Returns the visibility for a command that sees the homes: only the private directories are closed.
fn open_homes(policy: &Policy) -> SessionHomes {
    let looked = HomeScan::recent(policy.home.as_deref());
    let mut session = session_homes(policy, Vec::new(), &looked.tools);
    let homes = credentials::homes().iter().chain(&policy.home);
    let homes = homes.filter(|home| is_inside(home, &session.closed) && home.is_dir());
    session.open.extend(homes.cloned());
    session
}

/// Returns the paths that are visible in these closed directories and in the private ones.
fn session_homes(policy: &Policy, homes: Vec<PathBuf>, tools: &[PathBuf]) -> SessionHomes {
    let private = PRIVATE_DIRECTORIES.iter().map(PathBuf::from);
    let closed = outermost(homes.iter().cloned().chain(private).collect());
    let inside = |path: &Path| is_inside(path, &closed);
    let mut open: Vec<PathBuf> = policy
        .roots
        .iter()
        .chain(&policy.readable)
        .filter(|path| inside(path))
        .cloned()
        .collect();
    open.extend(tools.iter().filter(|path| inside(path)).cloned());
    // git stores commits of a linked worktree or a part of a checkout there.
    let checkouts = policy.roots.iter().filter_map(|root| {
        let main = files::main_checkout(root).or_else(|| top_above(root))?;
        Some(real_path::resolve_links(&main.join(".git")))
    });
    open.extend(checkouts.filter(|path| inside(path)));
    let writable = session_writable_paths(policy);
    let rules = policy.rules.in_list(List::Allow).filter(|rule| {
        matches!(rule.class, RuleClass::Reads | RuleClass::Edits) && rule.source.scope.is_users()
    });
    let rules = rules.filter_map(|rule| match &rule.content {
        RuleContent::Path(pattern) if pattern.is_absolute() => pattern.fixed_paths(),
        _ => None,
    });
    let named = rules
        .flatten()
        .chain(policy.sandbox.allow_read.iter().cloned());
    for path in named {
        // A link that a command may have made must not open a path.
        if let Some(real) = unlinked(&path, &writable) {
            open.extend([path, real].into_iter().filter(|path| inside(path)));
        }
    }
    SessionHomes {
        homes,
        closed,
        open,
    }
}

fn is_inside(path: &Path, closed: &[PathBuf]) -> bool {
    closed.iter().any(|closed| path.starts_with(closed))
}

/// The lifetime of a cached scan. It covers the calls of one turn.
const BELIEVED: Duration = Duration::from_secs(1);

/// The maximum number of homes that are closed separately; more are closed together.
const MAX_HOMES: usize = 32;

/// The homes and tools that exist.
struct HomeScan {
    /// The homes; real paths.
    closed: Vec<PathBuf>,
    /// The tools in this user's homes, by the names under which they are found.
    tools: Vec<PathBuf>,
    /// The homes and everything else outside the system; real paths.
    closed_outside: Vec<PathBuf>,
    tools_outside: Vec<PathBuf>,
}

impl HomeScan {
    /// Returns the result of a scan that is at most a second old.
    fn recent(home: Option<&Path>) -> Arc<Self> {
        type CachedHomeScan = (Option<PathBuf>, Instant, Arc<HomeScan>);
        static CACHE: Mutex<Option<CachedHomeScan>> = Mutex::new(None);
        let mut kept = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, at, found)) = &*kept
            && of.as_deref() == home
            && at.elapsed() < BELIEVED
        {
            return Arc::clone(found);
        }
        let closed = closed(home);
        let private = PRIVATE_DIRECTORIES.iter().map(PathBuf::from);
        let tools = scan_tools(
            home,
            &private.chain(closed.iter().cloned()).collect::<Vec<_>>(),
        );
        let outside = system_files::closed_directories().into_iter();
        let closed_outside = outermost(outside.chain(closed.iter().cloned()).collect());
        let found = Arc::new(Self {
            tools_outside: scan_tools(home, &closed_outside),
            closed_outside,
            closed,
            tools,
        });
        let of = home.map(Path::to_path_buf);
        *kept = Some((of, Instant::now(), Arc::clone(&found)));
        found
    }
}

/// Returns the existing homes, as real paths.
fn closed(home: Option<&Path>) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = credentials::homes().to_vec();
    homes.extend(home.map(Path::to_path_buf));
    let entries = fs::read_dir(credentials::HOMES).into_iter().flatten();
    let others: Vec<_> = entries.flatten().collect();
    if others.len() > MAX_HOMES {
        homes.push(PathBuf::from(credentials::HOMES));
    } else {
        // Separately, so that a home which is a link to another place still works.
        let folders = others.iter();
        let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        homes.extend(folders.map(|entry| entry.path()));
    }
    let real = homes.iter().map(|home| real_path::resolve_links(home));
    outermost(
        real.filter(|path| path.is_dir() && !is_system(path))
            .collect(),
    )
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| Path::new(system) == path)
}

fn scan_tools(home: Option<&Path>, closed: &[PathBuf]) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = credentials::homes().to_vec();
    homes.extend(home.map(Path::to_path_buf));
    let mut found = Vec::new();
    for home in &homes {
        found.extend(TOOLS.iter().map(|tool| home.join(tool)));
    }
    let wide = |path: &Path| {
        let path = real_path::resolve_links(path);
        is_system(&path)
            || homes
                .iter()
                .any(|home| real_path::resolve_links(home).starts_with(&path))
            || path.parent() == Some(Path::new(credentials::HOMES))
    };
    for path in &*NAMED_TOOLS {
        found.push(path.clone());
        // `…/bin` is a part of a whole installation.
        let is_part = ["bin", "sbin", "shims"]
            .iter()
            .any(|part| path.ends_with(part));
        let whole = path.parent().filter(|_| is_part);
        let whole = whole.filter(|whole| !whole.ends_with(".local"));
        found.extend(whole.map(Path::to_path_buf));
    }
    found.retain(|path| path.exists() && !wide(path));
    let both = found.into_iter().flat_map(|path| at_both(path, closed));
    // A link to keys opens nothing.
    both.filter(|path| {
        let places = StorePlaces {
            home,
            ..StorePlaces::default()
        };
        !credentials::is_store(&real_path::resolve_links(path), places)
    })
    .collect()
}

/// The paths in `PATH` and in the variables of tools.
static NAMED_TOOLS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let names = ["PATH"].iter().chain(TOOL_HOMES);
    let values = names.filter_map(env::var_os);
    let paths = values.flat_map(|value| env::split_paths(&value).collect::<Vec<_>>());
    paths.filter(|path| path.is_absolute()).collect()
});

/// Returns the path by its name and by its real path, if they are in a closed directory.
fn at_both(path: PathBuf, closed: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let real = real_path::resolve_links(&path);
    // By its name below the real home, if the home itself is a link.
    let named = path.parent().map(real_path::resolve_links);
    let named = named
        .zip(path.file_name())
        .map(|(parent, name)| parent.join(name));
    let both = [named, Some(real)].into_iter().flatten();
    let closed = closed.to_vec();
    both.filter(move |path| is_inside(path, &closed))
}

/// Returns the paths that this call may read according to its line, which was allowed. A link in a
/// working directory opens its target only if the user was asked about the target.
fn permitted(policy: &Policy, facts: &CallFacts, closed: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut asked = None;
    let mut add = |touched: &TouchedPath| {
        if policy.is_private(&touched.real) {
            return;
        }
        let linked = policy.is_inside(&touched.given) && !policy.is_inside(&touched.real);
        if !linked {
            found.push(touched.given.clone());
        }
        if !linked
            || *asked.get_or_insert_with(|| path_to_ask_about(policy, facts))
                == Some(touched.real.clone())
        {
            found.push(touched.real.clone());
        }
    };
    facts.reads.iter().chain(&facts.writes).for_each(&mut add);
    let shell = facts.shell.iter().flat_map(ShellFacts::parts);
    for path in shell.flat_map(|(_, _, paths)| paths) {
        match &path.place {
            PathLocation::Known(places) => places.iter().for_each(&mut add),
            // An unresolved pattern: its directory, unless that would open a whole home.
            PathLocation::Below(Some(places)) if !path.resolved => {
                let is_home = |path: &Path| {
                    closed.iter().any(|home| home.starts_with(path))
                        || path.parent() == Some(Path::new(credentials::HOMES))
                };
                let places = places.iter().filter(|touched| !is_home(&touched.real));
                places.for_each(&mut add);
            }
            PathLocation::Below(_) => {}
        }
    }
    found
}

/// Returns the checkout that contains a working directory, if the working directory is only a part
/// of it.
fn top_above(root: &Path) -> Option<PathBuf> {
    let top = root.ancestors().find(|path| path.join(".git").exists())?;
    let home = credentials::homes().iter().any(|home| home == top);
    (top != root && !home).then(|| top.to_path_buf())
}
