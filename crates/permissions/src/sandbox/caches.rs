//! Caches of package managers and compilers in the home directory, which an allowed command may
//! fill.
//!
//! The tables contain only what a tool can create again: no settings, no credentials, and no
//! directory whose programs are found by name (`~/.cargo/bin`).

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use super::{
    super::{CallFacts, Policy, StorePlaces, credentials, shell_facts::ShellFacts},
    paths::{session_writable_paths, unlinked},
};
use haft_settings::real_path;

/// The caches of one tool.
struct ToolCache {
    /// Programs that fill the caches. If one is installed or the line calls it, missing directories
    /// are created. A script or a Makefile may run it, too.
    programs: &'static [&'static str],
    /// The variable with the tool's home directory, and its default below the user's home.
    home: (&'static str, &'static str),
    /// The caches in the tool's home directory.
    folders: &'static [&'static str],
}

const CACHES: &[ToolCache] = &[
    ToolCache {
        programs: &["npm", "npx", "node", "corepack"],
        home: ("npm_config_cache", ".npm"),
        folders: &["_cacache", "_locks", "_logs", "_npx"],
    },
    ToolCache {
        programs: &["pnpm", "pnpx"],
        home: ("PNPM_HOME", ".local/share/pnpm"),
        folders: &["store"],
    },
    ToolCache {
        programs: &["pnpm", "pnpx"],
        home: ("", ".pnpm-store"),
        folders: &[""],
    },
    ToolCache {
        programs: &["yarn", "yarnpkg"],
        home: ("YARN_GLOBAL_FOLDER", ".yarn/berry"),
        folders: &["cache", "index", "metadata"],
    },
    ToolCache {
        programs: &["cargo"],
        home: ("CARGO_HOME", ".cargo"),
        folders: &["registry", "git"],
    },
    ToolCache {
        programs: &["go"],
        home: ("GOPATH", "go"),
        folders: &["pkg/mod", "pkg/sumdb"],
    },
    ToolCache {
        programs: &["gradle", "gradlew"],
        home: ("GRADLE_USER_HOME", ".gradle"),
        folders: &[
            "caches",
            "daemon",
            "native",
            "notifications",
            "wrapper/dists",
            ".tmp",
        ],
    },
    ToolCache {
        programs: &["mvn", "mvnw", "gradle", "gradlew"],
        home: ("", ".m2"),
        folders: &["repository", "wrapper/dists"],
    },
];

/// Caches with their own variable: the programs, the variable, and the default in the cache
/// directory.
const NAMED: &[(&[&str], &str, &str)] = &[
    (
        &["pip", "pip3", "python", "python3"],
        "PIP_CACHE_DIR",
        "pip",
    ),
    (&["uv", "uvx"], "UV_CACHE_DIR", "uv"),
    (&["poetry"], "POETRY_CACHE_DIR", "pypoetry"),
    (&["yarn", "yarnpkg"], "YARN_CACHE_FOLDER", "yarn"),
    (&["pnpm", "pnpx"], "", "pnpm"),
    (&["go"], "GOCACHE", "go-build"),
    (&["go"], "GOMODCACHE", ""),
    (&["ccache"], "CCACHE_DIR", "ccache"),
    (&["npm", "npx", "node", "corepack"], "", "node"),
    (&["node-gyp", "npm", "npx"], "", "node-gyp"),
    (&["npm", "npx", "playwright"], "", "ms-playwright"),
    (&["deno"], "DENO_DIR", "deno"),
    (&["sccache"], "SCCACHE_DIR", "sccache"),
    (&["golangci-lint"], "GOLANGCI_LINT_CACHE", "golangci-lint"),
    (&["pipenv"], "PIPENV_CACHE_DIR", "pipenv"),
    (&["pdm"], "PDM_CACHE_DIR", "pdm"),
    (&["bazel", "bazelisk"], "", "bazel"),
];

/// Directories in the cache directory that are not tool caches: browsing data, answers that depend
/// on credentials, programs that run outside the sandbox, and haft's own data.
const PRIVATE: &[&str] = &[
    "bravesoftware",
    "chromium",
    "evolution",
    "gh",
    "google-chrome",
    "haft",
    "librewolf",
    "microsoft-edge",
    "mozilla",
    "opera",
    "pre-commit",
    "spotify",
    "thumbnails",
    "thunderbird",
    "tracker3",
    "vivaldi",
];

/// Returns the real paths of the caches that the command of a call may fill. They may be missing.
pub(super) fn command_caches(policy: &Policy, facts: &CallFacts) -> Vec<PathBuf> {
    let (Some(home), Some(shell)) = (policy.home.as_deref(), facts.shell.as_ref()) else {
        return Vec::new();
    };
    let writable = session_writable_paths(policy);
    let variable = |name: &str| env::var_os(name).map(PathBuf::from);
    home_caches(home, shell, &writable, &variable, &|program| {
        is_installed(program, &policy.roots)
    })
}

/// Returns whether a command can find this program on `PATH` or in a working directory.
fn is_installed(program: &str, roots: &[PathBuf]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).chain(roots.iter().cloned());
    places.any(|place| place.is_absolute() && place.join(program).is_file())
}

fn home_caches(
    home: &Path,
    shell: &ShellFacts,
    writable: &[PathBuf],
    variable: &dyn Fn(&str) -> Option<PathBuf>,
    installed: &dyn Fn(&str) -> bool,
) -> Vec<PathBuf> {
    let set = |name: &str| match name {
        "" => None,
        name => variable(name).filter(|path| path.is_absolute()),
    };
    let calls = |programs: &[&str]| {
        let mut names = shell.parts().filter_map(|(_, part, _)| part.base_name());
        names.any(|name| programs.contains(&name))
    };
    // An existing directory needs no check.
    let wanted = |path: &Path, programs: &[&str]| {
        path.is_dir() || calls(programs) || programs.iter().any(|program| installed(program))
    };
    let folder = set("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache"));
    let mut caches: Vec<PathBuf> = Vec::new();
    for tool in CACHES {
        let top = set(tool.home.0).unwrap_or_else(|| home.join(tool.home.1));
        let folders = tool.folders.iter().map(|below| top.join(below));
        caches.extend(folders.filter(|path| wanted(path, tool.programs)));
    }
    for (programs, name, below) in NAMED {
        let path = set(name).or_else(|| (!below.is_empty()).then(|| folder.join(below)));
        caches.extend(path.filter(|path| wanted(path, programs)));
    }
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir
            && !PRIVATE.iter().any(|private| name.starts_with(private))
            && !name.contains("keyring")
        {
            caches.push(entry.path());
        }
    }
    let places = StorePlaces {
        home: Some(home),
        ..StorePlaces::default()
    };
    let mut found: Vec<PathBuf> = caches
        .into_iter()
        .filter_map(|path| {
            let real = unlinked(&path, writable)?;
            let beyond = real_path::resolve_links(home).starts_with(&real);
            (!beyond && !credentials::is_store(&real, places)).then_some(real)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathContext;

    fn caches(home: &Path, line: &str) -> Vec<String> {
        caches_with(home, line, &[])
    }

    fn caches_with(home: &Path, line: &str, installed: &[&str]) -> Vec<String> {
        let context = PathContext {
            cwd: home.join("work"),
            home: Some(home.to_path_buf()),
            wrappers: Vec::new(),
        };
        let shell = ShellFacts::in_environment(line, &context, &|_| None);
        let found = home_caches(home, &shell, &[home.join("work")], &|_| None, &|program| {
            installed.contains(&program)
        });
        let below = |path: &PathBuf| path.strip_prefix(home).unwrap().display().to_string();
        found.iter().map(below).collect()
    }

    #[test]
    fn caches_are_those_that_are_there_and_those_the_line_fills() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        let none: [&str; 0] = [];
        assert_eq!(caches(&root, "make"), none);
        assert_eq!(
            caches(&root, "cargo build"),
            [".cargo/git", ".cargo/registry"]
        );
        let made = [
            ".cache/mozilla",
            ".cache/pip",
            ".cache/haft",
            ".cache/pre-commit",
            ".cache/any-tool",
            ".cargo/registry",
            ".cargo/bin",
            ".npm",
        ];
        for path in made {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        assert_eq!(
            caches(&root, "make"),
            [".cache/any-tool", ".cache/pip", ".cargo/registry"]
        );
        let npm = caches(&root, "npm ci");
        assert!(npm.iter().any(|path| path == ".npm/_cacache"), "{npm:?}");
        assert!(!npm.iter().any(|path| path == ".npm"), "{npm:?}");
    }

    #[test]
    fn a_tool_that_a_script_runs_finds_its_caches_if_it_is_installed() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for line in ["make deps", "./build.sh", "bash -c \"$X\""] {
            let found = caches_with(&root, line, &["go", "uv"]);
            let expected = [".cache/go-build", ".cache/uv", "go/pkg/mod", "go/pkg/sumdb"];
            assert_eq!(found, expected, "{line}");
        }
        // A wrapper of the project's own.
        fs::write(root.join("gradlew"), "").unwrap();
        assert!(is_installed("gradlew", std::slice::from_ref(&root)));
        assert!(!is_installed("mvnw", &[root]));
    }

    #[test]
    fn a_link_that_a_command_made_is_followed_to_no_cache() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for path in ["work", ".ssh", ".cargo"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        let link = |to: &str, from: &str| {
            std::os::unix::fs::symlink(root.join(to), root.join(from)).unwrap();
        };
        link("work/planted", ".cargo/registry");
        link(".ssh", "work/planted");
        link(".ssh", ".cargo/git");
        let none: [&str; 0] = [];
        assert_eq!(caches(&root, "cargo build"), none);
    }
}
