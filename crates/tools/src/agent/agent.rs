//! `Agent`: hands a task to a subagent.

use std::{env, fmt::Write, time::Duration};

use haft_contract::{
    AgentAccess, AgentKind, AgentReport, BackgroundHandle, CallContext, Card, CardSection,
    CheckOutcome, Content, Effects, Idempotency, LaunchOutcome, LaunchRequest, RuleMatch,
    ServiceNeed, Services, Subagents, Tool, ToolAccess, ToolError, ToolOutput, ToolPermission,
    ToolProfile, schema,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::plural::counted;

/// The default and (`MAX_CAP`) the maximum length of the final text that the model gets inline,
/// in characters.
const CAP: usize = 32_000;
const MAX_CAP: usize = 160_000;
/// The maximum run time of a subagent. It only catches subagents that neither end, nor reach a
/// limit, nor are stopped.
const TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Hands a task to a subagent: a model with its own tools and an empty conversation. It answers with one final
/// message.
///
/// Use it for work of several steps whose details you need not see. If one or two calls are enough, make them
/// yourself. Several calls in one reply run in parallel. The user does not see the answer. Use SendMessage for
/// further questions to a subagent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// A name for the task, in 3 to 5 words.
    description: String,
    /// The task, all the information it needs, and what to answer.
    prompt: String,
    /// The kind of subagent (default general-purpose).
    subagent_type: Option<String>,
    /// The model, instead of the default one.
    model: Option<String>,
    /// The effort level of its model.
    effort: Option<Effort>,
    /// Do not wait: you will be notified when it is done.
    run_in_background: Option<bool>,
    /// A name for messages, in addition to its id.
    name: Option<String>,
    /// `worktree`: it works in a copy of the git repository, and its changes come back as a branch.
    isolation: Option<Isolation>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Isolation {
    Worktree,
    Remote,
}

impl Input {
    fn launch(&self) -> LaunchRequest {
        LaunchRequest {
            kind: self.subagent_type.clone(),
            prompt: self.prompt.clone(),
            description: self.description.clone(),
            model: self.model.clone(),
            effort: self.effort.map(|effort| effort.name().to_owned()),
            background: self.run_in_background,
            name: self.name.clone(),
            worktree: self.isolation.map(|_| true),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Agent {
    kinds: Vec<AgentKind>,
}

impl Tool for Agent {
    type Input = Input;
    const NAME: &'static str = "Agent";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            aliases: vec!["Task".into()],
            family: "agent".into(),
            search_hint: "subagent delegate task parallel background research".into(),
            access: ToolAccess::Reads,
            result_cap: Some(cap(env::var("TASK_MAX_OUTPUT_LENGTH").ok().as_deref())),
            timeout: Some(TIMEOUT),
            rules: RuleMatch::Text {
                parameters: &["subagent_type"],
                otherwise: "general-purpose",
            },
            agents: AgentAccess::Launching,
            needs: const { &[ServiceNeed::service::<Subagents>()] },
            ..ToolProfile::default()
        }
    }

    fn for_session(&self, services: &Services) -> Option<Self> {
        let subagents = services.get::<Subagents>().ok()?;
        Some(Self {
            kinds: subagents.0.kinds(),
        })
    }

    fn prompt(&self) -> Option<String> {
        let (_, mut text) = schema::input_schema::<Input>();
        if !self.kinds.is_empty() {
            text += "\n\nKinds:";
        }
        for AgentKind {
            name,
            description,
            tools,
        } in &self.kinds
        {
            let _ = write!(text, "\n- {name}: {}", description.trim());
            if !tools.is_empty() {
                let _ = write!(text, " (tools: {tools})");
            }
        }
        Some(text)
    }

    fn backfill(&self, input: &mut Value) {
        // Some models send these parameters. They have no effect: a subagent is never less strict
        // than its parent agent, and teams are not supported.
        if let Some(input) = input.as_object_mut() {
            input.shift_remove("mode");
            input.shift_remove("team_name");
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        // The effects of a subagent on files are checked and scheduled for each of its calls, in
        // its own engine.
        Effects {
            repeat: Idempotency::Never,
            ..Effects::READS
        }
    }

    fn permission(&self, _: &Input, _: &CallContext) -> ToolPermission {
        ToolPermission::Allow
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        if let Some(Isolation::Remote) = input.isolation {
            let text = "isolation \"remote\" is not available here. Omit it, or use \"worktree\".";
            return Err(ToolError::Refused(text.to_owned()));
        }
        if input.prompt.trim().is_empty() {
            let text = "`prompt` is empty: say what the subagent should do.";
            return Err(ToolError::Refused(text.to_owned()));
        }
        let subagents = cx.services.get::<Subagents>()?;
        subagents.0.check(&input.launch())?;
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let subagents = cx.services.get::<Subagents>()?;
        match subagents.0.launch(input.launch(), cx).await? {
            LaunchOutcome::Done(report) => done(input, &report),
            LaunchOutcome::InBackground(receipt) => Ok(launched(input, &receipt)),
        }
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let kind = input.subagent_type.as_deref().unwrap_or("general-purpose");
        let card = Card::new(Self::NAME, format!("{kind}: {}", input.description));
        Some(card.with(CardSection::Text(input.prompt.clone())))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let structured = output.structured.as_ref()?;
        let kind = input.subagent_type.as_deref().unwrap_or("general-purpose");
        let card = Card::new(Self::NAME, format!("{kind}: {}", input.description));
        if structured["status"] != "completed" {
            return Some(card.with_summary("in the background"));
        }
        let calls = counted(structured["totalToolUseCount"].as_u64()?, "call");
        let tokens = structured["totalTokens"].as_u64()?;
        let text = structured["content"][0]["text"].as_str()?;
        let card = card.with_summary(match tokens {
            // Not every provider counts tokens.
            0 => calls,
            tokens => format!("{calls}, {}", counted(tokens, "token")),
        });
        Some(card.with(CardSection::Text(text.to_owned())))
    }
}

/// Returns the maximum length of the final text, according to an environment variable.
fn cap(variable: Option<&str>) -> usize {
    let requested = variable.and_then(|text| text.trim().parse().ok());
    requested.filter(|cap| *cap > 0).unwrap_or(CAP).min(MAX_CAP)
}

fn done(input: &Input, report: &AgentReport) -> Result<ToolOutput, ToolError> {
    let id = format!("[agent id: {}]", report.agent);
    let problem = report.problem.as_deref().unwrap_or_default();
    if report.failed {
        let mut text = format!("The subagent did not finish: {problem}");
        if !report.text.is_empty() {
            let _ = write!(text, "\nIts last message:\n{}", report.text);
        }
        let note = report.worktree.as_ref().map(|worktree| &worktree.note);
        if let Some(note) = note.filter(|note| !note.is_empty()) {
            let _ = write!(text, "\n[{note}]");
        }
        return Err(ToolError::Failed(format!("{text}\n{id}")));
    }
    let mut text = report.text.clone();
    if !problem.is_empty() {
        let _ = write!(text, "\n\n[{problem}]");
    }
    let worktree = report.worktree.as_ref();
    let note = worktree.map(|worktree| &worktree.note);
    if let Some(note) = note.filter(|note| !note.is_empty()) {
        let _ = write!(text, "\n\n[{note}]");
    }
    let text = text.trim_start();
    let mut structured = json!({
        "status": "completed",
        "agentId": report.agent,
        "agentType": report.kind,
        "content": [{"type": "text", "text": report.text}],
        "prompt": input.prompt,
        "resolvedModel": report.model,
        "modelsUsed": report.models_used,
        "totalToolUseCount": report.tool_uses,
        "totalDurationMs": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        "totalTokens": report.tokens.total(),
        "usage": report.tokens,
    });
    if let Some(path) = worktree.and_then(|worktree| worktree.path.as_ref()) {
        structured["worktreePath"] = json!(path);
    }
    if let Some(branch) = worktree.and_then(|worktree| worktree.branch.as_ref()) {
        structured["worktreeBranch"] = json!(branch);
    }
    Ok(ToolOutput {
        content: vec![Content::text(text), Content::text(id)],
        structured: Some(structured),
        ..ToolOutput::default()
    })
}

fn launched(input: &Input, receipt: &BackgroundHandle) -> ToolOutput {
    let BackgroundHandle {
        agent,
        description,
        output_file,
        model,
    } = receipt;
    let text = format!(
        "The subagent works in the background. You will be notified when it is done. Continue with other work, or \
         end your turn. Its final message will also be in {}\n[agent id: {agent}]",
        output_file.display()
    );
    ToolOutput::text(text).with_structured(json!({
        "status": "async_launched",
        "agentId": agent,
        "description": description,
        "prompt": input.prompt,
        "outputFile": output_file,
        "resolvedModel": model,
        "canReadOutputFile": true,
    }))
}

#[cfg(test)]
mod tests {
    use haft_contract::{TokenCount, erase};

    use super::*;

    #[test]
    fn what_the_model_is_told() {
        let kinds = vec![AgentKind {
            name: "Explore".to_owned(),
            description: "Looks around.".to_owned(),
            tools: "all tools but Edit".to_owned(),
        }];
        let tool = erase(Agent { kinds });
        insta::assert_snapshot!(tool.spec().description);
        insta::assert_json_snapshot!(tool.spec().input_schema);
    }

    #[test]
    fn the_cap_is_what_the_variable_says_within_bounds() {
        let cases = [
            (None, 32_000),
            (Some("100"), 100),
            (Some("1000000"), 160_000),
            (Some("0"), 32_000),
            (Some("many"), 32_000),
        ];
        for (variable, expected) in cases {
            assert_eq!(cap(variable), expected, "{variable:?}");
        }
    }

    #[test]
    fn a_report_is_told_with_its_id_and_a_failure_is_an_error() {
        let input = json!({"description": "Looks", "prompt": "Look."});
        let input: Input = serde_json::from_value(input).unwrap();
        let mut report = AgentReport {
            agent: "a1".to_owned(),
            kind: "Explore".to_owned(),
            text: "Found it.".to_owned(),
            failed: false,
            problem: None,
            model: "m".to_owned(),
            models_used: vec!["m".to_owned()],
            tool_uses: 3,
            duration: Duration::from_millis(1500),
            tokens: TokenCount {
                input: 10,
                output: 5,
                cache_write: 0,
                cache_read: 100,
            },
            worktree: None,
        };
        let output = done(&input, &report).unwrap();
        insta::assert_json_snapshot!(output.structured);
        assert_eq!(output.content[1].as_text(), Some("[agent id: a1]"));
        report.failed = true;
        report.problem = Some("overloaded".to_owned());
        insta::assert_snapshot!(done(&input, &report).unwrap_err());
    }
}
