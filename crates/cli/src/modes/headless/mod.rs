//! `haft -p`: a model works here, without a person.
//!
//! - `flags`: what can be said about a run
//! - `model`, `names`, `conversation`: who answers, what they are called, and what was said before
//! - `turns`: one message after the other; `structured_output`: answers that must fit a schema
//! - `background`: what runs beside them
//! - `extensions`: what people laid in folders; `slash`: prompts that call it by name
//! - `output`: what goes out; `messages`, `stream_events` and `line_limit` say how it looks
//! - `input`, `requests`, `channel`, `callbacks`: the program at the other end, with
//!   `--input-format stream-json`; `permission`: it is asked; `mcp`: servers that it runs
//! - `judge`: models that hooks ask
//! - `session`: what it may ask of a session that runs
//! - `subagents`: who can be handed tasks

mod background;
mod callbacks;
mod channel;
pub(crate) mod conversation;
mod extensions;
pub(crate) mod flags;
mod input;
mod judge;
mod line_limit;
mod mcp;
mod messages;
mod model;
mod names;
mod output;
mod permission;
mod requests;
mod session;
mod slash;
mod stream_events;
mod structured_output;
mod subagents;
mod turns;

use std::{
    fs,
    io::{self, IsTerminal, Read},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use haft::{
    Approver, Content, OnWeakSandbox, PermissionMode, SessionContext,
    contract::{Subagents, approval::NobodyToAsk},
    engine::{hooks::HookMoment, permissions::Bases},
    session_folder,
};
use haft_agent::{
    Agent, Control, RunLimits,
    prompt::{PromptEnvironment, SystemPrompt},
    subagents::as_main_agent,
};
use haft_extensions::AgentDefinition;

use self::{
    background::Background,
    channel::Channel,
    extensions::{ExtensionNames, Extensions},
    flags::{Headless, InputFormat, OutputFormat, PromptFlags},
    input::{Initial, Queue, Reader},
    judge::Judge,
    mcp::Servers,
    messages::Facts,
    model::Chosen,
    output::Output,
    permission::{Host, PromptTool},
    session::SessionAccess as Looked,
    slash::Commands,
    structured_output::Shape,
    subagents::Kinds,
    turns::Turns,
};
use crate::{
    VERSION,
    args::SessionArgs,
    compose::{self, Additions},
    exit::Exit,
    settings::{self, Permitted},
    show,
    signals::Signals,
};

const NO_PROMPT: &str =
    "there is no prompt: give one as an argument or on stdin; `haft -p --help` tells more";

/// More than this on stdin is no prompt.
const LONGEST_PROMPT: u64 = 10 << 20;

pub(crate) async fn run(session: SessionArgs, flags: Headless) -> anyhow::Result<Exit> {
    let control = Control::default();
    let output = Arc::new(Output::new(&flags, control.clone()));
    let ended = go(&session, &flags, control, &output).await;
    if let Err(error) = &ended {
        output.put_failure(&format!("{error:#}"));
    }
    output.end()?;
    ended
}

async fn go(
    session: &SessionArgs,
    flags: &Headless,
    control: Control,
    output: &Arc<Output>,
) -> anyhow::Result<Exit> {
    check(flags)?;
    let signals = Signals::listen()?;
    // Where there is reason for doubt it is tried beside the rest of the start; elsewhere the first
    // command tells.
    let doubts =
        haft_sandbox::is_doubtful().then(|| tokio::task::spawn_blocking(settings::strongest));
    let cwd = settings::cwd(session)?;
    let mut permitted = settings::load(session, &cwd)?;
    let mut chosen = model::choose(&flags.model, &permitted.settings)?;
    limits(flags, &chosen)?;
    let shape = flags.json_schema.as_deref().map(Shape::read).transpose()?;
    let servers = Arc::new(Servers::read(&flags.mcp_config, &cwd)?);
    let looked = Arc::new(Looked::default());
    let mut extensions = Extensions::load(session, flags, &permitted);
    extensions.warn();
    let trusted = permitted.settings.trust.runs;
    let kinds = Arc::new(Kinds::find(&extensions, flags, session.bare, trusted)?);

    let queue = Arc::new(Queue::default());
    let channel = Arc::new(Channel::new(Arc::clone(output)));
    // Hooks may bring the first words.
    let starts = flags.init_only || !permitted.hooks.is_silent(HookMoment::SESSION_START);
    if let Some(prompt) = signals
        .until_told(prompt(flags, starts))
        .await
        .transpose()?
        .flatten()
    {
        queue.push(prompt.into());
    }
    if flags.input_format == InputFormat::StreamJson {
        let reader = Reader {
            queue: Arc::clone(&queue),
            channel: Arc::clone(&channel),
            control: control.clone(),
            bypass: bypass(flags, &permitted),
            replay: flags.replay_user_messages,
            servers: Arc::clone(&servers),
            session: Arc::clone(&looked),
            kinds: Arc::clone(&kinds),
            model: chosen.settings.name.clone(),
            window: chosen.settings.window,
            names: chosen.names.clone(),
            prices: flags.max_budget_usd.map(|_| chosen.prices.clone()),
            described: extensions.described(),
        };
        tokio::spawn(reader.run());
    } else {
        queue.close();
    }
    let first = signals
        .until_told(queue.next())
        .await
        .transpose()?
        .flatten();
    let starts = starts && flags.input_format == InputFormat::Text;
    if first.is_none() && (!starts || signals.told().is_some()) {
        return Ok(signals.told().unwrap_or(Exit::Success));
    }

    let mut initial = queue.begin();
    let judging = Arc::clone(&chosen.model);
    let shape = shape.or_else(|| initial.shape.take());
    let kinds = kinds.with(&initial.agents);
    let main = kinds.main(flags, &permitted)?;
    if let Some(main) = &main {
        subagents::take_over(main, flags, &mut chosen);
    }
    let limits = subagents::limits_of(main.as_ref(), flags, limits(flags, &chosen)?);
    let crew = kinds.crew(flags, main.as_ref(), &chosen, output)?;
    if let Some(shape) = &shape {
        chosen.model = shape.around(chosen.model);
    }
    let mut taken_up = conversation::choose(&flags.session, &cwd)?;
    let id = taken_up.id();
    if flags.session.session_mirror {
        taken_up = conversation::mirrored(taken_up, &cwd, output)?;
    }
    for repair in taken_up.repairs() {
        show::warn(&format!("haft: {}", show::clean(repair)));
    }
    let sandbox_warning = match doubts {
        Some(doubts) => doubts.await?.warning(),
        None => None,
    };
    let is_known = sandbox_warning.is_some();
    if let Some(warning) = &sandbox_warning {
        compose::weak_sandbox(warning);
    }
    let weak_output = Arc::clone(output);
    let on_weak_sandbox: OnWeakSandbox = Arc::new(move |warning| {
        compose::weak_sandbox(warning);
        if !is_known {
            weak_output.put_notice("warning", warning);
        }
    });
    output.belongs_to(
        id,
        Facts {
            key_source: chosen.key_source,
            window: chosen.settings.window,
            max_tokens: chosen.settings.max_tokens,
            left_out: permitted.settings.untrusted().map(|told| told.to_string()),
            sandbox_warning,
            servers: Arc::clone(&servers),
            told: ExtensionNames {
                agents: kinds.names(),
                ..extensions.told()
            },
        },
    );
    let judge = Judge {
        model: judging,
        settings: chosen.settings.clone(),
        control: control.clone(),
        session: id,
        rules: permitted.rules.clone(),
        directories: permitted.directories.clone(),
    };
    output.put_state("running");
    let setting_up = queue.set_up_begins();
    let streams = flags.input_format == InputFormat::StreamJson;
    let kept = session_folder(&cwd, id).join("tool-results");
    let connecting = servers.connect(streams.then_some(&channel), &kept, &setting_up);
    let Some(mut tools) = signals.until_told(connecting).await.transpose()? else {
        return Ok(signals.told().unwrap_or(Exit::Success));
    };
    // The tool that permits is not for the model.
    if let Some(prompt) = &flags.permission_prompt_tool {
        tools.retain(|tool| tool.spec().name != *prompt);
    }
    for problem in servers.problems() {
        show::warn(&format!("haft: {}", show::clean(&problem)));
    }
    let book = extensions.book(id, chosen.settings.effort.clone());
    let book = book.map(Arc::new);
    let bases = Bases {
        cwd: cwd.clone(),
        home: permitted.settings.places.home.clone(),
        slash: cwd.clone(),
    };
    extensions.open_folders(&mut permitted.rules, &bases);
    let additions = Additions {
        skills: book.clone(),
        on_weak_sandbox: Some(on_weak_sandbox),
        approver: Some(approver(
            flags,
            &channel,
            &servers,
            &control,
            permitted.patience,
        )?),
        id: Some(id),
        model: Some(chosen.settings.name.clone()),
        handlers: initial.handlers.clone(),
        external: tools,
        subagents: Some(crew.service()),
        folder: None,
        judge: Some(Arc::new(judge)),
        ear: Some(Arc::<Output>::clone(output)),
        defers: true,
    };
    let haft = compose::build(session, cwd.clone(), permitted, additions).await?;
    looked.has(&haft);
    let launches = haft.services().get::<Subagents>().is_ok();
    let has_skill_tool = haft.pool().with_role(haft::ToolRole::LoadsSkills).is_some();
    let mut scheduler = haft.into_scheduler();
    if let Some(main) = &main {
        scheduler = as_main_agent(&scheduler, main).map_err(anyhow::Error::msg)?;
    }
    let start = scheduler.context();
    for patch in conversation::taken_over(&taken_up, session, &cwd) {
        scheduler.apply(&patch);
    }
    let system = system_prompt(
        &flags.prompts,
        &initial,
        main.as_ref(),
        &scheduler.context(),
    )?;
    let mut system = extensions.styled(system);
    let moved =
        flags.prompts.exclude_dynamic_system_prompt_sections || initial.exclude_dynamic_sections;
    let with_first = match moved {
        true => system.environment.take(),
        false => None,
    };
    let prices = flags.max_budget_usd.map(|_| chosen.prices.clone());
    let replay = chosen.replay.take();
    let mut builder = Agent::builder(scheduler, chosen.model, chosen.settings)
        .limits(limits)
        .prices(chosen.prices)
        .session(taken_up)
        .start(start)
        .system_prompt(system)
        .control(control.clone())
        .crew(crew.clone())
        .version(VERSION);
    builder = match extensions.knowledge(has_skill_tool) {
        Some(knowledge) => builder.knowledge(knowledge),
        None => builder.without_memory(),
    };
    let mut agent = builder.build();
    if let Some(title) = flags.session.name.as_ref().or(initial.title.as_ref()) {
        agent.transcript().set_title(title);
    }

    let begun = begin(flags, &mut agent, output, &signals).await;
    let first = match begun {
        Begun::Over => None,
        Begun::With(words) => {
            first.into_iter().for_each(|given| queue.push_front(given));
            Some(words.into())
        }
        Begun::Silent => first,
    };
    let Some(mut first) = first else {
        agent.end("other", &**output).await;
        anyhow::ensure!(flags.init_only || signals.told().is_some(), NO_PROMPT);
        return Ok(signals.told().unwrap_or(Exit::Success));
    };
    if let Some(words) = main.and_then(|main| main.initial_prompt) {
        first.content.insert(0, Content::text(words));
    }
    if let Some(environment) = with_first {
        let told = Content::text(environment.to_string());
        first.content.insert(0, told);
    }

    let notices = agent.notices().unwrap_or_default();
    let background = Background::follow(notices, output)?;
    let mut turns = Turns {
        agent: &mut agent,
        queue: &queue,
        background,
        output,
        signals: &signals,
        shape: shape.as_ref(),
        session: &looked,
        fail_on_deny: flags.fail_on_deny,
        commands: Commands {
            book,
            prices,
            launches,
        },
    };
    if setting_up.is_cancelled() {
        control.interrupt_next();
    }
    let ran = turns.run(first).await;
    crew.close().await;
    let exit = ran?;
    agent.end("other", &**output).await;
    for divergence in replay.iter().flat_map(haft_models::Replay::divergences) {
        show::warn(&format!("haft: {divergence}"));
    }
    if flags.session.no_session_persistence {
        conversation::forget(&cwd, id);
    }
    Ok(exit)
}

/// How a session has begun.
enum Begun {
    /// It ends here.
    Over,
    /// Hooks want this said first.
    With(String),
    Silent,
}

/// Lets hooks make the project ready, and begins the session.
async fn begin(
    flags: &Headless,
    agent: &mut Agent,
    output: &Arc<Output>,
    signals: &Signals,
) -> Begun {
    let begun = signals.until_told(async {
        if flags.init || flags.init_only {
            agent.setup("init", &**output).await;
        }
        if flags.maintenance {
            agent.setup("maintenance", &**output).await;
        }
        match flags.init_only {
            true => Begun::Over,
            false => agent
                .begin(&**output)
                .await
                .map_or(Begun::Silent, Begun::With),
        }
    });
    // Whoever ends it now ends a run, and hears of it.
    begun.await.unwrap_or(Begun::Silent)
}

/// Do the flags make sense together?
fn check(flags: &Headless) -> anyhow::Result<()> {
    let streams = flags.input_format == InputFormat::StreamJson;
    anyhow::ensure!(
        !streams || flags.output_format == OutputFormat::StreamJson,
        "--input-format stream-json needs --output-format stream-json"
    );
    match flags.permission_prompt_tool.as_deref() {
        Some("stdio") => anyhow::ensure!(
            streams,
            "--permission-prompt-tool stdio needs --input-format stream-json"
        ),
        Some(other) => anyhow::ensure!(
            other.starts_with("mcp__"),
            "--permission-prompt-tool {other}: expected `stdio` or mcp__SERVER__TOOL"
        ),
        None => {}
    }
    Ok(())
}

/// Who is asked for permission. A tool that is not there ends the session: nobody else may stand in.
fn approver(
    flags: &Headless,
    channel: &Arc<Channel>,
    servers: &Servers,
    control: &Control,
    patience: Option<Duration>,
) -> anyhow::Result<Arc<dyn Approver>> {
    Ok(match flags.permission_prompt_tool.as_deref() {
        None => Arc::new(NobodyToAsk),
        Some("stdio") => Arc::new(Host {
            channel: Arc::clone(channel),
            control: control.clone(),
            patience,
        }),
        Some(name) => {
            let found = servers.find(name);
            let (client, tool) =
                found.map_err(|why| anyhow::anyhow!("--permission-prompt-tool: {why}"))?;
            Arc::new(PromptTool {
                client,
                tool,
                control: control.clone(),
            })
        }
    })
}

/// May a later message switch to bypassPermissions? The error says why not.
fn bypass(flags: &Headless, permitted: &Permitted) -> Result<(), String> {
    if permitted.mode == PermissionMode::BypassPermissions {
        return Ok(());
    }
    if !flags.allow_dangerously_skip_permissions {
        return Err("bypassPermissions needs --dangerously-skip-permissions or \
             --allow-dangerously-skip-permissions on the command line"
            .to_owned());
    }
    settings::may_bypass(&permitted.settings).map_err(|error| error.to_string())
}

fn limits(flags: &Headless, chosen: &Chosen) -> anyhow::Result<RunLimits> {
    let mut limits = RunLimits::default();
    limits.max_turns = match flags.max_turns {
        Some(most) => Some(most.get()),
        None => model::number("CLAUDE_CODE_MAX_TURNS")?.filter(|most| *most > 0),
    };
    if let Some(most) = flags.max_budget_usd {
        anyhow::ensure!(
            most > 0.0 && most.is_finite(),
            "--max-budget-usd {most}: expected an amount above 0"
        );
        // A limit that can never be reached would be none.
        for name in [&chosen.settings.name].into_iter().chain(&chosen.fallbacks) {
            anyhow::ensure!(
                chosen.prices.of(name).is_some(),
                "--max-budget-usd: the price of {name} is not known; give it with --prices, or with \
                 modelPrices in the settings"
            );
        }
        limits.max_budget_usd = Some(most);
    }
    Ok(limits)
}

/// What was said on the command line, and behind it what comes on stdin.
/// `None`: nothing was said, and that `may_be`.
async fn prompt(flags: &Headless, may_be: bool) -> anyhow::Result<Option<String>> {
    let given = flags.prompt.clone().filter(|text| !text.trim().is_empty());
    if flags.input_format == InputFormat::StreamJson {
        return Ok(given);
    }
    let piped = if io::stdin().is_terminal() {
        String::new()
    } else {
        tokio::task::spawn_blocking(piped).await??
    };
    match (given, piped.trim().is_empty()) {
        (Some(given), true) => Ok(Some(given)),
        (Some(given), false) => Ok(Some(format!("{given}\n\n{piped}"))),
        (None, false) => Ok(Some(piped)),
        (None, true) if may_be => Ok(None),
        (None, true) => anyhow::bail!(NO_PROMPT),
    }
}

fn piped() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let mut input = io::stdin().lock().take(LONGEST_PROMPT + 1);
    input
        .read_to_end(&mut bytes)
        .context("stdin cannot be read")?;
    anyhow::ensure!(
        bytes.len() as u64 <= LONGEST_PROMPT,
        "more than 10 MB on stdin; put it into a file and name the file in the prompt"
    );
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn system_prompt(
    flags: &PromptFlags,
    initial: &Initial,
    main: Option<&AgentDefinition>,
    context: &SessionContext,
) -> anyhow::Result<SystemPrompt> {
    let base = text(
        flags.system_prompt.as_ref(),
        flags.system_prompt_file.as_deref(),
    )?
    .or_else(|| initial.system_prompt.clone());
    let append = text(
        flags.append_system_prompt.as_ref(),
        flags.append_system_prompt_file.as_deref(),
    )?
    .or_else(|| initial.append_system_prompt.clone());
    // Whoever brings a prompt of their own says in it what they want said.
    let environment = base.is_none().then(|| PromptEnvironment::look(context));
    let base = base.or_else(|| main.map(|main| main.prompt.clone()));
    Ok(SystemPrompt {
        base,
        append,
        environment,
    })
}

fn text(given: Option<&String>, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    match (given, file) {
        (Some(text), _) => Ok(Some(text.clone())),
        (None, Some(path)) => fs::read_to_string(path)
            .with_context(|| path.display().to_string())
            .map(Some),
        (None, None) => Ok(None),
    }
}
