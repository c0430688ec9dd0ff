//! `/undo`: opens a view. With arguments, the session runs the command.

use crate::tui::app::{AppEffect, ViewKind};

use super::ScreenCommand;

pub(super) const UNDO: ScreenCommand = ScreenCommand {
    name: "undo",
    hint: "[n]",
    description: "Undo changes of files",
    run: |app, arguments, _| match arguments {
        "" => app.queue_for_session(AppEffect::Show(ViewKind::Undo)),
        words => app.queue_for_session(AppEffect::Command(format!("/undo {words}"))),
    },
};
