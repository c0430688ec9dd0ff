//! `/vim`: toggles vi key bindings.

use serde_json::json;

use super::ScreenCommand;

pub(super) const VIM: ScreenCommand = ScreenCommand {
    name: "vim",
    hint: "",
    description: "Switch between emacs and vi keys",
    run: |app, _, _| {
        let mode = match app.settings.is_vi() {
            true => "normal",
            false => "vim",
        };
        app.settings.editor_mode = Some(mode.to_owned());
        app.set_editor_mode();
        app.save("editorMode", json!(mode));
    },
};
