//! Reading and changing single settings, for the Config tool.
//!
//! A change goes through the same checks as a file that a user wrote. It goes into the local file,
//! or into the user's file if the setting has an effect only there. A running session does not
//! apply loosening changes.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use haft_contract::{SettingChange, SettingRisk, SettingsAccess, ToolSpec};
use serde_json::Value;

use super::{
    Settings, SettingsDocument, SettingsFile, SettingsFlags, SettingsPlaces, SettingsProblem,
    TrustState, document,
    files::local_root,
    own_writes,
    reference::{self, AllowedScopes, SettingKey, SettingType},
    rule_writer,
};
use crate::{SettingsScope, suggestions};

/// Returns the settings that the tool may access: all except those only for administrators.
fn known() -> impl Iterator<Item = &'static SettingKey> {
    reference::keys().filter(|key| key.allowed_scopes != AllowedScopes::Managed)
}

/// Returns the setting with this name, if it is a preference that needs no permission.
fn light(setting: &str) -> Option<&'static SettingKey> {
    known().find(|key| key.is_light && key.name == setting)
}

fn first_part(setting: &str) -> &str {
    setting.split('.').next().unwrap_or_default()
}

/// Returns whether the value has the right type for the setting.
fn accepts_value(takes: SettingType, value: &Value) -> bool {
    let texts = value.as_array();
    let is_list = texts.is_some_and(|texts| texts.iter().all(Value::is_string));
    match takes {
        SettingType::Text => value.is_string(),
        SettingType::Texts => value.is_string() || is_list,
        SettingType::List => is_list,
        SettingType::Flag => value.is_boolean(),
        SettingType::Number => value.is_number(),
        SettingType::Object => value.is_object(),
    }
}

/// The settings files of a session.
#[derive(Debug, Clone)]
pub struct SettingsFiles {
    /// The paths of settings files.
    pub places: SettingsPlaces,
    /// The command line flags for settings.
    pub flags: SettingsFlags,
    /// The tools that rules may refer to.
    pub tools: Vec<ToolSpec>,
    /// Adds the problems that other crates find at startup: in rules, sandbox settings and hooks.
    pub check: fn(&mut Settings, &[ToolSpec]),
}

impl SettingsAccess for SettingsFiles {
    fn risk(&self, setting: &str) -> SettingRisk {
        if light(setting).is_some() {
            return SettingRisk::Light;
        }
        let first = first_part(setting);
        let parts = setting.split('.');
        if known().any(|key| !key.is_light && first_part(key.name) == first)
            && parts.clone().all(|part| !part.is_empty())
            && parts.count() <= 4
        {
            return SettingRisk::Heavy(format!(
                "the setting {setting} decides what is permitted or what runs, or may hold secrets"
            ));
        }
        let near = suggestions::similar_names(setting, known().map(|key| key.name), 3);
        SettingRisk::Unknown(match near.is_empty() {
            true => format!("haft has no setting {setting}."),
            false => format!(
                "haft has no setting {setting}. Did you mean {}?",
                near.join(", ")
            ),
        })
    }

    fn read(&self, setting: &str) -> Result<Value, String> {
        let settings = Settings::load(self.places.clone(), &self.flags, TrustState::default());
        let merged = settings.merged();
        Ok(merged
            .pointer(&pointer(setting))
            .cloned()
            .unwrap_or_default())
    }

    fn write(&self, setting: &str, value: &Value) -> Result<SettingChange, String> {
        let place = self.file(setting);
        self.write_into(place, setting, value)
    }

    fn write_user(&self, setting: &str, value: &Value) -> Result<SettingChange, String> {
        self.write_into(self.user_file(), setting, value)
    }
}

impl SettingsFiles {
    fn write_into(
        &self,
        (scope, file): (SettingsScope, PathBuf),
        setting: &str,
        value: &Value,
    ) -> Result<SettingChange, String> {
        if let Some(key) = light(setting)
            && !accepts_value(key.value_type, value)
        {
            return Err(format!(
                "{} is expected, not {value}",
                key.value_type.name()
            ));
        }
        let before = self.read(setting)?;
        match scope {
            SettingsScope::Local => {
                let directory = local_root(&self.places);
                own_writes::change_local(&self.places, &directory, &[], |old| {
                    let new = self.changed(scope, &file, old, setting, value)?;
                    self.check_effect(&new)?;
                    Ok(new)
                })?;
            }
            _ => {
                let old = document::read(&file)?.unwrap_or_default();
                let new = self.changed(scope, &file, &old, setting, value)?;
                rule_writer::replace(&file, &new).map_err(|error| error.to_string())?;
            }
        }
        Ok(SettingChange {
            before,
            after: value.clone(),
            file: file.display().to_string(),
        })
    }

    /// Returns the text of a file with one value changed. Fails if the change adds a problem.
    fn changed(
        &self,
        scope: SettingsScope,
        file: &Path,
        old: &str,
        setting: &str,
        value: &Value,
    ) -> Result<String, String> {
        let new = document::with_value(old, &setting.split('.').collect::<Vec<_>>(), value)?;
        let known = self.problems(scope, file, old)?;
        let problems = self.problems(scope, file, &new)?;
        let problem = problems
            .into_iter()
            .find(|problem| !known.iter().any(|known| known.text == problem.text));
        match problem {
            Some(problem) => Err(problem.text),
            None => Ok(new),
        }
    }

    fn file(&self, setting: &str) -> (SettingsScope, PathBuf) {
        let is_users =
            |key: &SettingKey| key.name == setting && key.allowed_scopes == AllowedScopes::Users;
        if known().any(is_users) {
            return self.user_file();
        }
        let local = local_root(&self.places).join(super::files::LOCAL);
        (SettingsScope::Local, local)
    }

    fn user_file(&self) -> (SettingsScope, PathBuf) {
        (SettingsScope::User, self.places.user.join("settings.json"))
    }

    /// Checks that the next session would apply what a new text of the local file adds; the error
    /// is the reason why not. Writing it must not put anything into effect that the file contained
    /// before.
    fn check_effect(&self, new: &str) -> Result<(), String> {
        let mut settings = Settings::load(self.places.clone(), &self.flags, TrustState::default());
        settings.apply_trust(&self.flags);
        let local = self.file("").1;
        let is_local = |layer: &&SettingsFile| layer.file.as_deref() == Some(local.as_path());
        let Some(layer) = settings.layers.iter().find(is_local) else {
            return Ok(()); // a new file is ours
        };
        let says_something = layer
            .document
            .value
            .as_object()
            .is_some_and(|map| !map.is_empty());
        if !layer.from_workspace || settings.trust.allows || !says_something {
            return Ok(());
        }
        let before = settings.loosening_of(layer);
        let after = settings.loosening_of(&SettingsFile {
            document: SettingsDocument::parse(new).map_err(|broken| broken.to_string())?,
            ..layer.clone()
        });
        match after.iter().find(|thing| !before.contains(thing)) {
            None => Ok(()),
            Some(thing) => Err(format!(
                "it would have no effect: {thing} needs trust, because the file contains settings \
                 that haft did not write. The user can review them and trust the directory with \
                 `haft permissions trust`."
            )),
        }
    }

    /// Returns all problems that a start would report if only this text were in the file.
    fn problems(
        &self,
        scope: SettingsScope,
        file: &Path,
        text: &str,
    ) -> Result<Vec<SettingsProblem>, String> {
        let document = SettingsDocument::parse(text).map_err(|broken| broken.to_string())?;
        let layer = SettingsFile {
            scope,
            file: Some(file.into()),
            document,
            slash: self.places.cwd.clone(),
            from_workspace: false,
            agreed: BTreeSet::new(),
        };
        let trust = TrustState {
            allows: true,
            runs: true,
        };
        let mut settings = Settings {
            places: self.places.clone(),
            layers: vec![layer],
            problems: Vec::new(),
            broken: false,
            left_out: Vec::new(),
            waiting_rules: Vec::new(),
            trust,
        };
        settings.directories();
        settings.default_mode();
        settings.env();
        settings.question_timeout();
        settings.auto_memory();
        (self.check)(&mut settings, &self.tools);
        Ok(settings.problems)
    }
}

fn pointer(setting: &str) -> String {
    let parts = setting.split('.');
    parts
        .map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")))
        .collect()
}
