//! Permission rules: `Tool`, `Tool(content)`, in three lists.

mod domain;
mod names;
mod path;
mod rule;
mod wildcard;

use haft_contract::Hidden;

use std::{collections::HashSet, path::Path, sync::Arc};

pub use domain::{Domain, Target, target};
pub use haft_contract::RuleList as List;
pub use haft_settings::{Bases, RuleSource, Scope};
pub use names::{canonical, is_known};
pub use path::{Anchor, PathPattern};
pub(crate) use rule::collapse;
pub use rule::{Rule, RuleContent, RuleProblem, ToolName, split_list};
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

impl Rules {
    /// Adds a rule from its text. `Err`: it was left out, and why; `Ok(Some(…))`: it counts, but
    /// something about it is worth a word.
    pub fn add(
        &mut self,
        list: List,
        text: &str,
        source: RuleSource,
        bases: &Bases,
    ) -> Result<Option<RuleProblem>, RuleProblem> {
        let (rule, warning) = Rule::parse(list, text, source, bases)?;
        if !self.takes(&rule) {
            return Err(RuleProblem {
                rule: rule.text,
                problem: "only the rules of managed settings count here".to_owned(),
                source: rule.source,
            });
        }
        if self.known.insert(key(&rule)) {
            self.rules.push(rule);
        }
        Ok(warning)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Those of one list.
    pub fn of(&self, list: List) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.list == list)
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Files that deny rules for these tools name.
    pub fn keep_from(self: &Arc<Self>, tools: &'static [&'static str]) -> Hidden {
        let denies =
            |rule: &Rule| rule.list == List::Deny && tools.iter().any(|tool| rule.tool.is(tool));
        let paths = |rule: &Rule| matches!(rule.content, RuleContent::Path(_));
        if !self.iter().any(|rule| denies(rule) && paths(rule)) {
            return Hidden::default();
        }
        let rules = Arc::clone(self);
        Hidden::when(move |path| {
            rules.iter().any(|rule| match &rule.content {
                RuleContent::Path(pattern) => denies(rule) && pattern.covers(path),
                _ => false,
            })
        })
    }

    /// Only the administrator's rules count, now and later.
    pub fn close(&mut self) {
        self.closed = true;
        self.retain(|rule| rule.source.scope == Scope::Managed);
    }

    fn takes(&self, rule: &Rule) -> bool {
        !self.closed || rule.source.scope == Scope::Managed
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
            self.retain(|rule| rule.list != List::Allow || rule.source.scope == Scope::Managed);
        }
        for rule in other.rules {
            if self.takes(&rule) && self.known.insert(key(&rule)) {
                self.rules.push(rule);
            }
        }
    }

    /// The rule that bans a tool as a whole, if there is one: such a tool is not even offered.
    pub fn bans(&self, tool: &str) -> Option<&Rule> {
        self.of(List::Deny)
            .find(|rule| rule.is_bare() && rule.tool.is(tool))
    }
}

/// What makes two rules the same. The file belongs to it: it says where patterns start.
type RuleKey = (List, Scope, Option<Arc<Path>>, String);

fn key(rule: &Rule) -> RuleKey {
    let RuleSource { scope, file, .. } = &rule.source;
    (rule.list, *scope, file.clone(), rule.text.clone())
}
