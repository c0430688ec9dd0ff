//! What the project wants a model to know: `AGENTS.md`, then `CLAUDE.md`, of the working directory.

use std::{fs::File, io::Read, path::Path};

/// More than this of one file is left out.
const LONGEST: usize = 256 * 1024;

/// The files that are read, what comes later has the last word.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// What the files of a directory say, each with its path, for the first message; `None` if there are
/// none. Files that cannot be read say nothing.
pub fn read(cwd: &Path) -> Option<String> {
    let mut text = String::new();
    let mut seen: Vec<String> = Vec::new();
    for path in NAMES.map(|name| cwd.join(name)) {
        let Some(content) = content(&path).filter(|content| !seen.contains(content)) else {
            continue;
        };
        text += &format!("\n\nFrom {}:\n\n{}", path.display(), content.trim());
        seen.push(content);
    }
    if text.is_empty() {
        return None;
    }
    Some(format!(
        "The project has instructions for you. Follow them where they apply to what you are asked; \
         what the person says themselves comes first.{text}"
    ))
}

/// A file's text; one link to the other is read once.
fn content(path: &Path) -> Option<String> {
    // A pipe of that name would never end.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST as u64 + 1).read_to_end(&mut bytes).ok()?;
    let is_long = bytes.len() > LONGEST;
    bytes.truncate(LONGEST);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if is_long {
        text += "\n[the rest of this file is left out]";
    }
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn both_files_are_read_and_a_link_only_once() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), None);
        let [agents, claude] = NAMES.map(|name| folder.path().join(name));
        fs::write(&agents, "Use tabs.\n").unwrap();
        symlink(&agents, &claude).unwrap();
        let text = read(folder.path()).unwrap();
        assert_eq!(text.matches("Use tabs.").count(), 1);
        fs::remove_file(&claude).unwrap();
        fs::write(&claude, "Use blanks.\n").unwrap();
        let text = read(folder.path()).unwrap();
        assert!(text.find("Use tabs.").unwrap() < text.find("Use blanks.").unwrap());
        assert!(text.contains(&format!("From {}:", claude.display())));
    }

    #[test]
    fn a_long_file_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("CLAUDE.md"), "x".repeat(LONGEST + 10)).unwrap();
        let text = read(folder.path()).unwrap();
        assert!(text.ends_with("[the rest of this file is left out]"));
    }
}
