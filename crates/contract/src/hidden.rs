//! Files that a call which finds its files by itself must leave out.
//!
//! What is hidden is data ([`HiddenFiles`]); the one who knows how patterns are matched brings [`HiddenRules`]
//! made from it. Data alone, as it comes from another process, hides everything until someone does.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Files that a call which finds its files by itself must leave out. Cheap to clone.
#[derive(Clone, Default)]
pub struct Hidden(Option<Arc<dyn HiddenRules>>);

/// Knows which files those are.
pub trait HiddenRules: Send + Sync {
    /// Is this one? Asked with absolute paths.
    fn hides(&self, path: &Path) -> bool;

    /// The same as data.
    fn files(&self) -> HiddenFiles;
}

/// Which files are hidden, as data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenFiles {
    /// Those that a pattern covers.
    pub patterns: Vec<PathGlob>,
    /// Those that decide what other programs run, by their names.
    pub control: bool,
}

/// A pattern for paths in the manner of gitignore: from each of these directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathGlob {
    /// From where it counts.
    pub starts: Vec<GlobStart>,
}

/// A pattern, and the directory that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobStart {
    /// The directory; absolute.
    pub base: PathBuf,
    /// The pattern, as gitignore reads a line.
    pub pattern: String,
}

impl Hidden {
    /// Those that these rules know.
    pub fn by(rules: impl HiddenRules + 'static) -> Self {
        Self(Some(Arc::new(rules)))
    }

    /// Those, and the others.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        match (self.is_empty(), others.is_empty()) {
            (_, true) => self.clone(),
            (true, false) => others.clone(),
            (false, false) => Self::by(Both(self.clone(), others.clone())),
        }
    }

    /// There are none, so that no one need ask.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Is this one?
    pub fn hides(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|rules| rules.hides(path))
    }

    /// The same as data.
    pub fn files(&self) -> HiddenFiles {
        self.0
            .as_ref()
            .map(|rules| rules.files())
            .unwrap_or_default()
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hidden").field(&self.files()).finish()
    }
}

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.files().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let files = HiddenFiles::deserialize(deserializer)?;
        Ok(match files == HiddenFiles::default() {
            true => Self::default(),
            false => Self::by(files),
        })
    }
}

/// No one here knows how patterns are matched.
impl HiddenRules for HiddenFiles {
    fn hides(&self, _: &Path) -> bool {
        true
    }

    fn files(&self) -> HiddenFiles {
        self.clone()
    }
}

struct Both(Hidden, Hidden);

impl HiddenRules for Both {
    fn hides(&self, path: &Path) -> bool {
        self.0.hides(path) || self.1.hides(path)
    }

    fn files(&self) -> HiddenFiles {
        let (mut files, others) = (self.0.files(), self.1.files());
        files.patterns.extend(others.patterns);
        files.control |= others.control;
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_alone_hides_everything_and_no_data_nothing() {
        let files = HiddenFiles {
            patterns: vec![PathGlob {
                starts: vec![GlobStart {
                    base: "/p".into(),
                    pattern: "*.key".to_owned(),
                }],
            }],
            control: true,
        };
        let written = serde_json::to_string(&Hidden::by(files.clone())).unwrap();
        let read: Hidden = serde_json::from_str(&written).unwrap();
        assert_eq!(read.files(), files);
        assert!(read.hides(Path::new("/p/a.rs")));
        let none = serde_json::to_string(&Hidden::default()).unwrap();
        let none: Hidden = serde_json::from_str(&none).unwrap();
        assert!(none.is_empty() && !none.hides(Path::new("/p/a.rs")));
        assert_eq!(none.and(&read).files(), files);
    }
}
