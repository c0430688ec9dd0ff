//! `LSP`: queries language servers.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use haft_contract::{
    CallContext, Card, CheckOutcome, Effects, ServiceNeed, Tool, ToolAccess, ToolError, ToolOutput,
    ToolProfile,
};
use haft_lsp::LspClient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    LanguageServerSetup,
    queries::{ServerQuery, locate},
    render,
    server::{LanguageServer, LanguageServerState},
    servers::{LanguageServers, text_of},
};
use crate::{blocking::blocking, paths::shown};

const NEEDS: [ServiceNeed; 1] = [ServiceNeed::service::<LanguageServerSetup>()];
/// The time to wait for a server that is starting.
const START: Duration = Duration::from_secs(30);
/// The maximum time for a server to analyze a document before it is queried.
const FIRST_ANALYSIS_TIMEOUT: Duration = Duration::from_secs(25);

/// Queries the language server of a file. New problems after your edits are reported automatically.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The request.
    operation: Operation,
    /// The file. For `workspaceSymbol`, any file of the language. Without it, `diagnostics` covers all open files.
    #[serde(default)]
    file_path: Option<PathBuf>,
    /// 1-based, as Read shows it.
    #[serde(default)]
    line: Option<usize>,
    /// 1-based character in the line.
    #[serde(default)]
    character: Option<usize>,
    /// The name of the symbol, which is found even if `character` is slightly wrong.
    #[serde(default)]
    symbol: Option<String>,
    /// For `workspaceSymbol`.
    #[serde(default)]
    query: Option<String>,
    /// For `rename`, which changes no file: it shows a plan that ReplaceInFiles applies by its `plan_id`.
    #[serde(default)]
    new_name: Option<String>,
    /// For `codeActions`: the number of an action, to get its plan.
    #[serde(default)]
    action: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Operation {
    GoToDefinition,
    GoToImplementation,
    FindReferences,
    Hover,
    DocumentSymbol,
    WorkspaceSymbol,
    PrepareCallHierarchy,
    IncomingCalls,
    OutgoingCalls,
    Diagnostics,
    Rename,
    CodeActions,
    Restart,
}

impl Operation {
    fn needs_place(self) -> bool {
        !matches!(
            self,
            Self::DocumentSymbol | Self::WorkspaceSymbol | Self::Diagnostics | Self::Restart
        )
    }

    fn asks_about_code(self) -> bool {
        !matches!(self, Self::Diagnostics | Self::CodeActions | Self::Restart)
    }

    fn name(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|name| name.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

#[derive(Debug)]
pub(crate) struct Lsp;

impl Tool for Lsp {
    type Input = Input;
    const NAME: &'static str = "LSP";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "code".into(),
            search_hint: "language server definition references symbols types diagnostics".into(),
            deferred: true,
            access: ToolAccess::Reads,
            paths: &["filePath"],
            needs: &NEEDS,
            timeout: Some(Duration::from_secs(120)),
            ..ToolProfile::default()
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        match &input.file_path {
            Some(path) => Effects::reading([path.clone()]),
            None => Effects::NONE,
        }
    }

    async fn check(&self, input: &Input, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        let refused = |text: &str| Err(ToolError::Refused(text.to_owned()));
        if input.file_path.is_none() && input.operation != Operation::Diagnostics {
            return refused("`filePath` is missing: name a file of the language");
        }
        if input.operation.needs_place() && input.line.is_none() {
            return refused("`line` is missing: 1-based, as Read shows it");
        }
        if input.operation == Operation::Rename && input.new_name.is_none() {
            return refused("`newName` is missing");
        }
        if input.operation.needs_place()
            && input.operation != Operation::CodeActions
            && input.character.is_none()
            && input.symbol.is_none()
        {
            return refused("set `character`, or the name as `symbol`");
        }
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let servers = cx.services.get::<LanguageServers>()?;
        let Some(path) = &input.file_path else {
            return Ok(ToolOutput::text(all_problems(&servers, cx)));
        };
        let path = cx.cwd.join(path);
        let real = path.clone();
        let read = blocking(move || {
            let real = real.canonicalize()?;
            let text = text_of(&real)?;
            Ok::<_, std::io::Error>((real, text))
        });
        let cannot = |error: &dyn std::fmt::Display| {
            ToolError::Failed(format!("{} cannot be read: {error}", shown(&path, &cx.cwd)))
        };
        let (path, text) = read.await?.map_err(|error| cannot(&error))?;
        let text = text.ok_or_else(|| cannot(&"it is not UTF-8 text of at most 2 MB"))?;
        let server = servers
            .server(&path)
            .map_err(|none| ToolError::Failed(none.to_string()))?;
        if input.operation == Operation::Restart {
            server.restart();
        }
        let client = tokio::select! {
            ready = server.ready(START) => ready.map_err(ToolError::Failed)?,
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
        };
        if input.operation == Operation::Restart {
            return Ok(ToolOutput::text(format!(
                "{} was restarted.",
                server.entry.name
            )));
        }
        let language = server.entry.language(&path).unwrap_or_default();
        let inquiry = ServerQuery {
            server: &server,
            client: &client,
            cx,
            within: servers.setup.answer_within,
        };
        client
            .set_text(&path, language, &text)
            .map_err(|_| ToolError::Failed(format!("{} died; try again.", server.entry.name)))?;
        refresh(&client, &server).await?;
        // A server that has just received its first document does not know the others yet.
        let is_new = client
            .document(&path)
            .is_none_or(|document| document.report.version.is_none());
        if is_new && input.operation.asks_about_code() && server.is_first_request(&path) {
            let until = tokio::time::Instant::now() + FIRST_ANALYSIS_TIMEOUT;
            client.wait_for_first_diagnostics(&path, until).await;
        }
        let mut note = None;
        let params = match input.operation.needs_place() {
            true => {
                let line = input.line.unwrap_or(1);
                let character = input.character.unwrap_or(0);
                let symbol = input.symbol.as_deref();
                let found = locate(&text, line, character, symbol).map_err(ToolError::Failed)?;
                note = found.note.filter(|_| input.character.is_some());
                client.position_params(&path, found.place)
            }
            false => serde_json::Value::Null,
        };
        let answer = match input.operation {
            Operation::GoToDefinition => {
                inquiry.require_capability("definitionProvider", "definitions")?;
                inquiry.places("textDocument/definition", params).await
            }
            Operation::GoToImplementation => {
                inquiry.require_capability("implementationProvider", "implementations")?;
                inquiry.places("textDocument/implementation", params).await
            }
            Operation::FindReferences => {
                inquiry.require_capability("referencesProvider", "references")?;
                inquiry.places("textDocument/references", params).await
            }
            Operation::Hover => inquiry.hover(params).await,
            Operation::DocumentSymbol => inquiry.document_symbols(&path).await,
            Operation::WorkspaceSymbol => {
                inquiry
                    .workspace_symbols(input.query.as_deref().unwrap_or_default())
                    .await
            }
            Operation::PrepareCallHierarchy => inquiry.calls(params, None).await,
            Operation::IncomingCalls => {
                inquiry
                    .calls(params, Some("callHierarchy/incomingCalls"))
                    .await
            }
            Operation::OutgoingCalls => {
                inquiry
                    .calls(params, Some("callHierarchy/outgoingCalls"))
                    .await
            }
            Operation::Diagnostics => {
                let until = tokio::time::Instant::now() + START.min(servers.setup.answer_within);
                client
                    .wait_for_diagnostics(std::slice::from_ref(&path), until)
                    .await;
                if client.is_closed() {
                    return Err(ToolError::Failed(format!(
                        "{} This call has no answer; try again.",
                        server.why_it_ended().await
                    )));
                }
                inquiry.problems(&path)
            }
            Operation::Rename => {
                let name = input.new_name.as_deref().unwrap_or_default();
                return inquiry.rename(params, name).await;
            }
            Operation::CodeActions => {
                let line = input.line.unwrap_or(1).saturating_sub(1);
                let line = u32::try_from(line).unwrap_or(u32::MAX);
                let until = tokio::time::Instant::now() + START.min(servers.setup.answer_within);
                client
                    .wait_for_diagnostics(std::slice::from_ref(&path), until)
                    .await;
                return inquiry.code_actions(&path, line, input.action).await;
            }
            Operation::Restart => Ok(String::new()),
        }?;
        Ok(ToolOutput::text(match note {
            Some(note) => format!("{note}\n{answer}"),
            None => answer,
        }))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let what = input.symbol.as_ref().or(input.query.as_ref());
        let place = input
            .file_path
            .as_ref()
            .map(|path| path.display().to_string());
        let subject = what.cloned().or(place).unwrap_or_default();
        Some(Card::new(
            "LSP",
            format!("{} {subject}", input.operation.name()),
        ))
    }
}

/// Sends the current texts of the other open documents to the server.
async fn refresh(client: &LspClient, server: &LanguageServer) -> Result<(), ToolError> {
    let open: Vec<PathBuf> = client
        .documents()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    let read = blocking(move || {
        let read = open.into_iter().map(|path| {
            let text = text_of(&path).ok().flatten();
            (path, text)
        });
        read.collect::<Vec<_>>()
    });
    for (path, text) in read.await? {
        // If the server died, the request reports it.
        let _ = match (text, server.entry.language(&path)) {
            (Some(text), Some(language)) => client.set_text(&path, language, &text).map(|_| ()),
            _ => client.close(&path),
        };
    }
    Ok(())
}

impl ServerQuery<'_> {
    /// Returns the problems of a document. "No problems" is reported only if the server has
    /// analyzed it.
    fn problems(&self, path: &Path) -> Result<String, ToolError> {
        let name = &self.server.entry.name;
        let found = problems_of(self.client, path, self.cx);
        let is_known = self
            .client
            .document(path)
            .is_some_and(|document| document.report.version.is_some());
        let text = match (is_known, found.is_empty()) {
            (true, true) => format!("{name} reports no problems."),
            (true, false) => found.join("\n"),
            (false, _) => {
                return Err(ToolError::Failed(match self.client.current_work() {
                    Some(busy) => format!("{name} is still busy with {busy}; try again."),
                    None => format!(
                        "{name} has not reported on this file yet; try again, or restart it with the \
                         operation `restart`."
                    ),
                }));
            }
        };
        Ok(match self.client.current_work() {
            Some(busy) => format!("{text}\n({name} is still busy with {busy}: there may be more.)"),
            None => text,
        })
    }
}

fn problems_of(client: &LspClient, path: &Path, cx: &CallContext) -> Vec<String> {
    let Some(document) = client.document(path) else {
        return Vec::new();
    };
    let name = shown(path, &cx.cwd);
    let problems = document.report.problems.iter().take(200);
    let lines = problems.map(|problem| {
        let at = client
            .encoding()
            .from_server(&document.text, problem.range.start);
        format!(
            "{name}:{}:{} {}",
            at.line,
            at.character,
            render::problem(problem, 500)
        )
    });
    lines.collect()
}

fn all_problems(servers: &LanguageServers, cx: &CallContext) -> String {
    let mut lines = Vec::new();
    for server in servers.started() {
        if let LanguageServerState::Ready(client) = server.state() {
            for (path, _) in client.documents() {
                if !cx.permissions.hidden.hides(&path) {
                    lines.extend(problems_of(&client, &path, cx));
                }
            }
        }
    }
    match lines.is_empty() {
        true => "No problems in the files that are open.".to_owned(),
        false => lines.join("\n"),
    }
}
