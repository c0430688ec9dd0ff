//! Reads permission rules, sandbox settings and directories from settings files.

use std::path::PathBuf;

use haft_contract::ToolSpec;
use haft_settings::{
    PatternBases, RuleSource, Settings, SettingsProblem, SettingsScope, real_path,
};

use super::{
    SandboxSettings, is_protected,
    rules::{List, RuleSet, old_name, split_list},
    sandbox::from_settings,
    sandbox_rules,
};

/// The permission settings. Reading them records errors, and rules that wait for trust, in the
/// settings.
pub trait PermissionSettings {
    /// Returns the rules of all files and of the command line flags.
    fn rules(&mut self, allowed: &[String], denied: &[String]) -> RuleSet;

    /// Checks rules against the available tools ([`RuleSet::resolve_for_tools`]) and records their problems.
    fn check_rules(&mut self, rules: &mut RuleSet, tools: &[ToolSpec]);

    /// Returns the sandbox settings. Whether the machine supports them is determined elsewhere.
    fn sandbox(&mut self) -> SandboxSettings;

    /// Returns the directory for plans: the one in the settings, or `plans` in the user's settings
    /// directory. A workspace file may name only a directory inside the workspace, and not one
    /// whose files control other programs.
    fn plans_directory(&mut self) -> PathBuf;
}

/// Reads `permissions.wrappers`. Returns the problems in it.
fn read_wrappers(settings: &Settings, rules: &mut RuleSet) -> Vec<SettingsProblem> {
    const POINTER: &str = "/permissions/wrappers";
    let managed_only = settings.flag_of(SettingsScope::Managed, "allowManagedPermissionRulesOnly");
    let mut problems = Vec::new();
    for layer in &settings.layers {
        let Some(value) = layer.document.value.pointer(POINTER) else {
            continue;
        };
        if !layer.scope.is_users() {
            let what = "only managed and user settings may declare wrappers; it is left out";
            problems.push(layer.problem(POINTER, what));
            continue;
        }
        let Some(entries) = value.as_array() else {
            problems.push(layer.problem(POINTER, "a list of programs is expected"));
            continue;
        };
        if managed_only && layer.scope != SettingsScope::Managed {
            continue;
        }
        for (at, entry) in entries.iter().enumerate() {
            let name = entry.as_str().unwrap_or_default().trim();
            if let Err(problem) = rules.add_wrapper(name) {
                let what = format!("{entry} is left out: {problem}");
                problems.push(layer.problem(&format!("{POINTER}/{at}"), &what));
            }
        }
    }
    problems
}

impl PermissionSettings for Settings {
    fn rules(&mut self, allowed: &[String], denied: &[String]) -> RuleSet {
        let mut rules = RuleSet::default();
        let flags = PatternBases {
            cwd: self.places.cwd.clone(),
            home: self.places.home.clone(),
            slash: self.places.cwd.clone(),
        };
        for (list, texts) in [(List::Allow, allowed), (List::Deny, denied)] {
            for text in texts.iter().flat_map(|texts| split_list(texts)) {
                let added = rules.add(
                    list,
                    &text,
                    RuleSource::from_scope(SettingsScope::CommandLine),
                    &flags,
                );
                if let Err(problem) = added {
                    self.problems.push(SettingsProblem {
                        place: "command line".to_owned(),
                        text: format!("rule {:?}: {}", problem.rule, problem.problem),
                    });
                }
            }
        }
        for problem in read_wrappers(self, &mut rules) {
            self.problems.push(problem);
        }
        let (problems, waiting_grants) = sandbox_rules::add_rules(self, &mut rules, &flags);
        self.problems.extend(problems);
        let mut waiting = Vec::new();
        for layer in &self.layers {
            let mut has_old_name = false;
            let permissions = layer.document.value.get("permissions");
            if permissions.is_some_and(|value| !value.is_object()) {
                self.problems
                    .push(layer.problem("/permissions", "an object is expected; it is left out"));
            }
            for list in [List::Deny, List::Ask, List::Allow] {
                let pointer = format!("/permissions/{}", list.name());
                let Some(value) = layer.document.value.pointer(&pointer) else {
                    continue;
                };
                let Some(entries) = value.as_array() else {
                    self.problems
                        .push(layer.problem(&pointer, "a list of rules is expected"));
                    continue;
                };
                let waits = list == List::Allow && layer.from_workspace && !self.trust.allows;
                for (at, entry) in entries.iter().enumerate() {
                    let here = format!("{pointer}/{at}");
                    let Some(text) = entry.as_str() else {
                        self.problems
                            .push(layer.problem(&here, "a rule is a text; it is left out"));
                        continue;
                    };
                    if old_name(text).is_some() && !std::mem::replace(&mut has_old_name, true) {
                        let what =
                            "SlashCommand is an old name and read as Skill; write Skill(NAME)";
                        self.problems.push(layer.problem(&here, what));
                    }
                    let source = RuleSource {
                        scope: layer.scope,
                        file: layer.file.clone(),
                        line: layer.document.line(&here),
                    };
                    if waits && !layer.agreed.contains(text.trim()) {
                        waiting.push((text.to_owned(), source));
                        continue;
                    }
                    let bases = PatternBases {
                        slash: layer.slash.clone(),
                        ..flags.clone()
                    };
                    if let Err(problem) = rules.add(list, text, source, &bases) {
                        self.problems.push(layer.problem(
                            &here,
                            &format!("rule {:?} is left out: {}", problem.rule, problem.problem),
                        ));
                    }
                }
            }
        }
        self.check_auto_mode();
        let mut problems = Vec::new();
        for (layer, pointer, text) in self.auto_deny_rules() {
            let source = RuleSource {
                scope: layer.scope,
                file: layer.file.clone(),
                line: layer.document.line(&pointer),
            };
            let bases = PatternBases {
                slash: layer.slash.clone(),
                ..flags.clone()
            };
            if let Err(problem) = rules.add(List::Deny, text, source, &bases) {
                problems.push(layer.problem(
                    &pointer,
                    &format!("rule {:?} is left out: {}", problem.rule, problem.problem),
                ));
            }
        }
        self.problems.extend(problems);
        if self.flag_of(SettingsScope::Managed, "allowManagedPermissionRulesOnly") {
            rules.restrict_to_managed();
        } else {
            self.left_out.extend(waiting_grants);
            self.report_skipped(waiting.len(), "allow rule");
            self.waiting_rules = waiting;
        }
        rules
    }

    fn check_rules(&mut self, rules: &mut RuleSet, tools: &[ToolSpec]) {
        let problems = rules
            .resolve_for_tools(tools)
            .into_iter()
            .map(|problem| SettingsProblem {
                place: problem.source.to_string(),
                text: match problem.left_out && problem.source.file.is_some() {
                    true => format!("rule {:?} is left out: {}", problem.rule, problem.problem),
                    false => format!("rule {:?}: {}", problem.rule, problem.problem),
                },
            });
        self.problems.extend(problems);
    }

    fn sandbox(&mut self) -> SandboxSettings {
        from_settings::read(self)
    }

    fn plans_directory(&mut self) -> PathBuf {
        let root = real_path::resolve_links(&self.places.cwd);
        let found = self.first("plansDirectory", |settings, layer, text| {
            let path = settings.path(text);
            let real = real_path::resolve_links(&path);
            let is_safe = real.starts_with(&root) && !is_protected(&real) && !is_protected(&path);
            if layer.is_in_workspace() && !is_safe {
                return Err(
                    "a file of the workspace may only name a directory inside of it; it is left out",
                );
            }
            Ok(path)
        });
        found.unwrap_or_else(|| self.places.user.join("plans"))
    }
}
