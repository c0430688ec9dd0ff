//! `/statusline COMMAND`: sets a user command that writes the status line.

use serde_json::{Value, json};

use crate::tui::app::AppEffect;

use super::ScreenCommand;

pub(super) const STATUS_LINE: ScreenCommand = ScreenCommand {
    name: "statusline",
    hint: "[COMMAND | off]",
    description: "Show the output of a command in the status row",
    run: |app, arguments, _| match arguments {
        "" => {
            let text = match &app.settings.status_line {
                Some(value) => format!("- statusLine: {value}"),
                None => {
                    "- the status row is haft's own; /statusline COMMAND replaces it".to_owned()
                }
            };
            app.remark(&text);
        }
        command => {
            let value = match command {
                "off" => Value::Null,
                command => json!({"type": "command", "command": command}),
            };
            app.settings.status_line = Some(value.clone()).filter(|value| !value.is_null());
            app.status_rows.clear();
            app.effect(AppEffect::StatusLine);
            app.save("statusLine", value);
        }
    },
};
