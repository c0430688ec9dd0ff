//! `/permissions`: opens a view. With arguments, the session runs the command.

use crate::tui::app::{Effect, ViewKind};

use super::ScreenCommand;

pub(super) const PERMISSIONS: ScreenCommand = ScreenCommand {
    name: "permissions",
    hint: "[rule]",
    description: "Rules: look, add, remove, try a command",
    run: |app, arguments, _| match arguments {
        "" => app.queue_for_session(Effect::Show(ViewKind::Permissions)),
        words => app.queue_for_session(Effect::Command(format!("/permissions {words}"))),
    },
};
