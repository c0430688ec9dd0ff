//! Files that a call must leave out if it finds its files itself, such as a search.
//!
//! The hidden files are described by data ([`HiddenFiles`]). The crate that can match patterns
//! builds [`HiddenRules`] from the data. Data that was deserialized in another process hides
//! everything until rules are built from it.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::HomeControl;

/// The filter for files that a call which finds its files itself must leave out. Cheap to clone.
#[derive(Clone, Default)]
pub struct HiddenFilter(Option<Arc<dyn HiddenRules>>);

/// Identifies hidden files.
pub trait HiddenRules: Send + Sync {
    /// Returns whether the file at this absolute path is hidden.
    fn hides(&self, path: &Path) -> bool;

    /// Returns the rules as data.
    fn files(&self) -> HiddenFiles;
}

/// The hidden files, as data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenFiles {
    /// Files that match one of these patterns.
    pub patterns: Vec<PathGlob>,
    /// Control files are hidden too, by their names.
    pub control: bool,
    /// The homes in which the session works: they contain more control files.
    #[serde(default)]
    pub home: HomeControl,
}

/// A gitignore-style path pattern that applies from one or more directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathGlob {
    /// The directories it applies from, each with the pattern relative to it.
    pub starts: Vec<GlobStart>,
}

/// A pattern and the directory it is relative to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobStart {
    /// The directory; absolute.
    pub base: PathBuf,
    /// The pattern, in gitignore syntax.
    pub pattern: String,
}

impl HiddenFilter {
    /// Creates a filter from rules.
    pub fn from_rules(rules: impl HiddenRules + 'static) -> Self {
        Self(Some(Arc::new(rules)))
    }

    /// Returns a filter that also hides the `others`.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        match (self.is_empty(), others.is_empty()) {
            (_, true) => self.clone(),
            (true, false) => others.clone(),
            (false, false) => Self::from_rules(HiddenUnion(self.clone(), others.clone())),
        }
    }

    /// Returns whether no file is hidden, so that no path needs to be checked.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether the file at this path is hidden.
    pub fn hides(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|rules| rules.hides(path))
    }

    /// Returns the rules as data.
    pub fn files(&self) -> HiddenFiles {
        self.0
            .as_ref()
            .map(|rules| rules.files())
            .unwrap_or_default()
    }
}

impl fmt::Debug for HiddenFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HiddenFilter").field(&self.files()).finish()
    }
}

impl Serialize for HiddenFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.files().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HiddenFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let files = HiddenFiles::deserialize(deserializer)?;
        Ok(match files == HiddenFiles::default() {
            true => Self::default(),
            false => Self::from_rules(files),
        })
    }
}

/// Data that cannot match its patterns: everything is hidden.
impl HiddenRules for HiddenFiles {
    fn hides(&self, _: &Path) -> bool {
        true
    }

    fn files(&self) -> HiddenFiles {
        self.clone()
    }
}

struct HiddenUnion(HiddenFilter, HiddenFilter);

impl HiddenRules for HiddenUnion {
    fn hides(&self, path: &Path) -> bool {
        self.0.hides(path) || self.1.hides(path)
    }

    fn files(&self) -> HiddenFiles {
        let (mut files, others) = (self.0.files(), self.1.files());
        files.patterns.extend(others.patterns);
        files.control |= others.control;
        files.home.homes.extend(others.home.homes);
        files.home.worked_on.extend(others.home.worked_on);
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
            home: HomeControl::default(),
        };
        let written = serde_json::to_string(&HiddenFilter::from_rules(files.clone())).unwrap();
        let read: HiddenFilter = serde_json::from_str(&written).unwrap();
        assert_eq!(read.files(), files);
        assert!(read.hides(Path::new("/p/a.rs")));
        let none = serde_json::to_string(&HiddenFilter::default()).unwrap();
        let none: HiddenFilter = serde_json::from_str(&none).unwrap();
        assert!(none.is_empty() && !none.hides(Path::new("/p/a.rs")));
        assert_eq!(none.union(&read).files(), files);
    }
}
