//! Agents of a project that would start programs: agent files with hooks or MCP servers in their
//! front matter.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{SettingsPlaces, document::open_regular, files};

/// The number of bytes that are read of a file; the front matter is at its start.
const MAX_HEAD: u64 = 256 * 1024;
/// The maximum folder depth; `MAX_FILES` is the maximum number of files. No more are loaded either.
const MAX_DEPTH: usize = 8;
const MAX_FILES: usize = 10_000;

/// Keys in the front matter of an agent that start programs.
const STARTING: [&str; 2] = ["mcpServers", "hooks"];

/// Returns the front matter of agent files that would start programs, by `agent ` and the path
/// relative to the project.
pub(super) fn agent_trust_items(places: &SettingsPlaces) -> BTreeMap<String, Value> {
    let top = files::repository_root(&places.cwd);
    let top = top.as_deref().unwrap_or(&places.cwd);
    let mut things = BTreeMap::new();
    let mut left = MAX_FILES;
    for directory in places.cwd.ancestors() {
        let folder = directory.join(".claude");
        // The user's own folder is not part of the project.
        if folder != places.user {
            search(&folder.join("agents"), 0, &mut left, &mut |file| {
                if let Some(head) = head(file).filter(|head| may_start_programs(head)) {
                    let name = file.strip_prefix(top).unwrap_or(file);
                    things.insert(format!("agent {}", name.display()), Value::String(head));
                }
            });
        }
        if directory == top {
            break;
        }
    }
    things
}

/// Returns whether the front matter has one of the keys, perhaps written with escapes: in double
/// quotes, `\u006b` is the letter `k`.
fn may_start_programs(head: &str) -> bool {
    STARTING.iter().any(|key| head.contains(key)) || head.contains('"') && head.contains('\\')
}

fn search(folder: &Path, depth: usize, left: &mut usize, found: &mut dyn FnMut(&Path)) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    for path in paths {
        if path.is_dir() && depth < MAX_DEPTH {
            search(&path, depth + 1, left, found);
        } else if path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("md"))
            && *left > 0
        {
            *left -= 1;
            found(&path);
        }
    }
}

/// Returns the text between the first two `---` lines.
fn head(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let opened = open_regular(file).ok()?;
    opened.take(MAX_HEAD).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    lines.next().filter(|line| line.trim_end() == "---")?;
    let head: Vec<&str> = lines.take_while(|line| line.trim_end() != "---").collect();
    Some(head.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_start_something_are_named_with_their_heads() {
        let dir = tempfile::tempdir().unwrap();
        let agents = dir.path().join(".claude/agents/deep");
        fs::create_dir_all(&agents).unwrap();
        let write = |name: &str, text: &str| fs::write(agents.join(name), text).unwrap();
        write("plain.md", "---\nname: a\n---\nUse mcpServers.\n");
        write("starts.md", "---\nname: b\nmcpServers: [x]\n---\nBody.\n");
        write("hooks.md", "---\nname: c\nhooks: {}\n---\n");
        write("hooks.MD", "---\nname: d\nhooks: {}\n---\n");
        write("quoted.md", "---\nname: e\n\"ho\\u006fks\": {}\n---\n");
        let pipe = agents.join("pipe.md");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        write("no-head.md", "mcpServers: [x]\n");
        write("other.txt", "---\nmcpServers: [x]\n---\n");
        let nowhere = PathBuf::from("/nonexistent");
        let places = SettingsPlaces {
            cwd: dir.path().to_path_buf(),
            home: nowhere.clone(),
            user: nowhere.clone(),
            managed: nowhere,
        };
        let things = agent_trust_items(&places);
        let names: Vec<&String> = things.keys().collect();
        assert_eq!(
            names,
            [
                "agent .claude/agents/deep/hooks.MD",
                "agent .claude/agents/deep/hooks.md",
                "agent .claude/agents/deep/quoted.md",
                "agent .claude/agents/deep/starts.md"
            ]
        );
        assert_eq!(things[names[3]], "name: b\nmcpServers: [x]");
        let own = SettingsPlaces {
            user: dir.path().join(".claude"),
            ..places
        };
        assert!(agent_trust_items(&own).is_empty());
    }
}
