//! Paths that a rule names, in the manner of gitignore.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{Bases, List};

/// A path pattern, bound to the directory it starts from.
#[derive(Debug, Clone)]
pub struct PathPattern {
    base: PathBuf,
    matcher: Gitignore,
    anchor: Anchor,
    /// The one path it names, if it holds no wildcard.
    names: Option<PathBuf>,
    /// Everything it covers is below this directory.
    stem: PathBuf,
}

/// How the pattern is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
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
    /// Reads a pattern; the error says what is wrong with it.
    pub fn new(pattern: &str, list: List, bases: &Bases) -> Result<Self, String> {
        if pattern.starts_with('!') {
            return Err("a pattern cannot begin with `!`".to_owned());
        }
        let (anchor, base, rest) = if let Some(rest) = pattern.strip_prefix("//") {
            (Anchor::Root, Path::new("/"), format!("/{rest}"))
        } else if let Some(rest) = pattern.strip_prefix("~/") {
            (Anchor::Home, bases.home.as_path(), format!("/{rest}"))
        } else if let Some(rest) = pattern.strip_prefix('/') {
            (Anchor::Source, bases.slash.as_path(), format!("/{rest}"))
        } else if let Some(rest) = pattern.strip_prefix("./") {
            (Anchor::Cwd, bases.cwd.as_path(), format!("/{rest}"))
        } else {
            (Anchor::Cwd, bases.cwd.as_path(), relative(pattern, list))
        };
        let (rest, up) = without_parents(&rest);
        let base = up.iter().fold(base.to_path_buf(), |base, ()| {
            base.parent().map_or(base.clone(), Path::to_path_buf)
        });
        let has_wildcard = rest.contains(['*', '?', '[', '\\']);
        let names = (!has_wildcard && rest.starts_with('/'))
            .then(|| base.join(rest.trim_start_matches('/').trim_end_matches('/')));
        let stem = stem(&base, &rest);
        let mut builder = GitignoreBuilder::new(&base);
        builder
            .add_line(None, &rest)
            .map_err(|error| error.to_string())?;
        let matcher = builder.build().map_err(|error| error.to_string())?;
        if matcher.num_ignores() == 0 {
            return Err("the pattern names nothing".to_owned());
        }
        Ok(Self {
            base,
            matcher,
            anchor,
            names,
            stem,
        })
    }

    /// Does it cover this absolute path, by itself or by a directory above it?
    pub fn covers(&self, path: &Path) -> bool {
        // gitignore knows only what is below its directory.
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

    /// Does it cover everything below this directory?
    pub fn covers_all_below(&self, directory: &Path) -> bool {
        // No pattern a person writes names this file but by naming all of them.
        const ANY: &str = "\u{1}";
        self.covers(directory) || self.covers(&directory.join(ANY).join(ANY))
    }

    /// May it cover something below this directory?
    pub fn reaches_below(&self, directory: &Path) -> bool {
        self.stem.starts_with(directory) || directory.starts_with(&self.stem)
    }

    /// It names exactly this path.
    pub fn names(&self, path: &Path) -> bool {
        self.names.as_deref() == Some(path)
    }

    /// It is written as an absolute path or from the home directory.
    pub fn is_absolute(&self) -> bool {
        matches!(self.anchor, Anchor::Root | Anchor::Home)
    }
}

/// The directories a pattern begins with, up to the first wildcard. A name without a slash is
/// looked for at any depth.
fn stem(base: &Path, pattern: &str) -> PathBuf {
    let mut stem = base.to_path_buf();
    if pattern.trim_end_matches('/').contains('/') {
        let parts = pattern.split('/').filter(|part| !part.is_empty());
        stem.extend(parts.take_while(|part| !part.contains(['*', '?', '[', '\\'])));
    }
    stem
}

/// `dir/**` denies at any depth, but allows only where it says.
fn relative(pattern: &str, list: List) -> String {
    let single = pattern
        .strip_suffix("/**")
        .is_some_and(|dir| !dir.is_empty() && !dir.contains('/'));
    if single && list != List::Allow {
        return format!("**/{pattern}");
    }
    // A comment to gitignore, a name to us.
    if pattern.starts_with('#') {
        return format!("\\{pattern}");
    }
    pattern.to_owned()
}

/// Takes `..` in front away, counting them: the base moves up instead.
fn without_parents(pattern: &str) -> (String, Vec<()>) {
    let mut rest = pattern;
    let mut up = Vec::new();
    loop {
        let bare = rest.strip_prefix('/').unwrap_or(rest);
        match bare.strip_prefix("../") {
            Some(above) => {
                up.push(());
                rest = above;
            }
            None => break,
        }
    }
    if up.is_empty() {
        (pattern.to_owned(), up)
    } else {
        (format!("/{}", rest.trim_start_matches('/')), up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_anchored_as_they_are_written() {
        let bases = Bases {
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
        ];
        for (pattern, list, path, expected) in cases {
            let rule = PathPattern::new(pattern, list, &bases).unwrap();
            assert_eq!(rule.covers(Path::new(path)), expected, "{pattern} {path}");
        }
        assert!(PathPattern::new("!x", List::Deny, &bases).is_err());
        let private = PathPattern::new("./private/**", List::Deny, &bases).unwrap();
        assert!(private.covers_all_below(Path::new("/p/private")));
        assert!(!private.covers_all_below(Path::new("/p")));
        assert!(private.reaches_below(Path::new("/p")));
        let env = PathPattern::new("./.env", List::Deny, &bases).unwrap();
        assert!(env.reaches_below(Path::new("/p")));
        assert!(!env.reaches_below(Path::new("/p/src")));
        assert!(!private.reaches_below(Path::new("/p/src")));
        assert!(private.reaches_below(Path::new("/p/private/x")));
    }
}
