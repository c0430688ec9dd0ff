//! Settings and environment variables for skills.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Skill, listing::MAX_DESCRIPTION};

/// The assumed window size if it is not known, in tokens.
const UNKNOWN_WINDOW: u64 = 200_000;

/// The approximate number of characters of a token.
const CHARACTERS_A_TOKEN: f64 = 4.0;

/// An override for one skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillOverride {
    /// As defined by the skill.
    On,
    /// The model gets only its name.
    NameOnly,
    /// Only the user may call it.
    UserOnly,
    /// The skill is disabled.
    Off,
}

/// Settings and environment variables for skills.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillSettings {
    /// The overrides by name.
    pub overrides: BTreeMap<String, SkillOverride>,
    /// The fraction of the context window that the list of skills may use.
    pub budget_fraction: f64,
    /// The size of the list in characters; replaces the fraction.
    pub budget: Option<usize>,
    /// The maximum length of a description in the list, in characters.
    pub max_description_length: usize,
    /// Whether skills may not run commands.
    pub without_commands: bool,
}

impl Default for SkillSettings {
    fn default() -> Self {
        Self {
            overrides: BTreeMap::new(),
            budget_fraction: 0.01,
            budget: None,
            max_description_length: MAX_DESCRIPTION,
            without_commands: false,
        }
    }
}

impl SkillSettings {
    /// Reads merged settings and environment variables; invalid values are replaced by defaults.
    pub fn from_settings(settings: &Value, variable: impl Fn(&str) -> Option<String>) -> Self {
        let default = Self::default();
        let overrides = settings["skillOverrides"].as_object();
        let overrides = overrides.into_iter().flatten().filter_map(|(name, value)| {
            let how = match value.as_str()? {
                "on" => SkillOverride::On,
                "name-only" => SkillOverride::NameOnly,
                "user-invocable-only" => SkillOverride::UserOnly,
                "off" => SkillOverride::Off,
                _ => return None,
            };
            Some((name.clone(), how))
        });
        let longest = settings["skillListingMaxDescChars"].as_u64();
        Self {
            overrides: overrides.collect(),
            budget_fraction: settings["skillListingBudgetFraction"]
                .as_f64()
                .filter(|part| (0.0..=1.0).contains(part))
                .unwrap_or(default.budget_fraction),
            budget: variable("SLASH_COMMAND_TOOL_CHAR_BUDGET")
                .and_then(|value| value.trim().parse().ok()),
            max_description_length: longest
                .and_then(|longest| usize::try_from(longest).ok())
                .unwrap_or(default.max_description_length),
            without_commands: settings["disableSkillShellExecution"] == true,
        }
    }

    /// Returns the maximum size of the list, in characters.
    pub(super) fn budget(&self, window: u64) -> usize {
        let window = if window == 0 { UNKNOWN_WINDOW } else { window };
        let part = window as f64 * self.budget_fraction * CHARACTERS_A_TOKEN;
        self.budget.unwrap_or(part as usize)
    }

    /// Applies the overrides to a skill; `None` if it is disabled.
    pub(super) fn apply(&self, mut skill: Skill) -> Option<Skill> {
        match self.overrides.get(&skill.name) {
            None | Some(SkillOverride::On) => {}
            Some(SkillOverride::NameOnly) => skill.name_only = true,
            Some(SkillOverride::UserOnly) => skill.model_invocable = false,
            Some(SkillOverride::Off) => return None,
        }
        Some(skill)
    }
}
