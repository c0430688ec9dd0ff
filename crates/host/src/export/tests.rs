use std::{os::unix::fs::PermissionsExt, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A session with a bit of everything, and a subagent beside it.
fn session() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir
        .path()
        .join("0190c0de-0000-7000-8000-000000000001.jsonl");
    let mut lines: Vec<Value> = Vec::new();
    let mut parent = Value::Null;
    let mut message = |kind: &str, second: u32, more: Value| {
        let uuid = format!("00000000-0000-4000-8000-{:012}", lines.len() + 1);
        let mut line = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "cwd": "/work", "gitBranch": "main",
            "timestamp": format!("2026-01-31T12:00:{second:02}.000Z")});
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        if line["type"] == "user" || line["type"] == "assistant" {
            parent = json!(uuid);
        }
        lines.push(line);
    };
    let reply = |block: Value| {
        json!({"requestId": "r1", "message": {"id": "m1", "role": "assistant", "model": "claude-sonnet-4-5",
               "content": [block], "usage": {"input_tokens": 1000, "output_tokens": 5}}})
    };
    let user = |content: Value| json!({"message": {"role": "user", "content": content}});
    message(
        "user",
        0,
        user(json!("Fix `Vec<T>` in <b>\n```\nnever closed")),
    );
    message(
        "assistant",
        2,
        reply(json!({"type": "thinking", "thinking": "Hm.", "signature": "PROOF"})),
    );
    message(
        "assistant",
        2,
        reply(json!({"type": "text", "text": "I will </script><script>alert(1)</script>."})),
    );
    let edit = json!({"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/work/a.rs"}});
    message("assistant", 3, reply(edit));
    let agent =
        json!({"type": "tool_use", "id": "t2", "name": "Agent", "input": {"prompt": "look"}});
    message("assistant", 3, reply(agent));
    message(
        "haft-reply",
        4,
        json!({"requestId": "r1", "usage": {"input_tokens": 1000, "output_tokens": 200}}),
    );
    message("haft-started", 6, json!({"toolUseId": "t1"}));
    let mut answer =
        user(json!([{"type": "tool_result", "tool_use_id": "t1", "content": "Edited"}]));
    answer["haftWaitedMs"] = json!(2000);
    answer["toolUseResult"] = json!({"filePath": "/work/a.rs", "originalFile": "WHOLE FILE", "structuredPatch": [
        {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-old `````", "+new\u{202e}"]}]});
    message("user", 7, answer);
    message(
        "user",
        9,
        user(
            json!([{"type": "tool_result", "tool_use_id": "t2", "content": "done", "is_error": true}]),
        ),
    );
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(&path, text.join("\n")).unwrap();
    let folder = path.with_extension("").join("subagents");
    fs::create_dir_all(&folder).unwrap();
    let facts = json!({"agentType": "explore", "description": "looks around", "toolUseId": "t2"});
    fs::write(folder.join("agent-a1.meta.json"), facts.to_string()).unwrap();
    let said = json!({"type": "user", "uuid": "00000000-0000-4000-8000-0000000000a1", "isSidechain": true,
        "timestamp": "2026-01-31T12:00:05.000Z", "message": {"role": "user", "content": "look"}});
    fs::write(folder.join("agent-a1.jsonl"), said.to_string()).unwrap();
    (dir, path)
}

fn rendered(format: ExportFormat) -> String {
    let (_dir, path) = session();
    render(&path, format, &Prices::listed()).unwrap()
}

/// The data of a page.
fn data(page: &str) -> &str {
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    data.split_once("</script>").unwrap().0
}

#[test]
fn a_session_as_markdown() {
    insta::assert_snapshot!(rendered(ExportFormat::Markdown));
}

#[test]
fn what_the_page_knows_of_a_session() {
    let page = rendered(ExportFormat::Html);
    let data: Value = serde_json::from_str(data(&page)).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&data).unwrap());
}

#[test]
fn nothing_of_a_transcript_is_markup_on_the_page() {
    let page = rendered(ExportFormat::Html);
    assert!(!data(&page).contains(['<', '>', '&']));
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert!(page.contains("<title>Fix `Vec&lt;T&gt;` in &lt;b&gt; ``` never closed</title>"));
    assert!(page.contains("default-src 'none'"));
    for address in ["http://", "https://", "src=\"", "@import", "url("] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn what_providers_and_tools_keep_to_themselves_is_not_exported() {
    for format in [ExportFormat::Html, ExportFormat::Markdown] {
        let text = rendered(format);
        assert!(!text.contains("PROOF") && !text.contains("WHOLE FILE"));
    }
}

#[test]
fn a_file_is_its_owners_and_stands_whole_or_not_at_all() {
    let (dir, path) = session();
    let file = dir.path().join("out.html");
    let format = ExportFormat::from_file_name(&file);
    assert_eq!(format, ExportFormat::Html);
    let export = |existing| write(&path, format, &Prices::default(), &file, existing);
    export(ExistingFile::Keep).unwrap();
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::write(&file, "mine").unwrap();
    let refused = export(ExistingFile::Keep).unwrap_err();
    assert!(matches!(refused, ExportError::Exists { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    export(ExistingFile::Replace).unwrap();
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .starts_with("<!doctype html>")
    );
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 3, "nothing is left beside it: {names:?}");
}

#[test]
fn a_link_that_leads_nowhere_is_a_file_that_exists() {
    let (dir, path) = session();
    let file = dir.path().join("link.md");
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &file).unwrap();
    let prices = Prices::default();
    let refused = write(
        &path,
        ExportFormat::Markdown,
        &prices,
        &file,
        ExistingFile::Keep,
    );
    assert!(matches!(refused, Err(ExportError::Exists { .. })));
    // A new file takes the place of the link; what it leads to is not written.
    write(
        &path,
        ExportFormat::Markdown,
        &prices,
        &file,
        ExistingFile::Replace,
    )
    .unwrap();
    assert!(!dir.path().join("elsewhere").exists());
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
}

#[test]
fn a_session_without_messages_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    fs::write(&path, "{\"type\":\"haft-terms\"}\n").unwrap();
    let refused = render(&path, ExportFormat::Html, &Prices::default()).unwrap_err();
    assert_eq!(refused.to_string(), "the session has no messages");
}
