//! `haft mcp add`, `list` and so on: manage the MCP servers whose tools sessions use.

use std::fmt::Write;

use anyhow::Context;
use haft_host::{
    ServerDetails, ServerList, add_server, approve_server, check_servers, forget_approvals,
    login_server, logout_server, named_servers, notify_login, remove_server,
};
use serde_json::{Map, Value, json};

use crate::{
    args::{McpAddFlags, McpServersCommand, McpTransport, SessionArgs},
    exit::Exit,
    session, show,
};

/// The estimated number of bytes per token of a tool definition.
const TOKEN: usize = 4;

pub(super) async fn run(args: SessionArgs, asked: McpServersCommand) -> anyhow::Result<Exit> {
    let config = session::config(&args)?;
    match asked {
        McpServersCommand::Add(add) => {
            let entry = entry(&add)?;
            let file = add_server(&config, add.scope.into(), &add.name, &entry)?;
            print_change("Added", &add.name, "to", &file)?;
        }
        McpServersCommand::AddJson { name, json, scope } => {
            let entry: Value =
                serde_json::from_str(&json).context("the entry is not valid JSON")?;
            let file = add_server(&config, scope.into(), &name, &entry)?;
            print_change("Added", &name, "to", &file)?;
        }
        McpServersCommand::Remove { name, scope } => {
            let (_, file) = remove_server(&config, scope.map(Into::into), &name)?;
            print_change("Removed", &name, "from", &file)?;
        }
        McpServersCommand::Approve { name } => {
            for change in approve_server(&config, &name).await? {
                for line in change.lines() {
                    show::line(&show::distinct_line(line))?;
                }
            }
            show::line(&format!(
                "The current tools of {} are approved",
                show::clean(&name)
            ))?;
        }
        McpServersCommand::ResetProjectChoices => {
            let message = match forget_approvals(&config)? {
                true => "All approvals of servers in this project are deleted",
                false => "This project has no approvals",
            };
            show::line(message)?;
        }
        McpServersCommand::Login { name } => {
            let visit = |address: &str| {
                let address = show::clean(address);
                show::warn(&format!(
                    "haft: open this address in your browser to log in:\n{address}"
                ));
            };
            login_server(&config, &name, &visit).await?;
            let message = format!("You are logged in to {}", show::clean(&name));
            show::line(&message)?;
            notify_login(&config, &message).await;
        }
        McpServersCommand::Logout { name } => {
            let message = match logout_server(&config, &name)? {
                true => "The token is deleted: you are logged out of",
                false => "No token is stored for",
            };
            show::line(&format!("{message} {}", show::clean(&name)))?;
        }
        McpServersCommand::List { json, offline } => {
            let list = match offline {
                true => named_servers(&config)?,
                false => check_servers(&config, None).await?,
            };
            match json {
                true => show::json(&serde_json::to_string_pretty(&as_json(&list))?)?,
                false => show::line(&table(&list))?,
            }
        }
        McpServersCommand::Get { name, json } => {
            let list = check_servers(&config, Some(&name)).await?;
            return print_server(&list, &name, json);
        }
    }
    Ok(Exit::Success)
}

fn print_change(done: &str, name: &str, place: &str, file: &std::path::Path) -> anyhow::Result<()> {
    let file = show::clean(&file.display().to_string());
    let name = show::clean(name);
    show::line(&format!("{done} MCP server {name} {place} {file}"))?;
    Ok(())
}

/// Builds the settings entry from the command line.
fn entry(add: &McpAddFlags) -> anyhow::Result<Value> {
    let is_address = add.target.starts_with("https://") || add.target.starts_with("http://");
    let transport = add.transport.unwrap_or(match is_address {
        true => McpTransport::Http,
        false => McpTransport::Stdio,
    });
    if transport == McpTransport::Stdio {
        anyhow::ensure!(
            add.header.is_empty(),
            "--header is for servers at an address (-t http)"
        );
        let env = pairs(&add.env, '=', "--env", "NAME=VALUE")?;
        let mut entry = json!({"type": "stdio", "command": add.target, "args": add.args});
        if !env.is_empty() {
            entry["env"] = Value::Object(env);
        }
        return Ok(entry);
    }
    anyhow::ensure!(
        is_address,
        "{}: an address begins with http:// or https://",
        add.target
    );
    anyhow::ensure!(
        add.args.is_empty(),
        "an address takes no arguments: {}",
        add.args.join(" ")
    );
    anyhow::ensure!(
        add.env.is_empty(),
        "--env is for servers that are started (-t stdio)"
    );
    let kind = match transport {
        McpTransport::Sse => "sse",
        _ => "http",
    };
    let headers = pairs(&add.header, ':', "--header", "'Name: value'")?;
    let mut entry = json!({"type": kind, "url": add.target});
    if !headers.is_empty() {
        entry["headers"] = Value::Object(headers);
    }
    Ok(entry)
}

fn pairs(
    written: &[String],
    separator: char,
    flag: &str,
    form: &str,
) -> anyhow::Result<Map<String, Value>> {
    let pairs = written.iter().map(|text| {
        // The value may be a secret, so the error does not show it.
        let (name, value) = text
            .split_once(separator)
            .with_context(|| format!("{flag}: expected {form}"))?;
        Ok((name.trim().to_owned(), json!(value.trim())))
    });
    pairs.collect()
}

/// Returns the estimated number of tokens that the server's tools add to each request.
pub(crate) fn tokens(server: &ServerDetails) -> usize {
    let tools = server.tools.iter().flatten();
    tools.map(|tool| tool.to_string().len()).sum::<usize>() / TOKEN
}

fn table(list: &ServerList) -> String {
    if list.servers.is_empty() && list.skipped.is_empty() {
        return "No MCP server is configured. `haft mcp add` adds one.".to_owned();
    }
    let heads = [
        "NAME",
        "SCOPE",
        "STATE",
        "REVISION",
        "TOOLS",
        "TOKENS",
        "STARTS OR REACHES",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    for server in &list.servers {
        let tools = server.tools.as_ref();
        rows.push([
            show::clean(&server.name),
            server.scope.to_owned(),
            server.status.to_owned(),
            server.revision.unwrap_or_default().to_owned(),
            tools.map_or_else(String::new, |tools| tools.len().to_string()),
            tools.map_or_else(String::new, |_| tokens(server).to_string()),
            show::clean(&server.target),
        ]);
    }
    let mut text = show::table(&rows);
    for server in &list.servers {
        if let Some(error) = &server.error {
            let _ = write!(
                text,
                "\n{}: {}",
                show::clean(&server.name),
                show::clean(error)
            );
        }
    }
    for server in &list.servers {
        if let Some(unapproved) = &server.unapproved {
            let name = show::clean(&server.name);
            let _ = write!(text, "\n{name}: {}", show::distinct(unapproved));
        }
    }
    for left in &list.skipped {
        let (name, why) = (show::clean(&left.name), show::clean(&left.message));
        let _ = write!(text, "\n{name} is left out ({}): {why}", left.category);
    }
    text
}

fn print_server(list: &ServerList, name: &str, as_json: bool) -> anyhow::Result<Exit> {
    let found = list.servers.iter().find(|server| server.name == name);
    let Some(server) = found else {
        if let Some(left) = list.skipped.iter().find(|left| left.name == name) {
            anyhow::bail!("{name} is left out ({}): {}", left.category, left.message);
        }
        let names: Vec<&str> = list
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .collect();
        anyhow::bail!(
            "no server is called {name:?}; there are: {}",
            names.join(", ")
        );
    };
    if as_json {
        show::json(&serde_json::to_string_pretty(&details(server))?)?;
    } else {
        let mut text = format!("{} ({}): {}", server.name, server.scope, server.status);
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                let _ = write!(text, "\n{name:<14}{value}");
            }
        };
        add("reached by", &server.target);
        add("error", server.error.as_deref().unwrap_or_default());
        add("revision", server.revision.unwrap_or_default());
        if let Some(info) = &server.info {
            let word = |key: &str| info[key].as_str().unwrap_or_default().to_owned();
            add(
                "server",
                format!("{} {}", word("name"), word("version")).trim(),
            );
        }
        add(
            "instructions",
            server.instructions.as_deref().unwrap_or_default(),
        );
        if let Some(tools) = &server.tools {
            add(
                "tools",
                &format!("{}, about {} tokens", tools.len(), tokens(server)),
            );
            for tool in tools {
                let about = tool["description"].as_str().unwrap_or_default();
                let about: String = about
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(90)
                    .collect();
                let name = tool["name"].as_str().unwrap_or_default();
                let cost = tool.to_string().len() / TOKEN;
                add("", &format!("{name}  {about} ({cost} tokens)"));
            }
        }
        show::line(&show::clean(&text))?;
        if let Some(unapproved) = &server.unapproved {
            show::line(&show::distinct(unapproved))?;
        }
    }
    Ok(match server.status {
        "connected" => Exit::Success,
        _ => Exit::Usage,
    })
}

fn as_json(list: &ServerList) -> Value {
    let skipped = list
        .skipped
        .iter()
        .map(|left| json!({"name": left.name, "category": left.category, "message": left.message}));
    json!({
        "servers": list.servers.iter().map(details).collect::<Vec<_>>(),
        "leftOut": skipped.collect::<Vec<_>>(),
    })
}

fn details(server: &ServerDetails) -> Value {
    let tools = server
        .tools
        .iter()
        .flatten()
        .map(|tool| tool["name"].clone());
    json!({
        "name": server.name,
        "scope": server.scope,
        "status": server.status,
        "target": server.target,
        "error": server.error,
        "revision": server.revision,
        "serverInfo": server.info,
        "tools": server.tools.as_ref().map(|_| tools.collect::<Vec<_>>()),
        "tokens": server.tools.as_ref().map(|_| tokens(server)),
        "unapproved": server.unapproved,
    })
}
