//! `/status` and `/doctor`: the state of the session and of the installation.

use super::{BuiltInCommand, CommandAction, CommandAnswer, table};
use crate::{SessionInput, key_report};

pub(super) static STATUS: BuiltInCommand = BuiltInCommand {
    name: "status",
    hint: "",
    description: "Show the session, the model, the key and the sandbox",
    acts: CommandAction::Anytime(|input, _| Box::pin(async move { status(input) })),
};

pub(super) static DOCTOR: BuiltInCommand = BuiltInCommand {
    name: "doctor",
    hint: "",
    description: "Check the setup for problems",
    acts: CommandAction::Anytime(|input, _| Box::pin(doctor(input))),
};

fn status(input: &SessionInput) -> CommandAnswer {
    let config = &input.0.config;
    let key = key_report(config).map_err(|error| error.to_string())?;
    let session = match input.session_id() {
        Some(id) => id.to_string(),
        None => "not begun".to_owned(),
    };
    let servers = input.servers().servers;
    let connected = servers.iter().filter(|one| one.status == "connected");
    let settings = &input.0.settings.settings;
    let sandbox = match settings.merged()["sandbox"]["enabled"].as_bool() {
        Some(true) => "on: commands reach only what rules allow",
        Some(false) => "off",
        None => "default: commands that may change anything need approval and run in the sandbox",
    };
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("session", session),
        row("directory", config.cwd.display().to_string()),
        row("model", input.model()),
        row("asked at", key.base_url),
        row("key", key.source.unwrap_or_else(|| "none".to_owned())),
        row("mode", input.mode().name().to_owned()),
        row("sandbox", sandbox.to_owned()),
        row(
            "servers",
            format!("{} of {} connected", connected.count(), servers.len()),
        ),
    ];
    if let Some(path) = input.transcript_path() {
        rows.push(row("transcript", path.display().to_string()));
    }
    for layer in &settings.layers {
        let file = layer.file.as_ref();
        let file = file.map_or_else(|| "given".to_owned(), |file| file.display().to_string());
        rows.push(row(layer.scope.name(), file));
    }
    if let Some(untrusted) = settings.untrusted() {
        rows.push(row("trust", untrusted));
    }
    Ok(table(&rows))
}

async fn doctor(input: &SessionInput) -> CommandAnswer {
    match &input.0.doctor {
        Some(report) => Ok(report().await),
        None => Err("this session cannot check its setup; run `haft doctor`".to_owned()),
    }
}
