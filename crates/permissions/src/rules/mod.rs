//! Permission rules: `Tool`, `Tool(content)`, in three lists.

mod content;
mod domain;
mod names;
mod path;
mod rule;
mod wildcard;

use haft_contract::{
    HiddenFiles, HiddenFilter, HiddenRules, HomeControl, ToolSpec,
    rule_offer::{COMMAND_WRAPPER, rule_content},
};
use haft_shell::commands::rule_families::may_be_wrapper;

use std::{borrow::Cow, collections::HashSet, path::Path, sync::Arc};

pub use content::UnresolvedContent;
pub(super) use content::parameters;
pub(crate) use domain::in_url;
pub use domain::{DomainPattern, UrlTarget, target};
pub use haft_contract::RuleList as List;
pub use haft_settings::{PatternBases, RuleSource, SettingsScope};
pub use names::{RuleClass, is_known};
pub use path::{PathAnchor, PathPattern};
pub(crate) use rule::collapse;
pub use rule::{Rule, RuleContent, RuleProblem, ToolSelector, split_list, split_rule};
pub use wildcard::WildcardPattern;

/// The rules in force.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// The keys of all rules, for finding duplicates.
    known: HashSet<RuleKey>,
    /// Whether only the administrator's rules apply.
    managed_only: bool,
    /// Programs after whose name the actual command starts.
    wrappers: Vec<String>,
}

impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        let key = |rule: &Rule| (rule.list, rule.text.clone(), rule.source.clone());
        self.iter().map(key).eq(other.iter().map(key)) && self.wrappers == other.wrappers
    }
}

impl Eq for RuleSet {}

/// Converts a rule for slash commands, the old name of skills: `SlashCommand(/x:*)` becomes
/// `Skill(x *)`.
fn current_name(text: &str) -> Cow<'_, str> {
    let Some(content) = old_name(text) else {
        return Cow::Borrowed(text);
    };
    let content = content.trim_start_matches('/');
    Cow::Owned(match (content, content.strip_suffix(":*")) {
        ("", _) => "Skill".to_owned(),
        (_, Some(name)) => format!("Skill({name} *)"),
        (name, None) => format!("Skill({name})"),
    })
}

/// Returns the content of a rule with the old name of skills; empty for all skills.
pub fn old_name(text: &str) -> Option<&str> {
    let rest = text.trim().strip_prefix("SlashCommand")?;
    match rest
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        Some(content) => Some(content.trim()),
        None => rest.is_empty().then_some(""),
    }
}

impl RuleSet {
    /// Adds a rule from its text. The error says why it was left out. [`Self::resolve_for_tools`]
    /// later checks its name and content against the available tools.
    pub fn add(
        &mut self,
        list: List,
        text: &str,
        source: RuleSource,
        bases: &PatternBases,
    ) -> Result<(), RuleProblem> {
        let text = current_name(text);
        if let Some(name) = rule_content(&text, COMMAND_WRAPPER) {
            return self.add_wrapper_rule(list, name, source);
        }
        let rule = Rule::parse(list, &text, source, bases)?;
        if !self.takes(&rule) {
            return Err(RuleProblem {
                rule: rule.text,
                problem: "only the rules of managed settings apply here".to_owned(),
                source: rule.source,
                left_out: true,
            });
        }
        if self.known.insert(key(&rule)) {
            self.rules.push(rule);
        }
        Ok(())
    }

    /// Checks the rules against the available tools. Removes rules whose content has no meaning for
    /// their tool, and returns these and warnings about unknown names. Rules for tools of MCP
    /// servers and for known but missing tools stay: a tool with the name may be added later.
    pub fn resolve_for_tools(&mut self, tools: &[ToolSpec]) -> Vec<RuleProblem> {
        let mut problems = Vec::new();
        self.retain(|rule| {
            let ToolSelector::One(name) = &rule.tool else {
                return true;
            };
            let mut called = tools.iter();
            let tool = called.find(|spec| spec.profile.is_called(&spec.name, name));
            let (problem, stays) = match tool {
                Some(spec) => match rule.mismatch(spec) {
                    Some(problem) => (problem, false),
                    None => return true,
                },
                // An allow rule for a missing tool has no effect.
                None if (rule.list == List::Allow && rule.is_bare())
                    || name.contains(['_', '*'])
                    || is_known(name) =>
                {
                    return true;
                }
                None => {
                    let problem = format!("no tool is called {name}; is it spelled right?");
                    (problem, rule.is_bare())
                }
            };
            problems.push(RuleProblem {
                rule: rule.text.clone(),
                problem,
                source: rule.source.clone(),
                left_out: !stays,
            });
            stays
        });
        problems
    }

    /// Returns all rules.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Returns the rules of one list.
    pub fn in_list(&self, list: List) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.list == list)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns a filter for files that deny rules of these classes name.
    pub fn hidden_by_classes(self: &Arc<Self>, classes: &'static [RuleClass]) -> HiddenFilter {
        let denied = DeniedPaths {
            rules: Arc::clone(self),
            classes,
        };
        let none = denied.patterns().next().is_none();
        if none {
            return HiddenFilter::default();
        }
        HiddenFilter::from_rules(denied)
    }

    /// Applies path rules for files of a checkout to its worktree, too.
    pub fn extend_to_worktree(&mut self, main: &Path, copy: &Path) {
        for rule in &mut self.rules {
            if let RuleContent::Path(pattern) = &mut rule.content {
                pattern.extend_to_worktree(main, copy, rule.list);
            }
        }
    }

    /// Removes all rules but the administrator's, and rejects others from now on.
    pub fn restrict_to_managed(&mut self) {
        self.managed_only = true;
        self.retain(|rule| rule.source.scope == SettingsScope::Managed);
    }

    /// Returns the programs that the user declared as wrappers: rules apply to the command after
    /// the name.
    pub fn wrappers(&self) -> &[String] {
        &self.wrappers
    }

    /// Declares a wrapper. The error says why it was left out.
    pub fn add_wrapper(&mut self, name: &str) -> Result<(), &'static str> {
        if !may_be_wrapper(name) {
            return Err("a wrapper is the plain name of a program that haft has no table for");
        }
        if !self.wrappers.iter().any(|other| other == name) {
            self.wrappers.push(name.to_owned());
        }
        Ok(())
    }

    /// Treats some rules as rules for commands.
    pub(crate) fn treat_as_commands(&mut self, is_meant: impl Fn(&Rule) -> bool) {
        for rule in self.rules.iter_mut().filter(|rule| is_meant(rule)) {
            rule.class = RuleClass::Commands;
        }
    }

    /// Declares a wrapper by a rule such as `CommandWrapper(rtk)`, as a question offers it.
    fn add_wrapper_rule(
        &mut self,
        list: List,
        name: &str,
        source: RuleSource,
    ) -> Result<(), RuleProblem> {
        let by_user = source.scope.is_users() || source.scope == SettingsScope::Session;
        let is_permitted = by_user && !self.managed_only && list == List::Allow;
        let added = match is_permitted {
            true => self.add_wrapper(name),
            false => Err("only managed and user settings may declare wrappers"),
        };
        added.map_err(|problem| RuleProblem {
            rule: format!("{COMMAND_WRAPPER}({name})"),
            problem: problem.to_owned(),
            source,
            left_out: true,
        })
    }

    /// Keeps only the wrappers that another set has, too.
    pub fn restrict_wrappers(&mut self, others: &Self) {
        self.wrappers.retain(|name| others.wrappers.contains(name));
    }

    fn takes(&self, rule: &Rule) -> bool {
        !self.managed_only || rule.source.scope == SettingsScope::Managed
    }

    /// Keeps only the rules for which `keep` returns `true`.
    pub fn retain(&mut self, keep: impl FnMut(&Rule) -> bool) {
        self.rules.retain(keep);
        self.known = self.rules.iter().map(key).collect();
    }

    /// Adds the rules of another set, without duplicates. If the other set accepts only the
    /// administrator's rules, this one does too, but keeps its deny and ask rules.
    pub fn extend(&mut self, other: Self) {
        if other.managed_only {
            self.managed_only = true;
            self.retain(|rule| {
                rule.list != List::Allow || rule.source.scope == SettingsScope::Managed
            });
        }
        for rule in other.rules {
            if self.takes(&rule) && self.known.insert(key(&rule)) {
                self.rules.push(rule);
            }
        }
    }

    /// Returns the rule that denies a tool as a whole, if any. The model does not get a denied
    /// tool.
    pub fn find_tool_ban(&self, tool: &ToolSpec) -> Option<&Rule> {
        self.in_list(List::Deny)
            .find(|rule| rule.is_bare() && rule.tool.matches_tool(&tool.name, &tool.profile))
    }
}

/// The files that deny rules of some classes name.
struct DeniedPaths {
    rules: Arc<RuleSet>,
    classes: &'static [RuleClass],
}

impl DeniedPaths {
    fn patterns(&self) -> impl Iterator<Item = &PathPattern> {
        let denies = |rule: &&Rule| self.classes.contains(&rule.class);
        let denying = self.rules.in_list(List::Deny).filter(denies);
        denying.filter_map(|rule| match &rule.content {
            RuleContent::Path(pattern) => Some(&**pattern),
            _ => None,
        })
    }
}

impl HiddenRules for DeniedPaths {
    fn hides(&self, path: &Path) -> bool {
        self.patterns().any(|pattern| pattern.covers(path))
    }

    fn files(&self) -> HiddenFiles {
        HiddenFiles {
            patterns: self.patterns().map(PathPattern::glob).collect(),
            control: false,
            home: HomeControl::default(),
        }
    }
}

/// The identity of a rule. The file is a part of it, because patterns are relative to it.
type RuleKey = (List, SettingsScope, Option<Arc<Path>>, String);

fn key(rule: &Rule) -> RuleKey {
    let RuleSource { scope, file, .. } = &rule.source;
    (rule.list, *scope, file.clone(), rule.text.clone())
}
