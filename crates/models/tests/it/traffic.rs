//! What comes of traffic as different servers send it; a file each in `traffic`.

use std::{fs, path::PathBuf};

use haft_models::Model;
use haft_testkit::http::{HttpFake, HttpReply};

use crate::ask::{Heard, anthropic, ask, openai, request};

fn files(provider: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/traffic");
    let entries = fs::read_dir(folder.join(provider)).unwrap();
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

fn described(heard: &Heard) -> String {
    let mut lines: Vec<String> = Vec::new();
    let blocks = &heard.reply.message.content;
    lines.extend(blocks.iter().map(|block| {
        // Ids that were made up differ each time.
        let json = serde_json::to_string(block).unwrap();
        match json.find("\"id\":\"call_") {
            Some(at) if json[at..].find("\",").is_some_and(|end| end == 6 + 29) => {
                format!(
                    "{}\"id\":\"(made up)\"{}",
                    &json[..at],
                    &json[at + 6 + 30..]
                )
            }
            _ => json,
        }
    }));
    lines.extend(heard.reply.calls.iter().filter_map(|call| {
        let bad = call.input.as_ref().err()?;
        Some(format!("bad input: {}", bad.problem))
    }));
    if heard.reply.incomplete {
        lines.push("incomplete".to_owned());
    }
    match &heard.error {
        Some(error) => lines.push(format!("error: {error}")),
        None => {
            lines.push(format!("stop: {:?}", heard.reply.stop));
            lines.push(format!(
                "usage: {}",
                serde_json::to_string(&heard.reply.usage).unwrap()
            ));
        }
    }
    lines.join("\n")
}

/// As one piece, and a byte at a time: the same.
async fn all(provider: &str, model: impl Fn(&str) -> Box<dyn Model>) -> String {
    let mut sections = Vec::new();
    for (name, bytes) in files(provider) {
        let server = HttpFake::start([
            HttpReply::events(bytes.clone()),
            HttpReply::events(bytes).in_chunks_of(1),
        ]);
        let model = model(&server.url);
        let whole = described(&ask(&*model, request()).await);
        let single = described(&ask(&*model, request()).await);
        assert_eq!(whole, single, "{name}");
        sections.push(format!("== {name}\n{whole}"));
    }
    assert!(sections.len() > 5);
    sections.join("\n\n")
}

#[tokio::test]
async fn anthropic_traffic() {
    insta::assert_snapshot!(all("anthropic", |url| Box::new(anthropic(url))).await);
}

#[tokio::test]
async fn openai_traffic() {
    insta::assert_snapshot!(all("openai", |url| Box::new(openai(url))).await);
}
