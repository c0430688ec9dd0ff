//! Prompts of servers as slash commands: `/mcp__SERVER__PROMPT first second`.

use std::{path::Path, sync::Arc, time::Duration};

use haft_contract::Content;
use serde_json::{Map, Value, json};

use super::{ServerHandle, Servers, definition, result};
use crate::peer::RequestTimeout;

/// The time limit for a server's answer.
const LIMIT: Duration = Duration::from_secs(60);

/// A prompt that can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPrompt {
    /// The command without the slash.
    pub command: String,
    /// The description.
    pub description: String,
    /// A hint about the arguments.
    pub argument_hint: String,
}

impl ServerHandle {
    /// Returns the prompts of this server.
    pub(super) fn prompts(&self) -> Vec<ServerPrompt> {
        let listed = self.listed_prompts();
        let prompts = listed.iter().filter_map(|prompt| {
            let hints = arguments(prompt).map(|(name, is_required)| match is_required {
                true => format!("<{name}>"),
                false => format!("[{name}]"),
            });
            let about = prompt["description"].as_str().unwrap_or_default();
            Some(ServerPrompt {
                command: definition::name(self.name(), prompt["name"].as_str()?),
                description: about.to_owned(),
                argument_hint: hints.collect::<Vec<_>>().join(" "),
            })
        });
        prompts.collect()
    }
}

impl Servers {
    /// Returns the prompts of all connected servers.
    pub fn prompts(&self) -> Vec<ServerPrompt> {
        let servers = self.all();
        servers.iter().flat_map(|server| server.prompts()).collect()
    }

    /// Returns the content of a prompt with these arguments, which are matched to the prompt's
    /// arguments by position. Waits for a server that may have the prompt and is being connected.
    /// Returns `None` if the prompt does not exist.
    pub async fn prompt(
        &self,
        command: &str,
        given: &[String],
        folder: &Path,
    ) -> Option<Result<Vec<Content>, String>> {
        if let Some((server, prompt)) = self.found(command) {
            return Some(fetch_prompt(&server, &prompt, given, folder).await);
        }
        // Wait for servers that may have the prompt and are not connected yet.
        let mut why = None;
        for server in self.all() {
            if definition::may_be_of(command, server.name())
                && let Err(error) = server.connected().await
            {
                why = Some(Err(format!("the server {}: {error}", server.name())));
            }
        }
        match self.found(command) {
            Some((server, prompt)) => Some(fetch_prompt(&server, &prompt, given, folder).await),
            None => why,
        }
    }

    fn found(&self, command: &str) -> Option<(Arc<ServerHandle>, Value)> {
        self.all().into_iter().find_map(|server| {
            let prompts = server.listed_prompts().into_iter();
            let mut found = prompts.filter(|prompt| {
                let name = prompt["name"].as_str().unwrap_or_default();
                definition::name(server.name(), name) == command
            });
            found.next().map(|prompt| (Arc::clone(&server), prompt))
        })
    }
}

fn arguments(prompt: &Value) -> impl Iterator<Item = (&str, bool)> {
    let arguments = prompt["arguments"].as_array().into_iter().flatten();
    arguments.filter_map(|one| Some((one["name"].as_str()?, one["required"] == true)))
}

async fn fetch_prompt(
    server: &Arc<ServerHandle>,
    prompt: &Value,
    given: &[String],
    folder: &Path,
) -> Result<Vec<Content>, String> {
    let mut filled = Map::new();
    let count = arguments(prompt).count();
    for (at, (name, is_required)) in arguments(prompt).enumerate() {
        match given.get(at) {
            // The last argument takes the rest.
            Some(_) if at + 1 == count => {
                filled.insert(name.to_owned(), json!(given[at..].join(" ")));
            }
            Some(value) => {
                filled.insert(name.to_owned(), json!(value));
            }
            None if is_required => return Err(format!("it needs the argument {name}")),
            None => {}
        }
    }
    let connection = server.connected().await?;
    let name = prompt["name"].as_str().unwrap_or_default();
    let answer = connection
        .get_prompt(name, &filled, RequestTimeout::new(LIMIT))
        .await;
    let answer = answer.map_err(|error| error.to_string())?;
    let messages = answer["messages"].as_array().into_iter().flatten();
    let mut contents: Vec<Content> = Vec::new();
    for message in messages {
        let content = result::content(&message["content"], folder);
        let is_model = message["role"] == "assistant";
        contents.push(match content {
            Content::Text { text } if is_model => {
                Content::text(format!("(as the assistant) {text}"))
            }
            other => other,
        });
    }
    match contents.is_empty() {
        true => Err("it is empty".to_owned()),
        false => Ok(contents),
    }
}
