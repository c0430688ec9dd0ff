//! `/context` and `/cost`: the usage of the window, and the cost.

use super::{BuiltInCommand, CommandAction, thousands};
use crate::{ContextUsage, CostLine, CostReport};

/// The width of the bar in characters.
const BAR: u64 = 26;

pub(super) static CONTEXT: BuiltInCommand = BuiltInCommand {
    name: "context",
    hint: "",
    description: "Say how full the model's window is",
    acts: CommandAction::Anytime(|input, _| {
        Box::pin(async move { Ok(context(&input.context_usage())) })
    }),
};

pub(super) static COST: BuiltInCommand = BuiltInCommand {
    name: "cost",
    hint: "",
    description: "Say what was spent",
    acts: CommandAction::Anytime(|input, _| Box::pin(async move { Ok(cost(&input.costs())) })),
};

pub(super) fn context(usage: &ContextUsage) -> String {
    let window = usage.window.max(1);
    let percent = usage.total * 100 / window;
    let filled = (usage.total * BAR).div_ceil(window).min(BAR);
    let bar: String = (0..BAR)
        .map(|at| if at < filled { '#' } else { '.' })
        .collect();
    let servers: u64 = usage.servers.iter().map(|(_, tokens)| tokens).sum();
    let parts = [
        ("system", usage.system),
        ("tools", usage.tools),
        ("servers", servers),
        ("memory", usage.memory),
        ("messages", usage.messages),
        ("results", usage.results),
    ];
    let parts = parts.iter().filter(|(_, tokens)| *tokens > 0);
    let parts: Vec<String> = parts
        .map(|(name, tokens)| format!("{name} {}", thousands(*tokens)))
        .collect();
    let mut text = format!(
        "Context {} of {} ({percent}%) [{bar}]",
        thousands(usage.total),
        thousands(usage.window)
    );
    if !parts.is_empty() {
        text += &format!("\n  {}", parts.join(" "));
    }
    if let Some((name, tokens)) = &usage.largest {
        text += &format!("; largest {name} {}", thousands(*tokens));
    }
    text
}

pub(super) fn cost(costs: &CostReport) -> String {
    let line = |line: &CostLine| {
        format!(
            "\n{}: {} tokens in, {} out, ${:.4}",
            line.name, line.input, line.output, line.usd
        )
    };
    let mut text = format!("Spent so far: ${:.4}", costs.total_usd);
    text.extend(costs.models.iter().map(line));
    // A single agent has the same numbers as the total.
    if costs.agents.len() > 1 {
        text += "\nby agent:";
        text.extend(costs.agents.iter().map(line));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_and_what_it_is_made_of() {
        let usage = ContextUsage {
            window: 200_000,
            total: 68_000,
            system: 3_000,
            tools: 12_000,
            memory: 2_000,
            messages: 41_000,
            results: 10_000,
            largest: Some(("Read a.rs".to_owned(), 6_000)),
            ..ContextUsage::default()
        };
        let empty = ContextUsage::default();
        insta::assert_snapshot!(format!("{}\n\n{}", context(&usage), context(&empty)));
    }

    #[test]
    fn agents_are_listed_where_there_are_several() {
        let line = |name: &str, usd: f64| CostLine {
            name: name.to_owned(),
            input: 10,
            output: 2,
            usd,
        };
        let alone = CostReport {
            total_usd: 0.5,
            models: vec![line("m", 0.5)],
            agents: vec![line("main", 0.5)],
        };
        let mut team = alone.clone();
        team.agents = vec![line("Explore", 0.2), line("main", 0.3)];
        insta::assert_snapshot!(format!("{}\n\n{}", cost(&alone), cost(&team)));
    }
}
