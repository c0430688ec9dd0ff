//! The web state of a session: cached pages, answers of the user, the number of searches.

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
use haft_sandbox::network::{NameResolver, SystemResolver};

use super::cache::PageCache;

/// The time for which pages are cached.
const CACHE_TIME: Duration = Duration::from_secs(15 * 60);
/// The time limit for a page, including redirects.
const WHOLE: Duration = Duration::from_secs(30);
/// The maximum size of a page, unpacked, in bytes.
const MAX_LENGTH: usize = 10 << 20;
const MAX_SEARCHES: u32 = 200;
/// The maximum total size of the files of a session, in bytes.
const MAX_STORED: u64 = 256 << 20;

/// The web limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebLimits {
    /// The time for which pages are cached.
    pub cache_ttl: Duration,
    /// The time limit for a page, including redirects.
    pub timeout: Duration,
    /// The maximum size of a page, unpacked, in bytes.
    pub max_page_bytes: usize,
    /// The maximum number of searches of a session and its subagents.
    pub max_searches: u32,
}

impl Default for WebLimits {
    fn default() -> Self {
        Self {
            cache_ttl: CACHE_TIME,
            timeout: WHOLE,
            max_page_bytes: MAX_LENGTH,
            max_searches: MAX_SEARCHES,
        }
    }
}

impl WebLimits {
    /// Reads the limits from environment variables; values that are not numbers are ignored.
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
            cache_ttl: kept.unwrap_or(usual.cache_ttl),
            max_searches: searches.unwrap_or(usual.max_searches),
            ..usual
        }
    }
}

/// The web state of a session and its subagents, as a service. Only fetched files, which are in the
/// session's folder, outlive the session.
pub struct WebSession {
    pub(super) limits: WebLimits,
    pub(super) cache: PageCache,
    pub(super) resolver: Arc<dyn NameResolver>,
    folder: PathBuf,
    searched: AtomicU32,
    /// The total size of the stored files, in bytes.
    stored_bytes: AtomicU64,
    /// Hosts at non-public addresses that the user allowed.
    granted: Mutex<HashSet<(String, IpAddr)>>,
}

impl WebSession {
    /// Creates the state. Files are stored in `folder`, which is created with the first file.
    pub fn new(folder: PathBuf, limits: WebLimits) -> Self {
        Self {
            limits,
            cache: PageCache::new(limits.cache_ttl),
            resolver: Arc::new(SystemResolver),
            folder,
            searched: AtomicU32::new(0),
            stored_bytes: AtomicU64::new(0),
            granted: Mutex::default(),
        }
    }

    /// Replaces the resolver.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn NameResolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Counts a search; false if the limit is reached.
    pub(super) fn may_search(&self) -> bool {
        let most = self.limits.max_searches;
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

    /// Stores fetched bytes as a file that is named after its content, and that only the owner can
    /// read.
    pub(super) fn store_file(&self, bytes: &[u8], extension: &str) -> io::Result<PathBuf> {
        let hash = ContentHash::compute(bytes).to_string();
        let name = format!("web-{}.{extension}", &hash[..32]);
        let path = self.folder.join(name);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let length = bytes.len() as u64;
        if self.stored_bytes.load(Ordering::Acquire) + length > MAX_STORED {
            let why = format!("this session has already stored {} MB", MAX_STORED >> 20);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, why));
        }
        let mut options = OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes)?;
                self.stored_bytes.fetch_add(length, Ordering::AcqRel);
            }
            // The name is the hash of the content, so the content is the same.
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
        assert_eq!(limits("1500").cache_ttl, Duration::from_millis(1500));
        assert_eq!(limits("0").cache_ttl, Duration::ZERO);
        for odd in ["", "-1", "+1", "1e3", "15 min", " 5", "0x10", "1.5", "１"] {
            assert_eq!(limits(odd), WebLimits::default(), "{odd}");
        }
        let searches = WebLimits::from_variables(|name| {
            (name == "CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION").then(|| "7".to_owned())
        });
        assert_eq!(searches.max_searches, 7);
    }

    #[test]
    fn limits_are_those_of_the_page_where_nothing_is_said() {
        let expected = WebLimits {
            cache_ttl: Duration::from_secs(900),
            timeout: Duration::from_secs(30),
            max_page_bytes: 10 * 1024 * 1024,
            max_searches: 200,
        };
        assert_eq!(WebLimits::from_variables(|_| None), expected);
    }

    #[test]
    fn searches_are_counted_for_all() {
        let limits = WebLimits {
            max_searches: 2,
            ..WebLimits::default()
        };
        let session = WebSession::new(PathBuf::new(), limits);
        assert_eq!([(); 3].map(|()| session.may_search()), [true, true, false]);
    }

    #[test]
    fn what_is_kept_is_named_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let session = WebSession::new(folder.path().join("kept"), WebLimits::default());
        let one = session.store_file(b"one", "bin").unwrap();
        assert_eq!(session.store_file(b"one", "bin").unwrap(), one);
        assert_ne!(session.store_file(b"two", "bin").unwrap(), one);
        assert_eq!(std::fs::read(one).unwrap(), b"one");
    }
}
