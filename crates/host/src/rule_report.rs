//! The report about the rules in the settings files of a directory.

use std::{
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use haft_agent::transcript::past_questions::past_commands;
use haft_contract::RuleScope;
use haft_engine::{
    permissions::{
        PermissionSettings,
        rule_audit::{AuditFacts, RuleFinding, audit_rules},
    },
    settings::{LocalRules, Settings, SettingsScope, TrustState},
};

use crate::{
    OpenError, SessionConfig, all_conversations, resolved_settings::known_tools,
    rule_trial::TRIAL_AGE,
};

/// The maximum number of different command lines that rules are compared with.
const MAX_COMMANDS: usize = 20_000;

/// The maximum time for reading transcripts.
const MAX_READING_TIME: Duration = Duration::from_secs(10);

/// The report about the rules of a directory.
pub struct RuleReport {
    /// The findings, in the order of the rules.
    pub findings: Vec<RuleFinding>,
    /// The sentences in `autoMode`, which nothing here can enforce.
    pub auto_sentences: Vec<String>,
    /// The keys of `autoMode` that have no effect.
    pub auto_keys: Vec<String>,
    rules: LocalRules,
}

impl RuleReport {
    /// Returns the file that a fix of a finding may change: the user's settings or the local
    /// settings.
    pub fn fixable_scope(&self, finding: &RuleFinding) -> Option<RuleScope> {
        finding.fix.as_ref()?;
        let scope = match finding.source.scope {
            SettingsScope::User => RuleScope::User,
            SettingsScope::Local => RuleScope::Local,
            _ => return None,
        };
        let is_its_file = self.rules.file_of(scope).as_deref() == finding.source.file.as_deref();
        is_its_file.then_some(scope)
    }

    /// Makes the change that resolves a finding.
    pub fn apply_fix(&self, finding: &RuleFinding) -> Result<(), String> {
        let (Some(scope), Some(fix)) = (self.fixable_scope(finding), &finding.fix) else {
            return Err(
                "only rules in your settings and the local settings are changed".to_owned(),
            );
        };
        let added: Vec<String> = fix.added.iter().cloned().collect();
        let changed = self
            .rules
            .replace_in(scope, finding.list, &fix.removed, &added);
        changed.map(drop)
    }
}

/// Audits the rules in the settings files of a directory, including those that do not apply yet.
pub fn audit_rules_of(config: &SessionConfig) -> Result<RuleReport, OpenError> {
    let (cwd, environment) = (&config.cwd, &config.environment);
    let places = environment.settings_places(cwd);
    let mut settings = Settings::load(places, &config.settings, TrustState::default());
    let rules = settings.rules(&[], &[]);
    let path = environment.variable("PATH").unwrap_or_default();
    let has_program = |name: &str| exists(name, &path);
    let tools = known_tools();
    let recent = recent_commands(config);
    let facts = AuditFacts {
        tools: &tools,
        has_program: &has_program,
        recent_commands: recent.as_deref(),
        cwd: cwd.clone(),
        home: environment.home(),
    };
    Ok(RuleReport {
        findings: audit_rules(&rules, &facts),
        auto_sentences: settings.auto_sentences(),
        auto_keys: settings.auto_keys_without_effect(),
        rules: LocalRules {
            places: settings.places.clone(),
        },
    })
}

/// Returns the command lines of the last 90 days in all projects, if they can be read in time.
fn recent_commands(config: &SessionConfig) -> Option<Vec<String>> {
    let projects = all_conversations(&config.environment, &config.cwd).ok()?;
    let since = SystemTime::now().checked_sub(TRIAL_AGE)?;
    let since = since.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    let begin = Instant::now();
    let is_over = || begin.elapsed() >= MAX_READING_TIME;
    let since = i64::try_from(since).ok()?;
    let commands = past_commands(&projects, since, MAX_COMMANDS, &is_over)?;
    Some(commands.into_iter().collect())
}

/// Returns whether a program exists: a path, or a name in `PATH`.
fn exists(name: &str, path: &str) -> bool {
    if name.contains('/') {
        // A relative path may exist in another project, and `~` is not resolved here.
        return !name.starts_with('/') || Path::new(name).exists();
    }
    std::env::split_paths(path).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Environment;

    #[test]
    fn fixes_change_only_the_users_and_the_local_file_and_keep_comments() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (work, home) = (folder.join("work"), folder.join("home"));
        let user = home.join(".claude/settings.json");
        let project = work.join(".claude/settings.json");
        for file in [&user, &project] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
        }
        let rules = r#"{
  "permissions": {
    // servers
    "deny": [
      "mcp__a", // all of it
      "mcp__a__b", // covered
      "mcp__c__d" // stays
    ]
  },
  "model": "large"
}
"#;
        fs::write(&user, rules).unwrap();
        fs::write(&project, rules).unwrap();
        let mut config = SessionConfig::new(&work);
        let home = home.to_str().unwrap();
        config.environment = Environment::from_variables([("HOME", home)]);
        let report = audit_rules_of(&config).unwrap();
        let mut fixed = 0;
        for finding in &report.findings {
            match report.fixable_scope(finding) {
                Some(scope) => {
                    assert_eq!(scope, RuleScope::User);
                    report.apply_fix(finding).unwrap();
                    fixed += 1;
                }
                None => assert!(report.apply_fix(finding).is_err()),
            }
        }
        assert_eq!(fixed, 1, "{:?}", report.findings);
        assert_eq!(fs::read_to_string(&project).unwrap(), rules);
        let left = fs::read_to_string(&user).unwrap();
        assert!(!left.contains("mcp__a__b"), "{left}");
        for kept in [
            "// servers",
            "\"mcp__a\", // all of it",
            "\"mcp__c__d\" // stays",
            "\"model\": \"large\"",
        ] {
            assert!(left.contains(kept), "{kept} in {left}");
        }
        let again = audit_rules_of(&config).unwrap();
        let user = again
            .findings
            .iter()
            .filter(|one| again.fixable_scope(one).is_some());
        assert_eq!(user.count(), 0);
    }
}
