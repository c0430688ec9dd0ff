//! A front end draws and asks; it decides nothing. No file of the binary builds a policy, a model or a pool of tools:
//! the host does.

use crate::sources::SourceFile;

/// Code that builds one of them, with its name.
const BUILDS: [(&str, &str); 15] = [
    ("Policy {", "a policy"),
    ("Policy::", "a policy"),
    ("RuleSet::", "a policy"),
    (".policy(", "a policy"),
    ("decide(", "a decision"),
    ("impl Model for", "a model"),
    ("Arc<dyn Model>", "a model"),
    ("ScriptedModel::", "a model"),
    ("Anthropic::", "a model"),
    ("OpenAi::new", "a model"),
    ("ToolRegistry::", "a pool"),
    ("Engine::", "a pool"),
    ("Pool::", "a pool"),
    ("tools::all(", "a pool"),
    ("tools::usable(", "a pool"),
];

#[test]
fn no_file_of_the_binary_builds_a_policy_a_model_or_a_pool() {
    let mut problems = Vec::new();
    let files = SourceFile::all("src");
    for file in files.iter().filter(|file| file.package() == "cli") {
        for (number, line) in file.code() {
            for (word, what) in BUILDS {
                if begins_a_word(line, word) {
                    problems.push(format!("{}:{number} builds {what}: {word}", file.path));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Returns whether the line contains the word, and not as the end of a longer one.
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
