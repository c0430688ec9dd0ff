//! Who answers: a provider, a script or a recording.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use haft_agent::ModelSettings;
use haft_engine::settings::Settings;
use haft_models::{
    Anthropic, Fallback, Http, HttpOptions, Model, OpenAi, Price, Prices, Recorder, Replay, Retry,
    RetryPolicy, Scripted, Thinking, anthropic::AnthropicOptions, openai::OpenAiOptions,
};
use serde_json::Value;

use crate::{Environment, ModelChoice, ModelProvider, ThinkingChoice, names::Names};

/// How often an overloaded model is asked again before another takes over.
const PATIENCE: u32 = 3;

/// Who answers.
pub(crate) struct Chosen {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: ModelSettings,
    pub(crate) prices: Prices,
    /// Those that take over, as the provider names them.
    pub(crate) fallbacks: Vec<String>,
    pub(crate) names: Names,
    /// Where the key comes from, as messages name it.
    pub(crate) key_source: &'static str,
    /// A recording that is played: in the end it tells where it was asked otherwise.
    pub(crate) replay: Option<Replay>,
    /// What to say of the name that was chosen.
    pub(crate) warning: Option<String>,
}

/// Chooses by the configuration, then the environment, then the settings. `given`: who answers in place of
/// a provider.
pub(crate) fn choose(
    choice: &ModelChoice,
    settings: &Settings,
    environment: &Environment,
    given: Option<Arc<dyn Model>>,
) -> anyhow::Result<Chosen> {
    let prices = prices(choice, settings)?;
    let settings = &settings.merged();
    let names = Names::of(settings, environment);
    let fallbacks = fallbacks(choice, settings, &names)?;
    let is_given = given.is_some();
    let offline = choice.script.is_some() || choice.replay.is_some() || is_given;
    let (mut model, key_source) = match given {
        Some(given) => (given, "none"),
        None => ask(choice, environment),
    };
    let retries = || RetryPolicy::from_variables(|name| environment.variable(name));
    let mut replay = None;
    if let Some(path) = &choice.script {
        model = Arc::new(Scripted::open(path)?);
    }
    if let Some(path) = &choice.replay {
        let opened = Replay::open(path)?;
        replay = Some(opened.clone());
        model = Arc::new(opened);
    }
    if !fallbacks.is_empty() {
        let policy = RetryPolicy {
            max_overloaded: Some(PATIENCE),
            ..retries()
        };
        let retried: Arc<dyn Model> = Arc::new(Retry::new(model, policy));
        let mut fallback = Fallback::new(Arc::clone(&retried));
        for name in &fallbacks {
            fallback = fallback.then(Arc::clone(&retried), name.as_str());
        }
        model = Arc::new(fallback);
    } else if !offline {
        model = Arc::new(Retry::new(model, retries()));
    }
    if let Some(path) = &choice.record {
        model = Arc::new(Recorder::create(model, path)?);
    }
    let name = name(choice, settings, environment, offline)?;
    // Who brings a model knows its name.
    let warning = names.unknown(&name).filter(|_| !is_given);
    let name = match is_given {
        true => name,
        false => names.choose(&name).map_err(anyhow::Error::msg)?,
    };
    let mut chosen = ModelSettings::new(name);
    chosen.thinking = thinking(choice, environment)?;
    let effort = || settings["effortLevel"].as_str().map(str::to_owned);
    chosen.effort = choice.effort.clone().or_else(effort);
    if let Some(most) = environment.number("CLAUDE_CODE_MAX_OUTPUT_TOKENS")? {
        chosen.max_tokens = most;
    }
    Ok(Chosen {
        model,
        settings: chosen,
        prices,
        fallbacks,
        names,
        key_source: if offline { "none" } else { key_source },
        replay,
        warning,
    })
}

fn ask(choice: &ModelChoice, environment: &Environment) -> (Arc<dyn Model>, &'static str) {
    let variable = |name: &str| environment.variable(name);
    let http = Http::new(HttpOptions::from_variables(variable));
    match provider(choice, environment) {
        ModelProvider::Anthropic => {
            let mut options = AnthropicOptions::from_variables(variable);
            if let Some(url) = &choice.base_url {
                options.base_url.clone_from(url);
            }
            options.betas.clone_from(&choice.betas);
            let source = match (&options.auth_token, &options.api_key) {
                (Some(_), _) => "ANTHROPIC_AUTH_TOKEN",
                (None, Some(_)) => "ANTHROPIC_API_KEY",
                (None, None) => "none",
            };
            (Arc::new(Anthropic::new(http, options)), source)
        }
        ModelProvider::OpenAi => {
            let mut options = OpenAiOptions::from_variables(variable);
            if let Some(url) = &choice.base_url {
                options.base_url.clone_from(url);
            }
            let source = match options.api_key {
                Some(_) => "OPENAI_API_KEY",
                None => "none",
            };
            (Arc::new(OpenAi::new(http, options)), source)
        }
    }
}

fn provider(choice: &ModelChoice, environment: &Environment) -> ModelProvider {
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

fn name(
    choice: &ModelChoice,
    settings: &Value,
    environment: &Environment,
    offline: bool,
) -> anyhow::Result<String> {
    let from_settings = || settings["model"].as_str().map(str::to_owned);
    let named = choice.name.clone();
    let named = named.or_else(|| environment.variable("ANTHROPIC_MODEL"));
    named
        .or_else(from_settings)
        .filter(|name| !name.trim().is_empty())
        .or_else(|| offline.then(|| "scripted".to_owned()))
        .context(
            "no model is chosen: give --model, or set ANTHROPIC_MODEL or `model` in the settings",
        )
}

fn thinking(choice: &ModelChoice, environment: &Environment) -> anyhow::Result<Thinking> {
    let budget = match choice.max_thinking_tokens {
        Some(most) => Some(most),
        None => environment.number("MAX_THINKING_TOKENS")?,
    };
    Ok(match (choice.thinking, budget) {
        (Some(ThinkingChoice::Disabled), _) | (None, None | Some(0)) => Thinking::Off,
        (_, Some(most)) if most > 0 => Thinking::Budget(most),
        (Some(ThinkingChoice::Adaptive), _) => Thinking::Adaptive,
        (None, Some(_)) => Thinking::Off,
    })
}

fn fallbacks(choice: &ModelChoice, settings: &Value, names: &Names) -> anyhow::Result<Vec<String>> {
    let mut given = choice.fallbacks.clone();
    if given.is_empty() {
        given = match &settings["fallbackModel"] {
            Value::String(name) => vec![name.clone()],
            Value::Array(list) => list
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        };
    }
    let chosen = given.iter().map(|name| names.choose(name));
    chosen
        .collect::<Result<_, _>>()
        .map_err(|why| anyhow::anyhow!("a model that takes over: {why}"))
}

/// None is built in. Those of the settings, `modelPrices`, count below the flag's; a workspace has no say
/// in them, or it could void a budget.
fn prices(choice: &ModelChoice, settings: &Settings) -> anyhow::Result<Prices> {
    let mut prices = Prices::default();
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
        prices = with(prices, given.clone()).context("--prices")?;
    }
    Ok(prices)
}

fn with(prices: Prices, given: Value) -> serde_json::Result<Prices> {
    let map: BTreeMap<String, Price> = serde_json::from_value(given)?;
    Ok(map
        .into_iter()
        .fold(prices, |prices, (name, price)| prices.with(name, price)))
}
