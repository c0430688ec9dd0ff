//! The session interface of views. All methods may block, so they must be called in jobs.

use std::path::PathBuf;

use haft::{RuleList, RuleScope};
use haft_host::{
    RewindKind, RewindPoint, RuleInfo, RunningTask, SessionInput, UndoEntry, UndoReport, UndoWhich,
};
use serde_json::json;
use uuid::Uuid;

/// The session of a view.
pub(crate) trait ViewSession: Send + Sync {
    fn undo_list(&self) -> Result<Vec<UndoEntry>, String>;
    fn undo(&self, which: &UndoWhich, preview: bool) -> Result<UndoReport, String>;
    fn rewind_points(&self) -> Result<Vec<RewindPoint>, String>;
    fn rewind_to(&self, point: Uuid, kind: RewindKind);
    fn tasks(&self) -> Vec<RunningTask>;
    fn task_output(&self, id: &str) -> Result<String, String>;
    fn stop_task(&self, id: &str) -> Result<(), String>;
    fn rules(&self) -> Result<Vec<RuleInfo>, String>;
    fn save_rule(&self, list: RuleList, rule: &str) -> Result<Option<PathBuf>, String>;
    fn remove_rule(&self, rule: &RuleInfo) -> Result<PathBuf, String>;
    /// Explains the permission decision about a command line.
    fn explain(&self, command: &str) -> Result<String, String>;
}

impl ViewSession for SessionInput {
    fn undo_list(&self) -> Result<Vec<UndoEntry>, String> {
        self.undo_list()
    }

    fn undo(&self, which: &UndoWhich, preview: bool) -> Result<UndoReport, String> {
        self.undo(which, preview)
    }

    fn rewind_points(&self) -> Result<Vec<RewindPoint>, String> {
        self.rewind_points()
    }

    fn rewind_to(&self, point: Uuid, kind: RewindKind) {
        self.rewind_to(point, kind);
    }

    fn tasks(&self) -> Vec<RunningTask> {
        self.tasks()
    }

    fn task_output(&self, id: &str) -> Result<String, String> {
        self.task_output(id)
    }

    fn stop_task(&self, id: &str) -> Result<(), String> {
        self.stop_task(id)
    }

    fn rules(&self) -> Result<Vec<RuleInfo>, String> {
        self.rules()
    }

    fn save_rule(&self, list: RuleList, rule: &str) -> Result<Option<PathBuf>, String> {
        self.save_rule(list, rule, RuleScope::Local)
    }

    fn remove_rule(&self, rule: &RuleInfo) -> Result<PathBuf, String> {
        if rule.is_timed && self.end_timed_rule(&rule.rule) {
            return Ok(PathBuf::from("this session"));
        }
        let scopes = [
            RuleScope::Session,
            RuleScope::Local,
            RuleScope::Project,
            RuleScope::User,
        ];
        let scope = scopes.into_iter().find(|scope| scope.name() == rule.scope);
        let scope = scope.ok_or_else(|| format!("rules of {} stay where they are", rule.scope))?;
        self.remove_rule(rule.list, &rule.rule, scope)
    }

    fn explain(&self, command: &str) -> Result<String, String> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?;
        runtime.block_on(self.explain("Bash", json!({ "command": command })))
    }
}
