//! The available models, for users: the provider's list, and the model that a session would use.

use std::path::PathBuf;

use haft_contract::SettingsAccess;
use haft_engine::settings::{Settings, SettingsFiles};
use haft_models::{ModelInfo, Prices};
use serde_json::json;

use crate::{
    ModelProvider, OpenError, ResolvedSettings, SessionConfig,
    model::{self, ProviderClient},
    model_names::{self, ModelNames},
    resolved_settings::known_tools,
};

/// The models available to a session with some configuration.
pub struct AvailableModels {
    /// The provider.
    pub provider: ModelProvider,
    /// The host of the provider, without parts of the URL that may be secret.
    pub place: String,
    /// The origin of the key, such as a variable, or `none`.
    pub key_source: &'static str,
    /// The provider's list, or the error.
    pub listed: Result<Vec<ModelInfo>, String>,
    /// The model that is used if none is named, or the error.
    pub default: Result<String, String>,
    /// The reason for this model.
    pub because: String,
    /// The prices of models.
    pub prices: Prices,
}

/// Fetches the provider's list of models, and determines the model that a session would use.
pub async fn available_models(config: &SessionConfig) -> Result<AvailableModels, OpenError> {
    let permitted = ResolvedSettings::load(config)?;
    let environment = &permitted.environment;
    let (provider, key_source) =
        model::provider_client(&config.model, &permitted.settings, environment);
    let kind = match provider {
        ProviderClient::Anthropic(..) => ModelProvider::Anthropic,
        ProviderClient::OpenAi(..) => ModelProvider::OpenAi,
    };
    let catalog = std::sync::Arc::new(provider.catalog(environment));
    let listed = catalog.refresh().await.map(<[ModelInfo]>::to_vec);
    let merged = permitted.settings.merged();
    let mut names = ModelNames::from_settings(&merged, environment);
    names.catalog = Some(std::sync::Arc::clone(&catalog));
    names.names_flags = config.names_flags;
    let named = model::name(&config.model, &merged, environment);
    let because = match &named {
        None => "the newest of the usual family, or the only one".to_owned(),
        Some(name) => name_source(name, config, &permitted.settings, kind),
    };
    let wanted = named.unwrap_or_else(|| model_names::DEFAULT.to_owned());
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

/// Describes the origin of a name.
fn name_source(
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

/// Saves a model as `model` in the user's settings. Returns the path of the file.
pub fn save_model(config: &SessionConfig, name: &str) -> Result<PathBuf, OpenError> {
    let permitted = ResolvedSettings::load(config)?;
    let files = SettingsFiles {
        places: permitted.settings.places,
        flags: permitted.flags,
        tools: known_tools(),
        check: haft_engine::check_settings,
    };
    let saved = files.write_user("model", &json!(name));
    Ok(saved.map_err(anyhow::Error::msg)?.file.into())
}
