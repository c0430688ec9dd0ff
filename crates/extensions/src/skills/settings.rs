//! What settings and the environment say of skills.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Skill, listing::LONGEST_DESCRIPTION};

/// Tokens of a window that no one knows.
const UNKNOWN_WINDOW: u64 = 200_000;

/// A token is about this many characters.
const CHARACTERS_A_TOKEN: f64 = 4.0;

/// How one skill is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Override {
    /// As it says itself.
    On,
    /// The model reads its name alone.
    NameOnly,
    /// Only a person may call it.
    UserOnly,
    /// As if it were not there.
    Off,
}

/// What settings and the environment say of skills.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillSettings {
    /// By name.
    pub overrides: BTreeMap<String, Override>,
    /// The part of the model's window that the list of skills may take.
    pub budget_fraction: f64,
    /// In place of that, this many characters.
    pub budget: Option<usize>,
    /// The longest description in the list, in characters.
    pub longest_description: usize,
    /// No skill runs commands.
    pub without_commands: bool,
}

impl Default for SkillSettings {
    fn default() -> Self {
        Self {
            overrides: BTreeMap::new(),
            budget_fraction: 0.01,
            budget: None,
            longest_description: LONGEST_DESCRIPTION,
            without_commands: false,
        }
    }
}

impl SkillSettings {
    /// As merged settings and variables say; what is no sensible value is left at its default.
    pub fn of(settings: &Value, variable: impl Fn(&str) -> Option<String>) -> Self {
        let default = Self::default();
        let overrides = settings["skillOverrides"].as_object();
        let overrides = overrides.into_iter().flatten().filter_map(|(name, value)| {
            let how = match value.as_str()? {
                "on" => Override::On,
                "name-only" => Override::NameOnly,
                "user-invocable-only" => Override::UserOnly,
                "off" => Override::Off,
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
            longest_description: longest
                .and_then(|longest| usize::try_from(longest).ok())
                .unwrap_or(default.longest_description),
            without_commands: settings["disableSkillShellExecution"] == true,
        }
    }

    /// How many characters the list may have.
    pub(super) fn budget(&self, window: u64) -> usize {
        let window = if window == 0 { UNKNOWN_WINDOW } else { window };
        let part = window as f64 * self.budget_fraction * CHARACTERS_A_TOKEN;
        self.budget.unwrap_or(part as usize)
    }

    /// The skill as it is to be treated; `None` if it is switched off.
    pub(super) fn apply(&self, mut skill: Skill) -> Option<Skill> {
        match self.overrides.get(&skill.name) {
            None | Some(Override::On) => {}
            Some(Override::NameOnly) => skill.name_only = true,
            Some(Override::UserOnly) => skill.model_invocable = false,
            Some(Override::Off) => return None,
        }
        Some(skill)
    }
}
