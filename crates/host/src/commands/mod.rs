//! The built-in slash commands: each file has one command or a few related ones, and this file has
//! the list of all.
//!
//! A command answers with a text. Commands that are independent of runs act at any time, even
//! during a run. The others are queued like a message. The user's own commands and skills, and
//! prompts of servers, are listed with them. If a name is used twice, the built-in command is run,
//! and `/user:name` runs the user's.

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

use crate::{
    PromptDelivery, SessionInput, event::EventEmitter, slash::SlashCommands,
    stop_signal::StopSignal,
};

/// The prefix that selects the user's command if a built-in one has the same name.
pub(crate) const THEIRS: &str = "user:";

/// The answer of a command: a text, or an error.
pub(crate) type CommandAnswer = Result<String, String>;

/// A built-in command.
pub(crate) struct BuiltInCommand {
    pub(crate) name: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) description: &'static str,
    pub(crate) acts: CommandAction,
}

/// The way in which a command runs.
pub(crate) enum CommandAction {
    /// At any time: it changes nothing that a run depends on.
    Anytime(AnytimeCommand),
    /// At any time if the function returns `true` for the arguments, otherwise between two runs.
    AnytimeIf(fn(&str) -> bool, AnytimeCommand),
    /// Between two runs.
    Between(BetweenCommand),
    /// The command becomes a prompt for the model.
    Prompt(fn(&str) -> String),
}

pub(crate) type AnytimeCommand =
    for<'a> fn(&'a SessionInput, &'a str) -> BoxFuture<'a, CommandAnswer>;
pub(crate) type BetweenCommand =
    for<'a, 'c> fn(&'a mut CommandContext<'c>, &'a str) -> BoxFuture<'a, CommandAnswer>;

/// The context of a command between two runs.
pub(crate) struct CommandContext<'c> {
    pub(crate) agent: &'c mut Agent,
    pub(crate) input: SessionInput,
    pub(crate) commands: &'c SlashCommands,
    pub(crate) events: &'c EventEmitter,
    pub(crate) stop: &'c StopSignal,
}

/// All built-in commands, by name.
pub(crate) static BUILT_IN: [&BuiltInCommand; 28] = [
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
    &workspace::MODE,
    &conversation::RENAME,
    &conversation::RESUME,
    &rewind::REWIND,
    &extensions::SKILLS,
    &status::STATUS,
    &tasks::TASKS,
    &undo::UNDO,
];

/// A command, for users to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandInfo {
    /// Its name, without the slash.
    pub name: String,
    /// A hint about its arguments.
    pub argument_hint: String,
    /// A description of what it does.
    pub description: String,
    /// Its source.
    pub source: CommandSource,
    /// Whether the command can run during a run, at least without arguments.
    pub read_only: bool,
}

/// The source of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandSource {
    /// Built in.
    BuiltIn,
    /// A command or skill in a folder.
    Command,
    /// A prompt of this MCP server.
    Server(String),
}

/// The outcome of a line that begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    /// The command was answered.
    Answered(Result<String, String>),
    /// The command is queued under this id.
    Queued(Uuid),
    /// The line is not a command.
    Unknown,
}

/// Formats rows as aligned columns.
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

/// Returns the first line of a text, shortened.
fn short(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// Formats a number of tokens.
fn thousands(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 if tokens % 1_000 >= 100 => {
            format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100)
        }
        _ => format!("{}k", tokens / 1_000),
    }
}

/// Runs a function that blocks on disk I/O.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(error.to_string()))
}

/// Returns the built-in command with this name.
pub(crate) fn built_in(name: &str) -> Option<&'static BuiltInCommand> {
    BUILT_IN.iter().find(|one| one.name == name).copied()
}

impl BuiltInCommand {
    /// Returns the function of a command that can run at any time with these arguments; `None`:
    /// only between two runs.
    fn anytime(&self, arguments: &str) -> Option<AnytimeCommand> {
        match self.acts {
            CommandAction::Anytime(run) => Some(run),
            CommandAction::AnytimeIf(may, run) => may(arguments).then_some(run),
            CommandAction::Between(_) | CommandAction::Prompt(_) => None,
        }
    }

    /// Runs the command between two runs. `None`: the command becomes a prompt for the model.
    pub(crate) async fn run(
        &self,
        context: &mut CommandContext<'_>,
        arguments: &str,
    ) -> Option<CommandAnswer> {
        match self.acts {
            CommandAction::Anytime(run) | CommandAction::AnytimeIf(_, run) => {
                let input = context.input.clone();
                Some(run(&input, arguments).await)
            }
            CommandAction::Between(run) => Some(run(context, arguments).await),
            CommandAction::Prompt(_) => None,
        }
    }
}

impl SessionInput {
    /// Returns the available commands: the built-in ones, then those of the user and of servers,
    /// each sorted by name.
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

    /// Runs a line that begins with a slash. Commands that are independent of runs are answered
    /// immediately, even during a run; the others are queued.
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
            return CommandOutcome::Queued(self.submit(line, PromptDelivery::AfterRun));
        }
        let theirs = name.strip_prefix(THEIRS).unwrap_or(name);
        if is_theirs(theirs) || name.starts_with("mcp__") {
            return CommandOutcome::Queued(self.submit(line, PromptDelivery::AfterRun));
        }
        CommandOutcome::Unknown
    }

    /// Returns whether a message calls a command.
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
