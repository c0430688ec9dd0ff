//! Names of tools, as rules may spell them.

/// Other names that rules may use, with the tool's own.
const ALIASES: [(&str, &str); 11] = [
    ("Task", "Agent"),
    ("BashOutput", "TaskOutput"),
    ("AgentOutput", "TaskOutput"),
    ("AgentOutputTool", "TaskOutput"),
    ("BashOutputTool", "TaskOutput"),
    ("KillShell", "TaskStop"),
    ("KillBash", "TaskStop"),
    ("ListMcpResources", "ListMcpResourcesTool"),
    ("ReadMcpResource", "ReadMcpResourceTool"),
    ("NotebookRead", "Read"),
    ("FileSearch", "ReplaceInFiles"),
];

/// Tools that a rule may name without a word of warning, also where this session has them not.
const KNOWN: [&str; 52] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "Cd",
    "Config",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "LS",
    "LSP",
    "ListMcpResourcesTool",
    "MemoryRead",
    "MemoryWrite",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "PowerShell",
    "PushNotification",
    "REPL",
    "Read",
    "ReadMcpResourceTool",
    "RemoteTrigger",
    "ReplaceInFiles",
    "SendMessage",
    "SendUserFile",
    "Skill",
    "Sleep",
    "StructuredOutput",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "Think",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "Undo",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
];

/// The tool's own name.
pub fn canonical(name: &str) -> &str {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, own)| own)
}

/// Is it a tool of the convention?
pub fn is_known(name: &str) -> bool {
    KNOWN.contains(&canonical(name))
}
