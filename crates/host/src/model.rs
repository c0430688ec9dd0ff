//! The model of a session: a provider, a script or a recording.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::Context;
use haft_agent::{AgentHandle, AutoCompact, ModelSettings};
use haft_engine::settings::Settings;
use haft_models::{
    Anthropic, Fallback, Http, HttpOptions, Model, OpenAi, Price, Prices, Recorder, Replay, Retry,
    RetryPolicy, ScriptedModel, ThinkingMode,
    anthropic::{self, AnthropicOptions},
    model_listing::split_window,
    openai::{self, OpenAiOptions},
};
use serde_json::Value;

use crate::{
    Environment, ModelChoice, ModelProvider, SessionConfig, ThinkingChoice,
    data::stored_key,
    key_helper::{self, KeyCommand},
    model_catalog::{ListSource, ModelCatalog, WindowProbe},
    model_names::{self, ModelNames},
};

/// The number of retries of an overloaded model before a fallback is used.
const MAX_OVERLOADED_RETRIES: u32 = 3;

/// The selected model.
pub(crate) struct SelectedModel {
    pub(crate) model: Arc<dyn Model>,
    /// The settings. The model's name is the provider's once it is [resolved](Self::resolve).
    pub(crate) settings: ModelSettings,
    pub(crate) prices: Prices,
    /// The fallback models, by the provider's names once they are resolved.
    pub(crate) fallbacks: Vec<String>,
    pub(crate) names: ModelNames,
    /// The origin of the key, as named in messages.
    pub(crate) key_source: &'static str,
    /// A provider that can search the web, and whether it is known to support it.
    #[cfg(feature = "web")]
    pub(crate) searches: Option<(Anthropic, bool)>,
    /// The recording that is replayed. At the end it reports requests that differ from it.
    pub(crate) replay: Option<Replay>,
    /// The file in which everything is recorded.
    record: Option<PathBuf>,
    retries: RetryPolicy,
    /// Whether the embedder provided the model and knows its name.
    is_given: bool,
    /// Whether no provider is used.
    is_offline: bool,
}

/// Selects the model by the configuration, the settings and the environment, in this order. `given`
/// is a model that replaces the provider. Makes no request.
pub(crate) fn select_model(
    config: &SessionConfig,
    settings: &Settings,
    given: Option<Arc<dyn Model>>,
) -> anyhow::Result<SelectedModel> {
    let (choice, environment) = (&config.model, &config.environment);
    let prices = prices(choice, settings)?;
    let (loaded, settings) = (settings, &settings.merged());
    let mut names = ModelNames::from_settings(settings, environment);
    names.names_flags = config.names_flags;
    let is_given = given.is_some();
    let is_offline = choice.script.is_some() || choice.replay.is_some() || is_given;
    let mut key_source = "none";
    let mut replay = None;
    #[cfg(feature = "web")]
    let mut searches = None;
    let model: Arc<dyn Model> = match (given, &choice.script, &choice.replay) {
        (_, _, Some(path)) => {
            let opened = Replay::open(path)?;
            replay = Some(opened.clone());
            Arc::new(opened)
        }
        (_, Some(path), None) => Arc::new(ScriptedModel::open(path)?),
        (Some(given), None, None) => given,
        (None, None, None) => {
            let (provider, source) = provider_client(choice, loaded, environment);
            key_source = source;
            names.catalog = Some(Arc::new(provider.catalog(environment)));
            #[cfg(feature = "web")]
            if let ProviderClient::Anthropic(http, options) = &provider {
                let is_known = options.base_url.is_empty()
                    || host_of_url(&options.base_url) == host_of_url(anthropic::BASE_URL);
                searches = Some((Anthropic::new(http.clone(), options.clone()), is_known));
            }
            provider.model()
        }
    };
    let name = name(choice, settings, environment);
    let name = name.or_else(|| is_offline.then(|| "scripted".to_owned()));
    let mut chosen = ModelSettings::new(name.unwrap_or_else(|| model_names::DEFAULT.to_owned()));
    chosen.thinking = thinking(choice, settings, environment)?;
    chosen.auto_compact = auto_compact(settings, environment)?;
    let effort = || settings["effortLevel"].as_str().map(str::to_owned);
    chosen.effort = choice.effort.clone().or_else(effort);
    if let Some(most) = environment.number("CLAUDE_CODE_MAX_OUTPUT_TOKENS")? {
        chosen.max_tokens = most;
    }
    Ok(SelectedModel {
        model,
        settings: chosen,
        prices,
        fallbacks: fallbacks(choice, settings),
        names,
        key_source,
        #[cfg(feature = "web")]
        searches,
        replay,
        record: choice.record.clone(),
        retries: RetryPolicy::from_variables(|name| environment.variable(name)),
        is_given,
        is_offline,
    })
}

impl SelectedModel {
    /// Resolves the names of the models, which may require a request to the provider, and assembles
    /// the model with its retries and fallbacks.
    pub(crate) async fn resolve(&mut self, control: &AgentHandle) -> anyhow::Result<()> {
        if !self.is_given {
            let wanted = self.settings.name.clone();
            let resolved = self.names.resolve(&wanted).await;
            self.settings.name = resolved.map_err(anyhow::Error::msg)?;
            self.settings.plan_name = self.names.planner(&wanted).await;
        }
        for name in &mut self.fallbacks {
            let resolved = self.names.resolve(name).await;
            *name = resolved.map_err(|why| anyhow::anyhow!("a fallback model: {why}"))?;
        }
        let is_known = self.resolve_limits();
        let mut model = Arc::clone(&self.model);
        if !self.fallbacks.is_empty() {
            let policy = RetryPolicy {
                max_overloaded: Some(MAX_OVERLOADED_RETRIES),
                ..self.retries.clone()
            };
            let retried: Arc<dyn Model> = Arc::new(Retry::new(model, policy));
            let mut fallback = Fallback::new(Arc::clone(&retried));
            for name in &self.fallbacks {
                fallback = fallback.then(Arc::clone(&retried), name.as_str());
            }
            model = Arc::new(fallback);
        } else if !self.is_offline {
            model = Arc::new(Retry::new(model, self.retries.clone()));
        }
        if let Some(catalog) = self.names.catalog.as_ref().filter(|_| !is_known) {
            model = Arc::new(WindowProbe::new(model, catalog, control));
        }
        if let Some(path) = &self.record {
            model = Arc::new(Recorder::create(model, path)?);
        }
        self.model = model;
        Ok(())
    }

    /// Returns the name of the provider in the conventions of telemetry.
    pub(crate) fn provider_name(
        &self,
        choice: &ModelChoice,
        environment: &Environment,
    ) -> &'static str {
        match provider(choice, environment) {
            _ if self.is_offline => "haft.scripted",
            ModelProvider::Anthropic => "anthropic",
            ModelProvider::OpenAi => "openai",
        }
    }

    /// Sets the limits of the model's input and output, if they are known. Returns whether the
    /// window is known.
    fn resolve_limits(&mut self) -> bool {
        let settings = &mut self.settings;
        let (id, said) = split_window(&settings.name);
        let catalog = self.names.catalog.as_ref();
        let listed = catalog.and_then(|catalog| catalog.cached_model(id));
        let window = said.or_else(|| listed.as_ref()?.window);
        if let Some(window) = window {
            settings.window = window;
            // A reply that may fill the window would leave no space for the input.
            if u64::from(settings.max_tokens) > window / 2 {
                settings.max_tokens = u32::try_from(window / 4).unwrap_or(u32::MAX).max(1);
            }
        }
        if let Some(most) = listed.and_then(|model| model.max_output) {
            settings.max_tokens = settings.max_tokens.min(most);
        }
        window.is_some()
    }
}

/// The client of the provider.
pub(crate) enum ProviderClient {
    Anthropic(Http, AnthropicOptions),
    OpenAi(Http, OpenAiOptions),
}

impl ProviderClient {
    fn model(self) -> Arc<dyn Model> {
        match self {
            Self::Anthropic(http, options) => Arc::new(Anthropic::new(http, options)),
            Self::OpenAi(http, options) => Arc::new(OpenAi::new(http, options)),
        }
    }

    /// Returns its model catalog.
    pub(crate) fn catalog(&self, environment: &Environment) -> ModelCatalog {
        let (kind, base, key) = match self {
            Self::Anthropic(_, options) => {
                let key = options.auth_token.as_ref().or(options.api_key.as_ref());
                ("anthropic", or(&options.base_url, anthropic::BASE_URL), key)
            }
            Self::OpenAi(_, options) => {
                let base = or(&options.base_url, openai::BASE_URL);
                ("openai", base, options.api_key.as_ref())
            }
        };
        let source = match self {
            Self::Anthropic(http, options) => {
                ListSource::Anthropic(Anthropic::new(http.clone(), options.clone()))
            }
            Self::OpenAi(http, options) => {
                ListSource::OpenAi(OpenAi::new(http.clone(), options.clone()))
            }
        };
        let key = key.map_or("", String::as_str);
        let identity = format!("{kind}\n{base}\n{key}");
        ModelCatalog::new(source, host_of_url(base), &identity, environment)
    }
}

fn or<'a>(given: &'a str, usual: &'a str) -> &'a str {
    if given.is_empty() { usual } else { given }
}

/// Returns the host of a URL; the other parts may contain secrets.
fn host_of_url(base: &str) -> String {
    let host = base.split_once("://").map_or(base, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or(host);
    host.rsplit('@').next().unwrap_or(host).to_owned()
}

/// The name of the key source for a stored key.
const STORED: &str = "haft login";

/// Returns the host of the provider, without parts of the URL that may be secret.
pub(crate) fn base_url(
    choice: &ModelChoice,
    provider: ModelProvider,
    environment: &Environment,
) -> String {
    let (variable, usual) = match provider {
        ModelProvider::Anthropic => ("ANTHROPIC_BASE_URL", anthropic::BASE_URL),
        ModelProvider::OpenAi => ("OPENAI_BASE_URL", openai::BASE_URL),
    };
    let given = choice.base_url.clone();
    let given = given.or_else(|| environment.variable(variable));
    match given {
        Some(url) => host_of_url(&url),
        None => host_of_url(usual),
    }
}

/// Returns the client of the provider, and the origin of the key.
pub(crate) fn provider_client(
    choice: &ModelChoice,
    settings: &Settings,
    environment: &Environment,
) -> (ProviderClient, &'static str) {
    let variable = |name: &str| environment.variable(name);
    let http = Http::new(HttpOptions::from_variables(variable));
    match provider(choice, environment) {
        ModelProvider::Anthropic => {
            let mut options = AnthropicOptions::from_variables(variable);
            if let Some(url) = &choice.base_url {
                options.base_url.clone_from(url);
            }
            options.betas.clone_from(&choice.betas);
            options.key_helper = KeyCommand::from_settings(settings, environment);
            let mut source = match (&options.auth_token, &options.api_key) {
                (Some(_), _) => "ANTHROPIC_AUTH_TOKEN",
                (None, Some(_)) => "ANTHROPIC_API_KEY",
                (None, None) if options.key_helper.is_some() => key_helper::SETTING,
                (None, None) => "none",
            };
            // The stored key belongs to the provider's own URL, and is never sent elsewhere.
            if source == "none" && options.base_url.is_empty() {
                options.api_key = stored_key(environment);
                if options.api_key.is_some() {
                    source = STORED;
                }
            }
            (ProviderClient::Anthropic(http, options), source)
        }
        ModelProvider::OpenAi => {
            let mut options = OpenAiOptions::from_variables(variable);
            if let Some(url) = &choice.base_url {
                options.base_url.clone_from(url);
            }
            options.key_helper = KeyCommand::from_settings(settings, environment);
            let source = match options.api_key {
                Some(_) => "OPENAI_API_KEY",
                None if options.key_helper.is_some() => key_helper::SETTING,
                None => "none",
            };
            (ProviderClient::OpenAi(http, options), source)
        }
    }
}

pub(crate) fn provider(choice: &ModelChoice, environment: &Environment) -> ModelProvider {
    if let Some(kind) = choice.provider {
        return kind;
    }
    if let Some(url) = &choice.base_url {
        let compatible = url.trim_end_matches('/').ends_with("/v1") && !url.contains("anthropic");
        return if compatible {
            ModelProvider::OpenAi
        } else {
            ModelProvider::Anthropic
        };
    }
    let set = |name| environment.variable(name).is_some();
    let anthropic =
        set("ANTHROPIC_API_KEY") || set("ANTHROPIC_AUTH_TOKEN") || set("ANTHROPIC_BASE_URL");
    if !anthropic && (set("OPENAI_API_KEY") || set("OPENAI_BASE_URL")) {
        ModelProvider::OpenAi
    } else {
        ModelProvider::Anthropic
    }
}

/// Returns the model name that the user chose, if any.
pub(crate) fn name(
    choice: &ModelChoice,
    settings: &Value,
    environment: &Environment,
) -> Option<String> {
    let from_settings = || settings["model"].as_str().map(str::to_owned);
    let from_variables = || {
        let own = match provider(choice, environment) {
            ModelProvider::Anthropic => None,
            ModelProvider::OpenAi => environment.variable("OPENAI_MODEL"),
        };
        own.or_else(|| environment.variable("ANTHROPIC_MODEL"))
    };
    let is_said = |name: &String| !name.trim().is_empty();
    let named = choice.name.clone().filter(is_said);
    let named = named.or_else(|| from_settings().filter(is_said));
    named.or_else(from_variables)
}

fn thinking(
    choice: &ModelChoice,
    settings: &Value,
    environment: &Environment,
) -> anyhow::Result<ThinkingMode> {
    let budget = match choice.max_thinking_tokens {
        Some(most) => Some(most),
        None => environment.number("MAX_THINKING_TOKENS")?,
    };
    let always = settings["alwaysThinkingEnabled"] == true;
    Ok(match (choice.thinking, budget) {
        (None, None) if always => ThinkingMode::Adaptive,
        (Some(ThinkingChoice::Disabled), _) | (None, None | Some(0)) => ThinkingMode::Off,
        (_, Some(most)) if most > 0 => ThinkingMode::Budget(most),
        (Some(ThinkingChoice::Adaptive), _) => ThinkingMode::Adaptive,
        (None, Some(_)) => ThinkingMode::Off,
    })
}

/// Returns whether and when a conversation is compacted automatically.
fn auto_compact(settings: &Value, environment: &Environment) -> anyhow::Result<AutoCompact> {
    let window = environment.number("CLAUDE_CODE_AUTO_COMPACT_WINDOW")?;
    let window = window.map(u64::from);
    let window = window.or_else(|| settings["autoCompactWindow"].as_u64());
    let is_off =
        settings["autoCompactEnabled"] == false || environment.is_on("DISABLE_AUTO_COMPACT");
    Ok(AutoCompact {
        is_off,
        window: window.filter(|window| *window > 0),
    })
}

fn fallbacks(choice: &ModelChoice, settings: &Value) -> Vec<String> {
    if !choice.fallbacks.is_empty() {
        return choice.fallbacks.clone();
    }
    match &settings["fallbackModel"] {
        Value::String(name) => vec![name.clone()],
        Value::Array(list) => {
            let names = list.iter().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the prices: the public list, overridden by `modelPrices` in the user's settings,
/// overridden by the given ones. Workspace settings are ignored, because they could make a budget
/// ineffective.
pub(crate) fn prices(choice: &ModelChoice, settings: &Settings) -> anyhow::Result<Prices> {
    let mut prices = Prices::listed();
    for layer in settings.layers.iter().rev() {
        let Some(given) = layer.document.value.get("modelPrices") else {
            continue;
        };
        if layer.from_workspace || !layer.scope.is_users() {
            continue;
        }
        prices = with(prices, given.clone()).context("modelPrices of the settings")?;
    }
    if let Some(given) = &choice.prices {
        prices = with(prices, given.clone()).context("the given prices")?;
    }
    Ok(prices)
}

fn with(prices: Prices, given: Value) -> serde_json::Result<Prices> {
    let map: BTreeMap<String, Price> = serde_json::from_value(given)?;
    Ok(map
        .into_iter()
        .fold(prices, |prices, (name, price)| prices.with(name, price)))
}
