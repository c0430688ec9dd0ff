//! `ReplaceInFiles`: one change in many files, with a preview, applied to all files or to none.

mod plans;
mod preview;
mod regex_pattern;
mod rewrite;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use haft_contract::{
    CallContext, Card, CheckOutcome, Effects, PermissionSnapshot, ProgressUpdate, Services, Tool,
    ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use haft_journal::{FileTarget, Journal, PlannedChange};
use haft_search::{GrepMatches, GrepMode, GrepQuery, SearchEngine, split_globs};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use self::{
    plans::{PlannedContent, ReplacePlan},
    preview::{ReplacePreview, SkippedFile},
    rewrite::FileRewrite,
};
use super::{EDITS, editor, explain, is_notebook, profile, target, ticket};
use crate::{
    blocking::blocking,
    paths::{fill_path, path_constraint, shown},
    plural::counted,
    search::{leave_out, stop, timed_out},
};

/// The maximum file size, in bytes; larger files are listed as skipped.
const MAX_SIZE: u64 = 50 << 20;
/// The time limit of the search for files.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// Replaces a text or a regular expression in many files, in one step.
///
/// - Call it with `pattern` and `replacement` first: it changes nothing, shows every file with its
///   diff, and returns a `plan_id`. Call it again with only that `plan_id` to apply the plan.
/// - If any of the files has changed in between, nothing at all is written.
/// - The pattern is literal unless `regex` is set; then `$1` and `${name}` in the replacement are
///   groups and `$$` is a dollar sign. It matches what Grep matches; `^` and `$` match at lines.
/// - Ignored, binary, read-only and very large files and notebooks are skipped and listed.
/// - Undo reverts the changes of all files together. For a single file, Edit is simpler.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The text to find, or with `regex` the Rust regular expression.
    #[serde(default)]
    pattern: Option<String>,
    /// The replacement text; may be empty.
    #[serde(default)]
    replacement: Option<String>,
    /// Interpret the pattern as a regular expression.
    #[serde(default)]
    regex: bool,
    /// With `regex`: a match may span lines, and `.` matches line breaks too.
    #[serde(default)]
    multiline: bool,
    /// The file or directory to work in; the working directory if left out.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Only files that match, such as `*.ts` or `src/**/*.rs`; several separated by spaces or commas.
    #[serde(default)]
    glob: Option<String>,
    /// Skip files that match; several separated by spaces or commas.
    #[serde(default)]
    exclude: Option<String>,
    /// `false` makes the change immediately, without a preview.
    #[serde(default = "yes")]
    preview: bool,
    /// Applies the plan of an earlier preview; no other parameter may be set with it.
    #[serde(default)]
    plan_id: Option<String>,
}

fn yes() -> bool {
    true
}

/// The requested action.
enum ReplaceAction<'a> {
    Plan {
        id: &'a str,
    },
    Search {
        pattern: &'a str,
        replacement: &'a str,
    },
}

impl Input {
    fn wish(&self) -> Result<ReplaceAction<'_>, String> {
        match (&self.plan_id, &self.pattern, &self.replacement) {
            (Some(id), None, None) => Ok(ReplaceAction::Plan { id }),
            (Some(_), _, _) => Err(
                "`plan_id` applies a plan exactly as shown: omit `pattern` and `replacement`"
                    .to_owned(),
            ),
            (None, Some(pattern), _) if pattern.is_empty() => {
                Err("`pattern` is empty: name the text to replace".to_owned())
            }
            (None, Some(pattern), Some(replacement)) => Ok(ReplaceAction::Search {
                pattern,
                replacement,
            }),
            (None, _, _) => {
                Err("set `pattern` and `replacement`, or the `plan_id` of a preview".to_owned())
            }
        }
    }

    fn rewrite(&self, pattern: &str, replacement: &str) -> Result<FileRewrite, String> {
        if !self.regex {
            return Ok(FileRewrite::literal(pattern, replacement));
        }
        FileRewrite::regex(pattern, replacement, self.multiline).map_err(|error| error.to_string())
    }

    fn base(&self, cwd: &Path) -> PathBuf {
        self.path
            .as_ref()
            .map_or_else(|| cwd.to_path_buf(), |path| cwd.join(path))
    }

    fn query(&self, rewrite: &FileRewrite, cx: &CallContext) -> Result<GrepQuery, ToolError> {
        let cwd: &Path = &cx.cwd;
        let base = self.base(cwd);
        let mut globs = self.glob.as_deref().map(split_globs).unwrap_or_default();
        let excluded = self.exclude.as_deref().map(split_globs).unwrap_or_default();
        globs.extend(excluded.into_iter().map(|glob| format!("!{glob}")));
        let judged = path_constraint(&base, cx)?;
        let PermissionSnapshot {
            locked,
            key_stores: stores,
            ..
        } = &cx.permissions;
        // For a plan each file is checked separately; a direct change was permitted as a whole.
        let control = &cx.permissions.control;
        let whole = judged.as_deref().unwrap_or(&base);
        let locked = match !self.preview && !control.hides(whole) {
            true => locked.union(control),
            false => locked.clone(),
        };
        Ok(GrepQuery {
            current_dir: cwd.to_path_buf(),
            globs,
            mode: GrepMode::FilesWithMatches,
            multiline: rewrite.spans_lines(),
            leave_out: leave_out(&locked, stores, &base, judged.as_deref()),
            authorized_path: judged,
            ..GrepQuery::new(rewrite.search_pattern(), base)
        })
    }
}

pub(crate) use self::plans::ReplacePlans;

/// A change of a file that another tool requests: a new content, creation, move or removal.
#[cfg(feature = "code")]
pub(crate) struct PlannedFileChange {
    pub(crate) path: PathBuf,
    /// The present content; `None` if it is new.
    pub(crate) old: Option<Vec<u8>>,
    /// The new content; `None` if it is removed.
    pub(crate) new: Option<Vec<u8>>,
    /// The number of changed places.
    pub(crate) places: usize,
    /// The file that is moved here; it is removed under its old name.
    pub(crate) moved_from: Option<PathBuf>,
}

/// Previews changes that another tool computed, and stores them as a plan for this tool.
#[cfg(feature = "code")]
pub(crate) fn keep_plan(
    plans: &ReplacePlans,
    id: &str,
    wanted: Vec<PlannedFileChange>,
    cwd: &Path,
) -> ToolOutput {
    let mut preview = ReplacePreview {
        matching: wanted.len(),
        ..ReplacePreview::default()
    };
    let origins: HashMap<PathBuf, Vec<u8>> = wanted
        .iter()
        .filter_map(|one| Some((one.path.clone(), one.old.clone()?)))
        .collect();
    let mut files = Vec::new();
    for one in wanted {
        preview
            .files
            .extend(preview::PreviewedFile::from_planned(&one, &origins));
        let content = match one.new {
            Some(bytes) => PlannedContent::Whole {
                bytes: bytes.into(),
                places: one.places,
                moved_from: one.moved_from,
            },
            None => PlannedContent::Nothing,
        };
        files.push(plans::PlannedFile {
            path: one.path,
            hash: one.old.as_deref().map(haft_journal::ContentHash::compute),
            content,
        });
    }
    preview.leave_out_moved();
    let shown = preview.output(id, cwd);
    plans.store(ReplacePlan {
        id: id.to_owned(),
        rewrite: None,
        files,
    });
    shown
}

#[derive(Default)]
pub(crate) struct ReplaceInFiles {
    plans: std::sync::Arc<ReplacePlans>,
}

impl Tool for ReplaceInFiles {
    type Input = Input;
    const NAME: &'static str = "ReplaceInFiles";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            aliases: vec!["FileSearch".into()],
            deferred: true,
            rules: EDITS,
            ..profile(
                ToolAccess::Paths,
                &["path"],
                "search and replace rename across many files",
            )
        }
    }

    fn for_session(&self, services: &Services) -> Option<Self> {
        // Other tools create plans, too.
        let plans = services.get::<ReplacePlans>().ok()?;
        Some(Self { plans })
    }

    fn backfill(&self, input: &mut Value) {
        if input.get("plan_id").is_none_or(Value::is_null) {
            fill_path(input);
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        match input.wish() {
            Ok(ReplaceAction::Plan { id }) => match self.plans.find(id) {
                Some(plan) => Effects::writing(plan.files.into_iter().map(|file| file.path)),
                None => Effects::NONE,
            },
            Ok(ReplaceAction::Search { .. }) if !input.preview => match &input.path {
                Some(path) => Effects::writing([path.clone()]),
                None => Effects::EXCLUSIVE,
            },
            _ => Effects::READS,
        }
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        match input.wish().map_err(ToolError::Refused)? {
            ReplaceAction::Plan { id } if self.plans.find(id).is_none() => {
                Err(ToolError::Refused(format!(
                    "no plan has the id {id}: it was applied, or belongs to another session. Make a new \
                 preview."
                )))
            }
            ReplaceAction::Plan { .. } => Ok(CheckOutcome::Pass),
            ReplaceAction::Search {
                pattern,
                replacement,
            } => {
                let rewrite = input
                    .rewrite(pattern, replacement)
                    .map_err(ToolError::Refused)?;
                let engine = cx.services.get::<SearchEngine>()?;
                engine
                    .check_grep(&input.query(&rewrite, cx)?)
                    .map(|()| CheckOutcome::Pass)
                    .map_err(|error| ToolError::Refused(error.to_string()))
            }
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        match input.wish().map_err(ToolError::Refused)? {
            ReplaceAction::Plan { id } => {
                let plan = self.plans.find(id).ok_or_else(|| {
                    ToolError::Failed(format!("no plan has the id {id}: make a new preview"))
                })?;
                let applied = self.carry_out(plan, cx).await?;
                self.plans.remove(id);
                Ok(applied)
            }
            ReplaceAction::Search {
                pattern,
                replacement,
            } => {
                let rewrite = input
                    .rewrite(pattern, replacement)
                    .map_err(ToolError::Refused)?;
                let preview = build_preview(input, &rewrite, cx).await?;
                let plan = ReplacePlan {
                    id: cx.call.to_string(),
                    rewrite: Some(rewrite),
                    files: preview.planned(),
                };
                if input.preview || plan.files.is_empty() {
                    let shown = preview.output(&plan.id, &cx.cwd);
                    if !plan.files.is_empty() {
                        self.plans.store(plan);
                    }
                    return Ok(shown);
                }
                self.carry_out(plan, cx).await
            }
        }
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(match input.wish() {
            Ok(ReplaceAction::Search {
                pattern,
                replacement,
            }) => Card::new("Replace in files", format!("{pattern} → {replacement}")),
            Ok(ReplaceAction::Plan { id }) => {
                let files = self.plans.find(id).map_or(0, |plan| plan.files.len());
                Card::new("Replace in files", format!("plan {id}"))
                    .with_summary(counted(files as u64, "file"))
            }
            Err(_) => Card::new("Replace in files", String::new()),
        })
    }
}

impl ReplaceInFiles {
    /// Applies the plan to all of its files, or to none.
    async fn carry_out(
        &self,
        plan: ReplacePlan,
        cx: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let files = plan.files.iter().map(|file| file.path.clone());
        editor::refuse_any_unsaved(files.collect(), cx).await?;
        let journal = cx.services.get::<Journal>()?;
        let (ticket, cwd, cx) = (ticket(Self::NAME, cx), cx.cwd.clone(), cx.clone());
        blocking(move || {
            let mut changes = Vec::new();
            let mut places = 0;
            for file in &plan.files {
                let mut target = target(&file.path, &cx).map_err(|error| error.to_string())?;
                let mut like = None;
                let content = match &file.content {
                    PlannedContent::Rewritten => {
                        let raw = journal
                            .read_bytes(target, MAX_SIZE)
                            .map_err(|error| explain(error, &cwd))?;
                        target = FileTarget::authorized(&file.path, raw.real);
                        // If the bytes changed since the preview, their hash no longer matches,
                        // which is an error below.
                        let rewrite = plan.rewrite.as_ref();
                        let new = rewrite.map(|rewrite| rewrite.apply(&raw.bytes).unwrap_or_default());
                        let Some(new) = new.flatten() else {
                            return Err(format!(
                                "{} has been modified since the preview: nothing was changed. Make a \
                                 new preview.",
                                shown(&file.path, &cwd)
                            ));
                        };
                        places += new.places;
                        Some(new.bytes)
                    }
                    PlannedContent::Whole {
                        bytes,
                        places: own,
                        moved_from,
                    } => {
                        places += own;
                        like.clone_from(moved_from);
                        Some(bytes.to_vec())
                    }
                    PlannedContent::Nothing => None,
                };
                changes.push(PlannedChange {
                    target,
                    expected: file.hash,
                    content,
                    like,
                });
            }
            journal.apply_plan(&ticket, changes).map_err(|error| {
                format!(
                    "{}\nNothing was changed. Make a new preview.",
                    explain(error, &cwd)
                )
            })?;
            Ok(preview::applied(&plan, places, &ticket.call, &cwd))
        })
        .await?
        .map_err(ToolError::Failed)
    }
}

/// Finds the matching files and computes the change of each.
async fn build_preview(
    input: &Input,
    rewrite: &FileRewrite,
    cx: &CallContext,
) -> Result<ReplacePreview, ToolError> {
    let engine = cx.services.get::<SearchEngine>()?;
    let journal = cx.services.get::<Journal>()?;
    let query = input.query(rewrite, cx)?;
    let is_shown = input.preview;
    let (rewrite, stop, cx) = (rewrite.clone(), stop(cx, TIMEOUT), cx.clone());
    blocking(move || {
        let report = engine
            .grep(&query, &stop)
            .map_err(|error| ToolError::Failed(error.to_string()))?;
        if timed_out(report.completion)? {
            return Err(ToolError::TimedOut(TIMEOUT));
        }
        let GrepMatches::Files(mut files) = report.found else {
            return Ok(ReplacePreview::default());
        };
        files.sort_unstable();
        let mut preview = ReplacePreview {
            matching: files.len(),
            ..ReplacePreview::default()
        };
        // A file with two names is changed once.
        let mut names: HashMap<(u64, u64), String> = HashMap::new();
        let total = Some(files.len() as u64);
        for (done, path) in (1..).zip(files) {
            if cx.cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            match target(&path, &cx)
                .map_err(|error| error.to_string())
                .and_then(|target| {
                    one_file(&journal, &rewrite, target, is_shown, &mut names, &cx.cwd)
                }) {
                Ok(Some(file)) => preview.files.push(file),
                Ok(None) => {}
                Err(reason) => preview.skipped.push(SkippedFile { path, reason }),
            }
            cx.progress.report(ProgressUpdate::Step { done, total });
        }
        preview.skipped_by_search(&report.skipped);
        Ok(preview)
    })
    .await?
}

fn one_file(
    journal: &Journal,
    rewrite: &FileRewrite,
    target: FileTarget,
    is_shown: bool,
    names: &mut HashMap<(u64, u64), String>,
    cwd: &Path,
) -> Result<Option<preview::PreviewedFile>, String> {
    let path = target.path().to_path_buf();
    if is_notebook(&path) {
        return Err("a notebook: change its cells with NotebookEdit".to_owned());
    }
    let raw = journal
        .read_bytes(target, MAX_SIZE)
        .map_err(|error| error.to_string())?;
    if raw.mode() & 0o222 == 0 {
        return Err("read-only".to_owned());
    }
    if let Some(first) = names.get(&raw.identity()) {
        return Err(format!(
            "the same file as {first} (a hard link), and changed with it"
        ));
    }
    names.insert(raw.identity(), shown(&path, cwd));
    let new = rewrite.apply(&raw.bytes)?;
    Ok(new.map(|new| preview::PreviewedFile::new(path, &raw.bytes, &new, is_shown)))
}
