//! `ListMcpResourcesTool` and `ReadMcpResourceTool`: the resources of servers, for a model.

use std::{path::PathBuf, sync::Arc, time::Duration};

use haft_contract::{
    BoundCall, BoxFuture, CallContext, DynTool, Effects, ToolAccess, ToolError, ToolOutput,
    ToolProfile, ToolSpec,
};
use serde_json::{Map, Value, json};

use super::{ServerHandle, Servers, result};
use crate::peer::RequestTimeout;

/// The time limit for listing or reading.
const LIMIT: Duration = Duration::from_secs(60);
/// The maximum length in characters of a resource in a result; longer ones are stored on disk.
const CAP: usize = 100_000;

/// Returns the tools that list and read resources of these servers.
pub fn resource_tools(servers: &Arc<Servers>, folder: PathBuf) -> Vec<Arc<dyn DynTool>> {
    let list = ResourceTool {
        spec: spec(
            "ListMcpResourcesTool",
            "Lists the resources of MCP servers, of one server or of all. Each entry names its server; read one with \
             ReadMcpResourceTool. An entry with `uriTemplate` describes several resources: fill in its variables.",
            json!({
                "type": "object",
                "properties": {"server": {"type": "string", "description": "Only of this server."}},
            }),
            "list MCP resources",
        ),
        servers: Arc::clone(servers),
        folder: folder.clone(),
        is_reader: false,
    };
    let read = ResourceTool {
        spec: spec(
            "ReadMcpResourceTool",
            "Reads one resource of an MCP server that ListMcpResourcesTool listed.",
            json!({
                "type": "object",
                "properties": {
                    "server": {"type": "string", "description": "The server."},
                    "uri": {"type": "string", "description": "The resource."},
                },
                "required": ["server", "uri"],
            }),
            "read MCP resource",
        ),
        servers: Arc::clone(servers),
        folder,
        is_reader: true,
    };
    vec![Arc::new(list), Arc::new(read)]
}

fn spec(name: &str, description: &str, input_schema: Value, hint: &'static str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema,
        profile: ToolProfile {
            family: "mcp".into(),
            search_hint: hint.into(),
            deferred: true,
            access: ToolAccess::Reads,
            result_cap: Some(CAP),
            ..ToolProfile::default()
        },
    }
}

struct ResourceTool {
    spec: ToolSpec,
    servers: Arc<Servers>,
    folder: PathBuf,
    is_reader: bool,
}

impl DynTool for ResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        Ok(Box::new(ResourceCall { tool: self, input }))
    }
}

struct ResourceCall {
    tool: Arc<ResourceTool>,
    input: Value,
}

impl BoundCall for ResourceCall {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn input(&self) -> &Value {
        &self.input
    }

    fn effects(&self) -> Effects {
        Effects::READS
    }

    fn call<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let ResourceTool {
            servers,
            folder,
            is_reader,
            ..
        } = &*self.tool;
        let text = |name: &str| self.input[name].as_str();
        Box::pin(async move {
            let answer = match is_reader {
                true => {
                    let (server, uri) = (
                        text("server").unwrap_or_default(),
                        text("uri").unwrap_or_default(),
                    );
                    let contents = servers
                        .read_resource(server, uri)
                        .await
                        .map_err(ToolError::Failed)?;
                    json!({"contents": shown(&contents, folder)})
                }
                false => {
                    let listed = list(servers, text("server"))
                        .await
                        .map_err(ToolError::Refused)?;
                    Value::Array(listed)
                }
            };
            Ok(ToolOutput::text(answer.to_string()).with_structured(answer))
        })
    }
}

/// Returns the resources of one server, or of all connected ones.
async fn list(servers: &Servers, only: Option<&str>) -> Result<Vec<Value>, String> {
    let (wanted, must) = match only {
        Some(name) => (vec![servers.server(name)?], true),
        None => (servers.all(), false),
    };
    let mut all = Vec::new();
    for server in wanted {
        match server_resources(&server).await {
            Ok(listed) => all.extend(listed),
            Err(why) if must => return Err(format!("the server {}: {why}", server.name())),
            Err(_) => {}
        }
    }
    Ok(all)
}

async fn server_resources(server: &ServerHandle) -> Result<Vec<Value>, String> {
    let connection = server.connected().await?;
    if !connection.server_info().has("resources") {
        return Ok(Vec::new());
    }
    let limit = RequestTimeout::new(LIMIT);
    let resources = connection
        .list_resources(limit)
        .await
        .map_err(|error| error.to_string())?;
    let templates = connection.list_templates(limit).await.unwrap_or_default();
    let named = resources.iter().chain(&templates).map(|listed| {
        let mut entry = Map::new();
        for key in [
            "uri",
            "uriTemplate",
            "name",
            "title",
            "mimeType",
            "description",
        ] {
            if let Some(value) = listed.get(key) {
                entry.insert(key.to_owned(), value.clone());
            }
        }
        entry.insert("server".to_owned(), json!(server.name()));
        Value::Object(entry)
    });
    Ok(named.collect())
}

/// Stores binary contents in files and replaces them by the paths.
fn shown(contents: &[Value], folder: &std::path::Path) -> Vec<Value> {
    let shown = contents.iter().map(|content| {
        let mut content = content.clone();
        if let Some(map) = content.as_object_mut()
            && let Some(Value::String(blob)) = map.shift_remove("blob")
        {
            let kind = map
                .get("mimeType")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let kept = match result::store_base64(&blob, &kind, folder) {
                Ok(path) => ("blobSavedTo", json!(path)),
                Err(why) => ("error", json!(why)),
            };
            map.insert(kept.0.to_owned(), kept.1);
        }
        content
    });
    shown.collect()
}

impl Servers {
    /// Returns the contents of a resource.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<Vec<Value>, String> {
        let handle = self.server(server)?;
        let failed = |why: String| format!("the server {server}: {why}");
        let connection = handle.connected().await.map_err(failed)?;
        let mut answer = connection
            .read_resource(uri, RequestTimeout::new(LIMIT))
            .await
            .map_err(|error| failed(error.to_string()))?;
        match answer["contents"].take() {
            Value::Array(contents) => Ok(contents),
            _ => Err(failed("it answered without contents".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_resource_are_kept_in_a_file_and_what_is_none_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let contents = [
            json!({"uri": "x:/a", "mimeType": "text/plain", "text": "inside"}),
            json!({"uri": "x:/b", "mimeType": "application/zip", "blob": "UEsDBA=="}),
            json!({"uri": "x:/c", "blob": "?"}),
        ];
        let shown = shown(&contents, dir.path());
        assert_eq!(shown[0], contents[0]);
        let path = shown[1]["blobSavedTo"].as_str().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"PK\x03\x04");
        assert!(path.starts_with(dir.path().to_str().unwrap()) && path.ends_with(".zip"));
        assert_eq!(shown[1].get("blob"), None);
        let why = shown[2]["error"].as_str().unwrap();
        assert!(why.contains("not valid base 64"), "{why}");
    }
}
