//! Changes proposed by a server, as a plan that `ReplaceInFiles` applies completely or not at all.

use std::path::Path;

use haft_contract::{ToolError, ToolOutput};
use haft_lsp::{
    PlannedEdits,
    types::{CodeAction, LspRange},
    uri,
};
use serde_json::{Value, json};

use super::{planned_files, queries::ServerQuery};
use crate::{
    blocking::blocking,
    fs::{ReplacePlans, keep_plan},
};

impl ServerQuery<'_> {
    /// Plans the renaming of the symbol at a location.
    pub(crate) async fn rename(&self, params: Value, name: &str) -> Result<ToolOutput, ToolError> {
        self.require_capability("renameProvider", "renaming")?;
        let failed = |text: String| ToolError::Failed(format!("Nothing to rename: {text}"));
        let mut asked = params;
        asked["newName"] = json!(name);
        let edit = match self.send_request("textDocument/rename", asked).await {
            Ok(edit) => edit,
            Err(ToolError::Failed(text)) => return Err(failed(text)),
            Err(error) => return Err(error),
        };
        self.plan(&edit)
            .await?
            .ok_or_else(|| failed(format!("{} returned no location.", self.server.entry.name)))
    }

    /// Lists the code actions at a location, numbered from 1, or plans the chosen one. Actions that
    /// would run a command are only listed.
    pub(crate) async fn code_actions(
        &self,
        path: &Path,
        line: u32,
        action: Option<usize>,
    ) -> Result<ToolOutput, ToolError> {
        self.require_capability("codeActionProvider", "code actions")?;
        let actions = self.offered(path, line).await?;
        let Some(number) = action else {
            return Ok(ToolOutput::text(list(&actions, &self.server.entry.name)));
        };
        let chosen = number.checked_sub(1).and_then(|index| actions.get(index));
        let Some(chosen) = chosen else {
            return Err(ToolError::Failed(format!(
                "Action {number} does not exist: {} are offered.",
                actions.len()
            )));
        };
        let mut edit = chosen.edit.clone();
        if edit.is_none() && chosen.raw.get("data").is_some() {
            let resolved = self
                .send_request("codeAction/resolve", chosen.raw.clone())
                .await?;
            edit = resolved.get("edit").cloned();
        }
        let Some(edit) = edit else {
            return Err(ToolError::Failed(format!(
                "\"{}\" runs a command of the server, which is not supported.",
                chosen.title
            )));
        };
        let nothing = || ToolError::Failed(format!("\"{}\" changes nothing.", chosen.title));
        self.plan(&edit).await?.ok_or_else(nothing)
    }

    async fn offered(&self, path: &Path, line: u32) -> Result<Vec<CodeAction>, ToolError> {
        let document = self.client.document(path);
        let problems = document.map(|document| document.report.problems);
        let here = problems.iter().flat_map(|problems| problems.iter());
        let here = here
            .filter(|problem| (problem.range.start.line..=problem.range.end.line).contains(&line));
        let problems: Vec<&Value> = here.clone().map(|problem| &problem.raw).collect();
        // A fix is offered for the range of its problem.
        let range = here.map(|problem| problem.range).next().unwrap_or_else(|| {
            let mut range = LspRange::default();
            (range.start.line, range.end.line) = (line, line);
            range
        });
        let params = json!({
            "textDocument": {"uri": uri::from_path(path)},
            "range": range,
            "context": {"diagnostics": problems},
        });
        let answer = self.send_request("textDocument/codeAction", params).await?;
        let items = answer.as_array().into_iter().flatten();
        let actions = items.filter_map(|item| {
            let mut action: CodeAction = serde_json::from_value(item.clone()).ok()?;
            action.raw = item.clone();
            Some(action)
        });
        Ok(actions.collect())
    }

    /// Shows a planned change and stores it; `None` if it changes nothing.
    async fn plan(&self, edit: &Value) -> Result<Option<ToolOutput>, ToolError> {
        let refused = |text: &str| ToolError::Failed(format!("The whole plan is refused: {text}."));
        let edits =
            PlannedEdits::parse(edit).ok_or_else(|| refused("the change cannot be read"))?;
        if edits.is_empty() {
            return Ok(None);
        }
        let (client, cx) = (self.client.clone(), self.cx.clone());
        let wanted = blocking(move || planned_files::simulate_plan(&edits, &client, &cx)).await?;
        let wanted = wanted.map_err(|text| refused(&text))?;
        if wanted.is_empty() {
            return Ok(None);
        }
        let plans = self.cx.services.get::<ReplacePlans>()?;
        let id = self.cx.call.to_string();
        Ok(Some(keep_plan(&plans, &id, wanted, &self.cx.cwd)))
    }
}

fn list(actions: &[CodeAction], server: &str) -> String {
    if actions.is_empty() {
        return format!("{server} offers no actions here.");
    }
    let lines = actions.iter().enumerate().map(|(index, action)| {
        let can = action.edit.is_some() || action.raw.get("data").is_some();
        let note = match (&action.disabled, can) {
            (Some(_), _) => " (not possible here)",
            (None, true) => "",
            (None, false) => " (not available: it runs a command of the server)",
        };
        format!("{} {}{note}", index + 1, action.title)
    });
    lines.collect::<Vec<_>>().join("\n")
}
