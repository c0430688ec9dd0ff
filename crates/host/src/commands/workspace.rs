//! `/add-dir`, `/init`, `/plan`, `/exit`: the working directories, planning, and the end of the
//! session.

use std::path::{Path, PathBuf};

use haft_contract::PermissionMode;

use super::{BuiltInCommand, CommandAction, CommandAnswer, CommandContext};
use crate::{SessionConfig, SessionInput, trust_report};

/// The prompt of `/init`.
const INIT_WORDS: &str = include_str!("../init.md");

pub(super) static ADD_DIR: BuiltInCommand = BuiltInCommand {
    name: "add-dir",
    hint: "<directory>",
    description: "Let calls read and edit a further directory",
    acts: CommandAction::Between(|context, path| Box::pin(add_dir(context, path))),
};

pub(super) static INIT: BuiltInCommand = BuiltInCommand {
    name: "init",
    hint: "",
    description: "Write a CLAUDE.md that says how to work on this project",
    acts: CommandAction::Prompt(|arguments| format!("{}\n\n{arguments}", INIT_WORDS.trim())),
};

pub(super) static PLAN: BuiltInCommand = BuiltInCommand {
    name: "plan",
    hint: "[off]",
    description: "Begin plan mode: only reading, until you approve a plan",
    acts: CommandAction::AnytimeIf(
        |_| false,
        |input, arguments| {
            Box::pin(async move {
                let mode = match arguments.trim() {
                    "off" => PermissionMode::Default,
                    _ => PermissionMode::Plan,
                };
                input.set_permission_mode(mode)?;
                Ok(format!("The mode is {}.", mode.name()))
            })
        },
    ),
};

pub(super) static MODE: BuiltInCommand = BuiltInCommand {
    name: "mode",
    hint: "[default|acceptEdits|plan|auto|dontAsk]",
    description: "Show or set the permission mode",
    acts: CommandAction::AnytimeIf(
        |_| false,
        |input, arguments| {
            Box::pin(async move {
                let name = arguments.trim();
                if !name.is_empty() {
                    let mode = serde_json::from_value(name.into());
                    let mode = mode.map_err(|_| format!("no permission mode is called {name}"))?;
                    input.set_permission_mode(mode)?;
                    return Ok(format!("The mode is {}.", mode.name()));
                }
                Ok(format!("The mode is {}.", input.mode().name()))
            })
        },
    ),
};

pub(super) static EXIT: BuiltInCommand = BuiltInCommand {
    name: "exit",
    hint: "",
    description: "Leave",
    acts: CommandAction::AnytimeIf(
        |_| false,
        |input, _| {
            Box::pin(async move {
                input.close();
                Ok(String::new())
            })
        },
    ),
};

/// A directory that could be added, with the facts needed to approve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryFacts {
    /// The real path.
    pub path: PathBuf,
    /// Settings files in it that would run programs or loosen permissions in a session started
    /// there.
    pub uncounted: Vec<String>,
}

impl DirectoryFacts {
    /// Describes the consequences of adding it, line by line.
    pub fn consequences(&self) -> Vec<String> {
        let may = "calls may read its files, and edit them if the mode permits";
        let mut words = vec![may.to_owned()];
        if !self.uncounted.is_empty() {
            let names = self.uncounted.join(", ");
            words.push(format!("has no effect in this session: {names}"));
        }
        words
    }
}

impl SessionInput {
    /// Returns the directory that the arguments of `/add-dir` name. Blocks on disk I/O. The error
    /// says what is wrong.
    pub fn directory(&self, words: &str) -> Result<DirectoryFacts, String> {
        let cwd = match self.0.access.engine() {
            Some((_, context)) => context.cwd.to_path_buf(),
            None => self.0.config.cwd.clone(),
        };
        let path = named(words, &cwd, self.0.environment.home())?;
        let config = SessionConfig {
            environment: self.0.environment.clone(),
            ..SessionConfig::new(&path)
        };
        let report = trust_report(&config).map_err(|error| error.to_string())?;
        let things = report.things.into_iter().map(|thing| thing.name);
        Ok(DirectoryFacts {
            path,
            uncounted: things.collect(),
        })
    }
}

fn named(words: &str, cwd: &Path, home: Option<PathBuf>) -> Result<PathBuf, String> {
    let path = words.trim().trim_matches('"');
    if path.is_empty() {
        return Err("say which directory: /add-dir DIR".to_owned());
    }
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => cwd.join(path),
    };
    let directory = path.canonicalize().ok().filter(|path| path.is_dir());
    directory.ok_or_else(|| format!("{} is not a directory", path.display()))
}

async fn add_dir(context: &mut CommandContext<'_>, path: &str) -> CommandAnswer {
    let home = context.input.0.environment.home();
    let directory = named(path, &context.agent.context().cwd, home)?;
    context.input.0.add_root(&directory);
    let agent = &mut *context.agent;
    agent
        .add_directory(directory.clone(), "slash_command", context.events)
        .await;
    Ok(format!(
        "Calls may read and edit {} too.",
        directory.display()
    ))
}
