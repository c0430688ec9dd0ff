//! What a search left out, and why: a short list to show, and true counts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How many samples a report stores. The counts always cover everything.
const MAX_SAMPLES: usize = 50;

/// One thing that was not searched, or not wholly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// `None` where the operating system's error names no path.
    pub path: Option<PathBuf>,
    /// Why.
    pub reason: SkipReason,
}

/// Why something was not searched, or not wholly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// A NUL byte was met at about this offset; nothing after it was searched.
    Binary {
        /// In bytes, from 0.
        offset: u64,
    },
    /// The operating system's words.
    Unreadable {
        /// As it said them.
        message: String,
    },
    /// A multiline search holds a whole file in memory, and this one is larger than is fit for
    /// that.
    TooLarge {
        /// How large it is.
        bytes: u64,
    },
    /// Part of an ignore file was not understood, so its other rules applied without that part.
    IgnoreFile {
        /// What is wrong with it.
        message: String,
    },
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binary { offset } => write!(f, "binary (NUL byte at about offset {offset})"),
            Self::Unreadable { message } => write!(f, "unreadable: {message}"),
            Self::TooLarge { bytes } => {
                write!(f, "too large for a multiline search ({bytes} bytes)")
            }
            Self::IgnoreFile { message } => {
                write!(f, "ignore file partly not understood: {message}")
            }
        }
    }
}

/// The report's list, sorted by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many files were binary.
    pub binary: usize,
    /// How many could not be read.
    pub unreadable: usize,
    /// How many were too large for a multiline search.
    pub too_large: usize,
    /// How many ignore files were not understood in part.
    pub ignore_files: usize,
    /// Binary files come last, being the least of a surprise; at most 50 in all.
    pub samples: Vec<Skip>,
}

impl Skipped {
    /// How many there were in all, which may be more than `samples` holds.
    pub fn total(&self) -> usize {
        self.binary + self.unreadable + self.too_large + self.ignore_files
    }
}

/// Filled by the threads of one search.
#[derive(Debug, Default)]
pub(crate) struct SkipLog(Mutex<Vec<Skip>>);

impl SkipLog {
    pub(crate) fn add(&self, path: Option<&Path>, reason: SkipReason) {
        let skip = Skip {
            path: path.map(Path::to_path_buf),
            reason,
        };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(skip);
    }

    /// All of it, in no order.
    pub(crate) fn into_all(self) -> Vec<Skip> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves out what lies behind `last`, so that a search that ended at its limit reports the
    /// same on every run.
    pub(crate) fn into_skipped(self, last: Option<&Path>) -> Skipped {
        let mut skips = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last {
            skips.retain(|skip| skip.path.as_deref().is_none_or(|path| path <= last));
        }
        let count =
            |is: fn(&SkipReason) -> bool| skips.iter().filter(|skip| is(&skip.reason)).count();
        let mut skipped = Skipped {
            binary: count(|reason| matches!(reason, SkipReason::Binary { .. })),
            unreadable: count(|reason| matches!(reason, SkipReason::Unreadable { .. })),
            too_large: count(|reason| matches!(reason, SkipReason::TooLarge { .. })),
            ignore_files: count(|reason| matches!(reason, SkipReason::IgnoreFile { .. })),
            samples: Vec::new(),
        };
        skips.sort_by(|a, b| {
            let is_binary = |skip: &Skip| matches!(skip.reason, SkipReason::Binary { .. });
            is_binary(a).cmp(&is_binary(b)).then_with(|| a.cmp(b))
        });
        skips.truncate(MAX_SAMPLES);
        skipped.samples = skips;
        skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_true_although_samples_are_bounded() {
        let log = SkipLog::default();
        for number in 0..200 {
            log.add(
                Some(&PathBuf::from(format!("/b/{number:03}"))),
                SkipReason::Binary { offset: 1 },
            );
        }
        log.add(
            Some(Path::new("/z")),
            SkipReason::Unreadable {
                message: "denied".into(),
            },
        );
        let skipped = log.into_skipped(None);
        assert_eq!(
            (skipped.binary, skipped.unreadable, skipped.total()),
            (200, 1, 201)
        );
        assert_eq!(skipped.samples.len(), MAX_SAMPLES);
        assert_eq!(
            skipped.samples[0].path.as_deref(),
            Some(Path::new("/z")),
            "trouble first"
        );
        assert_eq!(
            skipped.samples[1].path.as_deref(),
            Some(Path::new("/b/000"))
        );
    }

    #[test]
    fn what_lies_behind_the_last_row_is_left_out() {
        let log = SkipLog::default();
        for name in ["/a/x", "/a/y", "/b"] {
            log.add(Some(Path::new(name)), SkipReason::Binary { offset: 0 });
        }
        assert_eq!(log.into_skipped(Some(Path::new("/a/y"))).binary, 2);
    }
}
