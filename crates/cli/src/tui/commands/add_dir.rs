//! `/add-dir DIR`: asks the user, then the session adds the directory.

use crate::tui::app::AppEffect;

use super::ScreenCommand;

pub(super) const ADD_DIR: ScreenCommand = ScreenCommand {
    name: "add-dir",
    hint: "<directory>",
    description: "Let calls read and edit a further directory",
    run: |app, arguments, _| app.queue_for_session(AppEffect::AskDirectory(arguments.to_owned())),
};
