//! Makes paths in the input absolute before permissions are evaluated.

use std::{
    env,
    path::{Component, Path, PathBuf},
};

use serde_json::Value;

use crate::{
    permissions::{MAX_PATH, PathContext},
    settings::real_path,
};

/// Makes the named parameters absolute paths. `~` is replaced with the session's home directory or,
/// if it has none, that of the process. Relative paths start at the working directory. Returns the
/// values that cannot be paths, if any.
pub(super) fn make_absolute(
    parameters: &[&str],
    input: &mut Value,
    place: &PathContext,
) -> Option<Vec<String>> {
    let mut problems = Vec::new();
    for name in parameters {
        match input.get_mut(*name) {
            Some(Value::String(path)) => expand(name, path, place, &mut problems),
            Some(Value::Array(paths)) => {
                for path in paths {
                    if let Value::String(path) = path {
                        expand(name, path, place, &mut problems);
                    }
                }
            }
            _ => {}
        }
    }
    (!problems.is_empty()).then_some(problems)
}

fn expand(name: &str, path: &mut String, place: &PathContext, problems: &mut Vec<String>) {
    if path.len() > MAX_PATH {
        let length = path.len();
        // Truncated, so that the rest of the pipeline does not process the whole path.
        path.truncate(path.floor_char_boundary(32));
        problems.push(format!(
            "`{name}` has {length} bytes; a path has at most {MAX_PATH}"
        ));
    } else if path.contains('\0') {
        problems.push(format!("`{name}` holds a NUL byte, which no path can"));
    } else if path.is_empty() {
        problems.push(format!("`{name}` is empty: name a path"));
    } else if !real_path::is_plain(Path::new(path.as_str())) {
        let home = place.home.clone().or_else(home);
        let absolute = absolute(Path::new(path.as_str()), &place.cwd, home.as_deref());
        match absolute.into_os_string().into_string() {
            Ok(text) => *path = text,
            Err(_) => problems.push(format!(
                "`{name}`: the working directory's name is not UTF-8; give an absolute path"
            )),
        }
    }
}

/// Resolves `~`, `.` and a relative start. `..` is kept: after a symlink, it leads to a different
/// directory than its text suggests, so only the resolver that follows links may remove it.
fn absolute(path: &Path, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let path = match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => cwd.join(path),
    };
    path.components()
        .filter(|part| *part != Component::CurDir)
        .collect()
}

fn home() -> Option<PathBuf> {
    env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_over_the_limit_is_invalid_before_any_other_work() {
        let place = PathContext {
            cwd: "/w".into(),
            home: None,
            wrappers: Vec::new(),
        };
        for (length, is_invalid) in [(4_096, false), (4_097, true), (50_000_000, true)] {
            let mut input = json!({"path": "a".repeat(length), "paths": ["b"]});
            let problems = make_absolute(&["path", "paths"], &mut input, &place);
            assert_eq!(problems.is_some(), is_invalid, "{length}");
            if let Some(problems) = problems {
                let expected = format!("`path` has {length} bytes; a path has at most 4096");
                assert_eq!(problems, [expected]);
            }
        }
    }

    #[test]
    fn relative_and_home_paths_become_absolute() {
        let cases = [
            ("a.txt", "/w/a.txt"),
            ("./a/./b", "/w/a/b"),
            ("../x", "/w/../x"),
            ("/etc/hosts", "/etc/hosts"),
            ("/etc/./hosts/", "/etc/hosts"),
            ("~/n", "/h/n"),
            ("~", "/h"),
            ("~other/n", "/w/~other/n"),
            ("", "/w"),
        ];
        for (given, expected) in cases {
            let found = absolute(Path::new(given), Path::new("/w"), Some(Path::new("/h")));
            assert_eq!(found, Path::new(expected), "{given}");
        }
    }

    #[test]
    fn a_nul_byte_is_refused_and_lists_are_looked_into() {
        let mut input = json!({"path": "a\0b", "paths": ["x", "y\0"]});
        let place = PathContext {
            cwd: "/w".into(),
            home: None,
            wrappers: Vec::new(),
        };
        let problems = make_absolute(&["path", "paths"], &mut input, &place).unwrap();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(input["paths"][0], "/w/x");
    }
}
