//! `/add-dir`, `/init`, `/plan`, `/exit`: where and how it works.

use std::path::PathBuf;

use haft_contract::PermissionMode;

use super::{Acts, BuiltIn, CommandAnswer, CommandContext};

/// What `/init` means.
const INIT_WORDS: &str = include_str!("../init.md");

pub(super) static ADD_DIR: BuiltIn = BuiltIn {
    name: "add-dir",
    hint: "<directory>",
    description: "Let calls read and edit a further directory",
    acts: Acts::Between(|context, path| Box::pin(add_dir(context, path))),
};

pub(super) static INIT: BuiltIn = BuiltIn {
    name: "init",
    hint: "",
    description: "Write a CLAUDE.md that says how to work on this project",
    acts: Acts::Says(|arguments| format!("{}\n\n{arguments}", INIT_WORDS.trim())),
};

pub(super) static PLAN: BuiltIn = BuiltIn {
    name: "plan",
    hint: "[off]",
    description: "Begin plan mode: only reading, until you approve a plan",
    acts: Acts::AnytimeIf(
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

pub(super) static EXIT: BuiltIn = BuiltIn {
    name: "exit",
    hint: "",
    description: "Leave",
    acts: Acts::AnytimeIf(
        |_| false,
        |input, _| {
            Box::pin(async move {
                input.close();
                Ok(String::new())
            })
        },
    ),
};

async fn add_dir(context: &mut CommandContext<'_>, path: &str) -> CommandAnswer {
    let path = path.trim().trim_matches('"');
    if path.is_empty() {
        return Err("say which directory: /add-dir DIR".to_owned());
    }
    let home = context.input.0.environment.home();
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => context.agent.context().cwd.join(path),
    };
    let directory: PathBuf = path
        .canonicalize()
        .ok()
        .filter(|path| path.is_dir())
        .ok_or_else(|| format!("{} is no directory", path.display()))?;
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
