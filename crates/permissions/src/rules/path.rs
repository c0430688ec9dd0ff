//! Path patterns in rules, in gitignore syntax.

use std::path::{Path, PathBuf};

use haft_contract::{GlobStart, PathGlob};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{List, PatternBases};
use haft_settings::real_path;

/// A file name that a pattern matches only if it matches every name.
const ANY: &str = "\u{1}";

/// Characters with a special meaning in patterns.
const WILD: [char; 4] = ['*', '?', '[', '\\'];

/// A path pattern, with the directories that it is relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    anchor: PathAnchor,
    /// Relative to the directory as given, and to its real path.
    starts: Vec<AnchoredGlob>,
}

/// A pattern from one directory.
#[derive(Debug, Clone)]
struct AnchoredGlob {
    base: PathBuf,
    matcher: Gitignore,
    /// The only path that the pattern matches, if it contains no wildcard.
    names: Option<PathBuf>,
    /// The only path that the pattern covers with everything below, if it contains no wildcard
    /// except a final `/**`.
    whole: Option<PathBuf>,
    /// The directory that contains everything the pattern covers.
    stem: PathBuf,
    /// The pattern as written.
    pattern: String,
}

impl PartialEq for AnchoredGlob {
    fn eq(&self, other: &Self) -> bool {
        (&self.base, &self.pattern) == (&other.base, &other.pattern)
    }
}

impl Eq for AnchoredGlob {}

/// The form in which a pattern is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAnchor {
    /// `//p`
    Root,
    /// `~/p`
    Home,
    /// `/p`
    Source,
    /// `./p`, `p`
    Cwd,
}

impl PathPattern {
    /// Parses a pattern. The error says what is wrong with it.
    pub fn new(pattern: &str, list: List, bases: &PatternBases) -> Result<Self, String> {
        if pattern.starts_with('!') {
            return Err("a pattern cannot begin with `!`".to_owned());
        }
        let (anchor, base, rest) = if let Some(rest) = pattern.strip_prefix("//") {
            (PathAnchor::Root, Path::new("/"), format!("/{rest}"))
        } else if let Some(rest) = pattern.strip_prefix("~/") {
            (PathAnchor::Home, bases.home.as_path(), format!("/{rest}"))
        } else if let Some(rest) = pattern.strip_prefix('/') {
            (
                PathAnchor::Source,
                bases.slash.as_path(),
                format!("/{rest}"),
            )
        } else if let Some(rest) = pattern.strip_prefix("./") {
            (PathAnchor::Cwd, bases.cwd.as_path(), format!("/{rest}"))
        } else {
            (
                PathAnchor::Cwd,
                bases.cwd.as_path(),
                relative(pattern, list),
            )
        };
        let (rest, up) = without_dots(&rest)?;
        let base = base.ancestors().nth(up).unwrap_or(Path::new("/"));
        let start = AnchoredGlob::new(base.to_path_buf(), &rest)?;
        let real = real_path::resolve_links(base);
        let linked = match list {
            List::Deny | List::Ask => behind_links(&start, &real, &rest),
            List::Allow => None,
        };
        let mut starts = vec![start];
        if real != base {
            starts.push(AnchoredGlob::new(real, &rest)?);
        }
        if let Some((base, rest)) = linked {
            starts.push(AnchoredGlob::new(base, &rest)?);
        }
        Ok(Self { anchor, starts })
    }

    /// Returns the pattern as data that can be sent to another process.
    pub fn glob(&self) -> PathGlob {
        let starts = self.starts.iter().map(|start| GlobStart {
            base: start.base.clone(),
            pattern: start.pattern.clone(),
        });
        PathGlob {
            starts: starts.collect(),
        }
    }

    /// Restores a pattern from data.
    pub fn from_glob(glob: &PathGlob) -> Result<Self, String> {
        let starts = glob.starts.iter();
        let starts = starts.map(|start| AnchoredGlob::new(start.base.clone(), &start.pattern));
        Ok(Self {
            anchor: PathAnchor::Root,
            starts: starts.collect::<Result<_, _>>()?,
        })
    }

    /// Extends the pattern to a worktree of a checkout: it then covers the same files in both. An
    /// allow pattern is extended only if it starts in the checkout, because an absolute path names
    /// one file.
    pub fn extend_to_worktree(&mut self, main: &Path, copy: &Path, list: List) {
        let mut further = Vec::new();
        for start in &self.starts {
            // Patterns that start in the worktree need no extension, even if it is inside the
            // checkout.
            if start.base.starts_with(copy) {
                continue;
            }
            let (base, pattern) = match start.base.strip_prefix(main) {
                Ok(below) => (copy.join(below), start.pattern.clone()),
                Err(_) if list == List::Allow => continue,
                Err(_) => match start.below(main) {
                    Some(pattern) => (copy.to_path_buf(), pattern),
                    None => continue,
                },
            };
            let known = |one: &AnchoredGlob| one.base == base && one.pattern == pattern;
            if !self.starts.iter().chain(&further).any(known)
                && let Ok(start) = AnchoredGlob::new(base, &pattern)
            {
                further.push(start);
            }
        }
        self.starts.extend(further);
    }

    /// Returns whether the pattern covers this absolute path, directly or by a directory above it.
    pub fn covers(&self, path: &Path) -> bool {
        self.starts.iter().any(|start| start.covers(path))
    }

    /// Returns whether the pattern covers everything below this directory.
    pub fn covers_all_below(&self, directory: &Path) -> bool {
        self.covers(directory) || self.covers(&directory.join(ANY).join(ANY))
    }

    /// Returns whether the pattern covers this path, or everything below this directory. For scans
    /// from above, which have already checked the directories on the way.
    pub fn covers_entirely(&self, path: &Path, is_dir: bool) -> bool {
        self.starts.iter().any(|start| start.stops_at(path, is_dir))
    }

    /// Returns whether the pattern may cover a file below this directory.
    pub fn reaches_below(&self, directory: &Path) -> bool {
        self.starts
            .iter()
            .any(|start| start.stem.starts_with(directory) || directory.starts_with(&start.stem))
    }

    /// Returns whether the pattern covers a path below this directory only by the names in that
    /// path, regardless of the directory's own path. Then it covers the same files through a link
    /// to the directory.
    pub fn floats_below(&self, directory: &Path) -> bool {
        self.starts.iter().all(|start| {
            let rest = start.pattern.trim_start_matches('/');
            let name = rest.strip_prefix("**/").unwrap_or(rest);
            let name = name
                .strip_suffix("/**")
                .unwrap_or(name)
                .trim_end_matches('/');
            let is_anchored = start.pattern.starts_with('/') && !rest.starts_with("**/");
            !is_anchored && !name.contains('/') && directory.starts_with(&start.base)
        })
    }

    /// Returns whether the pattern names exactly this path.
    pub fn names(&self, path: &Path) -> bool {
        self.starts
            .iter()
            .any(|start| start.names.as_deref() == Some(path))
    }

    /// Returns the paths that the pattern covers with everything below, if it covers nothing else.
    /// Returns `None` if only a scan can determine them.
    pub fn fixed_paths(&self) -> Option<Vec<PathBuf>> {
        let wholes = self.starts.iter().map(|start| start.whole.clone());
        wholes.collect()
    }

    /// Returns directories that contain everything the pattern covers.
    pub fn stems(&self) -> impl Iterator<Item = &Path> {
        self.starts.iter().map(|start| start.stem.as_path())
    }

    /// Returns whether the pattern is written as an absolute path or from the home directory.
    pub fn is_absolute(&self) -> bool {
        matches!(self.anchor, PathAnchor::Root | PathAnchor::Home)
    }
}

impl AnchoredGlob {
    fn new(base: PathBuf, pattern: &str) -> Result<Self, String> {
        let literally = |pattern: &str| {
            let literal = !pattern.contains(WILD) && pattern.starts_with('/');
            literal.then(|| base.join(pattern.trim_matches('/')))
        };
        let names = literally(pattern);
        let whole = match pattern.strip_suffix("/**") {
            Some("") => Some(base.clone()),
            Some(directory) => literally(directory),
            None => names.clone(),
        };
        let mut builder = GitignoreBuilder::new(&base);
        builder
            .add_line(None, pattern)
            .map_err(|error| error.to_string())?;
        let matcher = builder.build().map_err(|error| error.to_string())?;
        if matcher.num_ignores() == 0 {
            return Err("the pattern names nothing".to_owned());
        }
        Ok(Self {
            matcher,
            names,
            whole,
            stem: base.join(stem(pattern)),
            pattern: pattern.to_owned(),
            base,
        })
    }

    /// Returns the part of the pattern below this directory, if it covers anything there.
    fn below(&self, directory: &Path) -> Option<String> {
        self.stem.strip_prefix(directory).ok()?;
        let above = directory.strip_prefix(&self.base).ok()?;
        let parts = self.pattern.split('/').filter(|part| !part.is_empty());
        let rest: Vec<&str> = parts.skip(above.components().count()).collect();
        (!rest.is_empty()).then(|| format!("/{}", rest.join("/")))
    }

    fn stops_at(&self, path: &Path, is_dir: bool) -> bool {
        let below = match path.strip_prefix(&self.base) {
            Ok(below) if !below.as_os_str().is_empty() => below,
            _ => return false,
        };
        path.starts_with(&self.stem)
            && (self.matcher.matched(below, is_dir).is_ignore()
                || (is_dir && self.matcher.matched(below.join(ANY), false).is_ignore()))
    }

    fn covers(&self, path: &Path) -> bool {
        // Most patterns cover other directories. This check avoids matching.
        if !path.starts_with(&self.stem) {
            return false;
        }
        // The gitignore matcher accepts only paths below its directory.
        let Ok(below) = path.strip_prefix(&self.base) else {
            return false;
        };
        if below.as_os_str().is_empty() {
            return false;
        }
        [false, true].into_iter().any(|dir| {
            self.matcher
                .matched_path_or_any_parents(below, dir)
                .is_ignore()
        })
    }
}

/// Returns the pattern relative to the real path of its first directories, if links lead there. A
/// path that is denied by a link's name is then denied by its own name, too. Never for allow rules:
/// a program that can create a link could then allow any path.
fn behind_links(
    start: &AnchoredGlob,
    real_base: &Path,
    pattern: &str,
) -> Option<(PathBuf, String)> {
    let below = stem(pattern);
    let real = real_path::resolve_links(&start.stem);
    if real == real_base.join(&below) {
        return None;
    }
    let parts = pattern.split('/').filter(|part| !part.is_empty());
    let rest: Vec<&str> = parts.skip(below.components().count()).collect();
    if !rest.is_empty() {
        return Some((real, format!("/{}", rest.join("/"))));
    }
    let name = real.file_name()?.to_string_lossy().into_owned();
    let name: String = name
        .chars()
        .flat_map(|next| {
            (WILD.contains(&next) || next == ' ')
                .then_some('\\')
                .into_iter()
                .chain([next])
        })
        .collect();
    Some((real.parent()?.to_path_buf(), format!("/{name}")))
}

/// Returns the directories that a pattern begins with, up to the first wildcard. A name without a
/// slash matches at any depth.
fn stem(pattern: &str) -> PathBuf {
    if !pattern.trim_end_matches('/').contains('/') {
        return PathBuf::new();
    }
    let parts = pattern.split('/').filter(|part| !part.is_empty());
    parts.take_while(|part| !part.contains(WILD)).collect()
}

/// Extends `dir/**` to any depth for deny and ask rules. For allow rules it matches only where
/// written.
fn relative(pattern: &str, list: List) -> String {
    let single = pattern
        .strip_suffix("/**")
        .is_some_and(|dir| !dir.is_empty() && !dir.contains('/'));
    if single && list != List::Allow {
        return format!("**/{pattern}");
    }
    // A comment in gitignore, but a file name in rules.
    if pattern.starts_with('#') {
        return format!("\\{pattern}");
    }
    pattern.to_owned()
}

/// Returns the pattern without `.` and `..`, and the number of directories above its base where it
/// starts.
fn without_dots(pattern: &str) -> Result<(String, usize), String> {
    let dots = |part: &str| part == "." || part == "..";
    if !pattern.split('/').any(dots) && pattern != "/" {
        return Ok((pattern.to_owned(), 0));
    }
    let mut parts: Vec<&str> = Vec::new();
    let mut up = 0;
    for part in pattern.split('/') {
        match (part, parts.last()) {
            ("" | ".", _) => {}
            ("..", None) => up += 1,
            ("..", Some(before)) if before.contains(WILD) => {
                return Err("a pattern cannot contain `..` after a wildcard".to_owned());
            }
            ("..", Some(_)) => {
                parts.pop();
            }
            (part, _) => parts.push(part),
        }
    }
    // The directory itself means everything in it.
    if parts.is_empty() {
        parts.push("**");
    }
    Ok((format!("/{}", parts.join("/")), up))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn patterns_are_anchored_as_they_are_written() {
        let bases = PatternBases {
            cwd: "/p".into(),
            home: "/h".into(),
            slash: "/s".into(),
        };
        let cases = [
            ("./.env", List::Deny, "/p/.env", true),
            ("./.env", List::Deny, "/p/a/.env", false),
            (".env", List::Deny, "/p/a/b/.env", true),
            (".env", List::Deny, "/q/.env", false),
            ("//**/.env", List::Deny, "/q/.env", true),
            ("secrets/**", List::Deny, "/p/x/secrets/k", true),
            ("secrets/**", List::Allow, "/p/x/secrets/k", false),
            ("src/**", List::Allow, "/p/src/a/b.ts", true),
            ("src/**", List::Allow, "/p/vendor/src/b.ts", false),
            ("**/src/**", List::Allow, "/p/vendor/src/b.ts", true),
            ("/docs/**", List::Allow, "/s/docs/x.md", true),
            ("/docs/**", List::Allow, "/p/docs/x.md", false),
            ("~/.zshrc", List::Allow, "/h/.zshrc", true),
            ("~/.ssh/**", List::Deny, "/h/.ssh/id", true),
            ("docs/*", List::Allow, "/p/docs/a/b.md", true),
            ("docs", List::Allow, "/p/docs/a/b.md", true),
            ("docs/", List::Allow, "/p/docs/a/b.md", true),
            ("*.pem", List::Deny, "/p/x/y.pem", true),
            ("#x", List::Deny, "/p/#x", true),
            ("../q/*", List::Allow, "/q/a", true),
            ("a/b", List::Deny, "/p/x/a/b", false),
            ("a/b", List::Deny, "/p/a/b", true),
            ("./a/../.env", List::Deny, "/p/.env", true),
            ("a/../.env", List::Deny, "/p/x/.env", false),
            ("././.env", List::Deny, "/p/.env", true),
            ("//etc/./../etc/passwd", List::Deny, "/etc/passwd", true),
            ("../../../x", List::Deny, "/x", true),
            (".", List::Deny, "/p/a/b", true),
            ("~/", List::Deny, "/h/a", true),
            ("..", List::Deny, "/q/a", true),
        ];
        for (pattern, list, path, expected) in cases {
            let rule = PathPattern::new(pattern, list, &bases).unwrap();
            assert_eq!(rule.covers(Path::new(path)), expected, "{pattern} {path}");
        }
        assert!(PathPattern::new("!x", List::Deny, &bases).is_err());
        assert!(PathPattern::new("a*/../x", List::Deny, &bases).is_err());
        let private = PathPattern::new("./private/**", List::Deny, &bases).unwrap();
        assert!(private.covers_all_below(Path::new("/p/private")));
        assert!(!private.covers_all_below(Path::new("/p")));
        assert!(private.reaches_below(Path::new("/p")));
        for (pattern, path, is_dir, expected) in [
            (".env", "/p/a/.env", false, true),
            (".env", "/p/a/env", false, false),
            ("secrets/**", "/p/x/secrets", true, true),
            ("secrets/**", "/p/x/secrets", false, false),
            ("./private/**", "/p/private", true, true),
            ("*.pem", "/p/x", true, false),
            ("*.pem", "/q/x.pem", false, false),
            ("build/", "/p/build", false, false),
            ("build/", "/p/build", true, true),
        ] {
            let rule = PathPattern::new(pattern, List::Deny, &bases).unwrap();
            let got = rule.covers_entirely(Path::new(path), is_dir);
            assert_eq!(got, expected, "{pattern} {path}");
        }
        for (pattern, list, wholes) in [
            ("./.env", List::Deny, Some("/p/.env")),
            ("//q/**", List::Allow, Some("/q")),
            ("~/x/", List::Allow, Some("/h/x")),
            ("./**", List::Deny, Some("/p")),
            ("x/**", List::Allow, None),
            (".env", List::Deny, None),
            ("//q/*", List::Allow, None),
        ] {
            let rule = PathPattern::new(pattern, list, &bases).unwrap();
            let wholes = wholes.map(|path| vec![PathBuf::from(path)]);
            assert_eq!(rule.fixed_paths(), wholes, "{pattern}");
        }
        let env = PathPattern::new("./.env", List::Deny, &bases).unwrap();
        assert!(env.reaches_below(Path::new("/p")));
        assert!(!env.reaches_below(Path::new("/p/src")));
        assert!(!private.reaches_below(Path::new("/p/src")));
        assert!(private.reaches_below(Path::new("/p/private/x")));
    }

    #[test]
    fn a_pattern_follows_into_a_copy_of_the_checkout() {
        let bases = PatternBases {
            cwd: "/p".into(),
            home: "/h".into(),
            slash: "/p/s".into(),
        };
        let (main, copy) = (Path::new("/p"), Path::new("/p/.claude/worktrees/w"));
        let cases = [
            ("./.env", List::Deny, ".env", true),
            ("./.env", List::Deny, "a/.env", false),
            ("/x", List::Deny, "s/x", true),
            ("src/**", List::Allow, "src/a", true),
            ("//p/.env", List::Deny, ".env", true),
            ("//p/**/*.key", List::Ask, "a/b.key", true),
            ("//p/src/**", List::Allow, "src/a", false),
            ("~/.env", List::Deny, ".env", false),
            ("//q/.env", List::Deny, ".env", false),
        ];
        for (pattern, list, path, expected) in cases {
            let mut rule = PathPattern::new(pattern, list, &bases).unwrap();
            rule.extend_to_worktree(main, copy, list);
            let once = rule.clone();
            assert_eq!(rule.covers(&copy.join(path)), expected, "{pattern} {path}");
            rule.extend_to_worktree(main, copy, list);
            assert_eq!(rule, once, "{pattern}");
        }
    }

    #[test]
    fn a_directory_is_known_by_each_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        for name in ["real/src", "kept/[1] keys"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        symlink(root.join("real"), root.join("p")).unwrap();
        symlink(root.join("kept/[1] keys"), root.join("real/secret")).unwrap();
        let bases = PatternBases {
            cwd: root.join("p"),
            home: root.join("p"),
            slash: root.join("p"),
        };
        let cases = [
            ("src/**", List::Allow, "p/src/a", true),
            ("src/**", List::Allow, "real/src/a", true),
            ("~/.env", List::Deny, "real/.env", true),
            (".env", List::Deny, "real/x/.env", true),
            // The link is denied, and so is what it leads to.
            ("./secret", List::Deny, "p/secret/a", true),
            ("./secret", List::Deny, "kept/[1] keys/a", true),
            ("./secret/**", List::Ask, "kept/[1] keys/a/b", true),
            ("./secret/*.pem", List::Deny, "kept/[1] keys/a.pem", true),
            ("./secret/*.pem", List::Deny, "kept/[1] keys/a.txt", false),
            ("./secret", List::Deny, "kept/1/a", false),
            // What allows does not follow links: anyone may have made them.
            ("./secret/**", List::Allow, "kept/[1] keys/a", false),
        ];
        for (pattern, list, path, expected) in cases {
            let rule = PathPattern::new(pattern, list, &bases).unwrap();
            assert_eq!(rule.covers(&root.join(path)), expected, "{pattern} {path}");
        }
        let secret = PathPattern::new("./secret/*.pem", List::Deny, &bases).unwrap();
        assert!(secret.reaches_below(&root.join("kept")));
        let one = PathPattern::new("./src", List::Allow, &bases).unwrap();
        assert!(one.names(&root.join("real/src")) && one.names(&root.join("p/src")));
    }
}
