//! Requests of the program at the other end, beyond those that set the session up.

use std::sync::Arc;

use haft_protocol::{
    CancelledMessage, ClientRequest, RequestId, RewindAnswer, RewindRequest, SessionAnswer,
};

use super::{input::Reader, status};

impl Reader {
    /// Serves a request, if it is one of these.
    pub(super) fn serve_more(&self, request: &ClientRequest) -> Result<SessionAnswer, String> {
        match request {
            ClientRequest::McpStatus(_) => {
                let servers = status::servers(self.session.servers());
                Ok(SessionAnswer::Servers(servers))
            }
            ClientRequest::McpSetServers(request) => {
                let set = self.session.set_servers(&request.servers)?;
                Ok(SessionAnswer::SetServers(status::server_changes(set)))
            }
            ClientRequest::McpMessage(request) => self.heard_from(&request.server_name),
            ClientRequest::McpReconnect(request) => self.fixed(&request.server_name),
            ClientRequest::McpToggle(request) => self.fixed(&request.server_name),
            ClientRequest::GetContextUsage(_) => {
                let usage = status::usage(&self.session.context_usage());
                Ok(SessionAnswer::ContextUsage(Box::new(usage)))
            }
            ClientRequest::CancelAsyncMessage(request) => {
                let cancelled = self.session.take_back(&request.message_uuid);
                Ok(SessionAnswer::Cancelled(CancelledMessage { cancelled }))
            }
            ClientRequest::StopTask(request) => done(self.session.stop_task(&request.task_id)),
            ClientRequest::BackgroundTasks(request) => {
                let call = request.tool_use_id.as_deref();
                done(self.session.move_to_background(call))
            }
            ClientRequest::RenameSession(request) => match request.title.trim() {
                "" => Err("rename_session needs a `title`".to_owned()),
                title => done(self.session.rename(title)),
            },
            other => Err(format!(
                "no control request is called {:?} here",
                other.subtype()
            )),
        }
    }

    /// Files are taken back beside the reading of lines: it may take its time.
    pub(super) fn rewind(&self, id: RequestId, request: RewindRequest) {
        let session = self.session.clone();
        let channel = Arc::clone(&self.channel);
        let (message, dry) = (request.user_message_id, request.dry_run);
        if self.session.is_running() {
            let busy = "files cannot be taken back while a message is answered: interrupt it first";
            channel.respond(id, Err(busy.to_owned()));
            return;
        }
        tokio::task::spawn_blocking(move || {
            let told = match session.rewind(&message, dry) {
                Err(why) if dry => Ok(RewindAnswer {
                    error: Some(why),
                    ..RewindAnswer::default()
                }),
                told => told.map(|told| status::rewound(&told)),
            };
            channel.respond(id, told.map(SessionAnswer::Rewind));
        });
    }

    /// A server has something to say by itself. The tools of a session stay what they are, so that what a
    /// provider has cached stays so.
    fn heard_from(&self, server: &str) -> Result<SessionAnswer, String> {
        if self.session.has_server(server) {
            Ok(SessionAnswer::DONE)
        } else {
            Err(format!("there is no MCP server {server:?}"))
        }
    }

    fn fixed(&self, server: &str) -> Result<SessionAnswer, String> {
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
fn done(done: Result<(), String>) -> Result<SessionAnswer, String> {
    done.map(|()| SessionAnswer::DONE)
}
