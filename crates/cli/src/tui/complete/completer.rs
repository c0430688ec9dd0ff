//! Finds completions on a thread that may block. The file list is cached; an old list is used and
//! refreshed in the background.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use haft_search::{IndexSettings, SearchEngine, SharedEngine};
use serde_json::Value;

use super::{
    CompletionEntry, CompletionKind, CompletionQuery, MAX_ROWS,
    files::{self, FileList, FilePlaces},
    rank,
};
use crate::tui::settings::TuiSettings;

/// The age after which the file list is refreshed. The old list is still used for the current
/// answer.
const FRESH: Duration = Duration::from_secs(3);

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletableCommand {
    /// The name without the slash.
    pub(crate) name: String,
    /// A hint about the arguments.
    pub(crate) hint: String,
    pub(crate) description: String,
}

/// The settings for completions.
#[derive(Debug, Clone)]
pub(crate) struct CompletionSettings {
    pub(crate) respect_gitignore: bool,
    /// The user's command that suggests files. It runs code, so one from the workspace's settings
    /// is used only if the directory is trusted.
    pub(crate) file_suggestion: Option<String>,
}

impl CompletionSettings {
    pub(crate) fn from_settings(settings: &TuiSettings) -> Self {
        let suggestion = settings.file_suggestion.as_ref();
        let command = suggestion.and_then(|value| match value {
            Value::String(command) => Some(command.as_str()),
            value => value["command"].as_str(),
        });
        Self {
            respect_gitignore: settings.respect_gitignore.unwrap_or(true),
            file_suggestion: command
                .filter(|command| !command.trim().is_empty())
                .map(str::to_owned),
        }
    }
}

/// Finds completions. Cheap to clone; all clones share the cached lists.
#[derive(Debug, Clone)]
pub(crate) struct Completer(Arc<CompleterState>);

#[derive(Debug)]
struct CompleterState {
    places: FilePlaces,
    settings: CompletionSettings,
    /// The session's search engine, which keeps the file list up to date between scans.
    search: SharedEngine,
    commands: Mutex<Vec<CompletableCommand>>,
    files: Mutex<Option<(Instant, Arc<FileList>)>>,
    /// A scan is in progress in the background.
    is_walking: AtomicBool,
}

impl Completer {
    pub(crate) fn new(
        cwd: PathBuf,
        home: Option<PathBuf>,
        settings: CompletionSettings,
        search: SharedEngine,
    ) -> Self {
        Self(Arc::new(CompleterState {
            places: FilePlaces { cwd, home },
            settings,
            search,
            commands: Mutex::default(),
            files: Mutex::default(),
            is_walking: AtomicBool::new(false),
        }))
    }

    /// Sets the available commands, skills and prompts, in display order.
    pub(crate) fn set_commands(&self, commands: Vec<CompletableCommand>) {
        *lock(&self.0.commands) = commands;
    }

    /// Returns the matching completions, the best first. May wait for the disk.
    pub(crate) fn find(&self, query: &CompletionQuery) -> Vec<CompletionEntry> {
        match query.kind {
            CompletionKind::Command => self.commands(query),
            CompletionKind::File => self.files(query),
        }
    }

    fn commands(&self, query: &CompletionQuery) -> Vec<CompletionEntry> {
        let commands = lock(&self.0.commands);
        let names = commands.iter().map(|command| command.name.as_str());
        let best = rank::best(names, &query.query, false, MAX_ROWS);
        let best = best.into_iter().filter_map(|place| commands.get(place));
        best.map(|command| CompletionEntry {
            label: format!("/{}", command.name),
            hint: command.hint.clone(),
            description: command.description.clone(),
            insert: format!("/{} ", command.name),
            replaces: query.replaces,
        })
        .collect()
    }

    fn files(&self, query: &CompletionQuery) -> Vec<CompletionEntry> {
        let FilePlaces { cwd, home } = &self.0.places;
        let typed = query.query.as_str();
        let names: Vec<String> = if files::leads_out(typed) {
            let list = files::listed(typed, cwd, home.as_deref()).unwrap_or_default();
            let hidden = typed
                .rsplit('/')
                .next()
                .is_some_and(|name| name.starts_with('.'));
            let names = list.names.iter().map(String::as_str);
            let names: Vec<&str> = names.filter(|name| hidden || !is_hidden(name)).collect();
            best_of(&names, typed)
        } else if let Some(command) = &self.0.settings.file_suggestion {
            let mut names = files::suggested(command, typed, cwd).unwrap_or_default();
            names.truncate(MAX_ROWS);
            names
        } else {
            let list = self.list();
            let names = list.names.iter().map(String::as_str);
            // Hidden files are found by name, but not offered for an empty query.
            let names: Vec<&str> = match typed.is_empty() {
                true => names.filter(|name| !name.starts_with('.')).collect(),
                false => names.collect(),
            };
            best_of(&names, typed)
        };
        names.iter().map(|name| completion(name, query)).collect()
    }

    /// Returns the file list. A stale list is returned and refreshed in the background.
    fn list(&self) -> Arc<FileList> {
        let known = lock(&self.0.files).clone();
        match known {
            Some((made, list)) => {
                if made.elapsed() > FRESH {
                    self.refresh();
                }
                list
            }
            None => self.0.walk(),
        }
    }

    /// Starts a background scan unless one is in progress.
    fn refresh(&self) {
        if self.0.is_walking.swap(true, Ordering::Relaxed) {
            return;
        }
        let state = Arc::clone(&self.0);
        let walk = move || {
            state.walk();
            state.is_walking.store(false, Ordering::Relaxed);
        };
        if thread::Builder::new()
            .name("completion walk".to_owned())
            .spawn(walk)
            .is_err()
        {
            self.0.is_walking.store(false, Ordering::Relaxed);
        }
    }
}

impl CompleterState {
    fn walk(&self) -> Arc<FileList> {
        // Before the session is open, nothing is indexed.
        let engine = self.search.get().unwrap_or_else(|| {
            let enabled = false;
            Arc::new(SearchEngine::with(IndexSettings {
                enabled,
                ..IndexSettings::default()
            }))
        });
        let list = Arc::new(files::walk(
            &engine,
            &self.places.cwd,
            self.settings.respect_gitignore,
        ));
        *lock(&self.files) = Some((Instant::now(), Arc::clone(&list)));
        list
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_hidden(name: &str) -> bool {
    let name = Path::new(name).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with('.'))
}

fn best_of(names: &[&str], typed: &str) -> Vec<String> {
    let best = rank::best(names.iter().copied(), typed, true, MAX_ROWS);
    let best = best.into_iter().filter_map(|place| names.get(place));
    best.map(|name| (*name).to_owned()).collect()
}

/// Returns the completion for a path. After a folder, the user can continue the path; a file is
/// followed by a space.
fn completion(name: &str, query: &CompletionQuery) -> CompletionEntry {
    let is_folder = name.ends_with('/');
    let needs_quotes = query.is_quoted || name.contains(char::is_whitespace);
    let insert = match (needs_quotes, is_folder) {
        (true, true) => format!("@\"{name}"),
        (true, false) => format!("@\"{name}\" "),
        (false, true) => format!("@{name}"),
        (false, false) => format!("@{name}{} ", query.lines),
    };
    CompletionEntry {
        label: name.to_owned(),
        hint: String::new(),
        description: String::new(),
        insert,
        replaces: query.replaces,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::tui::complete::completion_query;

    fn completer(root: &Path) -> Completer {
        let settings = CompletionSettings::from_settings(&TuiSettings::default());
        let search = SharedEngine::default();
        search.get_or_make(IndexSettings::default());
        Completer::new(root.to_path_buf(), None, settings, search)
    }

    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join("target")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".gitignore"), "target\n").unwrap();
        for name in ["src/price.rs", "target/price.d", "my notes.md"] {
            fs::write(root.join(name), "").unwrap();
        }
        dir
    }

    fn taken(completer: &Completer, typed: &str) -> String {
        let query = completion_query(typed, typed.len()).unwrap();
        let found = completer.find(&query);
        let first = found.first().expect(typed);
        format!("{}{}", &typed[..typed.len() - first.replaces], first.insert)
    }

    /// Vector 26.
    #[test]
    fn the_first_completion_of_a_file_is_taken_and_ignored_files_are_absent() {
        let dir = project();
        let completer = completer(dir.path());
        assert_eq!(taken(&completer, "@pri"), "@src/price.rs ");
        assert_eq!(taken(&completer, "see @pri:3-4"), "see @src/price.rs:3-4 ");
        assert_eq!(taken(&completer, "@sr"), "@src/");
        assert_eq!(taken(&completer, "@notes"), "@\"my notes.md\" ");
        assert_eq!(taken(&completer, "@\"my no"), "@\"my notes.md\" ");
        let query = completion_query("@price", 6).unwrap();
        let labels: Vec<String> = completer
            .find(&query)
            .into_iter()
            .map(|one| one.label)
            .collect();
        assert_eq!(labels, ["src/price.rs"]);
        let query = completion_query("@", 1).unwrap();
        let labels: Vec<String> = completer
            .find(&query)
            .into_iter()
            .map(|one| one.label)
            .collect();
        assert_eq!(labels, ["my notes.md", "src/", "src/price.rs"]);
    }

    #[test]
    fn an_old_list_is_used_once_more_and_then_made_anew() {
        let dir = project();
        let completer = completer(dir.path());
        let query = completion_query("@new", 4).unwrap();
        assert_eq!(completer.find(&query), []);
        fs::write(dir.path().join("new.rs"), "").unwrap();
        assert_eq!(completer.find(&query), [], "the list is fresh");
        let old = Instant::now().checked_sub(FRESH * 2).unwrap();
        lock(&completer.0.files).as_mut().unwrap().0 = old;
        haft_testkit::until_blocking("the new file is found", || {
            !completer.find(&query).is_empty()
        });
    }

    #[test]
    fn commands_come_with_what_they_expect() {
        let completer = completer(Path::new("/"));
        let entry = |name: &str, hint: &str| CompletableCommand {
            name: name.to_owned(),
            hint: hint.to_owned(),
            description: format!("About {name}"),
        };
        completer.set_commands(vec![
            entry("decompose", ""),
            entry("compact", "[what matters]"),
        ]);
        let query = completion_query("/comp", 5).unwrap();
        let found = completer.find(&query);
        assert_eq!(found[0].insert, "/compact ");
        assert_eq!(found[0].hint, "[what matters]");
        assert_eq!(found[1].label, "/decompose");
    }

    #[test]
    fn the_settings_name_a_command_or_switch_ignore_files_off() {
        let settings = TuiSettings::from_json(&json!({
            "respectGitignore": false,
            "fileSuggestion": {"type": "command", "command": "printf 'x y.rs\\n'"},
        }));
        let settings = CompletionSettings::from_settings(&settings);
        assert!(!settings.respect_gitignore);
        let dir = project();
        let completer = Completer::new(
            dir.path().to_path_buf(),
            None,
            settings,
            SharedEngine::default(),
        );
        assert_eq!(taken(&completer, "@any"), "@\"x y.rs\" ");
    }
}
