//! PDFs, read by the binary that ships: by a child of itself, which can take no one down.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::binary::Conversation;

#[test]
fn pdfs_are_read_and_bad_ones_do_no_harm() {
    let dir = tempdir().unwrap();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/pdf_entry");
    let mut haft = Conversation::new(dir.path());
    let mut read = |name: &str| -> (bool, String) {
        fs::copy(seeds.join(name), dir.path().join(name)).unwrap();
        haft.say(&json!({"name": "Read", "input": {"file_path": name}}));
        let answer: Value = haft.hear();
        let content = &answer["content"];
        let text = match content.as_str() {
            Some(text) => text.to_owned(),
            None => content.to_string(),
        };
        (answer["is_error"] == true, text)
    };
    let cases = [
        ("text.pdf", false, "--- page 1 of 1 ---\nhello"),
        ("enc_open.pdf", false, "hello"),
        ("enc_user.pdf", true, "needs a password. With the password"),
        ("cut_in_content.pdf", true, "is damaged: its end is missing"),
        (
            "cut_in_table.pdf",
            false,
            "[it is damaged: its end is missing",
        ),
        ("cycle_kids.pdf", true, ""),
        ("bomb_flate2.pdf", true, ""),
        ("text.pdf", false, "unchanged since your Read"),
    ];
    for (name, is_error, part) in cases {
        let (failed, text) = read(name);
        assert_eq!(failed, is_error, "{name}: {text}");
        assert!(text.contains(part), "{name}: {text}");
    }
}
