//! `/rewind`: opens a view. With arguments, the session runs the command.

use crate::tui::app::{AppEffect, ViewKind};

use super::ScreenCommand;

pub(super) const REWIND: ScreenCommand = ScreenCommand {
    name: "rewind",
    hint: "",
    description: "Go back to an earlier message",
    run: |app, arguments, _| match arguments {
        "" => app.queue_for_session(AppEffect::Show(ViewKind::Rewind)),
        words => app.queue_for_session(AppEffect::Command(format!("/rewind {words}"))),
    },
};
