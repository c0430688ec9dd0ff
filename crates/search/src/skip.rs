//! The files that a search could not read, with the reasons: a short list to show, and exact totals.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The maximum number of samples in a report. The counts always cover everything.
const MAX_SAMPLES: usize = 50;

/// A file or directory that was not searched, or only in part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// The path. `None` if the operating system's error names none.
    pub path: Option<PathBuf>,
    /// The reason.
    pub reason: SkipReason,
}

/// The reason why a file or directory was not searched, or only in part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// A NUL byte was found near this offset; nothing after it was searched.
    Binary {
        /// The offset in bytes, starting at 0.
        offset: u64,
    },
    /// The operating system reported an error.
    Unreadable {
        /// The text of the error.
        message: String,
    },
    /// A multiline search reads a whole file into memory, and this file is too large for that.
    TooLarge {
        /// The size of the file in bytes.
        bytes: u64,
    },
    /// A part of an ignore file is invalid; its other rules were applied.
    IgnoreFile {
        /// The description of the problem.
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

/// The skipped files of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkipSummary {
    /// The number of binary files.
    pub binary: usize,
    /// The number of unreadable files and directories.
    pub unreadable: usize,
    /// The number of files that were too large for a multiline search.
    pub too_large: usize,
    /// The number of ignore files that are partly invalid.
    pub ignore_files: usize,
    /// At most 50 samples, sorted by path; binary files come last, because they are the least
    /// surprising.
    pub samples: Vec<Skip>,
}

impl SkipSummary {
    /// Returns the number of all skipped files, which may be more than the length of `samples`.
    pub fn total(&self) -> usize {
        self.binary + self.unreadable + self.too_large + self.ignore_files
    }
}

/// Collects the skips of all threads of a search.
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

    /// Returns all skips, in no order.
    pub(crate) fn into_all(self) -> Vec<Skip> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds the report's list. Paths after `last` are left out, so that a search that ended at
    /// its limit reports the same on every run.
    pub(crate) fn into_skipped(self, last: Option<&Path>) -> SkipSummary {
        let mut skips = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last {
            skips.retain(|skip| skip.path.as_deref().is_none_or(|path| path <= last));
        }
        let count =
            |is: fn(&SkipReason) -> bool| skips.iter().filter(|skip| is(&skip.reason)).count();
        let mut skipped = SkipSummary {
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
