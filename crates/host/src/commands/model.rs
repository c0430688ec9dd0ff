//! `/model` and `/effort`: the model and its effort.

use serde_json::json;

use super::{BuiltInCommand, CommandAction, CommandAnswer, blocking, table};
use crate::SessionInput;

/// The effort levels.
const LEVELS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

pub(super) static MODEL: BuiltInCommand = BuiltInCommand {
    name: "model",
    hint: "[name]",
    description: "Ask another model from now on",
    acts: CommandAction::AnytimeIf(str::is_empty, |input, name| Box::pin(model(input, name))),
};

pub(super) static EFFORT: BuiltInCommand = BuiltInCommand {
    name: "effort",
    hint: "[low|medium|high|xhigh|max|auto]",
    description: "Show or set how much work the model puts in",
    acts: CommandAction::AnytimeIf(str::is_empty, |input, level| {
        let (input, level) = (input.clone(), level.trim().to_owned());
        Box::pin(blocking(move || effort(&input, &level)))
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
        // A list with only the current model is omitted.
        if rows.len() > 1 {
            text += &format!("\n{}", table(&rows));
        }
        return Ok(text);
    }
    input.set_model(Some(name)).await?;
    let name = input.0.control.requested_model();
    let name = name.unwrap_or_default();
    if !input.0.config.saves_choices {
        return Ok(format!("From the next message on, {name} is asked."));
    }
    let (shared, value) = (input.clone(), json!(name));
    let file = blocking(move || shared.save_setting("model", &value)).await?;
    Ok(format!(
        "From the next message on, {name} is asked; saved in {}.",
        file.display()
    ))
}

fn effort(input: &SessionInput, level: &str) -> CommandAnswer {
    if level.is_empty() {
        let now = input.setting("effortLevel");
        let now = now.as_ref().and_then(serde_json::Value::as_str);
        let now = now.unwrap_or("the model's default");
        return Ok(format!("Effort: {now}. Available: {}.", LEVELS.join(", ")));
    }
    let chosen = Some(level).filter(|level| *level != "auto");
    input.set_effort(chosen)?;
    let saved = match input.0.config.saves_choices {
        true => {
            let file = input.save_setting("effortLevel", &json!(chosen))?;
            format!("; saved in {}", file.display())
        }
        false => String::new(),
    };
    Ok(format!(
        "From the next message on, effort is {level}{saved}."
    ))
}

impl SessionInput {
    /// Sets the effort from the next request on; `None`: the model's default.
    pub fn set_effort(&self, level: Option<&str>) -> Result<(), String> {
        if let Some(level) = level.filter(|level| !LEVELS.contains(level)) {
            return Err(format!(
                "{level:?} is not an effort level; use one of {}",
                LEVELS.join(", ")
            ));
        }
        self.0.control.set_effort(level.map(str::to_owned));
        Ok(())
    }
}
