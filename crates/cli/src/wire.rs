//! The parts, joined: from the command line to a session.

use std::{
    env,
    path::PathBuf,
    sync::{Arc, Once},
};

use anyhow::Context;
use haft::{
    Approver, Configure, DynTool, Filters, Haft, OnWeakSandbox, Selection, SessionId, Subagents,
    engine::{
        hooks::{AskModel, Handler, HearHooks},
        settings::{LocalRules, SettingsFiles, Watch},
    },
    tools::SkillBook,
};
use haft_models::{Http, HttpOptions};
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

use crate::{
    approver::Terminal,
    args::Session,
    exit::Exit,
    settings::{self, Keeper, Permitted},
    show,
};

/// What a mode adds to the session that the flags describe.
#[derive(Default)]
pub(crate) struct Additions {
    /// Who is asked. Default: the person at the terminal, if there is one.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// The session's id. Default: a new one.
    pub(crate) id: Option<SessionId>,
    /// Further hooks.
    pub(crate) handlers: Vec<Handler>,
    /// The model whose calls these are.
    pub(crate) model: Option<String>,
    /// Whom hooks may ask.
    pub(crate) judge: Option<Arc<dyn AskModel>>,
    /// Who hears of hooks as they run.
    pub(crate) ear: Option<Arc<dyn HearHooks>>,
    /// Hooks may put a call off.
    pub(crate) defers: bool,
    /// Tools of MCP servers.
    pub(crate) external: Vec<Arc<dyn DynTool>>,
    /// Where the session keeps its state. Default: the session's own folder.
    pub(crate) folder: Option<PathBuf>,
    /// Who can be handed tasks.
    pub(crate) subagents: Option<Arc<Subagents>>,
    /// The skills there are.
    pub(crate) skills: Option<Arc<SkillBook>>,
    /// Learns that commands are less confined than they should be. Default: it is said on stderr.
    #[cfg_attr(
        not(feature = "shell"),
        expect(dead_code, reason = "only commands are confined")
    )]
    pub(crate) on_weak_sandbox: Option<OnWeakSandbox>,
}

/// Sets the session up that the flags describe.
pub(crate) async fn session(flags: &Session) -> anyhow::Result<Haft> {
    let cwd = settings::cwd(flags)?;
    let permitted = settings::load(flags, &cwd)?;
    build(flags, cwd, permitted, Additions::default()).await
}

/// The same from settings that are loaded already.
pub(crate) async fn build(
    flags: &Session,
    cwd: PathBuf,
    permitted: Permitted,
    additions: Additions,
) -> anyhow::Result<Haft> {
    settings::report(&permitted.settings);
    // Where it must be had, there is no session to tell this of.
    let sandbox = &permitted.sandbox;
    if let Some(missing) = sandbox.missing().filter(|_| !sandbox.required) {
        show::complain(&format!(
            "haft: {missing}: commands are asked about as if it were not set"
        ));
    }
    let local = LocalRules {
        places: permitted.settings.places.clone(),
    };
    let files = SettingsFiles {
        places: permitted.settings.places.clone(),
        flags: permitted.flags.clone(),
    };
    let http = Arc::new(Http::new(HttpOptions::from_env()));
    let mut hooks = permitted
        .hooks
        .with_handlers(additions.handlers)
        .with_http(http, permitted.http_hooks);
    if let Some(judge) = additions.judge {
        hooks = hooks.with_model(judge);
    }
    if let Some(ear) = additions.ear {
        hooks = hooks.heard_by(ear);
    }
    let mut builder = Haft::builder(&cwd)
        .plans(permitted.plans)
        .service(Arc::new(Arc::new(files) as Arc<dyn Configure>))
        .permission_mode(permitted.mode)
        .rules(permitted.rules)
        .hooks(hooks)
        .defers(additions.defers)
        .sandbox(permitted.sandbox)
        .home(&permitted.settings.places.home)
        .keeper(Arc::new(Keeper(local)))
        .watch(Watch::new(permitted.settings.places, permitted.flags))
        .filters(filters(flags));
    for directory in &permitted.directories {
        builder = builder.directory(directory);
    }
    if let Some(most) = concurrency(flags)? {
        builder = builder.concurrency(most);
    }
    #[cfg(feature = "memory")]
    if let Some(folder) = permitted.memory {
        builder = builder.service(Arc::new(haft::tools::MemoryFolder::new(folder)));
    }
    let patience = permitted.patience;
    let terminal = || Some(Arc::new(Terminal::of_this_process(patience)?) as _);
    if let Some(approver) = additions.approver.or_else(terminal) {
        builder = builder.approver(approver);
    }
    for tool in additions.external {
        builder = builder.external_tool(tool);
    }
    if let Some(id) = additions.id {
        builder = builder.session(id);
    }
    if let Some(model) = additions.model {
        builder = builder.model(model);
    }
    if let Some(folder) = additions.folder {
        builder = builder.session_folder(folder);
    }
    if let Some(subagents) = additions.subagents {
        builder = builder.service(subagents);
    }
    if let Some(skills) = additions.skills {
        builder = builder.service(skills);
    }
    #[cfg(feature = "pdf")]
    if let Ok(program) = env::current_exe() {
        builder = builder.service(Arc::new(haft::tools::PdfReader::new(program)));
    }
    #[cfg(feature = "shell")]
    if let Ok(program) = env::current_exe() {
        let program = haft::tools::ShellProgram::new(program).with_users_shell();
        let says = || Arc::new(|warning: &str| weak_sandbox(warning)) as _;
        let program = program.on_weak_sandbox(additions.on_weak_sandbox.unwrap_or_else(says));
        builder = builder.service(Arc::new(program));
    }
    let haft = builder.build().await?;
    for name in haft.unknown_tools() {
        show::complain(&format!("haft: no tool is called {name:?}; it is left out"));
    }
    for problem in haft.unusable_tools() {
        show::complain(&format!(
            "haft: left out: {}",
            show::clean(&problem.to_string())
        ));
    }
    Ok(haft)
}

/// Says once that commands are less confined than they should be.
pub(crate) fn weak_sandbox(warning: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| show::complain(&format!("haft: {}", show::clean(warning))));
}

fn filters(flags: &Session) -> Filters {
    Filters {
        tools: flags
            .tools
            .as_deref()
            .map_or(Selection::All, Selection::parse),
        simple: flags.bare,
        undefer: env::var("ENABLE_TOOL_SEARCH").is_ok_and(|value| value == "false"),
        ..Filters::default()
    }
}

/// The flag, our own variable, the one of the common convention, in this order.
fn concurrency(flags: &Session) -> anyhow::Result<Option<usize>> {
    if let Some(most) = flags.max_concurrency {
        return Ok(Some(most.get()));
    }
    for name in [
        "HAFT_MAX_TOOL_CONCURRENCY",
        "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
    ] {
        if let Ok(value) = env::var(name) {
            let most: usize = value
                .parse()
                .ok()
                .filter(|most| *most > 0)
                .with_context(|| format!("{name}={value}: expected a number above 0"))?;
            return Ok(Some(most));
        }
    }
    Ok(None)
}

/// Logs to stderr what `HAFT_LOG` asks for; without it nothing is set up at all.
pub(crate) fn log() {
    // A panic of a tool is answered as its result; the default report would be noise.
    std::panic::set_hook(Box::new(|panic| {
        if env::var_os("HAFT_LOG").is_some() {
            show::complain(&format!("haft: {panic}"));
        }
    }));
    if let Ok(filter) = env::var("HAFT_LOG") {
        // Not `new`, which writes past us where the filter makes no sense.
        let filter = match EnvFilter::try_new(&filter) {
            Ok(filter) => filter,
            Err(problem) => {
                show::complain(&format!(
                    "haft: HAFT_LOG={filter}: {problem}; nothing is logged"
                ));
                return;
            }
        };
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(show::LogLines)
            .with_ansi(false)
            .init();
    }
}

/// Runs to the end on a runtime of its own. Threads that wait for input do not hold up the exit.
pub(crate) fn block_on(
    work: impl Future<Output = anyhow::Result<Exit>> + Send + 'static,
) -> anyhow::Result<Exit> {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    // On a worker: a call it starts then runs on the same thread, without waking another.
    let result = runtime.block_on(async { tokio::spawn(work).await });
    runtime.shutdown_background();
    result?
}
