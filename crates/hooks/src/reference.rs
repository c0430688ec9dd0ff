//! The table of hook events for the documentation: when each event fires, and what its matcher is
//! compared with.

use std::fmt::Write;

use crate::{BlockBehavior, HookEventKind};

/// The name of each event, when it fires, and what its matcher is compared with. Events that haft
/// accepts but does not fire share the last row.
const EVENTS: [(&str, &str, &str); 31] = [
    (
        "SessionStart",
        "a session begins or is resumed",
        "`startup`, `resume`, `clear`, `compact`, `fork`",
    ),
    (
        "Setup",
        "`--init`, `--init-only`, `--maintenance`",
        "`init`, `maintenance`",
    ),
    (
        "InstructionsLoaded",
        "an instruction file was read",
        "the reason it was read",
    ),
    ("UserPromptSubmit", "the user submits a prompt", ""),
    (
        "UserPromptExpansion",
        "a slash command becomes a prompt",
        "the command's name",
    ),
    (
        "PreToolUse",
        "before the permission decision about a call",
        "the tool",
    ),
    ("PermissionRequest", "before the user is asked", "the tool"),
    (
        "PermissionDenied",
        "a call was denied because no user can be asked",
        "the tool",
    ),
    ("PostToolUse", "a call has succeeded", "the tool"),
    ("PostToolUseFailure", "a call ran and failed", "the tool"),
    ("PostToolBatch", "all calls of one reply are answered", ""),
    ("SubagentStart", "a subagent begins", "its kind"),
    ("SubagentStop", "a subagent has finished", "its kind"),
    ("TaskCreated", "a task is created", ""),
    ("TaskCompleted", "a task is marked as completed", ""),
    ("MessageDisplay", "a message of the model is shown", ""),
    ("Stop", "the model has finished its turn", ""),
    (
        "StopFailure",
        "the model could not answer",
        "the kind of error",
    ),
    ("Notification", "a notification for the user", "its kind"),
    (
        "PreCompact",
        "the conversation is about to be compacted",
        "`manual`, `auto`",
    ),
    (
        "PostCompact",
        "the conversation was compacted",
        "`manual`, `auto`",
    ),
    (
        "ConfigChange",
        "a settings file or a skill has changed",
        "`user_settings`, `project_settings`, …, `skills`",
    ),
    ("CwdChanged", "the session's directory has changed", ""),
    (
        "DirectoryAdded",
        "a working directory was added",
        "how it was added",
    ),
    ("FileChanged", "a watched file has changed", "its name"),
    (
        "WorktreeCreate",
        "a worktree is needed; the hook creates it and prints its path",
        "",
    ),
    ("WorktreeRemove", "a worktree is removed", ""),
    ("Elicitation", "an MCP server asks the user", "the server"),
    (
        "ElicitationResult",
        "the user has answered; before the answer is sent to the server",
        "the server",
    ),
    ("SessionEnd", "a session ends", "the reason"),
    (
        "PreModelSwitch, PostModelSwitch, TeammateIdle",
        "accepted, not fired yet",
        "",
    ),
];

/// Returns the table as Markdown.
pub fn markdown() -> String {
    let mut text = "| Event | When | Matcher | Exit code 2 |\n|---|---|---|---|\n".to_owned();
    for (name, when, matcher) in EVENTS {
        let objection = match HookEventKind::from_name(name).map(HookEventKind::block_behavior) {
            Some(BlockBehavior::Blocks) => "blocks",
            Some(BlockBehavior::ForModel) => "sent to the model",
            Some(BlockBehavior::ForUser) => "shown to the user",
            Some(BlockBehavior::Ignored) => "ignored",
            None => "",
        };
        let names: Vec<String> = name.split(", ").map(|name| format!("`{name}`")).collect();
        let names = names.join(", ");
        let _ = writeln!(text, "| {names} | {when} | {matcher} | {objection} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_for_people_is_made_from_it() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hooks.md");
        let text = std::fs::read_to_string(page).unwrap();
        let (head, rest) = text.split_once("<!-- generated -->\n\n").unwrap();
        let (table, end) = rest.split_once("\n## Matchers").unwrap();
        if std::env::var_os("HAFT_WRITE_DOCS").is_some() {
            let new = format!(
                "{head}<!-- generated -->\n\n{}\n## Matchers{end}",
                markdown()
            );
            std::fs::write(page, new).unwrap();
            return;
        }
        assert_eq!(
            table,
            markdown(),
            "run the test again with HAFT_WRITE_DOCS=1"
        );
    }

    #[test]
    fn every_event_is_in_the_table_once() {
        let named: Vec<&str> = EVENTS
            .iter()
            .flat_map(|(name, ..)| name.split(", "))
            .collect();
        for name in &named {
            assert!(HookEventKind::from_name(name).is_some(), "{name}");
        }
        let mut different = named.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), named.len());
        assert_eq!(named.len(), HookEventKind::all().count());
    }
}
