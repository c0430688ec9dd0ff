//! The built-in agent kinds.

use crate::{AgentDefinition, ExtensionOrigin};

/// Two of the read-only kinds; one environment variable disables both.
pub(super) const EXPLORE_AND_PLAN: [&str; 2] = ["Explore", "Plan"];

/// The tools that read-only kinds may not use.
const CHANGING: [&str; 6] = [
    "Agent",
    "Edit",
    "NotebookEdit",
    "ReplaceInFiles",
    "Undo",
    "Write",
];

/// The only tools of an agent that mainly thinks about its prompt. They neither change nor run
/// anything.
const READ_ONLY_TOOLS: [&str; 5] = ["Glob", "Grep", "LS", "Read", "Think"];

pub(super) fn all() -> [AgentDefinition; 4] {
    let [explore, plan] = EXPLORE_AND_PLAN;
    [
        agent(
            "general-purpose",
            "Any task of several steps: investigating a question, searching if one search is not enough, \
             doing a task from beginning to end.",
            include_str!("general_purpose.md"),
            &[],
        ),
        agent(
            explore,
            "Searching a code base, fast and read-only: for files by name, for places by content, or for how \
             a feature works. State how thorough it should be.",
            include_str!("explore.md"),
            &CHANGING,
        ),
        agent(
            plan,
            "Designing an implementation, read-only: it inspects the code and returns the steps, the \
             important files and the trade-offs.",
            include_str!("plan.md"),
            &CHANGING,
        ),
        only(
            agent(
                "architect",
                "A design for a hard decision, from facts that you gathered and put into the prompt. It is read-only \
                 and reads little: not for searching.",
                include_str!("architect.md"),
                &[],
            ),
            &READ_ONLY_TOOLS,
        ),
    ]
}

fn agent(name: &str, description: &str, prompt: &str, without: &[&str]) -> AgentDefinition {
    AgentDefinition {
        disallowed_tools: without.iter().map(|tool| (*tool).to_owned()).collect(),
        ..AgentDefinition::new(name, description, prompt.trim(), ExtensionOrigin::BuiltIn)
    }
}

fn only(agent: AgentDefinition, tools: &[&str]) -> AgentDefinition {
    AgentDefinition {
        tools: Some(tools.iter().map(|tool| (*tool).to_owned()).collect()),
        ..agent
    }
}
