//! Files and folders that a prompt mentions with `@`. They are attached to the prompt, read by the
//! session's tools under its rules.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use data_encoding::BASE64;
use haft_agent::{MentionExpander, Prompt};
use haft_contract::{
    CancellationToken, Content, NestedCalls, NestedResult, ToolUse, output::MediaSource,
};
use haft_mcp::client::Servers;
use serde_json::{Value, json};

use crate::event::EventEmitter;

/// The maximum number of attachments per prompt.
const MAX_COUNT: usize = 20;
/// The maximum number of characters of an attached resource.
const MAX_RESOURCE: usize = 100_000;

/// The target of a mention.
#[derive(Debug, PartialEq, Eq)]
struct ResolvedMention {
    path: PathBuf,
    /// Only these lines, from 1; without an end, up to the last line.
    lines: Option<(u64, Option<u64>)>,
    is_folder: bool,
}

/// Attaches the mentioned files to the prompt. A mention that names no file stays unchanged,
/// because users also write `@name`.
pub(crate) async fn attach(
    mut prompt: Prompt,
    nested: &NestedCalls,
    cwd: &Path,
    home: Option<&Path>,
    servers: &Servers,
    events: &EventEmitter,
) -> Prompt {
    let mentions = std::mem::take(&mut prompt.mentions);
    for mention in mentions.iter().take(MAX_COUNT) {
        if let Some(mentioned) = find(mention, cwd, home) {
            let attached = read(&mentioned, nested, events).await;
            prompt.content.extend(attached);
        } else if let Some(attached) = resource(mention, servers, events).await {
            prompt.content.push(attached);
        }
    }
    prompt
}

/// Returns the function with which an agent attaches the files of messages that arrive during a
/// run.
pub(crate) fn mention_expander(
    home: Option<PathBuf>,
    servers: Arc<Servers>,
    events: Arc<EventEmitter>,
) -> Box<MentionExpander> {
    Box::new(move |prompt, nested, cwd| {
        let (home, servers, events) = (home.clone(), Arc::clone(&servers), Arc::clone(&events));
        Box::pin(
            async move { attach(prompt, &nested, &cwd, home.as_deref(), &servers, &events).await },
        )
    })
}

/// Reads a resource of a server, `@server:uri`.
async fn resource(mention: &str, servers: &Servers, events: &EventEmitter) -> Option<Content> {
    let (server, uri) = mention.split_once(':')?;
    if uri.is_empty() || !servers.has(server) {
        return None;
    }
    match servers.read_resource(server, uri).await {
        Ok(contents) => {
            let texts: Vec<&str> = contents
                .iter()
                .filter_map(|one| one["text"].as_str())
                .collect();
            let text = match texts.is_empty() {
                true => "(no text; ReadMcpResourceTool stores its bytes in a file)".to_owned(),
                false => short(&texts.join("\n")),
            };
            Some(Content::text(format!(
                "Contents of {uri} of the MCP server {server}:\n{text}"
            )))
        }
        Err(why) => {
            events.warn(format!("@{mention} is not sent: {why}"));
            Some(Content::text(format!(
                "{mention} was named, and is not here: {why}"
            )))
        }
    }
}

/// Cuts a resource to the maximum length.
fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_RESOURCE) {
        None => text.to_owned(),
        Some((end, _)) => format!(
            "{}\n(cut after {MAX_RESOURCE} characters; ReadMcpResourceTool reads all of it)",
            &text[..end]
        ),
    }
}

fn find(mention: &str, cwd: &Path, home: Option<&Path>) -> Option<ResolvedMention> {
    let place = |path: &str| match (path.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => cwd.join(path),
    };
    let there = |path: &str, lines| {
        let path = place(path);
        let found = path.metadata().ok()?;
        Some(ResolvedMention {
            is_folder: found.is_dir(),
            path,
            lines,
        })
    };
    there(mention, None).or_else(|| {
        let (path, lines) = mention.rsplit_once(':')?;
        let (first, last) = match lines.split_once('-') {
            Some((first, last)) => (first, Some(last.parse().ok()?)),
            None => (lines, None),
        };
        let first: u64 = first.parse().ok().filter(|first| *first > 0)?;
        let last = last.or((!lines.contains('-')).then_some(first));
        there(path, Some((first, last.map(|last: u64| last.max(first)))))
    })
}

async fn read(
    mentioned: &ResolvedMention,
    nested: &NestedCalls,
    events: &EventEmitter,
) -> Vec<Content> {
    let path = &mentioned.path;
    let (name, input) = match (mentioned.is_folder, mentioned.lines) {
        (true, _) => ("LS", json!({"path": path})),
        (false, None) => ("Read", json!({"file_path": path})),
        (false, Some((first, last))) => {
            let limit = last.map(|last| last - first + 1);
            let input = json!({"file_path": path, "offset": first, "limit": limit});
            ("Read", input)
        }
    };
    let call = ToolUse {
        id: format!("mention-{}", path.display()),
        name: name.to_owned(),
        input,
    };
    let shown = path.display();
    let ran = match nested.run(call, &[], &CancellationToken::new()).await {
        Ok(ran) => ran,
        Err(error) => {
            events.warn(format!("@{shown} is not sent: {error}"));
            return Vec::new();
        }
    };
    for message in &ran.hooks.messages {
        events.warn(message.clone());
    }
    if ran.is_error {
        let why = match ran.denied {
            true => "it may not be read here".to_owned(),
            false => ran.text,
        };
        events.warn(format!("@{shown} is not sent: {why}"));
        return vec![Content::text(format!(
            "{shown} was named, and is not here: {why}"
        ))];
    }
    let what = if mentioned.is_folder {
        "Entries"
    } else {
        "Contents"
    };
    let text = Content::text(format!("{what} of {shown}:\n{}", ran.text));
    std::iter::once(text).chain(picture(&ran)).collect()
}

/// Returns the image that was read, if it was one.
fn picture(ran: &NestedResult) -> Option<Content> {
    let structured = ran.structured.as_ref()?;
    let file = &structured["file"];
    let is_picture = structured["type"] == "image";
    let text = |value: &Value| value.as_str().map(str::to_owned);
    is_picture.then_some(())?;
    let data = text(&file["base64"])?;
    // The provider would reject invalid data, and with it the whole conversation.
    BASE64.decode(data.as_bytes()).ok()?;
    Some(Content::Image {
        source: MediaSource::Base64 {
            media_type: text(&file["type"])?,
            data,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_comes_with_a_prompt_up_to_a_length() {
        assert_eq!(short("as it is"), "as it is");
        let cut = short(&"é".repeat(MAX_RESOURCE + 1));
        assert!(cut.starts_with(&"é".repeat(MAX_RESOURCE)));
        assert!(cut.ends_with("ReadMcpResourceTool reads all of it)"));
    }

    #[test]
    fn names_are_files_folders_or_lines_of_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.rs"), "").unwrap();
        std::fs::write(dir.path().join("odd:3"), "").unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        let find = |mention: &str| {
            let found = find(mention, dir.path(), Some(dir.path()))?;
            let name = found.path.file_name()?.to_str()?.to_owned();
            Some((name, found.lines, found.is_folder))
        };
        let file = |lines| Some(("a.rs".to_owned(), lines, false));
        assert_eq!(find("a.rs"), file(None));
        assert_eq!(find("~/a.rs"), file(None));
        assert_eq!(find("a.rs:10-20"), file(Some((10, Some(20)))));
        assert_eq!(find("a.rs:7"), file(Some((7, Some(7)))));
        assert_eq!(find("odd:3"), Some(("odd:3".to_owned(), None, false)));
        assert_eq!(find("src"), Some(("src".to_owned(), None, true)));
        for mention in ["someone", "a.rs:0", "a.rs:x", "b.rs:1-2"] {
            assert_eq!(find(mention), None, "{mention}");
        }
    }
}
