//! Rejects prompts that are only the name of a command, of another program or of haft. They are not sent to a model,
//! because a mistyped command must not cost money.

/// Commands of other programs, each with a text that says what to do instead.
const INSTEAD: [(&str, &str); 8] = [
    (
        "update",
        "haft does not update itself: install the new version as you installed this one",
    ),
    (
        "config",
        "settings are JSON files, such as ~/.claude/settings.json; `haft doctor` shows which are used here, and \
         `haft models use NAME` saves a model",
    ),
    (
        "resume",
        "use `haft -p --continue 'PROMPT'`, or `haft -p --resume SESSION 'PROMPT'`; \
         `haft sessions list` shows them",
    ),
    (
        "init",
        "`haft -p /init` writes a CLAUDE.md for this project",
    ),
    (
        "agents",
        "agent kinds are files in .claude/agents or ~/.claude/agents, or JSON for `haft -p --agents`",
    ),
    (
        "serve",
        "`haft mcp serve` serves the tools to MCP clients; programs start `haft -p --input-format \
         stream-json`, or `haft exec` for tool calls only",
    ),
    (
        "worker",
        "haft has no workers; programs start `haft -p --input-format stream-json` themselves",
    ),
    (
        "fleet",
        "haft has no fleet; programs start `haft -p --input-format stream-json` themselves",
    ),
];

/// Returns the names of other programs' commands that haft rejects.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    INSTEAD.iter().map(|(name, _)| *name)
}

/// Rejects the name of another program's command, with an error that says what to do instead.
pub(super) fn check(word: &str) -> anyhow::Result<()> {
    match suggestion_for(word) {
        None => Ok(()),
        Some(instead) => anyhow::bail!("unknown command {word}: {instead}"),
    }
}

/// Rejects a prompt that consists only of the name of another program's command or of one of our commands.
pub(super) fn check_prompt(word: &str, commands: &[String]) -> anyhow::Result<()> {
    let meant = match suggestion_for(word) {
        Some(instead) => instead.to_owned(),
        None if word == "version" || commands.iter().any(|name| name == word) => {
            format!("`haft {word}` is the command")
        }
        None => return Ok(()),
    };
    anyhow::bail!("{word} is not sent to a model: {meant}. As a prompt: haft -p -- {word}")
}

fn suggestion_for(word: &str) -> Option<&'static str> {
    let (_, instead) = INSTEAD.iter().find(|(name, _)| *name == word)?;
    Some(instead)
}
