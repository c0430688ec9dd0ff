//! `haft doctor`: reports the environment that a session started here would find.
//!
//! The checks inspect files. They start no program of the workspace except the MCP servers that a
//! session would start, which requires that the directory is trusted. They do not even ask a
//! program for its version, because the workspace may have replaced that program. The sandbox
//! checks run commands that attempt forbidden operations; the model check asks the provider for its
//! model list.

mod findings;

use std::{
    env,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft::engine::{
    permissions::SandboxSettings,
    settings::{Settings, SettingsPlaces, TrustFile, trust},
};
use haft_host::{AvailableModels, ResolvedSettings, SessionConfig, available_models};
use haft_models::{ModelInfo, model_listing::split_window};
use haft_sandbox::{Mechanism, ResourceLimits, SandboxSetup, ScratchLease};
#[cfg(feature = "search")]
use haft_search::{IndexStatus, SearchEngine};
use rustix::fs::Access;

use self::findings::{CheckState, DoctorFindings, DoctorRow, DoctorSection};
use crate::{
    VERSION,
    args::SessionArgs,
    exit::Exit,
    modes::mcp::mcp_tokens,
    session,
    show::{self, ConsoleStyle},
};

/// Programs that commands and tools use.
const PROGRAMS: [&str; 5] = ["bash", "git", "rg", "pdftoppm", "bwrap"];

pub(crate) async fn run(args: SessionArgs, as_json: bool) -> anyhow::Result<Exit> {
    let findings = run_checks(&session::config(&args)?).await?;
    if as_json {
        show::json(&serde_json::to_string_pretty(&findings.json())?)?;
    } else {
        show::drawn(&findings.text(ConsoleStyle::of_stdout()))?;
    }
    Ok(findings.exit())
}

/// Like [`run`], but returns the report as text for the `/doctor` command in a session.
pub(crate) async fn report(config: SessionConfig) -> String {
    match run_checks(&config).await {
        Ok(findings) => findings.text(ConsoleStyle::plain()),
        Err(error) => format!("{error:#}"),
    }
}

async fn run_checks(config: &SessionConfig) -> anyhow::Result<DoctorFindings> {
    let permitted = ResolvedSettings::load(config)?;
    let mut findings = DoctorFindings {
        sections: vec![
            version(),
            files(&permitted.settings),
            home(&permitted.settings.places),
            model(&available_models(config).await?),
            trusted(&permitted.settings),
            programs(env::var_os("PATH").unwrap_or_default().as_ref()),
            network(&permitted.sandbox),
            DoctorSection {
                name: "sandbox",
                rows: [
                    unsupported_settings(&permitted.sandbox),
                    vec![auto_mode_row(config, &permitted)],
                    guarantees().await,
                ]
                .concat(),
            },
        ],
    };
    #[cfg(feature = "browser")]
    findings.sections.push(browser(config, &permitted));
    #[cfg(feature = "search")]
    findings.sections.push(search(&permitted));
    #[cfg(feature = "code")]
    findings
        .sections
        .extend(language_servers(config, &permitted));
    let servers = servers(&haft_host::check_servers(config, None).await?);
    if !servers.rows.is_empty() {
        findings.sections.push(servers);
    }
    Ok(findings)
}

/// Reports the browser that a session would use to open pages.
#[cfg(feature = "browser")]
fn browser(config: &SessionConfig, permitted: &ResolvedSettings) -> DoctorSection {
    let found = haft_host::browser_program(&permitted.settings, &config.environment, &config.cwd);
    let row = match found {
        Some(program) => DoctorRow::new(
            "Browser",
            CheckState::Good,
            program.path.display().to_string(),
        ),
        None => DoctorRow::new(
            "Browser",
            CheckState::Note,
            "not offered: no Chromium was found (install chromium, or set browser.path), or HAFT_BROWSER=off",
        ),
    };
    DoctorSection {
        name: "browser",
        rows: vec![row],
    }
}

/// Lists the MCP servers with the result of connecting to each.
fn servers(list: &haft_host::ServerList) -> DoctorSection {
    let named = list.servers.iter().map(|server| {
        let (state, what) = match (server.status, &server.error) {
            ("connected", _) if server.unapproved.is_some() => (CheckState::Note, String::new()),
            ("connected", _) => (CheckState::Good, String::new()),
            ("failed", Some(error)) => (CheckState::Bad, format!(": {error}")),
            (_, Some(error)) => (CheckState::Note, format!(": {error}")),
            (_, None) => (CheckState::Note, String::new()),
        };
        let mut text = format!(
            "{}{what} ({} scope, {})",
            server.status, server.scope, server.target
        );
        if let (Some(revision), Some(tools)) = (server.revision, &server.tools) {
            let tokens = mcp_tokens(server);
            let count = tools.len();
            text += &format!("; revision {revision}, {count} tools, about {tokens} tokens");
        }
        if let Some(unapproved) = &server.unapproved {
            text += &format!("; {unapproved}");
        }
        DoctorRow::new(show::clean(&server.name), state, text)
    });
    let left = list.skipped.iter().map(|left| {
        let text = format!("left out ({}): {}", left.category, left.message);
        DoctorRow::new(show::clean(&left.name), CheckState::Note, text)
    });
    DoctorSection {
        name: "mcp",
        rows: named.chain(left).collect(),
    }
}

fn version() -> DoctorSection {
    DoctorSection {
        name: "version",
        rows: vec![
            DoctorRow::new("haft", CheckState::Good, VERSION),
            DoctorRow::new(
                "system",
                CheckState::Good,
                format!("{} {}", env::consts::OS, env::consts::ARCH),
            ),
        ],
    }
}

/// Lists the settings files that were found and the problems in them.
fn files(settings: &Settings) -> DoctorSection {
    let mut rows = Vec::new();
    for layer in &settings.layers {
        let place = match &layer.file {
            Some(file) => file.display().to_string(),
            None => "given as JSON".to_owned(),
        };
        rows.push(DoctorRow::new(layer.scope.name(), CheckState::Good, place));
    }
    for problem in &settings.problems {
        rows.push(DoctorRow::new(
            "problem",
            CheckState::Note,
            problem.to_string(),
        ));
    }
    if rows.is_empty() {
        rows.push(DoctorRow::new("files", CheckState::Good, "none"));
    }
    DoctorSection {
        name: "settings",
        rows,
    }
}

/// Checks that haft's state folder can be written.
fn home(places: &SettingsPlaces) -> DoctorSection {
    let folder = places.user.display().to_string();
    let row = match is_writable(&places.user) {
        true => DoctorRow::new("state", CheckState::Good, folder),
        false => DoctorRow::new(
            "state",
            CheckState::Bad,
            format!(
                "{folder} is not writable, so sessions, rules and trust cannot be saved there; set \
                 CLAUDE_CONFIG_DIR to a folder that is"
            ),
        ),
    };
    DoctorSection {
        name: "home",
        rows: vec![row],
    }
}

/// Returns whether `folder` is a writable directory or could be created. Creates nothing.
fn is_writable(folder: &Path) -> bool {
    let there = folder
        .ancestors()
        .find(|folder| folder.symlink_metadata().is_ok());
    let access = Access::WRITE_OK | Access::EXEC_OK;
    there.is_some_and(|there| there.is_dir() && rustix::fs::access(there, access).is_ok())
}

/// Checks the API key, the provider and the model.
fn model(found: &AvailableModels) -> DoctorSection {
    let key = match (found.key_source, &found.listed) {
        ("none", Ok(_)) => DoctorRow::new("key", CheckState::Good, "none is needed"),
        ("none", Err(_)) => DoctorRow::new(
            "key",
            CheckState::Note,
            "none is set: set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or OPENAI_API_KEY, or run `haft login`",
        ),
        (source, _) => DoctorRow::new("key", CheckState::Good, source),
    };
    // Without a key nothing has been set up yet, so an unreachable server is not an error.
    let trouble = match found.key_source {
        "none" => CheckState::Note,
        _ => CheckState::Bad,
    };
    let server = match &found.listed {
        Ok(models) => {
            let text = match models.len() {
                1 => format!("{} answers, with 1 model", found.place),
                count => format!("{} answers, with {count} models", found.place),
            };
            DoctorRow::new("server", CheckState::Good, text)
        }
        Err(why) => DoctorRow::new("server", trouble, format!("{}: {why}", found.place)),
    };
    let model = match (&found.default, &found.listed) {
        (Ok(name), Ok(models)) if !models.is_empty() && !is_listed(name, models) => DoctorRow::new(
            "model",
            CheckState::Note,
            format!(
                "{name} ({}) is not in the server's list; `haft models` shows it",
                found.because
            ),
        ),
        (Ok(name), _) => DoctorRow::new(
            "model",
            CheckState::Good,
            format!("{name} ({})", found.because),
        ),
        (Err(_), Err(_)) => DoctorRow::new("model", CheckState::Note, "none is named"),
        (Err(why), Ok(_)) => DoctorRow::new("model", trouble, why),
    };
    DoctorSection {
        name: "model",
        rows: vec![key, server, model],
    }
}

fn is_listed(name: &str, models: &[ModelInfo]) -> bool {
    let (name, _) = split_window(name);
    models.iter().any(|model| model.id == name)
}

/// Describes the network access of commands, depending on the sandbox settings.
fn network(sandbox: &SandboxSettings) -> DoctorSection {
    let permitted = match (sandbox.enabled, sandbox.available) {
        (Some(true), true) => {
            "only what rules and sandbox.network allow, through a proxy; otherwise you are asked"
        }
        (Some(true), false) => {
            "open: sandbox.enabled requires less, but this machine does not support it; every command asks"
        }
        (Some(false), _) => {
            "open: sandbox.enabled is false, so permitted commands are not confined"
        }
        (None, _) => {
            "open: permitted commands can reach everything that you can; sandbox.enabled changes that"
        }
    };
    let reading =
        "none; commands that query a service in order to read (`gh pr list`, `docker ps`) ask";
    DoctorSection {
        name: "network",
        rows: vec![
            DoctorRow::new("readonly", CheckState::Good, reading),
            DoctorRow::new("workspace", CheckState::Good, permitted),
            DoctorRow::new("full", CheckState::Good, "open"),
        ],
    }
}

/// Reports whether the workspace is trusted, and so whether its settings apply.
fn trusted(settings: &Settings) -> DoctorSection {
    let places = &settings.places;
    let things = settings.executable_items();
    let changes = TrustFile::read(places).changes(places, &things);
    let (state, text) = match (&changes, settings.trust.allows) {
        (Some(changes), _) if changes.is_empty() => (CheckState::Good, "trusted".to_owned()),
        (Some(changes), _) => (
            CheckState::Note,
            format!("trusted, but since then {}", changes.join(", ")),
        ),
        (None, true) => (
            CheckState::Good,
            "trusted, except for what runs code".to_owned(),
        ),
        (None, false) => (CheckState::Good, "not trusted".to_owned()),
    };
    let mut rows = vec![
        DoctorRow::new(
            "directory",
            CheckState::Good,
            trust::directory(places).display().to_string(),
        ),
        DoctorRow::new("state", state, text),
    ];
    if !settings.left_out.is_empty() {
        let left_out = settings.left_out.join(", ");
        rows.push(DoctorRow::new("left out", CheckState::Note, left_out));
    }
    DoctorSection {
        name: "trust",
        rows,
    }
}

/// Reports the search index and the caches that searches use.
#[cfg(feature = "search")]
fn search(permitted: &ResolvedSettings) -> DoctorSection {
    let index = &permitted.search_index;
    let row = |name, text| DoctorRow::new(name, CheckState::Good, text);
    let mut rows = Vec::new();
    if index.enabled {
        rows.push(row(
            "index",
            match (
                &index.cache_folder,
                index.file_of(&permitted.settings.places.cwd),
            ) {
                (_, Some(file)) => {
                    format!(
                        "{} ({:.1} MB)",
                        file.path.display(),
                        file.bytes as f64 / 1e6
                    )
                }
                (Some(folder), None) => {
                    format!("none of this directory yet, in {}", folder.display())
                }
                (None, None) => "in memory".to_owned(),
            },
        ));
        let engine = SearchEngine::with(index.clone());
        let cwd = permitted.settings.places.cwd.canonicalize();
        match cwd.ok().and_then(|cwd| engine.inspect(&cwd)) {
            Some(status) => rows.extend(index_rows(&status)),
            None => rows.push(row("state", "no index of this directory".to_owned())),
        }
    } else {
        rows.push(row(
            "index",
            "off (searchIndex, HAFT_SEARCH_INDEX)".to_owned(),
        ));
    }
    DoctorSection {
        name: "search",
        rows,
    }
}

/// Describes the stored search index that a search here starts from.
#[cfg(feature = "search")]
fn index_rows(status: &IndexStatus) -> Vec<DoctorRow> {
    if let Some(reason) = status.refused {
        let text = format!("not stored: {reason}; each search scans the directory");
        return vec![DoctorRow::new("state", CheckState::Good, text)];
    }
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    let state = format!(
        "{} of {} files indexed, {:.1} MB of memory",
        status.indexed,
        status.files,
        megabytes(status.index_bytes)
    );
    let memory = format!(
        "contents up to {:.0} MB, released after five minutes without a search",
        megabytes(status.memory)
    );
    let (watched, text) = match status.is_watched {
        true => (CheckState::Good, "complete"),
        false => (
            CheckState::Note,
            "incomplete: fs.inotify.max_user_watches is too low, so each search checks all files first",
        ),
    };
    vec![
        DoctorRow::new("state", CheckState::Good, state),
        DoctorRow::new("memory", CheckState::Good, memory),
        DoctorRow::new("watching", watched, text.to_owned()),
    ]
}

/// Lists the installed language servers. Returns `None` if there are neither servers nor problems.
#[cfg(feature = "code")]
fn language_servers(config: &SessionConfig, permitted: &ResolvedSettings) -> Option<DoctorSection> {
    let found = haft_host::found_language_servers(config, permitted);
    if found.servers.is_empty() && found.problems.is_empty() {
        return None;
    }
    let servers = found.servers.into_iter().map(|(name, path)| {
        let text = match found.trusted {
            true => path.display().to_string(),
            false => format!(
                "{} (not started: the directory is not trusted)",
                path.display()
            ),
        };
        DoctorRow::new(name, CheckState::Good, text)
    });
    let problems = found.problems.into_iter();
    let rows =
        servers.chain(problems.map(|text| DoctorRow::new("settings", CheckState::Note, text)));
    Some(DoctorSection {
        name: "language servers",
        rows: rows.collect(),
    })
}

fn programs(path: &Path) -> DoctorSection {
    let rows = PROGRAMS.iter().map(|name| match find(name, path) {
        Some(found) => DoctorRow::new(*name, CheckState::Good, found.display().to_string()),
        None => DoctorRow::new(*name, CheckState::Note, "not found"),
    });
    DoctorSection {
        name: "programs",
        rows: rows.collect(),
    }
}

/// Returns the first program called `name` in `path`. Skips relative directories, which a shell
/// would resolve inside the workspace.
fn find(name: &str, path: &Path) -> Option<PathBuf> {
    env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|program| {
            program
                .metadata()
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
}

/// Returns the requested sandbox settings that this machine does not support.
fn unsupported_settings(sandbox: &SandboxSettings) -> Vec<DoctorRow> {
    let state = if sandbox.required {
        CheckState::Bad
    } else {
        CheckState::Note
    };
    let missing = sandbox.missing().into_iter();
    missing
        .map(|text| DoctorRow::new("settings", state, text))
        .collect()
}

/// Reports whether the permission mode `auto` is available, with the line that a session prints.
fn auto_mode_row(config: &SessionConfig, permitted: &ResolvedSettings) -> DoctorRow {
    let problem =
        haft_host::auto_mode::auto_mode_problem(config, &permitted.settings, &permitted.sandbox);
    let (state, text) = match problem {
        None => (CheckState::Good, "available".to_owned()),
        Some(problem) => (
            CheckState::Note,
            haft_host::auto_mode::auto_mode_fallback(&problem),
        ),
    };
    DoctorRow::new("mode auto", state, text)
}

/// Returns one row per sandbox guarantee. Each guarantee is tested by a command that attempts the
/// forbidden operation.
async fn guarantees() -> Vec<DoctorRow> {
    let (Some(shell), Ok(program)) = (haft_sandbox::system_shell(), env::current_exe()) else {
        return vec![DoctorRow::new(
            "commands",
            CheckState::Bad,
            "bash was not found",
        )];
    };
    let among = env::temp_dir();
    let scratch = match ScratchLease::create(&among) {
        Ok(scratch) => scratch,
        Err(error) => {
            let text = format!("cannot create a folder in {}: {error}", among.display());
            return vec![DoctorRow::new("commands", CheckState::Bad, text)];
        }
    };
    let sandbox = haft_sandbox::Sandbox::new(SandboxSetup {
        program,
        shell,
        environment: Arc::new(|_| Vec::new()),
        scratch: scratch.path().to_path_buf(),
        snapshot: None,
        gate: None,
        strictest_mechanism: Mechanism::Namespaces,
        resource_limits: ResourceLimits::default(),
    });
    let report = haft_sandbox::probe(&sandbox, &among).await;
    sandbox.close().await;
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            return vec![DoctorRow::new(
                "commands",
                CheckState::Bad,
                error.to_string(),
            )];
        }
    };
    let whole = report.mechanism < Mechanism::Reduced;
    let state = if whole {
        CheckState::Good
    } else {
        CheckState::Note
    };
    let mut rows = vec![DoctorRow::new(
        "commands are confined by",
        state,
        report.mechanism.name(),
    )];
    for (mechanism, why) in &report.failures {
        let name = format!("not by {}", mechanism.name());
        rows.push(DoctorRow::new(name, CheckState::Note, why.clone()));
    }
    rows.extend(report.findings.iter().map(|finding| {
        let (state, text) = if finding.held {
            (CheckState::Good, finding.promise.to_owned())
        } else {
            (
                CheckState::Note,
                format!("does not hold: {}", finding.promise),
            )
        };
        DoctorRow::new(finding.profile, state, text)
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_and_cannot_be_had_is_bad_only_if_it_must_be_had() {
        let sandbox = |enabled, required, available| SandboxSettings {
            enabled,
            required,
            available,
            ..SandboxSettings::default()
        };
        let cases = [
            (sandbox(None, true, false), None),
            (sandbox(Some(true), true, true), None),
            (sandbox(Some(true), false, false), Some(Exit::Success)),
            (sandbox(Some(true), true, false), Some(Exit::Usage)),
        ];
        for (sandbox, expected) in cases {
            let findings = DoctorFindings {
                sections: vec![DoctorSection {
                    name: "sandbox",
                    rows: unsupported_settings(&sandbox),
                }],
            };
            let shown = findings.sections().next().map(|_| findings.exit());
            assert_eq!(shown, expected, "{sandbox:?}");
        }
    }

    #[test]
    fn a_program_is_found_as_a_shell_would_but_not_in_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [
            ("one/tool", 0o755),
            ("two/tool", 0o755),
            ("one/text", 0o644),
        ] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).unwrap();
        }
        let path = env::join_paths([
            PathBuf::from("."),
            dir.path().join("none"),
            dir.path().join("one"),
            dir.path().join("two"),
        ]);
        let path = PathBuf::from(path.unwrap());
        assert_eq!(find("tool", &path), Some(dir.path().join("one/tool")));
        assert_eq!(find("text", &path), None);
        assert_eq!(find("Cargo.toml", Path::new(".")), None);
    }
}
