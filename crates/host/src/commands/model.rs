//! `/model` and `/effort`: who answers, and how much work it puts in.

use serde_json::json;

use super::{Acts, BuiltIn, CommandAnswer, table};
use crate::SessionInput;

/// How much work a model can put in.
const LEVELS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

pub(super) static MODEL: BuiltIn = BuiltIn {
    name: "model",
    hint: "[name]",
    description: "Ask another model from now on",
    acts: Acts::AnytimeIf(str::is_empty, |input, name| Box::pin(model(input, name))),
};

pub(super) static EFFORT: BuiltIn = BuiltIn {
    name: "effort",
    hint: "[low|medium|high|xhigh|max|auto]",
    description: "Show or set how much work the model puts in; kept in your settings",
    acts: Acts::AnytimeIf(str::is_empty, |input, level| {
        Box::pin(async move { effort(input, level.trim()) })
    }),
};

async fn model(input: &SessionInput, name: &str) -> CommandAnswer {
    let name = name.trim();
    if name.is_empty() {
        let mut text = format!("The model is {}.", input.model());
        let rows = input.models().into_iter();
        let rows: Vec<Vec<String>> = rows
            .map(|model| vec![format!("  {}", model.value), model.description])
            .collect();
        if !rows.is_empty() {
            text += &format!("\n{}", table(&rows));
        }
        return Ok(text);
    }
    input.set_model(Some(name)).await?;
    let name = input.0.control.asked_model();
    let name = name.unwrap_or_default();
    Ok(format!("From the next message on, {name} is asked."))
}

fn effort(input: &SessionInput, level: &str) -> CommandAnswer {
    if level.is_empty() {
        let now = input.setting("effortLevel");
        let now = now.as_ref().and_then(serde_json::Value::as_str);
        let now = now.unwrap_or("as the model does by itself");
        return Ok(format!("Effort: {now}. There are {}.", LEVELS.join(", ")));
    }
    if level == "auto" {
        input.set_effort(None)?;
        let file = input.save_setting("effortLevel", &serde_json::Value::Null)?;
        return Ok(format!("The model decides; saved in {}.", file.display()));
    }
    input.set_effort(Some(level))?;
    let file = input.save_setting("effortLevel", &json!(level))?;
    Ok(format!("Effort is {level}; saved in {}.", file.display()))
}

impl SessionInput {
    /// From the next request on, the model puts this much work in; `None`: as much as it does by itself.
    pub fn set_effort(&self, level: Option<&str>) -> Result<(), String> {
        if let Some(level) = level.filter(|level| !LEVELS.contains(level)) {
            return Err(format!(
                "{level:?} is no effort; there are {}",
                LEVELS.join(", ")
            ));
        }
        self.0.control.set_effort(level.map(str::to_owned));
        Ok(())
    }
}
