//! One rule: its grammar.

use std::fmt;

use super::{Bases, Domain, List, PathPattern, RuleSource, Wildcard, canonical, is_known};

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// As written.
    pub text: String,
    /// In which list it stands.
    pub list: List,
    /// Where it comes from.
    pub source: RuleSource,
    /// Which tools it speaks of.
    pub tool: ToolName,
    /// Which of their calls.
    pub content: RuleContent,
}

/// Which tools a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolName {
    /// This one.
    One(String),
    /// Every tool of an MCP server.
    Server(String),
    /// Those whose names fit.
    Fitting(Wildcard),
}

impl ToolName {
    /// Does it speak of this tool?
    pub fn is(&self, tool: &str) -> bool {
        match self {
            Self::One(name) => name == tool,
            Self::Server(server) => tool
                .strip_prefix(server.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("__")),
            Self::Fitting(pattern) => pattern.matches(tool),
        }
    }
}

/// Which calls of a tool a rule speaks of.
#[derive(Debug, Clone)]
pub enum RuleContent {
    /// All of them.
    All,
    /// Commands that fit.
    Command {
        /// The pattern.
        pattern: Wildcard,
        /// As written, for a comparison with the whole line.
        text: String,
    },
    /// Paths that fit.
    Path(Box<PathPattern>),
    /// Hosts that fit.
    Domain(Domain),
    /// Texts that fit: a kind of agent, a skill with its arguments.
    Text(Wildcard),
    /// A parameter of the call.
    Parameter {
        /// Its name.
        name: String,
        /// The value that fits.
        value: Wildcard,
    },
}

/// Why a rule was left out, or what is odd about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// The rule as written.
    pub rule: String,
    /// What is wrong, and what to write instead.
    pub problem: String,
    /// Where it stands.
    pub source: RuleSource,
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: rule {:?}: {}", self.source, self.rule, self.problem)
    }
}

/// Parameters that name what a call is about: a rule for them is written without the name.
const PRIMARY: [&str; 5] = ["command", "file_path", "path", "notebook_path", "url"];

/// Parameters of Bash that a rule may name.
const BASH_PARAMETERS: [&str; 4] = [
    "run_in_background",
    "timeout",
    "description",
    "dangerouslyDisableSandbox",
];

/// Parameters of Agent and Skill that a rule may name.
const AGENT_PARAMETERS: [&str; 9] = [
    "args",
    "description",
    "isolation",
    "mode",
    "model",
    "name",
    "prompt",
    "run_in_background",
    "team_name",
];

impl Rule {
    pub(super) fn parse(
        list: List,
        written: &str,
        source: RuleSource,
        bases: &Bases,
    ) -> Result<(Self, Option<RuleProblem>), RuleProblem> {
        let text = written.trim().to_owned();
        let problem = |problem: String| RuleProblem {
            rule: text.clone(),
            problem,
            source: source.clone(),
        };
        let (name, content) = split(&text).map_err(|what| problem(what.to_owned()))?;
        let tool = tool_name(name, list).map_err(problem)?;
        let plain = match &tool {
            ToolName::One(name) => name.as_str(),
            ToolName::Server(_) | ToolName::Fitting(_) => "",
        };
        let content = match content {
            None => RuleContent::All,
            Some(content) => parse_content(plain, &content, list, bases).map_err(problem)?,
        };
        let unknown = list != List::Allow
            && !plain.is_empty()
            && !plain.contains(['_', '*'])
            && !is_known(plain);
        let warning =
            unknown.then(|| problem(format!("no tool is called {plain}; is it spelled right?")));
        let rule = Self {
            text: text.clone(),
            list,
            source,
            tool,
            content,
        };
        Ok((rule, warning))
    }

    /// It speaks of a tool as a whole.
    pub fn is_bare(&self) -> bool {
        matches!(self.content, RuleContent::All)
    }
}

/// `Tool(content)` → the two. The content reaches to the last parenthesis.
fn split(text: &str) -> Result<(&str, Option<String>), &'static str> {
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

/// `\(`, `\)` and `\\` are the characters themselves; any other backslash stays.
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

fn tool_name(name: &str, list: List) -> Result<ToolName, String> {
    if name.contains('*') {
        let after_server = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
            .is_some_and(|(server, _)| !server.is_empty() && !server.contains('*'));
        if list == List::Allow && !after_server {
            return Err(
                "an allow rule may hold `*` only behind mcp__SERVER__: name the tools".to_owned(),
            );
        }
        return Ok(ToolName::Fitting(Wildcard::new(name)));
    }
    if let Some(rest) = name.strip_prefix("mcp__")
        && !rest.contains("__")
    {
        return Ok(ToolName::Server(name.to_owned()));
    }
    Ok(ToolName::One(canonical(name).to_owned()))
}

fn parse_content(
    tool: &str,
    content: &str,
    list: List,
    bases: &Bases,
) -> Result<RuleContent, String> {
    if let Some((name, _)) = parameter(content)
        && PRIMARY.contains(&name)
    {
        return Err(format!(
            "{name} is what the call is about; write the pattern without its name"
        ));
    }
    match tool {
        "Bash" | "Monitor" => {
            if let Some((name, value)) = parameter(content)
                && BASH_PARAMETERS.contains(&name)
                && !content.ends_with(":*")
            {
                return parameter_rule(name, value, list);
            }
            let text = collapse(content);
            Ok(RuleContent::Command {
                pattern: Wildcard::of_command(&text),
                text,
            })
        }
        "Read" | "Edit" => PathPattern::new(content, list, bases)
            .map(|pattern| RuleContent::Path(Box::new(pattern))),
        "Write" | "NotebookEdit" | "MultiEdit" => Err(format!(
            "path rules for {tool} are not consulted; write Edit({content})"
        )),
        "Glob" | "Grep" | "LS" | "LSP" => Err(format!(
            "path rules for {tool} are not consulted; write Read({content})"
        )),
        "WebFetch" => match content.strip_prefix("domain:") {
            Some(domain) => Ok(RuleContent::Domain(Domain::new(domain))),
            None => Err("write WebFetch(domain:HOST)".to_owned()),
        },
        "WebSearch" => Err("WebSearch takes no content; write WebSearch".to_owned()),
        // Kinds of agent and skills of plugins hold a colon too.
        "Agent" | "Skill" => match parameter(content) {
            Some((name, value)) if AGENT_PARAMETERS.contains(&name) => {
                parameter_rule(name, value, list)
            }
            _ => Ok(RuleContent::Text(Wildcard::new(content))),
        },
        "Cd" => Ok(RuleContent::Text(Wildcard::new(content))),
        _ => match parameter(content) {
            Some((name, value)) => parameter_rule(name, value, list),
            None if !tool.contains('_') && !is_known(tool) => {
                Err(format!("no tool is called {tool}; is it spelled right?"))
            }
            None => Err("only TOOL or TOOL(parameter:value) can be said of this tool".to_owned()),
        },
    }
}

fn parameter(content: &str) -> Option<(&str, &str)> {
    let (name, value) = content.split_once(':')?;
    Some((name.trim(), value.trim()))
}

fn parameter_rule(name: &str, value: &str, list: List) -> Result<RuleContent, String> {
    if list == List::Allow {
        return Err("a parameter can be denied or asked for, not allowed".to_owned());
    }
    Ok(RuleContent::Parameter {
        name: name.to_owned(),
        value: Wildcard::new(value),
    })
}

/// Runs of blanks outside quotes made one.
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

/// Splits the value of `--allowedTools` on commas and blanks outside parentheses.
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
    use super::*;
    use crate::rules::{Rules, Scope};

    #[test]
    fn rules_are_read_or_refused_with_a_reason() {
        let bases = Bases {
            cwd: "/p".into(),
            home: "/h".into(),
            slash: "/p".into(),
        };
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
            let added = Rules::default().add(list, text, RuleSource::of(Scope::User), &bases);
            let said = match added {
                Ok(None) => "ok".to_owned(),
                Ok(Some(warning)) => format!("ok, but: {}", warning.problem),
                Err(problem) => format!("left out: {}", problem.problem),
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
