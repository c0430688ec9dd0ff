//! `haft tools`: lists the tools, human-readable or in a provider's format.

use haft::{Haft, Pool, ToolAccess, ToolFormat, engine::pool::PoolTool, engine::pool::definitions};
use serde_json::Value;

use crate::{
    args::{SessionArgs, ToolsFlags},
    exit::Exit,
    session,
    show::{self, ConsoleStyle},
};

pub(crate) async fn run(args: SessionArgs, tools: ToolsFlags) -> anyhow::Result<Exit> {
    let haft = session::tools(&args, None).await?;
    let pool = haft.pool();
    let format = tools
        .format
        .map(ToolFormat::from)
        .or(tools.json.then_some(ToolFormat::Anthropic));
    if tools.cost {
        let agent = session::agent_tools(&args).await?;
        show::line(&costs(&agent, tools.name.as_deref())?)?;
        return Ok(Exit::Success);
    }
    match (&tools.name, format) {
        (None, None) => {
            // `exec` and `call` cannot use the tools that only agents have, but the list shows
            // them.
            let agent = session::agent_tools(&args).await?;
            show::line(&table(&agent, &pool))?;
        }
        (None, Some(format)) => {
            show::json(&serde_json::to_string_pretty(&haft.definitions(format))?)?;
        }
        (Some(name), format) => {
            let agent;
            let pool = match pool.find(name) {
                Some(_) => pool,
                None => {
                    agent = session::agent_tools(&args).await?;
                    agent.pool()
                }
            };
            let tool = find(&pool, name)?;
            match format {
                Some(format) => {
                    let definition = definitions::definition(tool.spec(), format);
                    show::json(&serde_json::to_string_pretty(&definition)?)?;
                }
                None => show::drawn(&page(tool, ConsoleStyle::of_stdout()))?,
            }
        }
    }
    Ok(Exit::Success)
}

fn find<'a>(pool: &'a Pool, name: &str) -> anyhow::Result<&'a PoolTool> {
    if let Some(tool) = pool.find(name) {
        return Ok(tool);
    }
    let near = pool.similar_names(name);
    let hint = match near.as_slice() {
        [] => "`haft tools` lists them".to_owned(),
        near => format!("did you mean {}?", near.join(", ")),
    };
    anyhow::bail!("no tool is called {name:?}; {hint}");
}

/// Lists the size of each tool definition in tokens, the largest first.
fn costs(agent: &Haft, name: Option<&str>) -> anyhow::Result<String> {
    let pool = agent.pool();
    let tools: Vec<&PoolTool> = match name {
        Some(name) => vec![find(&pool, name)?],
        None => pool.iter().map(AsRef::as_ref).collect(),
    };
    let mut tools: Vec<(usize, &str)> = tools
        .iter()
        .map(|tool| tool.spec())
        .map(|spec| (definitions::estimated_tokens(spec), spec.name.as_str()))
        .collect();
    tools.sort_unstable_by_key(|(tokens, name)| (std::cmp::Reverse(*tokens), *name));
    let mut rows = vec![["NAME", "TOKENS", "SENT"].map(str::to_owned)];
    let (mut sent, mut waiting) = (0, 0);
    for (tokens, name) in tools {
        let is_deferred = pool.is_deferred(name);
        let (when, total) = match is_deferred {
            true => ("when loaded", &mut waiting),
            false => ("always", &mut sent),
        };
        *total += tokens;
        rows.push([name.to_owned(), tokens.to_string(), when.to_owned()]);
    }
    let table = show::table(&rows);
    Ok(match name {
        Some(_) => table.trim_end().to_owned(),
        None => format!(
            "{table}\nAbout {sent} tokens with every request; {waiting} more if every deferred tool were loaded"
        ),
    })
}

/// Lists the tools of an agent. `callable` contains those that `haft exec` and `haft call` can use.
fn table(agent: &Haft, callable: &Pool) -> String {
    let pool = agent.pool();
    let sent: Vec<Value> = agent.definitions(ToolFormat::Anthropic);
    let is_sent = |name: &str| sent.iter().any(|tool| tool["name"] == name);
    let mut rows = vec![["NAME", "CLASS", "LEVEL", "CONCURRENCY", "TOKENS"].map(str::to_owned)];
    let (mut total, mut deferred, mut agents) = (0, 0, 0);
    for tool in pool.iter() {
        let spec = tool.spec();
        let tokens = definitions::estimated_tokens(spec);
        let mut marks = Vec::new();
        if callable.find(&spec.name).is_none() {
            agents += 1;
            marks.push("agent");
        }
        match is_sent(&spec.name) {
            true => total += tokens,
            false => {
                deferred += 1;
                marks.push("deferred");
            }
        }
        let marks = match marks.is_empty() {
            true => String::new(),
            false => format!(" ({})", marks.join(", ")),
        };
        rows.push([
            format!("{}{marks}", spec.name),
            spec.profile.family.to_string(),
            level(spec.profile.access).to_owned(),
            concurrency(spec.profile.access).to_owned(),
            tokens.to_string(),
        ]);
    }
    let count = rows.len() - 1 - deferred;
    let mut forbidden = String::new();
    for tool in pool.all_forbidden() {
        rows.push([
            tool.name.clone(),
            String::new(),
            "forbidden".to_owned(),
            String::new(),
            String::new(),
        ]);
        let rule = show::clean(&format!("{} ({})", tool.rule, tool.source));
        forbidden += &format!("\n{} is forbidden by the rule {rule}", tool.name);
    }
    let mut text = format!(
        "{}\n{count} tools are sent with every request, about {total} tokens",
        show::table(&rows)
    );
    if deferred > 0 {
        text += &format!("; {deferred} are deferred: loaded when the model needs them");
    }
    if agents > 0 {
        text += &format!(
            "\n{agents} are for agents: available in `haft -p`, not in `haft exec` and `haft call`"
        );
    }
    text + &forbidden
}

/// Returns the risk level of a tool. Rules decide on single calls: `haft permissions explain`.
fn level(access: ToolAccess) -> &'static str {
    match access {
        ToolAccess::Reads => "safe",
        ToolAccess::Paths => "needs confirmation",
        ToolAccess::Anything => "dangerous",
    }
}

/// Describes which other calls may run concurrently with a call of this tool.
fn concurrency(access: ToolAccess) -> &'static str {
    match access {
        ToolAccess::Reads => "parallel",
        ToolAccess::Paths => "per file",
        ToolAccess::Anything => "alone",
    }
}

fn page(tool: &PoolTool, style: ConsoleStyle) -> String {
    let spec = tool.spec();
    let mut page = format!("{}\n", style.bold(&spec.name));
    if !spec.profile.aliases.is_empty() {
        page += &format!("also called {}\n", spec.profile.aliases.join(", "));
    }
    page += &format!("\n{}\n\nParameters:\n", spec.description);
    let required = spec.input_schema["required"].as_array();
    let properties = spec.input_schema["properties"].as_object();
    for (name, schema) in properties.into_iter().flatten() {
        let needed = required.is_some_and(|names| names.iter().any(|needed| needed == name));
        let kind = match &schema["enum"] {
            Value::Array(options) => {
                let options: Vec<_> = options.iter().filter_map(Value::as_str).collect();
                options.join("|")
            }
            _ => schema["type"].as_str().unwrap_or("any").to_owned(),
        };
        let needed = if needed { ", required" } else { "" };
        page += &format!(
            "  {}  {}\n",
            style.bold(name),
            style.dim(&format!("{kind}{needed}"))
        );
        for line in schema["description"].as_str().unwrap_or_default().lines() {
            page += &format!("      {line}\n");
        }
    }
    page.trim_end().to_owned()
}
