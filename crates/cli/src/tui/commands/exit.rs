//! `/exit`, `/quit`: exits.

use crate::tui::app::AppEffect;

use super::ScreenCommand;

pub(super) const EXIT: ScreenCommand = ScreenCommand {
    name: "exit",
    hint: "",
    description: "Exit; `haft -r ID` resumes the session",
    run: |app, _, _| app.effect(AppEffect::Leave),
};

pub(super) const QUIT: ScreenCommand = ScreenCommand {
    name: "quit",
    ..EXIT
};
