//! Skills and commands as prompts for users of MCP clients.

use haft_contract::{BoxFuture, NestedCalls};
use haft_extensions::Skill;
use haft_mcp::server::{PromptDefinition, PromptSource, RequestContext};
use haft_tools::{SkillCaller, SkillService};
use serde_json::{Map, Value};

/// The name of the argument, for a skill that names none.
const ALL: &str = "arguments";

/// The skills that the client's user may call. Commands in their texts run as calls of the session,
/// under its rules.
pub(crate) struct ServedPrompts {
    pub(crate) book: SkillService,
    pub(crate) calls: NestedCalls,
}

impl PromptSource for ServedPrompts {
    fn list(&self) -> Vec<PromptDefinition> {
        let all = self.book.skills.all();
        let callable = all.iter().filter(|skill| skill.user_invocable);
        callable
            .map(|skill| PromptDefinition {
                name: skill.name.clone(),
                title: skill.title.clone(),
                description: skill.description.clone(),
                arguments: arguments(skill),
            })
            .collect()
    }

    fn get<'a>(
        &'a self,
        name: &'a str,
        given: &'a Map<String, Value>,
        cx: &'a RequestContext,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let skill = self.book.find(name, SkillCaller::User)?;
            let line = line(&skill, given);
            let invoked = self
                .book
                .invoke(name, &line, SkillCaller::User, &self.calls, &cx.cancel)
                .await?;
            if let Some(why) = invoked.hooks.stop {
                return Err(format!("a hook stopped it: {why}"));
            }
            let mut parts = vec![invoked.text];
            parts.extend(invoked.hooks.context);
            Ok(parts.join("\n\n"))
        })
    }
}

fn arguments(skill: &Skill) -> Vec<(String, String)> {
    let hint = skill.argument_hint.clone();
    if skill.arguments.is_empty() {
        let usual = || format!("The text after /{}", skill.name);
        return vec![(ALL.to_owned(), hint.unwrap_or_else(usual))];
    }
    let hint = hint.unwrap_or_default();
    let names = skill.arguments.iter();
    names.map(|name| (name.clone(), hint.clone())).collect()
}

/// Returns the arguments as the user would type them.
fn line(skill: &Skill, given: &Map<String, Value>) -> String {
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    if skill.arguments.is_empty() {
        return text(ALL).unwrap_or_default().to_owned();
    }
    let values: Vec<Option<&str>> = skill.arguments.iter().map(|name| text(name)).collect();
    let given = values.iter().rposition(Option::is_some);
    let given = given.map_or(0, |last| last + 1);
    let quoted = values[..given].iter().map(|value| {
        let value = value.unwrap_or_default();
        format!("'{}'", value.replace('\'', r"'\''"))
    });
    quoted.collect::<Vec<_>>().join(" ")
}
