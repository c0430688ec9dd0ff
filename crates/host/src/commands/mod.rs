//! Commands that begin with a slash and are ours: one file a command or a few that belong together, one list.
//!
//! A command answers with a text. Those that need nothing of a run act at any time, also in the middle of one;
//! the others wait for their turn like a message. People's own commands and skills, and prompts of servers, are
//! listed beside them; where a name is both, ours is meant, and `/user:name` means theirs.

mod context;
mod conversation;
mod diff;
mod export;
mod extensions;
mod help;
mod mcp;
mod memory;
mod model;
mod permissions;
mod rewind;
mod settings;
mod status;
mod tasks;
mod undo;
mod workspace;

use haft_agent::{Agent, Prompt};
use haft_contract::{BoxFuture, Content};
use haft_extensions::slash;
use uuid::Uuid;

pub use workspace::DirectoryFacts;

use crate::{Delivery, SessionInput, event::Events, slash::Commands, stop::Stop};

/// The prefix by which a command of a person's is meant where ours has the same name.
pub(crate) const THEIRS: &str = "user:";

/// What a command answers: a text, or what is wrong.
pub(crate) type CommandAnswer = Result<String, String>;

/// A command of ours.
pub(crate) struct BuiltIn {
    pub(crate) name: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) description: &'static str,
    pub(crate) acts: Acts,
}

/// How a command acts.
pub(crate) enum Acts {
    /// At any time: it changes nothing that a run relies on.
    Anytime(AnytimeCommand),
    /// At any time with arguments for which this is true, else between two runs.
    AnytimeIf(fn(&str) -> bool, AnytimeCommand),
    /// Between two runs.
    Between(BetweenCommand),
    /// It stands for words to the model.
    Says(fn(&str) -> String),
}

pub(crate) type AnytimeCommand =
    for<'a> fn(&'a SessionInput, &'a str) -> BoxFuture<'a, CommandAnswer>;
pub(crate) type BetweenCommand =
    for<'a, 'c> fn(&'a mut CommandContext<'c>, &'a str) -> BoxFuture<'a, CommandAnswer>;

/// What a command between two runs has.
pub(crate) struct CommandContext<'c> {
    pub(crate) agent: &'c mut Agent,
    pub(crate) input: SessionInput,
    pub(crate) commands: &'c Commands,
    pub(crate) events: &'c Events,
    pub(crate) stop: &'c Stop,
}

/// All of them, by name.
pub(crate) static BUILT_IN: [&BuiltIn; 27] = [
    &workspace::ADD_DIR,
    &extensions::AGENTS,
    &conversation::CLEAR,
    &conversation::COMPACT,
    &settings::CONFIG,
    &context::CONTEXT,
    &context::COST,
    &diff::DIFF,
    &status::DOCTOR,
    &model::EFFORT,
    &workspace::EXIT,
    &export::EXPORT,
    &help::HELP,
    &extensions::HOOKS,
    &workspace::INIT,
    &mcp::MCP,
    &memory::MEMORY,
    &model::MODEL,
    &permissions::PERMISSIONS,
    &workspace::PLAN,
    &conversation::RENAME,
    &conversation::RESUME,
    &rewind::REWIND,
    &extensions::SKILLS,
    &status::STATUS,
    &tasks::TASKS,
    &undo::UNDO,
];

/// A command, as people choose one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandInfo {
    /// Its name, without the slash.
    pub name: String,
    /// What may stand behind it.
    pub argument_hint: String,
    /// What it does.
    pub description: String,
    /// Where it comes from.
    pub source: CommandSource,
    /// It may act while a run is under way, at least without arguments.
    pub read_only: bool,
}

/// Where a command comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandSource {
    /// It is ours.
    BuiltIn,
    /// A command or skill that people put in a folder.
    Command,
    /// A prompt of this MCP server.
    Server(String),
}

/// What became of a line that begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    /// It was answered.
    Answered(Result<String, String>),
    /// It waits for its turn, under this id.
    Queued(Uuid),
    /// It is no command.
    Unknown,
}

/// Rows of columns that line up.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The first line of a text, shortened.
fn short(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// Tokens, as people read them.
fn thousands(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 if tokens % 1_000 >= 100 => {
            format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100)
        }
        _ => format!("{}k", tokens / 1_000),
    }
}

/// Runs something that waits for the disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(error.to_string()))
}

/// The command of ours that has this name.
pub(crate) fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|one| one.name == name).copied()
}

impl BuiltIn {
    /// How it acts at any time, with these arguments; `None`: only between two runs.
    fn anytime(&self, arguments: &str) -> Option<AnytimeCommand> {
        match self.acts {
            Acts::Anytime(run) => Some(run),
            Acts::AnytimeIf(may, run) => may(arguments).then_some(run),
            Acts::Between(_) | Acts::Says(_) => None,
        }
    }

    /// Acts, between two runs. `None`: it stands for words to the model.
    pub(crate) async fn act(
        &self,
        context: &mut CommandContext<'_>,
        arguments: &str,
    ) -> Option<CommandAnswer> {
        match self.acts {
            Acts::Anytime(run) | Acts::AnytimeIf(_, run) => {
                let input = context.input.clone();
                Some(run(&input, arguments).await)
            }
            Acts::Between(run) => Some(run(context, arguments).await),
            Acts::Says(_) => None,
        }
    }
}

impl SessionInput {
    /// The commands there are: ours, then those of people and of servers, each by name.
    pub fn commands(&self) -> Vec<CommandInfo> {
        if self.0.config.without_slash_commands || self.0.config.bare {
            return Vec::new();
        }
        let ours = BUILT_IN.iter().map(|one| CommandInfo {
            name: one.name.to_owned(),
            argument_hint: one.hint.to_owned(),
            description: one.description.to_owned(),
            source: CommandSource::BuiltIn,
            read_only: one.anytime("").is_some(),
        });
        let mut ours: Vec<CommandInfo> = ours.collect();
        ours.sort_by(|one, other| one.name.cmp(&other.name));
        let theirs = self.0.reload.own_commands().into_iter();
        let theirs = theirs.map(|one| CommandInfo {
            name: match built_in(&one.name) {
                Some(_) => format!("{THEIRS}{}", one.name),
                None => one.name,
            },
            argument_hint: one.argument_hint,
            description: one.description,
            source: CommandSource::Command,
            read_only: false,
        });
        let servers = self.0.servers.prompts().into_iter();
        let servers = servers.map(|prompt| {
            let server = prompt.command.strip_prefix("mcp__").unwrap_or_default();
            let server = server.split("__").next().unwrap_or_default();
            CommandInfo {
                source: CommandSource::Server(server.to_owned()),
                name: prompt.command,
                argument_hint: prompt.argument_hint,
                description: prompt.description,
                read_only: false,
            }
        });
        let mut others: Vec<CommandInfo> = theirs.chain(servers).collect();
        others.sort_by(|one, other| one.name.cmp(&other.name));
        ours.into_iter().chain(others).collect()
    }

    /// Carries out a line that begins with a slash. What only reads is answered at once, also while a run is
    /// under way; everything else waits for its turn.
    pub async fn command(&self, line: &str) -> CommandOutcome {
        let is_theirs = |name: &str| self.0.reload.has_command(name);
        let called = slash(line, is_theirs);
        let called = called.filter(|_| !self.commands_are_off());
        let Some(called) = called else {
            return CommandOutcome::Unknown;
        };
        let name = called.names[0];
        if let Some(command) = built_in(name) {
            if let Some(run) = command.anytime(called.arguments) {
                return CommandOutcome::Answered(run(self, called.arguments).await);
            }
            return CommandOutcome::Queued(self.say(line, Delivery::AfterRun));
        }
        let theirs = name.strip_prefix(THEIRS).unwrap_or(name);
        if is_theirs(theirs) || name.starts_with("mcp__") {
            return CommandOutcome::Queued(self.say(line, Delivery::AfterRun));
        }
        CommandOutcome::Unknown
    }

    /// Does a message call a command?
    pub(crate) fn is_command(&self, prompt: &Prompt) -> bool {
        let mut texts = prompt.content.iter().rev().filter_map(Content::as_text);
        let is_known = |name: &str| self.0.reload.has_command(name);
        texts
            .next()
            .is_some_and(|text| slash(text, is_known).is_some())
            && !self.commands_are_off()
    }

    fn commands_are_off(&self) -> bool {
        self.0.config.without_slash_commands || self.0.config.bare
    }
}
