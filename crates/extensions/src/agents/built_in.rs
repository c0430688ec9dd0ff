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

/// The only tools of an agent that just thinks about its prompt. They cannot change or run
/// anything.
const LOOKING: [&str; 5] = ["Glob", "Grep", "LS", "Read", "Think"];

pub(super) fn all() -> [AgentDefinition; 4] {
    let [explore, plan] = EXPLORE_AND_PLAN;
    [
        agent(
            "general-purpose",
            "Anything that takes several steps: looking into a question, searching where one search will \
             not do, carrying a task out from beginning to end.",
            include_str!("general_purpose.md"),
            &[],
        ),
        agent(
            explore,
            "Finding things in a code base, fast and without changing anything: files by their names, \
             places by what they say, how something works. Say how thorough it should be.",
            include_str!("explore.md"),
            &CHANGING,
        ),
        agent(
            plan,
            "Designing how something is to be built, without changing anything: it looks at the code and \
             returns the steps, the files that matter and what there is to weigh.",
            include_str!("plan.md"),
            &CHANGING,
        ),
        only(
            agent(
                "architect",
                "A design for a hard decision, from facts that you gathered and put into the prompt. It only reads, and \
                 little: not for finding things.",
                include_str!("architect.md"),
                &[],
            ),
            &LOOKING,
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
