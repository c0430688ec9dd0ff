//! Who answers: a provider, a script or a recording.

use std::{collections::BTreeMap, fs, sync::Arc};

use anyhow::Context;
use haft::{contract::secrets, engine::settings::Settings};
use haft_agent::ModelSettings;
use haft_models::{
    Anthropic, Fallback, Http, HttpOptions, Model, OpenAi, Price, Prices, Recorder, Replay, Retry,
    RetryPolicy, Scripted, Thinking, anthropic::AnthropicOptions, openai::OpenAiOptions,
};
use serde_json::Value;

use super::{
    flags::{ModelFlags, ProviderKind, ThinkingFlag},
    names::Names,
};
use crate::show;

/// How often an overloaded model is asked again before another takes over.
const PATIENCE: u32 = 3;

/// Who answers.
pub(super) struct Chosen {
    pub(super) model: Arc<dyn Model>,
    pub(super) settings: ModelSettings,
    pub(super) prices: Prices,
    /// Those that take over, as the provider names them.
    pub(super) fallbacks: Vec<String>,
    pub(super) names: Names,
    /// Where the key comes from, as messages name it.
    pub(super) key_source: &'static str,
    /// A recording that is played: in the end it tells where it was asked otherwise.
    pub(super) replay: Option<Replay>,
}

/// Chooses by flags, then the environment, then the settings.
pub(super) fn choose(flags: &ModelFlags, settings: &Settings) -> anyhow::Result<Chosen> {
    let prices = prices(flags, settings)?;
    let settings = &settings.merged();
    let names = Names::of(settings);
    let fallbacks = fallbacks(flags, settings, &names)?;
    let offline = flags.script.is_some() || flags.replay.is_some();
    let (mut model, key_source) = ask(flags)?;
    let mut replay = None;
    if let Some(path) = &flags.script {
        model = Arc::new(Scripted::open(path)?);
    }
    if let Some(path) = &flags.replay {
        let opened = Replay::open(path)?;
        replay = Some(opened.clone());
        model = Arc::new(opened);
    }
    if !fallbacks.is_empty() {
        let policy = RetryPolicy {
            max_overloaded: Some(PATIENCE),
            ..RetryPolicy::from_env()
        };
        let retried: Arc<dyn Model> = Arc::new(Retry::new(model, policy));
        let mut fallback = Fallback::new(Arc::clone(&retried));
        for name in &fallbacks {
            fallback = fallback.then(Arc::clone(&retried), name.as_str());
        }
        model = Arc::new(fallback);
    } else if !offline {
        model = Arc::new(Retry::new(model, RetryPolicy::from_env()));
    }
    if let Some(path) = &flags.record {
        model = Arc::new(Recorder::create(model, path)?);
    }
    let name = name(flags, settings, offline)?;
    if let Some(told) = names.unknown(&name) {
        show::warn(&format!("haft: {told}"));
    }
    let mut chosen = ModelSettings::new(names.choose(&name).map_err(anyhow::Error::msg)?);
    chosen.thinking = thinking(flags)?;
    let effort = || settings["effortLevel"].as_str().map(str::to_owned);
    chosen.effort = flags.effort.clone().or_else(effort);
    if let Some(most) = number("CLAUDE_CODE_MAX_OUTPUT_TOKENS")? {
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
    })
}

fn ask(flags: &ModelFlags) -> anyhow::Result<(Arc<dyn Model>, &'static str)> {
    let http = Http::new(HttpOptions::from_env());
    Ok(match kind(flags) {
        ProviderKind::Anthropic => {
            let mut options = AnthropicOptions::from_env();
            if let Some(url) = &flags.base_url {
                options.base_url.clone_from(url);
            }
            options.betas.clone_from(&flags.betas);
            let source = match (&options.auth_token, &options.api_key) {
                (Some(_), _) => "ANTHROPIC_AUTH_TOKEN",
                (None, Some(_)) => "ANTHROPIC_API_KEY",
                (None, None) => "none",
            };
            (Arc::new(Anthropic::new(http, options)), source)
        }
        ProviderKind::Openai => {
            let mut options = OpenAiOptions::from_env();
            if let Some(url) = &flags.base_url {
                options.base_url.clone_from(url);
            }
            let source = match options.api_key {
                Some(_) => "OPENAI_API_KEY",
                None => "none",
            };
            (Arc::new(OpenAi::new(http, options)), source)
        }
    })
}

fn kind(flags: &ModelFlags) -> ProviderKind {
    if let Some(kind) = flags.provider {
        return kind;
    }
    if let Some(url) = &flags.base_url {
        let compatible = url.trim_end_matches('/').ends_with("/v1") && !url.contains("anthropic");
        return if compatible {
            ProviderKind::Openai
        } else {
            ProviderKind::Anthropic
        };
    }
    let set = |name| variable(name).is_some();
    let anthropic =
        set("ANTHROPIC_API_KEY") || set("ANTHROPIC_AUTH_TOKEN") || set("ANTHROPIC_BASE_URL");
    if !anthropic && (set("OPENAI_API_KEY") || set("OPENAI_BASE_URL")) {
        ProviderKind::Openai
    } else {
        ProviderKind::Anthropic
    }
}

fn name(flags: &ModelFlags, settings: &Value, offline: bool) -> anyhow::Result<String> {
    let from_settings = || settings["model"].as_str().map(str::to_owned);
    let named = flags.model.clone().or_else(|| variable("ANTHROPIC_MODEL"));
    named
        .or_else(from_settings)
        .filter(|name| !name.trim().is_empty())
        .or_else(|| offline.then(|| "scripted".to_owned()))
        .context(
            "no model is chosen: give --model, or set ANTHROPIC_MODEL or `model` in the settings",
        )
}

fn thinking(flags: &ModelFlags) -> anyhow::Result<Thinking> {
    let budget = match flags.max_thinking_tokens {
        Some(most) => Some(most),
        None => number("MAX_THINKING_TOKENS")?,
    };
    Ok(match (flags.thinking, budget) {
        (Some(ThinkingFlag::Disabled), _) | (None, None | Some(0)) => Thinking::Off,
        (_, Some(most)) if most > 0 => Thinking::Budget(most),
        (Some(ThinkingFlag::Adaptive), _) => Thinking::Adaptive,
        (None, Some(_)) => Thinking::Off,
    })
}

fn fallbacks(flags: &ModelFlags, settings: &Value, names: &Names) -> anyhow::Result<Vec<String>> {
    let mut given = flags.fallback_model.clone();
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
fn prices(flags: &ModelFlags, settings: &Settings) -> anyhow::Result<Prices> {
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
    if let Some(given) = &flags.prices {
        let text = if given.trim_start().starts_with('{') {
            given.clone()
        } else {
            fs::read_to_string(given).with_context(|| format!("--prices {given}"))?
        };
        let given = serde_json::from_str(&text).context("--prices")?;
        prices = with(prices, given).context("--prices")?;
    }
    Ok(prices)
}

fn with(prices: Prices, given: Value) -> serde_json::Result<Prices> {
    let map: BTreeMap<String, Price> = serde_json::from_value(given)?;
    Ok(map
        .into_iter()
        .fold(prices, |prices, (name, price)| prices.with(name, price)))
}

pub(super) fn variable(name: &str) -> Option<String> {
    secrets::variable(name).filter(|value| !value.trim().is_empty())
}

/// A variable that must be a number where it is set.
pub(super) fn number(name: &str) -> anyhow::Result<Option<u32>> {
    variable(name)
        .map(|value| value.trim().parse())
        .transpose()
        .with_context(|| format!("{name}: expected a number"))
}
