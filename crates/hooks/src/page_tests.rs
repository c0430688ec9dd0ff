//! The small tables of hooks.md as they stand there: §1.1, §1.3, §3 and §4.2 to §4.3.

use std::collections::BTreeSet;

use super::{HookEventKind, HookMatcher, HookOutput, output::HookExit};

fn all() -> BTreeSet<&'static str> {
    HookEventKind::all().map(HookEventKind::name).collect()
}

fn set(names: &'static str) -> BTreeSet<&'static str> {
    let names: BTreeSet<&str> = names.split_whitespace().collect();
    assert!(names.is_subset(&all()), "{names:?}");
    names
}

fn those(holds: impl Fn(HookEventKind) -> bool) -> BTreeSet<&'static str> {
    let events = HookEventKind::all().filter(|event| holds(*event));
    events.map(HookEventKind::name).collect()
}

fn said(event: HookEventKind, code: i32, stdout: &str, stderr: &str) -> HookOutput {
    let ended = HookExit {
        code: Some(code),
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    };
    HookOutput::read(event, &ended).restrict_to_event(event)
}

/// §1.1: which events take which types.
#[test]
fn which_types_an_event_takes() {
    let models = set(
        "PreToolUse PostToolUse PostToolUseFailure PostToolBatch PermissionRequest PermissionDenied Stop \
         SubagentStop TaskCreated TaskCompleted TeammateIdle UserPromptSubmit UserPromptExpansion",
    );
    assert_eq!(those(|event| event.accepts_handler("prompt")), models);
    assert_eq!(those(|event| event.accepts_handler("agent")), models);
    assert_eq!(those(|event| event.accepts_handler("command")), all());
    assert_eq!(those(|event| event.accepts_handler("mcp_tool")), all());
    assert_eq!(
        those(|event| !event.accepts_handler("http")),
        set("SessionStart Setup")
    );
}

/// §1.3: matchers that are ignored, and those that know only `|`.
#[test]
fn what_matchers_tell_apart() {
    let none = set(
        "UserPromptSubmit PostToolBatch Stop TeammateIdle TaskCreated TaskCompleted CwdChanged \
         WorktreeCreate WorktreeRemove MessageDisplay",
    );
    assert_eq!(those(|event| !event.has_matcher()), none);
    // A comma, a blank and a dash are part of a list only where names may hold them.
    for (event, matcher, value, fits) in [
        ("PreToolUse", "Edit,Write", "Write", true),
        ("SubagentStop", "code-reviewer", "my-code-reviewer", false),
        ("FileChanged", "a_b|c", "c", true),
        ("FileChanged", "a,c", "c", false),
        ("FileChanged", "a,c", "a,c", true),
        ("FileChanged", "x.env", "x.env", true),
        ("StopFailure", "rate_limit|overloaded", "overloaded", true),
        ("StopFailure", "rate_limit, overloaded", "overloaded", false),
    ] {
        let (found, _) = HookMatcher::new(HookEventKind::from_name(event).unwrap(), matcher);
        assert_eq!(found.matches(&[value]), fits, "{event} {matcher} {value}");
    }
    // §0.1 of tools.md: a name that a tool has beside its own counts.
    let (task, _) = HookMatcher::new(HookEventKind::PRE_TOOL_USE, "Task");
    assert!(task.matches(&["Agent", "Task"]));
}

/// §3: who receives `permission_mode`.
#[test]
fn who_receives_the_mode() {
    let marked = set(
        "UserPromptSubmit UserPromptExpansion PreToolUse PermissionRequest PermissionDenied PostToolUse \
         PostToolUseFailure PostToolBatch SubagentStop TaskCreated TaskCompleted Stop TeammateIdle \
         Elicitation ElicitationResult",
    );
    assert_eq!(those(HookEventKind::includes_mode), marked);
}

/// §4.2: exit code 2.
#[test]
fn what_exit_code_2_does_at_each_event() {
    let blocks = set(
        "PreToolUse UserPromptSubmit UserPromptExpansion Stop SubagentStop PostToolBatch TeammateIdle \
         TaskCreated TaskCompleted ConfigChange PreCompact Elicitation ElicitationResult WorktreeCreate",
    );
    let for_model = set("PostToolUse PostToolUseFailure");
    let for_user =
        set("SessionStart Setup SubagentStart SessionEnd CwdChanged FileChanged PostCompact");
    let ignored = set(
        "PermissionRequest PermissionDenied Notification StopFailure InstructionsLoaded WorktreeRemove \
         DirectoryAdded MessageDisplay PreModelSwitch PostModelSwitch",
    );
    let found = |holds: fn(&HookOutput) -> bool| those(|event| holds(&said(event, 2, "", "why")));
    assert_eq!(found(|said| said.block.is_some()), &blocks | &for_model);
    assert_eq!(found(|said| said.message.is_some()), for_user);
    let silent = |said: &HookOutput| said.block.is_none() && said.message.is_none();
    assert_eq!(found(silent), ignored);
}

/// §4.3: where `continue` and `systemMessage` are discarded.
#[test]
fn where_the_universal_fields_are_discarded() {
    let both = set(
        "InstructionsLoaded WorktreeCreate WorktreeRemove PreCompact PostCompact SessionEnd Elicitation \
         ElicitationResult ConfigChange MessageDisplay Notification",
    );
    let goes_on = set("CwdChanged FileChanged DirectoryAdded TaskCreated");
    let answer = r#"{"continue": false, "stopReason": "s", "systemMessage": "m"}"#;
    let deaf = those(|event| said(event, 0, answer, "").message.is_none());
    assert_eq!(deaf, both);
    let endless = those(|event| said(event, 0, answer, "").stop.is_none());
    assert_eq!(endless, &both | &goes_on);
}

/// §4.1: plain text on stdout becomes context only at three events, and `{` must begin an object.
#[test]
fn what_plain_text_on_stdout_becomes() {
    let context = set("SessionStart UserPromptSubmit UserPromptExpansion");
    for text in ["ctx", "[1]", "{not json", "  {\"a\": "] {
        let told = those(|event| said(event, 0, text, "").context.is_some());
        assert_eq!(told, context, "{text}");
    }
    // An exit code that is neither 0 nor 2: an error that holds nothing up, unless JSON decides.
    for event in HookEventKind::all().filter(|event| event.name() != "WorktreeCreate") {
        let failed = said(event, 3, "", "first\nsecond");
        assert!(failed.failure.is_some(), "{}", event.name());
        assert!(
            failed.block.is_none() && failed.stop.is_none(),
            "{}",
            event.name()
        );
    }
    let block = r#"{"decision": "block", "reason": "r"}"#;
    assert_eq!(
        said(HookEventKind::STOP, 3, block, "").block.as_deref(),
        Some("r")
    );
}
