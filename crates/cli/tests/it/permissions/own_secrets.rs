//! The files in which haft itself stores secrets: no command and no file tool reads one, wherever a variable puts the
//! settings directory.

use std::{fs, os::unix::fs::PermissionsExt};

use haft::SecretFile;
use serde_json::{Value, json};

use crate::{
    binary::run,
    sources::SourceFile,
    users::{self, Home},
};

const KEY: &str = "SECRET-OF-HAFT";

/// The directory of the session, that of the settings, and whether a variable names it.
const PLACES: [(&str, &str, bool); 4] = [
    ("work", "home/.claude", false),
    ("home", "home/.claude", false),
    ("work", "work/settings", true),
    ("home", "home/deep/settings", true),
];

#[test]
fn no_secret_of_haft_is_read_wherever_the_settings_are() {
    for user in users::all() {
        for (directory, settings, named) in PLACES {
            let home = Home::new(user);
            let mut made = String::new();
            for above in settings.split('/').chain(["haft", "drafts"]) {
                made = format!("{made}/{above}").trim_start_matches('/').to_owned();
                home.folder(&made);
            }
            let mut paths = Vec::new();
            for file in SecretFile::ALL {
                let mut name = format!("{settings}/{}", file.name());
                if file == SecretFile::PromptDrafts {
                    name += "/1.json";
                }
                // A temporary file or a lock beside it holds the same.
                for end in ["", ".new"] {
                    if end.is_empty() || name.contains("/haft/") {
                        home.write(&format!("{name}{end}"), &format!("{KEY} {name}\n"));
                        paths.push(home.path(&format!("{name}{end}")));
                    }
                }
            }
            home.write(&format!("{directory}/note.txt"), "NOTE\n");
            let list: Vec<String> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            home.write(&format!("{directory}/list"), &(list.join("\n") + "\n"));
            let reader = "#!/bin/sh\nwhile read -r path; do cat \"$path\" 2>/dev/null; done < list\n\
                          cat note.txt\n";
            home.write(&format!("{directory}/reader"), reader);
            let program = home.path(&format!("{directory}/reader"));
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
            let bash = |line: &str| json!({"name": "Bash", "input": {"command": line}});
            let root = home.path(directory);
            let mut calls = vec![
                bash("./reader"),
                bash("cat $(cat list) note.txt"),
                bash("grep -rh . . ; cat note.txt"),
                json!({"name": "Grep", "input": {"pattern": "NOTE|SECRET", "output_mode": "content", "path": root}}),
            ];
            let reads = paths.iter();
            calls.extend(reads.map(|path| json!({"name": "Read", "input": {"file_path": path}})));
            let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
            let mut haft = home.haft();
            haft.current_dir(&root);
            if named {
                haft.env("CLAUDE_CONFIG_DIR", home.path(settings));
            }
            let ran = run(
                haft.args(["--allowedTools", "Bash", "exec"]),
                lines.as_bytes(),
            );
            let answers: Vec<Value> = ran
                .stdout
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            assert_eq!(answers.len(), calls.len(), "{}", ran.stderr);
            for (at, (call, answer)) in calls.iter().zip(&answers).enumerate() {
                let content = answer["content"].as_str().unwrap();
                assert!(
                    !content.contains(KEY),
                    "{user:?} {settings}: {call}: {content}"
                );
                if at < 4 {
                    assert!(
                        content.contains("NOTE"),
                        "{user:?} {settings}: {call}: {content}"
                    );
                } else {
                    assert_eq!(answer["is_error"], true, "{user:?} {settings}: {call}");
                }
            }
        }
    }
}

/// Source files that write a file which only the user reads, and take its path from the list of secret files.
const WRITE_SECRETS: [&str; 5] = [
    "crates/cli/src/tui/history_file.rs",
    "crates/cli/src/tui/mod.rs",
    "crates/host/src/data/first_run.rs",
    "crates/host/src/mcp/approvals.rs",
    "crates/mcp/src/client/oauth/store.rs",
];

/// Those that write such a file at another place, and why it is no secret of haft's.
const WRITE_OTHERS: [(&str, &str); 23] = [
    (
        "crates/acp/src/prompt.rs",
        "attachments of a prompt, in the folder of the session",
    ),
    (
        "crates/agent/src/subagents/transcript_record.rs",
        "the transcript of a subagent",
    ),
    (
        "crates/agent/src/subagents/task.rs",
        "the output of a subagent",
    ),
    (
        "crates/agent/src/transcript/store.rs",
        "the transcript of a session",
    ),
    (
        "crates/cli/src/tui/clipboard.rs",
        "where the user says: what they copied",
    ),
    (
        "crates/cli/src/tui/external_editor.rs",
        "a prompt while the user's editor has it open",
    ),
    (
        "crates/engine/src/results/store.rs",
        "a result in the folder of the session",
    ),
    (
        "crates/hooks/src/job.rs",
        "the output of a hook in the folder of the session",
    ),
    ("crates/host/src/model_catalog.rs", "the list of models"),
    (
        "crates/host/src/export/mod.rs",
        "where the user says: an exported session",
    ),
    (
        "crates/host/src/mcp/edit.rs",
        "`.mcp.json` of a project, or a path from the list",
    ),
    (
        "crates/journal/src/commit/entry.rs",
        "the file of a user, before it has its mode",
    ),
    (
        "crates/journal/src/commit/mod.rs",
        "the file of a user, before it has its mode",
    ),
    (
        "crates/journal/src/undo/store.rs",
        "the files of a user as they were, in the folder of the session",
    ),
    ("crates/mcp/src/client/cache.rs", "the names of tools"),
    (
        "crates/mcp/src/client/result.rs",
        "a result in the folder of the session",
    ),
    (
        "crates/models/src/record/recorder.rs",
        "where the user says: a recording without keys",
    ),
    ("crates/search/src/index/file.rs", "the index of a tree"),
    (
        "crates/tools/src/browser/session.rs",
        "an image in the folder of the session",
    ),
    (
        "crates/tools/src/shell/capture.rs",
        "the output of a command in the folder of the session",
    ),
    (
        "crates/tools/src/web/session.rs",
        "a page in the folder of the session",
    ),
    ("crates/tools/src/worktree/marker.rs", "a lock"),
    (
        "crates/witness/src/folder.rs",
        "the log of what a command changes, in the folder of the session",
    ),
];

#[test]
fn a_writer_of_secrets_takes_its_path_from_the_list() {
    let mut private = Vec::new();
    for file in SourceFile::all("src") {
        let code = file.text.split("#[cfg(test)]").next().unwrap();
        let is_list = file.path == "crates/contract/src/secret_files.rs";
        // The names are in the list alone.
        for secret in SecretFile::ALL {
            let written = format!("\"{}\"", secret.name());
            let literal = code.contains(&written) && secret != SecretFile::UserServers;
            assert!(is_list || !literal, "{} names {written} itself", file.path);
        }
        if code.contains("0o600)") && !file.path.ends_with("tests.rs") {
            private.push(file.path.clone());
        }
    }
    for path in &private {
        let others = WRITE_OTHERS.iter().any(|(other, _)| other == path);
        let secrets = WRITE_SECRETS.contains(&path.as_str());
        assert!(
            secrets != others,
            "{path} writes a private file: take its path from `SecretFile`, or say here why it is no secret"
        );
    }
    for path in WRITE_SECRETS {
        let file = SourceFile::all("src")
            .into_iter()
            .find(|file| file.path == path);
        let text = file.unwrap().text;
        assert!(
            text.contains("SecretFile") || text.contains("SecretPath"),
            "{path}"
        );
    }
}
