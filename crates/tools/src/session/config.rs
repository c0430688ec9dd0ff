//! `Config`: reads and changes a setting.

use std::sync::Arc;

use haft_contract::{
    CallContext, Card, CheckOutcome, Effects, ServiceNeed, SettingRisk, SettingsAccess, Tool,
    ToolAccess, ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::blocking::blocking;

/// Shows a setting, or changes it for this project. A change takes effect in the next session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Its name, such as `model` or `permissions.allow`.
    setting: String,
    /// The new value; without it the setting is shown.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    value: Option<Value>,
}

/// Treats `null` as a missing value, as the engine does.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok((!value.is_null()).then_some(value))
}

pub(crate) struct Config;

impl Tool for Config {
    type Input = Input;
    const NAME: &'static str = "Config";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "session".into(),
            search_hint: "settings configuration option preference model theme permissions".into(),
            deferred: true,
            access: ToolAccess::Anything,
            needs: const { &[ServiceNeed::service::<Arc<dyn SettingsAccess>>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        match input.value {
            None => Effects::queueing("settings"),
            Some(_) => Effects {
                patches: false,
                ..Effects::EXCLUSIVE
            },
        }
    }

    fn permission(&self, input: &Input, cx: &CallContext) -> ToolPermission {
        let Ok(settings) = service(cx) else {
            return ToolPermission::ByEffects;
        };
        match settings.risk(&input.setting) {
            // In every mode, the user decides. No rule and no hook can decide instead.
            SettingRisk::Heavy(why) => ToolPermission::Ask(why),
            SettingRisk::Light | SettingRisk::Unknown(_) => ToolPermission::ByEffects,
        }
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        match service(cx)?.risk(&input.setting) {
            SettingRisk::Unknown(why) => Err(ToolError::Refused(why)),
            SettingRisk::Light | SettingRisk::Heavy(_) => Ok(CheckOutcome::Pass),
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let settings = service(cx)?;
        let name = input.setting.clone();
        let Some(value) = input.value.clone() else {
            let read = blocking(move || settings.read(&name)).await?;
            let value = read.map_err(ToolError::Failed)?;
            let text = match &value {
                Value::Null => format!("{} is not set.", input.setting),
                value => format!("{} = {value}", input.setting),
            };
            return Ok(ToolOutput::text(text).with_structured(json!({
                "success": true,
                "operation": "get",
                "setting": input.setting,
                "value": value,
            })));
        };
        let written = blocking(move || settings.write(&name, &value)).await?;
        match written {
            Ok(changed) => {
                let text = format!(
                    "{} = {} from the next session on, in {}.",
                    input.setting, changed.after, changed.file
                );
                Ok(ToolOutput::text(text).with_structured(json!({
                    "success": true,
                    "operation": "set",
                    "setting": input.setting,
                    "previousValue": changed.before,
                    "newValue": changed.after,
                })))
            }
            Err(error) => {
                let told = json!({
                    "success": false,
                    "operation": "set",
                    "setting": input.setting,
                    "error": error,
                });
                let text = format!("{} was not changed: {error}", input.setting);
                Ok(ToolOutput::text(text).as_failure().with_structured(told))
            }
        }
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let card = Card::new("Setting", &*input.setting);
        Some(match &input.value {
            None => card,
            Some(value) => card.with_summary(format!("→ {value}")),
        })
    }
}

fn service(cx: &CallContext) -> Result<Arc<dyn SettingsAccess>, ToolError> {
    let service = cx.services.get::<Arc<dyn SettingsAccess>>();
    service
        .map(|service| Arc::clone(&*service))
        .map_err(|_| ToolError::Failed("This session has no settings.".to_owned()))
}
