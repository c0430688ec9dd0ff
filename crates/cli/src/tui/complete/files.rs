//! Lists files and folders. Everything here waits for the disk or a command, so it must not run on
//! the drawing thread.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::{Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use haft_search::{EntryKind, GlobQuery, SearchEngine, StopCondition, list_directory};
use serde_json::json;

/// The maximum number of files; the newest are kept.
const MAX_FILES: usize = 100_000;

/// The time limit of a scan. After it, the scan returns the files found so far.
const MAX_WALK_TIME: Duration = Duration::from_secs(2);

/// The timeout of the user's command.
const MAX_COMMAND: Duration = Duration::from_secs(5);

/// The maximum amount of output that is read from the user's command, in bytes.
const MAX_PRINTED: u64 = 1 << 20;

/// The contents of a folder as relative paths. Folder names end in `/`.
#[derive(Debug, Default)]
pub(super) struct FileList {
    pub(super) names: Vec<String>,
}

/// Lists a folder. The engine keeps an index of it.
pub(super) fn walk(engine: &SearchEngine, root: &Path, respect_gitignore: bool) -> FileList {
    let query = GlobQuery {
        respect_ignore: respect_gitignore,
        limit: Some(MAX_FILES),
        ..GlobQuery::new("**", root)
    };
    let report = engine.glob(&query, &StopCondition::after(MAX_WALK_TIME));
    let paths = report.map(|report| report.paths).unwrap_or_default();
    let mut folders = BTreeSet::new();
    let mut files = Vec::with_capacity(paths.len());
    for path in &paths {
        let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) else {
            continue;
        };
        let mut end = name.len();
        while let Some(slash) = name[..end].rfind('/') {
            if !folders.insert(name[..=slash].to_owned()) {
                break;
            }
            end = slash;
        }
        files.push(name.to_owned());
    }
    let mut names: Vec<String> = folders.into_iter().chain(files).collect();
    // Without a query, paths closer to the root come first.
    names.sort_unstable_by(|one, two| (depth(one), one).cmp(&(depth(two), two)));
    FileList { names }
}

fn depth(name: &str) -> usize {
    name.trim_end_matches('/').matches('/').count()
}

/// Lists the folder of a typed path outside of the working directory, for example `/etc/ho`, `~/no`
/// or `../`. The names begin as typed.
pub(super) fn listed(typed: &str, cwd: &Path, home: Option<&Path>) -> Option<FileList> {
    let slash = typed.rfind('/')?;
    let (folder, _) = typed.split_at(slash + 1);
    let place = match folder.strip_prefix("~/") {
        Some(rest) => home?.join(rest),
        None => cwd.join(folder),
    };
    let list = list_directory(&place, None, cwd).ok()?;
    let mut names: Vec<String> = list
        .names
        .iter()
        .take(MAX_FILES)
        .filter_map(|(name, kind)| named(folder, name, *kind, &place))
        .collect();
    names.sort_unstable();
    Some(FileList { names })
}

fn named(folder: &str, name: &OsStr, kind: EntryKind, place: &Path) -> Option<String> {
    let is_folder = match kind {
        EntryKind::Directory => true,
        EntryKind::Link => place.join(name).is_dir(),
        _ => false,
    };
    let end = if is_folder { "/" } else { "" };
    Some(format!("{folder}{}{end}", name.to_str()?))
}

/// Returns whether the typed path may lead out of the working directory.
pub(super) fn leads_out(typed: &str) -> bool {
    ["/", "~/", "../", "./"]
        .iter()
        .any(|beginning| typed.starts_with(beginning))
}

/// Returns the suggestions of the user's command (`fileSuggestion`). The command receives the query
/// as JSON and prints one path per line, the best first. Returns `None` if it fails or times out.
pub(super) fn suggested(command: &str, query: &str, cwd: &Path) -> Option<Vec<String>> {
    let child = Command::new("sh")
        .args(["-c", command])
        .current_dir(cwd)
        .env("CLAUDE_PROJECT_DIR", cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // The command gets its own process group, so that its children can be killed with it.
        .process_group(0)
        .spawn();
    let mut child = child.ok()?;
    let input = json!({ "query": query }).to_string();
    let (mut to, from) = (child.stdin.take()?, child.stdout.take()?);
    let reader = thread::spawn(move || {
        let _ = to.write_all(input.as_bytes());
        drop(to);
        let mut printed = Vec::new();
        let _ = from.take(MAX_PRINTED).read_to_end(&mut printed);
        printed
    });
    let has_ended = wait(&mut child, MAX_COMMAND);
    if has_ended != Some(true) {
        end(&mut child);
        return None;
    }
    let printed = reader.join().ok()?;
    let printed = String::from_utf8_lossy(&printed);
    let lines = printed.lines().map(str::trim);
    Some(
        lines
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

/// Waits for the command. Returns `None` if it still runs after the timeout, otherwise whether it
/// succeeded.
fn wait(child: &mut Child, timeout: Duration) -> Option<bool> {
    let until = Instant::now() + timeout;
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < until => thread::sleep(pause),
            Ok(None) => return None,
            Err(_) => return Some(false),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Kills a command with its process group.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

/// The working directory and the home directory.
#[derive(Debug, Clone)]
pub(super) struct FilePlaces {
    pub(super) cwd: PathBuf,
    pub(super) home: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn folders_are_listed_with_files_and_ignored_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("src/deep")).unwrap();
        fs::create_dir_all(root.join("target")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".gitignore"), "target\n*.log\n").unwrap();
        for name in ["src/a.rs", "src/deep/b.rs", "target/c", "d.log"] {
            fs::write(root.join(name), "").unwrap();
        }
        let engine = SearchEngine::new();
        let names = walk(&engine, root, true).names;
        assert_eq!(
            names,
            [
                ".gitignore",
                "src/",
                "src/a.rs",
                "src/deep/",
                "src/deep/b.rs"
            ]
        );
        let names = walk(&engine, root, false).names;
        assert!(names.contains(&"target/c".to_owned()) && names.contains(&"d.log".to_owned()));
    }

    #[test]
    fn a_path_that_leads_out_is_listed_folder_by_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (cwd, home) = (dir.path().join("cwd"), dir.path().join("home"));
        fs::create_dir_all(home.join("notes")).unwrap();
        fs::create_dir_all(&cwd).unwrap();
        fs::write(home.join("n.md"), "").unwrap();
        let list = listed("~/no", &cwd, Some(&home)).unwrap();
        assert_eq!(list.names, ["~/n.md", "~/notes/"]);
        let list = listed("../", &cwd, Some(&home)).unwrap();
        assert_eq!(list.names, ["../cwd/", "../home/"]);
        assert!(listed("../missing/x", &cwd, None).is_none());
    }

    #[test]
    fn the_persons_own_command_gets_the_query_and_is_ended_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let read = r#"sed 's/.*"query":"\([^"]*\)".*/found-\1.rs/'; printf '\n b.rs \n'"#;
        let found = suggested(read, "pri", dir.path()).unwrap();
        assert_eq!(found, ["found-pri.rs", "b.rs"]);
        assert_eq!(suggested("exit 3", "x", dir.path()), None);
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_what_it_started() {
        let mut child = haft_testkit::command("sh")
            .args(["-c", "sleep 1000 & wait"])
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        assert_eq!(wait(&mut child, Duration::from_millis(30)), None);
        end(&mut child);
        assert!(child.try_wait().unwrap().is_some());
    }
}
