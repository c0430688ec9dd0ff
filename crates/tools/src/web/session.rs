//! What a session keeps of the web: pages, answers of the person, how often it searched.

use std::{
    collections::HashSet,
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    net::IpAddr,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use haft_journal::ContentHash;
use haft_sandbox::network::{Resolve, SystemResolver};

use super::cache::PageCache;

/// How long pages are kept.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// How long a page may take, redirects and all.
const WHOLE: Duration = Duration::from_secs(30);
/// Bytes of a page, unpacked.
const LONGEST: usize = 10 << 20;
const MOST_SEARCHES: u32 = 200;
/// Bytes of files that a session keeps.
const MOST_KEPT: u64 = 256 << 20;

/// How much of the web a session may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebLimits {
    /// How long a page is kept and not asked for again.
    pub kept: Duration,
    /// How long a page may take, redirects and all.
    pub whole: Duration,
    /// Bytes of a page, unpacked.
    pub longest: usize,
    /// Searches of a session and its subagents.
    pub searches: u32,
}

impl Default for WebLimits {
    fn default() -> Self {
        Self {
            kept: KEPT,
            whole: WHOLE,
            longest: LONGEST,
            searches: MOST_SEARCHES,
        }
    }
}

impl WebLimits {
    /// As these variables say; what is no number counts as unset.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| {
            let digits = variable(name)?;
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse::<u64>().unwrap_or(u64::MAX))
        };
        let usual = Self::default();
        let kept = number("CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS").map(Duration::from_millis);
        let searches = number("CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION");
        let searches = searches.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        Self {
            kept: kept.unwrap_or(usual.kept),
            searches: searches.unwrap_or(usual.searches),
            ..usual
        }
    }
}

/// What a session and its subagents keep of the web. A service; nothing of it outlives the session but files
/// that were fetched, which lie in the session's folder.
pub struct WebSession {
    pub(super) limits: WebLimits,
    pub(super) cache: PageCache,
    pub(super) resolver: Arc<dyn Resolve>,
    folder: PathBuf,
    searched: AtomicU32,
    /// Bytes of files.
    kept: AtomicU64,
    /// Hosts that the person let be reached at addresses that are not public.
    granted: Mutex<HashSet<(String, IpAddr)>>,
}

impl WebSession {
    /// Files go to this folder, at the first one.
    pub fn new(folder: PathBuf, limits: WebLimits) -> Self {
        Self {
            limits,
            cache: PageCache::new(limits.kept),
            resolver: Arc::new(SystemResolver),
            folder,
            searched: AtomicU32::new(0),
            kept: AtomicU64::new(0),
            granted: Mutex::default(),
        }
    }

    /// The same with another resolver.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Counts a search; false if there were enough.
    pub(super) fn may_search(&self) -> bool {
        let most = self.limits.searches;
        let count = |count: u32| (count < most).then_some(count + 1);
        self.searched
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, count)
            .is_ok()
    }

    pub(super) fn grant(&self, host: &str, addresses: &[IpAddr]) {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        granted.extend(addresses.iter().map(|one| (host.to_owned(), *one)));
    }

    pub(super) fn granted(&self, host: &str) -> Vec<IpAddr> {
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        let of_host = granted.iter().filter(|(name, _)| name == host);
        of_host.map(|(_, address)| *address).collect()
    }

    /// Keeps what was fetched as a file: named by its content, readable by the owner alone.
    pub(super) fn keep(&self, bytes: &[u8], extension: &str) -> io::Result<PathBuf> {
        let hash = ContentHash::of(bytes).to_string();
        let name = format!("web-{}.{extension}", &hash[..32]);
        let path = self.folder.join(name);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let length = bytes.len() as u64;
        if self.kept.load(Ordering::Acquire) + length > MOST_KEPT {
            let why = format!("this session has kept {} MB already", MOST_KEPT >> 20);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, why));
        }
        let mut options = OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes)?;
                self.kept.fetch_add(length, Ordering::AcqRel);
            }
            // By its name it holds the same.
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && is_whole(&path, bytes) => {}
            Err(error) => return Err(error),
        }
        Ok(path)
    }
}

fn is_whole(path: &Path, bytes: &[u8]) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_digits_only() {
        let limits = |value: &str| {
            WebLimits::from_variables(|name| {
                (name == "CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS").then(|| value.to_owned())
            })
        };
        assert_eq!(limits("1500").kept, Duration::from_millis(1500));
        assert_eq!(limits("0").kept, Duration::ZERO);
        for odd in ["", "-1", "+1", "1e3", "15 min", " 5", "0x10", "1.5", "１"] {
            assert_eq!(limits(odd), WebLimits::default(), "{odd}");
        }
        let searches = WebLimits::from_variables(|name| {
            (name == "CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION").then(|| "7".to_owned())
        });
        assert_eq!(searches.searches, 7);
    }

    #[test]
    fn limits_are_those_of_the_page_where_nothing_is_said() {
        let expected = WebLimits {
            kept: Duration::from_secs(900),
            whole: Duration::from_secs(30),
            longest: 10 * 1024 * 1024,
            searches: 200,
        };
        assert_eq!(WebLimits::from_variables(|_| None), expected);
    }

    #[test]
    fn searches_are_counted_for_all() {
        let limits = WebLimits {
            searches: 2,
            ..WebLimits::default()
        };
        let session = WebSession::new(PathBuf::new(), limits);
        assert_eq!([(); 3].map(|()| session.may_search()), [true, true, false]);
    }

    #[test]
    fn what_is_kept_is_named_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let session = WebSession::new(folder.path().join("kept"), WebLimits::default());
        let one = session.keep(b"one", "bin").unwrap();
        assert_eq!(session.keep(b"one", "bin").unwrap(), one);
        assert_ne!(session.keep(b"two", "bin").unwrap(), one);
        assert_eq!(std::fs::read(one).unwrap(), b"one");
    }
}
