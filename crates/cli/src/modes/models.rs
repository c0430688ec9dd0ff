//! `haft models`: lists the available models and chooses one.

use haft_host::{AvailableModels, ModelProvider, available_models, save_model};
use serde_json::{Value, json};

use crate::{
    args::{ModelChoiceCommand, ModelsFlags, SessionArgs},
    exit::Exit,
    modes::headless::flags::ProviderKind,
    session, show,
};

pub(crate) async fn run(args: SessionArgs, models: ModelsFlags) -> anyhow::Result<Exit> {
    let mut config = session::config(&args)?;
    config.model.base_url.clone_from(&models.base_url);
    config.model.provider = models.provider.map(|provider| match provider {
        ProviderKind::Anthropic => ModelProvider::Anthropic,
        ProviderKind::Openai => ModelProvider::OpenAi,
    });
    if let Some(ModelChoiceCommand::Use { name }) = &models.choice {
        let name = name.trim();
        anyhow::ensure!(
            !name.is_empty(),
            "no model was named; `haft models` lists them"
        );
        let file = save_model(&config, name)?;
        let file = show::clean(&file.display().to_string());
        show::line(&format!(
            "{} is saved as the model in {file}",
            show::clean(name)
        ))?;
        return Ok(Exit::Success);
    }
    let found = available_models(&config).await?;
    if models.json {
        show::json(&serde_json::to_string_pretty(&as_json(&found))?)?;
    } else if let Ok(listed) = &found.listed {
        show::line(&table(&found, listed))?;
    }
    match &found.listed {
        Ok(_) => Ok(Exit::Success),
        Err(why) => anyhow::bail!("{} does not list its models: {why}", found.place),
    }
}

fn table(found: &AvailableModels, listed: &[haft_models::ModelInfo]) -> String {
    let mut rows = vec![["", "NAME", "READS", "INPUT $", "OUTPUT $"].map(str::to_owned)];
    let default = found.default.as_deref().ok();
    let default = default.map(|name| haft_models::model_listing::split_window(name).0);
    for model in listed {
        let price = found.prices.price(&model.id);
        let dollars =
            |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        rows.push([
            if default == Some(model.id.as_str()) {
                "*"
            } else {
                ""
            }
            .to_owned(),
            show::clean(&model.id),
            model.window.map_or_else(String::new, thousands),
            dollars(price.map(|price| price.input)),
            dollars(price.map(|price| price.output)),
        ]);
    }
    let known = listed
        .iter()
        .any(|model| found.prices.price(&model.id).is_some());
    let mut text = show::table(&rows);
    let count = match listed.len() {
        1 => "1 model".to_owned(),
        count => format!("{count} models"),
    };
    text += &format!("\n{count} of {}", show::clean(&found.place));
    if known {
        let date = haft_models::LIST_PRICES_DATE;
        text +=
            &format!("; prices in USD per million tokens, as listed on {date} or as you set them");
    }
    text += &match &found.default {
        Ok(name) => format!(
            "\n* is used: {} ({})",
            show::clean(name),
            show::clean(&found.because)
        ),
        Err(why) => format!("\n{}", show::clean(why)),
    };
    text
}

/// Formats a token count, for example `200k` or `1m`.
fn thousands(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        tokens if tokens % 1_000_000 == 0 => format!("{}m", tokens / 1_000_000),
        tokens => format!("{}k", tokens / 1_000),
    }
}

fn as_json(found: &AvailableModels) -> Value {
    let listed = found.listed.as_deref().unwrap_or_default();
    let models = listed.iter().map(|model| {
        json!({
            "id": model.id,
            "display_name": model.display_name,
            "window": model.window,
            "max_output": model.max_output,
            "price": found.prices.price(&model.id),
        })
    });
    json!({
        "place": found.place,
        "default": found.default.as_ref().ok(),
        "because": found.because,
        "models": models.collect::<Vec<_>>(),
        "prices_of": haft_models::LIST_PRICES_DATE,
    })
}
