//! Words that people type because another program knows them. None of them is a prompt, nor is the name of one
//! of our commands: what was meant as a command does not go to a model that is paid for.

/// What to do instead.
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
        "there are no workers; programs start `haft -p --input-format stream-json` themselves",
    ),
    (
        "fleet",
        "there is no fleet; programs start `haft -p --input-format stream-json` themselves",
    ),
];

/// The words.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    INSTEAD.iter().map(|(name, _)| *name)
}

/// Refuses a word that is none of our commands and no prompt either, and says what to do instead.
pub(super) fn check(word: &str) -> anyhow::Result<()> {
    match suggestion_for(word) {
        None => Ok(()),
        Some(instead) => anyhow::bail!("unknown command {word}: {instead}"),
    }
}

/// Refuses a prompt that is nothing but such a word, or the name of one of our commands.
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
