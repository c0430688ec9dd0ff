//! Sessions in a home directory: names that begin with a dot are start files and settings of programs there.
//!
//! No list can name them all. So if a working directory is or contains a home, every such name in it is a control
//! file, unless [`HOME_DATA`](super::control_tables::HOME_DATA) names it.

use std::{
    collections::{BTreeSet, HashSet},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use haft_contract::HomeControl;

use super::{
    control_tables::{self, HOME_DATA, HOME_NAMES, HOME_PROGRAMS},
    credential_stores, credentials,
    protected_files::folded,
};

/// Returns the homes that a working directory of the session is or contains.
pub(super) fn home_control(roots: &[PathBuf], home: Option<&Path>) -> HomeControl {
    let holds = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let known = credentials::homes().iter().map(PathBuf::as_path);
    let mut homes: Vec<PathBuf> = home
        .into_iter()
        .chain(known)
        .map(Path::to_path_buf)
        .collect();
    homes.retain(|home| holds(home) && home.parent().is_some());
    let all = Path::new(credentials::HOMES);
    if holds(all) {
        let entries = fs::read_dir(all).into_iter().flatten().flatten();
        homes.extend(entries.map(|entry| entry.path()));
    }
    homes.sort_unstable();
    homes.dedup();
    // The rules for a home do not apply to working directories inside it.
    let inner = roots.iter().filter(|root| {
        let mut homes = homes.iter();
        homes.any(|home| root.starts_with(home) && *root != home)
    });
    HomeControl {
        worked_on: inner.cloned().collect(),
        homes,
    }
}

/// The first names below a home that may be a control file or a store and do not begin with a dot.
pub(super) fn home_names() -> BTreeSet<String> {
    let first = |path: &'static str| path.split('/').next().unwrap_or_default();
    let paths = control_tables::names(HOME_NAMES).chain(credential_stores::paths());
    let names = paths.map(first).filter(|name| !name.starts_with('.'));
    names.map(str::to_owned).collect()
}

/// Paths below a home, for comparing names.
struct HomePaths {
    data: HashSet<&'static str>,
    programs: HashSet<&'static str>,
    /// The directories that lead to data.
    above_data: HashSet<&'static str>,
    names: HashSet<&'static str>,
}

static PATHS: LazyLock<HomePaths> = LazyLock::new(|| {
    let all = |table| control_tables::names(table).collect::<HashSet<_>>();
    let data = all(HOME_DATA);
    let above = data
        .iter()
        .flat_map(|path| Path::new(*path).ancestors().skip(1));
    HomePaths {
        above_data: above.filter_map(Path::to_str).collect(),
        programs: all(HOME_PROGRAMS),
        names: all(HOME_NAMES),
        data,
    }
});

/// Checks of paths below the homes that a session works in.
pub(super) trait HomeRules {
    /// Returns whether a path decides which programs run, by its place in a home.
    fn is_control(&self, path: &Path) -> bool;

    /// Returns whether a path is a directory that only leads to data. A command may create it.
    fn leads_to_data(&self, path: &Path) -> bool;

    /// Returns whether a path is directly in a home.
    fn is_at_home(&self, path: &Path) -> bool;

    /// Returns whether data or a working directory may be below a path.
    fn leads_on(&self, path: &Path) -> bool;
}

impl HomeRules for HomeControl {
    fn is_control(&self, path: &Path) -> bool {
        let Some(rest) = rest_at_home(self, path) else {
            return false;
        };
        let mut above = rest.ancestors().filter_map(Path::to_str);
        let decides = above.find(|path| PATHS.data.contains(path) || PATHS.programs.contains(path));
        decides.is_none_or(|path| PATHS.programs.contains(path))
    }

    fn leads_to_data(&self, path: &Path) -> bool {
        let rest = rest_at_home(self, path);
        let text = rest.as_deref().and_then(Path::to_str);
        text.is_some_and(|text| PATHS.above_data.contains(text))
    }

    fn is_at_home(&self, path: &Path) -> bool {
        self.homes.iter().any(|home| path.parent() == Some(home))
    }

    fn leads_on(&self, path: &Path) -> bool {
        let mut worked_on = self.worked_on.iter();
        self.leads_to_data(path) || worked_on.any(|root| root.starts_with(path))
    }
}

/// The rest of a path after the home, in small letters, if its first name may belong to a control file.
fn rest_at_home(control: &HomeControl, path: &Path) -> Option<PathBuf> {
    if control.homes.is_empty() || control.worked_on.iter().any(|root| path.starts_with(root)) {
        return None;
    }
    let mut homes = control.homes.iter();
    let rest = homes.find_map(|home| path.strip_prefix(home).ok())?;
    let first = rest.components().next()?.as_os_str();
    let decides = first.as_encoded_bytes().first() == Some(&b'.') || is_home_name(first);
    decides.then(|| PathBuf::from(folded(&rest.to_string_lossy())))
}

fn is_home_name(name: &OsStr) -> bool {
    PATHS
        .names
        .contains(folded(&name.to_string_lossy()).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(roots: &[&str]) -> HomeControl {
        let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
        home_control(&roots, Some(Path::new("/h/me")))
    }

    #[test]
    fn dot_names_in_a_home_that_is_worked_in_are_control_files() {
        let cases = [
            ("/h/me/.config/fish/conf.d/x.fish", true),
            ("/h/me/.cshrc", true),
            ("/h/me/.no-list-names-it", true),
            ("/h/me/.local/bin/ls", true),
            ("/h/me/.local", true),
            ("/h/me/.LOCAL/bin", true),
            ("/h/me/bin/ls", true),
            ("/h/me/binary", false),
            ("/h/me/.cache/pip/x", false),
            ("/h/me/.cache", false),
            ("/h/me/.cache/pre-commit/x", true),
            ("/h/me/.local/state/x", false),
            ("/h/me/.local/share/applications/x.desktop", true),
            ("/h/me/.cargo/registry/x", false),
            ("/h/me/.cargo/bin/cargo", true),
            ("/h/me/.git/index", false),
            ("/h/me", false),
            ("/h/me/work/.env", false),
            ("/h/me/work/.cache/x", false),
            ("/h/other/.cshrc", false),
        ];
        for roots in [&["/h/me"][..], &["/h"], &["/x", "/h/me"]] {
            let control = control(roots);
            for (path, expected) in cases {
                assert_eq!(
                    control.is_control(Path::new(path)),
                    expected,
                    "{roots:?}: {path}"
                );
            }
        }
        assert!(control(&["/h/me"]).leads_to_data(Path::new("/h/me/.local/share")));
        assert!(!control(&["/h/me"]).leads_to_data(Path::new("/h/me/.local/bin")));
    }

    #[test]
    fn elsewhere_and_in_what_is_worked_on_for_itself_they_are_not() {
        for roots in [&["/h/me/work"][..], &["/h/me/.dotfiles"], &[]] {
            assert!(
                !control(roots).is_control(Path::new("/h/me/.dotfiles/x")),
                "{roots:?}"
            );
        }
        let both = control(&["/h/me", "/h/me/.dotfiles"]);
        assert!(!both.is_control(Path::new("/h/me/.dotfiles/x")));
        assert!(both.is_control(Path::new("/h/me/.cshrc")));
    }

    #[test]
    fn the_tables_are_written_as_they_are_compared() {
        for table in [HOME_DATA, HOME_PROGRAMS, HOME_NAMES] {
            for (reason, paths) in table {
                assert!(!reason.is_empty());
                for path in *paths {
                    assert_eq!(folded(path), *path);
                }
            }
        }
        // What is not to be written all the same is below something that may.
        for path in control_tables::names(HOME_PROGRAMS) {
            let mut above = Path::new(path).ancestors().skip(1).filter_map(Path::to_str);
            assert!(above.any(|above| PATHS.data.contains(above)), "{path}");
        }
    }
}
