//! `Skill`: gives the model instructions that were written for the current task.

use std::time::Duration;

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Content, Effects, InjectedMessage, LaunchOutcome,
    LaunchRequest, Role, RuleMatch, ServiceNeed, Services, Subagents, Tool, ToolAccess, ToolError,
    ToolOutput, ToolPermission, ToolProfile, ToolRole,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{InvokedSkill, SkillCaller, SkillService};

/// Long, because a subagent may run the skill.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Loads a skill: instructions written for a kind of task.
///
/// A reminder lists the available skills and their purposes. If a skill fits the current task, call
/// this first, before you begin. Its instructions come as the next message; follow them. If the user
/// writes `/name`, they mean the skill of that name. Do not call a skill that is not listed, nor one
/// whose instructions you have already.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The skill's name, without a slash.
    skill: String,
    /// The arguments, as the user would type them after the name.
    args: Option<String>,
}

#[derive(Default)]
pub(crate) struct Skill {
    /// No skill can be called yet; one may be found later.
    is_idle: bool,
}

impl Tool for Skill {
    type Input = Input;
    const NAME: &'static str = "Skill";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "skill".into(),
            search_hint: "skill command instructions slash".into(),
            access: ToolAccess::Anything,
            timeout: Some(TIMEOUT),
            deferred: self.is_idle,
            rules: RuleMatch::Text {
                parameters: &["skill", "args"],
                otherwise: "",
            },
            role: Some(ToolRole::LoadsSkills),
            needs: const { &[ServiceNeed::service::<SkillService>()] },
            ..ToolProfile::default()
        }
    }

    fn for_session(&self, services: &Services) -> Option<Self> {
        let book = services.get::<SkillService>().ok()?;
        Some(Self {
            is_idle: !book.has_any(),
        })
    }

    fn backfill(&self, input: &mut Value) {
        let Some(input) = input.as_object_mut() else {
            return;
        };
        if !input.contains_key("skill")
            && let Some(name) = input.shift_remove("command")
        {
            input.insert("skill".to_owned(), name);
        }
        if let Some(Value::String(name)) = input.get_mut("skill") {
            *name = name.trim().trim_start_matches('/').to_owned();
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        // Commands in the skill's text run while it is loaded, and its permissions apply from then
        // on.
        Effects::EXCLUSIVE
    }

    fn permission(&self, input: &Input, cx: &CallContext) -> ToolPermission {
        let book = cx.services.get::<SkillService>();
        let found = book.map(|book| book.find(&input.skill, SkillCaller::Model));
        match found {
            // The skill consists only of text.
            Ok(Ok(skill)) if skill.is_plain() => ToolPermission::Allow,
            _ => ToolPermission::ByEffects,
        }
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        let book = cx.services.get::<SkillService>()?;
        let found = book.find(&input.skill, SkillCaller::Model);
        let skill = found.map_err(ToolError::Refused)?;
        if skill.fork.is_some() {
            let Ok(subagents) = cx.services.get::<Subagents>() else {
                return Err(ToolError::Refused(format!(
                    "The skill {:?} must be run by a subagent (context: fork), but this \
                     session cannot launch one. Read {} and follow it yourself.",
                    skill.name,
                    skill.file.display()
                )));
            };
            subagents.0.check(&launch(&skill, String::new()))?;
        }
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let book = cx.services.get::<SkillService>()?;
        let arguments = input.args.as_deref().unwrap_or_default();
        let invoked = book
            .invoke(
                &input.skill,
                arguments,
                SkillCaller::Model,
                &cx.nested,
                &cx.cancel,
            )
            .await;
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let invoked = invoked.map_err(ToolError::Failed)?;
        if invoked.skill.fork.is_some() {
            return fork(invoked, cx).await;
        }
        let name = &invoked.skill.name;
        let mut structured = json!({"success": true, "commandName": name});
        if !invoked.allowed.is_empty() {
            structured["allowedTools"] = json!(invoked.allowed);
        }
        if let Some(model) = invoked.model.as_ref().or(invoked.skill.model.as_ref()) {
            structured["model"] = json!(model);
        }
        let mut text = match invoked.is_known {
            true => format!(
                "The instructions of the skill {name} are in this conversation already, word for word: \
                 follow them."
            ),
            false => format!("The skill {name} is loaded: its instructions follow."),
        };
        if invoked.needs_trust {
            text += " Its permissions do not apply: this directory is not trusted.";
        }
        for warning in &invoked.warnings {
            text += &format!(" Note: {warning}.");
        }
        let mut output = ToolOutput::text(text).with_structured(structured);
        output.patches = invoked.patches();
        if !invoked.is_known {
            output.messages.push(InjectedMessage {
                role: Role::User,
                content: vec![Content::text(invoked.text)],
            });
        }
        Ok(output)
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let name = &input.skill;
        let shown = match input.args.as_deref() {
            Some(args) => format!("{name} {args}"),
            None => name.clone(),
        };
        Some(Card::new("Skill", shown))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let lines = output.messages.iter().flat_map(|message| &message.content);
        let lines: usize = lines
            .filter_map(Content::as_text)
            .map(|text| text.lines().count())
            .sum();
        let card = self.render_use(input)?;
        Some(card.with(CardSection::Muted(crate::plural::counted(
            lines as u64,
            "line",
        ))))
    }
}

/// Returns the request to launch the subagent that runs a skill.
fn launch(skill: &haft_extensions::Skill, prompt: String) -> LaunchRequest {
    LaunchRequest {
        kind: skill.fork.clone(),
        prompt,
        description: format!("Skill {}", skill.name),
        model: skill.model.clone(),
        effort: skill.effort.clone(),
        background: skill.background,
        name: None,
        worktree: None,
    }
}

/// Runs a skill in a subagent, whose final message is the result.
async fn fork(invoked: InvokedSkill, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    let subagents = cx.services.get::<Subagents>()?;
    let name = &invoked.skill.name;
    let launched = subagents
        .0
        .launch(launch(&invoked.skill, invoked.text), cx)
        .await?;
    let mut structured = json!({"success": true, "commandName": name, "status": "forked"});
    let text = match launched {
        LaunchOutcome::Done(report) if report.failed => {
            let problem = report.problem.unwrap_or_default();
            return Err(ToolError::Failed(format!(
                "The subagent that ran the skill {name} did not finish: {problem}\n{}",
                report.text
            )));
        }
        LaunchOutcome::Done(report) => {
            structured["agentId"] = json!(report.agent);
            structured["result"] = json!(report.text);
            format!("The skill {name} was run by a subagent:\n\n{}", report.text)
        }
        LaunchOutcome::InBackground(receipt) => {
            structured["agentId"] = json!(receipt.agent);
            format!(
                "The skill {name} is run by a subagent in the background. You will be notified when it \
                 is done.\n[agent id: {}]",
                receipt.agent
            )
        }
    };
    Ok(ToolOutput::text(text).with_structured(structured))
}
