//! The operations of the tool: requests to a server and their results.

use std::{path::Path, time::Duration};

use haft_contract::{CallContext, ToolError};
use haft_lsp::{
    LspClient, LspError, TextPosition,
    position::lines,
    types::{CallItem, HierarchyCall, LspLocation, LspSymbol, hover_text, items},
};
use serde_json::{Value, json};

use super::{render, server::LanguageServer};

/// The maximum length of a hover text, in characters.
const MAX_HOVER: usize = 4000;
/// The distance from the given line within which a symbol is searched, in lines.
const NEAR: usize = 3;

/// A request to a server about a document or its workspace.
pub(crate) struct ServerQuery<'a> {
    pub(crate) server: &'a LanguageServer,
    pub(crate) client: &'a LspClient,
    pub(crate) cx: &'a CallContext,
    /// The timeout of each request.
    pub(crate) within: Duration,
}

/// The location of a symbol.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResolvedPosition {
    pub(crate) place: TextPosition,
    /// A note for the model, if the location differs from the given one.
    pub(crate) note: Option<String>,
}

/// Returns the given location or, if the symbol is not there, its location nearby.
pub(crate) fn locate(
    text: &str,
    line: usize,
    character: usize,
    symbol: Option<&str>,
) -> Result<ResolvedPosition, String> {
    let given = TextPosition { line, character };
    let as_given = |note| Ok(ResolvedPosition { place: given, note });
    let all: Vec<&str> = lines(text).collect();
    if line == 0 || line > all.len() {
        return Err(format!(
            "Line {line} does not exist: the file has {}.",
            all.len()
        ));
    }
    let Some(symbol) = symbol.filter(|symbol| !symbol.is_empty()) else {
        return as_given(None);
    };
    let here = occurrences(all[line - 1], symbol);
    let length = symbol.chars().count();
    if here
        .iter()
        .any(|at| (*at..=at + length).contains(&character))
    {
        return as_given(None);
    }
    let first = line.saturating_sub(NEAR).max(1);
    let last = (line + NEAR).min(all.len());
    let near: Vec<TextPosition> = (first..=last)
        .flat_map(|line| {
            let found = occurrences(all[line - 1], symbol).into_iter();
            found.map(move |character| TextPosition { line, character })
        })
        .collect();
    let on_line: Vec<&TextPosition> = near.iter().filter(|place| place.line == line).collect();
    let only = match (&near[..], &on_line[..]) {
        ([only], _) => Some(*only),
        (_, [only]) => Some(**only),
        _ => None,
    };
    if let Some(place) = only {
        let note = format!(
            "\"{symbol}\" is at {}:{}, not at {line}:{character}; taken from there.",
            place.line, place.character
        );
        return Ok(ResolvedPosition {
            place,
            note: Some(note),
        });
    }
    let elsewhere = all.iter().enumerate();
    let elsewhere = elsewhere.filter(|(_, text)| !occurrences(text, symbol).is_empty());
    let numbers: Vec<String> = elsewhere
        .map(|(at, _)| (at + 1).to_string())
        .take(20)
        .collect();
    Err(match numbers.len() {
        0 => format!("No \"{symbol}\" in this file."),
        1 => format!(
            "No \"{symbol}\" on line {line}; it is on line {}.",
            numbers[0]
        ),
        _ if !near.is_empty() => {
            let places = near
                .iter()
                .map(|place| format!("{}:{}", place.line, place.character));
            let places: Vec<String> = places.collect();
            format!(
                "\"{symbol}\" is not at {line}:{character} but at {}: name one of these.",
                places.join(", ")
            )
        }
        _ => format!(
            "No \"{symbol}\" on line {line}; it is on lines {}.",
            numbers.join(", ")
        ),
    })
}

/// Returns the columns, from 1, of a symbol that occurs in a line as a whole word.
fn occurrences(line: &str, symbol: &str) -> Vec<usize> {
    let is_word = |one: char| one.is_alphanumeric() || one == '_';
    let found = line.match_indices(symbol).filter(|(at, _)| {
        let before = line[..*at].chars().next_back();
        let after = line[at + symbol.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    });
    found
        .map(|(at, _)| line[..at].chars().count() + 1)
        .collect()
}

impl ServerQuery<'_> {
    /// Sends a request. If the server has died, the result is an error and not empty.
    pub(crate) async fn send_request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Value, ToolError> {
        let asking = self.client.request(method, params, self.within);
        let answer = tokio::select! {
            answer = asking => answer,
            () = self.cx.cancel.cancelled() => return Err(ToolError::Cancelled),
        };
        let name = &self.server.entry.name;
        let why = match answer {
            Ok(answer) => return Ok(answer),
            Err(LspError::Ended) => format!(
                "{} This call has no answer; try again.",
                self.server.why_it_ended().await
            ),
            Err(LspError::TimedOut(_)) => {
                let busy = self.client.current_work();
                let busy =
                    busy.map_or_else(String::new, |busy| format!("; it is busy with {busy}"));
                format!(
                    "{name} did not answer within {} s{busy}. Try again, or restart it with the operation \
                     `restart`.",
                    self.within.as_secs()
                )
            }
            Err(error) => format!("{name}: {error}"),
        };
        Err(ToolError::Failed(why))
    }

    pub(crate) fn require_capability(&self, capability: &str, what: &str) -> Result<(), ToolError> {
        match self.client.supports(capability) {
            true => Ok(()),
            false => Err(ToolError::Failed(format!(
                "{} does not offer {what}.",
                self.server.entry.name
            ))),
        }
    }

    /// Returns definitions, implementations or references.
    pub(crate) async fn places(
        &self,
        method: &str,
        mut params: Value,
    ) -> Result<String, ToolError> {
        if method == "textDocument/references" {
            params["context"] = json!({"includeDeclaration": true});
        }
        let answer = self.send_request(method, params).await?;
        let found: Vec<LspLocation> = items(&answer);
        Ok(self.list(render::places(found, self.client, self.cx), "places"))
    }

    pub(crate) async fn hover(&self, params: Value) -> Result<String, ToolError> {
        self.require_capability("hoverProvider", "hover texts")?;
        let answer = self.send_request("textDocument/hover", params).await?;
        let text = hover_text(answer.get("contents").unwrap_or(&Value::Null));
        match text.trim() {
            "" => Ok(self.describe_empty_result("text")),
            text => Ok(render::cut(text, MAX_HOVER)),
        }
    }

    pub(crate) async fn document_symbols(&self, path: &Path) -> Result<String, ToolError> {
        self.require_capability("documentSymbolProvider", "symbols of files")?;
        let params = json!({"textDocument": {"uri": haft_lsp::uri::from_path(path)}});
        let answer = self
            .send_request("textDocument/documentSymbol", params)
            .await?;
        let found: Vec<LspSymbol> = items(&answer);
        Ok(self.list(render::symbols(&found), "symbols"))
    }

    pub(crate) async fn workspace_symbols(&self, query: &str) -> Result<String, ToolError> {
        self.require_capability("workspaceSymbolProvider", "symbols of the workspace")?;
        let answer = self
            .send_request("workspace/symbol", json!({"query": query}))
            .await?;
        let found: Vec<LspSymbol> = items(&answer);
        Ok(self.list(render::workspace_symbols(&found, self.cx), "symbols"))
    }

    /// Returns the callers or the callees of the symbol at a location.
    pub(crate) async fn calls(
        &self,
        params: Value,
        method: Option<&str>,
    ) -> Result<String, ToolError> {
        self.require_capability("callHierarchyProvider", "calls")?;
        let prepared = self
            .send_request("textDocument/prepareCallHierarchy", params)
            .await?;
        let Some(method) = method else {
            let found: Vec<CallItem> = items(&prepared);
            let places = found.into_iter().map(|item| LspLocation {
                uri: item.uri,
                range: item.selection_range,
            });
            return Ok(self.list(
                render::places(places.collect(), self.client, self.cx),
                "callables",
            ));
        };
        let mut places = Vec::new();
        for item in prepared.as_array().into_iter().flatten().take(5) {
            let own = item
                .get("uri")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let answer = self.send_request(method, json!({"item": item})).await?;
            for call in items::<HierarchyCall>(&answer) {
                // The ranges are in the file of the caller.
                let uri = match method {
                    "callHierarchy/incomingCalls" => call.item.uri.clone(),
                    _ => own.clone(),
                };
                let ranges = call.from_ranges.into_iter();
                places.extend(ranges.map(|range| LspLocation {
                    uri: uri.clone(),
                    range,
                }));
            }
        }
        Ok(self.list(render::places(places, self.client, self.cx), "calls"))
    }

    fn list(&self, found: Vec<String>, what: &str) -> String {
        match found.is_empty() {
            true => self.describe_empty_result(what),
            false => found.join("\n"),
        }
    }

    /// Reports an empty result, with the name of the server and whether it may know more later.
    fn describe_empty_result(&self, what: &str) -> String {
        let name = &self.server.entry.name;
        match self.client.current_work() {
            Some(busy) => {
                format!("{name} found no {what}, but is still busy with {busy}: try again.")
            }
            None => format!("{name} found no {what}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_near_where_it_was_said_to_be() {
        let text = "def greet(s):\n    return s\n\nx = greet(1)\ny = 2\n";
        let at = |line, character, symbol| locate(text, line, character, symbol);
        let exact = at(4, 5, Some("greet")).unwrap();
        assert_eq!(exact.note, None);
        let moved = at(4, 1, Some("greet")).unwrap();
        assert_eq!(
            moved.place,
            TextPosition {
                line: 4,
                character: 5
            }
        );
        assert!(moved.note.is_some());
        let below = at(5, 1, Some("x")).unwrap();
        assert_eq!(below.place.line, 4);
        assert_eq!(
            at(1, 1, Some("y")).unwrap_err(),
            "No \"y\" on line 1; it is on line 5."
        );
        assert_eq!(at(1, 1, Some("zz")).unwrap_err(), "No \"zz\" in this file.");
        assert!(
            at(99, 1, None)
                .unwrap_err()
                .contains("Line 99 does not exist")
        );
        assert_eq!(
            at(2, 3, None).unwrap().place,
            TextPosition {
                line: 2,
                character: 3
            }
        );
    }
}
