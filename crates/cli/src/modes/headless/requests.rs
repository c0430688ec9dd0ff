//! Requests of the program at the other end, beyond those that set the session up.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{input::Reader, status};

impl Reader {
    /// Serves a request, if it is one of these.
    pub(super) fn serve_more(
        &self,
        subtype: &str,
        request: &Value,
    ) -> Option<Result<Value, String>> {
        let text = |name: &str| request[name].as_str().unwrap_or_default();
        Some(match subtype {
            "mcp_status" => Ok(status::servers(&self.session.servers())),
            "mcp_set_servers" => {
                let servers = request["servers"].as_object().cloned().unwrap_or_default();
                let set = self.session.set_servers(&servers);
                set.map(status::server_changes)
            }
            "mcp_message" => self.heard_from(text("server_name")),
            "mcp_reconnect" | "mcp_toggle" => self.fixed(text("serverName")),
            "get_context_usage" => Ok(status::usage(&self.session.context_usage())),
            "cancel_async_message" => {
                let cancelled = self.session.take_back(text("message_uuid"));
                Ok(json!({"cancelled": cancelled}))
            }
            "stop_task" => done(self.session.stop_task(text("task_id"))),
            "background_tasks" => {
                let call = request["tool_use_id"].as_str();
                done(self.session.move_to_background(call))
            }
            "rename_session" => match text("title").trim() {
                "" => Err("rename_session needs a `title`".to_owned()),
                title => done(self.session.rename(title)),
            },
            _ => return None,
        })
    }

    /// Files are taken back beside the reading of lines: it may take its time.
    pub(super) fn rewind(&self, id: &Value, request: &Value) {
        let (id, session) = (id.clone(), self.session.clone());
        let channel = Arc::clone(&self.channel);
        let message = request["user_message_id"].as_str().unwrap_or_default();
        let (message, dry) = (message.to_owned(), request["dry_run"] == true);
        if self.session.is_running() {
            let busy = "files cannot be taken back while a message is answered: interrupt it first";
            channel.respond(&id, Err(busy.to_owned()));
            return;
        }
        tokio::task::spawn_blocking(move || {
            let told = match session.rewind(&message, dry) {
                Err(why) if dry => Ok(json!({"canRewind": false, "error": why})),
                told => told.map(|told| status::rewound(&told)),
            };
            channel.respond(&id, told);
        });
    }

    /// A server has something to say by itself. The tools of a session stay what they are, so that what a
    /// provider has cached stays so.
    fn heard_from(&self, server: &str) -> Result<Value, String> {
        if self.session.has_server(server) {
            Ok(json!({}))
        } else {
            Err(format!("there is no MCP server {server:?}"))
        }
    }

    fn fixed(&self, server: &str) -> Result<Value, String> {
        Err(if self.session.has_server(server) {
            format!(
                "the MCP server {server:?} stays as it is: start a new session to connect it again"
            )
        } else {
            format!("there is no MCP server {server:?}")
        })
    }
}

/// An answer that says nothing but that it was done.
fn done(done: Result<(), String>) -> Result<Value, String> {
    done.map(|()| json!({}))
}
