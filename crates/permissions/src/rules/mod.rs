//! Permission rules: `Tool`, `Tool(content)`, in three lists.

mod content;
mod domain;
mod names;
mod path;
mod rule;
mod wildcard;

use haft_contract::{HiddenFiles, HiddenFilter, HiddenRules, HomeControl, ToolSpec};

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
pub use wildcard::Wildcard;

/// The rules in force.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// What is there already, so that many rules are no trouble.
    known: HashSet<RuleKey>,
    /// Only the administrator's count.
    closed: bool,
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        let key = |rule: &Rule| (rule.list, rule.text.clone(), rule.source.clone());
        self.iter().map(key).eq(other.iter().map(key))
    }
}

impl Eq for Rules {}

/// A rule for slash commands as it was written before they were skills: `SlashCommand(/x:*)` is `Skill(x *)`.
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

/// What a rule with the old name of skills is about; empty for all of them.
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

impl Rules {
    /// Adds a rule from its text. `Err`: it was left out, and why. Whether its name and content mean
    /// something to the tools there are, [`Self::resolve_for_tools`] says.
    pub fn add(
        &mut self,
        list: List,
        text: &str,
        source: RuleSource,
        bases: &PatternBases,
    ) -> Result<(), RuleProblem> {
        let text = current_name(text);
        let rule = Rule::parse(list, &text, source, bases)?;
        if !self.takes(&rule) {
            return Err(RuleProblem {
                rule: rule.text,
                problem: "only the rules of managed settings count here".to_owned(),
                source: rule.source,
                left_out: true,
            });
        }
        if self.known.insert(key(&rule)) {
            self.rules.push(rule);
        }
        Ok(())
    }

    /// Holds the rules against the tools there are: leaves out those whose content means nothing to their
    /// tool, and says so; and warns of names that no tool has. Rules for tools of servers, and for those of the
    /// convention that are not there, stay as they are: a tool may come later.
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
                // An allow rule for a tool that is not there does no harm.
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

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Those of one list.
    pub fn in_list(&self, list: List) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.list == list)
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Files that deny rules of these classes name.
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

    /// What they say of files of a checkout counts for those of its copy too.
    pub fn extend_to_worktree(&mut self, main: &Path, copy: &Path) {
        for rule in &mut self.rules {
            if let RuleContent::Path(pattern) = &mut rule.content {
                pattern.extend_to_worktree(main, copy, rule.list);
            }
        }
    }

    /// Only the administrator's rules count, now and later.
    pub fn close(&mut self) {
        self.closed = true;
        self.retain(|rule| rule.source.scope == SettingsScope::Managed);
    }

    fn takes(&self, rule: &Rule) -> bool {
        !self.closed || rule.source.scope == SettingsScope::Managed
    }

    /// Leaves out what does not pass.
    pub fn retain(&mut self, keep: impl FnMut(&Rule) -> bool) {
        self.rules.retain(keep);
        self.known = self.rules.iter().map(key).collect();
    }

    /// Adds the rules of another set that are not there yet. Nothing gets looser by it where the
    /// other takes only the administrator's: what is denied stays.
    pub fn extend(&mut self, other: Self) {
        if other.closed {
            self.closed = true;
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

    /// The rule that bans a tool as a whole, if there is one: such a tool is not even offered.
    pub fn bans(&self, tool: &ToolSpec) -> Option<&Rule> {
        self.in_list(List::Deny)
            .find(|rule| rule.is_bare() && rule.tool.means(&tool.name, &tool.profile))
    }
}

/// Files that deny rules for some tools name.
struct DeniedPaths {
    rules: Arc<Rules>,
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

/// What makes two rules the same. The file belongs to it: it says where patterns start.
type RuleKey = (List, SettingsScope, Option<Arc<Path>>, String);

fn key(rule: &Rule) -> RuleKey {
    let RuleSource { scope, file, .. } = &rule.source;
    (rule.list, *scope, file.clone(), rule.text.clone())
}
