//! Permission rules: which there are, and where they are kept.

use std::path::PathBuf;

use haft_contract::{RuleList, RuleScope};
use haft_engine::{
    permissions::{RuleSource, Rules, Scope},
    settings::LocalRules,
};
use serde_json::Value;

use crate::{Permitted, SessionInput, explain};

/// A rule, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleInfo {
    /// What it does to calls.
    pub list: RuleList,
    /// As written.
    pub rule: String,
    /// Who wrote it, in words.
    pub scope: String,
    /// In which file.
    pub file: Option<PathBuf>,
    /// On which line, from 1.
    pub line: Option<usize>,
}

impl SessionInput {
    /// The rules in force, those of this session included.
    pub fn rules(&self) -> Result<Vec<RuleInfo>, String> {
        let info = |rules: &Rules| -> Vec<RuleInfo> {
            let all = rules.iter().map(|rule| RuleInfo {
                list: rule.list,
                rule: rule.text.clone(),
                scope: rule.source.scope.name().to_owned(),
                file: rule.source.file.as_deref().map(PathBuf::from),
                line: rule.source.line,
            });
            all.collect()
        };
        let permitted = Permitted::load(&self.0.config).map_err(|error| error.to_string())?;
        let mut rules = info(&permitted.rules);
        if let Some((_, context)) = self.0.access.engine() {
            // What was kept stands in a file now, and is named by it.
            for rule in info(&context.rules) {
                let is_known = |one: &RuleInfo| one.list == rule.list && one.rule == rule.rule;
                if !rules.iter().any(is_known) {
                    rules.push(rule);
                }
            }
        }
        rules.sort_by_key(|rule| rule.list);
        Ok(rules)
    }

    /// Adds a rule, which counts from the next request on, and keeps it. Gives the file, where there is one.
    /// Writes a file: not for a task that others wait for.
    pub fn keep_rule(
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

    /// Takes a rule out of a file. In this session it counts to its end: nothing is loosened or forgotten in
    /// the middle of it.
    pub fn remove_rule(
        &self,
        list: RuleList,
        rule: &str,
        scope: RuleScope,
    ) -> Result<PathBuf, String> {
        let removed = self.local_rules().remove_from(scope, list, rule)?;
        removed.ok_or_else(|| "a rule of this session ends with it".to_owned())
    }

    /// Is this a rule? The error says what is wrong with it.
    pub fn check_rule(&self, list: RuleList, rule: &str) -> Result<(), String> {
        let mut rules = Rules::default();
        let source = RuleSource::of(Scope::Session);
        let added = rules.add(list, rule, source, &self.bases());
        added.map_err(|problem| problem.to_string())?;
        let problems = rules.understand(&crate::settings::known_tools());
        match problems.first() {
            Some(problem) => Err(problem.to_string()),
            None => Ok(()),
        }
    }

    /// What would be decided about a call, and why, in words.
    pub async fn explain(&self, tool: &str, input: Value) -> Result<String, String> {
        let parts = crate::SessionParts::new(|_: &crate::SessionEvent| {});
        let explained = explain::explain_call(&self.0.config, parts, tool, input);
        let explained = explained.await.map_err(|error| error.to_string())?;
        Ok(explained.in_words())
    }

    fn local_rules(&self) -> LocalRules {
        LocalRules {
            places: self.0.permitted.settings.places.clone(),
        }
    }

    fn bases(&self) -> haft_engine::permissions::Bases {
        let places = &self.0.permitted.settings.places;
        haft_engine::permissions::Bases {
            home: places.home.clone(),
            slash: places.cwd.clone(),
            cwd: places.cwd.clone(),
        }
    }
}
