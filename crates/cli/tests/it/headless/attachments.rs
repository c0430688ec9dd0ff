//! Files, folders and pictures that go with a prompt.

use std::fs;

use haft_testkit::{anthropic::text_reply, http::HttpFake};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::binary::{Ran, haft, run};

/// Two red pixels by two.
const PNG: &str = "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a730000001049444154789c63f8cfc000440c100a001fee03fd8b5f14d40000000049454e44ae426082";

fn png() -> Vec<u8> {
    let digits = PNG.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn project() -> TempDir {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("src")).unwrap();
    fs::write(dir.path().join("src/a.rs"), "one\ntwo\nthree\nfour\n").unwrap();
    fs::write(dir.path().join("my notes.md"), "a note\n").unwrap();
    fs::write(dir.path().join(".env"), "SECRET=1\n").unwrap();
    fs::write(dir.path().join("a.png"), png()).unwrap();
    dir
}

/// What the model was sent as the last message, and how it ended.
fn sent(dir: &TempDir, args: &[&str], stdin: &[u8]) -> (Vec<Value>, Ran) {
    let server = HttpFake::start_strict([text_reply("Done.")]);
    let mut command = haft(dir.path());
    command
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .args(["-p", "--model", "m-1"]);
    let ran = run(command.args(args), stdin);
    let bodies = server.bodies();
    let messages = bodies.first().map(|body| body["messages"].clone());
    let last = messages.and_then(|messages| messages.as_array()?.last().cloned());
    let content = last.map(|last| last["content"].clone()).unwrap_or_default();
    (content.as_array().cloned().unwrap_or_default(), ran)
}

/// Its texts and the kinds of the rest, without what is told beside them.
fn shown(dir: &TempDir, content: &[Value]) -> Vec<String> {
    let here = dir.path().display().to_string();
    let words = content.iter().map(|block| match block["text"].as_str() {
        Some(text) => text.replace(&here, "HERE"),
        None => format!("[{} {}]", block["type"], block["source"]["media_type"]),
    });
    words
        .filter(|text| !text.starts_with("<system-reminder>"))
        .collect()
}

#[test]
fn what_a_prompt_names_comes_with_it() {
    let dir = project();
    let prompt = "compare @src/a.rs:2-3 with @\"my notes.md\", look at @src and @a.png; ask @someone, not `@.env`";
    let (content, ran) = sent(&dir, &[prompt], b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let mut shown = shown(&dir, &content);
    // Times differ.
    for text in &mut shown {
        if text.starts_with("Entries of") {
            text.truncate(text.find("a.rs").unwrap() + 4);
        }
    }
    insta::assert_snapshot!(shown.join("\n---\n"));
}

#[test]
fn what_is_piped_in_names_nothing() {
    let dir = project();
    let (content, ran) = sent(&dir, &["review this"], b"see @src/a.rs\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(shown(&dir, &content), ["review this\n\nsee @src/a.rs\n"]);
}

#[test]
fn what_may_not_be_read_is_not_sent() {
    let dir = project();
    let rules = ["--disallowedTools", "Read(./.env)", "--", "show @.env"];
    let (content, ran) = sent(&dir, &rules, b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let all = Value::from(content.clone()).to_string();
    assert!(!all.contains("SECRET"), "{all}");
    assert!(
        ran.stderr.contains("is not sent: it may not be read here"),
        "{}",
        ran.stderr
    );
}

#[test]
fn pictures_come_by_a_flag_and_on_stdin() {
    let dir = project();
    let picture = "[\"image\" \"image/png\"]";
    let (content, ran) = sent(&dir, &["what is it?", "--image", "a.png"], b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(shown(&dir, &content), ["what is it?", picture]);
    let (content, ran) = sent(&dir, &["what is it?"], &png());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(shown(&dir, &content), ["what is it?", picture]);
    let (_, ran) = sent(&dir, &["hi", "--image", "src/a.rs"], b"");
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stderr,
        "haft: --image src/a.rs: this is not an image that can be shown (PNG, JPEG, GIF, WebP).\n"
    );
}
