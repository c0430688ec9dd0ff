//! Which models can be had here, for people: what the provider lists, and which one a session would ask.

use std::path::PathBuf;

use haft_contract::SettingsAccess;
use haft_engine::settings::{Settings, SettingsFiles};
use haft_models::{ModelInfo, Prices};
use serde_json::json;

use crate::{
    ModelProvider, OpenError, Permitted, SessionConfig,
    model::{self, ProviderClient},
    names::{self, Names},
    settings::known_tools,
};

/// What a session of some configuration would find.
pub struct AvailableModels {
    /// Who is asked.
    pub provider: ModelProvider,
    /// Where, without what may be secret.
    pub place: String,
    /// The variable the key comes from, or `none`.
    pub key_source: &'static str,
    /// What the provider lists; or why it lists nothing.
    pub listed: Result<Vec<ModelInfo>, String>,
    /// The model that is asked where the command line names none; or why there is none.
    pub default: Result<String, String>,
    /// Why that one.
    pub because: String,
    /// What models cost.
    pub prices: Prices,
}

/// Asks the provider which models there are, and finds out which one a session would ask.
pub async fn available_models(config: &SessionConfig) -> Result<AvailableModels, OpenError> {
    let permitted = Permitted::load(config)?;
    let environment = &permitted.environment;
    let (provider, key_source) = model::ask(&config.model, &permitted.settings, environment);
    let kind = match provider {
        ProviderClient::Anthropic(..) => ModelProvider::Anthropic,
        ProviderClient::OpenAi(..) => ModelProvider::OpenAi,
    };
    let catalog = std::sync::Arc::new(provider.catalog(environment));
    let listed = catalog.list_anew().await.map(<[ModelInfo]>::to_vec);
    let merged = permitted.settings.merged();
    let mut names = Names::of(&merged, environment);
    names.catalog = Some(std::sync::Arc::clone(&catalog));
    names.names_flags = config.names_flags;
    let named = model::name(&config.model, &merged, environment);
    let because = match &named {
        None => "the newest of the usual family, or the only one".to_owned(),
        Some(name) => because(name, config, &permitted.settings, kind),
    };
    let wanted = named.unwrap_or_else(|| names::DEFAULT.to_owned());
    Ok(AvailableModels {
        provider: kind,
        place: catalog.place.clone(),
        key_source,
        listed: listed.map_err(|failure| failure.text),
        default: names.resolve(&wanted).await,
        because,
        prices: model::prices(&config.model, &permitted.settings)?,
    })
}

/// Where a name comes from.
fn because(
    name: &str,
    config: &SessionConfig,
    settings: &Settings,
    provider: ModelProvider,
) -> String {
    if config.model.name.is_some() {
        return "given on the command line".to_owned();
    }
    let says = |value: &serde_json::Value| value["model"].as_str() == Some(name);
    let layer = settings
        .layers
        .iter()
        .find(|layer| says(&layer.document.value));
    match layer {
        Some(layer) => match &layer.file {
            Some(file) => format!("{name:?} in {}", file.display()),
            None => format!("{name:?} in {}", layer.scope.name()),
        },
        None => match provider {
            ModelProvider::Anthropic => format!("ANTHROPIC_MODEL is {name:?}"),
            ModelProvider::OpenAi => format!("OPENAI_MODEL or ANTHROPIC_MODEL is {name:?}"),
        },
    }
}

/// Saves a choice in the user's settings, as `model`; which file that is.
pub fn save_model(config: &SessionConfig, name: &str) -> Result<PathBuf, OpenError> {
    let permitted = Permitted::load(config)?;
    let files = SettingsFiles {
        places: permitted.settings.places,
        flags: permitted.flags,
        tools: known_tools(),
        check: haft_engine::check_settings,
    };
    let saved = files.write_user("model", &json!(name));
    Ok(saved.map_err(anyhow::Error::msg)?.file.into())
}
