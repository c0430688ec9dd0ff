//! The permission rules and the files they are saved in.

use std::path::PathBuf;

use haft_contract::{RuleList, RuleScope};
use haft_engine::{
    GrantedRule,
    permissions::{RuleSet, RuleSource, SettingsScope},
    settings::LocalRules,
};
use serde_json::Value;

use crate::{ResolvedSettings, SessionInput, explain};

/// A rule with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleInfo {
    /// The list it belongs to.
    pub list: RuleList,
    /// The rule, as written.
    pub rule: String,
    /// The name of its scope.
    pub scope: String,
    /// Its file, if any.
    pub file: Option<PathBuf>,
    /// Its line in the file, from 1.
    pub line: Option<usize>,
    /// Whether it ends after a time or with the task.
    pub is_timed: bool,
}

impl SessionInput {
    /// Returns the rules in force, including those of this session.
    pub fn rules(&self) -> Result<Vec<RuleInfo>, String> {
        let info = |rules: &RuleSet| -> Vec<RuleInfo> {
            let all = rules.iter().map(|rule| RuleInfo {
                list: rule.list,
                rule: rule.text.clone(),
                scope: rule.source.scope.name().to_owned(),
                file: rule.source.file.as_deref().map(PathBuf::from),
                line: rule.source.line,
                is_timed: false,
            });
            all.collect()
        };
        let permitted =
            ResolvedSettings::load(&self.0.config).map_err(|error| error.to_string())?;
        let mut rules = info(&permitted.rules);
        if let Some((engine, context)) = self.0.access.engine() {
            // A saved rule is listed with its file, not as a rule of the session.
            for rule in info(&context.rules) {
                let is_known = |one: &RuleInfo| one.list == rule.list && one.rule == rule.rule;
                if !rules.iter().any(is_known) {
                    rules.push(rule);
                }
            }
            rules.extend(engine.grants().list().into_iter().map(granted_rule));
        }
        rules.sort_by_key(|rule| rule.list);
        Ok(rules)
    }

    /// Adds a rule that applies from the next request on, and saves it. Returns the path of the
    /// file, if any. Blocks on disk I/O: do not call it on an async task that others wait for.
    pub fn save_rule(
        &self,
        list: RuleList,
        rule: &str,
        scope: RuleScope,
    ) -> Result<Option<PathBuf>, String> {
        self.check_rule(list, rule)?;
        let kept = self.local_rules().add_to(scope, list, &[rule.to_owned()])?;
        self.0.control.add_rule(list, rule);
        Ok(kept)
    }

    /// Ends the permissions of this session with this rule that end after a time or with the task.
    /// Returns whether there were any.
    pub fn end_timed_rule(&self, rule: &str) -> bool {
        let engine = self.0.access.engine();
        engine.is_some_and(|(engine, _)| engine.grants().revoke(rule))
    }

    /// Removes a rule from a file. It still applies to this session until its end.
    pub fn remove_rule(
        &self,
        list: RuleList,
        rule: &str,
        scope: RuleScope,
    ) -> Result<PathBuf, String> {
        let removed = self.local_rules().remove_from(scope, list, rule)?;
        removed.ok_or_else(|| "a rule of this session ends with it".to_owned())
    }

    /// Checks whether a rule is valid. The error says what is wrong with it.
    pub fn check_rule(&self, list: RuleList, rule: &str) -> Result<(), String> {
        let mut rules = RuleSet::default();
        let source = RuleSource::from_scope(SettingsScope::Session);
        let added = rules.add(list, rule, source, &self.bases());
        added.map_err(|problem| problem.to_string())?;
        let problems = rules.resolve_for_tools(&crate::resolved_settings::known_tools());
        match problems.first() {
            Some(problem) => Err(problem.to_string()),
            None => Ok(()),
        }
    }

    /// Returns a text with the decision on a call and its reason.
    pub async fn explain(&self, tool: &str, input: Value) -> Result<String, String> {
        let parts = crate::SessionParts::new(|_: &crate::SessionEvent| {});
        let explained = explain::explain_call(&self.0.config, parts, tool, input);
        let explained = explained.await.map_err(|error| error.to_string())?;
        Ok(explained.to_text())
    }

    fn local_rules(&self) -> LocalRules {
        LocalRules {
            places: self.0.settings.settings.places.clone(),
        }
    }

    fn bases(&self) -> haft_engine::permissions::PatternBases {
        let places = &self.0.settings.settings.places;
        haft_engine::permissions::PatternBases {
            home: places.home.clone(),
            slash: places.cwd.clone(),
            cwd: places.cwd.clone(),
        }
    }
}

/// Describes a rule that ends after a time or with the task.
fn granted_rule(granted: GrantedRule) -> RuleInfo {
    let scope = match granted.left {
        None => "until the result of this prompt".to_owned(),
        Some(left) if left.as_secs() < 60 => format!("this session, {} s left", left.as_secs()),
        Some(left) => format!("this session, {} min left", left.as_secs().div_ceil(60)),
    };
    RuleInfo {
        list: RuleList::Allow,
        rule: granted.rule,
        scope,
        file: None,
        line: None,
        is_timed: true,
    }
}
