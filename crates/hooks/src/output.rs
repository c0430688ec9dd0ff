//! The output of a handler.

use std::path::PathBuf;

use serde_json::Value;

use super::{
    HookEventKind, HookFormAnswer, ModelHandlerConfig, event_kind::BlockBehavior,
    file_watch::MAX_PATHS,
};

/// The exit of a handler's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookExit {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// The parsed output of a handler.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookOutput {
    /// The reason to block the event, if it objects.
    pub block: Option<String>,
    /// `permissionDecision`, for PreToolUse; `behavior`, for PermissionRequest.
    pub decision: Option<HookDecision>,
    /// The reason of the decision.
    pub reason: Option<String>,
    /// A new input for the call.
    pub updated_input: Option<Value>,
    /// A new output for the call.
    pub updated_output: Option<Value>,
    /// Permission rules and modes to apply.
    pub updated_permissions: Vec<Value>,
    /// The answer to an MCP server, for Elicitation and ElicitationResult.
    pub form: Option<HookFormAnswer>,
    /// Text for the model.
    pub context: Option<String>,
    /// Text for the user.
    pub message: Option<String>,
    /// A title for the session.
    pub title: Option<String>,
    /// The first prompt of the session, as if the user had typed it.
    pub first_words: Option<String>,
    /// The paths to watch from now on.
    pub watch_paths: Option<Vec<PathBuf>>,
    /// Whether skills are to be reloaded.
    pub reload_skills: bool,
    /// Whether a denied call may be tried again.
    pub retry: bool,
    /// The text to display instead of the model's message, for MessageDisplay.
    pub display: Option<String>,
    /// The worktree that the handler created.
    pub worktree: Option<PathBuf>,
    /// The reason to end the run after this, if requested.
    pub stop: Option<String>,
    /// A failure of the handler itself, for the user.
    pub failure: Option<String>,
}

/// A decision of a handler; a stricter one compares as greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookDecision {
    /// The call may run.
    Allow,
    /// The user must decide.
    Ask,
    /// The call is deferred: the run ends here and may be resumed later.
    Defer,
    /// The call must not run.
    Deny,
}

impl HookOutput {
    /// The output of a handler that failed.
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            failure: Some(why.into()),
            ..Self::default()
        }
    }

    /// Parses the output of a process.
    pub fn read(event: HookEventKind, ended: &HookExit) -> Self {
        let stdout = ended.stdout.trim();
        let json = stdout
            .starts_with('{')
            .then(|| serde_json::from_str::<Value>(stdout).ok())
            .flatten()
            .filter(Value::is_object);
        let read = json.as_ref().map(|value| Self::parse_json(event, value));
        let first_line = || {
            let line = ended.stderr.trim().lines().next().unwrap_or_default();
            match (line, ended.code) {
                ("", Some(code)) => format!("exit code {code}"),
                ("", None) => "ended by a signal".to_owned(),
                (line, _) => line.to_owned(),
            }
        };
        if event == HookEventKind::WORKTREE_CREATE {
            return Self::parse_worktree(ended, read, first_line());
        }
        match (ended.code, read) {
            // Exit code 2 blocks, regardless of the output.
            (Some(2), read) => {
                let mut said = read.and_then(Result::ok).unwrap_or_default();
                let stated = match said.decision {
                    Some(HookDecision::Deny) => said.reason.clone(),
                    _ => said.block.clone(),
                };
                let stderr = || ended.stderr.trim().to_owned();
                let why = stated.filter(|why| !why.is_empty()).unwrap_or_else(stderr);
                said.decision = None;
                said.updated_input = None;
                said.form = None;
                said.block = Some(why);
                said
            }
            (_, Some(Ok(said))) => said,
            (_, Some(Err(what))) => Self::failed(what),
            (Some(0), None) => {
                let plain = event.takes_plain_text() && !stdout.is_empty();
                Self {
                    context: plain.then(|| stdout.to_owned()),
                    ..Self::default()
                }
            }
            (_, None) => Self::failed(first_line()),
        }
    }

    /// Parses the output of WorktreeCreate: the path of the worktree. An output without a path
    /// blocks the event.
    fn parse_worktree(ended: &HookExit, read: Option<Result<Self, String>>, why: String) -> Self {
        let no = |why: String| Self {
            block: Some(why),
            ..Self::default()
        };
        if ended.code != Some(0) {
            return no(why);
        }
        let last = ended
            .stdout
            .lines()
            .map(str::trim)
            .rfind(|line| !line.is_empty());
        match (read, last) {
            (Some(Err(what)), _) => no(what),
            (Some(Ok(said)), _) if said.block.is_some() || said.worktree.is_some() => said,
            (Some(Ok(_)), _) => no("it does not say worktreePath".to_owned()),
            (None, Some(path)) => Self {
                worktree: Some(PathBuf::from(path)),
                ..Self::default()
            },
            (None, None) => no("it printed no path".to_owned()),
        }
    }

    /// Parses the answer of a model handler.
    pub(super) fn parse_model_answer(
        event: HookEventKind,
        answer: &str,
        asked: &ModelHandlerConfig,
    ) -> Result<Self, String> {
        let unclear = || {
            format!(
                "the model did not answer with {{\"ok\": …}}: {}",
                quoted(answer)
            )
        };
        // Models often add text or a code fence around the JSON.
        let inside = answer.find('{').zip(answer.rfind('}'));
        let (start, end) = inside
            .filter(|(start, end)| start < end)
            .ok_or_else(unclear)?;
        let value: Value = serde_json::from_str(&answer[start..=end]).map_err(|_| unclear())?;
        let mut said = Self::default();
        match value.get("ok") {
            Some(Value::Bool(true)) => return Ok(said),
            Some(Value::Bool(false)) => {}
            _ => return Err(unclear()),
        }
        let reason = value.get("reason").and_then(Value::as_str);
        let why = reason.unwrap_or("no reason was given").to_owned();
        let ends = !asked.goes_on;
        match event.name() {
            "PermissionRequest" | "PermissionDenied" => {}
            // The task is impossible, so the model may stop.
            "Stop" | "SubagentStop" if value.get("impossible") == Some(&Value::Bool(true)) => {
                said.message = Some(why);
            }
            "PreToolUse" => {
                said.decision = Some(HookDecision::Deny);
                said.stop = ends.then(|| why.clone());
                said.reason = Some(why);
            }
            "PostToolUse" if ends => said.stop = Some(why),
            "TeammateIdle" => said.stop = Some(why),
            _ => said.block = Some(why),
        }
        Ok(said)
    }

    /// Removes parts without effect at this event, and moves an objection that cannot block to the
    /// message for the user, or drops it.
    pub(super) fn restrict_to_event(mut self, event: HookEventKind) -> Self {
        if !event.can_stop() {
            self.stop = None;
        }
        if !event.can_message() {
            self.message = None;
        }
        match event.block_behavior() {
            BlockBehavior::Blocks | BlockBehavior::ForModel => {}
            BlockBehavior::ForUser => {
                let texts = [self.message.take(), self.block.take()];
                let texts: Vec<String> = texts.into_iter().flatten().collect();
                self.message = (!texts.is_empty()).then(|| texts.join("\n"));
            }
            BlockBehavior::Ignored => self.block = None,
        }
        self
    }

    /// Returns all texts for the model or the user.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        [
            &mut self.block,
            &mut self.reason,
            &mut self.context,
            &mut self.message,
            &mut self.stop,
            &mut self.first_words,
        ]
        .into_iter()
        .flatten()
    }

    fn parse_json(event: HookEventKind, value: &Value) -> Result<Self, String> {
        // The output of a background handler comes later and has no effect here.
        if value.get("async") == Some(&Value::Bool(true)) {
            return Ok(Self::default());
        }
        let text = |value: &Value, name: &str| match value.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("{name} is not a string")),
        };
        let mut said = Self {
            message: text(value, "systemMessage")?,
            reason: text(value, "reason")?,
            ..Self::default()
        };
        match value.get("continue") {
            None | Some(Value::Null | Value::Bool(true)) => {}
            Some(Value::Bool(false)) => {
                said.stop = Some(text(value, "stopReason")?.unwrap_or_default());
            }
            Some(_) => return Err("continue is neither true nor false".to_owned()),
        }
        match text(value, "decision")?.as_deref() {
            None => {}
            Some("block") if event == HookEventKind::PRE_TOOL_USE => {
                said.decision = Some(HookDecision::Deny)
            }
            Some("approve") if event == HookEventKind::PRE_TOOL_USE => {
                said.decision = Some(HookDecision::Allow)
            }
            Some("block") => said.block = Some(said.reason.clone().unwrap_or_default()),
            Some("approve") => {}
            Some(other) => return Err(format!("decision {other:?} is not known")),
        }
        let Some(specific) = value
            .get("hookSpecificOutput")
            .filter(|value| !value.is_null())
        else {
            return Ok(said);
        };
        if text(specific, "hookEventName")?.as_deref() != Some(event.name()) {
            return Err(format!(
                "hookSpecificOutput is not for {}: hookEventName says otherwise",
                event.name()
            ));
        }
        said.context = text(specific, "additionalContext")?;
        said.title = text(specific, "sessionTitle")?;
        if event == HookEventKind::PRE_TOOL_USE {
            said.apply_pre_tool_use(specific)?;
        } else if event == HookEventKind::PERMISSION_REQUEST {
            said.apply_permission_request(specific)?;
        } else if event == HookEventKind::SESSION_START {
            said.first_words = text(specific, "initialUserMessage")?;
            said.reload_skills = specific.get("reloadSkills") == Some(&Value::Bool(true));
        } else if event == HookEventKind::PERMISSION_DENIED {
            said.retry = specific.get("retry") == Some(&Value::Bool(true));
        } else if event == HookEventKind::MESSAGE_DISPLAY {
            said.display = text(specific, "displayContent")?;
        } else if event == HookEventKind::WORKTREE_CREATE {
            said.worktree = text(specific, "worktreePath")?.map(PathBuf::from);
        } else if event == HookEventKind::POST_TOOL_USE {
            let output = specific
                .get("updatedToolOutput")
                .or_else(|| specific.get("updatedMCPToolOutput"));
            said.updated_output = output.cloned();
        } else if [
            HookEventKind::ELICITATION,
            HookEventKind::ELICITATION_RESULT,
        ]
        .contains(&event)
        {
            said.form = HookFormAnswer::read(specific)?;
        }
        if event.can_watch_paths() {
            said.watch_paths = paths(specific)?;
        }
        Ok(said)
    }

    fn apply_pre_tool_use(&mut self, specific: &Value) -> Result<(), String> {
        let decision = specific.get("permissionDecision");
        self.decision = match decision {
            None | Some(Value::Null) => self.decision,
            Some(Value::String(word)) => Some(match word.as_str() {
                "allow" => HookDecision::Allow,
                "ask" => HookDecision::Ask,
                "defer" => HookDecision::Defer,
                "deny" => HookDecision::Deny,
                other => return Err(format!("permissionDecision {other:?} is not known")),
            }),
            Some(_) => return Err("permissionDecision is not a string".to_owned()),
        };
        if let Some(reason) = specific.get("permissionDecisionReason") {
            let reason = reason
                .as_str()
                .ok_or("permissionDecisionReason is not a string")?;
            self.reason = Some(reason.to_owned());
        }
        match specific.get("updatedInput") {
            None | Some(Value::Null) => {}
            Some(input @ Value::Object(_)) => self.updated_input = Some(input.clone()),
            Some(_) => return Err("updatedInput is not an object".to_owned()),
        }
        Ok(())
    }

    fn apply_permission_request(&mut self, specific: &Value) -> Result<(), String> {
        let Some(decision) = specific.get("decision").filter(|value| !value.is_null()) else {
            return Ok(());
        };
        let behavior = decision.get("behavior").and_then(Value::as_str);
        self.decision = Some(match behavior {
            Some("allow") => HookDecision::Allow,
            Some("deny") => HookDecision::Deny,
            _ => return Err("decision.behavior is neither allow nor deny".to_owned()),
        });
        let message = decision.get("message").and_then(Value::as_str);
        self.reason = message.map(str::to_owned);
        if decision.get("interrupt") == Some(&Value::Bool(true)) {
            self.stop = Some(self.reason.clone().unwrap_or_default());
        }
        self.updated_input = decision
            .get("updatedInput")
            .filter(|input| input.is_object())
            .cloned();
        let updates = decision.get("updatedPermissions").and_then(Value::as_array);
        self.updated_permissions = updates.cloned().unwrap_or_default();
        Ok(())
    }
}

/// Reads `watchPaths`: absolute paths.
fn paths(specific: &Value) -> Result<Option<Vec<PathBuf>>, String> {
    let listed = match specific.get("watchPaths") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(listed)) => listed,
        Some(_) => return Err("watchPaths is not a list".to_owned()),
    };
    let mut paths = Vec::new();
    for path in listed {
        let path = path.as_str().map(PathBuf::from);
        let path = path.filter(|path| path.is_absolute());
        paths.push(path.ok_or("an entry of watchPaths is not an absolute path")?);
    }
    if paths.len() > MAX_PATHS {
        return Err(format!(
            "watchPaths names {} paths: {MAX_PATHS} can be watched",
            paths.len()
        ));
    }
    Ok(Some(paths))
}

/// Quotes the start of an invalid text.
fn quoted(text: &str) -> String {
    let start: String = text.trim().chars().take(200).collect();
    format!("{start:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(goes_on: bool) -> ModelHandlerConfig {
        ModelHandlerConfig {
            prompt: String::new(),
            model: None,
            with_tools: false,
            goes_on,
        }
    }

    #[test]
    fn a_models_no_means_something_else_at_each_event() {
        let no = r#"Here: {"ok": false, "reason": "r"}"#;
        // (event, continueOnBlock) -> (block, denied, stop)
        let cases = [
            ("PreToolUse", false, (false, true, true)),
            ("PreToolUse", true, (false, true, false)),
            ("PostToolUse", false, (false, false, true)),
            ("PostToolUse", true, (true, false, false)),
            ("PostToolUseFailure", false, (true, false, false)),
            ("PostToolBatch", false, (true, false, false)),
            ("UserPromptSubmit", false, (true, false, false)),
            ("UserPromptExpansion", false, (true, false, false)),
            ("Stop", false, (true, false, false)),
            ("SubagentStop", false, (true, false, false)),
            ("TaskCreated", false, (true, false, false)),
            ("TaskCompleted", false, (true, false, false)),
            ("TeammateIdle", false, (false, false, true)),
            ("PermissionRequest", false, (false, false, false)),
            ("PermissionDenied", false, (false, false, false)),
        ];
        for (name, goes_on, expected) in cases {
            let event = HookEventKind::from_name(name).unwrap();
            let said = HookOutput::parse_model_answer(event, no, &asked(goes_on))
                .unwrap()
                .restrict_to_event(event);
            let denied = said.decision == Some(HookDecision::Deny);
            let found = (said.block.is_some(), denied, said.stop.is_some());
            assert_eq!(found, expected, "{name} {goes_on}");
        }
    }

    #[test]
    fn a_models_yes_and_its_impossible_hold_nothing_up() {
        let stop = HookEventKind::STOP;
        let yes =
            HookOutput::parse_model_answer(stop, "```json\n{\"ok\": true}\n```", &asked(false))
                .unwrap();
        assert_eq!(yes, HookOutput::default());
        let never = r#"{"ok": false, "reason": "no such file", "impossible": true}"#;
        let said = HookOutput::parse_model_answer(stop, never, &asked(false)).unwrap();
        assert_eq!(said.block, None);
        assert_eq!(said.message.as_deref(), Some("no such file"));
        for unclear in ["yes", "{}", r#"{"ok": "true"}"#, "} {"] {
            assert!(
                HookOutput::parse_model_answer(stop, unclear, &asked(false)).is_err(),
                "{unclear}"
            );
        }
    }

    fn said(event: &str, code: i32, stdout: &str, stderr: &str) -> HookOutput {
        let event = HookEventKind::from_name(event).unwrap();
        let ended = HookExit {
            code: Some(code),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        };
        HookOutput::read(event, &ended).restrict_to_event(event)
    }

    #[test]
    fn what_exit_code_2_does_depends_on_the_event() {
        for event in super::super::event_kind::names() {
            if event == "WorktreeCreate" {
                continue; // every exit code but 0 is a no
            }
            let said = said(event, 2, "", "why");
            let found = (said.block.as_deref(), said.message.as_deref());
            let expected = match HookEventKind::from_name(event).unwrap().block_behavior() {
                BlockBehavior::Blocks | BlockBehavior::ForModel => (Some("why"), None),
                BlockBehavior::ForUser => (None, Some("why")),
                BlockBehavior::Ignored => (None, None),
            };
            assert_eq!(found, expected, "{event}");
        }
    }

    #[test]
    fn some_events_pass_over_what_every_answer_may_say() {
        let all = r#"{"continue": false, "stopReason": "s", "systemMessage": "m"}"#;
        let cases = [
            ("PreToolUse", true, true),
            ("SessionStart", true, true),
            ("CwdChanged", false, true),
            ("TaskCreated", false, true),
            ("PreCompact", false, false),
            ("Notification", false, false),
            ("SessionEnd", false, false),
        ];
        for (event, stops, tells) in cases {
            let said = said(event, 0, all, "");
            assert_eq!(
                (said.stop.is_some(), said.message.is_some()),
                (stops, tells),
                "{event}"
            );
        }
    }

    #[test]
    fn a_worktree_is_the_last_line_or_what_json_says() {
        let path = |text: &str| Some(PathBuf::from(text));
        let one = said("WorktreeCreate", 0, "making it\n/w/a\n\n", "");
        assert_eq!((one.worktree, one.block), (path("/w/a"), None));
        let json = r#"{"hookSpecificOutput": {"hookEventName": "WorktreeCreate", "worktreePath": "/w/b"}}"#;
        assert_eq!(said("WorktreeCreate", 0, json, "").worktree, path("/w/b"));
        for (code, stdout, why) in [
            (1, "/w/a", "no room"),
            (2, "/w/a", "no room"),
            (0, "", "it printed no path"),
            (0, "{}", "it does not say worktreePath"),
        ] {
            let one = said("WorktreeCreate", code, stdout, "no room");
            assert_eq!(
                (one.worktree, one.block.as_deref()),
                (None, Some(why)),
                "{code} {stdout}"
            );
        }
    }

    #[test]
    fn what_is_to_be_watched_is_absolute_and_not_too_much() {
        let answer = |event: &str, paths: &Value| {
            let specific = serde_json::json!({"hookEventName": event, "watchPaths": paths});
            serde_json::json!({"hookSpecificOutput": specific}).to_string()
        };
        let good = serde_json::json!(["/a", "/b c"]);
        for event in ["SessionStart", "CwdChanged", "FileChanged"] {
            let one = said(event, 0, &answer(event, &good), "");
            let expected = vec![PathBuf::from("/a"), PathBuf::from("/b c")];
            assert_eq!(one.watch_paths, Some(expected), "{event}");
        }
        assert_eq!(
            said("Stop", 0, &answer("Stop", &good), "").watch_paths,
            None
        );
        let many: Vec<String> = (0..300).map(|number| format!("/{number}")).collect();
        for bad in [
            serde_json::json!(["a"]),
            serde_json::json!("/a"),
            serde_json::json!(many),
        ] {
            let one = said("FileChanged", 0, &answer("FileChanged", &bad), "");
            assert!(one.failure.is_some() && one.watch_paths.is_none(), "{bad}");
        }
    }

    #[test]
    fn an_answer_that_comes_later_decides_nothing() {
        let later = r#"{"async": true, "decision": "block", "reason": "r"}"#;
        assert_eq!(said("PreToolUse", 0, later, ""), HookOutput::default());
    }
}
