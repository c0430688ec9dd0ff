//! The built-in tools: one file per tool, and one list of all tools.
//!
//! A tool consists of a doc comment that the model reads, an input type, and a few methods. The
//! journal does the work on files, and the search engine finds them. A tool turns the call into a
//! request to one of them, and the response into text for the model, structured output, and a card
//! for the user.
//!
//! # Layout
//! - [`all`]: the list; adding a tool means one file and one line in this list
//! - `browser`: `Browser`, pages in Chromium, based on [`haft_browser`]
//! - `agent`: `Agent`, `SendMessage`, based on [`haft_contract::Subagents`]
//! - `code`: `LSP`, and reports of new diagnostics after edits, based on [`LanguageServers`]
//! - `fs`: `Read`, `Write`, `Edit`, `NotebookEdit`, `LS`, `ReplaceInFiles`, `Undo`, based on
//!   [`haft_journal::Journal`]
//! - `search`: `Glob`, `Grep`, based on [`haft_search::SearchEngine`]
//! - `plan`: the task list and plan mode, based on [`haft_contract::SessionState`]; `memory`: notes
//!   that outlive a session, based on [`MemoryFolder`]; `session`: tools that affect only the
//!   session and the user
//! - `schedule`: scheduled prompts, based on [`haft_contract::Schedules`]
//! - `shell`: `Bash`, `Monitor`, `REPL`, `TaskOutput`, `TaskStop`, based on [`ShellService`]
//! - [`sandbox`]: the available confinement; `rewind`: restoring files to an earlier time
//! - `skill`: `Skill`, based on [`SkillService`]; `web`: `WebFetch`, `WebSearch`, based on
//!   [`haft_contract::web`]
//! - [`worktree`]: `EnterWorktree`, `ExitWorktree`, and the worktrees of subagents
//! - `paths`, `plural`: formatting of paths and numbers; `blocking`: running blocking work;
//!   `host_rules`: host rules for the command sandbox

#![warn(missing_docs)]

mod agent;
#[cfg(any(
    feature = "fs",
    feature = "memory",
    feature = "plan",
    feature = "schedule",
    feature = "search",
    feature = "session",
    feature = "shell"
))]
mod blocking;
#[cfg(feature = "browser")]
mod browser;
#[cfg(feature = "code")]
mod code;
#[cfg(feature = "fs")]
mod fs;
#[cfg(feature = "shell")]
mod hook_resolver;
#[cfg(any(feature = "shell", feature = "web"))]
mod host_rules;
#[cfg(feature = "memory")]
mod memory;
#[cfg(any(feature = "fs", feature = "search", feature = "shell"))]
mod paths;
#[cfg(feature = "plan")]
mod plan;
mod plural;
#[cfg(feature = "fs")]
mod rewind;
#[cfg(feature = "shell")]
pub mod sandbox;
#[cfg(feature = "schedule")]
mod schedule;
#[cfg(feature = "search")]
mod search;
#[cfg(feature = "session")]
mod session;
#[cfg(feature = "shell")]
mod shell;
#[cfg(feature = "skill")]
mod skill;
#[cfg(feature = "web")]
mod web;
#[cfg(feature = "shell")]
pub mod worktree;

use std::{path::Path, sync::Arc};

use haft_contract::{
    BackgroundTasks, DeferredTools, DynTool, PendingInput, Services, SessionState, erase,
};

#[cfg(feature = "browser")]
pub use browser::{BrowserProgram, BrowserSession, PageSecret, PageSecrets, SecretSource};
#[cfg(feature = "code")]
pub use code::{LanguageServerSetup, LanguageServers, installed_servers};
#[cfg(feature = "fs")]
pub use fs::{PdfReader, image_content, image_pixels};
#[cfg(feature = "fs")]
pub use haft_journal as journal;
#[cfg(feature = "shell")]
pub use haft_sandbox::WitnessLimits;
#[cfg(feature = "search")]
pub use haft_search::{IndexSettings, SharedEngine};
#[cfg(feature = "shell")]
pub use hook_resolver::HookAddresses;
#[cfg(feature = "memory")]
pub use memory::MemoryFolder;
#[cfg(feature = "fs")]
pub use rewind::{
    RewindError, RewindOutcome, append_line, changes, record_read, rewind, undo_changes,
};
#[cfg(feature = "shell")]
pub use shell::{ShellProgram, ShellService, ShellTasks, TaskInfo};
#[cfg(feature = "skill")]
pub use skill::{InvokedSkill, SkillCaller, SkillEffects, SkillService};
#[cfg(feature = "web")]
pub use web::{WebLimits, WebSession, html_to_markdown};
/// Name resolution of a session, for callers that supply their own resolver.
#[cfg(feature = "web")]
pub mod web_resolver {
    pub use haft_sandbox::network::{GateFuture, NameResolver};
}

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::fs::check_image;
}

/// Returns every built-in tool of this build, sorted by name.
pub fn all() -> Vec<Arc<dyn DynTool>> {
    Vec::from([
        erase(agent::Agent::default()),
        #[cfg(feature = "session")]
        erase(session::AskUserQuestion),
        #[cfg(feature = "shell")]
        erase(shell::Bash),
        #[cfg(feature = "browser")]
        erase(browser::Browser),
        #[cfg(feature = "session")]
        erase(session::Config),
        #[cfg(feature = "schedule")]
        erase(schedule::CronCreate),
        #[cfg(feature = "schedule")]
        erase(schedule::CronDelete),
        #[cfg(feature = "schedule")]
        erase(schedule::CronList),
        #[cfg(feature = "fs")]
        erase(fs::Edit),
        #[cfg(feature = "plan")]
        erase(plan::EnterPlanMode),
        #[cfg(feature = "shell")]
        erase(worktree::EnterWorktree),
        #[cfg(feature = "plan")]
        erase(plan::ExitPlanMode),
        #[cfg(feature = "shell")]
        erase(worktree::ExitWorktree),
        #[cfg(feature = "search")]
        erase(search::Glob),
        #[cfg(feature = "search")]
        erase(search::Grep),
        #[cfg(feature = "fs")]
        erase(fs::Ls),
        #[cfg(feature = "code")]
        erase(code::Lsp),
        #[cfg(feature = "memory")]
        erase(memory::MemoryRead),
        #[cfg(feature = "memory")]
        erase(memory::MemoryWrite),
        #[cfg(feature = "shell")]
        erase(shell::Monitor),
        #[cfg(feature = "fs")]
        erase(fs::NotebookEdit),
        #[cfg(feature = "session")]
        erase(session::PushNotification),
        #[cfg(feature = "shell")]
        erase(shell::Repl),
        #[cfg(feature = "fs")]
        erase(fs::Read::default()),
        #[cfg(all(feature = "fs", feature = "search"))]
        erase(fs::ReplaceInFiles::default()),
        #[cfg(feature = "session")]
        erase(session::ReportFindings),
        #[cfg(feature = "schedule")]
        erase(schedule::ScheduleWakeup),
        erase(agent::SendMessage),
        #[cfg(feature = "skill")]
        erase(skill::Skill::default()),
        #[cfg(feature = "session")]
        erase(session::Sleep),
        #[cfg(feature = "plan")]
        erase(plan::TaskCreate),
        #[cfg(feature = "plan")]
        erase(plan::TaskGet),
        #[cfg(feature = "plan")]
        erase(plan::TaskList),
        #[cfg(feature = "shell")]
        erase(shell::TaskOutput),
        #[cfg(feature = "shell")]
        erase(shell::TaskStop),
        #[cfg(feature = "plan")]
        erase(plan::TaskUpdate),
        #[cfg(feature = "session")]
        erase(session::Think),
        #[cfg(feature = "plan")]
        erase(plan::TodoWrite),
        #[cfg(feature = "session")]
        erase(session::ToolSearch::default()),
        #[cfg(feature = "fs")]
        erase(fs::Undo),
        #[cfg(feature = "session")]
        erase(session::WaitForMcpServers),
        #[cfg(feature = "web")]
        erase(web::WebFetch),
        #[cfg(feature = "web")]
        erase(web::WebSearch),
        #[cfg(feature = "fs")]
        erase(fs::Write),
    ])
}

/// A service that disables references to earlier results. Provide it if the model may no longer
/// have the earlier results, for example in a program that serves many conversations.
#[derive(Debug, Clone, Copy)]
pub struct AlwaysFullResults;

/// Returns the tools that can work with these services, adapted to this session.
pub fn usable(services: &Services) -> Vec<Arc<dyn DynTool>> {
    fitted(all(), services)
}

/// Returns the tools whose required services are available, adapted to the session.
pub fn fitted(mut tools: Vec<Arc<dyn DynTool>>, services: &Services) -> Vec<Arc<dyn DynTool>> {
    tools.retain(|tool| tool.spec().profile.has_its_needs(services));
    // `ToolSearch` names these tools in its description. Tools that `for_session` defers, such as
    // `Skill` without skills, are not in this list.
    let deferred = tools.iter().filter(|tool| tool.spec().profile.deferred);
    let deferred = DeferredTools::new(deferred.cloned().collect());
    let services = services.clone().with(Arc::new(deferred));
    tools
        .into_iter()
        .map(|tool| tool.for_session(&services).unwrap_or(tool))
        .collect()
}

/// Returns the services of a subagent, based on those of its parent agent. It has its own read
/// ledger, task list and pending input.
pub fn for_subagent(services: &Services) -> Services {
    let services = services
        .clone()
        .with(Arc::new(SessionState::default()))
        .with(Arc::new(PendingInput::default()));
    #[cfg(feature = "skill")]
    let services = match services.get::<SkillService>() {
        Ok(book) => services.with(Arc::new(SkillService {
            records_reads: false,
            ..(*book).clone()
        })),
        Err(_) => services,
    };
    #[cfg(feature = "browser")]
    let services = match services.get::<BrowserSession>() {
        Ok(session) => services.with(Arc::new(browser::AgentTab::new(&session))),
        Err(_) => services,
    };
    #[cfg(feature = "shell")]
    let services = match services.get::<worktree::WorktreeService>() {
        Ok(_) => with_worktrees(services),
        Err(_) => services,
    };
    #[cfg(feature = "fs")]
    if let Ok(journal) = services.get::<haft_journal::Journal>() {
        return services.with(Arc::new(journal.for_other_reader()));
    }
    services
}

/// Adds worktrees to services. The session must call
/// [`close`](haft_contract::WorktreeProvider::close) when it ends.
#[cfg(feature = "shell")]
pub fn with_worktrees(services: Services) -> Services {
    let service = Arc::new(worktree::WorktreeService::default());
    let maker = haft_contract::Worktrees(Arc::clone(&service) as _);
    services.with(service).with(Arc::new(maker))
}

/// Adds the services that the built-in tools need. Existing services are not replaced, so that
/// sessions can share a search engine and a subagent can have its own journal.
///
/// `session_folder` is the folder for the undo journal, which is created with the first change, and
/// for outputs that are too long. `cwd` is searched for files with the right name if a path does
/// not exist.
pub fn with_services(services: Services, session_folder: &Path, cwd: &Path) -> Services {
    let services = or_new(services, SessionState::default);
    let services = or_new(services, PendingInput::default);
    #[cfg(feature = "fs")]
    let services = {
        let limits = undo_limits(&services);
        or_new(services, || {
            haft_journal::Journal::new(Some(cwd.to_path_buf()))
                .with_undo(session_folder.join("undo"))
                .with_undo_limits(limits)
        })
    };
    let _ = (session_folder, cwd); // a build without files needs neither
    #[cfg(feature = "search")]
    let services = match services.get::<IndexSettings>() {
        Ok(settings) => or_new(services, || {
            haft_search::SearchEngine::with(IndexSettings::clone(&settings))
        }),
        Err(_) => or_new(services, haft_search::SearchEngine::new),
    };
    #[cfg(all(feature = "fs", feature = "search"))]
    let services = or_new(services, fs::ReplacePlans::default);
    let services = or_new(services, BackgroundTasks::default);
    #[cfg(feature = "shell")]
    let services = {
        let program = services.get::<ShellProgram>().ok();
        let journal = services.get::<haft_journal::Journal>().ok();
        match services.get() {
            Ok(notices) => or_new(services, || {
                ShellService::new(program.as_deref(), session_folder, journal, notices)
            }),
            Err(_) => services,
        }
    };
    #[cfg(feature = "shell")]
    let services = match services.get::<ShellService>() {
        Ok(shell) => services.with(Arc::new(shell as Arc<dyn haft_contract::ProbeConfinement>)),
        Err(_) => services,
    };
    #[cfg(feature = "code")]
    let services = with_language_servers(services);
    #[cfg(feature = "web")]
    let services = {
        let limits = services.get::<WebLimits>().ok();
        let limits = limits.map_or_else(WebLimits::default, |limits| *limits);
        or_new(services, || {
            WebSession::new(session_folder.join("tool-results"), limits)
        })
    };
    #[cfg(feature = "browser")]
    let services = or_new(services, || {
        BrowserSession::new(session_folder.join("tool-results"))
    });
    services
}

/// Returns the limits of the undo journal, according to the session's settings.
#[cfg(feature = "fs")]
fn undo_limits(services: &Services) -> haft_journal::UndoLimits {
    let limits = haft_journal::UndoLimits::default();
    #[cfg(feature = "shell")]
    if let Ok(set) = services.get::<WitnessLimits>() {
        return haft_journal::UndoLimits {
            bytes: set.copy_bytes,
            pinned: set.pin_bytes,
            ..limits
        };
    }
    let _ = services; // a build without commands has no such settings
    limits
}

/// Adds the language servers of a session that has settings for them.
#[cfg(feature = "code")]
fn with_language_servers(services: Services) -> Services {
    let (Ok(setup), Ok(shell)) = (
        services.get::<LanguageServerSetup>(),
        services.get::<ShellService>(),
    ) else {
        return services;
    };
    if setup.is_off() {
        return services;
    }
    let services = or_new(services, || {
        LanguageServers::new(LanguageServerSetup::clone(&setup), shell)
    });
    match services.get::<LanguageServers>() {
        Ok(servers) => services.with(Arc::new(haft_contract::CallFollowUpService(servers))),
        Err(_) => services,
    }
}

/// If this program was started as a child process, to confine commands or to read a PDF, does that
/// and exits; otherwise does nothing. A program that provides itself as the child
/// ([`ShellProgram`], [`PdfReader`]) must call this first in `main`, before it starts a second
/// thread.
pub fn serve_child() {
    #[cfg(feature = "shell")]
    haft_sandbox::child::run_if_asked();
    #[cfg(feature = "pdf")]
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == haft_pdf::child::ARGUMENT)
    {
        haft_pdf::child::main();
    }
}

/// Recovers the changes that killed sessions left incomplete. `project` is the folder of all
/// sessions of a project, which contains their session folders.
pub fn settle_crashed(project: &Path) {
    #[cfg(feature = "fs")]
    haft_journal::settle_crashed(project);
    let _ = project; // a build without file tools has no changes to recover
}

fn or_new<T: Send + Sync + 'static>(services: Services, make: impl FnOnce() -> T) -> Services {
    if services.get::<T>().is_ok() {
        services
    } else {
        services.with(Arc::new(make()))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    #[test]
    fn the_list_is_sorted_and_names_are_unique() {
        let names: Vec<String> = all().iter().map(|tool| tool.spec().name.clone()).collect();
        let sorted: BTreeSet<&String> = names.iter().collect();
        assert!(names.iter().eq(sorted), "{names:?}");
    }

    #[test]
    fn commands_are_offered_only_where_they_can_run() {
        let family = |tools: Vec<Arc<dyn DynTool>>| {
            let mut families = tools
                .into_iter()
                .map(|tool| tool.spec().profile.family.clone());
            families.any(|family| family == "shell")
        };
        assert!(!family(usable(&Services::none())));
        #[cfg(feature = "shell")]
        {
            let program = ShellProgram::new("/proc/self/exe".into());
            assert!(family(usable(&Services::none().with(Arc::new(program)))));
        }
    }

    #[test]
    fn every_file_that_holds_a_tool_is_in_the_list() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut written = BTreeSet::new();
        for (family, built) in [
            ("agent", true),
            ("browser", cfg!(feature = "browser")),
            ("code", cfg!(feature = "code")),
            ("fs", cfg!(feature = "fs")),
            ("memory", cfg!(feature = "memory")),
            ("plan", cfg!(feature = "plan")),
            ("schedule", cfg!(feature = "schedule")),
            ("search", cfg!(feature = "search")),
            ("session", cfg!(feature = "session")),
            ("shell", cfg!(feature = "shell")),
            ("skill", cfg!(feature = "skill")),
            ("worktree", cfg!(feature = "shell")),
            ("web", cfg!(feature = "web")),
        ] {
            for entry in fs::read_dir(source.join(family)).unwrap() {
                let mut path = entry.unwrap().path();
                if path.is_dir() {
                    path.push("mod.rs");
                }
                if !path.is_file() {
                    continue; // a folder of snapshots
                }
                let text = fs::read_to_string(path).unwrap();
                let name = text.split_once("const NAME: &'static str = \"");
                if let (Some((_, rest)), true) = (name, built) {
                    written.insert(rest.split('"').next().unwrap().to_owned());
                }
            }
        }
        let listed: BTreeSet<String> = all().iter().map(|tool| tool.spec().name.clone()).collect();
        assert_eq!(written, listed);
    }
}
