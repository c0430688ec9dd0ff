//! `/permissions`: opens a view. With arguments, the session runs the command.

use crate::tui::app::{AppEffect, ViewKind};

use super::ScreenCommand;

pub(super) const PERMISSIONS: ScreenCommand = ScreenCommand {
    name: "permissions",
    hint: "[rule]",
    description: "Rules: show, add, remove, try a command",
    run: |app, arguments, _| match arguments {
        "" => app.queue_for_session(AppEffect::Show(ViewKind::Permissions)),
        words => app.queue_for_session(AppEffect::Command(format!("/permissions {words}"))),
    },
};
