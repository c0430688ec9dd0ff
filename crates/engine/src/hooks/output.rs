//! What a handler said.

use serde_json::Value;

use super::Event;

/// Longer texts of a handler are cut.
const LONGEST: usize = 10_000;

/// How a handler's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote.
    pub stdout: String,
    /// What it complained.
    pub stderr: String,
}

/// What a handler said, read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// It holds the event up: why.
    pub block: Option<String>,
    /// `permissionDecision`, for PreToolUse; `behavior`, for PermissionRequest.
    pub decision: Option<Word>,
    /// Why.
    pub reason: Option<String>,
    /// The call's input, in place of the one given.
    pub updated_input: Option<Value>,
    /// The call's output, in place of the one given.
    pub updated_output: Option<Value>,
    /// Rules and modes to take over.
    pub updated_permissions: Vec<Value>,
    /// What the model should know.
    pub context: Option<String>,
    /// What the person should know.
    pub message: Option<String>,
    /// Everything should stop after this: why.
    pub stop: Option<String>,
    /// Something went wrong with the handler itself, for the person.
    pub failure: Option<String>,
}

/// A decision of a handler, the stricter the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// It may run.
    Allow,
    /// A person should decide.
    Ask,
    /// It is put off: the run ends here and may be taken up again.
    Defer,
    /// It may not run.
    Deny,
}

impl Said {
    /// A handler that failed.
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            failure: Some(why.into()),
            ..Self::default()
        }
    }

    /// Reads what a process said.
    pub fn read(event: Event, ended: &Ended) -> Self {
        let stdout = ended.stdout.trim();
        let json = stdout
            .starts_with('{')
            .then(|| serde_json::from_str::<Value>(stdout).ok())
            .flatten()
            .filter(Value::is_object);
        let read = json.as_ref().map(|value| Self::of_json(event, value));
        let first_line = || {
            let line = ended.stderr.trim().lines().next().unwrap_or_default();
            match (line, ended.code) {
                ("", Some(code)) => format!("exit code {code}"),
                ("", None) => "ended by a signal".to_owned(),
                (line, _) => line.to_owned(),
            }
        };
        match (ended.code, read) {
            // Whatever else it says, this blocks.
            (Some(2), read) => {
                let mut said = read.and_then(Result::ok).unwrap_or_default();
                let stated = match said.decision {
                    Some(Word::Deny) => said.reason.clone(),
                    _ => said.block.clone(),
                };
                let stderr = cut(ended.stderr.trim());
                let why = stated.filter(|why| !why.is_empty()).unwrap_or(stderr);
                said.decision = None;
                said.updated_input = None;
                said.block = Some(why);
                said
            }
            (_, Some(Ok(said))) => said,
            (_, Some(Err(what))) => Self::failed(what),
            (Some(0), None) => {
                let to_model = ["SessionStart", "UserPromptSubmit", "UserPromptExpansion"];
                let plain = to_model.contains(&event.name()) && !stdout.is_empty();
                Self {
                    context: plain.then(|| cut(stdout)),
                    ..Self::default()
                }
            }
            (_, None) => Self::failed(first_line()),
        }
    }

    fn of_json(event: Event, value: &Value) -> Result<Self, String> {
        let text = |value: &Value, name: &str| match value.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(cut(text))),
            Some(_) => Err(format!("{name} is no text")),
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
            Some("block") if event == Event::PRE_TOOL_USE => said.decision = Some(Word::Deny),
            Some("approve") if event == Event::PRE_TOOL_USE => said.decision = Some(Word::Allow),
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
        if event == Event::PRE_TOOL_USE {
            said.of_pre_tool_use(specific)?;
        } else if event == Event::PERMISSION_REQUEST {
            said.of_permission_request(specific)?;
        } else if event == Event::POST_TOOL_USE {
            let output = specific
                .get("updatedToolOutput")
                .or_else(|| specific.get("updatedMCPToolOutput"));
            said.updated_output = output.cloned();
        }
        Ok(said)
    }

    fn of_pre_tool_use(&mut self, specific: &Value) -> Result<(), String> {
        let decision = specific.get("permissionDecision");
        self.decision = match decision {
            None | Some(Value::Null) => self.decision,
            Some(Value::String(word)) => Some(match word.as_str() {
                "allow" => Word::Allow,
                "ask" => Word::Ask,
                "defer" => Word::Defer,
                "deny" => Word::Deny,
                other => return Err(format!("permissionDecision {other:?} is not known")),
            }),
            Some(_) => return Err("permissionDecision is no text".to_owned()),
        };
        if let Some(reason) = specific.get("permissionDecisionReason") {
            let reason = reason
                .as_str()
                .ok_or("permissionDecisionReason is no text")?;
            self.reason = Some(cut(reason));
        }
        match specific.get("updatedInput") {
            None | Some(Value::Null) => {}
            Some(input @ Value::Object(_)) => self.updated_input = Some(input.clone()),
            Some(_) => return Err("updatedInput is no object".to_owned()),
        }
        Ok(())
    }

    fn of_permission_request(&mut self, specific: &Value) -> Result<(), String> {
        let Some(decision) = specific.get("decision").filter(|value| !value.is_null()) else {
            return Ok(());
        };
        let behavior = decision.get("behavior").and_then(Value::as_str);
        self.decision = Some(match behavior {
            Some("allow") => Word::Allow,
            Some("deny") => Word::Deny,
            _ => return Err("decision.behavior is neither allow nor deny".to_owned()),
        });
        let message = decision.get("message").and_then(Value::as_str);
        self.reason = message.map(cut);
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

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((at, _)) => format!(
            "{}\n[{} further bytes are left out]",
            &text[..at],
            text.len() - at
        ),
    }
}
