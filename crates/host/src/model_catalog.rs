//! The list of models from a provider, fetched when needed and cached for a day.
//!
//! A session that names its model fetches nothing, because starting a session should cost no
//! request. The size of the model's context window is fetched when the conversation has grown
//! enough for it to matter.

use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::StreamExt;
use haft_agent::AgentHandle;
use haft_contract::CancellationToken;
use haft_models::{
    Anthropic, ErrorKind, EventStream, Model, ModelError, ModelEvent, ModelInfo, ModelRequest,
    OpenAi,
};
use serde::{Deserialize, Serialize};
use tokio::{sync::OnceCell, time::timeout};

use crate::Environment;

/// The time for which a list is used.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The timeout for fetching a list.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// The number of tokens from which the window size matters if the usual window of the server is
/// unknown.
const MATTERS: u64 = 4_000;
/// The number of tokens from which it matters at a provider whose usual window size is known.
const MATTERS_AT_PROVIDER: u64 = 100_000;

/// The client that fetches the list.
#[derive(Debug, Clone)]
pub(crate) enum ListSource {
    Anthropic(Anthropic),
    OpenAi(OpenAi),
}

/// The models of one provider, for one key.
#[derive(Debug)]
pub(crate) struct ModelCatalog {
    source: ListSource,
    /// The origin of the list, as human-readable text.
    pub(crate) place: String,
    cache: Option<PathBuf>,
    listed: OnceCell<Result<Vec<ModelInfo>, ListFailure>>,
}

/// The reason why the list is not available.
#[derive(Debug, Clone)]
pub(crate) struct ListFailure {
    pub(crate) text: String,
    /// Whether the provider was not asked or denied access, so that nothing else is available from
    /// it either.
    pub(crate) no_access: bool,
}

#[derive(Serialize, Deserialize)]
struct CachedModelList {
    /// The time of the request, in seconds since 1970.
    asked: u64,
    models: Vec<ModelInfo>,
}

impl ModelCatalog {
    /// Creates a catalog. `identity` is what the list depends on, such as the address and key; only
    /// a hash of it is stored.
    pub(crate) fn new(
        source: ListSource,
        place: String,
        identity: &str,
        environment: &Environment,
    ) -> Self {
        let name = blake3::hash(identity.as_bytes()).to_hex();
        let folder = environment.cache_folder();
        Self {
            source,
            place,
            cache: folder.map(|folder| folder.join(format!("models-{}.json", &name[..16]))),
            listed: OnceCell::new(),
        }
    }

    /// Returns the cached list if it is less than a day old, or fetches a new one.
    pub(crate) async fn list(&self) -> Result<&[ModelInfo], ListFailure> {
        let listed = self.listed.get_or_init(|| async {
            match self.read_cache() {
                Some(models) => Ok(models),
                None => self.fetch().await,
            }
        });
        listed.await.as_deref().map_err(Clone::clone)
    }

    /// Fetches a new list, regardless of the cache on disk; a list already fetched by this catalog
    /// is reused.
    pub(crate) async fn refresh(&self) -> Result<&[ModelInfo], ListFailure> {
        let listed = self.listed.get_or_init(|| self.fetch());
        listed.await.as_deref().map_err(Clone::clone)
    }

    /// Returns the cached data of a model without a request.
    pub(crate) fn cached_model(&self, id: &str) -> Option<ModelInfo> {
        let listed = self.listed.get().and_then(|listed| listed.as_ref().ok());
        let find = |models: &[ModelInfo]| models.iter().find(|model| model.id == id).cloned();
        match listed {
            Some(models) => find(models),
            None => find(&self.read_cache()?),
        }
    }

    /// Returns the cached list without a request.
    pub(crate) fn all_known(&self) -> Option<Vec<ModelInfo>> {
        let listed = self.listed.get().and_then(|listed| listed.as_ref().ok());
        listed.cloned().or_else(|| self.read_cache())
    }

    /// Returns whether short names denote model families.
    pub(crate) fn has_families(&self) -> bool {
        matches!(self.source, ListSource::Anthropic(_))
    }

    fn read_cache(&self) -> Option<Vec<ModelInfo>> {
        let text = fs::read_to_string(self.cache.as_ref()?).ok()?;
        let kept: CachedModelList = serde_json::from_str(&text).ok()?;
        let is_young = (kept.asked..kept.asked + DAY.as_secs()).contains(&now());
        (is_young && !kept.models.is_empty()).then_some(kept.models)
    }

    async fn fetch(&self) -> Result<Vec<ModelInfo>, ListFailure> {
        let never = CancellationToken::new();
        let asked = async {
            match &self.source {
                ListSource::Anthropic(provider) => provider.models(&never).await,
                ListSource::OpenAi(provider) => provider.models(&never).await,
            }
        };
        let models = match timeout(MAX_WAIT, asked).await {
            Ok(Ok(models)) => models,
            Ok(Err(error)) => {
                return Err(ListFailure {
                    text: error.to_string(),
                    no_access: error.kind == ErrorKind::Auth,
                });
            }
            Err(_) => {
                let seconds = MAX_WAIT.as_secs();
                return Err(ListFailure {
                    text: format!("no answer within {seconds} s"),
                    no_access: false,
                });
            }
        };
        if let Some(cache) = self.cache.as_deref().filter(|_| !models.is_empty()) {
            let kept = CachedModelList {
                asked: now(),
                models: models.clone(),
            };
            // A list that cannot be stored is fetched again next time.
            if let Err(error) = write_cache(cache, &kept) {
                tracing::debug!(%error, "the list of models cannot be cached");
            }
        }
        Ok(models)
    }
}

/// Replaces the file atomically, because another process may be reading it.
fn write_cache(file: &Path, kept: &CachedModelList) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = file.with_extension(format!("{}.new", std::process::id()));
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    serde_json::to_writer(options.open(&new)?, kept)?;
    fs::rename(&new, file)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Fetches the size of the model's window in the background, once it matters.
#[derive(Debug)]
pub(crate) struct WindowProbe {
    inner: Arc<dyn Model>,
    catalog: Arc<ModelCatalog>,
    control: AgentHandle,
    from: u64,
    has_asked: Arc<AtomicBool>,
}

impl WindowProbe {
    pub(crate) fn new(
        inner: Arc<dyn Model>,
        catalog: &Arc<ModelCatalog>,
        control: &AgentHandle,
    ) -> Self {
        let from = match &catalog.source {
            ListSource::Anthropic(_) => MATTERS_AT_PROVIDER,
            ListSource::OpenAi(_) => MATTERS,
        };
        Self {
            inner,
            catalog: Arc::clone(catalog),
            control: control.clone(),
            from,
            has_asked: Arc::default(),
        }
    }
}

impl Model for WindowProbe {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let name = request.model.clone();
        let stream = self.inner.stream(request, cancel);
        if self.has_asked.load(Ordering::Relaxed) {
            return stream;
        }
        let (catalog, control) = (Arc::clone(&self.catalog), self.control.clone());
        let (from, has_asked) = (self.from, Arc::clone(&self.has_asked));
        let look = move |event: &Result<ModelEvent, ModelError>| {
            let Ok(ModelEvent::Usage { usage, .. }) = event else {
                return;
            };
            let read = usage.input + usage.cache_read + usage.cache_write;
            if read < from || has_asked.swap(true, Ordering::Relaxed) {
                return;
            }
            let (catalog, control, name) = (Arc::clone(&catalog), control.clone(), name.clone());
            haft_contract::spawn_boxed(async move {
                let listed = catalog.list().await.unwrap_or_default();
                let model = listed.iter().find(|model| model.id == name);
                if let Some(window) = model.and_then(|model| model.window) {
                    control.set_window(window);
                }
            });
        };
        Box::pin(stream.inspect(look))
    }
}
