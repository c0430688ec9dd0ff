//! `haft demo`: an agent at work, to watch, without a key and without a network.
//!
//! The model is scripted (`acts.json`). Everything else is what every session has: the loop, the tools, the
//! rules, the sandbox, the undo journal, and real files of a scratch project.

mod pace;
mod scratch;

use std::sync::Arc;

use haft::{SessionId, contract::approval::NobodyToAsk};
use haft_agent::{Agent, Control, ModelSettings, Session as Conversation, SubagentPool};
use haft_extensions::{Agents, ExtensionPlaces, agents};
use haft_models::{
    Scripted,
    scripted::{ModelScript, ScriptedConversation, ScriptedReply},
};
use serde::Deserialize;

use self::{pace::Pace, scratch::Scratch};
use crate::{
    args::{Demo, Mode, SessionArgs},
    compose::{self, Additions},
    exit::Exit,
    settings,
    show::{self, Style, Watch},
    signals::Signals,
};

const ACTS: &str = include_str!("acts.json");

/// What the model is called wherever a name is shown.
const MODEL: &str = "scripted";

/// A person says something, and the model works on it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Act {
    prompt: String,
    turns: Vec<ScriptedReply>,
    /// What subagents say.
    #[serde(default)]
    asides: Vec<ScriptedConversation>,
}

pub(crate) async fn run(flags: Demo) -> anyhow::Result<Exit> {
    let acts: Vec<Act> = serde_json::from_str(ACTS)?;
    let style = Style::of_stdout();
    let pace = Pace::new(flags.fast);
    let signals = Signals::listen()?;
    let scratch = Scratch::make()?;
    show::drawn(&format!(
        "{}\n{}\n",
        style.bold("haft demo"),
        style.wrap(&format!(
            "The model is scripted, so this needs no key and no network. Everything else is real: the \
             agent loop, the tools, the rules, the sandbox, and the files in {}.",
            show::clean(&scratch.project().display().to_string())
        ))
    ))?;
    let mut prompts = Vec::new();
    let mut script = ModelScript::default();
    for act in acts {
        prompts.push(act.prompt);
        script.turns.extend(act.turns);
        script.conversations.extend(act.asides);
    }
    let watch = Arc::new(Watch::new(style, scratch.project()));
    let control = Control::default();
    let model = pace.around(Scripted::new(script));
    let (mut agent, crew) = agent(&scratch, model, &watch, &control).await?;
    for prompt in prompts {
        let typed = pace.type_out("> ", &prompt, style);
        if signals.until_told(typed).await.transpose()?.is_none() {
            break;
        }
        let run = agent.run(prompt, &*watch);
        tokio::pin!(run);
        let ended = tokio::select! {
            ended = &mut run => ended,
            () = signals.wait() => {
                control.interrupt();
                run.await
            }
        };
        if signals.told().is_some() {
            break;
        }
        anyhow::ensure!(!ended.is_error(), "{}", ended.errors.join("; "));
    }
    crew.close().await;
    agent.end("other", &*watch).await;
    drop(agent);
    if let Some(exit) = signals.told() {
        return Ok(exit);
    }
    show::drawn(&farewell(&scratch, flags.keep, style))?;
    if flags.keep {
        scratch.keep();
    }
    Ok(Exit::Success)
}

async fn agent(
    scratch: &Scratch,
    model: Arc<dyn haft_models::Model>,
    watch: &Arc<Watch>,
    control: &Control,
) -> anyhow::Result<(Agent, SubagentPool)> {
    let session = SessionArgs {
        cwd: Some(scratch.project().to_path_buf()),
        // Nothing of the user's own: what is shown is the same for everybody.
        setting_sources: Some(String::new()),
        permission_mode: Some(Mode::AcceptEdits),
        allowed_tools: vec!["Bash(./test.sh)".to_owned()],
        disallowed_tools: vec!["Read(./deploy.env)".to_owned()],
        ..SessionArgs::default()
    };
    let cwd = settings::cwd(&session)?;
    let permitted = settings::load(&session, &cwd)?;
    let id = SessionId::new();
    let (kinds, _) = Agents::load(
        &ExtensionPlaces::of_project(&cwd),
        &agents::AgentOptions::default(),
    );
    let crew = SubagentPool::builder(kinds.list().iter().cloned())
        .sink(Arc::clone(watch) as _)
        .services(haft::tools::for_subagent)
        .model(Arc::clone(&model))
        .build();
    let additions = Additions {
        approver: Some(Arc::new(NobodyToAsk)),
        id: Some(id),
        model: Some(MODEL.to_owned()),
        folder: Some(scratch.state()),
        subagents: Some(crew.service()),
        ..Additions::default()
    };
    let haft = compose::build(&session, cwd, permitted, additions).await?;
    let settings = ModelSettings::new(MODEL);
    let agent = Agent::builder(haft.into_scheduler(), model, settings)
        .session(Conversation::in_memory(id))
        .control(control.clone())
        .crew(crew.clone())
        .build();
    Ok((agent, crew))
}

fn farewell(scratch: &Scratch, kept: bool, style: Style) -> String {
    let files = match kept {
        true => format!(
            "The project stays in {}; remove it when you like.",
            show::clean(&scratch.project().display().to_string())
        ),
        false => "The scratch project is gone; `haft demo --keep` leaves it.".to_owned(),
    };
    format!(
        "{}\n{}\n\n  {}\n  {}\n",
        style.bold("With a real model"),
        style.wrap(&format!("{files} In a project of yours:")),
        "ANTHROPIC_API_KEY=… haft -p 'Why does the parser test fail?' --model MODEL",
        "haft -p 'List the TODOs' --base-url http://127.0.0.1:8080/v1 --model MODEL",
    )
}
