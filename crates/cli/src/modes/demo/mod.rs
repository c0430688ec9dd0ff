//! `haft demo`: shows a scripted agent run that needs no API key and no network.
//!
//! The model is scripted (`acts.json`). Everything else is the same as in every session: the agent
//! loop, the tools, the rules, the sandbox, the undo journal, and real files in a scratch project.

mod pace;
mod scratch;

use haft_agent::AgentEventSink;
use haft_host::{AgentSession, Environment, SessionConfig, SessionEvent, SessionParts};
use haft_models::scripted::{ModelScript, ScriptedConversation, ScriptedReply};
use serde::Deserialize;
use tokio::sync::mpsc;

use self::{pace::DemoPace, scratch::DemoProject};
use crate::{
    args::{DemoFlags, PermissionModeArg, SessionArgs},
    exit::Exit,
    session,
    show::{self, ConsoleStyle, RunWatcher},
    signals::StopSignals,
};

const ACTS: &str = include_str!("acts.json");
/// The scenes in which the agent opens a web page.
const PAGE: &str = include_str!("page.json");

/// The model name that is displayed.
const MODEL: &str = "scripted";

/// A user prompt and the scripted turns that answer it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DemoScene {
    prompt: String,
    turns: Vec<ScriptedReply>,
    /// The scripted conversations of subagents.
    #[serde(default)]
    asides: Vec<ScriptedConversation>,
}

pub(crate) async fn run(flags: DemoFlags) -> anyhow::Result<Exit> {
    let mut acts: Vec<DemoScene> = serde_json::from_str(ACTS)?;
    let style = ConsoleStyle::of_stdout();
    // Typing is not animated for a pipe.
    let pace = DemoPace::new(flags.fast || !show::stdout_is_terminal());
    let signals = StopSignals::listen()?;
    let scratch = DemoProject::create()?;
    show::drawn(&format!(
        "{}\n{}\n",
        style.bold("haft demo"),
        style.wrap(&format!(
            "The model is scripted, so this needs no key and no network. Everything else is real: the \
             agent loop, the tools, the rules, the sandbox, and the files in {}.",
            show::clean(&scratch.project().display().to_string())
        ))
    ))?;
    let config = config(&scratch)?;
    let has_browser = has_browser(&config)?;
    if has_browser {
        acts.extend(serde_json::from_str::<Vec<DemoScene>>(PAGE)?);
    }
    let mut prompts = Vec::new();
    let mut script = ModelScript::default();
    for act in acts {
        prompts.push(act.prompt);
        script.turns.extend(act.turns);
        script.conversations.extend(act.asides);
    }
    let watch = RunWatcher::on_stdout(style, scratch.project());
    let (results, mut answered) = mpsc::unbounded_channel();
    let follow = move |event: &SessionEvent| match event {
        SessionEvent::Agent(event) => watch.on_event(event),
        SessionEvent::Result(result) => {
            let _ = results.send(result.run.clone());
        }
        other => session::warn(other),
    };
    let parts = SessionParts::new(follow).scripted(script, pace.model_pace());
    let session = AgentSession::open(config, parts)?;
    let input = session.input();
    signals.end(&input);
    let running = tokio::spawn(session.run());
    let mut errors = Vec::new();
    for prompt in prompts {
        let typed = pace.type_out("> ", &prompt, style);
        if signals
            .run_until_signalled(typed)
            .await
            .transpose()?
            .is_none()
        {
            break;
        }
        input.prompt(prompt);
        match answered.recv().await {
            Some(run) if !run.is_error() => {}
            Some(run) => {
                errors = run.errors;
                break;
            }
            None => break,
        }
    }
    input.close();
    running.await??;
    if let Some(exit) = signals.requested_exit() {
        return Ok(exit);
    }
    anyhow::ensure!(errors.is_empty(), "{}", errors.join("; "));
    if !has_browser {
        let left_out = "Chromium was not found, so the browser scene is skipped.";
        show::drawn(&format!("{}\n", style.wrap(left_out)))?;
    }
    show::drawn(&exit_message(&scratch, flags.keep, style))?;
    if flags.keep {
        scratch.persist();
    }
    Ok(Exit::Success)
}

/// Returns whether a browser is installed and the sandbox could start it.
#[cfg(feature = "browser")]
fn has_browser(config: &SessionConfig) -> anyhow::Result<bool> {
    let permitted = haft_host::ResolvedSettings::load(config)?;
    let found = haft_host::browser_program(&permitted.settings, &config.environment, &config.cwd);
    let (Some(_), Some(program)) = (found, &config.program) else {
        return Ok(false);
    };
    Ok(haft_sandbox::available(program, &std::env::temp_dir()).is_some())
}

#[cfg(not(feature = "browser"))]
fn has_browser(_: &SessionConfig) -> anyhow::Result<bool> {
    Ok(false)
}

fn config(scratch: &DemoProject) -> anyhow::Result<SessionConfig> {
    let args = SessionArgs {
        cwd: Some(scratch.project().to_path_buf()),
        // No user settings: the demo looks the same on every machine.
        setting_sources: Some(String::new()),
        permission_mode: Some(PermissionModeArg::AcceptEdits),
        allowed_tools: vec!["Bash(./test.sh)".to_owned()],
        disallowed_tools: vec!["Read(./deploy.env)".to_owned()],
        ..SessionArgs::default()
    };
    let mut config = session::config(&args)?;
    config.model.name = Some(MODEL.to_owned());
    config.conversation.forget = true;
    config.state_folder = Some(scratch.state());
    config.environment = environment(scratch);
    Ok(config)
}

/// Returns the environment of this process, with haft's own files in the folder of the demo.
fn environment(scratch: &DemoProject) -> Environment {
    let variables = std::env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let own = scratch.state().join("config").display().to_string();
    Environment::from_variables(variables.chain([("CLAUDE_CONFIG_DIR".to_owned(), own)]))
}

fn exit_message(scratch: &DemoProject, kept: bool, style: ConsoleStyle) -> String {
    let files = match kept {
        true => format!(
            "The project is in {}; remove it when you no longer need it.",
            show::clean(&scratch.project().display().to_string())
        ),
        false => "The scratch project is removed; `haft demo --keep` keeps it.".to_owned(),
    };
    format!(
        "{}\n{}\n\n  {}\n  {}\n",
        style.bold("With a real model"),
        style.wrap(&format!("{files} In your own project:")),
        "ANTHROPIC_API_KEY=… haft -p 'Why does the parser test fail?' --model MODEL",
        "haft -p 'List the TODOs' --base-url http://127.0.0.1:8080/v1 --model MODEL",
    )
}
