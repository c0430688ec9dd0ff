//! A question about a call, with its own rules: the format of one line for `haft permissions
//! check`. Settings are ignored.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{PermissionMode, Services, SessionId};
use haft_engine::{
    SessionContext,
    permissions::{
        CallFacts, DecisionBehavior, HookPermission, List, PatternBases, Policy, PrivateTmp,
        RuleSet, RuleSource, SettingsScope, decide,
        rules::{RuleProblem, UrlTarget, target},
    },
};
use serde::Deserialize;
use serde_json::Value;

use super::CallExplainer;
use crate::{Environment, OpenError};

/// A call, and everything that its decision depends on.
#[derive(Debug, Deserialize)]
pub struct CallQuestion {
    #[serde(default)]
    rules: RuleTexts,
    tool: String,
    #[serde(default)]
    input: Value,
    cwd: PathBuf,
    #[serde(default)]
    home: Option<PathBuf>,
    #[serde(default)]
    mode: Option<PermissionMode>,
    #[serde(default)]
    additional_dirs: Vec<PathBuf>,
    #[serde(default)]
    rule_source: Option<String>,
    #[serde(default)]
    hook: Option<String>,
    #[serde(default)]
    simulate: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RuleTexts {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

impl CallExplainer {
    /// Creates an explainer for questions that contain all rules, without the services of a
    /// session.
    pub async fn standalone() -> Result<Self, OpenError> {
        let folder = std::env::temp_dir().join(format!("haft-{}", SessionId::new()));
        Ok(Self::new(Services::none(), folder).await?)
    }

    /// Returns the decision and its reason. The error says what is wrong with the question.
    pub async fn evaluate(
        &self,
        question: CallQuestion,
    ) -> Result<(DecisionBehavior, String), String> {
        if !question.cwd.is_absolute() {
            return Err("the line is not valid: `cwd` must be an absolute path".to_owned());
        }
        let home = question.home.clone();
        let home = home.or_else(|| Environment::default().home());
        let (mut rules, mut problems) = question.rules(home.as_ref());
        problems.extend(rules.resolve_for_tools(&self.specs()));
        let mut roots = vec![question.cwd.clone()];
        roots.extend(question.additional_dirs);
        let mut context = SessionContext::new(question.cwd)
            .with_mode(question.mode.unwrap_or_default())
            .with_home(home.clone())
            .with_rules(rules);
        for root in &roots {
            context = context.with_directory(root.clone());
        }
        let mut policy = Policy {
            rules: context.rules.clone(),
            ..Policy::for_directories(context.mode, &roots).with_home(home.as_deref())
        };
        let relies_on_undo = matches!(
            policy.mode,
            PermissionMode::Auto | PermissionMode::AcceptEdits
        );
        if relies_on_undo && self.is_unwitnessed() {
            Arc::make_mut(&mut policy.sandbox).unwitnessed = true;
        }
        let mut facts = self.facts(&question.tool, question.input, &context).await?;
        match question.hook.as_deref() {
            Some("allow") => facts.hook = HookPermission::Allow,
            Some("ask") => facts.hook = HookPermission::Ask,
            Some("deny") => return Ok((DecisionBehavior::Deny, "a hook decided so".to_owned())),
            _ => {}
        }
        if let Some(simulate) = &question.simulate {
            simulated(&mut facts, simulate);
        }
        let has_private = || facts.names_private_directory() && !self.is_unwitnessed();
        if facts.shell.is_some() && has_private() {
            policy.private_tmp = Some(Arc::new(PrivateTmp::for_new_session(&policy)));
            facts.resolve_private_tmp(&policy);
        }
        let decision = decide(&policy, &facts);
        let mut reason = decision.reason.to_string();
        for problem in problems {
            reason += &format!(" (rule {:?}: {})", problem.rule, problem.problem);
        }
        Ok((decision.behavior, reason))
    }
}

impl CallQuestion {
    /// Returns the rules of the question, and their problems.
    fn rules(&self, home: Option<&PathBuf>) -> (RuleSet, Vec<RuleProblem>) {
        let scope = match self.rule_source.as_deref() {
            Some(source) if source.starts_with("user") => SettingsScope::User,
            _ => SettingsScope::Project,
        };
        let bases = PatternBases {
            cwd: self.cwd.clone(),
            home: home.unwrap_or(&self.cwd).clone(),
            slash: match (home, scope) {
                (Some(home), SettingsScope::User) => home.join(".claude"),
                _ => self.cwd.clone(),
            },
        };
        let mut rules = RuleSet::default();
        let mut problems = Vec::new();
        for (list, texts) in [
            (List::Deny, &self.rules.deny),
            (List::Ask, &self.rules.ask),
            (List::Allow, &self.rules.allow),
        ] {
            for text in texts {
                let added = rules.add(list, text, RuleSource::from_scope(scope), &bases);
                problems.extend(added.err());
            }
        }
        (rules, problems)
    }
}

/// Applies the simulated results of lookups to the facts.
fn simulated(facts: &mut CallFacts, simulate: &Value) {
    let texts = |names: &[&str]| -> Vec<String> {
        let named = names.iter().filter_map(|name| simulate.get(name));
        named
            .flat_map(|value| match value {
                Value::String(text) => vec![text.clone()],
                Value::Array(several) => {
                    let texts = several.iter().filter_map(Value::as_str);
                    texts.map(str::to_owned).collect()
                }
                _ => Vec::new(),
            })
            .collect()
    };
    for url in texts(&[
        "redirect",
        "redirect_to",
        "redirect_target",
        "redirects",
        "location",
    ]) {
        let same_host = url.starts_with('/') && !url.starts_with("//");
        if !same_host {
            facts
                .fetches
                .push(target(&url).unwrap_or_else(UrlTarget::none));
        }
    }
    let addresses = texts(&[
        "address",
        "addresses",
        "resolved",
        "resolved_address",
        "resolves_to",
        "ip",
    ]);
    for address in addresses {
        facts.resolved.push(address);
    }
}
