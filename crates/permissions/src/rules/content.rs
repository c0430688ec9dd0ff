//! What stands in the parentheses of a rule, and what it means.
//!
//! Rules are read before it is known which tools there are. So the text is kept, and means what the profile of
//! the tool says that a call is compared by; only rules of a class that is about more than one tool are read at
//! once.

use haft_contract::{RuleMatch, ToolSpec};

use super::{Bases, Domain, List, PathPattern, RuleClass, RuleContent, Wildcard, rule::collapse};

/// Parameters that name what a call is about: a rule for them is written without the name.
const PRIMARY: [&str; 5] = ["command", "file_path", "path", "notebook_path", "url"];

/// Parameters of a tool that runs commands which a rule may name.
const COMMAND_PARAMETERS: [&str; 4] = [
    "run_in_background",
    "timeout",
    "description",
    "dangerouslyDisableSandbox",
];

/// A text whose meaning its tool decides.
#[derive(Debug, Clone)]
pub struct OpenContent {
    text: String,
    list: List,
    bases: Bases,
}

impl OpenContent {
    pub(super) fn new(text: String, list: List, bases: &Bases) -> Self {
        Self {
            text,
            list,
            bases: bases.clone(),
        }
    }

    /// What it means without a look at any tool, as far as that can be known.
    pub(super) fn read(self, class: RuleClass, tool: &str) -> Result<RuleContent, String> {
        if let Some((name, _)) = self.parameter()
            && PRIMARY.contains(&name)
        {
            return Err(format!(
                "{name} is what the call is about; write the pattern without its name"
            ));
        }
        match class {
            RuleClass::Commands => self.command(),
            RuleClass::Reads | RuleClass::Edits => self.path(),
            RuleClass::Hosts => self.host(tool),
            // What a server says of its tools gives no rule a meaning.
            RuleClass::Tool if tool.is_empty() || tool.starts_with("mcp__") => {
                self.only_parameter()
            }
            RuleClass::Tool => Ok(RuleContent::Open(Box::new(self))),
        }
    }

    /// What it means to a tool; the error says why it means nothing.
    pub(crate) fn meaning(
        &self,
        tool: &str,
        rules: RuleMatch,
        parameters: &[String],
    ) -> Result<RuleContent, String> {
        let elsewhere = |class: RuleClass| {
            let (word, text) = (class.word(), &self.text);
            Err(format!(
                "path rules for {tool} are not consulted; write {word}({text})"
            ))
        };
        // Kinds of agent, skills of plugins and paths hold a colon too.
        if matches!(
            rules,
            RuleMatch::Paths | RuleMatch::Text { .. } | RuleMatch::Address(_)
        ) && let Some((name, value)) = self.parameter()
            && parameters.iter().any(|own| own == name)
        {
            return self.of_parameter(name, value);
        }
        match rules {
            RuleMatch::Command(_) => self.command(),
            RuleMatch::Paths => self.path(),
            RuleMatch::Address(_) => self.host(tool),
            RuleMatch::Reads => elsewhere(RuleClass::Reads),
            RuleMatch::Edits { .. } => elsewhere(RuleClass::Edits),
            RuleMatch::NameOnly => Err(format!("{tool} takes no content; write {tool}")),
            RuleMatch::Text { .. } => Ok(RuleContent::Text(Wildcard::new(&self.text))),
            RuleMatch::Parameters => self.only_parameter(),
        }
    }

    fn command(&self) -> Result<RuleContent, String> {
        if let Some((name, value)) = self.parameter()
            && COMMAND_PARAMETERS.contains(&name)
            && !self.text.ends_with(":*")
        {
            return self.of_parameter(name, value);
        }
        let text = collapse(&self.text);
        Ok(RuleContent::Command {
            pattern: Wildcard::of_command(&text),
            text,
        })
    }

    fn path(&self) -> Result<RuleContent, String> {
        PathPattern::new(&self.text, self.list, &self.bases)
            .map(|pattern| RuleContent::Path(Box::new(pattern)))
    }

    fn host(&self, tool: &str) -> Result<RuleContent, String> {
        match self.domain() {
            Some(domain) => Ok(RuleContent::Domain(domain)),
            None => Err(format!("write {tool}(domain:HOST)")),
        }
    }

    /// The hosts it names, if it is written so.
    pub(crate) fn domain(&self) -> Option<Domain> {
        self.text.strip_prefix("domain:").map(Domain::new)
    }

    fn only_parameter(&self) -> Result<RuleContent, String> {
        match self.parameter() {
            Some((name, value)) => self.of_parameter(name, value),
            None => Err("only TOOL or TOOL(parameter:value) can be said of this tool".to_owned()),
        }
    }

    fn parameter(&self) -> Option<(&str, &str)> {
        let (name, value) = self.text.split_once(':')?;
        Some((name.trim(), value.trim()))
    }

    fn of_parameter(&self, name: &str, value: &str) -> Result<RuleContent, String> {
        if self.list == List::Allow {
            return Err("a parameter can be denied or asked for, not allowed".to_owned());
        }
        Ok(RuleContent::Parameter {
            name: name.to_owned(),
            value: Wildcard::new(value),
        })
    }
}

/// The names of a tool's parameters.
pub(crate) fn parameters(spec: &ToolSpec) -> Vec<String> {
    let properties = spec.input_schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}
