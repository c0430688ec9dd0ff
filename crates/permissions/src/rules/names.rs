//! Names that rules may spell, whether this build has such a tool or not.
//!
//! What a tool's rules mean, its profile says ([`haft_contract::RuleMatch`]). Four words mean more than a tool and
//! stand for what is done, by whatever tool: they must hold also where that tool is not there.

/// What rules with a name speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleClass {
    /// Command lines, whichever tool runs them.
    Commands,
    /// What is read, by whatever tool.
    Reads,
    /// What is edited, by whatever tool.
    Edits,
    /// Hosts that are contacted.
    Hosts,
    /// The tool of this name: its profile says more.
    Tool,
}

/// The names of the convention, tools and other names of them: no warning is due for a rule that names one.
const NAMES: [(&str, RuleClass); 64] = [
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
    ("PowerShell", RuleClass::Tool),
    ("PushNotification", RuleClass::Tool),
    ("REPL", RuleClass::Tool),
    ("Read", RuleClass::Reads),
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
    /// What rules with this name speak of.
    pub fn of(name: &str) -> Self {
        entry(name).map_or(Self::Tool, |(_, class)| *class)
    }

    /// How a rule of this class begins; empty for that of a tool.
    pub fn word(self) -> &'static str {
        let mut words = NAMES.iter().filter(|(_, class)| *class == self);
        match self {
            Self::Tool => "",
            // The shortest: the others are other names of it.
            _ => words
                .by_ref()
                .map(|(word, _)| *word)
                .min_by_key(|word| word.len())
                .unwrap_or(""),
        }
    }
}

/// Is it a name of the convention?
pub fn is_known(name: &str) -> bool {
    entry(name).is_some()
}

fn entry(name: &str) -> Option<&'static (&'static str, RuleClass)> {
    let at = NAMES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    NAMES.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_every_class_has_its_word() {
        assert!(NAMES.is_sorted_by(|(a, _), (b, _)| a < b));
        let words = [
            RuleClass::Commands,
            RuleClass::Reads,
            RuleClass::Edits,
            RuleClass::Hosts,
        ];
        let words = words.map(RuleClass::word);
        assert_eq!(words, ["Bash", "Read", "Edit", "WebFetch"]);
        assert_eq!(RuleClass::of("NotebookRead"), RuleClass::Reads);
        assert_eq!(RuleClass::of("NoSuchTool"), RuleClass::Tool);
    }
}
