//! The sessions of clients.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;

use super::{
    access::TokenHolder,
    streams::{ReplyStream, ReplyStreams},
};
use crate::{
    RpcMessage,
    server::{
        parked::{ParkedRequests, random_name},
        service::{LogLevel, McpService, OpenSession, SessionNotifier},
        session::McpSession,
    },
};

/// The maximum number of sessions, and of clients of the stateless revision.
const MAX_SESSIONS: usize = 64;

pub(super) struct HttpSessions {
    open: Arc<dyn OpenSession>,
    idle: Duration,
    gone: Duration,
    by_id: Mutex<HashMap<String, Arc<HttpSession>>>,
    /// The number of sessions that are being opened.
    opening: AtomicUsize,
    stateless: Mutex<HashMap<StatelessClientKey, Arc<StatelessClient>>>,
}

/// A session that started with `initialize`.
pub(super) struct HttpSession {
    pub(super) id: String,
    pub(super) mcp: Arc<McpSession>,
    pub(super) streams: ReplyStreams,
    /// The stream for messages that belong to no request.
    pub(super) standing: Arc<ReplyStream>,
    holder: TokenHolder,
    usage: UseTracker,
}

/// Distinguishes clients of the stateless revision: by their token and their description of
/// themselves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct StatelessClientKey {
    pub(super) holder: TokenHolder,
    pub(super) client: String,
}

/// A client of the stateless revision, with the shared state of its requests.
#[derive(Default)]
pub(super) struct StatelessClient {
    service: OnceCell<Arc<dyn McpService>>,
    parked: Arc<ParkedRequests>,
    usage: UseTracker,
}

/// The time of the last use, and the number of current uses.
pub(super) struct UseTracker {
    last: Mutex<Instant>,
    now: AtomicUsize,
}

impl Default for UseTracker {
    fn default() -> Self {
        Self {
            last: Mutex::new(Instant::now()),
            now: AtomicUsize::new(0),
        }
    }
}

impl UseTracker {
    fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the target is unused now and was unused for this time.
    fn is_over_for(&self, time: Duration) -> bool {
        self.now.load(Ordering::Relaxed) == 0 && self.last().elapsed() >= time
    }
}

/// Marks its target as used until it is dropped.
pub(super) struct InUse<T: TrackedUse>(Arc<T>);

pub(super) trait TrackedUse: Send + Sync {
    fn usage(&self) -> &UseTracker;
}

impl TrackedUse for HttpSession {
    fn usage(&self) -> &UseTracker {
        &self.usage
    }
}

impl TrackedUse for StatelessClient {
    fn usage(&self) -> &UseTracker {
        &self.usage
    }
}

impl<T: TrackedUse> InUse<T> {
    pub(super) fn new(used: &Arc<T>) -> Self {
        used.usage().now.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(used))
    }
}

impl<T: TrackedUse> Drop for InUse<T> {
    fn drop(&mut self) {
        let usage = self.0.usage();
        usage.touch();
        usage.now.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HttpSessions {
    /// Creates the set of sessions. Unused ones end after `idle`; the requests of a session whose
    /// client sends nothing for `gone` are cancelled.
    pub(super) fn new(open: Arc<dyn OpenSession>, idle: Duration, gone: Duration) -> Self {
        Self {
            open,
            idle,
            gone,
            by_id: Mutex::default(),
            opening: AtomicUsize::new(0),
            stateless: Mutex::default(),
        }
    }

    /// Opens a new session. The error says why that failed.
    pub(super) async fn begin(&self, holder: TokenHolder) -> Result<Arc<HttpSession>, String> {
        let _opening = self.place()?;
        let standing = ReplyStream::new(0);
        let known = Arc::default();
        let service = self.open.open(notifier(&standing, &known)).await?;
        let mcp = McpSession::new(service, Arc::default());
        let _ = known.set(Arc::downgrade(&mcp)); // it is set only here
        let session = Arc::new(HttpSession {
            id: random_name(),
            mcp,
            streams: ReplyStreams::default(),
            standing,
            holder,
            usage: UseTracker::default(),
        });
        self.all().insert(session.id.clone(), Arc::clone(&session));
        Ok(session)
    }

    /// Reserves a place for another session until the returned value is dropped.
    fn place(&self) -> Result<SessionSlot<'_>, String> {
        let place = SessionSlot::take(&self.opening);
        let open = || self.all().len() + self.opening.load(Ordering::Relaxed);
        if open() > MAX_SESSIONS {
            self.end_idle();
        }
        if open() > MAX_SESSIONS {
            self.end_oldest();
        }
        match open() > MAX_SESSIONS {
            true => Err(format!(
                "{MAX_SESSIONS} sessions are open already; end one (DELETE), or wait until an unused one expires"
            )),
            false => Ok(place),
        }
    }

    /// Ends the least recently used session whose client seems to be gone. If the client still
    /// exists, it can start another session.
    fn end_oldest(&self) {
        let mut all = self.all();
        let unused = all
            .values()
            .filter(|session| session.usage.is_over_for(self.gone) && !session.mcp.is_busy());
        let oldest = unused.min_by_key(|session| session.usage.last());
        let Some(id) = oldest.map(|session| session.id.clone()) else {
            return;
        };
        if let Some(session) = all.remove(&id) {
            haft_contract::spawn_boxed(async move { session.mcp.close().await });
        }
    }

    /// Returns the session with this id, if it belongs to this holder.
    pub(super) fn find(&self, id: &str, holder: TokenHolder) -> Option<Arc<HttpSession>> {
        let session = self.all().get(id).cloned();
        let session = session.filter(|session| session.holder == holder)?;
        session.usage.touch();
        Some(session)
    }

    /// Returns the client of a request in the stateless revision, and a session for this request.
    /// The error says why that failed.
    pub(super) async fn stateless(
        &self,
        name: StatelessClientKey,
    ) -> Result<(InUse<StatelessClient>, Arc<McpSession>), String> {
        let client = {
            let mut all = self.all_stateless();
            if !all.contains_key(&name) && all.len() >= MAX_SESSIONS {
                drop(all);
                self.end_oldest_stateless()?;
                all = self.all_stateless();
            }
            Arc::clone(all.entry(name).or_default())
        };
        let in_use = InUse::new(&client);
        let silent = SessionNotifier::new(|_, _| {});
        let opening = || self.open.open(silent);
        let service = client.service.get_or_try_init(opening).await?;
        let session = McpSession::new(Arc::clone(service), Arc::clone(&client.parked));
        Ok((in_use, session))
    }

    /// Frees a place. A client of the stateless revision is not notified when it is forgotten, so
    /// only the least recently used one is removed.
    fn end_oldest_stateless(&self) -> Result<(), String> {
        let mut all = self.all_stateless();
        let unused = all
            .iter()
            .filter(|(_, client)| client.usage.is_over_for(Duration::ZERO));
        let oldest = unused.min_by_key(|(_, client)| client.usage.last());
        let Some(name) = oldest.map(|(name, _)| name.clone()) else {
            return Err(format!("{MAX_SESSIONS} clients are connected already"));
        };
        let client = all.remove(&name);
        drop(all);
        end_later(client);
        Ok(())
    }

    /// Ends a session of this holder. Returns `false` if it does not exist.
    pub(super) async fn end(&self, id: &str, holder: TokenHolder) -> bool {
        let session = {
            let mut all = self.all();
            let is_theirs = all.get(id).is_some_and(|found| found.holder == holder);
            is_theirs.then(|| all.remove(id)).flatten()
        };
        match session {
            Some(session) => {
                session.mcp.close().await;
                true
            }
            None => false,
        }
    }

    /// Returns the interval between two searches for unused sessions.
    pub(super) fn sweep_every(&self) -> Duration {
        let shorter = self.idle.min(self.gone);
        (shorter / 4).clamp(Duration::from_millis(50), Duration::from_secs(60))
    }

    /// Ends unused sessions, and cancels the requests of clients that have disconnected.
    pub(super) fn end_idle(&self) {
        let mut ended = Vec::new();
        self.all().retain(|_, session| {
            if session.usage.is_over_for(self.gone) {
                session.mcp.cancel_all();
            }
            let is_idle = session.usage.is_over_for(self.idle) && !session.mcp.is_busy();
            if is_idle {
                ended.push(Arc::clone(session));
            }
            !is_idle
        });
        for session in ended {
            haft_contract::spawn_boxed(async move { session.mcp.close().await });
        }
        let mut forgotten = Vec::new();
        self.all_stateless().retain(|_, client| {
            let is_idle = client.usage.is_over_for(self.idle);
            if is_idle {
                forgotten.push(Arc::clone(client));
            }
            !is_idle
        });
        end_later(forgotten);
    }

    pub(super) async fn end_all(&self) {
        let all = std::mem::take(&mut *self.all());
        for session in all.into_values() {
            session.mcp.close().await;
        }
        let all = std::mem::take(&mut *self.all_stateless());
        for client in all.into_values() {
            if let Some(service) = client.service.get() {
                service.close().await;
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_stateless(&self) -> MutexGuard<'_, HashMap<StatelessClientKey, Arc<StatelessClient>>> {
        self.stateless
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reserved place for a session that is being opened.
struct SessionSlot<'a>(&'a AtomicUsize);

impl<'a> SessionSlot<'a> {
    fn take(opening: &'a AtomicUsize) -> Self {
        opening.fetch_add(1, Ordering::Relaxed);
        Self(opening)
    }
}

impl Drop for SessionSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn end_later(clients: impl IntoIterator<Item = Arc<StatelessClient>>) {
    for client in clients {
        if let Some(service) = client.service.get().cloned() {
            haft_contract::spawn_boxed(async move { service.close().await });
        }
    }
}

/// Creates a notifier whose messages wait until the client listens. It must not keep the session
/// alive.
fn notifier(
    standing: &Arc<ReplyStream>,
    known: &Arc<OnceLock<Weak<McpSession>>>,
) -> SessionNotifier {
    let (standing, known) = (Arc::downgrade(standing), Arc::clone(known));
    SessionNotifier::new(move |method, params| {
        let Some(standing) = standing.upgrade() else {
            return;
        };
        let level = params["level"].as_str().and_then(LogLevel::parse);
        let session = known.get().and_then(Weak::upgrade);
        // Before `initialize`, the client could not set a log level.
        let is_wanted =
            session.is_none_or(|session| level.is_none_or(|level| session.wants_log(level)));
        if is_wanted {
            standing.push(&RpcMessage::notification(method, params));
        }
    })
}
