//! `haft sessions`: lists, shows, renames, exports and deletes the sessions of a directory.

use std::path::Path;

use haft::SessionId;
use haft_agent::transcript::{SessionListing, load};
use haft_host::{
    Environment, ExistingFile, ExportError, ExportFormat, conversations, export, utc_time,
};
use haft_models::{Block, Prices};
use serde_json::{Value, json};

use crate::{
    args::{SessionArgs, SessionsCommand},
    exit::Exit,
    line_input::{AnswerSource, LineInput, read_answer},
    modes::session_stats,
    session, show,
};

/// The maximum number of characters of a title or first prompt in the list.
const ABOUT: usize = 60;

pub(crate) fn run(args: &SessionArgs, asked: &SessionsCommand) -> anyhow::Result<Exit> {
    let sessions = conversations(&Environment::from_process(), &session::cwd(args)?);
    match asked {
        SessionsCommand::List { json } => list(&sessions.list()?, *json)?,
        SessionsCommand::Show { session, json } => {
            let id = sessions.find(session)?;
            let lines = std::fs::read_to_string(sessions.path(id))?;
            show(&lines, *json)?;
        }
        SessionsCommand::Rename { session, title } => {
            let id = sessions.find(session)?;
            sessions.rename(id, title)?;
            show::line(&format!("{id} is called {}", show::clean(title)))?;
        }
        SessionsCommand::Export {
            session,
            file,
            html,
            md,
            force,
        } => {
            let transcript = sessions.path(sessions.find(session)?);
            let prices = export::prices(&session::config(args)?);
            let existing = match force {
                true => ExistingFile::Replace,
                false => ExistingFile::Keep,
            };
            let mut wanted = Vec::new();
            wanted.extend(html.as_deref().map(|file| (ExportFormat::Html, Some(file))));
            wanted.extend(
                md.as_ref()
                    .map(|file| (ExportFormat::Markdown, file.as_deref())),
            );
            if wanted.is_empty() {
                let format = file.as_deref().map(ExportFormat::from_file_name);
                wanted.push((format.unwrap_or(ExportFormat::Markdown), file.as_deref()));
            }
            for one in wanted {
                export(&transcript, &prices, one, existing)?;
            }
        }
        SessionsCommand::Stats { session, all, json } => {
            session_stats::run(args, &sessions, session.as_deref(), *all, *json)?;
        }
        SessionsCommand::Delete { session, yes } => {
            let id = sessions.find(session)?;
            if !yes && !is_agreed(id)? {
                return Ok(Exit::Usage);
            }
            sessions.delete(id)?;
            show::line(&format!("{id} is deleted"))?;
        }
    }
    Ok(Exit::Success)
}

/// Asks for confirmation before a session is deleted.
fn is_agreed(id: SessionId) -> anyhow::Result<bool> {
    let source = AnswerSource::from_stdin();
    let source = source.filter(|_| show::stderr_is_terminal());
    let Some(source) = source else {
        anyhow::bail!("no terminal to ask for confirmation: use --yes to delete session {id}");
    };
    let answer = read_answer(
        &source,
        &format!("Delete session {id} permanently? [y]es, [n]o: "),
        None,
    );
    Ok(matches!(answer, LineInput::Line(said)
        if ["y", "yes"].iter().any(|yes| said.trim().eq_ignore_ascii_case(yes))))
}

/// Exports a session to a file or to stdout.
fn export(
    transcript: &Path,
    prices: &Prices,
    (format, file): (ExportFormat, Option<&Path>),
    existing: ExistingFile,
) -> anyhow::Result<()> {
    let Some(file) = file.filter(|file| *file != Path::new("-")) else {
        show::line(export::render(transcript, format, prices)?.trim_end())?;
        return Ok(());
    };
    match export::write(transcript, format, prices, file, existing) {
        Err(ExportError::Exists { .. }) => anyhow::bail!(
            "{} exists already and is unchanged; name another file, or use --force",
            file.display()
        ),
        written => written?,
    }
    show::line(&format!(
        "{} is written",
        show::clean(&file.display().to_string())
    ))?;
    Ok(())
}

fn list(listed: &[SessionListing], as_json: bool) -> anyhow::Result<()> {
    if as_json {
        for one in listed {
            show::json(
                &json!({
                    "id": one.id,
                    "title": one.title,
                    "firstPrompt": one.first_prompt,
                    "changed": utc_time::show(one.changed),
                })
                .to_string(),
            )?;
        }
        return Ok(());
    }
    let head = ["SESSION", "CHANGED (UTC)", "ABOUT"].map(str::to_owned);
    let rows = listed.iter().map(|one| {
        let about = one.title.as_ref().or(one.first_prompt.as_ref());
        let about = about.map(String::as_str).unwrap_or_default();
        let about: String = show::clean(about)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        [
            one.id.to_string(),
            utc_time::show(one.changed),
            about.chars().take(ABOUT).collect(),
        ]
    });
    let rows: Vec<_> = [head].into_iter().chain(rows).collect();
    show::line(show::table(&rows).trim_end())?;
    Ok(())
}

fn show(lines: &str, as_json: bool) -> anyhow::Result<()> {
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    let Some(loaded) = load::load(&lines, None) else {
        anyhow::bail!("the session has no messages");
    };
    for message in loaded.conversation.messages() {
        if as_json {
            show::json(&json!(message).to_string())?;
            continue;
        }
        let role = json!(message.role);
        show::line(&format!("{}:", role.as_str().unwrap_or_default()))?;
        for block in &message.content {
            show::line(&indented(&block_text(block)))?;
        }
    }
    Ok(())
}

fn block_text(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::Thinking { thinking, .. } => format!("(thinking) {thinking}"),
        Block::ToolUse { name, input, .. } => format!("{name} {input}"),
        Block::ToolResult(result) => {
            let texts: Vec<&str> = result
                .content
                .iter()
                .filter_map(haft::Content::as_text)
                .collect();
            let mark = if result.is_error { "! " } else { "> " };
            format!("{mark}{}", texts.join("\n"))
        }
        other => match json!(other)["type"].clone() {
            Value::String(kind) => format!("[{kind}]"),
            _ => String::new(),
        },
    }
}

fn indented(text: &str) -> String {
    let lines = show::clean(text);
    let lines: Vec<String> = lines.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}
