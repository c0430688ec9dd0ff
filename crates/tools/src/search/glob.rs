//! `Glob`: finds files by name.

use std::{
    env,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Effects, PermissionSnapshot, Tool, ToolError,
    ToolOutput, ToolProfile,
};
use haft_search::{GlobQuery, GlobReport, SearchCompletion, split_pattern};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{TIMEOUT, ask, caveats, leave_out, profile, stop, timed_out};
use crate::{
    paths::{fill_path, path_constraint, shown},
    plural::counted,
};

/// The maximum number of returned files; more are only counted.
const MAX_FILES: usize = 100;
/// The time limit in the Windows Subsystem for Linux, whose file system is slow.
const WSL_TIMEOUT: Duration = Duration::from_secs(60);

/// Finds files by name and returns their paths, the most recently modified first.
///
/// - The pattern knows `*`, `?`, `**` (any directories), `[a-z]` and `{a,b}`. Without a `/` it matches
///   file names at any depth (`*.rs`); with one it matches paths below `path` (`src/**/*.test.ts`).
/// - Hidden files are included. Files that .gitignore or another ignore file names, and the inside
///   of `.git`, are not.
/// - At most 100 paths, relative to the working directory; the last line says if there are more.
/// - To search what is in the files use Grep; to see one directory with its subdirectories use LS.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The names to find, such as `*.toml` or `src/**/*.rs`.
    pattern: String,
    /// The directory to search; the working directory if omitted.
    #[serde(default)]
    path: Option<PathBuf>,
}

/// The settings from the environment.
#[derive(Debug, PartialEq, Eq)]
struct GlobSettings {
    respect_ignore: bool,
    hidden: bool,
    timeout: Duration,
}

impl GlobSettings {
    fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let says = |name, word: &str| {
            variable(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(word))
        };
        let seconds = variable("CLAUDE_CODE_GLOB_TIMEOUT_SECONDS")
            .and_then(|value| value.trim().parse().ok())
            .filter(|seconds: &f64| *seconds > 0.0)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let standard = match variable("WSL_DISTRO_NAME") {
            Some(_) => WSL_TIMEOUT,
            None => TIMEOUT,
        };
        Self {
            respect_ignore: !says("CLAUDE_CODE_GLOB_NO_IGNORE", "true"),
            hidden: !says("CLAUDE_CODE_GLOB_HIDDEN", "false"),
            timeout: seconds.unwrap_or(standard),
        }
    }
}

impl Input {
    fn query(&self, cx: &CallContext, settings: &GlobSettings) -> Result<GlobQuery, ToolError> {
        let base = match &self.path {
            Some(path) => cx.cwd.join(path),
            None => cx.cwd.to_path_buf(),
        };
        let judged = path_constraint(&base, cx)?;
        let PermissionSnapshot {
            hidden,
            key_stores: stores,
            ..
        } = &cx.permissions;
        Ok(GlobQuery {
            current_dir: cx.cwd.to_path_buf(),
            respect_ignore: settings.respect_ignore,
            hidden: settings.hidden,
            limit: Some(MAX_FILES),
            leave_out: leave_out(hidden, stores, &base, judged.as_deref()),
            authorized_path: judged,
            ..GlobQuery::new(&self.pattern, base)
        })
    }
}

pub(crate) struct Glob;

impl Tool for Glob {
    type Input = Input;
    const NAME: &'static str = "Glob";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            never_deferred: true,
            result_cap: None,
            output_schema: Some(output_schema()),
            ..profile("find files by name pattern")
        }
    }

    /// Moves the directory part of a pattern that is absolute or starts with `../` or `~/` into
    /// `path`, because permission is checked for `path`.
    fn backfill(&self, input: &mut Value) {
        fill_path(input);
        if let (Some(pattern), Some(path)) = (input["pattern"].as_str(), input["path"].as_str())
            && let Some((path, pattern)) = place_in_path(pattern, path)
        {
            input["path"] = Value::from(path);
            input["pattern"] = Value::from(pattern);
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        // Ignore files in any ancestor directory affect the result.
        Effects::READS
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        let query = input.query(
            cx,
            &GlobSettings::from_environment(|name| env::var(name).ok()),
        )?;
        ask(cx, move |engine| engine.check_glob(&query))
            .await?
            .map(|()| CheckOutcome::Pass)
            .map_err(ToolError::Refused)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let settings = GlobSettings::from_environment(|name| env::var(name).ok());
        let query = input.query(cx, &settings)?;
        let stop = stop(cx, settings.timeout);
        let begun = Instant::now();
        let report = ask(cx, move |engine| engine.glob(&query, &stop))
            .await?
            .map_err(ToolError::Failed)?;
        let timed_out = timed_out(report.completion)?;
        let mut lines = rows(&report, &cx.cwd);
        lines.extend(caveats(
            &report.skipped,
            &cx.cwd,
            timed_out,
            settings.timeout,
        ));
        let names = report.paths.iter().map(|path| path.to_string_lossy());
        let mut structured = json!({
            "durationMs": begun.elapsed().as_millis() as u64,
            "numFiles": report.paths.len(),
            "filenames": names.collect::<Vec<_>>(),
            "truncated": report.truncated,
            "totalMatches": report.total,
            "countIsComplete": report.completion == SearchCompletion::Complete,
        });
        if timed_out {
            structured["timedOut"] = json!(true);
        }
        Ok(ToolOutput::text(lines.join("\n")).with_structured(structured))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let subject = match &input.path {
            Some(path) => format!("{} in {}", input.pattern, path.display()),
            None => input.pattern.clone(),
        };
        Some(Card::new(Self::NAME, subject))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let total = output.structured.as_ref()?["totalMatches"].as_u64()?;
        let text = output.content.first()?.as_text()?.to_owned();
        let card = self.render_use(input)?.with_summary(counted(total, "file"));
        Some(card.with(CardSection::Text(text)))
    }
}

/// Splits a pattern that is an absolute path or starts with `../` or `~/`. The path may be
/// relative; the caller resolves `..` in it.
fn place_in_path(pattern: &str, path: &str) -> Option<(String, String)> {
    if let Some(rest) = pattern.strip_prefix("~/") {
        return Some(("~".to_owned(), format!("./{rest}")));
    }
    let (base, rest) = split_pattern(pattern, Path::new("/"));
    if Path::new(pattern).is_absolute() {
        return Some((base.to_str()?.to_owned(), rest));
    }
    // Below `/` every `../` leads to `/` again; the part that was removed from the pattern shows
    // how many there are.
    let climbs = pattern.len().checked_sub(rest.strip_prefix("./")?.len())?;
    let up = pattern[..climbs].split('/').filter(|part| *part == "..");
    let climbed = up.fold(PathBuf::from(path), |path, part| path.join(part));
    (rest != pattern).then(|| Some((climbed.to_str()?.to_owned(), rest)))?
}

fn rows(report: &GlobReport, cwd: &Path) -> Vec<String> {
    if report.paths.is_empty() {
        return vec!["No files found".to_owned()];
    }
    let mut rows: Vec<String> = report.paths.iter().map(|path| shown(path, cwd)).collect();
    if report.truncated {
        let total = match report.completion {
            SearchCompletion::Complete => format!("{}", report.total),
            SearchCompletion::Stopped(_) => format!("at least {}", report.total),
        };
        rows.push(format!(
            "(truncated: the newest {} of {total} files; use a narrower pattern or path for the rest)",
            report.paths.len()
        ));
    }
    rows
}

/// Returns the schema of the structured output.
fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "durationMs": {"type": "integer"},
            "numFiles": {"type": "integer"},
            "filenames": {"type": "array", "items": {"type": "string"}},
            "truncated": {"type": "boolean"},
            "totalMatches": {"type": "integer"},
            "countIsComplete": {"type": "boolean"},
            "timedOut": {"type": "boolean"},
        },
        "required": ["durationMs", "numFiles", "filenames", "truncated", "totalMatches", "countIsComplete"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_to_look_moves_from_the_pattern_into_the_path() {
        let cases = [
            // (pattern, path, path and pattern after)
            ("*.rs", ".", None),
            ("./*.rs", ".", None),
            ("src/../x", ".", None),
            ("/etc/*.conf", "src", Some(("/etc/", "./*.conf"))),
            ("../*.rs", ".", Some(("./..", "./*.rs"))),
            ("../../a/*.rs", "/w/x", Some(("/w/x/../..", "./a/*.rs"))),
            ("./../a", "src", Some(("src/..", "./a"))),
            (".././../a", "src", Some(("src/../..", "./a"))),
            ("~/notes/*.md", ".", Some(("~", "./notes/*.md"))),
        ];
        for (pattern, path, expected) in cases {
            let expected = expected.map(|(path, rest)| (path.to_owned(), rest.to_owned()));
            assert_eq!(place_in_path(pattern, path), expected, "{pattern}");
            if let Some((path, rest)) = expected {
                assert_eq!(
                    place_in_path(&rest, &path),
                    None,
                    "{pattern}: filled in twice"
                );
            }
        }
    }

    #[test]
    fn the_surroundings_may_say_otherwise() {
        let standard = GlobSettings::from_environment(|_| None);
        assert!(standard.respect_ignore && standard.hidden);
        assert_eq!(standard.timeout, Duration::from_secs(20));
        let settings = GlobSettings::from_environment(|name| {
            let value = match name {
                "CLAUDE_CODE_GLOB_NO_IGNORE" => "true",
                "CLAUDE_CODE_GLOB_HIDDEN" => "False",
                "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS" => "1.5",
                _ => return None,
            };
            Some(value.to_owned())
        });
        assert!(!settings.respect_ignore && !settings.hidden);
        assert_eq!(settings.timeout, Duration::from_millis(1500));
        let odd = GlobSettings::from_environment(|_| Some("-3".to_owned()));
        assert_eq!(odd.timeout, WSL_TIMEOUT);
    }
}
