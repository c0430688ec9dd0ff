//! The table of language servers: the server for a file, its program, and the folder that it works
//! on.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use super::built_in::{BUILT_IN, BuiltInServer};

/// The command and the configuration of a language server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LanguageServerEntry {
    /// The name of the server.
    pub(crate) name: String,
    /// Command lines; the first with an existing program is used.
    pub(crate) commands: Vec<Vec<String>>,
    /// Extensions without the dot, each with the name of its language.
    pub(crate) languages: Vec<(String, String)>,
    /// Files that mark the root of a project.
    pub(crate) markers: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) initialization: Value,
    pub(crate) settings: Value,
    pub(crate) startup: Duration,
    /// The time to exit after a shutdown request.
    pub(crate) shutdown: Duration,
    /// The maximum number of restarts within ten minutes; then a server that dies has failed.
    pub(crate) restarts: usize,
    /// The folder it works on, if it is not found by markers.
    pub(crate) folder: Option<PathBuf>,
    /// The installation instructions.
    pub(crate) install: String,
}

const STARTUP: Duration = Duration::from_secs(30);
const SHUTDOWN: Duration = Duration::from_secs(2);
const RESTARTS: usize = 3;
/// The upper limits of the configured startup and shutdown timeouts.
const MAX_STARTUP: Duration = Duration::from_secs(600);
const MAX_SHUTDOWN: Duration = Duration::from_secs(30);

/// Returns all servers of settings, plugins and the built-in table, in this order: the first that
/// supports a file is used. Also returns messages about invalid entries.
pub(crate) fn entries(
    settings: &Value,
    plugins: &Value,
) -> (Vec<LanguageServerEntry>, Vec<String>) {
    let mut problems = Vec::new();
    let mut found: Vec<LanguageServerEntry> = Vec::new();
    let mut disabled = Vec::new();
    for (source, servers) in [("lsp.", settings), ("the plugin server ", plugins)] {
        for (name, entry) in servers.as_object().into_iter().flatten() {
            let Some(fields) = entry.as_object() else {
                continue; // an option, not a server
            };
            if fields.get("disabled").and_then(Value::as_bool) == Some(true) {
                disabled.push(name.clone());
                continue;
            }
            if fields.get("transport").and_then(Value::as_str) == Some("socket") {
                problems.push(format!(
                    "{source}{name}: servers on sockets are not supported; the entry is ignored"
                ));
                continue;
            }
            // Earlier sources have priority, and can also disable servers of later ones.
            if disabled.contains(name) || found.iter().any(|known| known.name == *name) {
                continue;
            }
            match configured(name, entry) {
                Some(entry) => found.push(entry),
                None => problems.push(format!(
                    "{source}{name} needs `command` and `extensionToLanguage`, such as {{\".rs\": \"rust\"}}; \
                     the entry is ignored"
                )),
            }
        }
    }
    let names: Vec<String> = found.iter().map(|entry| entry.name.clone()).collect();
    let built_in = BUILT_IN.iter().map(built_in);
    found.extend(
        built_in.filter(|entry| !disabled.contains(&entry.name) && !names.contains(&entry.name)),
    );
    (found, problems)
}

fn built_in((name, programs, languages, markers, install): &BuiltInServer) -> LanguageServerEntry {
    let (initialization, settings) = match *name {
        "typescript-language-server" => (
            json!({"disableAutomaticTypingAcquisition": true, "maxTsServerMemory": 2048}),
            json!({}),
        ),
        _ => (Value::Null, json!({})),
    };
    LanguageServerEntry {
        name: (*name).to_owned(),
        commands: programs
            .iter()
            .map(|line| line.split(' ').map(str::to_owned).collect())
            .collect(),
        languages: languages
            .iter()
            .map(|(extension, language)| ((*extension).to_owned(), (*language).to_owned()))
            .collect(),
        markers: markers.iter().map(|marker| (*marker).to_owned()).collect(),
        env: BTreeMap::new(),
        initialization,
        settings,
        startup: STARTUP,
        shutdown: SHUTDOWN,
        restarts: RESTARTS,
        folder: None,
        install: (*install).to_owned(),
    }
}

fn configured(name: &str, entry: &Value) -> Option<LanguageServerEntry> {
    let texts = |field: &str| -> Vec<String> {
        let list = entry.get(field).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let mut command = vec![entry.get("command")?.as_str()?.to_owned()];
    command.extend(texts("args"));
    let languages = entry.get("extensionToLanguage")?.as_object()?;
    let languages = languages.iter().filter_map(|(extension, language)| {
        let extension = extension.trim_start_matches('.').to_owned();
        Some((extension, language.as_str()?.to_owned()))
    });
    let env = entry.get("env").and_then(Value::as_object);
    let env = env.into_iter().flatten();
    let env = env.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let time = |field: &str| {
        let time = entry.get(field).and_then(Value::as_u64);
        time.map(Duration::from_millis)
    };
    let restarts = match entry.get("restartOnCrash").and_then(Value::as_bool) {
        Some(false) => 0,
        _ => entry
            .get("maxRestarts")
            .and_then(Value::as_u64)
            .and_then(|most| usize::try_from(most).ok())
            .unwrap_or(RESTARTS),
    };
    let folder = entry.get("workspaceFolder").and_then(Value::as_str);
    let given = |field: &str| entry.get(field).cloned().unwrap_or(Value::Null);
    Some(LanguageServerEntry {
        name: name.to_owned(),
        install: format!("lsp.{name}.command names it"),
        commands: vec![command],
        languages: languages.collect(),
        markers: texts("rootMarkers"),
        env: env.collect(),
        initialization: given("initializationOptions"),
        settings: match given("settings") {
            Value::Null => json!({}),
            settings => settings,
        },
        startup: time("startupTimeout").unwrap_or(STARTUP).min(MAX_STARTUP),
        shutdown: time("shutdownTimeout")
            .unwrap_or(SHUTDOWN)
            .min(MAX_SHUTDOWN),
        restarts,
        folder: folder.map(PathBuf::from),
    })
}

impl LanguageServerEntry {
    /// Returns the language of a file, if this server supports it.
    pub(crate) fn language(&self, path: &Path) -> Option<&str> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        let found = self.languages.iter().find(|(known, _)| known == extension);
        found.map(|(_, language)| language.as_str())
    }

    /// Searches these folders for the server's program. Returns its path and arguments. A program
    /// with a slash in its name is relative to the workspace.
    pub(crate) fn find(
        &self,
        folders: &[PathBuf],
        workspace: &Path,
    ) -> Option<(PathBuf, Vec<String>)> {
        self.commands.iter().find_map(|command| {
            let (program, arguments) = command.split_first()?;
            let found = match program.contains('/') {
                true => Some(workspace.join(program)).filter(|path| is_program(path)),
                false => folders
                    .iter()
                    .map(|folder| folder.join(program))
                    .find(|path| is_program(path)),
            };
            Some((found?, arguments.to_vec()))
        })
    }

    /// Returns the folder that the server works on for a file: the outermost folder with a marker,
    /// between the file and `top`, which contains the workspace. One server per package would use
    /// too much memory.
    pub(crate) fn root(&self, path: &Path, workspace: &Path, top: &Path) -> PathBuf {
        if let Some(folder) = &self.folder {
            return workspace.join(folder);
        }
        let above = path.ancestors().skip(1);
        let within: Vec<&Path> = above.take_while(|folder| folder.starts_with(top)).collect();
        let is_root = |folder: &&&Path| self.markers.iter().any(|name| folder.join(name).exists());
        let outermost = within.iter().rev().find(is_root);
        outermost.map_or_else(|| workspace.to_path_buf(), |folder| folder.to_path_buf())
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the folders to search for server programs: those of a trusted project, and the absolute
/// folders of `PATH` that are not in the workspace.
pub(crate) fn folders(path: Option<&OsStr>, workspace: &Path) -> Vec<PathBuf> {
    let listed = path.map(std::env::split_paths).into_iter().flatten();
    let outside = listed.filter(|folder| folder.is_absolute() && !folder.starts_with(workspace));
    let own = ["node_modules/.bin", ".venv/bin"].map(|name| workspace.join(name));
    own.into_iter().chain(outside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_before_the_table_and_what_is_wrong_is_named() {
        let settings = json!({
            "diagnostics": "new",
            "pyright": {"disabled": true},
            "mine": {
                "command": "my-ls", "args": ["--stdio"], "extensionToLanguage": {".py": "python"},
                "rootMarkers": ["x"], "startupTimeout": 5, "restartOnCrash": true,
            },
            "far": {"command": "x", "transport": "socket", "extensionToLanguage": {}},
            "bad": {"args": []},
            "kit:off": {"disabled": true},
        });
        let plugins = json!({
            "kit:go": {
                "command": "/kit/go-ls", "extensionToLanguage": {".go": "go"}, "loggingConfig": {"args": []},
                "restartOnCrash": false, "shutdownTimeout": 7, "workspaceFolder": "sub", "unheard-of": 1,
            },
            "kit:off": {"command": "/kit/off", "extensionToLanguage": {".rs": "rust"}},
            "kit:far": {"command": "x", "transport": "socket", "extensionToLanguage": {}},
        });
        let (entries, problems) = entries(&settings, &plugins);
        assert_eq!(entries[0].name, "mine");
        assert_eq!(entries[0].restarts, RESTARTS);
        assert_eq!(entries[1].name, "kit:go");
        assert_eq!(
            (entries[1].restarts, entries[1].shutdown.as_millis()),
            (0, 7)
        );
        let file = Path::new("/w/a/x.go");
        let root = entries[1].root(file, Path::new("/w"), Path::new("/w"));
        assert_eq!(root, Path::new("/w/sub"));
        let first = |file: &str| {
            let path = Path::new(file);
            entries
                .iter()
                .find(|one| one.language(path).is_some())
                .unwrap()
        };
        assert_eq!(first("/a.go").name, "kit:go");
        assert_eq!(first("/a.rs").name, "rust-analyzer");
        assert_eq!(entries[0].commands, [["my-ls", "--stdio"]]);
        assert_eq!(entries[0].language(Path::new("/a.py")), Some("python"));
        assert!(!entries.iter().any(|entry| entry.name == "pyright"));
        assert!(entries.iter().any(|entry| entry.name == "gopls"));
        assert_eq!(problems.len(), 3, "{problems:?}");
    }

    #[test]
    fn the_outermost_marker_is_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        fs::create_dir_all(top.join("packages/a/src")).unwrap();
        fs::write(top.join("package-lock.json"), "{}").unwrap();
        fs::write(top.join("packages/a/tsconfig.json"), "{}").unwrap();
        let (entries, _) = entries(&Value::Null, &Value::Null);
        let of = |name: &str| entries.iter().find(|entry| entry.name == name).unwrap();
        let file = top.join("packages/a/src/x.ts");
        let typescript = of("typescript-language-server");
        assert_eq!(typescript.root(&file, top, top), top);
        // Also where the session works in a part of the repository.
        let part = top.join("packages/a");
        assert_eq!(typescript.root(&file, &part, top), top);
        fs::remove_file(top.join("package-lock.json")).unwrap();
        assert_eq!(typescript.root(&file, top, top), part);
        // Without any marker, all of it.
        let shell = of("bash-language-server");
        assert_eq!(shell.root(&top.join("packages/a/x.sh"), top, top), top);
        assert_eq!(shell.root(&part.join("x.sh"), &part, top), part);
    }

    #[test]
    fn programs_of_the_workspace_are_found_only_where_a_project_keeps_them() {
        let path = OsStr::new("/usr/bin:relative::/w/bin:/opt/bin");
        let folders = folders(Some(path), Path::new("/w"));
        let expected = [
            "/w/node_modules/.bin",
            "/w/.venv/bin",
            "/usr/bin",
            "/opt/bin",
        ];
        assert_eq!(folders, expected.map(PathBuf::from));
    }
}
