//! Tokens in a file that only its owner can read. Only one process at a time changes it, so that a
//! token is refreshed only once.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use haft_contract::{BoxFuture, HttpTransport, SecretPath};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::login::{ClientRegistration, ask_for_token};
use crate::client::ServerTokens;

/// A token is refreshed this number of seconds before its expiry.
const EARLY: u64 = 60;
/// The time that another process may take to refresh a token.
const LOCKED: Duration = Duration::from_secs(30);

/// The stored token of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredToken {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// The expiry time in seconds since 1970.
    pub(super) expires: Option<u64>,
    /// The address of the token endpoint.
    pub(super) place: String,
    pub(super) resource: String,
    pub(super) client: ClientRegistration,
    /// The granted scopes, if known.
    #[serde(default)]
    pub(super) scope: Option<String>,
}

/// Stored tokens by server address.
#[derive(Clone)]
pub struct TokenStore {
    file: SecretPath,
    http: Arc<dyn HttpTransport>,
}

type StoredTokens = BTreeMap<String, StoredToken>;

impl TokenStore {
    /// Creates a store with this file.
    pub fn new(file: SecretPath, http: Arc<dyn HttpTransport>) -> Self {
        Self { file, http }
    }

    /// Returns whether there is a token for this server.
    pub fn has(&self, url: &str) -> bool {
        self.read().contains_key(url)
    }

    /// Returns the granted scopes of a server's token, if it was issued by this token endpoint.
    pub(super) fn scope(&self, url: &str, place: &str) -> Option<String> {
        let kept = self.read().remove(url)?;
        kept.scope.filter(|_| kept.place == place)
    }

    /// Removes the token of a server. Returns whether there was one.
    pub fn remove_token(&self, url: &str) -> Result<bool, String> {
        let _lock = TokenFileLock::take(&self.file).map_err(|error| self.failed(&error))?;
        let mut tokens = self.read();
        let was_there = tokens.remove(url).is_some();
        if was_there {
            self.write(&tokens).map_err(|error| self.failed(&error))?;
        }
        Ok(was_there)
    }

    pub(super) fn store_token(&self, url: &str, token: StoredToken) -> Result<(), String> {
        let _lock = TokenFileLock::take(&self.file).map_err(|error| self.failed(&error))?;
        let mut tokens = self.read();
        tokens.insert(url.to_owned(), token);
        self.write(&tokens).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> String {
        format!(
            "tokens cannot be stored in {}: {error}",
            self.file.display()
        )
    }

    fn read(&self) -> StoredTokens {
        let text = fs::read(&self.file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write(&self, tokens: &StoredTokens) -> io::Result<()> {
        let new = self
            .file
            .with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&new); // a leftover of a killed process
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(tokens)?)?;
        file.sync_all()?;
        fs::rename(new, &self.file)
    }

    /// Returns a usable token. If `is_bad` rejects the stored token, refreshes it.
    async fn good(&self, url: &str, is_bad: impl Fn(&StoredToken) -> bool) -> Option<String> {
        let kept = self.read().remove(url)?;
        if !is_bad(&kept) {
            return Some(kept.access);
        }
        let lock = TokenFileLock::wait(&self.file).await?;
        // Another process may have refreshed the token already.
        let kept = self.read().remove(url)?;
        if !is_bad(&kept) {
            return Some(kept.access);
        }
        let renewed = self.renew(&kept).await;
        match renewed {
            Ok(token) => {
                let access = token.access.clone();
                let mut tokens = self.read();
                tokens.insert(url.to_owned(), token);
                if let Err(error) = self.write(&tokens) {
                    tracing::warn!(%error, "a refreshed token cannot be stored");
                }
                drop(lock);
                Some(access)
            }
            Err(error) => {
                tracing::warn!(url, error, "a token cannot be refreshed");
                None
            }
        }
    }

    async fn renew(&self, kept: &StoredToken) -> Result<StoredToken, String> {
        let refresh = kept
            .refresh
            .as_deref()
            .ok_or("no refresh token is stored")?;
        let grant = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh),
            ("resource", kept.resource.as_str()),
        ];
        let answer = ask_for_token(&*self.http, &kept.place, &kept.client, &grant).await?;
        let mut token =
            StoredToken::from_response(&answer, &kept.place, &kept.resource, kept.client.clone())?;
        token.refresh = token.refresh.or_else(|| kept.refresh.clone());
        token.scope = token.scope.or_else(|| kept.scope.clone());
        Ok(token)
    }
}

impl ServerTokens for TokenStore {
    fn token<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Option<String>> {
        let ends = |kept: &StoredToken| kept.expires.is_some_and(|at| at <= now() + EARLY);
        Box::pin(self.good(url, ends))
    }

    fn renewed<'a>(&'a self, url: &'a str, refused: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.good(url, move |kept| kept.access == refused))
    }
}

/// Returns the current time in seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map(|since| since.as_secs()).unwrap_or_default()
}

/// The cross-process lock for changing the file; it is released when its process exits.
struct TokenFileLock(#[expect(dead_code, reason = "held, not read")] File);

impl TokenFileLock {
    fn open(file: &Path) -> io::Result<File> {
        if let Some(folder) = file.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let lock = file.with_extension("lock");
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(lock)
    }

    fn take(file: &Path) -> io::Result<Self> {
        let lock = Self::open(file)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Self(lock))
    }

    async fn wait(file: &Path) -> Option<Self> {
        let lock = Self::open(file).ok()?;
        let began = tokio::time::Instant::now();
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            if began.elapsed() > LOCKED {
                return None;
            }
            sleep(Duration::from_millis(50)).await;
        }
        Some(Self(lock))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use haft_contract::{HttpFailure, HttpRequest, HttpResponse, SecretFile};

    use super::*;

    struct Nowhere;

    impl HttpTransport for Nowhere {
        fn open(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>> {
            Box::pin(async {
                Err(HttpFailure {
                    message: "nowhere".to_owned(),
                    is_transient: false,
                })
            })
        }
    }

    fn token(access: &str, expires: Option<u64>) -> StoredToken {
        StoredToken {
            access: access.to_owned(),
            refresh: None,
            expires,
            place: "https://a/token".to_owned(),
            resource: "https://a".to_owned(),
            client: ClientRegistration {
                id: "us".to_owned(),
                secret: None,
                method: "none".to_owned(),
            },
            scope: None,
        }
    }

    #[tokio::test]
    async fn tokens_are_kept_for_their_owner_alone_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let file = SecretFile::McpTokens.below(dir.path());
        let store = TokenStore::new(file.clone(), Arc::new(Nowhere));
        assert_eq!(store.token("https://a").await, None);
        store
            .store_token("https://a", token("t", Some(now() + 3600)))
            .unwrap();
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(store.token("https://a").await.as_deref(), Some("t"));
        assert_eq!(store.token("https://b").await, None);
        // One that ends soon, or was refused, and cannot be renewed is none.
        assert_eq!(store.renewed("https://a", "t").await, None);
        assert_eq!(
            store.renewed("https://a", "other").await.as_deref(),
            Some("t")
        );
        store
            .store_token("https://a", token("u", Some(now() + 10)))
            .unwrap();
        assert_eq!(store.token("https://a").await, None);
        assert!(store.remove_token("https://a").unwrap());
        assert!(!store.remove_token("https://a").unwrap());
    }
}
