//! The grammar of a rule.

use std::{borrow::Cow, fmt};

use haft_contract::{ToolProfile, ToolSpec};

use super::{
    DomainPattern, List, PathPattern, PatternBases, RuleClass, RuleSource, WildcardPattern,
    content::{UnresolvedContent, parameters},
};
use crate::CallFacts;

/// A permission rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The rule as written.
    pub text: String,
    /// The list that contains the rule.
    pub list: List,
    /// The source of the rule.
    pub source: RuleSource,
    /// The tools to which the rule applies.
    pub tool: ToolSelector,
    /// The class of the rule's name.
    pub class: RuleClass,
    /// The calls of those tools to which the rule applies.
    pub content: RuleContent,
}

/// The tools to which a rule applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSelector {
    /// The tool of this name.
    One(String),
    /// All tools of an MCP server.
    Server(String),
    /// All tools whose names match.
    Matching(WildcardPattern),
}

impl ToolSelector {
    /// Returns whether the rule applies to the tool of this name.
    pub fn matches_name(&self, tool: &str) -> bool {
        match self {
            Self::One(name) => name == tool,
            Self::Server(server) => tool
                .strip_prefix(server.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("__")),
            Self::Matching(pattern) => pattern.matches(tool),
        }
    }

    /// Returns whether the rule applies to this tool, under its own name or an alias.
    pub fn matches_tool(&self, tool: &str, profile: &ToolProfile) -> bool {
        match self {
            Self::One(name) => profile.is_called(tool, name),
            Self::Server(_) | Self::Matching(_) => self.matches_name(tool),
        }
    }
}

/// The calls of a tool to which a rule applies.
#[derive(Debug, Clone)]
pub enum RuleContent {
    /// All calls.
    All,
    /// Calls with a matching command.
    Command {
        /// The pattern.
        pattern: WildcardPattern,
        /// The pattern as written, for a comparison with the whole line.
        text: String,
    },
    /// Calls with a matching path.
    Path(Box<PathPattern>),
    /// Calls to a matching host.
    Domain(DomainPattern),
    /// Command lines that only read from a matching host.
    ReadHost(DomainPattern),
    /// Calls with a matching text: an agent kind, or a skill with its arguments.
    Text(WildcardPattern),
    /// Content that the tool's profile resolves.
    Unresolved(Box<UnresolvedContent>),
    /// Calls with a matching parameter.
    Parameter {
        /// The name of the parameter.
        name: String,
        /// The pattern for its value.
        value: WildcardPattern,
    },
}

/// The reason why a rule was left out, or a warning about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// The rule as written.
    pub rule: String,
    /// The problem, and what to write instead.
    pub problem: String,
    /// The source of the rule.
    pub source: RuleSource,
    /// Whether the rule was left out and does not apply.
    pub left_out: bool,
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: rule {:?}: {}", self.source, self.rule, self.problem)
    }
}

impl Rule {
    pub(super) fn parse(
        list: List,
        written: &str,
        source: RuleSource,
        bases: &PatternBases,
    ) -> Result<Self, RuleProblem> {
        let text = written.trim().to_owned();
        let problem = |problem: String| RuleProblem {
            rule: text.clone(),
            problem,
            source: source.clone(),
            left_out: true,
        };
        let (name, content) = split_rule(&text).map_err(|what| problem(what.to_owned()))?;
        let tool = tool_name(name, list).map_err(problem)?;
        let plain = match &tool {
            ToolSelector::One(name) => name.as_str(),
            ToolSelector::Server(_) | ToolSelector::Matching(_) => "",
        };
        let class = match (plain, list, &content) {
            // Write rules that deny or ask apply to all edits of the file, whichever tool makes
            // them.
            ("Write", List::Deny | List::Ask, Some(_)) => RuleClass::Edits,
            _ => RuleClass::from_name(plain),
        };
        let is_grant = matches!(class, RuleClass::OfflineCommands | RuleClass::ReadDomains);
        if is_grant && list != List::Allow {
            return Err(problem(format!(
                "{plain} can be allowed, not denied or asked for"
            )));
        }
        let content = match content {
            None if is_grant => return Err(problem(format!("write {plain}(…)"))),
            None => RuleContent::All,
            Some(text) => {
                let open = UnresolvedContent::new(text, list, bases);
                open.resolve_for_class(class, plain).map_err(problem)?
            }
        };
        Ok(Self {
            text,
            list,
            source,
            tool,
            class,
            content,
        })
    }

    /// Resolves the content for the tool of a call; `None` if it has no meaning for the tool.
    pub(crate) fn resolve_content(&self, facts: &CallFacts) -> Option<Cow<'_, RuleContent>> {
        match &self.content {
            RuleContent::Unresolved(open) => {
                let meaning = open.resolve_for_tool(&facts.tool, facts.rules, &facts.parameters);
                meaning.ok().map(Cow::Owned)
            }
            content => Some(Cow::Borrowed(content)),
        }
    }

    /// Returns why the content has no meaning for a tool, if it has none.
    pub(super) fn mismatch(&self, spec: &ToolSpec) -> Option<String> {
        match &self.content {
            RuleContent::Unresolved(open) => {
                let meaning =
                    open.resolve_for_tool(&spec.name, spec.profile.rules, &parameters(spec));
                meaning.err()
            }
            _ => None,
        }
    }

    /// Returns whether the rule applies to all calls of its tool.
    pub fn is_bare(&self) -> bool {
        matches!(self.content, RuleContent::All)
    }
}

/// Splits `Tool(content)`. The content ends at the last parenthesis; `None` if it is missing, empty
/// or `*`.
pub fn split_rule(text: &str) -> Result<(&str, Option<String>), &'static str> {
    let Some((name, rest)) = text.split_once('(') else {
        return match text {
            "" => Err("it is empty"),
            text if text.contains(')') => Err("a parenthesis is closed that was never opened"),
            text => Ok((text, None)),
        };
    };
    let Some(content) = rest.strip_suffix(')') else {
        return Err("the parenthesis is not closed at its end");
    };
    let content = unescape(content.trim());
    let name = name.trim();
    if name.is_empty() {
        return Err("it names no tool");
    }
    Ok((
        name,
        (!content.is_empty() && content != "*").then_some(content),
    ))
}

/// Unescapes `\(`, `\)` and `\\`; any other backslash stays.
fn unescape(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    let mut rest = content.chars();
    while let Some(next) = rest.next() {
        match (next, rest.clone().next()) {
            ('\\', Some(escaped @ ('(' | ')' | '\\'))) => {
                rest.next();
                text.push(escaped);
            }
            _ => text.push(next),
        }
    }
    text
}

fn tool_name(name: &str, list: List) -> Result<ToolSelector, String> {
    if name.contains('*') {
        let after_server = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
            .is_some_and(|(server, _)| !server.is_empty() && !server.contains('*'));
        if list == List::Allow && !after_server {
            return Err(
                "an allow rule may contain `*` only after mcp__SERVER__: name the tools".to_owned(),
            );
        }
        return Ok(ToolSelector::Matching(WildcardPattern::new(name)));
    }
    if let Some(rest) = name.strip_prefix("mcp__")
        && !rest.contains("__")
    {
        return Ok(ToolSelector::Server(name.to_owned()));
    }
    Ok(ToolSelector::One(name.to_owned()))
}

/// Replaces each run of spaces and tabs outside quotes by one space.
pub(crate) fn collapse(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    let mut quote = None;
    for next in text.trim().chars() {
        match (quote, next) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => quote = Some(next),
            (None, ' ' | '\t') => {
                if !collapsed.ends_with(' ') {
                    collapsed.push(' ');
                }
                continue;
            }
            _ => {}
        }
        collapsed.push(next);
    }
    collapsed
}

/// Splits the value of `--allowedTools` at commas and whitespace outside parentheses.
pub fn split_list(list: &str) -> Vec<String> {
    let mut rules = vec![String::new()];
    let mut depth = 0_usize;
    for next in list.chars() {
        match next {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' | '\t' | '\n' if depth == 0 => {
                rules.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = rules.last_mut() {
            last.push(next);
        }
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

#[cfg(test)]
mod tests {
    use haft_contract::RuleMatch;

    use super::*;
    use crate::rules::{RuleSet, SettingsScope};

    #[test]
    fn rules_are_read_or_refused_with_a_reason() {
        let bases = PatternBases {
            cwd: "/p".into(),
            home: "/h".into(),
            slash: "/p".into(),
        };
        let tool = |name: &str, rules| ToolSpec {
            name: name.to_owned(),
            description: "d".to_owned(),
            input_schema: serde_json::json!({"properties": {"model": {}}}),
            profile: ToolProfile {
                rules,
                ..ToolProfile::default()
            },
        };
        let edits = RuleMatch::Edits {
            held_by_reads: true,
        };
        let kinds = RuleMatch::Text {
            parameters: &["kind"],
            otherwise: "",
        };
        let tools = [
            tool("Agent", kinds),
            tool("Grep", RuleMatch::Reads),
            tool("Write", edits),
        ];
        let cases = [
            (List::Allow, "Bash"),
            (List::Allow, " Bash( * ) "),
            (List::Allow, "Bash(npm run test:*)"),
            (List::Deny, "Bash(run_in_background:true)"),
            (List::Allow, "Bash(run_in_background:true)"),
            (List::Deny, "Bash(rm *"),
            (List::Deny, "Bash rm)"),
            (List::Deny, "(x)"),
            (List::Deny, ""),
            (List::Allow, "Write(docs/**)"),
            (List::Deny, "Grep(x)"),
            (List::Deny, "Read(!x)"),
            (List::Allow, "mcp__*"),
            (List::Allow, "*"),
            (List::Deny, "*"),
            (List::Allow, "mcp__git__get_*"),
            (List::Deny, "Agent(model:opus)"),
            (List::Allow, "Agent(Explore)"),
            (List::Deny, "Bassh"),
            (List::Deny, "Read(file_path:x)"),
            (List::Deny, "WebFetch(bad.com)"),
            (List::Deny, "mcp__a__b(path:x)"),
            (List::Deny, "mcp__a__b(mode:x)"),
            (List::Allow, "Bash(echo \\(a\\))"),
        ];
        let mut table = String::new();
        for (list, text) in cases {
            let mut rules = RuleSet::default();
            let added = rules.add(
                list,
                text,
                RuleSource::from_scope(SettingsScope::User),
                &bases,
            );
            let mut problems = rules.resolve_for_tools(&tools);
            let said = match (added, problems.pop(), rules.is_empty()) {
                (Ok(()), None, _) => "ok".to_owned(),
                (Ok(()), Some(warning), false) => format!("ok, but: {}", warning.problem),
                (Err(problem), ..) | (Ok(()), Some(problem), true) => {
                    format!("left out: {}", problem.problem)
                }
            };
            table += &format!("{:5} {text:30} {said}\n", list.name());
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn a_list_is_split_outside_parentheses() {
        assert_eq!(
            split_list("Bash(git log *),Read Edit(a, b)  ,"),
            ["Bash(git log *)", "Read", "Edit(a, b)"]
        );
    }
}
