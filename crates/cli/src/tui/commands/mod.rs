//! Slash commands of the user interface, one file per command. The session handles all others.

mod add_dir;
mod copy;
mod exit;
mod permissions;
mod resume;
mod rewind;
mod status_line;
mod tasks;
mod theme;
mod undo;
mod vim;

use std::time::Instant;

use super::{
    app::{App, AppEffect},
    complete::CompletableCommand,
};

/// A slash command that is available only in the terminal user interface.
pub(crate) struct ScreenCommand {
    name: &'static str,
    hint: &'static str,
    description: &'static str,
    /// Runs the command with its arguments.
    run: fn(&mut App, &str, Instant),
}

/// All commands by name.
const SCREEN_COMMANDS: [&ScreenCommand; 12] = [
    &add_dir::ADD_DIR,
    &copy::COPY,
    &exit::EXIT,
    &permissions::PERMISSIONS,
    &exit::QUIT,
    &resume::RESUME,
    &rewind::REWIND,
    &status_line::STATUS_LINE,
    &tasks::TASKS,
    &theme::THEME,
    &undo::UNDO,
    &vim::VIM,
];

/// Returns the commands as completion entries.
pub(crate) fn entries() -> Vec<CompletableCommand> {
    let entry = |command: &&ScreenCommand| CompletableCommand {
        name: command.name.to_owned(),
        hint: command.hint.to_owned(),
        description: command.description.to_owned(),
    };
    SCREEN_COMMANDS.iter().map(entry).collect()
}

impl App {
    /// Handles a line that begins with a slash.
    pub(super) fn command(&mut self, line: &str, now: Instant) {
        let (name, arguments) = line[1..]
            .split_once(char::is_whitespace)
            .unwrap_or((&line[1..], ""));
        let known = SCREEN_COMMANDS.iter().find(|command| command.name == name);
        match known {
            Some(command) => (command.run)(self, arguments.trim(), now),
            None => self.queue_for_session(AppEffect::Command(line.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_names_each_once() {
        let names: Vec<_> = SCREEN_COMMANDS.iter().map(|command| command.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
    }
}
