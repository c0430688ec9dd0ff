//! The regex, built with exactly the settings that ripgrep 15 uses, so that the same lines match.

use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::sync::{Arc, Mutex, PoisonError};

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::Override;
use ignore::types::Types;

use super::GrepQuery;
use super::filter;
#[cfg(target_os = "linux")]
use super::prefilter::LineFilter;
#[cfg(target_os = "linux")]
use super::scan::Prefilter;
use crate::SearchError;
#[cfg(target_os = "linux")]
use crate::index::{TrigramQuery, plan};

/// The number of built patterns, types and overrides to cache.
const MAX_STORED: usize = 8;

/// The regexes of the most recent queries. A call needs its regex twice, for the check and for the
/// search, and building one that covers all Unicode letters takes longer than most searches.
#[derive(Debug, Default)]
pub(crate) struct MatcherCache {
    patterns: Mutex<Vec<(MatcherKey, Arc<BuiltPattern>)>>,
    /// File types by name. Building one compiles some hundred globs.
    types: Mutex<Vec<(String, Arc<Types>)>>,
    overrides: Mutex<Vec<(GlobsKey, Arc<Override>)>>,
}

/// The regex of a query, and what is derived from it on demand.
#[derive(Debug)]
pub(super) struct BuiltPattern {
    /// Shared, because the regex's working memory is shared with it.
    exact: Arc<RegexMatcher>,
    #[cfg(target_os = "linux")]
    narrowing: OnceLock<Prefilter>,
    #[cfg(target_os = "linux")]
    needed: OnceLock<TrigramQuery>,
}

impl BuiltPattern {
    fn new(exact: RegexMatcher) -> Self {
        Self {
            exact: Arc::new(exact),
            #[cfg(target_os = "linux")]
            narrowing: OnceLock::new(),
            #[cfg(target_os = "linux")]
            needed: OnceLock::new(),
        }
    }

    pub(super) fn exact(&self) -> Arc<RegexMatcher> {
        Arc::clone(&self.exact)
    }

    /// Returns the trigrams that a text must contain for the pattern to match in it.
    #[cfg(target_os = "linux")]
    pub(super) fn needed(&self, query: &GrepQuery) -> &TrigramQuery {
        let plan = || plan(&query.pattern, query.case_insensitive, query.multiline);
        self.needed.get_or_init(plan)
    }

    /// Returns the prefilter, which rules out lines faster than the pattern.
    #[cfg(target_os = "linux")]
    pub(super) fn narrowing(&self, query: &GrepQuery) -> Prefilter {
        let build = || Prefilter {
            // A pattern that contains a searchable literal is fast without a prefilter.
            lines: match self.needed(query) {
                TrigramQuery::Any => LineFilter::build(query).map(Arc::new),
                _ => None,
            },
            relaxed: super::relaxed::build(query).map(Arc::new),
        };
        self.narrowing.get_or_init(build).clone()
    }
}

type MatcherKey = (String, bool, bool);
/// The globs, and the directory they are relative to.
type GlobsKey = (Vec<String>, PathBuf);

impl MatcherCache {
    pub(super) fn build(&self, query: &GrepQuery) -> Result<Arc<BuiltPattern>, SearchError> {
        let key = (
            query.pattern.clone(),
            query.case_insensitive,
            query.multiline,
        );
        remembered(&self.patterns, &key, || build(query).map(BuiltPattern::new))
    }

    /// Returns the matcher for the file type that a query names.
    pub(super) fn types(&self, query: &GrepQuery) -> Result<Arc<Types>, SearchError> {
        match &query.file_type {
            Some(name) => remembered(&self.types, name, || filter::types(query)),
            None => filter::types(query).map(Arc::new),
        }
    }

    /// Returns the compiled globs of a query.
    pub(super) fn overrides(&self, query: &GrepQuery) -> Result<Arc<Override>, SearchError> {
        if query.globs.is_empty() {
            return filter::overrides(query).map(Arc::new);
        }
        let key = (query.globs.clone(), query.current_dir.clone());
        remembered(&self.overrides, &key, || filter::overrides(query))
    }
}

/// Returns the cached value of the key, or builds and caches it.
fn remembered<K: Clone + PartialEq, T>(
    kept: &Mutex<Vec<(K, Arc<T>)>>,
    key: &K,
    build: impl FnOnce() -> Result<T, SearchError>,
) -> Result<Arc<T>, SearchError> {
    let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    let known = lock()
        .iter()
        .find(|(it, _)| it == key)
        .map(|(_, it)| Arc::clone(it));
    if let Some(known) = known {
        return Ok(known);
    }
    let built = Arc::new(build()?);
    let mut kept = lock();
    kept.insert(0, (key.clone(), Arc::clone(&built)));
    kept.truncate(MAX_STORED);
    Ok(built)
}

pub(super) fn build(query: &GrepQuery) -> Result<RegexMatcher, SearchError> {
    if query.pattern.contains('\0') {
        return Err(SearchError::NulByte { field: "pattern" });
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .case_insensitive(query.case_insensitive);
    if query.multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    // A NUL byte marks a file as binary, so a pattern that contains one could never match.
    builder.ban_byte(Some(b'\0'));
    builder
        .build_many(&[&query.pattern])
        .map_err(|error| match error.kind() {
            ErrorKind::NotAllowed(_) => SearchError::LineBreakInPattern,
            ErrorKind::Banned(_) => SearchError::NulByte { field: "pattern" },
            _ => SearchError::InvalidRegex {
                diagnostic: error.to_string(),
            },
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_pattern_says_what_to_do() {
        let cases = [
            // (pattern, multiline, part of the text)
            ("foo(", false, "unclosed group"),
            ("(?=x)", false, "look-around"),
            (r"a\nb", false, "multiline: true"),
            ("a\nb", false, "multiline: true"),
            (r"\x00", false, "NUL byte"),
            ("a\0", true, "NUL byte"),
            (r"\w{100000}", false, "size limit"),
        ];
        for (pattern, multiline, part) in cases {
            let query = GrepQuery {
                multiline,
                ..GrepQuery::new(pattern, "/")
            };
            let text = build(&query).expect_err(pattern).to_string();
            assert!(text.contains(part), "{pattern:?} gave {text:?}");
        }
    }

    #[test]
    fn a_line_break_is_fine_in_multiline_mode() {
        assert!(
            build(&GrepQuery {
                multiline: true,
                ..GrepQuery::new(r"a\nb", "/")
            })
            .is_ok()
        );
    }
}
