//! `haft help TOPIC`: prints texts that are too long for `--help`. The topics are the files in
//! `docs`.

use anyhow::bail;

use crate::{args, exit::Exit, show};

/// Name, description and text of each topic.
const TOPICS: &[(&str, &str, &str)] = &[
    (
        "settings",
        "settings files, every setting, trust",
        include_str!("../../docs/settings.md"),
    ),
    (
        "rules",
        "permission rules and modes",
        include_str!("../../docs/rules.md"),
    ),
    (
        "hooks",
        "commands that run on certain events",
        include_str!("../../docs/hooks.md"),
    ),
    (
        "mcp-servers",
        "MCP servers: configuration, confinement, approval",
        include_str!("../../docs/mcp-servers.md"),
    ),
    (
        "worktrees",
        "separate checkouts for sessions and subagents",
        include_str!("../../docs/worktrees.md"),
    ),
    (
        "language-servers",
        "diagnostics after edits, the tool LSP, confinement of servers",
        include_str!("../../docs/language-servers.md"),
    ),
    (
        "web",
        "WebFetch and WebSearch: allowed hosts, search backends",
        include_str!("../../docs/web.md"),
    ),
    (
        "browser",
        "the Browser tool: pages, snapshots, permission, confinement",
        include_str!("../../docs/browser.md"),
    ),
    (
        "exec-protocol",
        "the lines that `haft exec` reads and writes",
        include_str!("../../docs/exec-protocol.md"),
    ),
    (
        "editors",
        "haft in an editor: Zed, JetBrains, Neovim, Emacs",
        include_str!("../../docs/editors.md"),
    ),
    (
        "mcp-serve",
        "haft's tools for MCP clients",
        include_str!("../../docs/mcp-serve.md"),
    ),
    (
        "schedules",
        "scheduled prompts and monitors",
        include_str!("../../docs/schedules.md"),
    ),
    (
        "repl",
        "interpreters that keep their state: python and node",
        include_str!("../../docs/repl.md"),
    ),
    (
        "script",
        "scripted models for tests and demonstrations",
        include_str!("../../docs/script.md"),
    ),
    (
        "state",
        "where haft stores data",
        include_str!("../../docs/state.md"),
    ),
    (
        "export",
        "a session as a page or as Markdown",
        include_str!("../../docs/export.md"),
    ),
    (
        "telemetry",
        "statistics of sessions, and OpenTelemetry",
        include_str!("../../docs/telemetry.md"),
    ),
];

/// The topic about the options. It has no file because the flags describe themselves.
const OPTIONS: &str = "options";

pub(crate) fn run(words: &[String]) -> anyhow::Result<Exit> {
    let Some(first) = words.first() else {
        args::show_help(&[])?;
        show::line(&format!("\n{}", topics()))?;
        return Ok(Exit::Success);
    };
    if first == OPTIONS {
        args::show_shared_options()?;
    } else if let Some((.., text)) = TOPICS.iter().find(|(name, ..)| name == first) {
        show::line(text.trim_end())?;
    } else if !args::show_help(words)? {
        bail!("unknown command or topic {first:?}\n{}", topics());
    }
    Ok(Exit::Success)
}

/// Returns the names of the topics.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let names = TOPICS.iter().map(|(name, ..)| *name);
    names.chain([OPTIONS])
}

fn topics() -> String {
    let mut text = "Topics (haft help TOPIC):".to_owned();
    for (name, about, _) in TOPICS {
        text += &format!("\n  {name:<16} {about}");
    }
    text + &format!("\n  {OPTIONS:<16} options of all commands")
}
