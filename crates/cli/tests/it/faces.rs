//! A face draws and asks; it decides nothing: no file of the binary builds a policy, a model or a pool of tools,
//! which all are the host's.

use std::{fs, path::Path};

/// What builds one of them.
const BUILDS: [(&str, &str); 15] = [
    ("Policy {", "a policy"),
    ("Policy::", "a policy"),
    ("Rules::", "a policy"),
    (".policy(", "a policy"),
    ("decide(", "a decision"),
    ("impl Model for", "a model"),
    ("Arc<dyn Model>", "a model"),
    ("Scripted::", "a model"),
    ("Anthropic::", "a model"),
    ("OpenAi::new", "a model"),
    ("Registry::", "a pool"),
    ("Engine::", "a pool"),
    ("Pool::", "a pool"),
    ("tools::all(", "a pool"),
    ("tools::usable(", "a pool"),
];

#[test]
fn no_file_of_the_binary_builds_a_policy_a_model_or_a_pool() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut problems = Vec::new();
    let mut count = 0;
    let mut folders = vec![sources.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            count += 1;
            let text = fs::read_to_string(&path).unwrap();
            // Tests beside the code come last in a file.
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            for (number, line) in (1..).zip(code.lines()) {
                if line.trim_start().starts_with("//") {
                    continue;
                }
                for (word, what) in BUILDS {
                    if begins_a_word(line, word) {
                        let place = path.strip_prefix(&sources).unwrap().display();
                        problems.push(format!("{place}:{number} builds {what}: {word}"));
                    }
                }
            }
        }
    }
    assert!(count > 30, "the sources were not found: {sources:?}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Is the word there, and not the end of a longer one?
fn begins_a_word(line: &str, word: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        word.starts_with('.') || !before.is_some_and(is_letter)
    })
}

#[test]
fn words_are_found_where_they_begin() {
    assert!(begins_a_word("let p = Policy { rules };", "Policy {"));
    assert!(!begins_a_word("let p = HookPolicy { rules };", "Policy {"));
    assert!(begins_a_word("engine.policy(&context)", ".policy("));
}
