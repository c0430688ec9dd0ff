//! The content of a rule, which is in its parentheses, and its meaning.
//!
//! Rules are parsed before the tools are known. The text of the content is therefore stored, and
//! the tool's profile later determines which value of a call it is compared with. Only the content
//! of rule classes that apply to more than one tool is parsed immediately.

use haft_contract::{RuleMatch, ToolSpec};

use super::{
    DomainPattern, List, PathPattern, PatternBases, RuleClass, RuleContent, WildcardPattern,
    rule::collapse,
};

/// The parameters that are the subject of a call: a rule gives their pattern without the parameter
/// name.
const PRIMARY: [&str; 5] = ["command", "file_path", "path", "notebook_path", "url"];

/// The parameters of command tools that a rule may name.
const COMMAND_PARAMETERS: [&str; 4] = [
    "run_in_background",
    "timeout",
    "description",
    "dangerouslyDisableSandbox",
];

/// A content whose meaning the tool determines.
#[derive(Debug, Clone)]
pub struct UnresolvedContent {
    text: String,
    list: List,
    bases: PatternBases,
}

impl UnresolvedContent {
    pub(super) fn new(text: String, list: List, bases: &PatternBases) -> Self {
        Self {
            text,
            list,
            bases: bases.clone(),
        }
    }

    /// Resolves the content without a tool, if its class permits it.
    pub(super) fn resolve_for_class(
        self,
        class: RuleClass,
        tool: &str,
    ) -> Result<RuleContent, String> {
        if let Some((name, _)) = self.parameter()
            && PRIMARY.contains(&name)
        {
            return Err(format!(
                "{name} is what the call is about; write the pattern without its name"
            ));
        }
        match class {
            RuleClass::Commands | RuleClass::OfflineCommands => self.command(),
            RuleClass::ReadDomains => Ok(RuleContent::ReadHost(DomainPattern::new(&self.text))),
            RuleClass::Reads | RuleClass::Edits => self.path(),
            RuleClass::Hosts => self.host(tool),
            // The schema that an MCP server declares does not change the meaning of a rule.
            RuleClass::Tool if tool.is_empty() || tool.starts_with("mcp__") => {
                self.only_parameter()
            }
            RuleClass::Tool => Ok(RuleContent::Unresolved(Box::new(self))),
        }
    }

    /// Resolves the content for a tool. The error is the reason why it has no meaning for the tool.
    pub(crate) fn resolve_for_tool(
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
        // Agent kinds, skills of plugins and paths may contain a colon, too.
        if matches!(
            rules,
            RuleMatch::Paths | RuleMatch::Text { .. } | RuleMatch::Address(_)
        ) && let Some((name, value)) = self.parameter()
            && parameters.iter().any(|own| own == name)
        {
            return self.parameter_content(name, value);
        }
        match rules {
            RuleMatch::Command(_) => self.command(),
            RuleMatch::Paths => self.path(),
            RuleMatch::Address(_) => self.host(tool),
            RuleMatch::Reads => elsewhere(RuleClass::Reads),
            RuleMatch::Edits { .. } => elsewhere(RuleClass::Edits),
            RuleMatch::NameOnly => Err(format!("{tool} takes no content; write {tool}")),
            RuleMatch::Text { .. } => Ok(RuleContent::Text(WildcardPattern::new(&self.text))),
            RuleMatch::Parameters => self.only_parameter(),
        }
    }

    fn command(&self) -> Result<RuleContent, String> {
        if let Some((name, value)) = self.parameter()
            && COMMAND_PARAMETERS.contains(&name)
            && !self.text.ends_with(":*")
        {
            return self.parameter_content(name, value);
        }
        let text = collapse(&self.text);
        Ok(RuleContent::Command {
            pattern: WildcardPattern::for_command(&text),
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

    /// Returns the host pattern, if the content has the form `domain:HOST`.
    pub(crate) fn domain(&self) -> Option<DomainPattern> {
        self.text.strip_prefix("domain:").map(DomainPattern::new)
    }

    fn only_parameter(&self) -> Result<RuleContent, String> {
        match self.parameter() {
            Some((name, value)) => self.parameter_content(name, value),
            None => Err("rules for this tool are TOOL or TOOL(parameter:value)".to_owned()),
        }
    }

    fn parameter(&self) -> Option<(&str, &str)> {
        let (name, value) = self.text.split_once(':')?;
        Some((name.trim(), value.trim()))
    }

    fn parameter_content(&self, name: &str, value: &str) -> Result<RuleContent, String> {
        if self.list == List::Allow {
            return Err("a parameter can be denied or asked for, not allowed".to_owned());
        }
        Ok(RuleContent::Parameter {
            name: name.to_owned(),
            value: WildcardPattern::new(value),
        })
    }
}

/// Returns the names of a tool's parameters.
pub(crate) fn parameters(spec: &ToolSpec) -> Vec<String> {
    let properties = spec.input_schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}
