//! The names of models, here and at their provider.
//!
//! No provider's names are built in, because they change. A short name (`opus`, `default`, …) means
//! the value of `ANTHROPIC_DEFAULT_OPUS_MODEL` and the like, or otherwise the newest model of that
//! family in the provider's list; it is never sent unresolved. `modelOverrides` in the settings, a
//! map from name to name, overrides all of this.

use std::{collections::BTreeMap, sync::Arc};

use haft_agent::ModelSettings;
use haft_contract::BoxFuture;
use haft_models::{ModelInfo, model_listing};
use serde_json::Value;

use crate::{
    Environment,
    model_catalog::{ListFailure, ModelCatalog},
};

/// The model families that have short names.
const FAMILIES: [&str; 4] = ["fable", "haiku", "opus", "sonnet"];

/// The name for the default model.
pub(crate) const DEFAULT: &str = "default";

/// The name for planning with one family and working with another.
const OPUS_PLAN: &str = "opusplan";

/// The maximum number of names that an error lists.
const MAX_LISTED: usize = 20;

/// The names of models.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelNames {
    /// The meanings of short names.
    short: BTreeMap<&'static str, String>,
    overrides: BTreeMap<String, String>,
    /// The only models that may be chosen, by short name or the provider's name.
    available: Option<Vec<String>>,
    /// The catalog for other names. None: the session has no provider, and any name is accepted.
    pub(crate) catalog: Option<Arc<ModelCatalog>>,
    /// Whether errors may name command-line flags.
    pub(crate) names_flags: bool,
}

/// A model that can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelOption {
    /// The name to choose it by.
    pub value: String,
    /// The display name.
    pub display_name: String,
    /// A description: the meaning of a short name, or the size of the window.
    pub description: String,
}

/// The meaning of a name.
enum ModelAlias<'a> {
    /// This name, from the variables and the settings.
    Name(&'a str),
    /// The newest model of a family.
    Newest(&'static str),
    /// The default model.
    Default,
}

impl ModelNames {
    /// Creates the names from the environment and the settings.
    pub(crate) fn from_settings(settings: &Value, environment: &Environment) -> Self {
        let short = FAMILIES.into_iter().filter_map(|name| {
            let meant = environment.variable(&variable_of(name))?;
            Some((name, meant.trim().to_owned()))
        });
        let overrides = settings["modelOverrides"].as_object().into_iter().flatten();
        let texts = |list: &Vec<Value>| {
            let texts = list.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Self {
            short: short.collect(),
            overrides: overrides
                .filter_map(|(from, to)| Some((from.clone(), to.as_str()?.to_owned())))
                .collect(),
            available: settings["availableModels"].as_array().map(texts),
            catalog: None,
            names_flags: false,
        }
    }

    /// Returns the provider's name of a chosen model; a suffix such as `[1m]` stays. The error is
    /// the reason why the model is not available.
    ///
    /// Boxed, so that its code is compiled once, here, and not in each crate that awaits it.
    pub(crate) fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(self.resolve_here(name))
    }

    async fn resolve_here(&self, name: &str) -> Result<String, String> {
        let name = name.trim();
        let (base, window) = model_listing::split_window(name);
        let suffix = if window.is_some() {
            &name[base.len()..]
        } else {
            ""
        };
        let meant = self.resolve_alias(base).await?;
        match &self.available {
            Some(available)
                if ![name, base, &meant]
                    .iter()
                    .any(|one| available.iter().any(|name| name == one)) =>
            {
                Err(format!(
                    "model {name} is not among those that the settings allow (availableModels): {}",
                    available.join(", ")
                ))
            }
            // The resolved name may have its own suffix.
            _ if model_listing::split_window(&meant).1.is_some() => Ok(meant),
            _ => Ok(format!("{meant}{suffix}")),
        }
    }

    /// Returns the known size of a model's window, or the usual one, without a request.
    pub(crate) fn window_of(&self, name: &str) -> u64 {
        let (id, said) = model_listing::split_window(name);
        let listed = || self.catalog.as_ref()?.cached_model(id)?.window;
        let usual = ModelSettings::new(id).window;
        said.or_else(listed).unwrap_or(usual)
    }

    /// Returns the known models that can be chosen, without a request. `current` is the default.
    pub(crate) fn choices(&self, current: &str) -> Vec<ModelOption> {
        let option = |value: &str, name: &str, description: String| ModelOption {
            value: value.to_owned(),
            display_name: name.to_owned(),
            description,
        };
        let listed = self.catalog.as_ref().and_then(|one| one.all_known());
        let has_families = self.catalog.as_ref().is_some_and(|one| one.has_families());
        let mut options = vec![option(DEFAULT, "Default", current.to_owned())];
        for family in FAMILIES {
            let newest = || {
                Some(
                    model_listing::newest_of(listed.as_deref()?, family)?
                        .id
                        .clone(),
                )
            };
            let meant = self.short.get(family).cloned().or_else(newest);
            let meant = meant.or_else(|| {
                let unknown = listed.is_none() && has_families;
                unknown.then(|| format!("the newest {family} that the provider lists"))
            });
            if let Some(meant) = meant {
                let mut name = family.to_owned();
                name[..1].make_ascii_uppercase();
                options.push(option(family, &name, meant));
            }
        }
        for model in listed.iter().flatten() {
            let name = match model.display_name.as_str() {
                "" => &model.id,
                name => name,
            };
            let window = model.window.map(|tokens| format!("reads {tokens} tokens"));
            options.push(option(&model.id, name, window.unwrap_or_default()));
        }
        if let Some(available) = &self.available {
            let may = |one: &ModelOption| one.value == DEFAULT || available.contains(&one.value);
            options.retain(may);
        }
        options
    }

    /// Returns the model for planning, if the name means two models.
    pub(crate) async fn planner(&self, name: &str) -> Option<String> {
        let (base, _) = model_listing::split_window(name.trim());
        if !base.eq_ignore_ascii_case(OPUS_PLAN) || self.overrides.contains_key(base) {
            return None;
        }
        self.resolve("opus").await.ok()
    }

    async fn resolve_alias(&self, name: &str) -> Result<String, String> {
        let long = match self.parse_alias(name) {
            ModelAlias::Name(long) => long.to_owned(),
            ModelAlias::Newest(family) => match &self.catalog {
                None => name.to_owned(),
                Some(catalog) => self.newest(catalog, name, family).await?,
            },
            ModelAlias::Default => match &self.catalog {
                None => name.to_owned(),
                Some(catalog) => self.default_model(catalog).await?,
            },
        };
        let overridden = self
            .overrides
            .get(&long)
            .or_else(|| self.overrides.get(name));
        Ok(overridden.cloned().unwrap_or(long))
    }

    fn parse_alias<'a>(&'a self, name: &'a str) -> ModelAlias<'a> {
        if let Some(meant) = self.overrides.get(name) {
            return ModelAlias::Name(meant);
        }
        let is = |word: &str| name.eq_ignore_ascii_case(word);
        // The default model is of this family, if a variable sets it.
        let usual = || {
            self.short
                .get("sonnet")
                .map(|meant| ModelAlias::Name(meant))
        };
        if is(DEFAULT) {
            return usual().unwrap_or(ModelAlias::Default);
        }
        if is(OPUS_PLAN) {
            return usual().unwrap_or(ModelAlias::Newest("sonnet"));
        }
        match FAMILIES.into_iter().find(|family| is(family)) {
            None => ModelAlias::Name(name),
            Some(family) => match self.short.get(family) {
                Some(meant) => ModelAlias::Name(meant),
                None => ModelAlias::Newest(family),
            },
        }
    }

    async fn newest(
        &self,
        catalog: &ModelCatalog,
        name: &str,
        family: &str,
    ) -> Result<String, String> {
        let variable = variable_of(family);
        let place = &catalog.place;
        let listed = catalog.list().await.map_err(|failure| match failure {
            ListFailure { no_access: true, text } => text,
            ListFailure { text: why, .. } => format!(
                "{name} is a short name, and which model it means here cannot be found out: {place} does \
                 not list its models ({why}). Name the model in full, or set {variable}"
            ),
        })?;
        match model_listing::newest_of(listed, family) {
            Some(model) => Ok(model.id.clone()),
            None => Err(format!(
                "{name} is a short name, and {place} lists no model of that family. Name one in full, or \
                 set {variable}. It lists: {}",
                list_of(listed)
            )),
        }
    }

    async fn default_model(&self, catalog: &ModelCatalog) -> Result<String, String> {
        let place = &catalog.place;
        let choose = match self.names_flags {
            true => {
                "choose one with --model, ANTHROPIC_MODEL or OPENAI_MODEL, or save a choice with `haft models \
                 use NAME`"
            }
            false => {
                "name one when the session is set up, in ANTHROPIC_MODEL or OPENAI_MODEL, or as `model` in the \
                 settings"
            }
        };
        let listed = catalog.list().await.map_err(|failure| match failure {
            ListFailure {
                no_access: true,
                text,
            } => text,
            ListFailure { text: why, .. } => {
                format!("no model is named, and {place} does not list its models ({why}); {choose}")
            }
        })?;
        let default = model_listing::default_of(listed);
        default.map(|model| model.id.clone()).ok_or_else(|| {
            match listed.is_empty() {
                true => format!("no model is named, and {place} lists none; {choose}"),
                false => format!(
                    "no model is named, and {place} has several, none of them a usual default; {choose}. \
                     It lists: {}",
                    list_of(listed)
                ),
            }
        })
    }
}

fn list_of(models: &[ModelInfo]) -> String {
    let names = models.iter().map(|model| model.id.as_str());
    let names: Vec<&str> = names.take(MAX_LISTED).collect();
    let more = models.len().saturating_sub(names.len());
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn variable_of(short: &str) -> String {
    format!("ANTHROPIC_DEFAULT_{}_MODEL", short.to_uppercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(settings: &Value) -> ModelNames {
        ModelNames {
            short: BTreeMap::from([("opus", "big-1".to_owned())]),
            ..ModelNames::from_settings(
                settings,
                &Environment::from_variables([("HOME", "/home/me")]),
            )
        }
    }

    #[tokio::test]
    async fn a_short_name_means_what_the_variable_says_and_the_settings_have_the_last_word() {
        let names = names(&json!({"modelOverrides": {"big-1": "arn:big", "haiku": "small-2"}}));
        let cases = [
            // (chosen, sent)
            ("opus", "arn:big"),
            ("Opus", "arn:big"),
            ("opus[1m]", "arn:big[1m]"),
            ("big-1", "arn:big"),
            ("haiku", "small-2"),
            ("other-3", "other-3"),
        ];
        for (chosen, sent) in cases {
            assert_eq!(names.resolve(chosen).await.as_deref(), Ok(sent), "{chosen}");
        }
        assert_eq!(names.planner("opusplan").await.as_deref(), Some("arn:big"));
        assert_eq!(names.planner("opus").await, None);
    }

    #[tokio::test]
    async fn only_what_is_available_can_be_chosen() {
        let names = names(&json!({"availableModels": ["opus", "other-3"]}));
        assert_eq!(names.resolve("opus").await.as_deref(), Ok("big-1"));
        assert_eq!(names.resolve("other-3").await.as_deref(), Ok("other-3"));
        insta::assert_snapshot!(names.resolve("other-4").await.unwrap_err(), @"model other-4 is not among those that the settings allow (availableModels): opus, other-3");
    }
}
