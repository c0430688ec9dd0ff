//! `/tasks`: opens a view. With arguments, the session runs the command.

use crate::tui::app::{AppEffect, ViewKind};

use super::ScreenCommand;

pub(super) const TASKS: ScreenCommand = ScreenCommand {
    name: "tasks",
    hint: "",
    description: "Show what runs in the background",
    run: |app, arguments, _| match arguments {
        "" => app.queue_for_session(AppEffect::Show(ViewKind::Tasks)),
        words => app.queue_for_session(AppEffect::Command(format!("/tasks {words}"))),
    },
};
