//! The client capabilities that are sent to servers.

use serde_json::{Value, json};

/// Returns the client capabilities. They contain only what is implemented.
pub(crate) fn capabilities() -> Value {
    let kinds = json!({"valueSet": (1..=26).collect::<Vec<u32>>()});
    json!({
        "general": {"positionEncodings": ["utf-8", "utf-16"]},
        "window": {"workDoneProgress": true},
        "workspace": {
            "applyEdit": true,
            "configuration": true,
            "workspaceFolders": true,
            "didChangeConfiguration": {},
            "didChangeWatchedFiles": {"dynamicRegistration": true},
            "diagnostics": {"refreshSupport": true},
            "symbol": {"symbolKind": kinds},
            "workspaceEdit": {
                "documentChanges": true,
                "resourceOperations": ["create", "rename", "delete"],
                "failureHandling": "abort",
            },
        },
        "textDocument": {
            "synchronization": {"didSave": true},
            "publishDiagnostics": {"versionSupport": true, "tagSupport": {"valueSet": [1, 2]}},
            // Some servers support pull diagnostics only for clients with dynamic registration.
            "diagnostic": {"dynamicRegistration": true},
            "hover": {"contentFormat": ["markdown", "plaintext"]},
            "definition": {"linkSupport": true},
            "implementation": {"linkSupport": true},
            "references": {},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": true, "symbolKind": kinds},
            "callHierarchy": {},
            "rename": {"prepareSupport": true},
            "codeAction": {
                "codeActionLiteralSupport": {"codeActionKind": {"valueSet": [
                    "quickfix", "refactor", "refactor.extract", "refactor.inline",
                    "refactor.rewrite", "source", "source.organizeImports",
                ]}},
                "dataSupport": true,
                "resolveSupport": {"properties": ["edit"]},
            },
        },
    })
}
