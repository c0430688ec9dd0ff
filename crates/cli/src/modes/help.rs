//! `haft help TOPIC`: what is too long for `--help`. The topics are the files of `docs`.

use anyhow::bail;

use crate::{args, exit::Exit, show};

/// Name, what it is about, text.
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
        "programs of yours that run at certain moments",
        include_str!("../../docs/hooks.md"),
    ),
    (
        "mcp-servers",
        "servers whose tools are used: where they are named, confined, approved",
        include_str!("../../docs/mcp-servers.md"),
    ),
    (
        "worktrees",
        "copies of a checkout to work in, and what stays of them",
        include_str!("../../docs/worktrees.md"),
    ),
    (
        "language-servers",
        "problems after edits, the tool LSP: which servers, how they are confined",
        include_str!("../../docs/language-servers.md"),
    ),
    (
        "web",
        "pages and searches: where they may go, who searches",
        include_str!("../../docs/web.md"),
    ),
    (
        "browser",
        "pages looked at and tested in Chromium: what it may reach, refs, permission",
        include_str!("../../docs/browser.md"),
    ),
    (
        "exec-protocol",
        "the lines that `haft exec` reads and writes",
        include_str!("../../docs/exec-protocol.md"),
    ),
    (
        "editors",
        "haft as the agent of an editor: Zed, JetBrains, Neovim, Emacs",
        include_str!("../../docs/editors.md"),
    ),
    (
        "mcp-serve",
        "haft's tools in an editor or a desktop app",
        include_str!("../../docs/mcp-serve.md"),
    ),
    (
        "schedules",
        "prompts that are said later, and monitors",
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
        "where conversations, undo and trust are kept",
        include_str!("../../docs/state.md"),
    ),
    (
        "export",
        "a session as a page or as Markdown",
        include_str!("../../docs/export.md"),
    ),
    (
        "telemetry",
        "what sessions came to, and sending it to a collector",
        include_str!("../../docs/telemetry.md"),
    ),
];

/// What `haft help options` is about: no file, since the flags describe themselves.
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
        bail!("no command and no topic is called {first:?}\n{}", topics());
    }
    Ok(Exit::Success)
}

/// Names of the topics.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let names = TOPICS.iter().map(|(name, ..)| *name);
    names.chain([OPTIONS])
}

fn topics() -> String {
    let mut text = "Topics (haft help TOPIC):".to_owned();
    for (name, about, _) in TOPICS {
        text += &format!("\n  {name:<14} {about}");
    }
    text + &format!("\n  {OPTIONS:<14} the options that all commands share")
}
