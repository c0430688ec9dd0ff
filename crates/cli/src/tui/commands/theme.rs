//! `/theme [NAME]`: shows or sets the colour theme.

use serde_json::json;

use super::ScreenCommand;

/// The theme names, including the form for custom themes.
const NAMES: &str =
    "auto, dark, light, dark-daltonized, light-daltonized, dark-ansi, light-ansi, custom:NAME";

pub(super) const THEME: ScreenCommand = ScreenCommand {
    name: "theme",
    hint: "[NAME]",
    description: "Show or set the colours",
    run: |app, arguments, _| match arguments {
        "" => {
            let now = app.settings.theme.as_deref().unwrap_or("auto");
            app.remark(&format!("- theme {now}; /theme NAME sets one of {NAMES}"));
        }
        name => {
            app.settings.theme = Some(name.to_owned());
            app.choose_theme();
            app.save("theme", json!(name));
        }
    },
};
