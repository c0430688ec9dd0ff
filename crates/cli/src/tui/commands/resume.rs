//! `/resume [ID]`: switches to another session.

use crate::tui::app::{AppEffect, ViewKind};

use super::ScreenCommand;

pub(super) const RESUME: ScreenCommand = ScreenCommand {
    name: "resume",
    hint: "[ID or title]",
    description: "Resume another session",
    run: |app, arguments, _| match arguments {
        "" => app.effect(AppEffect::Show(ViewKind::Resume)),
        id => app.resume(id),
    },
};
