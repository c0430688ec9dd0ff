//! What models are called here, and by their provider.
//!
//! No name of a provider's is built in: they change. A short name means what
//! `ANTHROPIC_DEFAULT_OPUS_MODEL` and its like say; `modelOverrides` of the settings, a map from name to
//! name, has the last word.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Environment;

/// Short names that scripts use.
const SHORT: [&str; 4] = ["fable", "haiku", "opus", "sonnet"];

/// What models are called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// What short names mean.
    short: BTreeMap<&'static str, String>,
    overrides: BTreeMap<String, String>,
    /// Only these may be chosen, by either name.
    available: Option<Vec<String>>,
}

impl Names {
    /// As the environment and the settings say.
    pub(crate) fn of(settings: &Value, environment: &Environment) -> Self {
        let short = SHORT.into_iter().filter_map(|name| {
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
        }
    }

    /// The provider's name of a model that someone chose. The error says why it cannot be had.
    pub(crate) fn choose(&self, name: &str) -> Result<String, String> {
        let name = name.trim();
        let meant = self.meant(name);
        match &self.available {
            Some(available) if !available.iter().any(|one| one == name || *one == meant) => {
                Err(format!(
                    "model {name} is not among those that the settings allow (availableModels): {}",
                    available.join(", ")
                ))
            }
            _ => Ok(meant),
        }
    }

    /// What to say of a short name that means nothing here: it is sent as it is.
    pub(crate) fn unknown(&self, name: &str) -> Option<String> {
        let short = is_short(name)?;
        let known = self.short.contains_key(short) || self.overrides.contains_key(name.trim());
        (!known).then(|| {
            format!(
                "{short} is a short name, and {} does not say for which model; it is sent as it is",
                variable_of(short)
            )
        })
    }

    fn meant(&self, name: &str) -> String {
        let long = is_short(name).and_then(|short| self.short.get(short));
        let long = long.map_or(name, String::as_str);
        let overridden = self
            .overrides
            .get(long)
            .or_else(|| self.overrides.get(name));
        overridden.map_or(long, String::as_str).to_owned()
    }
}

fn is_short(name: &str) -> Option<&'static str> {
    let name = name.trim();
    SHORT
        .into_iter()
        .find(|short| short.eq_ignore_ascii_case(name))
}

fn variable_of(short: &str) -> String {
    format!("ANTHROPIC_DEFAULT_{}_MODEL", short.to_uppercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(settings: &Value) -> Names {
        Names {
            short: BTreeMap::from([("opus", "big-1".to_owned())]),
            ..Names::of(settings, &Environment::of_process())
        }
    }

    #[test]
    fn a_short_name_means_what_the_variable_says_and_the_settings_have_the_last_word() {
        let names = names(&json!({"modelOverrides": {"big-1": "arn:big", "haiku": "small-2"}}));
        let cases = [
            // (chosen, sent, is something said of it)
            ("opus", "arn:big", false),
            ("Opus", "arn:big", false),
            ("big-1", "arn:big", false),
            ("haiku", "small-2", false),
            ("sonnet", "sonnet", true),
            ("other-3", "other-3", false),
        ];
        for (chosen, sent, told) in cases {
            assert_eq!(names.choose(chosen).as_deref(), Ok(sent), "{chosen}");
            assert_eq!(names.unknown(chosen).is_some(), told, "{chosen}");
        }
    }

    #[test]
    fn only_what_is_available_can_be_chosen() {
        let names = names(&json!({"availableModels": ["opus", "other-3"]}));
        assert_eq!(names.choose("opus").as_deref(), Ok("big-1"));
        assert_eq!(names.choose("other-3").as_deref(), Ok("other-3"));
        insta::assert_snapshot!(names.choose("other-4").unwrap_err(), @"model other-4 is not among those that the settings allow (availableModels): opus, other-3");
    }
}
