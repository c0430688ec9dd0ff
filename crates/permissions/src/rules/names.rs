//! The names that rules may use, whether or not this build has a tool of that name.
//!
//! A tool's profile determines the meaning of its rules ([`haft_contract::RuleMatch`]). But `Bash`,
//! `Read`, `Edit` and `WebFetch` mean an action by any tool: rules with these names must apply even
//! if the tool of that name is missing.

/// The calls to which rules with a name apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleClass {
    /// Command lines, run by any tool.
    Commands,
    /// Reads, by any tool.
    Reads,
    /// Edits, by any tool.
    Edits,
    /// Connections to hosts.
    Hosts,
    /// Command lines that run in the sandbox without network.
    OfflineCommands,
    /// Hosts that command lines may read from.
    ReadDomains,
    /// Calls of the tool of this name; its profile determines the rest.
    Tool,
}

/// The known tool names and their aliases. A rule with one of these names causes no warning.
const NAMES: [(&str, RuleClass); 66] = [
    ("Agent", RuleClass::Tool),
    ("AgentOutput", RuleClass::Tool),
    ("AgentOutputTool", RuleClass::Tool),
    ("AskUserQuestion", RuleClass::Tool),
    ("Bash", RuleClass::Commands),
    ("BashOutput", RuleClass::Tool),
    ("BashOutputTool", RuleClass::Tool),
    ("Browser", RuleClass::Tool),
    ("Cd", RuleClass::Tool),
    ("Config", RuleClass::Tool),
    ("CronCreate", RuleClass::Tool),
    ("CronDelete", RuleClass::Tool),
    ("CronList", RuleClass::Tool),
    ("Edit", RuleClass::Edits),
    ("EnterPlanMode", RuleClass::Tool),
    ("EnterWorktree", RuleClass::Tool),
    ("ExitPlanMode", RuleClass::Tool),
    ("ExitWorktree", RuleClass::Tool),
    ("FileSearch", RuleClass::Tool),
    ("Glob", RuleClass::Tool),
    ("Grep", RuleClass::Tool),
    ("KillBash", RuleClass::Tool),
    ("KillShell", RuleClass::Tool),
    ("LS", RuleClass::Tool),
    ("LSP", RuleClass::Tool),
    ("ListMcpResources", RuleClass::Tool),
    ("ListMcpResourcesTool", RuleClass::Tool),
    ("MemoryRead", RuleClass::Tool),
    ("MemoryWrite", RuleClass::Tool),
    ("Monitor", RuleClass::Tool),
    ("MultiEdit", RuleClass::Tool),
    ("NotebookEdit", RuleClass::Tool),
    ("NotebookRead", RuleClass::Reads),
    ("OfflineCommand", RuleClass::OfflineCommands),
    ("PowerShell", RuleClass::Tool),
    ("PushNotification", RuleClass::Tool),
    ("REPL", RuleClass::Tool),
    ("Read", RuleClass::Reads),
    ("ReadDomain", RuleClass::ReadDomains),
    ("ReadMcpResource", RuleClass::Tool),
    ("ReadMcpResourceTool", RuleClass::Tool),
    ("RemoteTrigger", RuleClass::Tool),
    ("ReplaceInFiles", RuleClass::Tool),
    ("SendMessage", RuleClass::Tool),
    ("SendUserFile", RuleClass::Tool),
    ("Skill", RuleClass::Tool),
    ("Sleep", RuleClass::Tool),
    ("StructuredOutput", RuleClass::Tool),
    ("Task", RuleClass::Tool),
    ("TaskCreate", RuleClass::Tool),
    ("TaskGet", RuleClass::Tool),
    ("TaskList", RuleClass::Tool),
    ("TaskOutput", RuleClass::Tool),
    ("TaskStop", RuleClass::Tool),
    ("TaskUpdate", RuleClass::Tool),
    ("TeamCreate", RuleClass::Tool),
    ("TeamDelete", RuleClass::Tool),
    ("Think", RuleClass::Tool),
    ("TodoRead", RuleClass::Tool),
    ("TodoWrite", RuleClass::Tool),
    ("ToolSearch", RuleClass::Tool),
    ("Undo", RuleClass::Tool),
    ("WebFetch", RuleClass::Hosts),
    ("WebSearch", RuleClass::Tool),
    ("Workflow", RuleClass::Tool),
    ("Write", RuleClass::Tool),
];

impl RuleClass {
    /// Returns the class of rules with this name.
    pub fn from_name(name: &str) -> Self {
        entry(name).map_or(Self::Tool, |(_, class)| *class)
    }

    /// Returns the name with which rules of this class begin; empty for the class of a single tool.
    pub fn word(self) -> &'static str {
        let mut words = NAMES.iter().filter(|(_, class)| *class == self);
        match self {
            Self::Tool => "",
            // The shortest name is the main one; the others are aliases.
            _ => words
                .by_ref()
                .map(|(word, _)| *word)
                .min_by_key(|word| word.len())
                .unwrap_or(""),
        }
    }
}

/// Returns whether this is a known tool name or alias.
pub fn is_known(name: &str) -> bool {
    entry(name).is_some()
}

fn entry(name: &str) -> Option<&'static (&'static str, RuleClass)> {
    let at = NAMES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    NAMES.get(at)
}

#[cfg(test)]
mod tests {
    use haft_contract::rule_offer::{OFFLINE_COMMAND, READ_DOMAIN};

    use super::*;

    #[test]
    fn names_are_sorted_and_every_class_has_its_word() {
        assert!(NAMES.is_sorted_by(|(a, _), (b, _)| a < b));
        let words = [
            RuleClass::Commands,
            RuleClass::Reads,
            RuleClass::Edits,
            RuleClass::Hosts,
            RuleClass::OfflineCommands,
            RuleClass::ReadDomains,
        ];
        let words = words.map(RuleClass::word);
        assert_eq!(
            words,
            [
                "Bash",
                "Read",
                "Edit",
                "WebFetch",
                OFFLINE_COMMAND,
                READ_DOMAIN
            ]
        );
        assert_eq!(RuleClass::from_name("NotebookRead"), RuleClass::Reads);
        assert_eq!(RuleClass::from_name("NoSuchTool"), RuleClass::Tool);
    }
}
