//! `/mcp`: lists and controls MCP servers.

use super::{BuiltInCommand, CommandAction, CommandAnswer, short, table};
use crate::SessionInput;

pub(super) static MCP: BuiltInCommand = BuiltInCommand {
    name: "mcp",
    hint: "[NAME | reconnect NAME | enable NAME | disable NAME]",
    description: "Show MCP servers, what they say, offer and log; connect one again",
    acts: CommandAction::Anytime(|input, arguments| Box::pin(mcp(input, arguments))),
};

async fn mcp(input: &SessionInput, arguments: &str) -> CommandAnswer {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    match words.as_slice() {
        [] => Ok(list(input)),
        ["reconnect", name] => {
            input.reconnect_server(name).await?;
            Ok(format!("{name} is connected."))
        }
        ["enable", name] => {
            input.toggle_server(name, true).await?;
            Ok(format!("{name} is on."))
        }
        ["disable", name] => {
            input.toggle_server(name, false).await?;
            Ok(format!("{name} is off for this session."))
        }
        [name] => one(input, name),
        _ => Err("say /mcp, /mcp NAME, or /mcp reconnect|enable|disable NAME".to_owned()),
    }
}

fn list(input: &SessionInput) -> String {
    let list = input.servers();
    if list.servers.is_empty() && list.skipped.is_empty() {
        return "No MCP server is named; `haft mcp add` adds one.".to_owned();
    }
    let servers = list.servers.into_iter().map(|server| {
        let offers = match (&server.error, &server.tools) {
            (Some(error), _) => short(error, 80),
            (None, Some(tools)) => match server.unapproved {
                Some(_) => format!(
                    "{} tools; not all approved: /mcp {}",
                    tools.len(),
                    server.name
                ),
                None => format!("{} tools", tools.len()),
            },
            (None, None) => String::new(),
        };
        vec![server.name, server.status.to_owned(), server.target, offers]
    });
    let skipped = list.skipped.into_iter().map(|left| {
        let why = short(&left.message, 80);
        vec![left.name, "left out".to_owned(), String::new(), why]
    });
    table(&servers.chain(skipped).collect::<Vec<_>>())
}

fn one(input: &SessionInput, name: &str) -> CommandAnswer {
    let mut servers = input.servers().servers.into_iter();
    let server = servers.find(|server| server.name == name);
    let server = server.ok_or_else(|| format!("no MCP server is called {name:?}"))?;
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("state", server.status.to_owned()),
        row("from", server.scope.to_owned()),
        row("at", server.target),
    ];
    rows.extend(server.revision.map(|one| row("protocol", one.to_owned())));
    rows.extend(server.error.map(|error| row("problem", error)));
    rows.extend(server.instructions.map(|said| row("says", said)));
    let mut text = table(&rows);
    for tool in server.tools.into_iter().flatten() {
        let said = tool["description"].as_str().unwrap_or_default();
        let name = tool["name"].as_str().unwrap_or_default();
        text += &format!("\n  {name}  {}", short(said, 80));
    }
    if let Some(unapproved) = server.unapproved {
        text += &format!("\n{unapproved}");
    }
    if !server.log.is_empty() {
        text += "\nlog, the last lines";
        for line in server.log {
            text += &format!("\n  {line}");
        }
    }
    Ok(text)
}
